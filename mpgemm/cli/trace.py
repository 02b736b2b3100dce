"""`mpgemm trace compare RUN1 RUN2` finds where two recorded runs of a model first differ, why, and the effect on the logits."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Table, item, wrapped

if TYPE_CHECKING:
    from mpgemm.traces.comparing import ModuleDifference, TraceComparison

QUESTION = "debug a kernel"
SUMMARY = "find where two recorded runs of a model first differ in a bit, why, and the effect on the logits"
EXAMPLES = (
    ("compare training rollout", "two folders of recorded tensors"),
    ("compare h100 predicted:h100", "a recorded run, and what the device gives for each module's recorded inputs"),
    ("compare a100 h100 --logits model.lm_head --no-recipes", "the module of the logits by its name"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    add("what", choices=("compare",), help="compare two runs, module by module")
    for name in ("first", "second"):
        add(
            name, metavar=f"RUN{1 + (name == 'second')}",
            help="folder of recorded tensors: .safetensors, .npz, .npy or .pt with names of modules and steps"
            + "; or predicted:DEVICE, which predicts that device's results for the recorded "
            "inputs" * (name == "second"),
        )  # fmt: skip
    add(
        "--profile",
        metavar="FILE",
        help="with predicted:DEVICE: file of the kernels that ran on DEVICE (written by mpgemm.torch.record_kernels)",
    )
    add(
        "--logits",
        metavar="MODULE",
        help="name of the module whose outputs are the logits (default: lm_head or logits)",
    )
    add(
        "--no-recipes",
        action="store_true",
        help="do not search for the arithmetic that made the first output that differs",
    )
    add("--json", action="store_true", help="print the result as JSON")


#: Largest number of modules that the table shows.
SHOWN = 16


def run(args: argparse.Namespace) -> Output:
    """Carry out the command. Raises ValueError, TypeError, OSError on bad input."""
    from mpgemm.frameworks.predicted_traces import PREFIX, predicted_trace
    from mpgemm.traces.comparing import compare_traces
    from mpgemm.traces.reading import read_trace

    predicted = args.second.startswith(PREFIX)
    if args.profile is not None and not predicted:
        raise ValueError(
            f"--profile needs {PREFIX}DEVICE as the second run, got {args.second}: give {PREFIX}DEVICE, or leave --profile out"
        )
    first = read_trace(args.first)
    device = args.second.removeprefix(PREFIX)
    second = predicted_trace(first, device, args.profile) if predicted else read_trace(args.second)
    found = compare_traces(first, second, logits=args.logits, explain=not args.no_recipes)
    compared = f"{second.folder} of {first.folder}'s inputs" if predicted else ""
    return Output(found.to_dict(), _lines(found, compared, args.no_recipes))


def _lines(found: TraceComparison, compared: str, no_recipes: bool) -> Iterator[str | Table]:
    sentences = found.sentences()
    if compared:
        yield compared
    yield wrapped(sentences[0])
    if no_recipes and found.first is not None:
        sentences = [text for text in sentences if not text.startswith("what made it is not known")]
    yield from map(item, sentences[1:])
    if found.first is not None:
        headings = ("step", "module", "inputs", "bits differ", "relative", "largest")
        yield ""
        yield Table("modules from the first difference on", headings, [_cells(row) for row in _shown(found)])


def _shown(found: TraceComparison) -> list[ModuleDifference]:
    """Return the modules from the first that differs on; of many, an evenly spaced selection."""
    start = next(i for i, row in enumerate(found.modules) if row is found.first)
    rows = found.modules[start:]
    places = (
        {round(i * (len(rows) - 1) / max(1, SHOWN - 1)) for i in range(SHOWN)}
        if len(rows) > SHOWN
        else range(len(rows))
    )
    return [rows[i] for i in sorted(places)]


def _cells(row: ModuleDifference) -> tuple:
    inputs = {None: "?", True: "equal", False: "differ"}[row.inputs]
    if row.shapes is not None:
        return row.step, row.module, inputs, f"shapes {row.shapes[0]} and {row.shapes[1]}", "", ""
    return (
        row.step,
        row.module,
        inputs,
        f"{row.differing} of {row.elements}",
        f"{row.relative:.2g}",
        f"{row.largest:.2g}",
    )
