"""`mpgemm check OUT A B`: is a kernel's result right, and if not, what kind of bug looks like it?"""

import argparse

import numpy as np

import tensorcore_models as tcm
from mpgemm.commands.library_options import read_operand
from mpgemm.commands.scale_options import scales_of
from mpgemm.inputs.files import read_array
from mpgemm.options.prose import wrapped
from mpgemm.reporting import report
from mpgemm.testing.asserts import INTEGERS, assert_gemm_close
from mpgemm.testing.case import gemm_tolerance
from mpgemm.testing.power import missed_faults
from mpgemm.testing.tolerance_result import NONE_MISSED
from tensorcore_models.formats import get_format, operand_format
from tensorcore_models.formats.operands import values_of_bits

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
    out = _values(args.out, args.out_format)
    a, b = (_values(path, args.format) for path in (args.a, args.b))
    c = None if args.c is None else read_array(args.c)
    zeros = {"zero_a": args.zero_a, "zero_b": args.zero_b, "zero_out": args.zero_out, "scale_out": args.scale_out}
    options = {"engine": args.engine, **orders_of(args), **scales_of(args)}
    message = None
    try:
        assert_gemm_close(out, a, b, c, **options, **zeros)
    except AssertionError as error:
        message = str(error)
    allowed = _allowed(out, a, b, c, options) if message is None else []
    if args.json:
        print(report.json_text({"passes": message is None, "message": message, "allowed": allowed}), end="")
    elif message is None:
        for number, line in enumerate(allowed):
            print(wrapped(line, "  " * (number > 0), "    " * (number > 0)))
    else:
        first, *others = message.splitlines()
        print(wrapped(f"FAILS: {first}"))
        print("\n".join(wrapped(line.strip(), "  ", "    ") for line in others))
    return 0 if message is None else 1


def _values(path: str, fmt: str | None) -> np.ndarray:
    """The file's values; encodings of a named format as its natural type."""
    array = read_array(path)
    if fmt is None or operand_format(fmt).name in ("s8", "u8", "s4", "u4"):
        return array
    bits, name = read_operand(path, fmt, None)
    return values_of_bits(bits, get_format(name))


def _allowed(out: np.ndarray, a, b, c, options: dict) -> list[str]:
    """What was allowed, and which faults would pass on these operands."""
    if out.dtype in INTEGERS:
        return ["passes: every element is the exact one"]
    fmt = tcm.format_of_dtype(out.dtype)
    assert fmt is not None  # the check took it
    allowed = gemm_tolerance(a=a, b=b, c=c, out_format=fmt.name, **options)
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
