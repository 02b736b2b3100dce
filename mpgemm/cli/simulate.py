"""`mpgemm simulate` runs a tile schedule on the simulated pipes of an Ascend core, and shows its time and stalls."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import ascend
from mpgemm.cli.ascend_views.advice import sensitivity_table
from mpgemm.cli.common.ascend_options import (
    KERNEL_OPTIONS,
    add_kernel_options,
    add_shared_arguments,
    chip_of,
    evidence,
    kernel_of,
    parameters,
    parse_block,
    parse_grid,
    parse_number,
    parse_swizzle,
    size_of,
    write_rows,
)
from mpgemm.cli.common.option_values import KERNELS
from mpgemm.cli.common.parser import Parser
from mpgemm.cli.common.run_options import add_style_argument
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Progress, Table, fitted

if TYPE_CHECKING:
    from ascend.kernels.base import Kernel
    from ascend.reports.byte_table import ByteRow
    from ascend.reports.profile import ProfileRow
    from ascend.tiling.entered import Entered

QUESTION = "plan a block"
SUMMARY = "simulate a tile schedule on the pipes of an Ascend core: speed, stalls, traces"
EXAMPLES = (
    ("--block 176,64,176 --trace trace.json", "one schedule, with a trace that Perfetto opens"),
    ("4096 4096 4096 --chip 910B3 --waterfall", "the causes that reduce the chip's peak to the simulated speed"),
    ("--published", "predictions beside published numbers"),
)


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    add_shared_arguments(parser)
    _add_schedule(parser.add_argument_group("schedule and simulation"))
    show = parser.add_argument_group("also show")
    add = show.add_argument
    add(
        "--waterfall",
        action="store_true",
        help="show the causes that reduce the chip's peak to the simulated speed, with the share of each",
    )
    add(
        "--bytes",
        action="store_true",
        help="compare the bytes that the schedule loads and stores with those of eq. 9 of the SGEMM-cube paper, "
        "and show the factors between them",
    )
    add(
        "--sensitivity",
        action="store_true",
        help="show how the speed in TFLOP/s changes if one parameter of the chip changes by 20 %%",
    )
    add(
        "--sweep",
        metavar="PARAMETER=V1,V2,...",
        help="show the speed in TFLOP/s for each of these values of a chip parameter",
    )
    add(
        "--published",
        action="store_true",
        help="compare published speeds and times of chips with predictions of the model",
    )
    _add_files(parser.add_argument_group("files"))
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    _state_what_goes_together(parser)
    parser.moved("--figure", "mpgemm reproduce xue10, xue11 or xue12")


def _add_schedule(group: argparse._ArgumentGroup) -> None:
    """Add the options that choose the schedule, and how it is simulated."""
    add = group.add_argument
    add(
        "--block",
        metavar="BM,BK,BN",
        help="block sizes in elements (default 176,64,176; with --calibrate or --measured the block of the best plan)",
    )
    add(
        "--kernel",
        choices=KERNELS,
        help="paper: the kernel of the SGEMM-cube paper, whose cores divide m only; grid: cores divide m, n and "
        "k among them; vector: FP32 on the vector units. Default: grid on chips with FIXPIPE and with "
        "--calibrate or --measured, else paper",
    )
    add(
        "--tiling", metavar="FILE.json",
        help="file of the schedule: fields of AscendC's TCubeTiling (M, N, Ka, singleCoreM, baseM, depthA1, "
        "...), or a line of the knowledge bank (runtime_kb) of MatMulV3",
    )  # fmt: skip
    add_kernel_options(group, ("grid", "resident", "swizzle", "n_fused", "reseed_l0c", "unit_flag", "template"))
    add("--no-split", action="store_true", help="do not count the time of the pass that splits A and B into words")
    add(
        "--latency",
        default="pipelined",
        choices=("pipelined", "serial"),
        help="pipelined: a pipe starts its next transfer while the latency of the last one passes; serial: it waits (default "
        "pipelined)",
    )
    add(
        "--all-cores",
        action="store_true",
        help="simulate every core (default: one core for each group of cores with equal work)",
    )


def _add_files(group: argparse._ArgumentGroup) -> None:
    """Add the options that name files to read and to write."""
    add = group.add_argument
    add(
        "--calibrate",
        metavar="PROFILE.csv",
        help="fit the chip's rates to an op_summary file of msprof, and show the residuals",
    )
    add(
        "--write-chip",
        metavar="FILE.toml",
        help="with --calibrate: write the fitted chip to a file, which --chip reads",
    )
    add(
        "--measured",
        metavar="PROFILE.csv",
        help="compare predicted with measured times of each product and pipe. The file is one of msprof: an "
        "op_summary, a kernel_details, or a PipeUtilization (which needs M K N)",
    )
    add(
        "--overlay",
        metavar="FILE",
        help="with --measured: draw predicted and measured time of each pipe of each product, and write the data",
    )
    add("--trace", metavar="FILE", help="write a Chrome/Perfetto trace of core 0 (JSON)")
    add(
        "--trace-operations",
        type=int,
        default=100_000,
        metavar="COUNT",
        help="largest number of operations in the trace (default 100000)",
    )
    add(
        "--gantt",
        metavar="FILE",
        help="draw the work of each pipe around the time at which a block of C is written, and write the data",
    )
    add(
        "--ping-pong",
        metavar="FILE",
        help="draw loads and cube steps of each block over time, with single and with double buffers",
    )
    add("--occupancy", metavar="FILE", help="draw the used bytes of each buffer of core 0 over time")
    add("--waterfall-plot", metavar="FILE", help="draw the causes that --waterfall shows as a chart of bars")
    add_style_argument(group)


def _state_what_goes_together(parser: Parser) -> None:
    """State which options have no effect beside others, so that the parser refuses them."""
    schedule = ("--tiling", "--kernel", "--grid", "--resident", "--swizzle", "--n-fused", "--unit-flag", "--template")
    run = ("--reseed-l0c", "--no-split", "--latency", "--all-cores")
    parser.goes_without(
        ("size", "--block", "--kernel", "--grid", "--resident", "--swizzle", "--n-fused", "--reseed-l0c", "--terms", "--mode",
         "--buffering", "--merge", "--split", "--presplit", "--no-split"), ("--tiling",),
    )  # fmt: skip
    shown = ("--waterfall", "--bytes", "--sensitivity", "--sweep")
    pictures = ("--gantt", "--ping-pong", "--occupancy", "--waterfall-plot")
    files = ("--trace", "--trace-operations", *pictures, "--style")
    one_run = (*schedule, *run, *shown, *files)
    parser.goes_without(
        (*one_run, *KERNEL_OPTIONS, "--block", "size", "--chip", "--calibrated", "--set", "--calibrate", "--measured"),
        ("--published",), "the simulation of one schedule",
    )  # fmt: skip
    parser.goes_without(
        (*run, *shown, "--trace", "--trace-operations", *pictures, "--tiling", "--terms", "--mode", "--presplit"),
        ("--calibrate", "--measured"),
        "the simulation of one schedule (a profile states sizes and operands)",
    )  # fmt: skip
    parser.goes_without(
        (*one_run, *KERNEL_OPTIONS, "--block", "--calibrate", "--measured", "--published"), ("--list-parameters",)
    )
    parser.goes_without(("--measured",), ("--calibrate",))
    parser.goes_with(("--trace-operations",), ("--trace",))
    parser.goes_with(("--style",), (*pictures, "--overlay"))
    parser.goes_with(("--overlay",), ("--measured",))
    parser.goes_with(("--write-chip",), ("--calibrate",))


def run(args: argparse.Namespace) -> Output:
    """Carry out the command."""
    chip = chip_of(args)
    if args.list_parameters:
        return parameters(chip)
    if args.calibrate:
        from mpgemm.cli.ascend_views.profiles import calibrate

        return calibrate(args, chip, _profile_schedules(args, chip))
    if args.measured:
        from mpgemm.cli.ascend_views.profiles import measured

        return measured(args, chip, _profile_schedules(args, chip), _batch_seconds(args, chip))
    if args.published:
        from mpgemm.cli.ascend_views.published import published_numbers

        return published_numbers()
    return _simulate(args, chip)


def _simulate(args: argparse.Namespace, chip: ascend.Chip) -> Output:
    notes: list[str] = []
    if args.tiling:
        schedule, notes = _entered(args, chip)
    else:
        schedule = _schedule(args, size_of(args), chip, args.kernel or _own_kernel(chip), kernel_of(args))
    progress = Progress()
    timeline = ascend.simulate(
        schedule, include_split=not args.no_split, all_cores=args.all_cores, latency=args.latency,
        progress=lambda done: progress(done, done + 1, "operations"),
    )  # fmt: skip
    written = _write_files(args, timeline, schedule)
    shown = list(_shown(args, schedule))
    result = timeline.to_dict() | {"calibrated": args.calibrated, "written": written, "notes": notes}
    text = [*_summary(args, timeline), *map(fitted, notes), *(piece for _, _, table in shown for piece in ("", table))]
    if written:
        text.append(f"\nwritten: {', '.join(written)}")
    return Output(result | {name: data for name, data, _ in shown}, text)


def _entered(args: argparse.Namespace, chip: ascend.Chip) -> Entered:
    """Return the schedule that the fields of --tiling describe, and the fields that it does not follow."""
    from ascend.reports.matmul_v3 import entered_knowledge, read_knowledge
    from ascend.tiling.entered import entered, read_tiling

    if (record := read_knowledge(args.tiling)) is not None:
        if given := [f"--{name}" for name in ("layout", "operand", "template") if name in args.given]:
            raise ValueError(
                f"{args.tiling} is a tiling of MatMulV3, which determines {', '.join(given)}: leave {', '.join(given)} out"
            )
        return entered_knowledge(record, chip, args.tiling)
    options = {name: getattr(args, name) for name in ("layout", "warm", "dequantize", "unit_flag")}
    return entered(read_tiling(args.tiling), chip, args.template, operand=args.operand or "fp16", **options)


def _own_kernel(chip: ascend.Chip) -> str:
    """Return the default kernel of a chip: the paper's is for chips without FIXPIPE, whose cores write C through UB."""
    return "grid" if chip.fixpipe else "paper"


