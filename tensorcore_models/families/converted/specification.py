"""A unit that converts its operands to another format first, and then does what another accumulator does."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

from ...accumulators.base import Accumulator, require
from ...accumulators.parametric import ParametricDotAdd
from ...formats import Format, get_float_format

SpecialCodes = Literal["own", "ieee", "finite", "fn"]
#: Edge rules of the conversion itself; all others are the inner accumulator's.
OWN_RULES = ("bias_a", "bias_b", "specials_a", "specials_b")


@dataclass(frozen=True)
class ConvertedDotAdd(Accumulator):
    """Operands are converted to `via_format`, rounded to nearest even where that is narrower; `dot` does the rest.

    The matrix engines of Gaudi (HabanaAI/Intel_Gaudi3_Software, mme/mme_reference): fp8 and fp16 operands become FP32 numbers,
    so that their subnormal numbers have the exponent of their leading bit; a tf32 operand is an FP32 number that the unit rounds.

    Parameters
    ----------
    dot : Accumulator
        The algorithm, on operands in `via_format`.
    via_format : str
        Format of the converted operands. An operand format with ignored bits (tf32) is read with them here.
    flush : bool
        Operands that are subnormal in `via_format` become zeros of their sign.
    bias_a, bias_b : int or None
        Edge rules: exponent biases of the operands; None: their formats' own.
    specials_a, specials_b : {"own", "ieee", "finite", "fn"}
        Edge rules: what the largest exponent means: infinities and NaNs; numbers; numbers but for all ones, which is NaN; or what
        the format says.
    biases : range
        Biases that the unit takes; empty: its formats' own only.
    codes : tuple of str
        Values of `specials_a` and `specials_b` that the unit takes, beside "own".
    """

    dot: Accumulator = ParametricDotAdd()
    via_format: str = "fp32"
    flush: bool = False
    bias_a: int | None = None
    bias_b: int | None = None
    specials_a: SpecialCodes = "own"
    specials_b: SpecialCodes = "own"
    biases: range = range(0)
    codes: tuple[str, ...] = ()

    edge_rules: ClassVar = {**Accumulator.edge_rules, **dict.fromkeys(OWN_RULES)}

    def _check(self):
        via = get_float_format(self.via_format)
        require(via.specials == "ieee" and via.signed, self, f"via_format {via.name} has no sign, infinities or NaN")
        require(not isinstance(self.dot, ConvertedDotAdd), self, "dot converts its operands, too")
        for name in ("bias_a", "bias_b"):
            bias = getattr(self, name)
            known = ", ".join(map(str, self.biases)) if len(self.biases) < 9 else f"{self.biases[0]} to {self.biases[-1]}"
            require(
                bias is None or bias in self.biases,
                self,
                f"{name} is {bias}, the unit has {known or 'its formats own biases only (None)'}",
            )
        for name in ("specials_a", "specials_b"):
            value = getattr(self, name)
            require(
                value == "own" or value in self.codes,
                self,
                f"{name} is {value!r}, the unit has {', '.join(map(repr, ('own', *self.codes)))}",
            )

    @property
    def terms_per_step(self) -> int:
        return self.dot.terms_per_step

    def with_rules(self, **rules):
        """A copy with other edge rules, of the conversion or of the inner accumulator."""
        inner = {name: value for name, value in rules.items() if name not in OWN_RULES and name in self.dot.edge_rules}
        own = {name: value for name, value in rules.items() if name not in inner}
        changed = dataclasses.replace(self, dot=self.dot.with_rules(**inner)) if inner else self
        unknown = sorted(set(own) - set(OWN_RULES))
        if unknown:
            known = ", ".join((*OWN_RULES, *self.dot.edge_rules))
            raise ValueError(f"{type(self).__name__} has no edge rule {', '.join(map(repr, unknown))}; it has {known}")
        return dataclasses.replace(changed, **own)

    def operand_format(self, fmt: Format, side: int) -> Format:
        """The format of operand a (side 0) or b (1) under the edge rules."""
        bias = (self.bias_a, self.bias_b)[side]
        specials = (self.specials_a, self.specials_b)[side]
        changes = {} if bias is None else {"bias": bias}
        if specials != "own":
            changes["specials"] = specials
        return dataclasses.replace(fmt, **changes) if changes else fmt

    def pass_bits(self, p) -> int:
        from .integers import converted_pass

        return self.dot.pass_bits(converted_pass(self, p))
