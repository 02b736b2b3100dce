"""`mpgemm curve`: errors of methods against k, the operands' exponent or the condition number, with their spread."""

import argparse
import sys
from dataclasses import replace

from mpgemm.commands.outcomes import print_outcome
from mpgemm.commands.parameters import numbers_of
from mpgemm.commands.run_options import check_run, metric_of, run_resumable
from mpgemm.exact.errors import RELATIVE_METRICS
from mpgemm.experiments.curves import AXES, error_curves, points_csv
from mpgemm.experiments.outcome import Context, Outcome
from mpgemm.reporting import plots, report
from tensorcore_models.files import write_text


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status. Raises ValueError, TypeError, OSError on bad input."""
    if args.over[0] not in AXES:
        raise ValueError(f"--over {args.over[0]}: expected {', '.join(AXES)}")
    check_run(args)
    return run_resumable(args, _run)


def _run(args: argparse.Namespace, context: Context) -> int:
    axis = AXES[args.over[0]]
    ends = numbers_of([f"LOW={args.over[1]}", f"HIGH={args.over[2]}"], "--over")
    points = axis.points(ends["LOW"], ends["HIGH"], args.points)
    context = replace(context, seeds=range(args.seed, args.seed + args.repeats))
    outcome = error_curves(
        axis, points, args.methods, context, distribution=args.distribution, shape=tuple(args.shape),
        metric=metric_of(args), precision=args.precision, parameters=numbers_of(args.param, "--param"),
    )  # fmt: skip
    written = _write(args, outcome) if args.out else []
    if args.json:
        sys.stdout.write(report.json_text({**outcome.data, "written": written}))
    elif args.csv:
        sys.stdout.write(points_csv(outcome))
    else:
        print_outcome(outcome)
        if written:
            print(f"\nwritten to {args.out}: {', '.join(written)}")
    return 0


def _write(args: argparse.Namespace, outcome: Outcome) -> list[str]:
    """JSON, CSV and the picture twice, as points and as lines; the names of the files."""
    write_text(args.out / "curve.json", report.json_text(dict(outcome.data)))
    write_text(args.out / "curve.csv", points_csv(outcome))
    written = ["curve.csv", "curve.json"]
    if args.no_figures:
        return written
    (panel,) = outcome.panels
    figure = plots.curves(
        panel.curves, panel.title, panel.x_label, RELATIVE_METRICS[metric_of(args)],
        log_x=panel.log_x, log_base=2 if args.over[0] == "k" else 10,
    )  # fmt: skip
    for name in ("curve.png", "curve.svg"):
        plots.save_figure(figure, args.out / name)
    return [*written, "curve.png", "curve.svg"]
