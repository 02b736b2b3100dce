"""`mpgemm curve`: errors of methods against k, the operands' exponent or the condition number, with their spread."""

from mpgemm.options.parser import Parser
from mpgemm.options.run_options import add_output_arguments, add_run_arguments
from mpgemm.options.words import AXES, CURVE_SHAPE

QUESTION = "compare corrections"
SUMMARY = "errors of methods against k, exponent or condition number, with their spread"
EXAMPLES = (
    ("--over k 16 65536 --methods markidis@h100 ootomo@h100 fp32 --out out", "a picture with bands, PNG and SVG"),
    ("--over condition 1 1e12 --precision fp64 --methods fp64 ozaki_int8:slices=8@h100", "emulated FP64 beside DGEMM"),
)

#: Two methods that differ in where they add up, on every kind of unit; FP32 beside them.
METHODS = ("markidis@v100", "ootomo@v100", "markidis@h100", "ootomo@h100", "fp32")


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    from mpgemm.inputs import matrices  # its names are in the help of this command alone

    what = parser.add_argument_group("what to draw")
    add = what.add_argument
    add(
        "--over",
        nargs=3,
        default=["k", "16", "16384"],
        metavar=("AXIS", "LOW", "HIGH"),
        help=f"{', '.join(AXES)} and its ends (default k 16 16384)",
    )
    add("--points", type=int, default=6, metavar="N", help="values of the axis (default 6)")
    add(
        "--methods",
        nargs="+",
        default=list(METHODS),
        metavar="METHOD@ENGINE",
        help=f"curves: as for evaluate, or fp32, fp64 (default {' '.join(METHODS)})",
    )
    add("--distribution", metavar="NAME", help=f"operands: {', '.join(matrices.DISTRIBUTIONS)}")
    add("--param", nargs="+", default=[], metavar="KEY=VALUE", help="parameters of the distribution")
    add("--precision", choices=("fp32", "fp64"), default="fp32", help="of the operands (default fp32)")
    sizes = " ".join(map(str, CURVE_SHAPE))
    add(
        "--shape",
        nargs=3,
        type=int,
        default=list(CURVE_SHAPE),
        metavar=("M", "K", "N"),
        help=f"sizes (default {sizes}; k is that of --over where it runs)",
    )
    add("--seed", type=int, default=0, help="first seed (default 0)")
    add("--repeats", type=int, default=5, help="seeds, whose spread is the band (default 5)")
    add_run_arguments(parser)
    add_output_arguments(parser)