def _block(args: argparse.Namespace) -> ascend.Blocking:
    if args.block:
        return ascend.Blocking(*parse_block(args.block))
    from ascend.reports.calibration import PUBLISHED_BLOCK

    return PUBLISHED_BLOCK


def _schedule(
    args: argparse.Namespace, size: tuple[int, int, int], chip: ascend.Chip, kernel: str, options: dict
) -> Kernel:
    """Return the schedule that the options describe."""
    block = _block(args)
    grid = parse_grid(args.grid) if args.grid else None
    # Without a resident operand, tiles go one by one to all cores; a grid along k alone states the number of cores.
    cores = grid[1] if grid and kernel == "grid" and args.resident == "none" and grid[0] * grid[2] == 1 else None
    schedule = ascend.build_schedule(
        *size, chip, block, mode=args.mode or "termwise", reseed_l0c=args.reseed_l0c, n_fused=args.n_fused,
        kernel=kernel, grid=grid, cores=cores, resident=args.resident, split=args.split,
        swizzle=parse_swizzle(args.swizzle) if args.swizzle else None, unit_flag=args.unit_flag,
        template=args.template, **options,
    )  # fmt: skip
    if args.swizzle and schedule.resident != "none":
        raise ValueError(
            f"got --swizzle {args.swizzle}, but {schedule.resident.upper()} stays in L1 and determines the order of the tiles: "
            "leave --swizzle out, or give --resident none"
        )
    return schedule


