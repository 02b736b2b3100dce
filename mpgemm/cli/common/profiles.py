"""Compares a user's own msprof profile in `mpgemm simulate`: a fit to it, and predicted beside measured for each pipe."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import ascend
from mpgemm.reporting.report import Progress, Table, json_text, say

if TYPE_CHECKING:
    from ascend.kernels.base import Kernel
    from ascend.reports.fit import ProfileFit
    from ascend.reports.profile import ProfileRow

#: What a pipe that is busy for longer, or for less long, than predicted points to.
POINTS_TO = {
    "CUBE": "mmad_head, or the clock", "MTE1": "l1_to_l0a_rate and l1_to_l0b_rate",
    "MTE2": "l2_read_rate or the memory, or rows that are not aligned",
    "FIXP": "fixpipe_rate, or rows of C that are not aligned",
}  # fmt: skip
#: Differences below this share of the measured time are not explained.
SMALL = 0.05


def calibrate(args: argparse.Namespace, chip: ascend.Chip, schedule_of: Callable[[ProfileRow], Kernel]) -> None:
    """Fit the chip's rates to a profile; print residuals, what the rows tell and what not; write the chip."""
    from ascend.chips.files import chip_text
    from ascend.reports.fit import fit_profile
    from ascend.reports.profile import read_profile
    from tensorcore_models.files import write_text

    progress = Progress()
    read, skipped = read_profile(args.calibrate)
    rows = [row for row in read if not row.products]
    skipped += [f"{r.name}: {len(r.products)} products, a fit takes single ones" for r in read if r.products]
    fit = fit_profile(chip, rows, lambda done, total: progress(done, total, "parameters"), schedule_of)
    if args.write_chip:
        write_text(
            args.write_chip, chip_text(fit.chip, f"{chip.name} fitted to {len(rows)} products of {args.calibrate}")
        )
    if args.json:
        result = {
            "chip": chip.name, "skipped": skipped, "parameters": fit.parameters, "untold": fit.untold,
            "standard_errors": fit.standard_errors, "alike": fit.alike, "recommended": fit.recommended,
            "spread_nominal": fit.spread("nominal"), "spread": fit.spread(), "spread_left_out": fit.spread("left_out"),
            "residuals": [
                row.row._asdict() | {"nominal": row.nominal, "calibrated": row.calibrated, "left_out": row.left_out}
                for row in fit.residuals
            ],
            "written": args.write_chip,
        }  # fmt: skip
        sys.stdout.write(json_text(result))
        return
    say(f"{chip.name}: calibrated to {len(rows)} product(s) of {args.calibrate}")
    for reason in skipped:
        say(f"left out: {reason}")
    _print_fit(fit, sum(1 + len(row.busy) for row in rows))
    if args.write_chip:
        print(f"\nwritten: {args.write_chip} (--chip {args.write_chip})")


def _print_fit(fit: ProfileFit, observed: int) -> None:
    def off(time: float | None, r: ProfileRow) -> str:
        return "" if time is None else f"{time / r.seconds - 1:+.0%}"

    lines = [
        (
            r.row.name, f"{r.row.m} x {r.row.k} x {r.row.n}", r.row.operand, f"{1e6 * r.row.seconds:.1f}",
            f"{1e6 * r.nominal:.1f}", off(r.nominal, r.row), f"{1e6 * r.calibrated:.1f}", off(r.calibrated, r.row),
            off(r.left_out, r.row),
        )
        for r in fit.residuals
    ]  # fmt: skip
    headings = (
        "operator",
        "m x k x n",
        "operand",
        "measured us",
        "nominal",
        "error",
        "calibrated",
        "error",
        "left out",
    )
    left_out = fit.spread("left_out")
    title = f"Residuals: rms {fit.spread('nominal'):.1%} nominal, {fit.spread():.1%} calibrated"
    title += f", {left_out:.1%} on each row by a fit to the others" if left_out == left_out else ""
    Table(title, headings, lines).print()
    if observed <= len(fit.parameters):
        say(f"{len(fit.parameters)} parameter(s) and {observed} measured number(s): that they agree proves nothing")
    if left_out != left_out:
        say("too few rows to leave one out: nothing says how far other shapes are off")
    for name, why in fit.untold.items():
        say(f"not fitted: {name}: {why}")
    for name, value in fit.parameters.items():
        error = f" +- {fit.standard_errors[name]:.2g}" if name in fit.standard_errors else ""
        say(f"fitted: {name} = {value:.6g}{error}")
    for name, others in fit.alike.items():
        say(f"not told apart: {name} could as well be {' or '.join(others)}")
    if not fit.parameters:
        return
    settings = " ".join(f"--set {name}={value:.6g}" for name, value in fit.parameters.items())
    if fit.recommended:
        say(f"use it: {settings}")
    elif left_out == left_out:
        say(
            f"do not use it for other shapes: rows that were left out are {left_out:.1%} off, {fit.spread('nominal'):.1%} "
            f"without the fit ({settings})"
        )
    else:
        say(f"not recommended: no row could be left out to judge it ({settings})")


