"""Operands that live elsewhere, such as tensors on a GPU, are multiplied there by a home that a higher room registers."""

from collections.abc import Callable
from typing import Any, Protocol


class Home(Protocol):
    """A module that does for its operands what engines do for arrays, with the same bits."""

    def on_gpu(self, *operands: Any) -> bool:
        """Return whether the first operand lives there."""

    def gemm(self, engine: Any, a: Any, b: Any, c: Any, ends: dict[str, Any], options: dict[str, Any], /) -> Any:
        """Return the product that :meth:`Engine.gemm` gives."""

    def gemm_bits(self, engine: Any, a: Any, b: Any, c: Any, scale_a: Any, scale_b: Any, options: dict, /) -> Any:
        """Return the product that :meth:`Engine.gemm_bits` gives."""

    def mma(self, engine: Any, a: Any, b: Any, c: Any, scale_a: Any, scale_b: Any, /) -> Any:
        """Return the product that :meth:`Instruction.mma` gives."""

    def mma_bits(self, engine: Any, a: Any, b: Any, c: Any, scale_a: Any, scale_b: Any, input_scale: int, /) -> Any:
        """Return the product that :meth:`Instruction.mma_bits` gives."""


#: How each home is loaded, by the library that its operands' types come from.
_HOMES: dict[str, Callable[[], Home]] = {}


def register_home(library: str, load: Callable[[], Home]) -> None:
    """Ask the home that `load()` gives about every operand whose type, or a base of it, comes from `library`."""
    _HOMES[library] = load


def home_of(operand: Any) -> Home | None:
    """Return the home in which an operand lives; None for arrays and all that is made one."""
    for kind in type(operand).__mro__:
        load = _HOMES.get(kind.__module__.partition(".")[0])
        if load is not None:
            home = load()
            return home if home.on_gpu(operand) else None
    return None
