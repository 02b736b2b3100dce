"""`mpgemm reproduce`: figures and tables of papers, computed again."""

from mpgemm.options.ascend_options import add_chip_arguments
from mpgemm.options.evaluate import add_cube_arguments, add_method_arguments
from mpgemm.options.parser import Parser
from mpgemm.options.run_options import add_output_arguments, add_run_arguments
from mpgemm.options.solver_options import add_limit_arguments

QUESTION = "repeat a paper"
SUMMARY = "figures and tables of papers, computed again"
EXAMPLES = (
    ("--list", "what there is, from which paper, how long it takes"),
    ("xue8a xue8b --out out", "two figures of the SGEMM-cube paper: table, JSON, CSV, picture"),
    ("xue9b --step-orders sequential exact", "with another rounding inside of the cube's steps"),
    ("khattak7 --quick --out out", "fewer and smaller points"),
    ("xue11 --chip 910B3", "a figure about speed, for another chip"),
)


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="figures and tables; --list shows them")
    add("--list", action="store_true", help="what there is, from which paper, how long it takes")
    drawn = parser.add_argument_group("drawn matrices")
    add = drawn.add_argument
    add("--seed", type=int, metavar="N", help="first seed (default 0)")
    add("--repeats", type=int, metavar="N", help="number of seeds (default: the figure's own)")
    add("--quick", action="store_true", help="fewer and smaller points")
    add("--shape", nargs=3, type=int, metavar=("M", "K", "N"), help="sizes, where the figure does not sweep them")
    what = parser.add_argument_group("what figures 8 and 9 of the SGEMM-cube paper compare")
    add_method_arguments(what, "fp16, fp32, sgemm_cube")
    add_cube_arguments(what, "0 6 12", "sequential")
    what.add_argument(
        "--block",
        metavar="BM,BK,BN",
        help="block sizes on the 910A (default: all of k in one chain; fig. 12: 176,64,176)",
    )
    add_chip_arguments(parser)
    add_limit_arguments(parser.add_argument_group("SMT solvers"))
    add_run_arguments(parser)
    add_output_arguments(parser)
    shown = ("--list", "--json", "--csv", "-h", "--help")
    parser.goes_without(("names", *(name for name in parser._option_string_actions if name not in shown)), ("--list",))
