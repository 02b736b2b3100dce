"""`mpgemm advise-promotion`: how often to add a chain up outside of the core, and what each interval costs and brings."""

from mpgemm.options.matrices import add_matrix_arguments
from mpgemm.options.parser import Parser


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    add_matrix_arguments(parser, "normal 64 x 4096 x 64")
    parser.add_argument("--engine", default="h100", help="device (default h100), path (h100/mma) or arch:name")
    parser.add_argument(
        "--format", metavar="FORMAT", help="operands of a device's unit (default: fp8 if it has that, else fp16)"
    )
    parser.add_argument("--wanted", type=float, metavar="ERROR", help="relative error of the sums that is wanted")
    parser.add_argument(
        "--intervals",
        nargs="+",
        type=int,
        metavar="Q",
        help="products (default 16, 32, ..., 4096)",
    )
    parser.add_argument("--no-scale", action="store_true", help="leave operands of narrow formats unscaled")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress on a terminal")
