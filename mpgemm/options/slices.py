"""`mpgemm slices`: how many integer slices or moduli does this product need, and what do they cost?"""

from mpgemm.options.matrices import add_matrix_arguments
from mpgemm.options.parser import Parser
from mpgemm.options.words import COST_DEVICES, COUNTED_METHODS

QUESTION = "compare corrections"
SUMMARY = "how many integer slices or moduli a product needs, proved and measured"
EXAMPLES = (
    ("A.npy B.npy", "how many slices until emulated FP64 is as good as DGEMM here?"),
    ("A.npy B.npy --target 40 --engine b300 h100", "or 40 bits, and what that costs on two devices"),
)


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    add_matrix_arguments(parser, "normal 64 x 256 x 64")
    add = parser.add_argument
    add(
        "--target",
        default="fp64",
        metavar="fp64|fp32|BITS",
        help="the accuracy of DGEMM (default) or SGEMM on these matrices, or bits of |A||B|",
    )
    add(
        "--methods",
        nargs="+",
        default=list(COUNTED_METHODS),
        metavar="NAME",
        help=f"default {' '.join(COUNTED_METHODS)}",
    )
    add(
        "--engine",
        "--engines",
        nargs="+",
        default=list(COST_DEVICES),
        metavar="DEVICE",
        help=f"devices whose costs are told (default {' '.join(COST_DEVICES)})",
    )
    add("--output", choices=("fp64", "fp32"), help="format of the results (default: the target's)")
    add("--json", action="store_true", help="print JSON")
    add("--csv", action="store_true", help="print CSV")
    add("--quiet", action="store_true", help="no progress on a terminal")
    parser.goes_without(("--csv",), ("--json",))
