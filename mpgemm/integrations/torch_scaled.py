"""Torch's products with scales, of groups, and of integers: `_scaled_mm`, `_scaled_mm_v2`, `_grouped_mm`, `_int_mm`.

One scale for each matrix is measured on two GPUs (:mod:`tensorcore_models.libraries.scaled_mm`). What others do is predicted
from public sources: factors of rows and columns as torch's kernel on CUTLASS applies them, which with `use_fast_accum` is one
chain and without it adds up in FP32 outside every 128 products on units of Hopper (CUTLASS promotes every four instructions);
blocks of 128 after each block; mx and nvfp4 inside of the unit.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import torch

from mpgemm.integrations.multiplier import Multiplier, Product, recipe_values
from mpgemm.integrations.torch_tensors import format_of, to_array, to_tensor
from mpgemm.recovery.engines import scaled_engine
from tensorcore_models import libraries
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.order import Chain
from tensorcore_models.engines.scaled import scaled_sums
from tensorcore_models.engines.scaling import Scaling, read_scales
from tensorcore_models.formats import get_format
from tensorcore_models.formats.operands import operand_bits
from tensorcore_models.libraries.scaled_mm import EPILOGUE

if TYPE_CHECKING:
    from mpgemm.integrations.torch_mode import Emulation

#: Products after which kernels without fast accumulation add up outside of Hopper's unit.
PROMOTED = 128
#: torch.nn.functional.ScalingType: values of k that share a factor, None for others.
ALONG = {0: None, 1: None, 2: 16, 3: 32, 4: 128, 5: 128}
#: Rows and columns of one tile of swizzled block scales, and rows that lie beside each other in it.
TILE, BESIDE = (128, 4), 32


def scale_array(scale: torch.Tensor) -> np.ndarray:
    """Scales in numpy's types."""
    scale = scale.detach()
    for dtype, found in (
        (torch.float8_e8m0fnu, ml_dtypes.float8_e8m0fnu),
        (torch.float8_e4m3fn, ml_dtypes.float8_e4m3fn),
    ):
        if scale.dtype == dtype:
            return scale.contiguous().view(torch.uint8).numpy().view(found)
    return scale.to(torch.float32).numpy()


