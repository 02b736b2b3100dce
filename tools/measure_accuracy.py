"""This tool measures the accuracy of units, recovery methods and special functions, and writes the rows of docs/accuracy.csv.

    python tools/measure_accuracy.py --products              # units times methods times data: about a minute
    python tools/measure_accuracy.py --errors errors.json    # functions, measured by tools/check_functions.py --errors

Existing rows of the other kind stay. `python docs/_ext/accuracy_page.py > docs/accuracy.md` makes the page.
"""

import argparse
import csv
import io
import json
import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np

import mpgemm
import tensorcore_models as tcm
from mpgemm.inputs import generate
from tensorcore_models.files import write_text

PAGE = Path(__file__).resolve().parents[1] / "docs" / "accuracy.csv"
COLUMNS = (
    "kind", "unit", "instruction", "method", "data", "results", "coverage", "largest_bits", "mean_bits", "evidence",
)  # fmt: skip
UNITS = (
    "v100", "t4", "a100", "l40s", "h100", "b200", "rtx5090", "mi100", "mi250x", "mi300x", "910a", "910b1", "gaudi2", "wormhole",
)  # fmt: skip
METHODS = ("fp16", "bf16", "tf32", "fp8", "markidis", "ootomo", "sgemm_cube", "bf16x3", "bf16x9", "tf32x3")
#: Distributions and their parameters; shape m, k, n.
DATA: dict[str, dict[str, float]] = {
    "uniform_symmetric": {}, "uniform_nonnegative": {}, "normal": {}, "log_uniform": {"low": -10, "high": 5}, "cancelling": {},
}  # fmt: skip
SHAPE = (32, 1024, 32)
#: Functions whose absolute error is measured, because the result passes 0 or loses all its relative bits near it.
ABSOLUTE = ("sin.", "cos.", "lg2.", "__logf", "torch.silu", "torch.gelu")


def bits(error: float) -> str:
    """Return -log2 of an error with two digits, "exact" for no error, "none" if no leading bit is right."""
    if error == 0:
        return "exact"
    return f"{-math.log2(error):.2f}" if error < 1 else "none"


def product_rows(units: Sequence[str] = UNITS, methods: Sequence[str] = METHODS) -> list[tuple]:
    """Return a row for each distribution, unit and method that fits it: errors of results relative to |A||B|."""
    rows: list[tuple] = []
    m, k, n = SHAPE
    for name, parameters in DATA.items():
        a, b = generate(name, m, k, n, **parameters)
        exact = mpgemm.exact_gemm(a, b).rounded("fp64")
        size = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
        words = ", ".join(f"{key}={value}" for key, value in parameters.items())
        data = f"{name}({words})" if words else name
        for method, unit in product(methods, units):
            try:
                engine = mpgemm.resolve_engine(unit, mpgemm.get_method(method))
            except mpgemm.UnsuitableEngine:
                continue
            error = np.abs(mpgemm.recovered_gemm(a, b, method=method, engine=engine) - exact) / size
            evidence = tcm.get_instruction(*engine.label.split(":", 1)).evidence.partition(" (")[0]
            sizes = bits(float(error.max())), bits(float(error.mean()))
            rows.append(("product", unit, engine.label, method, data, m * n, "sampled", *sizes, evidence))
    return rows


def function_rows(path: Path) -> list[tuple]:
    """Return a row for each function of a file of tools/check_functions.py."""
    rows = []
    for name, found in json.loads(path.read_text()).items():
        function = tcm.get_function("hopper", name)
        kind = "absolute" if name.startswith(ABSOLUTE) else "relative"
        largest, mean = bits(found["extremes"][kind]), bits(found["mean_size"][kind])
        evidence, coverage = function.evidence.partition(":")[0].partition(" from")[0], found["coverage"]
        data = "pairs" if len(function.row.operands) == 2 else "all operands"
        rows.append(("function", "h100", name, kind, data, found["operands"], coverage, largest, mean, evidence))
    return rows


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--products", action="store_true")
    parser.add_argument("--errors", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, default=PAGE, metavar="FILE")
    args = parser.parse_args()
    kept = list(csv.reader(args.out.open(encoding="utf-8")))[1:] if args.out.exists() else []
    new = {"product": product_rows() if args.products else None}
    new["function"] = function_rows(args.errors) if args.errors else None
    rows = [row for kind, made in new.items() for row in ([r for r in kept if r[0] == kind] if made is None else made)]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
    write_text(args.out, text.getvalue())
    print(f"{len(rows)} rows in {args.out}")


if __name__ == "__main__":
    main()
