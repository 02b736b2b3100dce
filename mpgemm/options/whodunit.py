"""`mpgemm whodunit`: which instruction, order of k, recovery method or CPU kernel gives a result bit for bit."""

from mpgemm.options.parser import Parser
from mpgemm.options.scale_options import add_scale_arguments

QUESTION = "debug a kernel"
SUMMARY = "which GPU's arithmetic, order of k or recovery method made these bits?"
EXAMPLES = (
    ("A.npy B.npy C.npy", "which instruction, order of k or method made C?"),
    ("A.npy B.npy C.npy --format e4m3fn", "operands are encodings of FP8"),
    (
        "A.npy B.npy C.npy --gpu h100 --library cublaslt-13.1 --config ALGO_ID=66,STAGES_ID=35",
        "a library's kernel among the candidates",
    ),
)


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    add = parser.add_argument
    for name, text in (("a", "A"), ("b", "B"), ("c", "the result")):
        add(name, metavar=name.upper(), help=f"matrix file: {text}")
    add("--format", metavar="FORMAT", help="format of A and B where their files hold encodings (unsigned integers)")
    add("--out-format", metavar="FORMAT", help="format of C where its file holds encodings")
    add("--addend", metavar="FILE", help="C0, where the result is A B + C0")
    add("--methods", nargs="+", metavar="NAME", help="only these recovery methods (default: all)")
    add("--gpu", help="the device asked about (h100, rtx4060, ...): what it computes comes first, by its name")
    add_scale_arguments(parser)
    library = parser.add_argument_group("a library's kernel on that device, to try as well")
    add = library.add_argument
    add("--library", metavar="NAME[-VERSION]", help="cublaslt-13.1 (torch.matmul-13.1), scaled_mm or cutlass")
    add("--config", nargs="+", default=[], metavar="FIELD=VALUE", help="as --config of predict")
    parser.goes_with(("--config",), ("--library",))
    parser.goes_with(("--library",), ("--gpu",))
    add = parser.add_argument
    add("--quiet", action="store_true", help="no progress on standard error")
    add("--json", action="store_true", help="print JSON")
