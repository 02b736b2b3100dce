"""`mpgemm compare`: recovery methods times engines times matrices."""

import argparse
import sys

from mpgemm.commands.inputs import cases_of, check_inputs, seeds_of
from mpgemm.commands.parameters import numbers_of
from mpgemm.commands.run_options import check_run, metric_of, run_resumable
from mpgemm.exact.errors import RELATIVE_METRICS
from mpgemm.experiments.cases import Case, generated_cases
from mpgemm.experiments.comparison import Comparison, compare_cases
from mpgemm.experiments.outcome import Context
from mpgemm.reporting import plots, report
from tensorcore_models.files import write_text

DEFAULT_METHODS = (
    "fp16", "tf32", "markidis", "egemm", "ootomo", "ootomo_inside", "sgemm_cube", "multiword", "bf16x9:restart_every=16",
    "ozaki_int8",
)  # fmt: skip

DEFAULT_ENGINES = ("a100", "h100")
DEFAULT_INPUTS = ("uniform_symmetric", "ootomo_type1")
DEFAULT_SHAPE = (64, 256, 64)


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status."""
    if args.bits is not None and not args.bits > 0:
        raise ValueError(f"--bits is {args.bits:g}, expected a number of bits above 0")
    check_inputs(args)
    check_run(args)
    return run_resumable(args, _compare)


def _default_cases(args: argparse.Namespace) -> list[Case]:
    shapes = args.shape or [DEFAULT_SHAPE]
    return [
        case
        for name in DEFAULT_INPUTS
        for shape in shapes
        for case in generated_cases(name, shape, seeds_of(args, 1), precision=args.precision or "fp32")
    ]


def _compare(args: argparse.Namespace, context: Context) -> int:
    engines = [None if name == "default" else name for name in args.engines or DEFAULT_ENGINES]
    cases = cases_of(args, _default_cases(args))
    comparison = compare_cases(
        cases, args.methods or DEFAULT_METHODS, engines, bounds=args.bounds, strict=args.strict, overflow=args.overflow,
        rates=numbers_of(args.rates, "--rates"), journal=context.journal, progress=context.progress,
        executor=context.executor,
    )  # fmt: skip
    if args.json:
        sys.stdout.write(comparison.to_json(args.bits))
    elif args.csv:
        sys.stdout.write(comparison.to_csv())
    else:
        print(report.fitted(comparison.text(report.shown_width(), args.bits)))
    if args.out:
        written = _write_comparison(args, comparison)
        if not (args.json or args.csv):
            print(f"\nwritten to {args.out}: {', '.join(written)}")
    return 0


def _write_comparison(args, comparison: Comparison) -> list[str]:
    write_text(args.out / "comparison.json", comparison.to_json(args.bits))
    write_text(args.out / "comparison.csv", comparison.to_csv())
    written = ["comparison.json", "comparison.csv", "journal.jsonl"]
    if not args.no_figures:
        groups: dict[str, list] = {}
        for record in comparison:
            groups.setdefault(record.case, []).append(
                (record.method, record.requested, getattr(record.errors, metric_of(args)))
            )
        figure = plots.method_comparison(groups, "Error of each method", RELATIVE_METRICS[metric_of(args)])
        plots.save_figure(figure, args.out / "comparison.png")
        written.append("comparison.png")
    return written
