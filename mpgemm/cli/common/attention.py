"""`mpgemm evaluate --attention Q K V`: attention on exact cores, its error split over the stages."""

import argparse

import tensorcore_models as tcm
from mpgemm.reporting.answers import Answer
from mpgemm.reporting.report import fitted, json_text
from tensorcore_models.files import write_text

NOTE = (
    "2^x is the correctly rounded FP32 value: the bits of a GPU's MUFU.EX2 are not modelled here (they are by "
    "attention_errors(functions=...)), so only the products' bits are claimed."
)


def check_attention(args: argparse.Namespace) -> None:
    """Refuse options that contradict each other. Raises ValueError with the options at fault."""
    others = ("files", "shipped", "distribution", "methods", "c", "shape")
    given = [name for name in others if args.attention and getattr(args, name, None)]
    if given:
        raise ValueError(f"--attention brings its own matrices: leave {', '.join(given)} out")


def evaluate_attention(args: argparse.Namespace) -> Answer:
    """Carry out `mpgemm evaluate --attention`."""
    from mpgemm.experiments.attention import attention_errors, table
    from mpgemm.frameworks.multiplier import Multiplier
    from mpgemm.inputs.files import read_matrix
    from mpgemm.reporting.provenance import environment

    q, k, v = (read_matrix(path) for path in args.attention)
    formats = {fmt.name for fmt in (tcm.format_of_dtype(x.dtype) for x in (q, k, v)) if fmt is not None}
    fmt = formats.pop() if len(formats) == 1 and formats <= {"fp16", "bf16"} else "bf16"
    engines = [Multiplier(name).engine_for(fmt, fmt) for name in args.engine or ["h100", "a100"]]
    keys = k.shape[0]
    tiles = args.kv_tile or [keys, *(size for size in (64, 128) if size < keys)]
    found = [attention_errors(q, k, v, engine, tile=tile) for engine in engines for tile in tiles]
    shape = f"{q.shape[0]} queries, {keys} keys, d {q.shape[1]}, dv {v.shape[1]}"
    shown = table(found, shape)
    data = {"environment": environment(), "shape": shape, "attention": [each.to_dict() for each in found], "note": NOTE}
    if args.out:
        write_text(args.out / "attention.json", json_text(data))
        write_text(args.out / "attention.csv", shown.to_csv())
    return Answer(data, [shown, fitted(NOTE)], [shown])