class _Compared(NamedTuple):
    """A product of a profile and what is predicted of it; of a batch the time alone."""

    row: ProfileRow
    predicted: float
    busy: dict[str, tuple[float, float]]
    said: list[str]


def _compared(row: ProfileRow, schedule_of: Callable[[ProfileRow], Kernel], batch_seconds: Callable) -> _Compared:
    if row.products:
        return _Compared(row, batch_seconds(row), {}, [])
    timeline = ascend.simulate(schedule_of(row))
    busy = {pipe: (ratio, timeline.counters[pipe]) for pipe, ratio in row.busy}
    return _Compared(row, timeline.seconds, busy, explanations(row, timeline))


def measured(
    args: argparse.Namespace, chip: ascend.Chip, schedule_of: Callable[[ProfileRow], Kernel],
    batch_seconds: Callable[[ProfileRow], float],
) -> None:  # fmt: skip
    """Each product of a profile: time and busy time of each pipe, predicted beside measured, and what would explain them."""
    from ascend.reports.profile import RATIOS, read_profile

    rows, skipped = read_profile(args.measured)
    found = [_compared(row, schedule_of, batch_seconds) for row in rows]
    if args.json:
        products = [
            row._asdict()
            | {
                "predicted": predicted, "explanations": said,
                "pipes": {name: {"measured": x, "predicted": y} for name, (x, y) in busy.items()},
            }
            for row, predicted, busy, said in found
        ]  # fmt: skip
        sys.stdout.write(json_text({"chip": chip.name, "skipped": skipped, "products": products}))
        return
    for reason in skipped:
        say(f"left out: {reason}")
    pipes = list(RATIOS.values())
    lines = []
    for row, predicted, busy, _ in found:
        cells = [f"{busy[pipe][0]:.2f} / {busy[pipe][1]:.2f}" if pipe in busy else "" for pipe in pipes]
        size = f"{row.m} x {row.k} x {row.n}" + f", {len(row.products)} products" * bool(row.products)
        lines.append((row.name, size, row.operand, f"{1e6 * row.seconds:.1f}",
                      f"{1e6 * predicted:.1f}", f"{predicted / row.seconds - 1:+.0%}", *cells))  # fmt: skip
    headings = ("operator", "m x k x n", "operand", "measured us", "predicted", "error", *pipes)
    Table(f"{chip.name}: measured / predicted, busy ratios of the pipes", headings, lines).print()
    for row, _, _, said in found:
        for sentence in said:
            say(f"{row.name}: {sentence}")
    if silent := sum(not row.busy and _differs(row, predicted) for row, predicted, _, _ in found):
        say(
            f"{silent} product(s) differ by {SMALL:.0%} or more and have no busy ratios of pipes in {args.measured} "
            f"({', '.join(RATIOS)}), by which a difference could be explained: profile with aic-metrics PipeUtilization"
        )


def _differs(row: ProfileRow, predicted: float) -> bool:
    """Whether predicted and measured time differ by more than is left without a word."""
    return abs(row.seconds - predicted) >= SMALL * row.seconds


def explanations(row: ProfileRow, timeline: ascend.Timeline) -> list[str]:
    """List explanations of a difference of times: pipes that are busy for longer or shorter, or time in which none is.

    Nothing for a row without busy ratios.
    """
    gap = row.seconds - timeline.seconds
    if not row.busy or not _differs(row, timeline.seconds):
        return []
    found = []
    for pipe, ratio in row.busy:
        more = ratio * row.seconds - timeline.counters[pipe] * timeline.seconds
        if more * gap > 0 and abs(more) > SMALL * row.seconds:
            how = "longer" if more > 0 else "less long"
            found.append(
                (abs(more), f"{pipe} is busy {1e6 * abs(more):.1f} us {how} than predicted: {POINTS_TO[pipe]}")
            )
    found.sort(reverse=True)
    if not found:
        why = (
            "no pipe's busy time explains it: launch_us, sync_cycles_per_block, or another kernel than the one assumed"
        )
        found = [(0.0, f"{1e6 * abs(gap):.1f} us {'more' if gap > 0 else 'less'} than predicted, and {why}")]
    return [sentence for _, sentence in found]
