"""`mpgemm plan` finds the schedule of an Ascend GEMM, the reasons for it, its accuracy, and the fields for the kernel."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import ascend
from mpgemm.cli.ascend_views.advice import (
    advice_of,
    batch,
    compares,
    kernel_files,
    sensitivity_table,
    written_out,
)
from mpgemm.cli.ascend_views.tables import overview_table, plan_table, tiling_text
from mpgemm.cli.common.ascend_options import (
    KERNEL_OPTIONS,
    add_shared_arguments,
    chip_of,
    chips_of,
    data_of,
    evidence,
    kernel_of,
    parameters,
    parse_block,
    read_shapes,
    size_of,
)
from mpgemm.cli.common.option_values import COLLECTIVES, DISTRIBUTIONS, PLAN_KERNELS, RANKS, SIMULATED, TARGETS
from mpgemm.cli.common.parser import Parser
from mpgemm.cli.common.run_options import FIGURE_OPTIONS, add_figure_arguments
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Progress, Table, fitted
from tensorcore_models.files import write_text

if TYPE_CHECKING:
    from ascend.planner.result import Plan
    from ascend.reports.waterfall import Sensitivity

QUESTION = "plan a block"
SUMMARY = "find block sizes for a GEMM on an Ascend chip, with reasons and with AscendC's tiling fields"
EXAMPLES = (
    ("4096 4096 4096 --chip 910A", "blocks, grid and order for one product (m k n)"),
    ("32 4096 11008 --chip 910A --chip 910B3 --tiling", "two chips, and AscendC's tiling fields"),
    ("128 7168 2048 --chip 910B3 --pareto", "the Pareto front of time and bits"),
    (
        "512 1024 768 --chip 910B3 --terms 3 --emit pto kernel",
        "a PTO kernel, which mpgemm check-kernel kernel runs here",
    ),
)


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    add_shared_arguments(parser, several_chips=True)
    _add_choice(parser.add_argument_group("choice"))
    _add_output(parser, parser.add_argument_group("output"))
    _state_what_goes_together(parser)
    parser.moved("--figure", "mpgemm reproduce xue6 in place of --figure 6, and --heat-map in place of --figure heat")


def _state_what_goes_together(parser: Parser) -> None:
    """State which options have no effect beside others, so that the parser refuses them."""
    ranking = ("--rank", "--top", "--simulate", "--max-error", "--reach")
    sample = ("--files", "--distribution")
    shown = ("--sensitivity", "--explain", "--tiling", "--csv", "--emit")
    # These options read the chip's parameters or the paper's constraints alone.
    apart = ("--list-parameters", "--bits", "--rejections", "--heat-map")
    parser.goes_without(
        (*ranking, *sample, *shown, "--for", "--kernel", "--split", "--merge", "--layout", "--presplit", "--warm",
         "--dequantize", "--shapes", "--batch", "--grouped", "--pareto", "--overlap"),
        apart,
    )  # fmt: skip
    parser.goes_without(("--terms", "--mode", "--operand", "--buffering"), ("--list-parameters", "--bits"))
    parser.goes_without(("--block",), ("--list-parameters", "--bits", "--rejections"))
    parser.goes_without((*KERNEL_OPTIONS, *ranking, *shown, "--for", "--kernel", "--block"), ("--pareto",))
    parser.goes_without(
        (*ranking, "--files", "--sensitivity", "--explain", "--csv", "--kernel", "--block", "--shapes", "--pareto"),
        ("--batch", "--grouped"),
    )
    parser.goes_without(
        (*ranking, *sample, *shown, "--kernel", "--block", "--shapes", "--pareto", "--batch", "--grouped"),
        ("--overlap",),
    )
    parser.goes_with(("--collective", "--ranks", "--parts"), ("--overlap",))
    parser.goes_without(("--tiling", "--sensitivity", "--top"), ("--shapes",))
    parser.goes_without((*ranking, *sample), ("--block",))
    parser.goes_without(("--distribution",), ("--files",))
    parser.at_least(1, "--top", "--parts")
    parser.at_least(2, "--ranks")
    parser.goes_with(("--out", *FIGURE_OPTIONS), ("--pareto", "--heat-map"))
    parser.goes_without(("--json",), ("--heat-map",))


def _add_choice(choice: argparse._ArgumentGroup) -> None:
    """Add the options that choose the product and the kernel to plan."""
    add = choice.add_argument
    add(
        "--shapes",
        metavar="FILE",
        help="plan the product in every line of a file; a line holds M K N, with an optional name before them",
    )
    add(
        "--kernel", default="grid", choices=PLAN_KERNELS,
        help="grid: cores divide m, n and k among them; paper: the kernel of the SGEMM-cube paper, whose cores divide m only "
        "(default grid)",
    )  # fmt: skip
    add(
        "--rank",
        default="time",
        choices=RANKS,
        help="order of the plans: by simulated time, by traffic (bytes from and to memory), or analytic (time "
        "from closed formulas, without simulation); default time",
    )
    add("--top", type=int, default=10, help="largest number of plans that are shown (default 10)")
    add(
        "--simulate", type=int, metavar="COUNT",
        help=f"number of schedules that --rank time simulates for each mode (default {SIMULATED['grid']}; with "
        f"--kernel paper {SIMULATED['paper']})",
    )  # fmt: skip
    _add_accuracy(choice)
    add(
        "--for",
        dest="target",
        choices=TARGETS,
        help="keep only schedules that this library or language can express, and print the parameters of the "
        "best plan as code",
    )
    add("--batch", type=int, metavar="COUNT", help="plan COUNT products of this size, each with its own A and B")
    add(
        "--grouped",
        metavar="M1,M2,...",
        help="plan one product for each of these values of m; the size is then K N",
    )
    _add_communication(choice)
    add(
        "--block",
        metavar="BM,BK,BN",
        help="plan only this block (sizes in elements), and say whether it fits the buffers",
    )


def _add_accuracy(choice: argparse._ArgumentGroup) -> None:
    """Add the options of the error of a plan."""
    add = choice.add_argument
    add(
        "--files", "--data", dest="data", nargs=2, metavar=("A", "B"),
        help="matrix files of A and B, on which the relative error (Frobenius norm) of each plan is computed "
        "with the chip's arithmetic (default: a random sample)",
    )  # fmt: skip
    add(
        "--distribution", default="normal", choices=DISTRIBUTIONS,
        help="distribution of the random elements on which errors are sampled without --files (default normal)",
    )  # fmt: skip
    add(
        "--max-error",
        type=float,
        metavar="E",
        help="leave out plans whose relative error (Frobenius norm) is larger than E (default: all are kept)",
    )
    add(
        "--reach", type=float, metavar="BITS",
        help="accuracy that the recommended plan must reach, in bits (default: that of FP32 sums in chains of "
        "256 products)",
    )  # fmt: skip


def _add_communication(choice: argparse._ArgumentGroup) -> None:
    """Add the options of a product whose parts hide communication."""
    add = choice.add_argument
    add(
        "--overlap", metavar="ROWS",
        help="divide the rows of the product into parts, so that the data of one part are communicated while the "
        "next part is computed. ROWS is a file with measured times of the collective: the output of "
        "hccl_test, or lines of bytes and microseconds",
    )  # fmt: skip
    add(
        "--collective",
        choices=COLLECTIVES,
        help="with --overlap: all-reduce and reduce-scatter communicate C after the product, all-gather "
        "communicates A before it (default all-reduce)",
    )
    add(
        "--parts",
        type=int,
        metavar="COUNT",
        help="with --overlap: largest number of parts into which the rows of the product are divided (default 16)",
    )
    add(
        "--ranks",
        type=int,
        metavar="COUNT",
        help="number of NPUs from which A is gathered, at least 2; required with --collective all-gather, refused otherwise",
    )


def _add_output(parser: Parser, output: argparse._ArgumentGroup) -> None:
    """Add the options that choose the output."""
    add = output.add_argument
    add(
        "--pareto", action="store_true",
        help="show the Pareto front of time and bits: plans than which no other is both faster and more accurate",
    )  # fmt: skip
    add(
        "--sensitivity", action="store_true",
        help="show how the speed in TFLOP/s changes if one parameter of the chip changes by 20 %%",
    )  # fmt: skip
    add(
        "--explain", action="store_true",
        help="with --kernel paper: give reasons for the best block, and compare it with blocks of 96, 176 and 192 rows "
        "and columns",
    )  # fmt: skip
    add(
        "--tiling", action="store_true",
        help="print the best plan's tile sizes as code for each library that the chip supports (AscendC's tiling fields, "
        "CATLASS's tile shapes, ...), and how many bytes of each buffer the plan uses",
    )  # fmt: skip
    add(
        "--bits", action="store_true",
        help="compute a product of at most 16 rows and columns and the given K with every feasible block, and show which "
        "options change its bits",
    )  # fmt: skip
    add(
        "--rejections", action="store_true",
        help="show the blocks that would fit if one size were 16 smaller, and the limits that each exceeds",
    )  # fmt: skip
    add(
        "--heat-map", action="store_true",
        help="draw the simulated speed of the SGEMM-cube paper's kernel over bm and bn, the rows and columns of a block; "
        "bk is that of --block (default 64)",
    )  # fmt: skip
    add(
        "--out", metavar="FOLDER",
        help="folder into which --heat-map and --pareto write PNG, CSV and JSON (default out)",
    )  # fmt: skip
    add_figure_arguments(parser, output)
    add(
        "--emit", nargs=2, metavar=("DIALECT", "FOLDER"),
        help=f"write a kernel for the best plan that DIALECT ({', '.join(TARGETS)}) can express into FOLDER, with "
        "host code and a record of the plan",
    )  # fmt: skip
    add("--csv", metavar="FILE", help="write the plans into FILE as CSV")
    add("--json", action="store_true", help="print JSON instead of tables")


Size = tuple[int, int, int]

#: Options that take one shape and one chip.
OF_ONE_SHAPE = (
    "block", "pareto", "bits", "rejections", "heat_map", "data", "explain", "tiling", "sensitivity", "batch", "grouped",
    "list_parameters", "emit", "overlap",
)  # fmt: skip


def run(args: argparse.Namespace) -> Output:
    """Carry out the command."""
    if args.target and args.kernel == "paper":
        raise ValueError(f"expected --kernel grid with --for {args.target}, got --kernel paper: leave --kernel out")
    if args.emit and args.kernel == "paper":
        raise ValueError("expected --kernel grid with --emit, got --kernel paper: leave --kernel out")
    if args.emit and args.target not in (None, args.emit[0]):
        raise ValueError(
            f"got --for {args.target} and --emit {args.emit[0]}, expected one language: leave one option out"
        )
    if args.simulate and args.rank != "time":
        raise ValueError(
            f"--simulate goes with --rank time, got --rank {args.rank}, which simulates nothing: leave --simulate out"
        )
    chips = chips_of(args)
    if args.emit:
        from ascend.dialects import check_dialect

        args.target = args.emit[0]
        check_dialect(args.target, chip_of(args))
    if args.shapes or len(chips) > 1:
        return _overview(args, chips)
    chip = chip_of(args)
    if args.list_parameters:
        return parameters(chip)
    view = next((name for name in ("heat_map", "rejections", "bits", "pareto") if getattr(args, name)), None)
    if view is not None:
        from mpgemm.cli.ascend_views.views import VIEWS

        return VIEWS[view](args, chip)
    if args.overlap:
        from mpgemm.cli.common.plan_overlap import overlap

        return overlap(args, chip)
    if args.batch is not None or args.grouped:
        return batch(args, chip)
    return _plans(args, chip)


def _plans(args: argparse.Namespace, chip: ascend.Chip) -> Output:
    m, k, n = size_of(args)
    advice = advice_of(args, chip, (m, k, n), data_of(args)) if compares(args) else None
    left_out: list[str] = []
    if advice and args.emit:
        advice, left_out = written_out(advice, args.emit[0])
    plans = _plans_of(args, chip, (m, k, n), advice)
    best = plans[0]
    if args.explain and best.traffic is None:
        raise ValueError(
            "--explain compares blocks of the SGEMM-cube paper's kernel, got --kernel grid: add --kernel paper"
        )
    sentences = ascend.explain(best.schedule) if args.explain else []
    if args.csv:
        write_text(args.csv, plan_table(plans, "plans").to_csv())
    written = _emitted(args, best) if args.emit else []
    sensitivities = ascend.sensitivities(best.schedule) if args.sensitivity else []
    result = {
        "chip": chip.name, "m": m, "k": k, "n": n, "terms": best.schedule.terms, "operand": best.schedule.operand,
        "buffering": args.buffering, "advice": advice.to_rows() if advice else None,
        "kernel": args.kernel, "rank": args.rank, "calibrated": args.calibrated,
        "plans": [plan.to_dict() | {"tiling": ascend.tiling_fields(plan.schedule)} for plan in plans],
        "explanation": sentences, "written": list(map(str, written)),
    }  # fmt: skip
    if args.sensitivity:
        result["sensitivities"] = [row._asdict() for row in sensitivities]
    told = [*sentences, *(advice.sentences() if advice else []), *left_out]
    return Output(result, _plan_lines(args, chip, plans, told, sensitivities, result["written"]))


def _plan_lines(
    args: argparse.Namespace, chip: ascend.Chip, plans: list[Plan], told: list[str], sensitivities: Sequence[Sensitivity],
    written: list[str],
) -> Iterator[str | Table]:  # fmt: skip
    """Yield the table of plans, warnings and notes on the best one, and the fields for the kernel."""
    from ascend.planner.search import SAME_TIME
    from ascend.reports.tiling import layout_words

    best, s = plans[0], plans[0].schedule
    how = "simulated" if best.timeline else "by closed forms"
    bits = "no bits: " if best.error is None else "bits from "
    yield fitted(f"{evidence(args, chip)}; time {how}; {bits}{best.error_source}")
    product = f"C = A B with A {s.m} x {s.k}, B {s.k} x {s.n}"
    title = f"{chip.name}, {product}, {s.terms} term(s) of {s.operand}, {args.buffering} buffers; {layout_words(s)}"
    if args.kernel == "paper":
        feasible = len(ascend.feasible_blocks(chip, args.buffering, s.words, s.operand))
        title += f", the paper's kernel: {feasible} feasible blocks"
    yield plan_table(plans, title)
    yield from (fitted(f"warning: {warning}") for warning in best.warnings)
    if any(after.seconds < before.seconds for before, after in pairwise(plans)) and args.rank == "time":
        yield fitted(
            f"note: times within {SAME_TIME:.1%} count as equal; among these, plans with more cores, blocks in multiples of 64 "
            f"and 32, and less traffic rank first"
        )
    if args.terms in (3, 4) and not s.on_cube:
        yield fitted(
            f"note: FP32 on the vector units takes less time than {args.terms} terms on the cube; --mode fused plans for the "
            f"cube alone"
        )
    yield from map(fitted, told)
    if args.sensitivity:
        yield ""
        yield sensitivity_table(sensitivities)
    if args.tiling or (args.target and not args.emit):
        yield from tiling_text(best, args.target)
    if written:
        yield f"\nwritten: {', '.join(written)}"


def _emitted(args: argparse.Namespace, best: Plan) -> list[Path]:
    """Write the files of the best plan's kernel, and return their paths."""
    from ascend.emit.write import write_files

    dialect, folder = args.emit
    return write_files(folder, kernel_files(dialect, best.schedule))


