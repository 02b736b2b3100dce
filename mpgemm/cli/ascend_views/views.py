"""Makes the output of `mpgemm plan` in place of plans: the Pareto front of time and bits, and the paper kernel's blocks."""

from __future__ import annotations

import argparse
import dataclasses

import ascend
from ascend.term_modes import combination
from mpgemm.cli.common.ascend_options import data_of, evidence, folder_of, kernel_of, parse_block, size_of, write_rows
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Progress, Table, fitted


def pareto_front(args: argparse.Namespace, chip: ascend.Chip) -> Output:
    from ascend.reports import plots

    if args.out:
        plots.require_matplotlib()
    m, k, n = size_of(args)
    progress = Progress()
    points = ascend.pareto(
        m, k, n, chip, data=data_of(args), distribution=args.distribution,
        progress=lambda done, total: progress(done, total, "schedules"),
    )  # fmt: skip
    rows = [point.to_dict() for point in points]
    written = []
    if args.out:
        folder, name = folder_of(args), f"pareto_{chip.name}_{m}x{k}x{n}"
        flat = [{key: value for key, value in row.items() if key != "warnings"} for row in rows]
        title = f"{chip.name}, A {m} x {k}, B {k} x {n} ({evidence(args, chip)})"
        written = [*write_rows(folder, name, flat), *plots.pareto_plot(points, folder / f"{name}.png", title)]
    lines = [
        (
            f"{p.plan.seconds:.3e}", f"{p.bits:.2f}",
            f"{p.seconds_per_bit:.2e}" if p.seconds_per_bit is not None else "", p.label(), str(p.plan.blocking),
            p.plan.schedule.cores_text(), p.plan.schedule.placement(),
        )
        for p in points
        if p.on_front
    ]  # fmt: skip
    title = f"{chip.name}, A {m} x {k}, B {k} x {n}: {len(lines)} of {len(points)} schedules are on the front of time and bits"
    front = Table(title, ("seconds", "bits", "seconds_per_bit", "label", "block", "grid", "placed"), lines)
    first = fitted(f"{evidence(args, chip)}; bits from {points[0].plan.error_source}")
    text: list[str | Table] = [first, front]
    if written:
        text.append(f"written: {', '.join(map(str, written))}")
    return Output({"chip": chip.name, "m": m, "k": k, "n": n, "points": rows}, text)


def bits_of_blocks(args: argparse.Namespace, chip: ascend.Chip) -> Output:
    from mpgemm.experiments.blocking_bits import VARIANTS, blocking_bits

    progress = Progress()
    sizes = {}
    if args.size:
        m, k, n = size_of(args)
        sizes = {"m": min(m, 16), "k": k, "n": min(n, 16)}
    found = blocking_bits(chip, **sizes, progress=lambda done, total: progress(done, total, "blocks"))
    m, k, n = found.shape
    title = (
        f"{chip.name}, uniform in [-1, 1], {m} x {k} x {n}: {found.blocks} feasible blocks give {found.results} different "
        f"results for {len(found.chains)} chain lengths bk * N_fused; {found.mixed} lengths with more than one result.\n"
        "Relative error (eq. 13):"
    )
    rows = [
        [length, found.chains[length], *(measured[label] for label, _ in VARIANTS)]
        for length, measured in found.errors.items()
    ]
    table = Table(title, ["bk * N_fused", "blocks", *(label for label, _ in VARIANTS)], rows)
    remark = "(computed on at most 16 rows and columns, because only k and the chain length change a bit)"
    return Output(dataclasses.asdict(found), [table, *([fitted(remark)] if sizes else [])])


def rejected_blocks(args: argparse.Namespace, chip: ascend.Chip) -> Output:
    options = kernel_of(args)
    words = combination(args.mode or "termwise").words(options["terms"])
    rows = ascend.rejections(chip, args.buffering, words, options["operand"])
    found = [{"bm": r.bm, "bk": r.bk, "bn": r.bn, "reasons": [reason._asdict() for reason in r.reasons]} for r in rows]
    title = f"{chip.name}: {len(rows)} blocks that would fit if one size were 16 smaller (larger blocks break the same limits)"
    lines = [(r.bm, r.bk, r.bn, "; ".join(map(str, r.reasons))) for r in rows]
    table = Table(title, ("bm", "bk", "bn", "rejected because"), lines)
    return Output({"chip": chip.name, "rejected": found}, [table])


def heat_map(args: argparse.Namespace, chip: ascend.Chip) -> Output:
    from ascend.reports import figures, plots
    from ascend.reports.calibration import PUBLISHED_BLOCK

    plots.require_matplotlib()
    folder = folder_of(args)
    progress = Progress()
    bk = parse_block(args.block)[1] if args.block else PUBLISHED_BLOCK.bk
    rows = figures.heat_map(
        chip, bk, size_of(args), lambda done, total: progress(done, total, "blocks"), mode=args.mode or "termwise",
        terms=kernel_of(args)["terms"], buffering=args.buffering, operand=kernel_of(args)["operand"],
    )  # fmt: skip
    name = f"heat_map_{chip.name}_bk{bk}"
    m, k, n = size_of(args)
    title = f"{chip.name}, bk = {bk}, m, k, n = {m}, {k}, {n}, {args.buffering} buffers, the paper's kernel"
    paths = [*write_rows(folder, name, rows), *plots.heat_map_plot(rows, folder / f"{name}.png", title)]
    return Output(text=[f"written: {', '.join(map(str, paths))}"])


#: The functions that make these views, by the names of their options.
VIEWS = {"heat_map": heat_map, "rejections": rejected_blocks, "bits": bits_of_blocks, "pareto": pareto_front}
