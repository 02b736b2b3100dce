"""`mpgemm advise-promotion`: how often to add a chain up outside of the core, and what each interval costs and brings."""

from mpgemm.options.matrices import add_matrix_arguments
from mpgemm.options.parser import Parser

QUESTION = "evaluate a scheme"
SUMMARY = "how often to add up outside of the core: error, bound, cost"
EXAMPLES = (
    ("A.npy B.npy --engine h100", "error, bound and cost of every interval"),
    ("--engine h100 --wanted 1e-4 --shape 1 7168 64", "the interval that a wanted error needs"),
    ("--engine a100 --format half --distribution uniform_nonnegative", ""),
)


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    add_matrix_arguments(parser, "normal 64 x 4096 x 64")
    add = parser.add_argument
    add("--engine", default="h100", help="device (default h100), path (h100/mma) or arch:name")
    add("--format", metavar="FORMAT", help="operands of a device's unit (default: fp8 if it has that, else fp16)")
    add("--wanted", type=float, metavar="ERROR", help="relative error of the sums that is wanted")
    add("--intervals", nargs="+", type=int, metavar="Q", help="products (default 16, 32, ..., 4096)")
    add("--no-scale", action="store_true", help="leave operands of narrow formats unscaled")
    add("--json", action="store_true", help="print JSON")
    add("--quiet", action="store_true", help="no progress on a terminal")
