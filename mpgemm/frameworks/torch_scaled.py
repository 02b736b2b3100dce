"""Computes torch's products with scales and of integers: `_scaled_mm`, `_scaled_mm_v2`, `_int_mm`.

Products with one scale for each matrix were measured on two GPUs (:mod:`tensorcore_models.libraries.scaled_mm`). Other devices
and rules are predicted from public sources, and the report says so:

- Factors of rows and columns are applied on Hopper as recorded from cuBLAS 13.0 on an H100, b's factor first. With
  `use_fast_accum` they follow one chain, without it sums that are added in FP32 outside every 128 products. On other devices
  they are applied as in torch's kernel on CUTLASS, a's factor first.
- Blocks of 128 are added as in DeepGEMM.
- mx and nvfp4 scales are applied by the unit; factors of whole tensors follow as alpha, as in torch.
"""

from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from mpgemm.frameworks.multiplier import Multiplier, Product, recipe_values
from mpgemm.frameworks.torch_scales import TorchScale, operand, scale_by_recipe, scale_by_type
from mpgemm.frameworks.torch_tensors import format_of, to_array, to_tensor
from mpgemm.recovery.engines import scaled_engine
from tensorcore_models import libraries
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.scaled import scaled_sums
from tensorcore_models.engines.scaling import Scaling, read_scales
from tensorcore_models.formats import get_format
from tensorcore_models.formats.operands import operand_bits
from tensorcore_models.libraries.scaled_mm import EPILOGUE
from tensorcore_models.orders.order import Chain

#: Number of products after which kernels without fast accumulation add outside of Hopper's unit.
PROMOTED = 128


class OnAll(Protocol):
    """`OnAll` is the part of :class:`mpgemm.frameworks.torch_mode.Emulation` that the functions here call."""

    def on_all(self, product, batch, arrays, multiply, end="", describe=None) -> torch.Tensor: ...


class TorchOperands(NamedTuple):
    """`TorchOperands` holds A and B as arrays (m, k) and (k, n), and their formats."""

    a: np.ndarray
    b: np.ndarray
    formats: tuple[str, str]

    @classmethod
    def of(cls, a: torch.Tensor, b: torch.Tensor) -> "TorchOperands":
        """Return the operands of torch's tensors, which may be batches of matrices."""
        (x, of_a), (y, of_b) = operand(a, "a"), operand(b, "b")
        return cls(x, y, (of_a, of_b))

    def scaling(self, scale_a: TorchScale, scale_b: TorchScale) -> Scaling:
        """Return the scaling of both operands."""
        (m, k), n = self.a.shape, self.b.shape[1]
        rules = None if scale_a.rule is None or scale_b.rule is None else (scale_a.rule, scale_b.rule)
        found = read_scales(scale_a.placed("a", m, k), scale_b.placed("b", n, k), m, k, n, rules=rules)
        assert found is not None  # because both scales are given
        return found


def scaled_product(
    run: OnAll,
    op: str,
    operands: TorchOperands,
    scaling: Scaling,
    out_dtype,
    *,
    bias=None,
    scale_result=None,
    fast=False,
) -> torch.Tensor:
    """Compute a product of two FP8 or FP4 matrices with scales of any rule, as `torch._scaled_mm`.

    Raises ValueError for cases that are not known.
    """
    arrays, formats = operands[:2], operands.formats
    (m, k), n = arrays[0].shape, arrays[1].shape[1]
    out_format = format_of(out_dtype, "the result")
    _refuse(scaling, bias, scale_result, out_format)
    product = Product(op, m, k, n, formats[0], formats[1], out_format)
    added = None if bias is None else to_array(bias, "bias").astype(np.float32)

    def multiply(each: Multiplier) -> tuple[torch.Tensor, list[torch.Tensor]]:
        if scaling.folded and _known_fold(each, product, fast):
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
        if scaling.folded and _known_fold(each, product, fast):
            recipe = scaled_recipe(each, product, fast)
            return recipe.engine.label, recipe.name
        unit, options = _unit(each, product, scaling, fast)
        order = "one chain" if options["k_order"] == "sequential" else str(options["k_order"])
        every = options["promote_every"] or (scaling.block if scaling.applied == "block" else None)
        return unit.label, f"{order}{f', promoted every {every}' if every else ''} (predicted)"

    return run.on_all(product, 1, [x[None] for x in arrays], multiply, scaling.in_words(), describe)


