"""`mpgemm whodunit` finds which instruction, order of k, recovery method or CPU kernel gives a result bit for bit."""

import argparse
import sys

import tensorcore_models as tcm
from mpgemm.cli.common import library_options as options
from mpgemm.cli.common.operand_options import add_scale_arguments, scales_of
from mpgemm.cli.common.parser import Parser
from mpgemm.cli.common.profile_options import BESIDE, add_profile_arguments
from mpgemm.experiments.suspects import Suspect, Whodunit
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Progress, item, wrapped

QUESTION = "debug a kernel"
SUMMARY = "find which GPU's arithmetic, order of k or recovery method made these bits"
EXAMPLES = (
    ("A.npy B.npy C.npy", "which instruction, order of k or method made C?"),
    ("A.npy B.npy C.npy --operands e4m3fn", "the files of A and B hold encodings of FP8"),
    (
        "A.npy B.npy C.npy --gpu h100 --library cublaslt-13.1 --config ALGO_ID=66,STAGES_ID=35",
        "a library's kernel is among the candidates",
    ),
)


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    for name, text in (("a", "A"), ("b", "B"), ("c", "the result")):
        add(name, metavar=name.upper(), help=f"matrix file of {text}")
    add(
        "--operands",
        dest="format",
        metavar="FORMAT",
        help="format of A and B, if their files hold encodings (unsigned integers)",
    )
    add("--out-format", metavar="FORMAT", help="format of C, if its file holds encodings")
    add("--addend", metavar="FILE", help="file of a matrix C0 that was added, if the result is A B + C0")
    add("--methods", nargs="+", metavar="NAME", help="recovery methods to try (default: all)")
    add(
        "--gpu",
        help="device that may have computed C (h100, rtx4060, ...): its candidates come first, under its name",
    )
    add_scale_arguments(parser)
    library = parser.add_argument_group("a library's kernel on that device, to try as well")
    add = library.add_argument
    add(
        "--library",
        metavar="NAME[-VERSION]",
        help="library whose kernel is tried: cublaslt-13.1 (or torch.matmul-13.1, which calls it), scaled_mm or "
        "cutlass",
    )
    add(
        "--config",
        nargs="+",
        default=[],
        metavar="FIELD=VALUE",
        help="configuration of the library's kernel, written as for predict --config",
    )
    parser.goes_with(("--config",), ("--library",))
    add_profile_arguments(library)
    parser.goes_with(BESIDE, ("--profile",))
    parser.goes_with(("--library", "--profile"), ("--gpu",))
    add = parser.add_argument
    add(
        "--all",
        action="store_true",
        help="also try candidates that round operands, and recovery methods, even if simpler candidates match",
    )
    add("--quiet", action="store_true", help="do not show progress on standard error")
    add("--json", action="store_true", help="print the result as JSON")


#: Largest number of matching arithmetics that are printed.
SHOWN = 12
#: Largest number of orders of one arithmetic that are printed.
ORDERS_SHOWN = 8


def run(args: argparse.Namespace) -> Output:
    """Carry out the command. Raises ValueError, TypeError, OSError on bad input."""
    from mpgemm.experiments.whodunit import whodunit
    from mpgemm.inputs.files import read_matrix
    from mpgemm.recovery.methods import get_method
    from tensorcore_models.formats.operands import values_of_bits

    a_bits, a_format = _read(args.a, args.format)
    b_bits, b_format = _read(args.b, args.format)
    found, result = _read(args.c, args.out_format)
    a, b = values_of_bits(a_bits, tcm.get_format(a_format)), values_of_bits(b_bits, tcm.get_format(b_format))
    addend = None if args.addend is None else read_matrix(args.addend)
    if addend is not None and addend.shape != found.shape:
        raise ValueError(f"--addend {args.addend} has shape {addend.shape}, expected the result's shape {found.shape}")
    methods = None if args.methods is None else [get_method(name) for name in args.methods]
    recipes = _recipes(args, a.shape[0], a.shape[1], b.shape[1], a_format, result)
    progress = Progress(sys.stderr, args.quiet)
    fmt = tcm.get_format(result)
    answer = whodunit(
        a, b, found, fmt, addend, methods=methods, recipes=recipes, device=args.gpu, thorough=args.all, progress=progress,
        **scales_of(args),
    )  # fmt: skip
    return Output(answer.to_dict(), _lines(answer))


def _read(path: str, fmt: str | None):
    """Return the encodings of a matrix and their format, which `fmt` or the type of the elements determines."""
    return options.read_operand(path, fmt, None)


def _recipes(args, m: int, k: int, n: int, fmt: str, out_format: str):
    found = []
    if args.profile is not None:
        from mpgemm.cli.common.profile_options import profiled

        found = [product.recipe for _, product in profiled(args.profile, args.gpu, (m, k, n), args)]
    if args.library is not None:
        from tensorcore_models.libraries.recorded import Problem

        config = options.parse_config(args.config)
        found.append(options.make_recipe(args.gpu, args.library, config, Problem(fmt, out_format, k, n, m)))
    return found


def _lines(answer: Whodunit):
    yield wrapped(answer.verdict)
    groups = list(answer.by_who().items())
    for who, suspects in groups[:SHOWN]:
        yield ""
        yield wrapped(f"exact: {who}", hang="  ")
        yield from (item(s.how) for s in suspects[:ORDERS_SHOWN])
        if len(suspects) > ORDERS_SHOWN:
            yield f"  and {len(suspects) - ORDERS_SHOWN} more orders"
        yield from _same(suspects[0])
    if len(groups) > SHOWN:
        yield f"\n... and {len(groups) - SHOWN} more (--json has them all)"
    if answer.nearest:
        yield "\nelements on which other candidates differ:" if answer.exact else "\nnearest candidates:"
    for suspect in answer.nearest:
        yield item(f"{suspect.agree} of {suspect.of} elements: {suspect.who}, {suspect.how}")
        if suspect.first is not None:
            d = suspect.first
            yield f"    row {d.row} column {d.column}: C {d.found:.9g}, candidate {d.candidate:.9g}"


def _same(suspect: Suspect):
    """Yield a line that counts the other instructions of the same arithmetic by architecture."""
    if not suspect.same:
        return
    by_arch: dict[str, int] = {}
    for name in suspect.same:
        by_arch[name.partition(":")[0]] = by_arch.get(name.partition(":")[0], 0) + 1
    text = ", ".join(f"{arch} ({count})" for arch, count in by_arch.items())
    yield item(f"the same arithmetic: {text}")