def _write_files(args: argparse.Namespace, timeline: ascend.Timeline, schedule: Kernel) -> list[str]:
    """Write the files that the options name, each picture with its data, and return the paths; the run is recorded once."""
    if not any((args.trace, args.gantt, args.ping_pong, args.occupancy, args.waterfall_plot)):
        return []
    from ascend.reports import figures, plots

    recorded = timeline.recorded() if args.trace or args.gantt or args.occupancy else timeline
    written = [args.trace] if args.trace else []
    if args.trace:
        recorded.to_trace(args.trace, args.trace_operations)
    case = f"{timeline.chip.name}, block {schedule.blocking}"
    run = f"{case}, {schedule.buffering} buffers, {schedule.mode}: {timeline.tflops:.1f} TFLOP/s"
    steps = ascend.waterfall(schedule, args.latency) if args.waterfall_plot else []
    pictures: tuple[tuple[str, Callable[[], list[dict]], Callable[[list[dict], str], list[Path]]], ...] = (
        (args.gantt, lambda: figures.pipe_rows(recorded), partial(plots.pipes_plot, title=run)),
        (args.ping_pong, lambda: figures.ping_pong_rows(schedule), partial(plots.ping_pong_plot, title=case)),
        (args.occupancy, lambda: figures.occupancy_rows(recorded), partial(plots.occupancy_plot, title=f"{case}: buffers")),
        (
            args.waterfall_plot, lambda: [step._asdict() for step in steps],
            lambda rows, path: plots.waterfall_plot(steps, path, f"{case}, {schedule.buffering} buffers"),
        ),
    )  # fmt: skip
    for name, make, draw in pictures:
        if name:
            rows, path = make(), Path(name)
            written += map(str, [*write_rows(path.parent, path.stem, rows), *draw(rows, name)])
    return written


