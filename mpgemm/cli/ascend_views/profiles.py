"""Compares a user's profile with the model in `mpgemm simulate`: a fit of the chip's rates, predicted and measured times."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import ascend
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Progress, Table, fitted

if TYPE_CHECKING:
    from ascend.kernels.base import Kernel
    from ascend.reports.fit import ProfileFit
    from ascend.reports.overlay import Overlay
    from ascend.reports.profile import Profile, ProfileRow

#: Largest number of characters of an operator's name that a table shows.
LONGEST_NAME = 22


def calibrate(args: argparse.Namespace, chip: ascend.Chip, schedule_of: Callable[[ProfileRow], Kernel]) -> Output:
    """Fit the chip's rates to a profile, return residuals and what the rows determine, and write the fitted chip."""
    from ascend.chips.files import chip_text
    from ascend.reports.fit import fit_profile
    from ascend.reports.pipe_utilization import is_pipe_utilization
    from ascend.reports.profile import read_profile, together
    from tensorcore_models.files import write_text

    if is_pipe_utilization(args.calibrate):
        raise ValueError(
            f"{args.calibrate} holds one kernel, but a fit needs several: give --calibrate an op_summary.csv, or give "
            f"this file to --measured"
        )
    _says_sizes(args, args.calibrate)
    progress = Progress()
    read, skipped = read_profile(args.calibrate)
    schedules, refused = _schedules(together(read), schedule_of)
    skipped += refused
    rows = [row for row in read if row.product in schedules]
    if not rows:
        raise ValueError(
            f"{args.calibrate} has no row that describes a single product with a known schedule, as a fit needs; "
            f"the first row was refused: {skipped[0]}"
        )
    fit = fit_profile(
        chip, rows, lambda done, total: progress(done, total, "parameters"), lambda row: schedules[row.product]
    )
    if args.write_chip:
        write_text(
            args.write_chip, chip_text(fit.chip, f"{chip.name} fitted to {len(rows)} products of {args.calibrate}")
        )
    result = {
        "chip": chip.name, "skipped": skipped, "parameters": fit.parameters, "untold": fit.untold,
        "standard_errors": fit.standard_errors, "alike": fit.alike, "recommended": fit.recommended,
        "gain": fit.gain, "at_edge": fit.at_edge,
        "spread_nominal": fit.spread("nominal"), "spread": fit.spread(), "spread_left_out": fit.spread("left_out"),
        "residuals": [
            row.row._asdict() | {"nominal": row.nominal, "calibrated": row.calibrated, "left_out": row.left_out}
            for row in fit.residuals
        ],
        "written": args.write_chip,
    }  # fmt: skip
    what = f"{len(rows)} line(s) of {args.calibrate}, {len(fit.residuals)} different product(s)"
    said = [f"{chip.name}: calibrated to {what}", *_remarks([r.row for r in fit.residuals], skipped)]
    text: list[str | Table] = [*map(fitted, said), _residuals(fit), *map(fitted, _fit_sentences(fit))]
    if args.write_chip:
        text.append(f"\nwritten: {args.write_chip} (--chip {args.write_chip})")
    return Output(result, text)


def _schedules(
    rows: list[ProfileRow], schedule_of: Callable[[ProfileRow], Kernel]
) -> tuple[dict[tuple, Kernel], list[str]]:
    """Return the schedules of rows of one product, by product, and the reasons why other rows have none."""
    schedules: dict[tuple, Kernel] = {}
    refused = []
    for row in rows:
        try:
            if row.products:
                raise ValueError(f"the row holds {len(row.products)} products, but a fit takes rows of one product")
            schedules[row.product] = schedule_of(row)
        except ValueError as error:
            refused.append(f"{row.name}: {error}")
    return schedules, refused


def _residuals(fit: ProfileFit) -> Table:
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
        "operator", "m x k x n", "operand", "measured us", "nominal", "error", "calibrated", "error", "left out",
    )  # fmt: skip
    left_out = fit.spread("left_out")
    title = f"Residuals: rms {fit.spread('nominal'):.1%} nominal, {fit.spread():.1%} calibrated"
    title += f", {left_out:.1%} for each row by a fit to all other rows" if left_out == left_out else ""
    return Table(title, headings, lines)


