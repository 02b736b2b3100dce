"""`mpgemm check OUT A B`: is a kernel's result right, and if not, what kind of bug looks like it?"""

from mpgemm.options.parser import Parser
from mpgemm.options.scale_options import add_scale_arguments

QUESTION = "debug a kernel"
SUMMARY = "is a kernel's result right on this unit, and if not, what kind of bug looks like it?"
EXAMPLES = (
    ("out.npy A.npy B.npy --engine h100", "a test fails: why?"),
    (
        "scaled.npy A.npy B.npy --scale-a SA.npy --scale-b SB.npy --promote-every 128",
        "scales by their shapes; sums outside every 128 products",
    ),
    ("out.npy A.npy B.npy --k-order any --promote-every 64:512", "little is known of the kernel"),
    (
        "q.npy QA.npy QB.npy --scale-a 0.1 --scale-b 0.2 --scale-out 8 --zero-a 3",
        "integers with a zero point, requantised",
    ),
)


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    add = parser.add_argument
    for name, text in (("out", "the kernel's result"), ("a", "A"), ("b", "B")):
        add(name, metavar=name.upper(), help=f"matrix file: {text}")
    add("--engine", default="h100", help="device (h100), path (h100/mma) or arch:name (default h100)")
    add("--format", metavar="FORMAT", help="format of A and B where their files hold encodings (unsigned integers)")
    add("--out-format", metavar="FORMAT", help="format of OUT where its file holds encodings")
    add("--c", metavar="FILE", help="C (a bias), added to the product")
    add_scale_arguments(parser)
    add_order_arguments(parser)
    integers = parser.add_argument_group("outputs of integers")
    add = integers.add_argument
    for name in ("zero-a", "zero-b", "zero-out"):
        add(f"--{name}", type=int, metavar="Z", help=f"zero point of {name[5:].upper()}")
    add("--scale-out", type=float, metavar="X", help="scale of an output of 8 bits")
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_order_arguments(parser) -> None:
    """The orders of k that a kernel may have."""
    add = parser.add_argument
    add("--splits", type=int, default=1, metavar="S", help="chains of k at most, added up outside (default 1)")
    add("--k-order", metavar="ORDER", help="sequential, split_k:S, sliced_k:S, or any: the unit's steps in any order")
    add(
        "--promote-every",
        metavar="N|LEAST:MOST",
        help="the kernel adds up in FP32 outside of the unit every N products",
    )
