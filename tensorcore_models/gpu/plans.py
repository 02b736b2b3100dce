"""Defines modes, and units as a mode runs them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..kernels.common import step_order
from ..kernels.lowering import Lowered


@dataclass(frozen=True)
class OperandForm:
    """How an operand is packed: what :func:`tensorcore_models.gpu.source_pack.pack` is told about it.

    Attributes
    ----------
    format : tuple
        Exponent bits, fraction bits, bias, padding bits, place of the sign (-1: none), kind of specials.
    shape : (int, int, int)
        Bits of a code, what lifts exponents of nonzero numbers above those of zeros, code of the lowest lowest bit.
    normalise : bool
        Whether subnormal numbers have the exponents of their leading bits.
    scale : (int, int, int, int) or None
        Products that share a block scale, exponent bits, fraction bits and bias of scales.
    """

    format: tuple
    shape: tuple[int, int, int]
    normalise: bool
    scale: tuple[int, int, int, int] | None = None

    def constants(self) -> dict[str, Any]:
        """As the kernel names them."""
        return {"FORMAT": self.format, "SHAPE": self.shape, "NORMALISE": self.normalise, "SCALE": self.scale}


@dataclass(frozen=True)
class ModePlan:
    """A unit as a mode runs it.

    Attributes
    ----------
    mode : UnitMode
    low : Lowered
        What the kernel computes.
    constants : mapping
        Of the mode's kernel.
    terms : int
        Products of one step of the kernel.
    a, b : OperandForm or None
        None where operands are taken as values.
    types : (str, str)
        Formats of c and d.
    step : int
        Products of the unit's own step.
    groups : tuple or None
        The products of each fused operation of a step, where these are not its only one.
    given : Lowered or None
        The unit, where it converts its operands to those of `low` first.
    """

    mode: "UnitMode"
    low: Lowered
    constants: Mapping[str, Any]
    terms: int
    a: OperandForm | None
    b: OperandForm | None
    types: tuple[str, str]
    step: int
    groups: tuple[tuple[int, ...], ...] | None = None
    given: Lowered | None = None

    def order(self, k: int):
        """Return which k stands at each place of the packed operands, -1 for none; None where all are in turn."""
        if self.groups is None and self.step == self.terms:
            return None
        return step_order(k, self.step, self.terms, self.groups)


@dataclass(frozen=True)
class UnitMode:
    """A way to run units on a GPU.

    Attributes
    ----------
    name : str
    function : str
        The kernel, which :func:`tensorcore_models.gpu.compiling.unit_kernel` finds.
    targets : tuple of str
        That run it.
    plan : callable
        (lowered, mode) -> ModePlan, None where the mode does not hold the unit.
    holds, flags : str
        Its domain in words: what it computes, and what it leaves to another mode.
    each : (int, int)
        Outputs of a thread, down and across, for which its kernel spills least.
    """

    name: str
    function: str
    targets: tuple[str, ...]
    plan: Callable[[Lowered, "UnitMode"], ModePlan | None]
    holds: str
    flags: str
    each: tuple[int, int] = (4, 4)