def _fit_sentences(fit: ProfileFit) -> Iterator[str]:
    """Yield which parameters the rows determine, and whether to use the fit."""
    left_out = fit.spread("left_out")
    if fit.observed <= len(fit.parameters):
        yield f"{len(fit.parameters)} parameter(s) are fitted to {fit.observed} measured number(s): agreement proves nothing"
    if left_out != left_out:
        yield "too few rows to leave one out, so the error on other shapes is not known"
    for name, why in fit.untold.items():
        yield f"not fitted: {name}: {why}"
    for name, value in fit.parameters.items():
        error = f" +- {fit.standard_errors[name]:.2g}" if name in fit.standard_errors else ""
        yield f"fitted: {name} = {value:.6g}{error}"
    for name, others in fit.alike.items():
        yield f"not distinguished: these rows would be explained as well by {' or '.join(others)} as by {name}"
    if not fit.parameters:
        return
    settings = " ".join(f"--set {name}={value:.6g}" for name, value in fit.parameters.items())
    if fit.recommended:
        yield f"use the fit: {settings}"
    elif fit.at_edge:
        yield (
            f"do not use the fit: {' and '.join(fit.at_edge)} is fitted to an end of its range, so it is likelier that the "
            f"assumed kernel or another parameter is wrong ({settings})"
        )
    elif left_out < fit.spread("nominal"):
        yield (
            f"not recommended: the error of rows that were left out falls from {fit.spread('nominal'):.1%} to {left_out:.1%}, "
            f"only {fit.gain:.1f} standard errors of the gain, which scatter may explain ({settings})"
        )
    elif left_out == left_out:
        yield (
            f"do not use the fit for other shapes: the error of rows that were left out is {left_out:.1%}, and "
            f"{fit.spread('nominal'):.1%} without the fit ({settings})"
        )
    else:
        yield f"not recommended: no row could be left out to judge the fit ({settings})"


def measured(
    args: argparse.Namespace, chip: ascend.Chip, schedule_of: Callable[[ProfileRow], Kernel],
    batch_seconds: Callable[[ProfileRow], float],
) -> Output:  # fmt: skip
    """Return predicted and measured times of each product of a profile and its pipes, and explanations of the differences."""
    from ascend.reports.overlay import overlays, whole
    from ascend.reports.profile import together

    rows, skipped = _read(args)
    progress = Progress()
    found, not_predicted = overlays(
        together(rows), lambda row: ascend.simulate(schedule_of(row)), batch_seconds,
        lambda done, total: progress(done, total, "products"),
    )  # fmt: skip
    skipped += not_predicted
    if not found:
        raise ValueError(
            f"{args.measured} has no row whose product can be predicted; the first row was refused: "
            f"{(not_predicted or skipped)[0]}"
        )
    written = _drawn(args, chip, found)
    products = [
        each.row._asdict()
        | {
            "predicted": each.predicted, "explanations": each.sentences(),
            "pipes": {p.pipe: {"measured": p.measured, "predicted": p.predicted} for p in each.pipes},
        }
        for each in found
    ]  # fmt: skip
    said = [f"{_short(each.row.name)}: {sentence}" for each in found for sentence in each.sentences()]
    said += whole(found)
    if silent := sum(each.differs and not each.row.busy for each in found):
        said.append(
            f"{silent} product(s) differ by 5% or more, and {args.measured} lacks the busy times of pipes (aic_mac_ratio, "
            "aic_mte2_ratio, ...) that could explain the difference: profile with aic-metrics PipeUtilization"
        )
    remarks = _remarks([each.row for each in found], skipped)
    text: list[str | Table] = [*map(fitted, remarks), _overlay_table(chip, found), *map(fitted, said)]
    if written:
        text.append(f"\nwritten: {', '.join(written)}")
    facts = {"chip": chip.name, "skipped": skipped, "products": products, "whole": whole(found), "written": written}
    return Output(facts, text)


