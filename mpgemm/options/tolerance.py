"""`mpgemm tolerance`: what a test of a kernel may allow, certified and by sampling, and what a given tolerance would miss."""

from mpgemm.options.check import add_order_arguments
from mpgemm.options.matrices import add_matrix_arguments
from mpgemm.options.parser import Parser
from mpgemm.options.scale_options import add_scale_arguments
from mpgemm.options.words import TOLERANCE_SHAPE

QUESTION = "debug a kernel"
SUMMARY = "what a kernel's test may allow, and what a tolerance would miss"
EXAMPLES = (
    ("--engine h100 --k 512", "what may a test of this kernel allow?"),
    ("--engine h100 --format fp8 --reference rounded --k 512", "against the product of the rounded operands"),
    ("--engine a100 --format bf16 --out-format bf16 A.npy B.npy", "on your data"),
    ("--method ootomo --engine a100 --shipped digits", "of a recovery method"),
    ("--engine h100 --k 512 --check-rtol 1e-2 --check-atol 1e-2", "what would this tolerance miss?"),
)

K = 1024


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    what = parser.add_argument_group("what is tested")
    add = what.add_argument
    add("--engine", help="device (h100), path (h100/mma) or arch:name; default h100, or the method's own")
    add("--format", metavar="FORMAT", help="operands of a device's unit: half, bf16, tf32, fp8, ... (default fp16)")
    add("--method", metavar="NAME", help="a recovery method instead of the plain product")
    add("--out-format", metavar="FORMAT", help="the kernel rounds its result to this format (bf16, fp16, ...)")
    add_order_arguments(what)
    add(
        "--reference",
        choices=("given", "rounded"),
        default="given",
        help="the test computes its expected result from the operands as given (default), or as rounded for the kernel",
    )
    source = add_matrix_arguments(parser, f"normal, {TOLERANCE_SHAPE[0]} x {K} x {TOLERANCE_SHAPE[1]}", k=True)
    source.add_argument("--c", metavar="FILE", help="C, added to the product of two files")
    add_scale_arguments(source)
    parser.goes_with(("--scale-a", "--scale-b"), ("files",), "two matrix files")
    parser.goes_without(("--k-order", "--splits", "--promote-every"), ("--method",))
    how = parser.add_argument_group("how sure")
    add = how.add_argument
    add("--quantile", type=float, default=0.99, help="share of whole products that pass (default 0.99)")
    add("--confidence", type=float, default=0.95, help="confidence of that share (default 0.95)")
    check = parser.add_argument_group("judge a tolerance")
    add = check.add_argument
    add("--check-rtol", type=float, metavar="RTOL", help="relative part, as of numpy.allclose")
    add("--check-atol", type=float, metavar="ATOL", help="absolute part")
    add = parser.add_argument
    add("--quiet", action="store_true", help="no progress on standard error")
    add("--json", action="store_true", help="print JSON")