def _refuse(scaling: Scaling, bias, scale_result, out_format: str) -> None:
    """Raise Unknown for arguments whose results were not measured."""
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
    """Return the unit that multiplies, and the options of the order of k."""
    if each.recipe_for(product) is not None:
        what = f"{product.op}: a recipe with {scaling.in_words()} is not known"
        raise libraries.Unknown(what, field="recipe", known=("one scale for each matrix",))
    options: dict[str, Any] = {"k_order": each.k_order, "promote_every": each.promote_every}
    if scaling.applied == "product" and each.engine is None:
        rule = scaling.rule_a
        found = scaled_engine(each.device, product.a_format, product.b_format, rule.format, rule.along or 1, each.path)
        return each.placed(found), options
    unit = each.engine_for(product.a_format, product.b_format)
    short = getattr(getattr(unit, "accumulator", None), "output_fraction_bits", None) is not None
    if scaling.applied == "end" and short and not fast and each.promote_every is None and each.k_order == "sequential":
        options["promote_every"] = PROMOTED
    return unit, options


def _known_fold(each: Multiplier, product: Product, fast: bool) -> bool:
    """Return whether products with one factor per matrix were measured on the device, or have a named recipe.

    Otherwise they are predicted in the same way as factors of rows. Raises Unknown for formats that were not measured on a
    measured device.
    """
    try:
        scaled_recipe(each, product, fast)
    except libraries.Unknown as error:
        if error.field == "device":
            return False
        raise
    return True


def _folded(each: Multiplier, product: Product, arrays, scaling: Scaling, fast: bool):
    """Compute a product with one factor per matrix, by the recipe of :func:`scaled_recipe`."""
    recipe = scaled_recipe(each, product, fast)
    scale = libraries.folded_scale(float(scaling.a.item()), float(scaling.b.item()))

    def values(factor: float) -> torch.Tensor:
        x, y = arrays
        found = recipe_values(recipe, x, y, product.out_format, each.input_rounding, each.input_saturate, scale=factor)
        return to_tensor(found)

    out = values(scale)
    return out, [out if scale == 1 else values(1.0)]


def scaled_recipe(each: Multiplier, product: Product, fast: bool) -> libraries.Recipe:
    """Return the recipe of an FP8 product with one scale for each matrix.

    It is the user's recipe, else one chain of a named engine, else the device's measured recipe with split_k 1. Raises Unknown
    for a device that was not measured.
    """
    recipe = each.recipe_for(product)
    if recipe is not None:
        return recipe
    if each.engine is not None:
        order = Chain((range(product.k),))
        return libraries.Recipe(
            each.placed(each.engine), product.k, order, EPILOGUE, "one chain, torch._scaled_mm's end"
        )
    found = libraries.scaled_mm_recipe(
        product.k, device=each.device, a_format=product.a_format, b_format=product.b_format, fast_accumulation=fast
    )
    return replace(found, engine=each.placed(found.engine))


# -- functions that torch's operations call --------------------------------------------------------------------------------
def scaled_mm(run, a, b, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False):
    """Compute `torch._scaled_mm`; block scales for a unit lie in tiles."""
    operands = TorchOperands.of(a, b)
    scaling = operands.scaling(scale_by_type(scale_a), scale_by_type(scale_b))
    return scaled_product(
        run,
        "_scaled_mm",
        operands,
        scaling,
        out_dtype or a.dtype,
        bias=bias,
        scale_result=scale_result,
        fast=use_fast_accum,
    )


def scaled_mm_v2(
    run, a, b, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias=None, out_dtype=None, contraction_dim=(),
    use_fast_accum=False,
):  # fmt: skip
    """Compute `torch.nn.functional.scaled_mm`, whose recipes name the rules of scaling."""
    refuse_contraction("_scaled_mm_v2", contraction_dim)
    operands = TorchOperands.of(a, b)
    scaling = operands.scaling(
        scale_by_recipe(scale_a, recipe_a, swizzle_a, "a"), scale_by_recipe(scale_b, recipe_b, swizzle_b, "b")
    )
    return scaled_product(run, "_scaled_mm_v2", operands, scaling, out_dtype or a.dtype, bias=bias, fast=use_fast_accum)


def refuse_contraction(op: str, contraction_dim) -> None:
    """Refuse a contraction over other dimensions than the last of A and the last but one of B, as torch does."""
    if tuple(contraction_dim) not in ((), (-1, -2)):
        raise NotImplementedError(
            f"{op} got contraction_dim {tuple(contraction_dim)}, whose products are not emulated: transpose the operands"
        )


def int_mm(run, a, b):
    """Compute `torch._int_mm`, with int8 operands and int32 sums."""
    arrays = [x.detach().numpy() for x in (a, b)]
    for x, name in zip((a, b), ("self", "mat2"), strict=True):
        if x.dtype != torch.int8:
            raise TypeError(f"_int_mm: {name} is {x.dtype}, expected torch.int8: convert {name} with .to(torch.int8)")
    (m, k), n = arrays[0].shape, arrays[1].shape[1]
    product = Product("_int_mm", m, k, n, "s8", "s8", "s32", "s32")

    def multiply(each: Multiplier) -> tuple[torch.Tensor, list[torch.Tensor]]:
        out = torch.from_numpy(each.engine_for("s8", "s8", "s32").gemm(*arrays))
        return out, [out]

    return run.on_all(product, 1, [x[None] for x in arrays], multiply)
