"""`mpgemm check OUT A B`: is a kernel's result right, and if not, what kind of bug looks like it?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mpgemm.cli.common.library_options import read_operand
from mpgemm.cli.common.parser import Parser
from mpgemm.cli.common.prose import wrapped
from mpgemm.cli.common.scale_options import add_scale_arguments, scales_of
from mpgemm.reporting import report

if TYPE_CHECKING:
    import numpy as np

    from mpgemm.testing.check import KernelCheck

QUESTION = "debug a kernel"
SUMMARY = "is a kernel's result right on this unit, and if not, what kind of bug looks like it?"
EXAMPLES = (
    ("out.npy A.npy B.npy --engine h100", "a test fails: why?"),
    (
        "scaled.npy A.npy B.npy --scale-a SA.npy --scale-b SB.npy --promote-every 128",
        "scales by their shapes; sums outside every 128 products",
    ),
    ("out.npy A.npy B.npy --k-order any --promote-every 64:512", "little is known of the kernel"),
    (
        "q.npy QA.npy QB.npy --scale-a 0.1 --scale-b 0.2 --scale-out 8 --zero-a 3",
        "integers with a zero point, requantised",
    ),
)


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    add = parser.add_argument
    for name, text in (("out", "the kernel's result"), ("a", "A"), ("b", "B")):
        add(name, metavar=name.upper(), help=f"matrix file: {text}")
    add("--engine", default="h100", help="device (h100), path (h100/mma) or arch:name (default h100)")
    add("--format", metavar="FORMAT", help="format of A and B where their files hold encodings (unsigned integers)")
    add("--out-format", metavar="FORMAT", help="format of OUT where its file holds encodings")
    add("--c", metavar="FILE", help="C, added to the product: a matrix, or a bias for each column (n) or row (m x 1)")
    add(
        "--epilogue",
        metavar="NAME",
        help="relu, silu, gelu_tanh, gelu_erf, leaky_relu:SLOPE, softcap:C, swiglu, residual; joined by +",
    )
    add("--residual", metavar="FILE", help="what is added behind the epilogue")
    add("--rows", type=int, metavar="N", help="look at N rows only, evenly spread")
    add_scale_arguments(parser)
    add_order_arguments(parser)
    integers = parser.add_argument_group("outputs of integers")
    add = integers.add_argument
    for name in ("zero-a", "zero-b", "zero-out"):
        add(f"--{name}", type=int, metavar="Z", help=f"zero point of {name[5:].upper()}")
    add("--scale-out", type=float, metavar="X", help="scale of an output of 8 bits")
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_order_arguments(parser) -> None:
    """The orders of k that a kernel may have."""
    add = parser.add_argument
    add("--splits", type=int, default=1, metavar="S", help="chains of k at most, added up outside (default 1)")
    add("--k-order", metavar="ORDER", help="sequential, split_k:S, sliced_k:S, or any: the unit's steps in any order")
    add(
        "--promote-every",
        metavar="N|LEAST:MOST",
        help="the kernel adds up in FP32 outside of the unit every N products",
    )


#: What sees a fault that a tolerance does not.
BITS = "where the kernel's order is this one, its bits tell: mpgemm whodunit, or assert_bits in a test"


def orders_of(args: argparse.Namespace) -> dict:
    """splits, k_order and promote_every. Raises ValueError if --promote-every is no number and no interval."""
    every = None
    if args.promote_every is not None:
        try:
            numbers = tuple(int(word) for word in args.promote_every.split(":"))
        except ValueError:
            numbers = ()
        if len(numbers) not in (1, 2):
            raise ValueError(
                f"--promote-every is {args.promote_every!r}, expected a number of products as 128, or 64:512"
            )
        every = numbers[0] if len(numbers) == 1 else numbers
    return {"splits": args.splits, "k_order": args.k_order, "promote_every": every}


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status: 1 where the result is wrong.

    Raises ValueError, TypeError, OSError on bad input.
    """
    from mpgemm.inputs.files import read_array
    from mpgemm.testing.check import check_gemm

    out = _values(args.out, args.out_format)
    a, b = (_values(path, args.format, "format") for path in (args.a, args.b))
    c = None if args.c is None else read_array(args.c)
    zeros = {"zero_a": args.zero_a, "zero_b": args.zero_b, "zero_out": args.zero_out, "scale_out": args.scale_out}
    residual = None if args.residual is None else read_array(args.residual)
    options = {
        "engine": args.engine,
        **orders_of(args),
        **scales_of(args),
        "epilogue": args.epilogue,
        "residual": residual,
    }
    options["rows"] = args.rows
    found = check_gemm(out, a, b, c, **options, **zeros)
    allowed = _allowed(found) if found.passes else []
    if args.json:
        print(report.json_text({**found.to_dict(), "allowed": allowed}), end="")
    elif found.passes:
        for number, line in enumerate(allowed):
            print(wrapped(line, "  " * (number > 0), "    " * (number > 0)))
    else:
        first, *others = str(found).splitlines()
        print(wrapped(f"FAILS: {first}"))
        print("\n".join(line if line.startswith("    ") else wrapped(line.strip(), "  ", "    ") for line in others))
    return 0 if found.passes else 1


def _values(path: str, fmt: str | None, path_of: str | None = None) -> np.ndarray:
    """The file's values; encodings of a named format as its natural type; `path_of`: the option that says what uint8 is."""
    from mpgemm.inputs.files import read_array
    from tensorcore_models.formats import get_format, operand_format
    from tensorcore_models.formats.operands import values_of_bits

    array = read_array(path, encodings=fmt is not None)
    if fmt is None and array.dtype == "uint8" and path_of is not None:
        raise ValueError(
            f"{path} holds uint8: say --{path_of} e4m3fn (or another 8-bit format) for encodings, --{path_of} u8 for integers"
        )
    if fmt is None or operand_format(fmt).name in ("s8", "u8", "s4", "u4"):
        return array
    bits, name = read_operand(path, fmt, None)
    return values_of_bits(bits, get_format(name))


def _allowed(found: KernelCheck) -> list[str]:
    """What was allowed, and which faults would pass on these operands."""
    from mpgemm.testing.power import missed_faults
    from mpgemm.testing.tolerance_result import NONE_MISSED

    allowed = found.case
    if allowed is None:
        return ["passes: every element is the exact one"]
    line = allowed.statistics
    kind = f"within its certified bound, at most {allowed.atol:.3g}" if line is None else str(line)
    scales = "" if allowed.scaling is None else f"; scales: {allowed.scaling.in_words()}"
    what = f"passes: every element is right for {allowed.engine.label}, {allowed.order.in_words()}"
    lines = [f"{what}: {kind}; {allowed.vacuity.verdict}{scales}"]
    missed = missed_faults(allowed)
    if missed is not None:
        bits = f"; {BITS}" if allowed.order.known and missed != NONE_MISSED else ""
        lines.append(f"not seen on these operands: {missed}{bits}")
    return lines