def _summary(args: argparse.Namespace, timeline: ascend.Timeline) -> Iterator[str | Table]:
    s = timeline.schedule
    point = s.roofline()
    placed = f"{s.placement()}, {s.used_cores} cores ({s.cores_text()}), "
    yield fitted(
        f"{evidence(args, timeline.chip)}\n"
        f"m, k, n = {s.m}, {s.k}, {s.n}, {s.kernel} kernel, {placed}block {s.blocking}, N_fused {s.n_fused}, "
        f"{s.mode}, {s.buffering} buffers, {s.terms} term(s) of {s.operand}\n"
        f"{timeline.tflops:.2f} TFLOP/s in {1e3 * timeline.seconds:.3f} ms ({timeline.cycles:.0f} cycles); "
        f"cube steps fill {timeline.cube_efficiency:.1%}; {s.waves} wave(s), {s.groups} k group(s), "
        f"{len(s.k_slices)} slice(s) of k\n"
        f"roofline: {point.flops / 1e12:.1f} TFLOP/s, {point.bound} bound at "
        f"{point.operational_intensity:.3g} FLOP/B (knee {point.knee:.1f})\n"
        f"phases: {', '.join(f'{p.name} {p.cycles / timeline.cycles:.1%}' for p in timeline.phases)}"
    )
    rows = [row for row in timeline.to_rows() if row["busy"]]
    yield Table("Pipes", tuple(rows[0]), [tuple(row.values()) for row in rows])
    yield ""
    stalls = [(s.pipe, s.reason, round(s.cycles), s.fraction) for s in timeline.stalls if s.pipe == "CUBE"]
    yield Table("What the cube waits for", ("pipe", "reason", "cycles", "fraction"), stalls)


