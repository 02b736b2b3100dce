"""`mpgemm tolerance`: what a test of a kernel may allow, certified and by sampling, and what a given tolerance would miss."""

import argparse
import math
import sys

from mpgemm.bounds.statistical import SIDE
from mpgemm.bounds.tolerances import Checked, Line, Tolerance, tolerance
from mpgemm.bounds.vacuity import Vacuity
from mpgemm.commands.matrices import add_matrix_arguments, given_pair, parameters_of
from mpgemm.commands.prose import wrapped
from mpgemm.inputs.files import read_matrix
from mpgemm.reporting import report

K = 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    what = parser.add_argument_group("what is tested")
    what.add_argument("--engine", help="device (h100), path (h100/mma) or arch:name; default h100, or the method's own")
    what.add_argument(
        "--format", metavar="FORMAT", help="operands of a device's unit: half, bf16, tf32, fp8, ... (default fp16)"
    )
    what.add_argument("--method", metavar="NAME", help="a recovery method instead of the plain product")
    what.add_argument(
        "--out-format", metavar="FORMAT", help="the kernel rounds its result to this format (bf16, fp16, ...)"
    )
    what.add_argument(
        "--reference",
        choices=("given", "rounded"),
        default="given",
        help="the test computes its expected result from the operands as given (default), or as rounded for the kernel",
    )
    source = add_matrix_arguments(parser, f"normal, k = {K}", k=True)
    source.add_argument("--c", metavar="FILE", help="C, added to the product of two files")
    how = parser.add_argument_group("how sure")
    how.add_argument("--quantile", type=float, default=0.99, help="share of whole products that pass (default 0.99)")
    how.add_argument("--confidence", type=float, default=0.95, help="confidence of that share (default 0.95)")
    check = parser.add_argument_group("judge a tolerance")
    check.add_argument("--check-rtol", type=float, metavar="RTOL", help="relative part, as of numpy.allclose")
    check.add_argument("--check-atol", type=float, metavar="ATOL", help="absolute part")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status.

    Raises
    ------
    ValueError, TypeError, OSError
        On bad input.
    """
    found = _tolerance(args)
    if args.json:
        print(report.json_text(found.to_dict()), end="")
    else:
        print("\n".join(_lines(found)))
    return 0


def _tolerance(args: argparse.Namespace) -> Tolerance:
    check = None
    if args.check_rtol is not None or args.check_atol is not None:
        check = (args.check_rtol or 0.0, args.check_atol or 0.0)
    pair, parameters = given_pair(args), parameters_of(args)
    if args.c is not None and not args.files:
        raise ValueError("--c goes with two files")
    if args.k is not None and args.shape is not None:
        raise ValueError("--k or --shape, not both")
    if args.k is not None and args.k < 1:
        raise ValueError(f"--k is {args.k}, expected at least 1")
    if pair is None:
        m, k, n = args.shape or (SIDE, args.k or K, SIDE)
        where: dict = {"k": k, "distribution": args.distribution or "normal", "parameters": parameters, "shape": (m, n),
                       "seed": args.seed}  # fmt: skip
    else:
        c = () if args.c is None else (read_matrix(args.c),)
        where = {"k": args.k, "data": (pair.a, pair.b, *c)}
    engine = args.engine or (None if args.method else "h100")
    return tolerance(
        engine, method=args.method, fmt=args.format, reference=args.reference, out_format=args.out_format,
        quantile=args.quantile, confidence=args.confidence, check=check, progress=report.Progress(sys.stderr), **where,
    )  # fmt: skip


def _lines(found: Tolerance):
    yield wrapped(f"{found.label}, k = {found.k}")
    yield "\n" + wrapped("certified (no kernel that computes so exceeds it):")
    if math.isfinite(found.relative):
        yield wrapped(f"|d - expected| <= {found.relative:.3g} (|A||B| + |C|) + {found.absolute:.3g}", "  ", "    ")
    else:
        yield wrapped("nothing: an operand or a sum may overflow", "  ", "    ")
    if found.certified is not None:
        yield wrapped(f"rtol={found.certified.rtol:.3g} atol={found.certified.atol:.3g} on these data", "  ", "    ")
    yield from (wrapped(f"because {line}" if not i else line, "  ", "    ")
                for i, line in enumerate(found.derivation.split("\n")))  # fmt: skip
    s = found.statistical
    if s is not None:
        m, k, n = s.shape
        title = f"statistical ({s.quantile:.4g} of whole {m} x {k} x {n} products, confidence {s.confidence:.4g}):"
        yield "\n" + wrapped(title)
        yield wrapped(f"rtol={s.rtol:.3g} atol={s.atol:.3g}, or {s.relative:.3g} (|A||B| + |C|)", "  ", "    ")
        yield wrapped(
            f"the largest of {s.draws} draws: {s.population}; errors reach {s.of_bound:.2%} of their certified bounds",
            "  ",
            "    ",
        )
    yield "\nwhat a test with it sees:"
    yield from (wrapped(f"{name}: {_verdict(v)}", "  ", "    ") for name, v in _vacuities(found))
    if found.checked is not None:
        yield from _checked(found.checked, found.certified)
    yield from (wrapped(f"note: {text}", "", "  ") for text in ("", *found.notes) if text)
    yield f"\n{found.snippet}"


def _vacuities(found: Tolerance) -> list[tuple[str, Vacuity]]:
    first = [] if found.vacuity is None else [("certified by size", found.vacuity)]
    return [*first, *(found.lines or {}).items()]


def _verdict(v: Vacuity) -> str:
    zeros = v.zero_passes / max(1, v.elements)
    return (
        f"{v.verdict} (zeros pass in {zeros:.1%} of the elements; unseen if left out: {v.unseen_blocks} of {v.blocks} blocks "
        f"of {v.block} products, {v.unseen_terms} of {v.terms} single k)"
    )


def _checked(checked: Checked, certified: Line | None):
    yield f"\nyour rtol={checked.line.rtol:g} atol={checked.line.atol:g}:"
    yield wrapped(_verdict(checked.vacuity), "  ", "    ")
    if checked.failures:
        text = f"TOO TIGHT: a right kernel fails it in {checked.failures} of {checked.draws} products drawn"
        yield wrapped(text, "  ", "    ")
    elif certified is not None and _covers(checked.line, certified):
        yield wrapped("a right kernel never fails it: it is wider than the certified one", "  ", "    ")
    else:
        yield wrapped(
            f"a right kernel passed it in all {checked.draws} products drawn, which is no proof", "  ", "    "
        )


def _covers(line: Line, other: Line) -> bool:
    return line.rtol >= other.rtol and line.atol >= other.atol
