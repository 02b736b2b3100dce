"""`mpgemm predict`: what a GPU library returns for two matrices, predicted bit for bit."""

from mpgemm.options import library_options
from mpgemm.options.library_options import RECORDED_CHOICES
from mpgemm.options.parser import Parser
from mpgemm.options.scale_options import add_scale_arguments

QUESTION = "debug a kernel"
SUMMARY = "what a GPU library returns for two matrices, bit for bit"
EXAMPLES = (
    (
        "A.npy B.npy --gpu h100 --library cublaslt-13.1 --config ALGO_ID=66,STAGES_ID=35 --format fp16 --input-rounding rne",
        "the bits that cuBLASLt returns",
    ),
)


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    add = parser.add_argument
    add("a", metavar="A", help="matrix file: .npy, .npz, .mtx or .safetensors")
    add("b", metavar="B", help="matrix file")
    add("--gpu", required=True, help="device: h100, b200, gb200, b300, gb300, rtx4060, a100, ...")
    add("--library", metavar="NAME[-VERSION]",
                        help="cublaslt-13.1 (also as cublas-13.1, torch.matmul-13.1), scaled_mm (torch._scaled_mm) or cutlass; "
                        "without, the command says what each needs")  # fmt: skip
    add("--config", nargs="+", default=[], metavar="FIELD=VALUE",
                        help="cublaslt: ALGO_ID, STAGES_ID, SPLITK_NUM, REDUCTION_SCHEME, CUSTOM_OPTION; scaled_mm: "
                        "fast_accumulation, "
                        "split_k, scheme; cutlass: tile_k, split_k, split_mode, grain, sliced_k, residue")  # fmt: skip
    add("--recorded", metavar="FILE", help="what cuBLASLt's heuristic chose, recorded where the GPU is; "
                        f"for scaled_mm: mmaemu, the {RECORDED_CHOICES}")  # fmt: skip
    library_options.add_format_arguments(parser)
    add("--scale", type=float, default=1.0, help="one FP32 factor (fp8: the product of both scales)")
    add_scale_arguments(parser)
    parser.goes_without(("--scale-a", "--scale-b"), ("--scale",))
    add("--out", metavar="FILE", help="write the result: .npy, encodings for formats that NumPy lacks")
    add("--picture", metavar="FILE.svg", help="draw the order of the recipe's sum")
    add("--json", action="store_true", help="print JSON")
