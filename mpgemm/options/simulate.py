"""`mpgemm simulate`: a tile schedule in time, on the pipes of an Ascend core."""

from mpgemm.options.ascend_options import KERNEL_OPTIONS, add_shared_arguments
from mpgemm.options.parser import Parser
from mpgemm.options.words import KERNELS, RESIDENTS

QUESTION = "plan a block"
SUMMARY = "a tile schedule on the pipes of an Ascend core: speed, stalls, traces"
EXAMPLES = (
    ("--block 176,64,176 --trace trace.json", "one schedule; the trace opens in Perfetto"),
    ("4096 4096 4096 --chip 910B3 --waterfall", "where the time goes"),
    ("--published", "predictions beside published numbers"),
)


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    add_shared_arguments(parser)
    add = parser.add_argument_group("schedule and simulation").add_argument
    add("--block", metavar="BM,BK,BN", help="block sizes (176,64,176; --calibrate: the best plan's)")
    add("--kernel", choices=KERNELS, help="paper: SGEMM-cube's; grid; vector (paper; --calibrate: grid)")
    add("--grid", metavar="M,K,N", help="cores along m, k and n (--kernel grid or vector)")
    add("--resident", choices=RESIDENTS, help="the operand that stays in L1 (--kernel grid)")
    add("--swizzle", metavar="OFFSET,DIRECTION", help="order of the tiles where nothing is resident")
    add("--n-fused", type=int, metavar="COUNT", help="blocks of bk in a k group (as many as fit)")
    add("--reseed-l0c", action="store_true", help="start L0C from C in each k group after the first")
    add("--unit-flag", action="store_true", help="FIXPIPE drains a tile while the cube still fills it")
    add("--no-split", action="store_true", help="leave out the pass that splits A and B")
    add("--latency", default="pipelined", choices=("pipelined", "serial"))
    add("--all-cores", action="store_true", help="every core event by event")
    show = parser.add_argument_group("also show")
    add = show.add_argument
    add("--waterfall", action="store_true", help="from the peak to this speed, cause by cause")
    add("--bytes", action="store_true", help="the schedule's bytes beside eq. 9, factor by factor")
    add("--sensitivity", action="store_true", help="what 20 %% on each number changes")
    add("--sweep", metavar="PARAMETER=V1,V2,...", help="speed over values of a chip parameter")
    add("--published", action="store_true", help="the published speeds and times beside this model's")
    files = parser.add_argument_group("files")
    add = files.add_argument
    add(
        "--calibrate",
        metavar="PROFILE.csv",
        help="fit the free parameters to an op_summary file of msprof; the residuals",
    )
    add("--trace", metavar="FILE", help="Chrome/Perfetto trace of core 0 (JSON)")
    add(
        "--trace-operations",
        type=int,
        default=100_000,
        metavar="COUNT",
        help="operations in the trace at most (100000)",
    )
    add("--gantt", metavar="FILE", help="picture of the pipes where a C block leaves")
    add("--ping-pong", metavar="FILE", help="picture of single beside double buffers, block by block")
    add("--occupancy", metavar="FILE", help="picture of the buffers in use")
    add("--waterfall-plot", metavar="FILE", help="picture of the waterfall")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    _state_what_goes_together(parser)
    parser.moved("--figure", "mpgemm reproduce xue10, xue11 or xue12")


def _state_what_goes_together(parser: Parser) -> None:
    """Which options have no effect beside others: none is ignored."""
    schedule = ("--kernel", "--grid", "--resident", "--swizzle", "--n-fused", "--unit-flag")
    run = ("--reseed-l0c", "--no-split", "--latency", "--all-cores")
    shown = ("--waterfall", "--bytes", "--sensitivity", "--sweep")
    files = ("--trace", "--trace-operations", "--gantt", "--ping-pong", "--occupancy", "--waterfall-plot")
    one_run = (*schedule, *run, *shown, *files)
    parser.goes_without(
        (*one_run, *KERNEL_OPTIONS, "--block", "size", "--chip", "--calibrated", "--set", "--calibrate"),
        ("--published",), "one run",
    )  # fmt: skip
    parser.goes_without(
        (*run, *shown, *files, "size", "--terms", "--mode", "--operand", "--presplit"), ("--calibrate",),
        "one run: the profile says sizes and operands",
    )  # fmt: skip
    parser.goes_without((*one_run, *KERNEL_OPTIONS, "--block", "--calibrate", "--published"), ("--list-parameters",))
    parser.goes_with(("--trace-operations",), ("--trace",))
