"""`mpgemm predict` predicts bit for bit what a GPU library, or a compiled kernel, returns for two matrices."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import tensorcore_models as tcm
from mpgemm.cli.common import library_options as options
from mpgemm.cli.common.kernel_options import LAUNCH, add_launch_arguments, kernel_recipe
from mpgemm.cli.common.operand_options import add_scale_arguments, scales_of
from mpgemm.cli.common.parser import Parser
from mpgemm.cli.common.profile_options import BESIDE, add_profile_arguments
from mpgemm.cli.common.run_options import add_style_argument
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import fitted

if TYPE_CHECKING:
    import numpy as np

    from tensorcore_models.libraries import Recipe

QUESTION = "debug a kernel"
SUMMARY = "predict what a GPU library, or a compiled kernel, returns for two matrices, bit for bit"
EXAMPLES = (
    (
        "A.npy B.npy --gpu h100 --library cublaslt-13.1 --config ALGO_ID=66,STAGES_ID=35 --operands fp16 --input-rounding rne",
        "the bits that cuBLASLt returns",
    ),
    (
        "A.npy B.npy --gpu h100 --profile products.jsonl --rows nt",
        "the bits of a product whose kernel and configuration were recorded on the GPU",
    ),
    (
        "A.npy B.npy --kernel gemm.s --arguments fp16:64x64 fp16:64x64 fp32:64x64 64 64 64",
        "the bits of a compiled kernel, whose order of additions is read from its text",
    ),
)


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    add("a", metavar="A", help="matrix file of A: .npy, .npz, .mtx, .csv, .safetensors or .pt")
    add("b", metavar="B", help="matrix file of B, of one of the same kinds")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--gpu", help="device on which the library ran: h100, b200, gb200, b300, gb300, rtx4060, a100, ..."
    )
    which.add_argument(
        "--kernel",
        metavar="FILE",
        help="file of a compiled kernel (PTX, AMDGCN), whose order of additions is read from its text, in place of a "
        "library's kernel",
    )
    add_launch_arguments(parser)
    parser.goes_with(LAUNCH, ("--kernel",))
    add("--library", metavar="NAME[-VERSION]",
                        help="library whose kernel ran: cublaslt-13.1, cublaslt-13.0, scaled_mm or cutlass. "
                        "Names of libraries and calls that use them stand for them: cublas-13.1, "
                        "torch.matmul-13.1, torch._scaled_mm. Without this option the command lists the "
                        "options that each library needs"
                        )  # fmt: skip
    add("--config", nargs="+", default=[], metavar="FIELD=VALUE",
                        help="configuration of the library's kernel. cublaslt: ALGO_ID, STAGES_ID, SPLITK_NUM, "
                        "REDUCTION_SCHEME, CUSTOM_OPTION (13.0 on h100 also algoId, stages, numSplitsK, reductionScheme, "
                        "customOption, with layout); scaled_mm: fast_accumulation, split_k, scheme; cutlass: tile_k, split_k, "
                        "split_mode, grain, sliced_k, residue")  # fmt: skip
    add("--recorded", metavar="FILE", help="file of the configurations that cuBLASLt's heuristic chose, recorded "
    "where the GPU is. With --library scaled_mm, give the word mmaemu, "
    f"which stands for {options.RECORDED_CHOICES}")  # fmt: skip
    add_profile_arguments(parser)
    parser.goes_with(BESIDE, ("--profile",))
    parser.goes_without(("--library", "--config", "--recorded"), ("--profile",))
    options.add_format_arguments(parser)
    add(
        "--scale",
        type=float,
        default=1.0,
        help="FP32 factor of the result, for FP8 the product of the scales of A and B (default 1)",
    )
    add_scale_arguments(parser)
    parser.goes_without(("--scale-a", "--scale-b"), ("--scale",))
    library = ("--library", "--config", "--recorded", "--profile", "--scale", "--scale-a", "--scale-b")
    parser.goes_without(library, ("--kernel",))
    add("--out", metavar="FILE", help="write the result to a .npy file (encodings for formats that NumPy lacks)")
    add("--picture", metavar="FILE.svg", help="draw the order in which the kernel adds products: .svg, .png or .pdf")
    add_style_argument(parser)
    parser.goes_with(("--style",), ("--picture",))
    add("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> Output:
    """Carry out the command.

    Raises ValueError, TypeError, OSError on bad input. For a case that was not measured the message lists the known ones.
    """
    import numpy as np

    from mpgemm.inputs.files import write_matrix
    from tensorcore_models.formats.operands import values_of_bits
    from tensorcore_models.orders.trees import tree_of_order

    found = _profiled(args) if args.profile is not None else _predicted(args)
    bits, recipe, assumptions, out_format = found.bits, found.recipe, found.assumptions, found.out_format
    (m, n), k = bits.shape, recipe.k
    values = values_of_bits(bits, tcm.get_format(out_format))
    native = values if values.dtype.kind in "fi" and values.dtype.isbuiltin == 1 else bits
    if args.out:
        write_matrix(args.out, native)
    if args.picture:
        drawn = tree_of_order(recipe.order).picture(args.picture, f"Order of {recipe.name}", shown=4)
    digest = sha256(np.ascontiguousarray(bits).tobytes()).hexdigest()
    first = float(values[0, 0])
    whole = {"recipe": options.facts(recipe, options.parse_config(args.config), args.recorded),
             "assumptions": list(assumptions), "m": m, "k": k, "n": n, "format": found.format, "out_format": out_format,
             "scales": found.scales, "sha256": digest, "first": first, "out": args.out}  # fmt: skip
    said = [str(recipe), *(f"  assumed: {each}" for each in assumptions)]
    if found.scales is not None:
        said.append(f"  scales: {found.scales}")
    said.append(
        f"\npredicted result: {m} x {n} in {out_format}, first element {first:.9g} ({int(bits[0, 0]):#x}), "
        f"sha256 {digest[:16]}"
    )
    if recipe.lost.size:
        said.append(
            f"warning: this kernel omits the last {recipe.lost.size} products of each sum, and the prediction omits them, too"
        )
    written = [f"wrote {', '.join(drawn)}"] if args.picture else []
    if args.out:
        written.append(f"wrote {args.out}" + ("" if native is values else f" (encodings of {out_format})"))
    return Output(whole, [*map(fitted, said), *written])


@dataclass(frozen=True)
class _Prediction:
    """`_Prediction` holds the encodings of the result, the recipe, and the assumptions on which they rest."""

    bits: np.ndarray
    recipe: Recipe
    assumptions: tuple[str, ...]
    format: str
    out_format: str
    scales: str | None


def _profiled(args: argparse.Namespace) -> _Prediction:
    """Return the prediction for a product that a profile records."""
    from mpgemm.cli.common.profile_options import bits_of, one_profiled
    from mpgemm.inputs.files import read_matrix
    from tensorcore_models.formats import operand_format

    matrices = [read_matrix(path, encodings=True) for path in (args.a, args.b)]
    (m, k), (rows, n) = (x.shape for x in matrices)
    stored = matrices[0].dtype if args.format is None else None
    if k != rows:
        raise ValueError(
            f"A is {(m, k)} and B is {(rows, n)}, expected as many columns of A as rows of B: check the files' order"
        )
    asked = [None if name is None else operand_format(name).name for name in (args.format, args.out_format)]
    row, product = one_profiled(args.profile, args.gpu, (m, k, n), args, formats=asked, stored=stored)
    operands = zip((args.a, args.b), product.recipe.operand_formats, strict=True)
    a, b = (options.read_operand(path, fmt, args.input_rounding)[0] for path, fmt in operands)
    bits = bits_of(product, a, b, scales_of(args), args.scale)
    assumptions = [f"the product ran as the row {row.get('name') or row.get('op')!r} of {args.profile} says"]
    assumptions += [product.assumed] if product.assumed else []
    scales = None if product.profile.scales is None else product.scale_words
    return _Prediction(bits, product.recipe, tuple(assumptions), product.profile.formats[0], product.out_format, scales)


def _predicted(args: argparse.Namespace) -> _Prediction:
    """Return the prediction for a library's kernel, or for a compiled kernel."""
    from tensorcore_models.engines.scaling import read_scales

    rounds = options.rounds_operands(args.gpu, args.library)
    a, b, fmt, out_format = options.read_operands(args, library_rounds=rounds)
    (m, k), n = a.shape, b.shape[1]
    recipe, assumptions = _recipe(args, options.parse_config(args.config), (m, k, n), fmt, out_format)
    if args.kernel is not None and args.out_format is None:
        out_format = recipe.epilogue.formats[0]
    scaling = read_scales(**scales_of(args), m=m, k=k, n=n)
    if scaling is None:
        bits = recipe.gemm_bits(a, b, out_format=out_format, scale=args.scale)
        return _Prediction(bits, recipe, assumptions, fmt, out_format, None)
    bits = recipe.scaled_bits(a, b, scaling, out_format=out_format)
    return _Prediction(bits, recipe, assumptions, fmt, out_format, scaling.on(recipe.engine).in_words())


def _recipe(
    args: argparse.Namespace, config: dict[str, str], sizes: tuple[int, int, int], fmt: str, out_format: str
) -> tuple[Recipe, tuple[str, ...]]:
    """Return the recipe of --kernel or of --library, and the assumptions on which it rests."""
    if args.kernel is not None:
        return kernel_recipe(args, fmt)
    if args.library is None:
        raise ValueError(options.which_library(args.gpu))
    from tensorcore_models.libraries.recorded import Problem

    m, k, n = sizes
    recipe = options.make_recipe(args.gpu, args.library, config, Problem(fmt, out_format, k, n, m), args.recorded)
    return recipe, options.cutlass_assumptions(args.library, config, recipe)
