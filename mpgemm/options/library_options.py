"""What the commands on GPU libraries share: operands in a library's formats, and recipes from options."""

import argparse

#: How to learn what cuBLASLt chose.
RECORD = (
    "`python -m tensorcore_models.hardware.libraries.cublaslt_heuristic --device h100 --format fp16 --shape M K N --out "
    "chosen.json` where the GPU is"
)
#: How to get the recorded choices of torch._scaled_mm.
RECORDED_CHOICES = "choices recorded by the package mmaemu: pip install --no-deps mmaemu"


def add_format_arguments(parser: argparse.ArgumentParser, out_default: str = "that of A; fp8: bf16") -> None:
    """Formats of operands and output."""
    add = parser.add_argument
    add("--format", metavar="FORMAT", help="format of A and B (default: that of their arrays); unsigned "
                        "integers of its width are encodings")  # fmt: skip
    add(
        "--input-rounding",
        metavar="MODE",
        help="round values that the format lacks (rne, rz, ...); default: refuse them",
    )
    add("--out-format", metavar="FORMAT", help=f"format of the result (default: {out_default})")
