"""`mpgemm explain`: one dot product step by step and where its error comes from, or why two engines differ on it."""

from mpgemm.options.parser import Parser
from mpgemm.options.scale_options import add_scale_arguments

QUESTION = "debug a kernel"
SUMMARY = "one recovered dot product step by step, and where its error comes from"
EXAMPLES = (
    ("", "Valpey et al., table 5: every step and every bit"),
    ("ootomo --engine a100 --a 1.5 2 --b 0.25 3", "your own dot product"),
    ("markidis --files A.npy B.npy --element 3 7 --attribution-only", "where one result's error comes from"),
    ("--engine a100 h100 --distribution normal --k 1024", "why do two GPUs differ?"),
    ("fp16 --engine v100 --a 1 -1e-3 2^-12 --b 1 1 1/3", "numbers in any notation"),
)


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    add = parser.add_argument
    add(
        "method",
        metavar="METHOD",
        nargs="?",
        help="method, with options as in ootomo:terms=4 (default ootomo; with two engines their plain product)",
    )
    add(
        "--engine",
        nargs="+",
        default=[],
        metavar="ENGINE",
        help="arch:name, a device, or ieee (default: the method's); two: why do they differ?",
    )
    add("--format", metavar="FORMAT", help="operands of the plain product: half, bf16, tf32, fp8, ...")
    source = parser.add_argument_group("dot product (default: Valpey et al., table 5)")
    add = source.add_argument
    add("--a", nargs="+", metavar="X", help="elements of the row of A: -1e-3, 1/3, 2^-12, 0x1.8p-4")
    add("--b", nargs="+", metavar="X", help="elements of the column of B")
    add(
        "--c",
        metavar="X|FILE|NAME",
        help="c: a number; with --files or --distribution also a matrix file or distribution",
    )
    add("--files", nargs=2, metavar="FILE", help="A and B instead; see --element")
    add("--distribution", metavar="NAME", help="generate A and B instead; see --element")
    add("--k", type=int, help="length of a generated dot product (default 8)")
    add("--seed", type=int, default=0, help="seed of a generated one")
    add(
        "--element",
        nargs=2,
        type=int,
        metavar=("I", "J"),
        help="which element of the product (default 0 0; with two engines the first that differs)",
    )
    add = parser.add_argument
    add("--all", action="store_true", help="every step of a long dot product, not only those that matter")
    add("--attribution-only", action="store_true", help="only where the error comes from")
    add("--json", action="store_true", help="print JSON")
    add_scale_arguments(source)
    parser.goes_with(("--scale-a", "--scale-b"), ("--a", "--files", "--distribution"))
    parser.goes_without(("--scale-a", "--scale-b"), ("method", "--c", "--attribution-only", "--all"))
    parser.goes_without(("--format",), ("method",))
    parser.goes_with(("--a",), ("--b",))
    parser.goes_with(("--b",), ("--a",))
    parser.goes_with(("--k", "--seed"), ("--distribution",))
    parser.goes_with(("--element",), ("--files", "--distribution"))
    parser.goes_without(("--all",), ("--attribution-only", "--json"))
