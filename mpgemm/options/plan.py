"""`mpgemm plan`: the schedule of an Ascend GEMM, why, what it costs in bits, and what to type into the kernel."""

import argparse

from mpgemm.options.ascend_options import KERNEL_OPTIONS, add_shared_arguments
from mpgemm.options.parser import Parser
from mpgemm.options.words import DISTRIBUTIONS, PLAN_KERNELS, RANKS, SIMULATED, TARGETS

QUESTION = "plan a block"
SUMMARY = "block sizes for a GEMM on an Ascend chip, why, and what to type into the kernel"
EXAMPLES = (
    ("4096 4096 4096 --chip 910A", "blocks, grid and order for one product (m k n)"),
    ("32 4096 11008 --chip 910A --chip 910B3 --tiling", "two chips, and what to type into the kernel"),
    ("128 7168 2048 --chip 910B3 --pareto", "time against bits"),
)


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    add_shared_arguments(parser, several_chips=True)
    _add_choice(parser.add_argument_group("choice"))
    _add_output(parser.add_argument_group("output"))
    _state_what_goes_together(parser)
    parser.moved("--figure", "mpgemm reproduce xue6 (6), or --heat-map (heat)")


def _state_what_goes_together(parser: Parser) -> None:
    """Which options have no effect beside others: none is ignored."""
    ranking = ("--rank", "--top", "--simulate", "--max-error", "--reach")
    sample = ("--files", "--distribution")
    shown = ("--sensitivity", "--explain", "--tiling", "--csv")
    # A list of chips' numbers, blocks and pictures of blocks come from the paper's constraints alone.
    apart = ("--list-parameters", "--bits", "--rejections", "--heat-map")
    parser.goes_without(
        (*ranking, *sample, *shown, "--for", "--kernel", "--split", "--merge", "--layout", "--presplit", "--warm", "--shapes",
         "--batch", "--grouped", "--pareto"),
        apart,
    )  # fmt: skip
    parser.goes_without(("--terms", "--mode", "--operand", "--buffering"), ("--list-parameters", "--bits"))
    parser.goes_without(("--block",), ("--list-parameters", "--bits", "--rejections"))
    parser.goes_without((*KERNEL_OPTIONS, *ranking, *shown, "--for", "--kernel", "--block"), ("--pareto",))
    parser.goes_without(
        (*ranking, "--files", *shown, "--kernel", "--block", "--shapes", "--pareto"), ("--batch", "--grouped")
    )
    parser.goes_without(("--tiling", "--sensitivity", "--top"), ("--shapes",))
    parser.goes_without((*ranking, *sample), ("--block",))
    parser.goes_without(("--distribution",), ("--files",))
    parser.goes_with(("--out",), ("--pareto", "--heat-map"))
    parser.goes_without(("--json",), ("--heat-map",))


def _add_choice(choice: argparse._ArgumentGroup) -> None:
    """What is planned."""
    add = choice.add_argument
    add("--shapes", metavar="FILE", help="plan every line of a file: M K N, with a name before it or not")
    add(
        "--kernel", default="grid", choices=PLAN_KERNELS,
        help="grid: cores over m, n and k; paper: SGEMM-cube's, row blocks only (grid)",
    )  # fmt: skip
    add(
        "--rank",
        default="time",
        choices=RANKS,
        help="by simulated time, by traffic, or by the closed forms alone (time)",
    )
    add("--top", type=int, default=10, help="plans shown (10)")
    add(
        "--simulate", type=int, metavar="COUNT",
        help=f"schedules simulated for --rank time, for each mode ({SIMULATED['grid']}; --kernel paper {SIMULATED['paper']})",
    )  # fmt: skip
    add(
        "--files", "--data", dest="data", nargs=2, metavar=("A", "B"),
        help="matrix files: the error (eq. 13) of each plan on them, computed as the chip would",
    )  # fmt: skip
    add(
        "--distribution", default="normal", choices=DISTRIBUTIONS,
        help="of the elements in the sampled error, without --data (normal)",
    )  # fmt: skip
    add("--max-error", type=float, metavar="E", help="leave out schedules with a larger error")
    add("--reach", type=float, metavar="BITS", help="bits that are asked for where ways are compared (FP32's)")
    add("--for", dest="target", choices=TARGETS, help="only schedules that this can say; its snippet is printed")
    add("--batch", type=int, metavar="COUNT", help="so many products of this size, each with its own A and B")
    add("--grouped", metavar="M1,M2,...", help="products with these m and the size's k and n (M is left out)")
    add("--block", metavar="BM,BK,BN", help="this block only: whether it fits, and its plan")


def _add_output(output: argparse._ArgumentGroup) -> None:
    """What is shown."""
    add = output.add_argument
    add("--pareto", action="store_true", help="time and bits on one front: what one more bit costs")
    add("--sensitivity", action="store_true", help="what 20 %% on each number of the chip changes")
    add("--explain", action="store_true", help="--kernel paper: what distinguishes the block from 96 and 192")
    add(
        "--tiling",
        action="store_true",
        help="AscendC fields and CATLASS shapes of the best plan as C++, and its buffers",
    )
    add("--bits", action="store_true", help="run every feasible block with the size's k: what changes the result")
    add("--rejections", action="store_true", help="the blocks next to the feasible space, and why not")
    add("--heat-map", action="store_true", help="the speed over (bm, bn) as a picture")
    add("--out", metavar="FOLDER", help="where --heat-map and --pareto write PNG, CSV and JSON (out)")
    add("--csv", metavar="FILE", help="write the plans as CSV")
    add("--json", action="store_true", help="print JSON instead of tables")
