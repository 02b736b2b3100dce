"""Defines WidenedDotAdd, which widens c, sums in the wider format, and rounds the result of each instruction to d."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arithmetic.numbers import NAN, special_bits
from ..explanations.descriptions import Words, rounded
from ..formats import FORMATS, Format, get_float_format
from ..formats.rounding import decode, encode
from .base import Accumulator, Conversion, Form, SumAlgorithm
from .checks import MAX_TERMS, check_range, holds, require
from .fused import FusedDotAdd

#: Formats between which NumPy converts by rounding to nearest, and their NumPy types.
_NUMPY = {FORMATS[f"fp{8 * kind().itemsize}"]: kind for kind in (np.float16, np.float32, np.float64)}


@dataclass(frozen=True)
class WidenedDotAdd(Accumulator):
    """`WidenedDotAdd` is WMMA whose C and D have different formats, computed by the FP32 instruction between two conversions.

    c is converted exactly to `via_format`, in which its subnormal numbers are normal. `dot` then adds the products of one
    instruction in chained steps. If d has another format than `via_format`, the result is rounded to the format of d (to
    nearest, ties to even); a negative result that rounds to zero is -0.

    Sources: the SASS that nvcc 13.0 makes for sm_75 to sm_120 (HADD2.F32, HMMA.F32, F2FP.F16.F32 or F2F), and outputs of an
    H100 (docs/hardware.md).

    Parameters
    ----------
    dot : Accumulator
        Algorithm of the sum, whose addends and results have `via_format`.
    terms : int
        Number of products of one instruction, a multiple of the products of a step of `dot`.
    via_format : str
        Format in which `dot` sums.
    """

    dot: Accumulator = FusedDotAdd()
    terms: int = 16
    via_format: str = "fp32"

    step_field: ClassVar = "terms"
    left_out: ClassVar = {
        "search": "`identify` finds the algorithm of `dot`, on the instruction whose C and D have the format of the sum",
        "probe vectors": "the vectors of `dot` show its last rounding, which the rounding to d hides",
    }

    def _check(self):
        check_range(self, "terms", 1, MAX_TERMS)
        step = self.dot.terms_per_step
        require(
            self.terms % step == 0,
            self,
            f"terms {self.terms} must be a multiple of {step}, the products of a step of dot",
        )
        require(
            self.dot.key is None,
            self,
            "dot is rounded stochastically, but a pass of several sums has only one draw: choose another output_rounding of "
            "dot",
        )
        for rule in Accumulator.edge_rules:
            mine, theirs = getattr(self, rule), getattr(self.dot, rule)
            require(mine == theirs, self, f"{rule} is {mine!r} and that of dot is {theirs!r}: give both the same value")
        get_float_format(self.via_format)

    def with_rules(self, **rules):
        """Return a copy whose `dot` has other values of its edge rules.

        The rules `nan` and `tf32_nan` are fields of both accumulators and must be equal, so they are set in both.

        Raises
        ------
        ValueError
            If `dot` has no such rule, or the rule does not allow that value.
        """
        own = {name: value for name, value in rules.items() if name in self.edge_rules}
        return dataclasses.replace(self, dot=self.dot.with_rules(**rules), **own)

    @property
    def inner(self) -> Accumulator:
        return self.dot.inner

    @property
    def _steps(self) -> int:
        """Return the number of steps of `dot` in one instruction."""
        return self.terms // self.dot.terms_per_step

    def _formats(self, formats) -> tuple:
        """Return the formats of `dot`."""
        via = get_float_format(self.via_format)
        return (*formats[:2], via, via)

    def check_formats(self, formats, block_size):
        super().check_formats(formats, block_size)
        via = get_float_format(self.via_format)
        for name, fmt in zip("cd", formats[2:], strict=True):
            if not holds(via, fmt):
                raise ValueError(
                    f"WidenedDotAdd sums in {via.name}, which lacks numbers of {name}_format {fmt.name}: choose a narrower "
                    "format or another via_format"
                )
        self.dot.check_formats(self._formats(formats), block_size)

    def interchangeable(self, length):
        """Return the sets of products that may change places in each step of `dot`."""
        step = self.dot.terms_per_step
        found: list[tuple[int, ...]] = []
        for start in range(0, length, step):
            places = self.dot.interchangeable(min(step, length - start))
            found += (tuple(start + place for place in part) for part in places)
        return tuple(found)

    def idle(self, formats):
        """Return `dot.idle` if c and d have `via_format`, else False.

        With another format, a pass over zeros turns a result -0 of an earlier pass into +0.
        """
        inner = self._formats(formats)
        return formats[2] == formats[3] == inner[3] and self.dot.idle(inner)

    def pass_bits(self, p):
        """Return the encoding of the result of the steps of `dot`, rounded to the format of d.

        The steps start from c, converted to `via_format`.
        """
        z, inner = p.arithmetic, self._formats(p.formats[:4])
        via, d_format, step = inner[3], p.formats[3], self.dot.terms_per_step
        total = p.c if p.formats[2] == via else z.converted(p.formats[2], p.c, via, self)
        for start in range(0, len(p.a), step):
            a, b = (codes[start : start + step] for codes in (p.a, p.b))
            total = p.inner(self.dot, a=a, b=b, c=total, formats=inner, scales=((),) * len(a))
        return total if d_format == via else z.add(total, via, via.sign_bit, via, d_format, self, "rne")

    def words(self, d):
        inner = self.dot.words(self.via_format)
        last = (
            f"The result of {self.terms} products is {rounded('rne', d)}. A negative result that rounds to zero is -0."
        )
        steps = (
            f"c is converted exactly to {self.via_format}, in which its subnormal numbers are normal.",
            *inner.steps,
            *((last,) if d != self.via_format else ()),
        )
        brief = f"widens c to {self.via_format}, {inner.brief}" + (f", then to {d}" if d != self.via_format else "")
        title = f"{inner.title}, after c is converted to {self.via_format}"
        title += f" and before the result is rounded to {d}" if d != self.via_format else ""
        return Words(title, steps, inner.formula, brief, inner.window)

    def shows_order(self, formats):
        return self.dot.shows_order(self._formats(formats))

    def plan_fields(self, formats, scale, block_size):
        return self.dot.plan_fields(self._formats(formats), scale, block_size)

    def arrangement(self, length):
        return self.dot.arrangement(length)

    def conversion(self, formats):
        _, _, c_format, d_format = formats
        inner = self._formats(formats)

        def widened(codes, side):
            return codes if side < 2 else self._rounded(codes, c_format, inner[2])

        def finished(codes):
            return self._rounded(codes, inner[3], d_format)

        return Conversion(self.dot, inner, widened, finished, None if d_format == inner[3] else self.terms)

    def _rounded(self, codes: np.ndarray, fmt: Format, to: Format) -> np.ndarray:
        """Return encodings rounded to nearest to another format; a NaN becomes the one of the rule `nan`."""
        if fmt == to:
            return codes
        if fmt in _NUMPY and to in _NUMPY:
            values = codes.view(_NUMPY[fmt])
            with np.errstate(over="ignore"):
                found = values.astype(_NUMPY[to]).view(to.container)
        else:
            values = decode(codes, fmt, np.float64)
            found = encode(values, to)
        found[np.isnan(values)] = special_bits(NAN, to, self)
        return found

    def form(self):
        return Form(SumAlgorithm.WIDENED, self)

    def unrounded(self):
        return self.dot.unrounded()
