"""Defines modes, and plans of units in a mode."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..kernels.common import step_order
from ..kernels.lowering import Lowered


@dataclass(frozen=True)
class OperandForm:
    """`OperandForm` says how :func:`tensorcore_models.gpu.source_pack.pack` packs an operand.

    Attributes
    ----------
    format : tuple
        Exponent bits, fraction bits, bias, padding bits, place of the sign (-1: none), kind of specials.
    shape : (int, int, int)
        Bits of a code, offset of exponents of nonzero numbers above that of zeros, code of the lowest possible lowest bit.
    normalise : bool
        Whether subnormal numbers have the exponents of their leading bits.
    scale : (int, int, int, int) or None
        Number of products that share a block scale; exponent bits, fraction bits and bias of scales.
    """

    format: tuple
    shape: tuple[int, int, int]
    normalise: bool
    scale: tuple[int, int, int, int] | None = None

    def constants(self) -> dict[str, Any]:
        """Return the form under the names of the kernel's constants."""
        return {"FORMAT": self.format, "SHAPE": self.shape, "NORMALISE": self.normalise, "SCALE": self.scale}


@dataclass(frozen=True)
class ModePlan:
    """`ModePlan` is the plan of a unit in a mode.

    Attributes
    ----------
    mode : UnitMode
    low : Lowered
        Unit that the kernel computes.
    constants : mapping
        Constants of the mode's kernel.
    terms : int
        Number of products of one step of the kernel.
    a, b : OperandForm or None
        Forms of the packed operands; None if operands are taken as values.
    types : (str, str)
        Formats of c and d.
    step : int
        Number of products of the unit's own step.
    groups : tuple or None
        Products of each fused operation of a step, if a step has several.
    given : Lowered or None
        Unit as it was given, if it first converts its operands to those of `low`.
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
        """Return which k stands at each place of the packed operands, -1 for no k; None if all are in order."""
        if self.groups is None and self.step == self.terms:
            return None
        return step_order(k, self.step, self.terms, self.groups)


@dataclass(frozen=True)
class UnitMode:
    """`UnitMode` is a way to run units on a GPU.

    Attributes
    ----------
    name : str
    function : str
        Name of the kernel, which :func:`tensorcore_models.gpu.compiling.unit_kernel` finds.
    targets : tuple of str
        Targets that run the kernel.
    plan : callable
        Function (lowered, mode) -> ModePlan, None if the mode does not hold the unit.
    holds, flags : str
        Domain of the mode in words: the units that it computes, and the values whose tiles it flags.
    each : (int, int)
        Outputs of a thread, down and across, for which the kernel spills least.
    """

    name: str
    function: str
    targets: tuple[str, ...]
    plan: Callable[[Lowered, "UnitMode"], ModePlan | None]
    holds: str
    flags: str
    each: tuple[int, int] = (4, 4)
