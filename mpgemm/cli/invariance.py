"""`mpgemm invariance` checks whether rows of a GEMM change their bits with the batch size, and by which change of recipe."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from itertools import groupby
from typing import TYPE_CHECKING

import tensorcore_models as tcm
from mpgemm.cli.common import library_options as options
from mpgemm.cli.common.parser import Parser
from mpgemm.cli.common.profile_options import BESIDE, add_profile_arguments
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import fitted

if TYPE_CHECKING:
    from mpgemm.cli.common.profile_options import ProfiledRecording
    from tensorcore_models.libraries import Recipe
    from tensorcore_models.libraries.recorded import Problem, Recording

QUESTION = "debug a kernel"
SUMMARY = "check whether the bits of a GEMM's rows depend on the batch size in a GPU library"
EXAMPLES = (
    ("--recorded chosen.json", "for which weight matrices do the bits of a result's rows depend on the batch size?"),
    (
        "--gpu h100 --library cublaslt-13.1 --shape 4096 4096 --config 1:ALGO_ID=13,CUSTOM_OPTION=42 "
        "64:ALGO_ID=66,STAGES_ID=35",
        "the same check for configurations that you name",
    ),
)


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--recorded",
        metavar="FILE",
        help=f"file of the configurations that cuBLASLt's heuristic chose, recorded by {options.RECORD}",
    )
    add_profile_arguments(parser)
    parser.goes_with(BESIDE, ("--profile",))
    parser.goes_without(("--recorded", "--library", "--shape", "--config"), ("--profile",))
    parser.goes_with(("--profile",), ("--gpu",))
    add = parser.add_argument_group("or the configurations themselves").add_argument
    add(
        "--gpu",
        help="GPU by its short name or the name that its driver gives: h100, NVIDIA H100 80GB HBM3, b200, ...; an h200 is "
        "modelled as an h100",
    )
    add(
        "--library",
        metavar="NAME-VERSION",
        help="library and version, such as cublaslt-13.1; torch.matmul-13.1 means the same library, because "
        "torch.matmul calls it",
    )
    add("--shape", nargs=2, type=int, metavar=("K", "N"), help="rows K and columns N of the weight matrix")
    add("--operands", dest="format", metavar="FORMAT", default="fp16", help="format of the operands (default fp16)")
    add("--out-format", metavar="FORMAT", help="format of the result (default: that of the operands; for fp8 bf16)")
    add(
        "--config",
        nargs="+",
        default=[],
        metavar="M:FIELD=VALUE,...",
        help="batch sizes M, each with the configuration of its kernel, whose fields are those of predict --config",
    )
    add = parser.add_argument
    add(
        "--seed",
        type=int,
        default=0,
        help="seed of the random rows of A on which kernels of different batch sizes are compared (default 0)",
    )
    add("--json", action="store_true", help="print the result as JSON")


#: Rows and columns of the random product on which two recipes are compared.
SAMPLE = (16, 128)


def run(args: argparse.Namespace) -> Output:
    """Carry out the command.

    Raises ValueError, OSError if the recording cannot be read, or holds no product at two batch sizes.
    """
    recording = _recording(args)
    weights = [_weight(recording, list(group), args.seed) for _, group in groupby(recording.problems(), _layer)]
    weights = [weight for weight in weights if len(weight["batches"]) > 1]
    if not weights:
        where = recording.path or "--config"
        raise ValueError(
            f"{where} holds no weight matrix with two values of m, expected several batch sizes: name several in "
            f"--config, or record them by {options.RECORD}"
        )
    facts = {"device": recording.device, "cublaslt": recording.version, "status": "predicted", "weights": weights}
    return Output(facts, (fitted(line) for weight in weights for line in _lines(weight)))


def _recording(args: argparse.Namespace) -> Recording | ProfiledRecording:
    """Return the recording of --recorded, the rows of --profile, or a recording made of --config."""
    from mpgemm.cli.common.profile_options import ProfiledRecording
    from tensorcore_models.formats import operand_format
    from tensorcore_models.libraries.recorded import Problem, Recording, load_recording

    if args.profile is not None:
        return ProfiledRecording.of(args.profile, args.gpu, args)
    inline = {f"--{name}": getattr(args, name) for name in ("gpu", "library", "shape", "config")}
    given = [name for name, value in inline.items() if value]
    if args.recorded is not None:
        if given:
            raise ValueError(
                f"got --recorded and {', '.join(given)}, but the recording states these facts: leave {', '.join(given)} out"
            )
        return load_recording(args.recorded)
    if len(given) < len(inline):
        missing = [name for name in inline if name not in given]
        raise ValueError(
            f"missing {', '.join(missing)}: give --recorded FILE, written by {options.RECORD}; or --gpu h100 --library "
            f"cublaslt-13.1 --shape K N --config M:ALGO_ID=66,STAGES_ID=35 M:..."
        )
    name, version = options.resolve_library(args.library)
    if name != "cublaslt" or not version:
        raise ValueError(
            f"--library got {args.library}, expected cublaslt-VERSION, such as cublaslt-13.1: no other configurations are known"
        )
    fmt = operand_format(args.format).name
    out = options.output_format(args, fmt)
    configs: dict[Problem, dict[str, int | None] | None] = {}
    for text in args.config:
        m, colon, fields = text.partition(":")
        if not colon or not m.isdigit():
            raise ValueError(f"--config got {text!r}, expected M:FIELD=VALUE,..., such as 64:ALGO_ID=66,STAGES_ID=35")
        k, n = args.shape
        problem = Problem(fmt, out, k, n, int(m))
        if problem in configs:
            raise ValueError(f"--config gives m {m} twice, expected each m once: leave one out")
        config: dict = options.parse_config([fields])
        named = options.rounds_operands(args.gpu, args.library)  # fields as the log names them, a layout
        configs[problem] = config if named else options.integer_config(config)
    device, note = _measured(args.gpu)
    if note:
        print(f"mpgemm invariance: {note}", file=sys.stderr)
    return Recording(device, version, 0, configs)


def _measured(gpu: str) -> tuple[str, str]:
    """Return the measured device whose rules hold for a GPU, and a remark if it is another device.

    Raises ValueError if no device of the GPU's architecture was measured.
    """
    from tensorcore_models.catalogue import canonical_device
    from tensorcore_models.catalogue.devices import DEVICES
    from tensorcore_models.libraries.cublaslt_tables import TARGETS

    name = canonical_device(gpu)
    if name in TARGETS:
        return name, ""
    arch = DEVICES.get(name, (name, ()))[0]
    same = [device for device in TARGETS if DEVICES[device][0] == arch]
    if not same:
        raise ValueError(
            f"--gpu {gpu}: cuBLASLt's rules are not known for {name}, only for {', '.join(TARGETS)}: record results "
            "on that GPU and compare the results with mpgemm diff"
        )
    return same[0], f"{name}: inferred from the rules of {same[0]}, which has the same matrix units"


def _layer(problem: Problem) -> tuple:
    return problem.format, problem.out_format, problem.k, problem.n


def _recipe(recording: Recording | ProfiledRecording, problem: Problem) -> tuple[Recipe | None, str]:
    from tensorcore_models.libraries import Unknown

    try:
        return recording.recipe(problem), ""
    except Unknown as error:
        return None, str(error)


def _weight(recording: Recording | ProfiledRecording, problems: list[Problem], seed: int) -> dict:
    """Return the findings on one weight matrix: the changes of recipe and bits from each recorded m to the next."""
    from tensorcore_models.libraries.compare import differences, summary

    fmt, out_format, k, n = _layer(problems[0])
    steps: list[dict] = []
    previous: Recipe | None = None
    invariant: bool | None = True
    for problem in problems:
        recipe, unknown = _recipe(recording, problem)
        why: list[str] = []
        changed = False
        if previous is not None and recipe is not None:
            why = differences(previous, recipe)
            changed = bool(why) and _bits_change(previous, recipe, out_format, n, seed)
        if changed:
            invariant = False
        elif invariant and (why or recipe is None):
            invariant = None
        steps.append({
            "m": problem.m, "recipe": recipe.name if recipe else None, "order": summary(recipe.order) if recipe else None,
            "changes": why, "bits_change": changed, "unknown": unknown,
        })  # fmt: skip
        previous = recipe or previous
    return {"format": fmt, "out_format": out_format, "k": k, "n": n, "batches": steps, "invariant": invariant}


def _bits_change(first: Recipe, second: Recipe, out_format: str, n: int, seed: int) -> bool:
    """Return whether two recipes give different bits for random rows of A."""
    import numpy as np

    rng = np.random.default_rng(seed)
    rows, columns = SAMPLE[0], min(n, SAMPLE[1])
    of_a, of_b = first.operand_formats
    if of_a == "s8":
        return False  # sums of integers are exact in any order
    a, b = (
        tcm.encode(rng.standard_normal((rows, first.k)), of_a),
        tcm.encode(rng.standard_normal((first.k, columns)), of_b),
    )
    results = [
        dataclasses.replace(recipe, shape=None).gemm_bits(a, b, out_format=out_format) for recipe in (first, second)
    ]
    return bool((results[0] != results[1]).any())


def _lines(weight: dict):
    verdict = {
        True: "predicted: rows keep their bits at every recorded m",
        False: "predicted: rows change their bits with m",
        None: "not known for every m",
    }
    yield f"{weight['format']} to {weight['out_format']}, k {weight['k']}, n {weight['n']}: {verdict[weight['invariant']]}"
    for step in weight["batches"]:
        if step["unknown"]:
            yield f"  m {step['m']}: unknown: {step['unknown']}"
            continue
        yield f"  m {step['m']}: {step['order']}"
        if step["changes"]:
            effect = "bits change" if step["bits_change"] else "the recipe changes, but no bit of the sample does"
            yield f"    {effect}: {'; '.join(step['changes'])}"