def _read(args: argparse.Namespace) -> Profile:
    """Return the products of the --measured profile, whichever profiler wrote it."""
    from ascend.reports.pipe_utilization import is_pipe_utilization, read_pipe_utilization
    from ascend.reports.profile import Profile, read_profile
    from mpgemm.cli.common.ascend_options import size_of

    if not is_pipe_utilization(args.measured):
        _says_sizes(args, args.measured)
        return read_profile(args.measured)
    if not args.size:
        raise ValueError(
            f"{args.measured} states no sizes: give the product's M K N, and --operand and --layout "
            "if they are not fp16 and nz"
        )
    return Profile(
        [read_pipe_utilization(args.measured, size_of(args), args.operand or "fp16", args.layout)],
        [],
    )


def _says_sizes(args: argparse.Namespace, path: str) -> None:
    """Refuse sizes and operands on the command line where the profile states them."""
    given = (["M K N"] if args.size else []) + (["--operand"] if args.operand else [])
    if given:
        raise ValueError(f"{path} states sizes and operands: leave out {' and '.join(given)}")


def _remarks(rows: list[ProfileRow], skipped: list[str]) -> Iterator[str]:
    """Yield which rows were left out, and which values were assumed where the profile states none."""
    yield from (f"left out: {reason}" for reason in skipped)
    remarks: dict[str, list[str]] = {}
    for row in rows:
        for remark in row.remarks:
            remarks.setdefault(remark, []).append(row.name)
    for remark, names in remarks.items():
        yield f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}: {remark}"


def _overlay_table(chip: ascend.Chip, found: list[Overlay]) -> Table:
    """Return the table of measured and predicted times, and of the busy ratios of every pipe that is known."""
    from ascend.reports.profile import PIPE_COLUMNS

    pipes = [name for name in PIPE_COLUMNS if any(pipe.pipe == name for each in found for pipe in each.pipes)]

    def share(seconds: float | None, of: float) -> str:
        return "-" if seconds is None else f"{seconds / of:.2f}"

    lines = []
    for each in found:
        row, times = each.row, {pipe.pipe: pipe for pipe in each.pipes}
        cells = [
            f"{share(times[name].measured, row.seconds)} / {share(times[name].predicted, each.predicted)}"
            if name in times
            else ""
            for name in pipes
        ]
        lines.append((_short(row.name), _size(row), f"{1e6 * row.seconds:.1f}", f"{1e6 * each.predicted:.1f}",
                      f"{each.predicted / row.seconds - 1:+.0%}", *cells, row.layout, row.lines))  # fmt: skip
    headings = ("operator", "m x k x n", "measured us", "predicted", "error", *pipes, "layout", "lines")
    return Table(f"{chip.name}: measured / predicted, busy ratios of the pipes", headings, lines)


def _short(name: str) -> str:
    """Return the end of a long name, which distinguishes operators."""
    return name if len(name) <= LONGEST_NAME else ".." + name[2 - LONGEST_NAME :]


def _size(row: ProfileRow) -> str:
    """Return the sizes and operands of a product, of each product of a batch, or of all rows of groups."""
    one, count = f"{row.m} x {row.k} x {row.n}", len(row.products)
    if count and sum(row.products) == row.m:
        return f"{one} {row.operand} in {count}"
    return f"{count} of {one} {row.operand}" if count else f"{one} {row.operand}"


def _drawn(args: argparse.Namespace, chip: ascend.Chip, found: list[Overlay]) -> list[str]:
    """Write the picture of --overlay and its data, and return their paths."""
    if not args.overlay:
        return []
    from ascend.reports.plots import overlay_plot
    from mpgemm.cli.common.ascend_options import write_rows

    path = Path(args.overlay)
    rows = [row for each in found for row in each.to_rows()]
    title = f"{chip.name}: {Path(args.measured).name} over the prediction"
    return list(map(str, [*write_rows(path.parent, path.stem, rows), *overlay_plot(found, path, title)]))
