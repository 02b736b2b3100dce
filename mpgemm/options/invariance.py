"""`mpgemm invariance`: do rows of a GEMM change their bits with the batch size, and with which change of recipe?"""

import argparse

from mpgemm.options.library_options import RECORD

QUESTION = "debug a kernel"
SUMMARY = "do rows of a GEMM change their bits with the batch size on a GPU library?"
EXAMPLES = (
    ("--recorded chosen.json", "which weights' rows change their bits with the batch?"),
    (
        "--gpu h100 --library cublaslt-13.1 --shape 4096 4096 --config 1:ALGO_ID=13,CUSTOM_OPTION=42 "
        "64:ALGO_ID=66,STAGES_ID=35",
        "the same for configurations that are known",
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--recorded", metavar="FILE", help=f"what cuBLASLt's heuristic chose, written by {RECORD}")
    add = parser.add_argument_group("or the configurations themselves").add_argument
    add("--gpu", help="device: h100, b200, gb200, b300 or gb300")
    add("--library", metavar="NAME-VERSION", help="cublaslt-13.1, also as torch.matmul-13.1")
    add("--shape", nargs=2, type=int, metavar=("K", "N"), help="of the weight matrix")
    add("--format", metavar="FORMAT", default="fp16", help="of the operands (default fp16)")
    add("--out-format", metavar="FORMAT", help="of the result (default: that of the operands; fp8: bf16)")
    add(
        "--config",
        nargs="+",
        default=[],
        metavar="M:FIELD=VALUE,...",
        help="a batch size and the configuration chosen for it",
    )
    add = parser.add_argument
    add("--seed", type=int, default=0, help="of the random rows on which recipes are compared")
    add("--json", action="store_true", help="print JSON")