def _plans_of(args: argparse.Namespace, chip: ascend.Chip, size: Size, advice: ascend.Advice | None) -> list[Plan]:
    """Return plans of the way to compute that the options name, or of the advised way."""
    if args.block:
        from ascend.planner.one_block import plan_of_block

        block, target = parse_block(args.block), args.target or ""
        return [
            plan_of_block(
                *size,
                chip,
                block,
                kernel=args.kernel,
                mode=args.mode,
                split=args.split,
                target=target,
                **kernel_of(args),
            )
        ]
    if advice is None:
        return _ranked(args, chip, size)
    way, best = advice.best or max(advice.plans, key=lambda pair: pair[1].bits or 0.0)
    return [best] if way.on_vector_units else _ranked(args, chip, size, way=way, max_error=advice.limit_of(way))


def _ranked(
    args: argparse.Namespace,
    chip: ascend.Chip,
    size: Size,
    top: int | None = None,
    way: ascend.PlannedWay | None = None,
    max_error: float | None = None,
) -> list[Plan]:
    """Return ranked plans of `way`, or of the way that the options name, without plans whose error exceeds `max_error`."""
    progress = Progress()
    options = kernel_of(args) | {"mode": args.mode, "target": args.target or ""}
    if way:
        options |= {"terms": way.terms, "operand": way.operand, "mode": way.mode}
        options |= {"presplit": args.presplit if way.terms > 1 else ""}
    return ascend.plan(
        *size, chip, rank=args.rank, max_error=args.max_error if max_error is None else max_error, data=data_of(args),
        top=top or args.top, kernel=args.kernel, split=args.split, simulated=args.simulate, distribution=args.distribution,
        progress=lambda done, total: progress(done, total, "schedules"), **options,
    )  # fmt: skip


