"""Multiplies inside another library's program, with a device's instructions for each pair of formats, or with one engine.

A library's call states its problem (:class:`Product`); the :class:`Multiplier` chooses the engine and the order of k.
:meth:`Multiplier.describe` names this choice with its assumptions, and a product that no engine multiplies raises an error.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import tensorcore_models as tcm
from mpgemm.recovery.engines import device_engine, ieee_engine, named_engine
from tensorcore_models import libraries
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import get_format
from tensorcore_models.formats.operands import operand_bits, values_of_bits
from tensorcore_models.gpu.tensors import chained_there
from tensorcore_models.libraries.recorded import Problem, Recording
from tensorcore_models.orders.order import KOrder

#: Formats that scalar units multiply if a device has no matrix instruction for them.
SCALAR_UNITS = ("fp32", "fp64")


@dataclass(frozen=True)
class Product:
    """`Product` describes a product A (m, k) times B (k, n) that a library asks for.

    Attributes
    ----------
    op : str
        Name of the operation in the library.
    m, k, n : int
        Sizes.
    a_format, b_format : str
        Formats of the operands on the unit.
    out_format : str
        Format of the result.
    accumulator : str
        Format of the sums; "fp32" unless the library was told otherwise.
    """

    op: str
    m: int
    k: int
    n: int
    a_format: str
    b_format: str
    out_format: str
    accumulator: str = "fp32"


#: Function from a product to its recipe, or to None for the engine's own order of k.
RecipeOf = Callable[[Product], libraries.Recipe | None]


def recipe_chooser(recipe: Recording | RecipeOf | None) -> RecipeOf | None:
    """Return a function from a product to its recipe; `recipe` is a recording of a library's choices or a user's function."""
    if isinstance(recipe, Recording):
        return lambda p: recipe.recipe(Problem(p.a_format, p.out_format, p.k, p.n, p.m))
    if recipe is None or callable(recipe):
        return recipe
    raise TypeError(
        f"recipe is a {type(recipe).__name__}, expected a libraries.Recording, or a function that returns a Recipe for a "
        "Product"
    )


@dataclass
class Multiplier:
    """`Multiplier` is a device or an engine with its order of k.

    Raises ValueError, TypeError for a bad target, or for a recipe beside an order of k.
    """

    #: Target: a device or architecture ("h100"; "h100/mma" names the path), "arch:name" of the catalogue, "cpu:name" or another
    #: name of :func:`tensorcore_models.hardware.engine`, "ieee" (fused multiply-adds of the operands' format), or an engine.
    target: str | Engine
    #: k_order, promote_every: Arguments of :meth:`tensorcore_models.Instruction.gemm`.
    k_order: KOrder = "sequential"
    promote_every: int | None = None
    #: Recipes of a library, in place of one order for all products (:func:`recipe_chooser`).
    recipe: Recording | RecipeOf | None = None
    #: input_rounding, input_saturate: Arguments of :meth:`tensorcore_models.Instruction.gemm`.
    input_rounding: str | None = None
    input_saturate: bool = False
    #: Tensor on the GPU that runs long chains of arrays; None if the CPU runs all.
    near: Any = None
    _engines: dict[tuple[str, str, str], Engine] = field(default_factory=dict, repr=False)

    def __post_init__(self):
        if self.recipe is not None and (self.k_order != "sequential" or self.promote_every is not None):
            raise ValueError(
                "got recipe and k_order or promote_every, but a recipe states the order of k: leave k_order and promote_every "
                "out"
            )
        self._recipe = recipe_chooser(self.recipe)
        self.device, self.path, self.engine = _target(self.target)

    @property
    def name(self) -> str:
        """Name of the target."""
        return self.engine.label if self.engine is not None else str(self.target)

    def engine_for(self, a_format: str, b_format: str, accumulator: str = "fp32") -> Engine:
        """Return the engine that multiplies operands of these formats with sums of `accumulator` (fp64 for fp64).

        Raises ValueError, with a list of the known formats, if there is none.
        """
        if self.engine is not None:
            return self.placed(self.engine)
        key = (a_format, b_format, accumulator)
        if key not in self._engines:
            self._engines[key] = self.placed(self._find(*key))
        return self._engines[key]

    def beside(self, tensor: Any) -> "Multiplier":
        """Return a copy whose engines run long chains on the GPU of a tensor."""
        return replace(self, near=tensor, _engines={})

    def placed(self, engine: Engine) -> Engine:
        """Return the engine with its long chains on this multiplier's GPU, if it has one."""
        return engine if self.near is None else chained_there(engine, self.near)

    def _find(self, a_format: str, b_format: str, accumulator: str) -> Engine:
        scalar = a_format == b_format and a_format in SCALAR_UNITS
        if self.device == "ieee":
            return ieee_engine(a_format, None if scalar else accumulator)
        d_format = "fp64" if a_format == "fp64" else accumulator
        if scalar and not any(
            (row.a_format, row.b_format) == (a_format, b_format) for row in tcm.list_instructions(self.device)
        ):
            return ieee_engine(a_format)
        # names here are exact: "e4m3" is Gaudi's format and no other spelling of e4m3fn
        return device_engine(self.device, get_format(a_format), get_format(b_format), d_format, self.path)

    def recipe_for(self, product: Product) -> libraries.Recipe | None:
        """Return the recipe of a product, or None if the engine's order of k is used."""
        recipe = None if self._recipe is None else self._recipe(product)
        return recipe if recipe is None else replace(recipe, engine=self.placed(recipe.engine))

    def describe(self, product: Product) -> tuple[str, str]:
        """Return the engine and the order of k of a product as texts."""
        recipe = self.recipe_for(product)
        if recipe is not None:
            return recipe.engine.label, recipe.name
        order = "one chain" if self.k_order == "sequential" else str(self.k_order)
        if self.promote_every is not None:
            order += f", promoted every {self.promote_every}"
        return self.engine_for(product.a_format, product.b_format, product.accumulator).label, order

    def multiply(self, a: np.ndarray, b: np.ndarray, product: Product) -> np.ndarray:
        """Return A B for any strides, in the format of the unit's sums, or in the output format if a recipe rounds to it."""
        recipe = self.recipe_for(product)
        if recipe is not None:
            return recipe_values(recipe, a, b, product.out_format, self.input_rounding, self.input_saturate)
        engine = self.engine_for(product.a_format, product.b_format, product.accumulator)
        return engine.gemm(
            a, b, input_rounding=self.input_rounding, input_saturate=self.input_saturate,
            k_order=self.k_order, promote_every=self.promote_every,
        )  # fmt: skip