def unswizzled(scales: np.ndarray, across: int, along: int) -> np.ndarray:
    """Block scales (across, along) from the layout of tiles of 128 x 4 in which GPUs read them (cuBLAS's documentation).

    Parameters
    ----------
    scales : ndarray
        Of a matrix padded to whole tiles, any shape.
    across, along : int
        Rows, and blocks of k.

    Raises
    ------
    ValueError
        If it has another number of elements.
    """
    rows, columns = -(-across // TILE[0]), -(-along // TILE[1])
    if scales.size != rows * columns * TILE[0] * TILE[1]:
        raise ValueError(
            f"{scales.size} block scales for {across} rows and {along} blocks of k: swizzled ones are padded to tiles of "
            f"128 x 4, {rows * columns * TILE[0] * TILE[1]} in all"
        )
    tiles = scales.reshape(rows, columns, BESIDE, TILE[0] // BESIDE, TILE[1])
    return tiles.transpose(0, 3, 2, 1, 4).reshape(rows * TILE[0], columns * TILE[1])[:across, :along]


def _placed(scale: torch.Tensor, side: str, size: int, k: int, along: int | None) -> np.ndarray:
    """Scales as this package has them: (rows, blocks) of A, (blocks, columns) of B."""
    array = scale_array(scale)
    if along is None:  # by their types
        along = {"float8_e8m0fnu": 32, "float8_e4m3fn": 16}.get(array.dtype.name)
    if along not in (16, 32):
        return array
    blocks = -(-k // along)
    plain = (size, blocks) if side == "a" else (blocks, size)
    if array.shape == plain:
        return array
    found = unswizzled(array, size, blocks)
    return found if side == "a" else found.T


def scaled_product(
    run: "Emulation", op: str, a, b, scale_a, scale_b, bias, scale_result, out_dtype, fast: bool
) -> torch.Tensor:
    """A product of two FP8 or FP4 matrices with scales of any rule.

    Parameters
    ----------
    run : Emulation
    op : str
        Name for the report.
    a, b, scale_a, scale_b, bias, scale_result : Tensor
        As of `torch._scaled_mm`; scales are arrays where they were placed already.
    out_dtype : torch.dtype
    fast : bool
        `use_fast_accum`.

    Raises
    ------
    ValueError
        For scales of a shape that fits no rule, and for what is not known (:class:`tensorcore_models.libraries.Unknown`).
    """
    arrays = to_array(a, "a"), to_array(b, "b")
    formats = [format_of(x.dtype, name) for x, name in ((a, "a"), (b, "b"))]
    (m, k), n = arrays[0].shape, arrays[1].shape[1]
    scales = [x if not isinstance(x, torch.Tensor) else _placed(x, side, size, k, None)
              for x, side, size in ((scale_a, "a", m), (scale_b, "b", n))]  # fmt: skip
    scaling = read_scales(scales[0], scales[1], m, k, n)
    assert scaling is not None  # torch asks for both
    out_format = format_of(out_dtype, "the result")
    _refuse(scaling, bias, scale_result, out_format)
    product = Product(op, m, k, n, formats[0], formats[1], out_format)
    added = None if bias is None else to_array(bias, "bias").astype(np.float32)

    def multiply(each: Multiplier) -> tuple[torch.Tensor, list[torch.Tensor]]:
        if scaling.folded:
            return _folded(each, product, arrays, scaling, fast)
        unit, options = _unit(each, product, scaling, fast)
        x, y = (
            operand_bits(x, f, each.input_rounding, name, each.input_saturate)
            for x, f, name in zip(arrays, unit.formats, "ab", strict=False)
        )
        sums = scaled_sums(unit, x, y, scaling, **options)
        with np.errstate(all="ignore"):
            out = to_tensor(sums if added is None else sums + added).to(out_dtype)
        return out, [to_tensor(sums).to(out_dtype)]

    def describe(each: Multiplier) -> tuple[str, str]:
        if scaling.folded:
            return each.describe(product)
        unit, options = _unit(each, product, scaling, fast)
        order = "one chain" if options["k_order"] == "sequential" else str(options["k_order"])
        every = options["promote_every"] or (scaling.block if scaling.applied == "block" else None)
        return unit.label, order if every is None else f"{order}, promoted every {every}"

    return run.on_all(product, 1, [x[None] for x in arrays], multiply, scaling.in_words(), describe)


def _refuse(scaling: Scaling, bias, scale_result, out_format: str) -> None:
    """What nobody has measured."""
    if bias is not None and (scaling.folded or scaling.applied != "end"):
        raise libraries.Unknown(
            "a bias in _scaled_mm is not known", field="bias", known=("None", "with factors of rows and columns"),
            advice="Add it to the result",
        )  # fmt: skip
    if scale_result is not None and get_format(out_format).bits == 8:
        raise libraries.Unknown(
            "scale_result with this integration is not known", field="scale_result", known=("None",),
            advice="tensorcore_models.libraries.scaled_mm takes it",
        )  # fmt: skip


def _unit(each: Multiplier, product: Product, scaling: Scaling, fast: bool) -> tuple[Engine, dict[str, Any]]:
    """The unit that multiplies, and the order of k."""
    if each.recipe_for(product) is not None:
        raise libraries.Unknown(
            f"{product.op}: a recipe with {scaling.in_words()} is not known",
            field="recipe",
            known=("one scale for each matrix",),
        )
    options: dict[str, Any] = {"k_order": each.k_order, "promote_every": each.promote_every}
    if scaling.applied == "product" and each.engine is None:
        rule = scaling.rule_a
        found = scaled_engine(each.device, product.a_format, product.b_format, rule.format, rule.along or 1, each.path)
        return found, options
    unit = each.engine_for(product.a_format, product.b_format)
    short = getattr(getattr(unit, "accumulator", None), "output_fraction_bits", None) is not None
    if scaling.applied == "end" and short and not fast and each.promote_every is None and each.k_order == "sequential":
        options["promote_every"] = PROMOTED
    return unit, options


def _folded(each: Multiplier, product: Product, arrays, scaling: Scaling, fast: bool):
    """One factor for each matrix: the user's recipe, the measured one of the device with split_k 1, else one chain of a named
    engine."""
    recipe = scaled_recipe(each, product, fast)
    scale = libraries.folded_scale(float(scaling.a.item()), float(scaling.b.item()))

    def values(factor: float) -> torch.Tensor:
        x, y = arrays
        found = recipe_values(recipe, x, y, product.out_format, each.input_rounding, each.input_saturate, scale=factor)
        return to_tensor(found)

    out = values(scale)
    return out, [out if scale == 1 else values(1.0)]


def scaled_recipe(each: Multiplier, product: Product, fast: bool) -> libraries.Recipe:
    """The recipe of an FP8 product with one scale for each matrix.

    Parameters
    ----------
    each : Multiplier
    product : Product
    fast : bool
        torch's `use_fast_accum`.

    Raises
    ------
    Unknown
        For a device that nobody has measured.
    """
    recipe = each.recipe_for(product)
    if recipe is not None:
        return recipe
    if each.engine is not None:
        order = Chain((range(product.k),))
        return libraries.Recipe(each.engine, product.k, order, EPILOGUE, "one chain, torch._scaled_mm's end")
    return libraries.scaled_mm_recipe(
        product.k, device=each.device, a_format=product.a_format, b_format=product.b_format, fast_accumulation=fast
    )


# -- what torch calls ------------------------------------------------------------------------------------------------------
def scaled_mm(run, a, b, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False):
    """`torch._scaled_mm`."""
    return scaled_product(
        run, "_scaled_mm", a, b, scale_a, scale_b, bias, scale_result, out_dtype or a.dtype, use_fast_accum
    )


def scaled_mm_v2(
    run, a, b, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias=None, out_dtype=None, contraction_dim=(),
    use_fast_accum=False,
):  # fmt: skip
    """`torch.nn.functional.scaled_mm`: recipes name the rules."""
    if tuple(contraction_dim):
        raise NotImplementedError(
            "_scaled_mm_v2 with contraction_dim: its products are not emulated; transpose the operands"
        )
    k, sizes = a.shape[1], (a.shape[0], b.shape[1])
    given = []
    for scales, recipes, side, size in ((scale_a, recipe_a, "a", sizes[0]), (scale_b, recipe_b, "b", sizes[1])):
        placed = [_placed(s, side, size, k, ALONG[int(recipe)]) for s, recipe in zip(scales, recipes, strict=True)]
        given.append(placed[0] if len(placed) == 1 else (placed[0], placed[1].reshape(())))
    return scaled_product(run, "_scaled_mm_v2", a, b, *given, bias, None, out_dtype or a.dtype, use_fast_accum)


def _groups(offs: torch.Tensor) -> list[slice]:
    ends = [0, *(int(x) for x in offs)]
    return [slice(start, stop) for start, stop in zip(ends, ends[1:], strict=False)]


def _grouped(a, b, offs, one: Callable[[int, slice | None, Any, Any], torch.Tensor]) -> torch.Tensor:
    """The groups of a grouped product, each by `one(group, its slice, a, b)`."""
    if a.dim() == b.dim() == 3:
        return torch.stack([one(g, None, a[g], b[g]) for g in range(len(a))])
    if offs is None:
        raise ValueError(f"a grouped product of {a.dim()}-D by {b.dim()}-D operands needs offs")
    slices = _groups(offs)
    if a.dim() == 2 and b.dim() == 3:
        return torch.cat([one(g, s, a[s], b[g]) for g, s in enumerate(slices)])
    if a.dim() == 3:
        return torch.cat([one(g, s, a[g], b[:, s]) for g, s in enumerate(slices)], 1)
    return torch.stack([one(g, s, a[:, s], b[s]) for g, s in enumerate(slices)])


def grouped_mm(run, a, b, offs=None, bias=None, out_dtype=None):
    """`torch._grouped_mm`: one product for each group."""
    if bias is not None:
        raise libraries.Unknown(
            "a bias in _grouped_mm is not known", field="bias", known=("None",), advice="Add it to the result"
        )
    return _grouped(a, b, offs, lambda g, s, x, y: run.products("_grouped_mm", x[None], y[None], out_dtype)[0])


def scaled_grouped_mm(
    run, a, b, scale_a, scale_b, offs=None, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False
):
    """`torch._scaled_grouped_mm` with factors of rows and columns: one product for each group of rows, or of a batch."""
    if b.dim() != 3:
        raise NotImplementedError(
            f"_scaled_grouped_mm of {a.dim()}-D by {b.dim()}-D operands: its products are not emulated; the second is "
            "(groups, k, n)"
        )
    dtype = out_dtype or torch.bfloat16

    def one(group, taken, x, y):
        rows = scale_a[taken] if a.dim() == 2 else scale_a[group]
        pair = scale_array(rows).reshape(-1, 1), scale_array(scale_b[group]).reshape(1, -1)
        return scaled_product(run, "_scaled_grouped_mm", x, y, *pair, bias, scale_result, dtype, use_fast_accum)

    return _grouped(a, b, offs, one)


def int_mm(run, a, b):
    """`torch._int_mm`: int8 operands, int32 sums."""
    arrays = [x.detach().numpy() for x in (a, b)]
    for x, name in zip((a, b), ("self", "mat2"), strict=True):
        if x.dtype != torch.int8:
            raise TypeError(f"_int_mm: {name} is {x.dtype}, expected torch.int8")
    (m, k), n = arrays[0].shape, arrays[1].shape[1]
    product = Product("_int_mm", m, k, n, "s8", "s8", "s32", "s32")

    def multiply(each: Multiplier) -> tuple[torch.Tensor, list[torch.Tensor]]:
        out = torch.from_numpy(each.engine_for("s8", "s8", "s32").gemm(*arrays))
        return out, [out]

    return run.on_all(product, 1, [x[None] for x in arrays], multiply)
