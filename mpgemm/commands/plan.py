"""`mpgemm plan`: block sizes for an Ascend GEMM, why, and what to type into the kernel."""

import argparse
import dataclasses
import sys
from pathlib import Path

import ascend
from ascend.blocking import feasible_blocks
from ascend.planner import RANKS, SIMULATED, Plan
from ascend.reports import figures, plots
from ascend.reports.tiling import tile_shapes
from mpgemm.commands.ascend_options import (
    add_shared_arguments,
    folder_of,
    parse_block,
    run_on_chip,
    size_of,
    write_rows,
)
from mpgemm.reporting.report import Progress, Table, json_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add_shared_arguments(parser)
    choice = parser.add_argument_group("choice")
    choice.add_argument(
        "--rank",
        default="time",
        choices=RANKS,
        help="by simulated time, by traffic (eq. 9), or by the closed forms alone (time)",
    )
    choice.add_argument("--top", type=int, default=10, help="plans shown (10)")
    choice.add_argument(
        "--simulate",
        type=int,
        default=SIMULATED,
        metavar="COUNT",
        help=f"blocks simulated for --rank time ({SIMULATED})",
    )
    choice.add_argument(
        "--data",
        nargs=2,
        metavar=("A", "B"),
        help="matrix files: the error (eq. 13) of each plan on them, computed as the chip would",
    )
    choice.add_argument("--max-error", type=float, metavar="E", help="leave out blocks with a larger error on --data")
    choice.add_argument("--block", metavar="BM,BK,BN", help="this block only: whether it fits, and its plan")
    output = parser.add_argument_group("output")
    output.add_argument("--explain", action="store_true", help="what distinguishes the best block from 96 and 192")
    output.add_argument("--tiling", action="store_true", help="AscendC tiling fields and tile shapes of the best block")
    output.add_argument(
        "--bits", action="store_true", help="run every feasible block: what changes the result, by how much"
    )
    output.add_argument("--rejections", action="store_true", help="the blocks next to the feasible space, and why not")
    output.add_argument("--figure", choices=("6", "heat"), help="N_fused and f (fig. 6), or speed over (bm, bn)")
    output.add_argument("--out", metavar="FOLDER", help="where --figure writes PNG, CSV and JSON (out)")
    output.add_argument("--csv", metavar="FILE", help="write the plans as CSV")
    output.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status."""
    return run_on_chip(args, _show)


def _show(args: argparse.Namespace, chip: ascend.Chip) -> None:
    if args.figure:
        _figure(args, chip)
    elif args.rejections:
        _rejections(args, chip)
    elif args.bits:
        _bits(args, chip)
    else:
        _plans(args, chip)


def _plans(args: argparse.Namespace, chip: ascend.Chip) -> None:
    m, k, n = size_of(args)
    plans = [_one_block(args, chip)] if args.block else _ranked(args, chip)
    best = plans[0]
    sentences = ascend.explain(best.schedule) if args.explain else []
    if args.csv:
        from mpgemm.inputs.files import write_text

        write_text(args.csv, _table(plans, "plans").to_csv())
    if args.json:
        result = {
            "chip": chip.name, "m": m, "k": k, "n": n, "terms": args.terms, "buffering": args.buffering,
            "mode": args.mode, "rank": args.rank, "calibrated": args.calibrated,
            "plans": [plan.to_dict() for plan in plans], "explanation": sentences,
        }  # fmt: skip
        sys.stdout.write(json_text(result))
        return
    feasible = len(feasible_blocks(chip, args.buffering, best.schedule.words, args.operand))
    how = "simulated" if plans[0].timeline else "by closed forms"
    title = (
        f"{chip.name}, C = A B with A {m} x {k}, B {k} x {n}: {args.mode}, {args.buffering} buffers, "
        f"{args.terms} term(s); {feasible} feasible blocks, TFLOP/s {how}"
    )
    _table(plans, title).print()
    for sentence in sentences:
        print(sentence)
    if args.tiling or not args.explain:
        _print_tiling(best)


def _ranked(args: argparse.Namespace, chip: ascend.Chip) -> list[Plan]:
    progress = Progress()
    data = None
    if args.data:
        from mpgemm.inputs.files import check_matrix, read_matrix

        data = tuple(check_matrix(read_matrix(Path(path)), path) for path in args.data)
    return ascend.plan(
        *size_of(args), chip, args.terms, args.buffering, args.rank, args.max_error, data, args.top, mode=args.mode,
        operand=args.operand, simulated=args.simulate, progress=lambda done, total: progress(done, total, "blocks"),
    )  # fmt: skip


def _one_block(args: argparse.Namespace, chip: ascend.Chip) -> Plan:
    """The plan of a block that the user names; ValueError with every constraint it breaks."""
    m, k, n = size_of(args)
    sizes = parse_block(args.block)
    words = 2 if args.mode in ("fused", "elementwise") and args.terms > 1 else 1
    broken = ascend.candidate_rejections(*sizes, chip, args.buffering, words, args.operand)
    if broken:
        raise ValueError(f"block {sizes} does not fit {chip.name}: {'; '.join(map(str, broken))}")
    block = ascend.Blocking(*sizes)
    schedule = ascend.build_schedule(
        m, k, n, chip, block, terms=args.terms, buffering=args.buffering, mode=args.mode, operand=args.operand
    )
    return ascend.plan_of(schedule)


def _table(plans: list[Plan], title: str) -> Table:
    headings = ["bm", "bk", "bn", "N_fused", "f", "TFLOP/s", "ms", "cube %", "FLOP/B", "waves", "k groups"]
    rows = []
    for plan in plans:
        b, timeline = plan.blocking, plan.timeline
        row = [
            b.bm, b.bk, b.bn, plan.n_fused, f"{plan.fusion_efficiency:.4f}", plan.tflops, 1e3 * plan.seconds,
            100 * timeline.cube_efficiency if timeline else "", plan.roofline.operational_intensity,
            plan.schedule.waves, len(plan.schedule.k_groups),
        ]  # fmt: skip
        rows.append(row + ([plan.error] if plan.error is not None else []))
    if plans[0].error is not None:
        headings.append("error")
    return Table(title, headings, rows)


def _print_tiling(plan: Plan) -> None:
    print(f"\nAscendC tiling fields of {plan.blocking}:")
    words = [f"{name}={value}" for name, value in plan.tiling.items()]
    for start in range(0, len(words), 8):
        print("  " + " ".join(words[start : start + 8]))
    rows = [(*row[:3], row[3], row[4]) for row in tile_shapes(plan.schedule)]
    print()
    Table("Buffers of a core", ("buffer", "holds", "layout", "bytes", "limit"), rows).print()


def _bits(args: argparse.Namespace, chip: ascend.Chip) -> None:
    from mpgemm.experiments.blocking_bits import VARIANTS, blocking_bits

    progress = Progress()
    found = blocking_bits(chip, progress=lambda done, total: progress(done, total, "blocks"))
    if args.json:
        sys.stdout.write(json_text(dataclasses.asdict(found)))
        return
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
    Table(title, ["bk * N_fused", "blocks", *(label for label, _ in VARIANTS)], rows).print()


def _rejections(args: argparse.Namespace, chip: ascend.Chip) -> None:
    words = 2 if args.mode in ("fused", "elementwise") and args.terms > 1 else 1
    rows = ascend.rejections(chip, args.buffering, words, args.operand)
    if args.json:
        found = [
            {"bm": r.bm, "bk": r.bk, "bn": r.bn, "reasons": [reason._asdict() for reason in r.reasons]} for r in rows
        ]
        sys.stdout.write(json_text({"chip": chip.name, "rejected": found}))
        return
    title = f"{chip.name}: blocks that fit when one size is 16 smaller ({len(rows)}; larger ones break the same limits)"
    lines = [(r.bm, r.bk, r.bn, "; ".join(map(str, r.reasons))) for r in rows]
    Table(title, ("bm", "bk", "bn", "rejected because"), lines).print()


def _figure(args: argparse.Namespace, chip: ascend.Chip) -> None:
    plots.require_matplotlib()
    folder = folder_of(args)
    progress = Progress()
    if args.figure == "6":
        rows = figures.figure_6(chip)
        name = f"figure_6_{chip.name}"
        title = f"{chip.name}: N_fused and f (eq. 8) of the {len(rows)} feasible blocks"
        paths = write_rows(folder, name, rows)
        paths.append(plots.figure_6_plot(rows, folder / f"{name}.png", title))
    else:
        block = parse_block(args.block) if args.block else (176, 64, 176)
        rows = figures.heat_map(
            chip, block[1], size_of(args), lambda done, total: progress(done, total, "blocks"), terms=args.terms,
            buffering=args.buffering, mode=args.mode, operand=args.operand,
        )  # fmt: skip
        name = f"heat_map_{chip.name}_bk{block[1]}"
        m, k, n = size_of(args)
        title = f"{chip.name}, bk = {block[1]}, m, k, n = {m}, {k}, {n}, {args.buffering} buffers"
        paths = write_rows(folder, name, rows)
        paths.append(plots.heat_map_plot(rows, folder / f"{name}.png", title))
    print(f"written: {', '.join(map(str, paths))}")
