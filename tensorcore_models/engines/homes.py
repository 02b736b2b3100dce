"""This module registers homes: modules that multiply operands where they are stored, such as tensors on a GPU."""

from collections.abc import Callable
from typing import Any, Protocol


class Home(Protocol):
    """`Home` is a module that multiplies its operands where they are stored, with the same bits as engines on arrays."""

    def on_gpu(self, *operands: Any) -> bool:
        """Return whether the first operand is stored on a GPU."""

    def gemm(self, engine: Any, a: Any, b: Any, c: Any, ends: dict[str, Any], options: dict[str, Any], /) -> Any:
        """Return the product that :meth:`Engine.gemm` gives."""

    def gemm_bits(self, engine: Any, a: Any, b: Any, c: Any, scale_a: Any, scale_b: Any, options: dict, /) -> Any:
        """Return the product that :meth:`Engine.gemm_bits` gives."""

    def mma(self, engine: Any, a: Any, b: Any, c: Any, scale_a: Any, scale_b: Any, /) -> Any:
        """Return the product that :meth:`Instruction.mma` gives."""

    def mma_bits(self, engine: Any, a: Any, b: Any, c: Any, scale_a: Any, scale_b: Any, input_scale: int, /) -> Any:
        """Return the product that :meth:`Instruction.mma_bits` gives."""


#: Function that loads each home, keyed by the library that defines the types of its operands.
_HOMES: dict[str, Callable[[], Home]] = {}


def register_home(library: str, load: Callable[[], Home]) -> None:
    """Register the home that `load()` returns for operands whose type, or a base of it, is defined by `library`."""
    _HOMES[library] = load


def home_of(operand: Any) -> Home | None:
    """Return the home that multiplies an operand; None for arrays and for operands that are converted to arrays."""
    for kind in type(operand).__mro__:
        load = _HOMES.get(kind.__module__.partition(".")[0])
        if load is not None:
            home = load()
            return home if home.on_gpu(operand) else None
    return None
