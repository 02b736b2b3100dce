"""`mpgemm curve` draws errors of methods against k, the operands' exponent or the condition number, with their spread."""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from mpgemm.cli.common.inputs import numbers_of
from mpgemm.cli.common.option_values import AXES, CURVE_SHAPE
from mpgemm.cli.common.parser import Parser
from mpgemm.cli.common.run_options import (
    add_output_arguments,
    add_run_arguments,
    check_run,
    metric_of,
    outcome_text,
    run_resumable,
    written_to,
)
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import json_text
from tensorcore_models.files import write_text

if TYPE_CHECKING:
    from mpgemm.experiments.outcome import Context, Outcome

QUESTION = "compare corrections"
SUMMARY = "draw errors of methods against k, exponent or condition number, with their spread over seeds"
EXAMPLES = (
    (
        "--over k 16 65536 --methods markidis@h100 ootomo@h100 fp32 --out out",
        "a picture of errors against k, in which bands show the smallest and largest error of the seeds",
    ),
    (
        "--over condition 1 1e12 --precision fp64 --methods fp64 ozaki_int8:slices=8@h100",
        "errors of emulated FP64 beside those of DGEMM, against the condition number",
    ),
)

#: Default methods: two that differ in where they add partial sums, on two kinds of units, and FP32.
METHODS = ("markidis@v100", "ootomo@v100", "markidis@h100", "ootomo@h100", "fp32")


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    from mpgemm.inputs import matrices  # its names are in the help of this command alone

    what = parser.add_argument_group("what to draw")
    add = what.add_argument
    add(
        "--over", nargs=3, default=["k", "16", "16384"], metavar=("AXIS", "LOW", "HIGH"),
        help="axis with its smallest and largest value: k, exponent (base 2, of the operands' elements), or condition "
        "(|A||B| / |AB|, or the condition number of A if --distribution is conditioned); default k 16 16384",
    )  # fmt: skip
    add("--points", type=int, default=6, metavar="N", help="number of values on the axis (default 6)")
    add(
        "--methods", nargs="+", default=list(METHODS), metavar="METHOD@ENGINE",
        help="methods to draw, named as for evaluate --methods; fp32 adds in chains of 256 products (default "
        f"{' '.join(METHODS)})",
    )  # fmt: skip
    add(
        "--distribution", metavar="NAME",
        help="distribution of the operands (default uniform_symmetric; for --over condition ill_conditioned): "
        f"{', '.join(matrices.DISTRIBUTIONS)}",
    )  # fmt: skip
    add(
        "--param", nargs="+", default=[], metavar="KEY=VALUE",
        help="parameters of the distribution, such as exponent=-3 for uniform_symmetric (default: its own values)",
    )  # fmt: skip
    add("--precision", choices=("fp32", "fp64"), default="fp32", help="number format of the operands (default fp32)")
    sizes = " ".join(map(str, CURVE_SHAPE))
    add(
        "--shape", nargs=3, type=int, default=list(CURVE_SHAPE), metavar=("M", "K", "N"),
        help=f"sizes of the product (default {sizes}; --over k replaces K)",
    )  # fmt: skip
    add("--seed", type=int, default=0, help="first seed of the operands (default 0)")
    add(
        "--repeats", type=int, default=5,
        help="number of seeds; the curve is the median of their errors, and the band reaches from the smallest to the "
        "largest error (default 5)",
    )  # fmt: skip
    add(
        "--no-bounds", action="store_true",
        help="do not draw the bounds of the errors: the probabilistic (99 %%) and the deterministic one",
    )  # fmt: skip
    add_run_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> Output:
    """Carry out the command. Raises ValueError, TypeError, OSError on bad input."""
    if args.over[0] not in AXES:
        raise ValueError(f"--over got the axis {args.over[0]}, expected one of {', '.join(AXES)}")
    check_run(args)
    return run_resumable(args, _run)


def _run(args: argparse.Namespace, context: Context) -> Output:
    from mpgemm.experiments.curves import AXES as axes
    from mpgemm.experiments.curves import error_curves, points_table

    axis = axes[args.over[0]]
    ends = numbers_of([f"LOW={args.over[1]}", f"HIGH={args.over[2]}"], "--over")
    points = axis.points(ends["LOW"], ends["HIGH"], args.points)
    context = replace(context, seeds=range(args.seed, args.seed + args.repeats))
    outcome = error_curves(
        axis, points, args.methods, context, distribution=args.distribution, shape=tuple(args.shape),
        metric=metric_of(args), precision=args.precision, parameters=numbers_of(args.param, "--param"),
        bounds=not args.no_bounds,
    )  # fmt: skip
    written = _write(args, outcome) if args.out else []
    text = chain(outcome_text(outcome), written_to(args, written))
    return Output({**outcome.data, "written": written}, text, [points_table(outcome)])


def _write(args: argparse.Namespace, outcome: Outcome) -> list[str]:
    """Write JSON, CSV and the picture, and return the names of the files."""
    from mpgemm.exact.errors import RELATIVE_METRICS
    from mpgemm.experiments.curves import points_table
    from mpgemm.reporting import plots
    from tensorcore_models.figures import save

    write_text(args.out / "curve.json", json_text(dict(outcome.data)))
    write_text(args.out / "curve.csv", points_table(outcome).to_csv())
    written = ["curve.csv", "curve.json"]
    if args.no_figures:
        return written
    (panel,) = outcome.panels
    figure = plots.curves(
        panel.curves, panel.title, panel.x_label, RELATIVE_METRICS[metric_of(args)],
        log_x=panel.log_x, log_base=2 if args.over[0] == "k" else 10,
    )  # fmt: skip
    return [*written, *save(figure, args.out / "curve.png")]
