"""`mpgemm check OUT A B`: is a kernel's result right, and if not, what kind of bug looks like it?"""

from mpgemm.options.parser import Parser
from mpgemm.options.scale_options import add_scale_arguments


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    for name, text in (("out", "the kernel's result"), ("a", "A"), ("b", "B")):
        parser.add_argument(name, metavar=name.upper(), help=f"matrix file: {text}")
    parser.add_argument("--engine", default="h100", help="device (h100), path (h100/mma) or arch:name (default h100)")
    parser.add_argument(
        "--format", metavar="FORMAT", help="format of A and B where their files hold encodings (unsigned integers)"
    )
    parser.add_argument("--out-format", metavar="FORMAT", help="format of OUT where its file holds encodings")
    parser.add_argument("--c", metavar="FILE", help="C (a bias), added to the product")
    add_scale_arguments(parser)
    add_order_arguments(parser)
    integers = parser.add_argument_group("outputs of integers")
    for name in ("zero-a", "zero-b", "zero-out"):
        integers.add_argument(f"--{name}", type=int, metavar="Z", help=f"zero point of {name[5:].upper()}")
    integers.add_argument("--scale-out", type=float, metavar="X", help="scale of an output of 8 bits")
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_order_arguments(parser) -> None:
    """The orders of k that a kernel may have."""
    parser.add_argument(
        "--splits", type=int, default=1, metavar="S", help="chains of k at most, added up outside (default 1)"
    )
    parser.add_argument(
        "--k-order", metavar="ORDER", help="sequential, split_k:S, sliced_k:S, or any: the unit's steps in any order"
    )
    parser.add_argument(
        "--promote-every",
        metavar="N|LEAST:MOST",
        help="the kernel adds up in FP32 outside of the unit every N products",
    )
