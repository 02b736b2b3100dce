"""`mpgemm compare` compares recovery methods on several engines and matrices."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mpgemm.cli.common.inputs import add_input_arguments, cases_of, check_inputs, numbers_of, seeds_of
from mpgemm.cli.common.parser import Parser
from mpgemm.cli.common.run_options import (
    add_output_arguments,
    add_run_arguments,
    check_run,
    metric_of,
    run_resumable,
    written_to,
)
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import fitted, shown_width
from tensorcore_models.files import write_text

if TYPE_CHECKING:
    from mpgemm.experiments.cases import Case
    from mpgemm.experiments.comparison import Comparison
    from mpgemm.experiments.outcome import Context

QUESTION = "compare corrections"
SUMMARY = "compare recovery methods on matrix engines: errors, bits, passes, bounds"
EXAMPLES = (
    ("A.npy B.npy --engines a100 h100", "the cheapest method that reaches FP32 on each engine"),
    (
        "A.npy B.npy --methods 3xTF32 bf16x9 ootomo --bits 20",
        "the cheapest of three methods with at least 20 bits; 3xTF32 and bf16x9 are names from frameworks",
    ),
    (
        "--methods markidis ootomo --engines h100 --distribution normal --shape 32 4096 32 --bounds",
        "errors on generated matrices, beside deterministic bounds",
    ),
)


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    from mpgemm.recovery.framework_names import FRAMEWORK_NAMES  # their names are in the help of this command alone
    from mpgemm.recovery.methods import list_methods

    what = parser.add_argument_group("what to compare")
    add = what.add_argument
    add(
        "--methods",
        nargs="+",
        metavar="NAME",
        help=f"methods, with options after a colon as in multiword:words=3,format=bf16 "
        f"({', '.join(m.name for m in list_methods())}), "
        f"or names that frameworks give them ({', '.join(row.name for row in FRAMEWORK_NAMES.values())})",
    )
    add(
        "--engine",
        "--engines",
        dest="engines",
        nargs="+",
        action="extend",
        metavar="ENGINE",
        help="engines: devices (a100), paths (h100/wgmma), instructions (arch:name), ieee, or default, which "
        "stands for the default engine of each method (default: a100 h100)",
    )
    add(
        "--bits",
        type=float,
        metavar="N",
        help="also recommend the cheapest method whose result has at least N bits of accuracy",
    )
    add(
        "--rates", nargs="+", default=[], metavar="ENGINE=TFLOPS",
        help="peak rates of engines in TFLOP/s, in place of the data sheets' rates, or for engines without a data sheet's rate",
    )  # fmt: skip
    add("--bounds", action="store_true", help="show deterministic bounds of the errors beside the measured errors")
    add("--strict", action="store_true", help="stop with an error if an element exceeds the range of the word format")
    add(
        "--overflow",
        choices=("inf", "saturate"),
        help="value of a word that overflows: inf, or saturate for the format's largest finite value (default: the "
        "engine's rule)",
    )
    add_input_arguments(parser, "uniform_symmetric and ootomo_type1, 64 256 64")
    add_run_arguments(parser)
    add_output_arguments(parser, metric_needs_out=True)
    for option in ("--figure", "--table", "--quick"):
        parser.moved(option, "mpgemm reproduce khattak7 (mpgemm reproduce --list names the others)")


DEFAULT_METHODS = (
    "fp16", "tf32", "markidis", "egemm", "ootomo", "ootomo_inside", "sgemm_cube", "multiword", "bf16x9:restart_every=16",
    "ozaki_int8",
)  # fmt: skip

DEFAULT_ENGINES = ("a100", "h100")
DEFAULT_INPUTS = ("uniform_symmetric", "ootomo_type1")
DEFAULT_SHAPE = (64, 256, 64)


def run(args: argparse.Namespace) -> Output:
    """Carry out the command."""
    if args.bits is not None and not args.bits > 0:
        raise ValueError(f"--bits is {args.bits:g}, expected a number above 0")
    check_inputs(args)
    check_run(args)
    return run_resumable(args, _compare)


def _default_cases(args: argparse.Namespace) -> list[Case]:
    from mpgemm.experiments.cases import generated_cases

    shapes = args.shape or [DEFAULT_SHAPE]
    return [
        case
        for name in DEFAULT_INPUTS
        for shape in shapes
        for case in generated_cases(name, shape, seeds_of(args, 1), precision=args.precision or "fp32")
    ]


def _compare(args: argparse.Namespace, context: Context) -> Output:
    from mpgemm.experiments.comparison import compare_cases

    engines = [None if name == "default" else name for name in args.engines or DEFAULT_ENGINES]
    cases = cases_of(args, _default_cases(args))
    comparison = compare_cases(
        cases, args.methods or DEFAULT_METHODS, engines, bounds=args.bounds, strict=args.strict, overflow=args.overflow,
        rates=numbers_of(args.rates, "--rates"), context=context,
    )  # fmt: skip
    written = _write_comparison(args, comparison) if args.out else []
    text = (fitted(comparison.text(shown_width(), args.bits)), *written_to(args, written))
    return Output(comparison.to_dict(args.bits), text, [comparison.table()])


def _write_comparison(args, comparison: Comparison) -> list[str]:
    from mpgemm.exact.errors import RELATIVE_METRICS
    from mpgemm.reporting import plots
    from tensorcore_models.figures import save

    write_text(args.out / "comparison.json", comparison.to_json(args.bits))
    write_text(args.out / "comparison.csv", comparison.to_csv())
    written = ["comparison.json", "comparison.csv", "journal.jsonl"]
    if not args.no_figures:
        groups = {
            group: [(r.first.method, r.first.requested, r.spread(metric_of(args))) for r in comparison.runs(group)]
            for group in comparison.groups
        }
        fp32 = {group: comparison.fp32_error(group, metric_of(args)) for group in comparison.groups}
        figure = plots.method_comparison(groups, "Error of each method", RELATIVE_METRICS[metric_of(args)], fp32)
        written += save(figure, args.out / "comparison.png")
    return written
