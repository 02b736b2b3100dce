"""Multiplies inside another library's program: by a device with one instruction for each pair of formats, or one engine.

A library's call names its problem (:class:`Product`), the :class:`Multiplier` the engine and the order of k for it. Nothing is
chosen silently: :meth:`Multiplier.describe` says what is assumed, and what has no answer raises.
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

#: Formats that scalar units multiply where a device has no matrix instruction for them.
SCALAR_UNITS = ("fp32", "fp64")


@dataclass(frozen=True)
class Product:
    """One product as a library asks for it, A (m, k) times B (k, n).

    Attributes
    ----------
    op : str
        The library's name of the operation.
    m, k, n : int
        Sizes.
    a_format, b_format : str
        Formats of the operands as the unit takes them.
    out_format : str
        Format of the library's result.
    accumulator : str
        Format in which the unit adds, "fp32" unless the library was told otherwise.
    """

    op: str
    m: int
    k: int
    n: int
    a_format: str
    b_format: str
    out_format: str
    accumulator: str = "fp32"


#: Names the recipe of a product, None where the engine's own order of k is meant.
RecipeOf = Callable[[Product], libraries.Recipe | None]


def recipe_chooser(recipe: Recording | RecipeOf | None) -> RecipeOf | None:
    """Return a function from a product to its recipe, from a recording of a library's choices or a user's function."""
    if isinstance(recipe, Recording):
        return lambda p: recipe.recipe(Problem(p.a_format, p.out_format, p.k, p.n, p.m))
    if recipe is None or callable(recipe):
        return recipe
    raise TypeError(
        f"recipe is a {type(recipe).__name__}, expected a libraries.Recording or a function of a Product that gives a Recipe"
    )


@dataclass
class Multiplier:
    """A device or an engine, and how it runs over k. Raises ValueError, TypeError for no target, or a recipe with an
    order of k."""

    #: A device or architecture ("h100", "h100/mma" names the path), "arch:name" of the catalogue, "cpu:name" or another
    #: name of :func:`tensorcore_models.hardware.engine`, "ieee" (fused multiply-adds of the operands' format), or an
    #: engine.
    target: str | Engine
    #: k_order, promote_every: As for :meth:`tensorcore_models.Instruction.gemm`.
    k_order: KOrder = "sequential"
    promote_every: int | None = None
    #: A library's recipes instead of one order for all: see :func:`recipe_chooser`.
    recipe: Recording | RecipeOf | None = None
    #: input_rounding, input_saturate: As for :meth:`tensorcore_models.Instruction.gemm`.
    input_rounding: str | None = None
    input_saturate: bool = False
    #: A tensor on the GPU that runs long chains of arrays; None: the CPU runs all.
    near: Any = None
    _engines: dict[tuple[str, str, str], Engine] = field(default_factory=dict, repr=False)

    def __post_init__(self):
        if self.recipe is not None and (self.k_order != "sequential" or self.promote_every is not None):
            raise ValueError("a recipe has its own order of k: leave k_order and promote_every out")
        self._recipe = recipe_chooser(self.recipe)
        self.device, self.path, self.engine = _target(self.target)

    @property
    def name(self) -> str:
        """The target as text."""
        return self.engine.label if self.engine is not None else str(self.target)

    def engine_for(self, a_format: str, b_format: str, accumulator: str = "fp32") -> Engine:
        """Return the engine that multiplies operands of these formats into sums of `accumulator` (fp64 for fp64); ValueError
        lists what there is."""
        if self.engine is not None:
            return self.placed(self.engine)
        key = (a_format, b_format, accumulator)
        if key not in self._engines:
            self._engines[key] = self.placed(self._find(*key))
        return self._engines[key]

    def beside(self, tensor: Any) -> "Multiplier":
        """Return the same, its engines' long chains on the GPU of a tensor."""
        return replace(self, near=tensor, _engines={})

    def placed(self, engine: Engine) -> Engine:
        """Return an engine whose long chains run where this multiplier's do."""
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
        # a name here is a format's own, not a spelling: "e4m3" is Gaudi's, not e4m3fn
        return device_engine(self.device, get_format(a_format), get_format(b_format), d_format, self.path)

    def recipe_for(self, product: Product) -> libraries.Recipe | None:
        """Return the recipe of a product, None where the engine's order of k is used."""
        recipe = None if self._recipe is None else self._recipe(product)
        return recipe if recipe is None else replace(recipe, engine=self.placed(recipe.engine))

    def describe(self, product: Product) -> tuple[str, str]:
        """Return (engine, order of k) as text."""
        recipe = self.recipe_for(product)
        if recipe is not None:
            return recipe.engine.label, recipe.name
        order = "one chain" if self.k_order == "sequential" else str(self.k_order)
        if self.promote_every is not None:
            order += f", promoted every {self.promote_every}"
        return self.engine_for(product.a_format, product.b_format, product.accumulator).label, order

    def multiply(self, a: np.ndarray, b: np.ndarray, product: Product) -> np.ndarray:
        """Return A B as the unit gives it, in the format of its sums, or in the output format where a recipe ends there; any
        strides."""
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
    """Return a recipe's product of values, as values of the output format; `rounding`, `saturate`: of the operands."""
    formats = recipe.engine.formats
    bits = [operand_bits(x, f, rounding, n, saturate) for x, f, n in zip((a, b), formats, "ab", strict=False)]
    return values_of_bits(recipe.gemm_bits(*bits, out_format=out_format, scale=scale), get_format(out_format))


def _target(target: str | Engine) -> tuple[str, str | None, Engine | None]:
    """Return (device, path, engine): a device and perhaps a path, or one engine for everything."""
    if isinstance(target, Engine):
        return "", None, target
    if not isinstance(target, str):
        raise TypeError(f"an engine is a device, 'arch:name' or an Engine, got {type(target).__name__}")
    if target == "ieee":
        return "ieee", None, None
    if (engine := named_engine(target)) is not None:
        return "", None, engine
    device, _, path = target.partition("/")
    rows = tcm.list_instructions(device)
    paths = sorted({row.path for row in rows})
    if path and path not in paths:
        raise ValueError(f"{device} has no path {path!r}; it has {', '.join(paths)}")
    return device, path or None, None


def multipliers(target: str | Engine | Sequence[str | Engine], **options) -> list[Multiplier]:
    """Return one multiplier for each target, of one target or of several different ones."""
    targets = [target] if isinstance(target, str | Engine) else list(target)
    if not targets:
        raise ValueError("no engine: name a device, 'arch:name' or an Engine")
    found = [Multiplier(each, **options) for each in targets]
    names = [each.name for each in found]
    if len(set(names)) != len(names):
        raise ValueError(f"engines {', '.join(names)}: give each engine once")
    return found