def _shown(args: argparse.Namespace, schedule: Kernel) -> Iterator[tuple[str, object, Table]]:
    """Yield (name, data, table) of each further view that the options ask for."""
    if args.waterfall:
        steps = ascend.waterfall(schedule, args.latency)
        lines = [(s.cause, s.tflops, f"{s.lost:.2f}", round(s.cycles), "fitted" if s.fitted else "") for s in steps]
        columns: tuple[str, ...] = ("cause", "TFLOP/s", "lost", "cycles", "")
        table = Table("From the peak to the simulated speed", columns, lines)
        yield "waterfall", [step._asdict() for step in steps], table
    if args.bytes:
        rows = ascend.byte_table(schedule)
        data = [
            row._asdict() | {"ratio": row.ratio, "factors": [factor._asdict() for factor in row.factors]}
            for row in rows
        ]
        columns = ("operand", "eq. 9 (bytes)", "schedule (bytes)", "ratio", "factors")
        table = Table("Bytes: eq. 9 and this schedule, all cores", columns, list(_byte_lines(rows)))
        yield "byte_table", data, table
    if args.sensitivity:
        found = ascend.sensitivities(schedule)
        yield "sensitivities", [row._asdict() for row in found], sensitivity_table(found)
    if args.sweep:
        name, speeds = _swept(args, schedule)
        yield "sweep", {"parameter": name, "rows": speeds}, Table(f"What if {name} were", (name, "TFLOP/s"), speeds)


def _byte_lines(rows: Iterable[ByteRow]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        moved = f"{row.eq9_bytes:.4g}", f"{row.schedule_bytes:.4g}"
        if not row.eq9_bytes:
            yield (row.operand, *moved, "-", row.factors[0].reason)
            continue
        yield (row.operand, *moved, f"{row.ratio:.3f}", "")
        yield from (("", "", "", f"{factor.value:.3f}", factor.reason) for factor in row.factors)


def _swept(args: argparse.Namespace, schedule: Kernel) -> tuple[str, list[tuple[float, float]]]:
    from ascend.reports.waterfall import sweep

    name, equals, values = args.sweep.partition("=")
    if not equals:
        raise ValueError(f"--sweep got {args.sweep!r}, expected PARAMETER=V1,V2,...")
    return name, sweep(schedule, name, [parse_number(name, value) for value in values.split(",")])


def _options_of(args: argparse.Namespace, row: ProfileRow) -> dict:
    """Return the kernel's options for a row of a profile, which states operands, scales of int8 sums, and mostly the layout."""
    found = kernel_of(args) | {"terms": 1, "operand": row.operand}
    if row.layout and "layout" not in args.given:
        found["layout"] = row.layout
    return found | {"dequantize": row.dequantize or (args.dequantize if row.operand == "int8" else "")}


def _batch_seconds(args: argparse.Namespace, chip: ascend.Chip) -> Callable[[ProfileRow], float]:
    """Return a function that gives the time of a profile's row of several products, which run on groups of cores."""

    def seconds_of(row: ProfileRow) -> float:
        options = _options_of(args, row)
        return ascend.plan_batch(row.products, row.k, row.n, chip, error_of=lambda s: 0.0, **options)[0].seconds

    return seconds_of


def _profile_schedules(args: argparse.Namespace, chip: ascend.Chip) -> Callable[[ProfileRow], Kernel]:
    """Return a function that gives the kernel of a profile's row: the kernel that options name, or the best plan."""
    named = any(
        (args.block, args.kernel, args.grid, args.swizzle, args.resident, args.n_fused, args.unit_flag, args.template)
    )

    def schedule_of(row: ProfileRow) -> Kernel:
        options = _options_of(args, row)
        return _schedule(args, (row.m, row.k, row.n), chip, args.kernel or "grid", options)

    def planned(row: ProfileRow) -> Kernel:
        found = ascend.plan(
            row.m, row.k, row.n, chip, simulated=4, top=4, error_of=lambda s: 0.0, split=args.split,
            **_options_of(args, row),
        )  # fmt: skip
        return next((p.schedule for p in found if p.schedule.on_cube), found[0].schedule)

    return schedule_of if named else planned
