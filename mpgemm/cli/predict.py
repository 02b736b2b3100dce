"""`mpgemm predict`: what a GPU library, or a compiled kernel, returns for two matrices, predicted bit for bit."""

from __future__ import annotations

import argparse
from hashlib import sha256
from typing import TYPE_CHECKING

import tensorcore_models as tcm
from mpgemm.cli.common import library_options
from mpgemm.cli.common import library_options as options
from mpgemm.cli.common.kernel_options import LAUNCH, add_launch_arguments, kernel_recipe
from mpgemm.cli.common.library_names import which_library
from mpgemm.cli.common.library_options import RECORDED_CHOICES
from mpgemm.cli.common.parser import Parser
from mpgemm.cli.common.run_options import add_style_argument
from mpgemm.cli.common.scale_options import add_scale_arguments, scales_of
from mpgemm.reporting import report

if TYPE_CHECKING:
    from tensorcore_models.libraries import Recipe

QUESTION = "debug a kernel"
SUMMARY = "what a GPU library, or a compiled kernel, returns for two matrices, bit for bit"
EXAMPLES = (
    (
        "A.npy B.npy --gpu h100 --library cublaslt-13.1 --config ALGO_ID=66,STAGES_ID=35 --format fp16 --input-rounding rne",
        "the bits that cuBLASLt returns",
    ),
    (
        "A.npy B.npy --kernel gemm.s --arguments fp16:64x64 fp16:64x64 fp32:64x64 64 64 64",
        "in the order of k that is read from a kernel, for A with as many columns",
    ),
)


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    add = parser.add_argument
    add("a", metavar="A", help="matrix file: .npy, .npz, .mtx or .safetensors")
    add("b", metavar="B", help="matrix file")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--gpu", help="device: h100, b200, gb200, b300, gb300, rtx4060, a100, ...; needed without --kernel"
    )
    which.add_argument(
        "--kernel", metavar="FILE", help="instead of a library's: a kernel (PTX, AMDGCN) whose recipe is read"
    )
    add_launch_arguments(parser)
    parser.goes_with(LAUNCH, ("--kernel",))
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
    parser.goes_without(("--library", "--config", "--recorded", "--scale", "--scale-a", "--scale-b"), ("--kernel",))
    add("--out", metavar="FILE", help="write the result: .npy, encodings for formats that NumPy lacks")
    add("--picture", metavar="FILE.svg", help="draw the order of the recipe's sum: .svg, .png or .pdf")
    add_style_argument(parser)
    parser.goes_with(("--style",), ("--picture",))
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status.

    Raises ValueError, TypeError, OSError on bad input; what nobody has measured is named with what is known.
    """
    import numpy as np

    from mpgemm.inputs.files import write_matrix
    from tensorcore_models.engines.scaling import read_scales
    from tensorcore_models.formats.operands import values_of_bits
    from tensorcore_models.orders.trees import tree_of_order

    a, b, fmt, out_format = options.read_operands(args)
    config = options.parse_config(args.config)
    (m, k), n = a.shape, b.shape[1]
    recipe, assumptions = _recipe(args, config, (m, k, n), fmt, out_format)
    if args.kernel is not None and args.out_format is None:
        out_format = recipe.epilogue.formats[0]
    scaling = read_scales(**scales_of(args), m=m, k=k, n=n)
    if scaling is None:
        bits = recipe.gemm_bits(a, b, out_format=out_format, scale=args.scale)
    else:
        bits = recipe.scaled_bits(a, b, scaling, out_format=out_format)
    values = values_of_bits(bits, tcm.get_format(out_format))
    native = values if values.dtype.kind == "f" and values.dtype.isbuiltin == 1 else bits
    if args.out:
        write_matrix(args.out, native)
    if args.picture:
        drawn = tree_of_order(recipe.order).picture(args.picture, f"Order of {recipe.name}", shown=4)
    digest = sha256(np.ascontiguousarray(bits).tobytes()).hexdigest()
    if args.json:
        whole = {"recipe": options.facts(recipe, config, args.recorded), "assumptions": list(assumptions), "m": m, "k": k,
                 "n": n, "format": fmt, "out_format": out_format,
                 "scales": None if scaling is None else scaling.in_words(),
                 "sha256": digest, "first": float(values[0, 0]), "out": args.out}  # fmt: skip
        print(report.json_text(whole), end="")
        return 0
    report.say("\n".join([str(recipe), *(f"  assumed: {each}" for each in assumptions)]))
    if scaling is not None:
        report.say(f"  scales: {scaling.in_words()}")
    report.say(
        f"\npredicted result: {m} x {n} in {out_format}, first element {float(values[0, 0]):.9g} "
        f"({int(bits[0, 0]):#x}), sha256 {digest[:16]}"
    )
    if recipe.lost.size:
        report.say(
            f"warning: this kernel leaves the last {recipe.lost.size} values of k out of the sum, and so does the prediction"
        )
    if args.picture:
        print(f"wrote {', '.join(drawn)}")
    if args.out:
        print(f"wrote {args.out}" + ("" if native is values else f" (encodings of {out_format})"))
    return 0


def _recipe(
    args: argparse.Namespace, config: dict[str, str], sizes: tuple[int, int, int], fmt: str, out_format: str
) -> tuple[Recipe, tuple[str, ...]]:
    """The recipe of --kernel or of --library, and what it rests on."""
    if args.kernel is not None:
        return kernel_recipe(args, fmt)
    if args.library is None:
        raise ValueError(which_library(args.gpu))
    return options.make_recipe(args.gpu, args.library, config, args.recorded, *sizes, fmt, out_format), ()
