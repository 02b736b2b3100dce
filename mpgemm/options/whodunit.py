"""`mpgemm whodunit`: which instruction, order of k, recovery method or CPU kernel gives a result bit for bit."""

import argparse

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    for name, text in (("a", "A"), ("b", "B"), ("c", "the result")):
        parser.add_argument(name, metavar=name.upper(), help=f"matrix file: {text}")
    parser.add_argument(
        "--format", metavar="FORMAT", help="format of A and B where their files hold encodings (unsigned integers)"
    )
    parser.add_argument("--out-format", metavar="FORMAT", help="format of C where its file holds encodings")
    parser.add_argument("--addend", metavar="FILE", help="C0, where the result is A B + C0")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="only these recovery methods (default: all)")
    parser.add_argument(
        "--gpu", help="the device asked about (h100, rtx4060, ...): what it computes comes first, by its name"
    )
    add_scale_arguments(parser)
    library = parser.add_argument_group("a library's kernel on that device, to try as well")
    library.add_argument(
        "--library", metavar="NAME[-VERSION]", help="cublaslt-13.1 (torch.matmul-13.1), scaled_mm or cutlass"
    )
    library.add_argument("--config", nargs="+", default=[], metavar="FIELD=VALUE", help="as --config of predict")
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")
    parser.add_argument("--json", action="store_true", help="print JSON")