def _best(args: argparse.Namespace, chip: ascend.Chip, size: Size) -> Plan:
    """Return the best plan of the way that the options name, or of the advised way."""
    if not compares(args):
        return _ranked(args, chip, size, 1)[0]
    advice = advice_of(args, chip, size, None, best_only=True)
    return (advice.best or max(advice.plans, key=lambda pair: pair[1].bits or 0.0))[1]


def _overview(args: argparse.Namespace, chips: list[ascend.Chip]) -> Output:
    """Return the best plan of each shape on each chip, side by side."""
    if single := [name for name in OF_ONE_SHAPE if getattr(args, name)]:
        raise ValueError(
            f"--{single[0].replace('_', '-')} takes one shape and one --chip, got several: give one of each"
        )
    if args.shapes and args.size:
        raise ValueError("got the size M K N and --shapes FILE, expected one of them: leave one out")
    size = size_of(args)
    shapes = read_shapes(args.shapes) if args.shapes else [(" x ".join(map(str, size)), size)]
    best = [(name, shape, [_best(args, chip, shape) for chip in chips]) for name, shape in shapes]
    table = overview_table(chips, best)
    if args.csv:
        write_text(args.csv, table.to_csv())
    planned = [(name, size, chip, p) for name, size, plans in best for chip, p in zip(chips, plans, strict=True)]
    rows = [
        {"name": name, "m": size[0], "k": size[1], "n": size[2], "chip": chip.name} | p.to_dict()
        for name, size, chip, p in planned
    ]
    told = [f"warning: {name} on {chip.name}: {warning}" for name, _, chip, p in planned for warning in p.warnings]
    if len(shapes) > 1:
        for number, chip in enumerate(chips):
            total = sum(plans[number].seconds for _, _, plans in best)
            told.append(f"{chip.name}: all {len(shapes)} shapes take {total:.4g} seconds, one after the other")
    first = "; ".join(evidence(args, chip) for chip in chips)
    return Output({"calibrated": args.calibrated, "plans": rows}, [fitted(first), table, *map(fitted, told)])
