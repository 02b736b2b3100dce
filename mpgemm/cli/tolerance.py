"""`mpgemm tolerance` finds tolerances for a kernel's test, certified and by sampling, and what a given one would miss."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from mpgemm.cli.check import add_order_arguments, orders_of
from mpgemm.cli.common.inputs import add_matrix_arguments, given_pair, numbers_of
from mpgemm.cli.common.operand_options import (
    add_attention_arguments,
    add_scale_arguments,
    attention_options,
    file_values,
    scales_of,
)
from mpgemm.cli.common.option_values import TOLERANCE_SHAPE
from mpgemm.cli.common.parser import Parser
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Progress, item, wrapped
from tensorcore_models.results import Interrupted

if TYPE_CHECKING:
    from mpgemm.testing.tolerance_result import Checked, Line, Statistical, Tolerance, Vacuity

QUESTION = "debug a kernel"
SUMMARY = "find the tolerance for a kernel's test, and the errors that a given tolerance would miss"
EXAMPLES = (
    ("--engine h100 --k 512", "which tolerance may a test of this kernel have?"),
    (
        "--engine h100 --operands fp8 --reference rounded --k 512",
        "the tolerance if the test compares with the product of rounded operands",
    ),
    ("--engine a100 --operands bf16 --out-format bf16 A.npy B.npy", "the tolerance on your data"),
    ("--method ootomo --engine a100 --shipped digits", "the tolerance of a recovery method"),
    ("--engine h100 --operands e4m3fn --attention Q.npy K.npy V.npy --causal", "the tolerance of an attention kernel"),
    ("--engine h100 --k 512 --check-rtol 1e-2 --check-atol 1e-2", "what would this tolerance miss?"),
)

K = 1024
#: Options of products that have no effect on attention.
_OF_PRODUCTS = (
    "files", "--method", "--reference", "--c", "--k", "--shape", "--distribution", "--seed", "--scale-a", "--scale-b",
    "--k-order", "--splits", "--promote-every", "--quantile", "--confidence", "--check-rtol", "--check-atol",
)  # fmt: skip


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    what = parser.add_argument_group("what is tested")
    add = what.add_argument
    add(
        "--engine",
        help="matrix unit: a device (h100), a device's path (h100/mma) or an instruction (arch:name); default "
        "h100, with --method the default engine of the method",
    )
    add(
        "--operands", dest="format", metavar="FORMAT",
        help="format of the operands, if --engine is a device: half, bf16, tf32, fp8, ... (default fp16)",
    )  # fmt: skip
    add("--method", metavar="NAME", help="recovery method that the kernel runs (default: none, but the plain product)")
    add(
        "--out-format", metavar="FORMAT",
        help="format to which the kernel rounds its result: bf16, fp16, ... (default: the format of the unit's "
        "result)",
    )  # fmt: skip
    add_order_arguments(what)
    add(
        "--reference", choices=("given", "rounded"), default="given",
        help="operands from which the test computes its expected result: given (as they are, the default) or rounded (to "
        "the kernel's format)",
    )  # fmt: skip
    source = add_matrix_arguments(parser, f"normal, {TOLERANCE_SHAPE[0]} x {K} x {TOLERANCE_SHAPE[1]}", k=True)
    source.add_argument(
        "--c", metavar="FILE", help="file of C, which is added to the product; only with two files of A and B"
    )
    add_scale_arguments(source)
    parser.goes_with(("--scale-a", "--scale-b"), ("files",), "two matrix files")
    parser.goes_without(("--k-order", "--splits", "--promote-every"), ("--method",))
    add_attention_arguments(parser, _OF_PRODUCTS)
    add = parser.add_argument
    add("--rows", type=int, metavar="N", help="with --attention: check only N queries of each head, evenly spread")
    parser.goes_with(("--rows",), ("--attention",))
    _add_tolerances(parser)
    add = parser.add_argument
    add("--quiet", action="store_true", help="do not show progress on standard error")
    add("--json", action="store_true", help="print the result as JSON")


def _add_tolerances(parser: Parser) -> None:
    """Add the options of the statistical tolerance and of a given tolerance."""
    how = parser.add_argument_group("statistical tolerance")
    add = how.add_argument
    add(
        "--quantile", type=float, default=0.99,
        help="fraction of right results that a test with the statistical tolerance passes; a result passes if all its "
        "elements do (default 0.99)",
    )  # fmt: skip
    add(
        "--confidence", type=float, default=0.95,
        help="probability, over the sampled products, that the tolerance passes at least the fraction --quantile "
        "(default 0.95)",
    )  # fmt: skip
    check = parser.add_argument_group("judge a tolerance")
    add = check.add_argument
    add(
        "--check-rtol", type=float, metavar="RTOL",
        help="relative tolerance that is judged, as in numpy.allclose (default: no tolerance is judged)",
    )  # fmt: skip
    add(
        "--check-atol", type=float, metavar="ATOL",
        help="absolute tolerance that is judged, as in numpy.allclose (default: no tolerance is judged)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> Output:
    """Carry out the command. Raises ValueError, TypeError, OSError on bad input."""
    if args.attention:
        return _attention(args)
    status, remark = 0, ""
    try:
        found = _tolerance(args)
    except Interrupted as stopped:
        found, status = stopped.known, 130
        remark = "\nmpgemm tolerance: interrupted; the output above was known by then"
    return Output(found.to_dict(), _lines(found), status=status, remark=remark)


def _attention(args: argparse.Namespace) -> Output:
    """Return the tolerance of an attention kernel."""
    from mpgemm.testing.attention_tolerance import attention_tolerance

    q, k, v = (file_values(path, args.format, "operands") for path in args.attention)
    found = attention_tolerance(
        q, k, v, engine=args.engine or "h100", out_format=args.out_format, **attention_options(args), rows=args.rows
    )
    first, *others = found.sentences()
    return Output(found.to_dict(), [wrapped(first), *map(item, others)])


def _lines(found: Tolerance):
    """Yield the verdict, then the evidence on which it rests."""
    yield from _decision(found)
    yield from _certified_lines(found)
    yield from _sampled_lines(found)
    yield from _given_lines(found)


def _decision(found: Tolerance):
    """Yield a line for each tolerance that a test may allow, with the faults that it sees; the given tolerance comes first."""
    yield wrapped(f"Verdict, {found.label}, k = {found.k}:")
    seen, lines, s = found.lines or {}, [], found.statistical
    if found.checked is not None and s is not None:
        line, judged = found.checked.line, _judged(found.checked, s, found.certified)
        lines.append(f"your rtol={line.rtol:g} atol={line.atol:g}: {judged}; {found.checked.vacuity.verdict}")
        if found.rounded_operands:
            lines.append(
                "this counts the rounding of the operands; if your test rounds them first, add --reference rounded"
            )
    if found.certified is not None and "certified" in seen:
        line = found.certified
        lines.append(f"certified, rtol={line.rtol:.3g} atol={line.atol:.3g}: {_decided(found, 'certified')}")
    elif found.relative is None:
        lines.append("no tolerance is certified, because an operand or a sum may overflow")
    else:
        sees = "" if found.vacuity is None else f": {found.vacuity.verdict}"
        lines.append(f"certified, {found.relative:.3g} (|A||B| + |C|) + {found.absolute:.3g}{sees}")
    if s is not None and "statistical" in seen:
        lines.append(f"statistical, rtol={s.rtol:.3g} atol={s.atol:.3g}: {_decided(found, 'statistical')}")
    yield from map(item, lines)


def _decided(found: Tolerance, name: str) -> str:
    """Describe which faults a tolerance sees on its own pair of matrices, and which lost products it misses on others."""
    from mpgemm.testing.faults import LOST_PRODUCTS
    from mpgemm.testing.tolerance_result import SEEN, in_words

    vacuity = (found.lines or {})[name]
    verdict = vacuity.verdict
    if vacuity.vacuous or vacuity.unseen_terms:
        return verdict
    missed = {
        fault: share
        for fault, share in found.faults.get(name, {}).items()
        if fault in LOST_PRODUCTS and 0 < share < SEEN
    }
    return f"{verdict} on this pair; on others it misses {in_words(missed)}" if missed else verdict


def _tolerance(args: argparse.Namespace) -> Tolerance:
    from mpgemm.inputs.files import read_matrix
    from mpgemm.testing.tolerances import Draws, kernel_of, tolerance

    check = None
    if args.check_rtol is not None or args.check_atol is not None:
        check = (args.check_rtol or 0.0, args.check_atol or 0.0)
    pair, parameters = given_pair(args), numbers_of(args.param, "--param")
    if args.c is not None and not args.files:
        raise ValueError("--c is added to the product of two files, got none: give A and B, or leave --c out")
    if args.k is not None and args.shape is not None and args.k != args.shape[1]:
        raise ValueError(f"--k is {args.k}, but --shape has k = {args.shape[1]}: leave --k out")
    if args.k is not None and args.k < 1:
        raise ValueError(f"--k is {args.k}, expected at least 1")
    if pair is None:
        m, k, n = args.shape or (TOLERANCE_SHAPE[0], args.k or K, TOLERANCE_SHAPE[1])
        where: dict = {"k": k, "draws": Draws(args.distribution or "normal", (m, n), args.seed, parameters)}
    else:
        c = () if args.c is None else (read_matrix(args.c),)
        where = {"k": args.k, "data": (pair.a, pair.b, *c)}
    engine = args.engine or (None if args.method else "h100")
    kernel = kernel_of(
        engine, method=args.method, fmt=args.format, reference=args.reference, out_format=args.out_format,
        **{**orders_of(args), "k_order": args.k_order or "sequential"},
    )  # fmt: skip
    return tolerance(
        kernel, **scales_of(args), quantile=args.quantile, confidence=args.confidence, check=check,
        progress=None if args.quiet or not sys.stderr.isatty() else Progress(sys.stderr), **where,
    )  # fmt: skip


def _certified_lines(found: Tolerance):
    yield "\n" + wrapped("certified (no kernel with this arithmetic exceeds it):")
    if found.relative is not None:
        yield item(f"|d - expected| <= {found.relative:.3g} (|A||B| + |C|) + {found.absolute:.3g}")
    else:
        yield item("no tolerance, because an operand or a sum may overflow")
    if found.certified is not None:
        yield item(f"rtol={found.certified.rtol:.3g} atol={found.certified.atol:.3g} on these data")
    yield from (item(f"because {line}" if not i else line)
                for i, line in enumerate(found.derivation.split("\n")))  # fmt: skip


def _sampled_lines(found: Tolerance):
    s = found.statistical
    if s is not None:
        m, k, n = s.shape
        yield "\n" + wrapped(
            f"statistical ({s.quantile:.4g} of right {m} x {k} x {n} products, confidence {s.confidence:.4g}):"
        )
        size = f"{s.relative:.3g} (|A||B| + |C|)" + (f" + {s.absolute:.3g}" if s.absolute else "")
        yield item(f"rtol={s.rtol:.3g} atol={s.atol:.3g}, or {size}")
        yield wrapped(
            f"from {s.elements} elements in {s.draws} draws: {s.population}; the largest error is {s.largest:.0%} of the "
            f"tolerance, whose rest extrapolates to {m * n} elements and adds a margin; errors reach {s.of_bound:.2%} of "
            "their certified bounds", "  ", "    ",
        )  # fmt: skip


def _given_lines(found: Tolerance):
    yield "\nfaults that a test with such a tolerance sees:"
    for name, v in _vacuities(found):
        yield item(f"{name}: {_verdict(v)}")
        if found.misses(name) is not None:
            yield wrapped(f"misses {found.misses(name)}", "    ", "      ")
    if found.faults:
        yield item(f"faults tried: {', '.join(next(iter(found.faults.values())))}")
    yield from _checked(found)
    yield from (wrapped(f"note: {text}", "", "  ") for text in ("", *found.notes) if text)
    yield f"\n{found.snippet}"


def _vacuities(found: Tolerance) -> list[tuple[str, Vacuity]]:
    first = [] if found.vacuity is None else [("certified by size", found.vacuity)]
    return [*first, *(found.lines or {}).items()]


def _verdict(v: Vacuity) -> str:
    zeros = v.zero_passes / max(1, v.elements)
    return (
        f"{v.verdict} (on {v.elements} elements: zeros pass in {zeros:.1%}; the loss of {v.unseen_blocks} of {v.blocks} blocks "
        f"of {v.block} products, and of {v.unseen_terms} of {v.terms} single products, is not seen)"
    )


def _checked(found: Tolerance):
    if found.checked is None:
        return
    yield f"\nyour rtol={found.checked.line.rtol:g} atol={found.checked.line.atol:g}:"
    yield item(_verdict(found.checked.vacuity))
    if found.misses("given") is not None:
        yield wrapped(f"misses {found.misses('given')}", "    ", "      ")


def _judged(checked: Checked, statistical: Statistical, certified: Line | None) -> str:
    """Return a sentence that says whether right kernels pass the given tolerance."""
    shape = "x".join(map(str, statistical.shape))
    if checked.failures or checked.failing > 0.5:
        return f"TOO TIGHT: a right kernel fails it in {checked.failing:.0%} of {shape} products (from {checked.draws} draws)"
    line = checked.line
    if certified is not None and line.rtol >= certified.rtol and line.atol >= certified.atol:
        return "a right kernel never fails it, because it is wider than the certified tolerance"
    return f"a right kernel passed it in all {checked.draws} draws; about {checked.failing:.2g} of {shape} products fail it"