def recipe_values(
    recipe: libraries.Recipe,
    a: Any,
    b: Any,
    out_format: str,
    rounding: str | None = None,
    saturate: bool = False,
    scale: float = 1.0,
) -> np.ndarray:
    """Return a recipe's product of values in the output format; `rounding` and `saturate` concern the operands."""
    formats = recipe.engine.formats
    bits = [operand_bits(x, f, rounding, n, saturate) for x, f, n in zip((a, b), formats, "ab", strict=False)]
    return values_of_bits(recipe.gemm_bits(*bits, out_format=out_format, scale=scale), get_format(out_format))


def _target(target: str | Engine) -> tuple[str, str | None, Engine | None]:
    """Return (device, path, engine) of a target: a device with or without a path, or one engine for all products."""
    if isinstance(target, Engine):
        return "", None, target
    if not isinstance(target, str):
        raise TypeError(f"engine is a {type(target).__name__}, expected a device, 'arch:name' or an Engine")
    if target == "ieee":
        return "ieee", None, None
    if (engine := named_engine(target)) is not None:
        return "", None, engine
    device, _, path = target.partition("/")
    rows = tcm.list_instructions(device)
    paths = sorted({row.path for row in rows})
    if path and path not in paths:
        raise ValueError(f"{device} has no path {path!r}, expected one of {', '.join(paths)}")
    return device, path or None, None


def multipliers(target: str | Engine | Sequence[str | Engine], **options) -> list[Multiplier]:
    """Return one multiplier for each target; `target` is one target or a sequence of different ones."""
    targets = [target] if isinstance(target, str | Engine) else list(target)
    if not targets:
        raise ValueError("got no engine, expected at least one: name a device, 'arch:name' or an Engine")
    found = [Multiplier(each, **options) for each in targets]
    names = [each.name for each in found]
    if len(set(names)) != len(names):
        raise ValueError(f"got the engines {', '.join(names)}, expected different ones: give each once")
    return found
