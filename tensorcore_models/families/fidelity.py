"""FidelityPhase: multipliers take a part of each significand, and a chain adds the products (Tenstorrent's matrix unit)."""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..aspects import search
from ..aspects.search import Field, Search, divisors, one_of
from ..explanations.words import Words
from ..formats import Format
from ..formats.exact_rounding import round_to_bits
from ..formats.rounding import decode, encode
from .base import Accumulator, Conversion
from .checks import MAX_TERMS, check_range
from .lanes import LanedFMA


@dataclass(frozen=True)
class FidelityPhase(Accumulator):
    """One fidelity phase of a matrix unit whose multipliers are narrower than its operands (Tenstorrent Wormhole, MVMUL).

    In phase 0 a multiplier takes the leading bits of both significands, in phase 1 those of a and the bits of b that follow, in
    phase 2 the bits of a that follow and the leading ones of b, in phase 3 those that follow of both. The sum is that of the
    functional model of the unit's documentation, which calls it a rough guide: a chain in FP32 from zero, then c.

    Parameters
    ----------
    phase : int
        0 to 3.
    terms : int
        Products of one instruction.
    leading_a, leading_b : int
        Significand bits that the multiplier takes of each operand, the leading one among them. As many follow in other
        phases, or all that are left.
    """

    phase: int = 0
    terms: int = 16
    leading_a: int = 7
    leading_b: int = 5

    step_field: ClassVar = "terms"
    left_out: ClassVar = {
        "terms": "results are flushed, which the term language lacks",
        "probe vectors": "order and width of the unit's sum are not public",
    }

    def _check(self):
        check_range(self, "phase", 0, 3)
        check_range(self, "terms", 1, MAX_TERMS)
        for name in ("leading_a", "leading_b"):
            check_range(self, name, 1, 24)

    def check_formats(self, formats, block_size):
        super().check_formats(formats, block_size)
        for name, fmt in zip("ab", formats[:2], strict=True):
            if fmt.specials != "ieee" or fmt.fraction_bits > 24:
                raise ValueError(f"FidelityPhase takes bf16, fp16 or tf32 operands, {name}_format is {fmt.name}")

    @property
    def dot(self) -> LanedFMA:
        """The sum of what the multipliers take."""
        return LanedFMA(1, self.terms, flush_inputs=True, nan=self.nan)

    def bits_of(self, side: int) -> tuple[int, int]:
        """First and one past the last significand bit that is taken of a (side 0) or b, counted from the leading one."""
        leading = (self.leading_a, self.leading_b)[side]
        later = self.phase >> (1 - side) & 1
        return (leading, 2 * leading) if later else (0, leading)

    def taken(self, bits: int, fmt: Format, side: int) -> int:
        """What the multiplier takes of one encoding; subnormal numbers are zeros of their sign."""
        kind, negative, significand, exponent = fmt.decode_exact(bits)
        if kind != "finite":
            return bits
        first, last = self.bits_of(side)
        digits = fmt.fraction_bits + 1
        if significand.bit_length() < digits:
            significand = 0
        below = max(0, digits - last)
        kept = significand >> below << below & (1 << max(0, digits - first)) - 1
        return round_to_bits(negative, kept, exponent, fmt)

    def taken_array(self, codes: np.ndarray, fmt: Format, side: int) -> np.ndarray:
        """:meth:`taken` for an array."""
        first, last = self.bits_of(side)
        word, top = codes.dtype.type, fmt.fraction_bits + fmt.padding_bits + 1
        values = [decode(codes & word(~((1 << max(0, top - end)) - 1) & (1 << fmt.bits) - 1), fmt, np.dtype(np.float64))
                  for end in (last, first or top)]  # fmt: skip
        with np.errstate(invalid="ignore"):
            part = np.abs(values[0]) if not first else np.abs(values[0]) - np.abs(values[1])
        field = codes & word(fmt.exponent_mask)
        sign = codes & word(fmt.sign_bit)
        found = np.where(field, encode(np.where(np.isfinite(part), part, 0.0), fmt), 0) | sign
        return np.where(field == fmt.exponent_mask, codes, found.astype(codes.dtype))

    def pass_bits(self, p):
        """The chain, on what the multipliers take of the operands."""
        a, b = ([self.taken(bits, p.formats[side], side) for bits in codes] for side, codes in enumerate((p.a, p.b)))
        return self.dot.pass_bits(dataclasses.replace(p, spec=self.dot, a=a, b=b))

    def conversion(self, formats):
        def convert(codes, side):
            return self.taken_array(codes, formats[side], side)

        return Conversion(self.dot, formats, convert)

    def plan_fields(self, formats, scale, block_size):
        return self.dot.plan_fields(formats, scale, block_size)

    def arrangement(self, length):
        return self.dot.arrangement(length)

    def words(self, d):
        words = self.dot.words(d)
        parts = [
            f"bits {first + 1} to {last} of {name}"
            for name, (first, last) in zip("ab", map(self.bits_of, (0, 1)), strict=True)
        ]
        first = f"Of each significand the multiplier takes {' and '.join(parts)}, the leading bit being bit 1."
        return Words(
            f"Fidelity phase {self.phase}",
            (first, *words.steps),
            words.formula,
            f"takes a part of each significand, then {words.brief}",
        )

    def add_step(self, ks, c, to):
        return self.dot.add_step(ks, c, to)

    def step_error(self, unit, facts):
        """The chain's error, and what the multipliers leave of the products: their size at most."""
        found = self.dot.step_error(unit, facts)
        left = 2.0 ** (1 - self.leading_a) + 2.0 ** (1 - self.leading_b) if self.phase == 0 else 1.0
        texts = (*found.derivation, f"of each product at most {left:g} of its size is left to other phases")
        return dataclasses.replace(found, relative=found.relative * (1 + left) + left, derivation=texts)

    @classmethod
    def searches(cls):
        fields: tuple[Any, ...] = (Field(("phase",), one_of(0, 1, 2, 3)), *search.COMMON)

        def starts(interface):
            return [cls(phase, terms) for terms in divisors(interface) for phase in range(4) if cls._takes(interface)]

        return (Search("fidelity phases", fields, search.unscaled(starts), ("terms",), rank=95),)

    @staticmethod
    def _takes(interface) -> bool:
        return all(
            fmt.specials == "ieee" and fmt.bits >= 16 and fmt.fraction_bits <= 10 for fmt in interface.formats[:2]
        )
