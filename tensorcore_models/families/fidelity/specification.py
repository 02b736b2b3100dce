"""Defines FidelityPhases and IntegerPhases, whose multipliers take part of each operand in each phase (Tenstorrent).

The arithmetic is that of tenstorrent/ttsim 56694c8 (Apache-2.0), src/tensix.cpp, which its vendor calls the golden reference of
Wormhole and Blackhole. The order of phases and tiles is that of tenstorrent/tt-llk 36b092e, llk_math_matmul.h. The unit
computes D = SrcB SrcA + D, so A is SrcB here and B is SrcA.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

from ...aspects import errors, plans
from ...aspects.plans import FLUSH_LIKE_ZERO, format_fields, result_fields, rule_fields
from ...aspects.probes import ONE
from ...aspects.search import Field, Search, one_of, unscaled
from ...aspects.values import power
from ...explanations.descriptions import Words
from ...formats import Format
from ..base import Accumulator, Form, SumAlgorithm
from ..checks import MAX_TERMS, check_range, require
from ..ieee import operand_flush
from .parts import DIGITS, ERRATUM, GROUP, STEP, TAKEN, follows, lowered
from .steps import added, group_sums

#: Masks of the bits of a magnitude that a multiplier takes of A and of B: in phases that take leading bits, and in the others.
INTEGER_BITS = ((0x3F0, 0xF), (0xE0, 0x1F))
#: Names that the vendor's library gives to the tuples of phases that run.
NAMES = {(0,): "LoFi", (0, 1): "HiFi2", (0, 1, 2): "HiFi3", (0, 1, 2, 3): "HiFi4"}
#: Accumulator formats of each operand format: the exponents of both have the same number of bits.
RESULTS = {"bf16": ("fp32", "bf16"), "tf32": ("fp32", "bf16"), "fp16": ("fp32", "fp16")}


_NOT_DERIVED = "nobody has derived which products may change places when each is added in several parts"


@dataclass(frozen=True)
class _Phases(Accumulator):
    """`_Phases` holds the fields of both classes: the phases that run over each tile of k before the next tile begins."""

    phases: tuple[int, ...] = (0,)
    tile: int = STEP

    step_field: ClassVar = "tile"
    operands_alike: ClassVar = False

    @property
    def partial(self) -> bool:  # type: ignore[override]
        """Return whether phase 0, which multiplies the leading bits, does not run."""
        return self.phases[0] > 0

    def _check(self):
        check_range(self, "tile", 1, MAX_TERMS)
        known = bool(self.phases) and tuple(sorted(set(self.phases) & {0, 1, 2, 3})) == self.phases
        require(known, self, f"phases {self.phases} must be some of 0 to 3, in this order")

    def _ordered(self, *codes):
        """Yield (phase, members of each sequence) for each step of the unit over a tile."""
        for phase in self.phases:
            for start in range(0, len(codes[0]), STEP):
                yield phase, *(x[start : start + STEP] for x in codes)

    def add_step(self, ks, c, to):
        """Add the operations of one phase to a tree of the sum; all phases add in the same order."""
        note = "each product is rounded to the last place of the group's largest product"
        for start in range(0, len(ks), STEP):
            part = ks[start : start + STEP]
            groups = [to.add(part[i : i + GROUP], "group", note) for i in range(0, len(part), GROUP)]
            c = to.add([c, *groups], "", "both group sums and the accumulator are aligned and rounded, in each phase")
        return c

    def form(self):
        return Form(SumAlgorithm.PHASES, self)

    def _plan(self, family: int) -> dict[str, Any]:
        return {"family": family, "wide": 0, "step": self.tile, "phases": sum(1 << phase for phase in self.phases)}

    @property
    def _turns(self) -> str:
        """Return the sentence about the order of phases and steps."""
        if len(self.phases) == 1:
            return f"Only phase {self.phases[0]} runs, over {STEP} products at a time."
        named = ", ".join(map(str, self.phases))
        return (
            f"Phases {named} run one after the other over each tile of {self.tile} products, {STEP} products at a time."
        )

    @property
    def _title(self) -> str:
        return f"phase{'s' * (len(self.phases) > 1)} {', '.join(map(str, self.phases))}"

    def simplest(self):
        """Return a copy whose tile is one step of 16 products, which computes the same.

        If several phases run, or the tile is no whole number of steps, the accumulator itself is returned.
        """
        return self if len(self.phases) > 1 or self.tile % STEP else type(self)(**vars(self) | {"tile": STEP})

    @classmethod
    def _starts(cls, interface):
        for phases in ((0,), (1,), (2,), (3,), (0, 1), (0, 1, 2), (0, 1, 2, 3)):
            yield cls(phases, interface.k)


_TILES = Field(("tile",), lambda i, s: [n for n in range(i.k, 0, -1) if i.k % n == 0 and n % min(STEP, i.k) == 0])
_SOME = Field(("phases",), lambda i, s: [tuple(p for p in range(4) if bits >> p & 1) for bits in range(1, 16)])


@dataclass(frozen=True)
class FidelityPhases(_Phases):
    """`FidelityPhases` is the sum of Tenstorrent's MVMUL on Wormhole and Blackhole (tenstorrent/ttsim, tensix.cpp).

    Significands have 11 bits. In each phase a multiplier reads some of these bits:

    - phase 0: the leading 7 bits of A and the leading 5 bits of B
    - phase 1: the leading 7 bits of A and the next 5 bits of B
    - phase 2: the next 4 bits of A and the leading 5 bits of B
    - phase 3: the next 4 bits of A and the next 5 bits of B

    A phase takes 16 products at a time, in two groups of 8:

    1. The products of a group are aligned to their largest exponent, rounded to the last place of the product with that
       exponent (ties away from zero), and added.
    2. Both group sums and the accumulator are aligned to the largest of their exponents and rounded: ties of the sums up, ties
       of the accumulator away from zero.
    3. These three numbers are added, and the total is rounded to the result format, ties away from zero.

    Subnormal numbers are zeros. Operands have neither infinities nor NaN: every exponent field stands for a number.

    Parameters
    ----------
    phases : tuple of int
        Phases that run over one tile, ascending: LoFi (0,), HiFi2 (0, 1), HiFi3 (0, 1, 2), HiFi4 (0, 1, 2, 3).
    tile : int
        Number of products over which all phases run before the next tile: 16 for the instruction, 32 in the vendor's library.
    erratum : {"none", "minus_one"}
        Edge rule: with "minus_one" a total of exactly -1 unit of the last place is returned as 2^27 times its value. This is
        an erratum of Wormhole (tt-metal issue 38306).
    """

    erratum: Literal["none", "minus_one"] = "none"

    edge_rules: ClassVar = {**Accumulator.edge_rules, "erratum": ("none", "minus_one")}
    left_out: ClassVar = {"symmetries": _NOT_DERIVED}

    # A class with its own pass_bits must name the methods that it takes over (Accumulator.__init_subclass__).
    add_step, simplest = _Phases.add_step, _Phases.simplest

    def shows_order(self, formats):
        """Return False for fp16, whose range is too narrow for large addends X and -X that absorb all small addends."""
        return super().shows_order(formats) and formats[0].name != "fp16"

    def check_formats(self, formats, block_size):
        super().check_formats(formats, block_size)
        a, b, c, d = (fmt.name for fmt in formats)
        if a != b or a not in RESULTS or c != d or d not in RESULTS[a]:
            raise ValueError(
                "FidelityPhases multiplies bf16 or tf32 into fp32 or bf16, and fp16 into fp32 or fp16; A and B must "
                f"have one format, and C and D must have one format; got {a} x {b} + {c} to {d}"
            )

    def pass_bits(self, p):
        """Return the encoding of the accumulator after all phases.

        Each phase adds its parts of all products of a tile, 16 products at a time. Then the next phase begins.
        """
        if len(self.phases) > 1:
            p.unencodable("solvers do not answer in time about several phases of one tile")
        total = p.c
        for phase, a, b in self._ordered(p.a, p.b):
            total = self._added(group_sums(phase, a, b, p.formats), total, p.formats[3])
        return total

    def _added(self, groups, c, fmt):
        return added(groups, c, fmt, self.erratum == "minus_one")

    # -- words ----------------------------------------------------------------------------------------------------------
    def words(self, d):
        parts = " ".join(
            f"In phase {phase} the multiplier takes {' and '.join(self._bits(phase, side) for side in (0, 1))}."
            for phase in self.phases
        )
        steps = (
            f"Significands have {DIGITS} bits, of which bit 1 is the leading one. {parts}",
            "Subnormal operands are zeros.",
            self._turns,
            f"The products of each of two groups of {GROUP} are aligned to their largest exponent, rounded half away from zero "
            "to the last place of the product with that exponent, and added.",
            f"Both sums and the accumulator are aligned to the largest of their exponents and rounded to 23 fraction bits"
            f"{', then to 10' if d != 'fp32' else ''}. Ties of the sums are rounded up, ties of the accumulator away from "
            "zero.",
            f"They are added, and the result is rounded to {d}, ties away from zero. A result below the normal numbers is +0.",
        )
        if self.erratum == "minus_one" and d == "fp32":
            wrong = (
                f"A sum of -1 unit of the last place is returned as 2^{ERRATUM} times its value (Wormhole's erratum)."
            )
            steps = (*steps, wrong)
        name = NAMES.get(self.phases, "")
        formula = (
            r"d = \mathrm{RNA}\left(\mathrm{RNA}_{23}(c) + \sum_g \mathrm{R}_{23}\left("
            r"\sum_{i \in G_j} \mathrm{RNA}_{10}(a_i' b_i')\right)\right)"
        )
        brief = f"multiplies parts of significands ({name or self._title}) and adds two groups of {GROUP} to the accumulator"
        title = f"The unit multiplies parts of significands in fidelity {self._title}" + (f" ({name})" if name else "")
        return Words(title, steps, formula, brief)

    @staticmethod
    def _bits(phase: int, side: int) -> str:
        first = TAKEN[side] if follows(phase, side) else 0
        return f"bits {first + 1} to {min(first + TAKEN[side], DIGITS)} of {'ab'[side]}"

    def inside(self, p):
        """Return a text with both group sums and the new accumulator for each step of the unit that adds a nonzero number."""
        found, total, fmt = [], p.c, p.formats[3]
        for phase, a, b in self._ordered(p.a, p.b):
            groups = group_sums(phase, a, b, p.formats)
            after = self._added(groups, total, fmt)
            sums = [group.value * power(group.exponent - fmt.bias - 23) for group in groups]
            if any(sums) or after != total:
                plain = FidelityPhases(self.phases, self.tile)._added(groups, total, fmt)
                text = f"phase {phase}: {_shown(total, fmt)} + {float(sums[0])!r} + {float(sums[1])!r} = {_shown(after, fmt)}"
                wrong = f"; without Wormhole's erratum about a sum of -1 unit it would be {_shown(plain, fmt)}"
                found.append((text + wrong * (plain != after), _apart(after, total, sum(sums), fmt)))
            total = after
        return found

    # -- kernels --------------------------------------------------------------------------------------------------------
    def plan_fields(self, formats, scale, block_size):
        a, b = ({**format_fields(f, self, "skip", flush=FLUSH_LIKE_ZERO), "specials": 3} for f in formats[:2])
        c = format_fields(formats[2], self)
        rest = {"c": c, "chained": c, "raw_c": c, "raw_d": c, "result": result_fields(formats[3])}
        rule = rule_fields(formats[3], self, "rna")
        return self._plan(plans.PHASES) | {
            "a": a, "b": b, **rest, "rule": rule, "late": rule, "erratum": self.erratum == "minus_one",
        }  # fmt: skip

    # -- bound ----------------------------------------------------------------------------------------------------------
    def step_error(self, unit, facts):
        """Return a bound on the error of one step, which docs/tenstorrent.md derives.

        The bound covers the parts of operands that no phase multiplies, all roundings, and Wormhole's erratum if `erratum`
        models it.
        """
        d = unit.formats[3]
        left = self.left_of_products(unit.formats[0])
        groups = (GROUP - 1) * 2.0**-DIGITS * sum(2.0 ** -lowered(phase) for phase in self.phases)
        addends = 1.5 * 2.0**-23 + (1.5 * 2.0**-10 if d.name != "fp32" else 0.0)
        each = errors.compounded(addends + 2.0**-8, 2.0 ** -(d.fraction_bits + 1)) - 2.0**-8
        steps = len(self.phases) * -(-self.tile // STEP)
        relative = math.expm1(steps * math.log1p(each))
        products = errors.compounded(left, groups)
        absolute = self._lost(unit, facts, steps) * (1 + relative)
        texts = [
            f"the phases leave out at most {left:.3g} of each product",
            f"groups of {GROUP} products are aligned and lose half a unit each: {groups:.3g}",
            f"accumulator and sums are aligned and rounded {steps} times: {each:.3g} each",
        ]
        if self.erratum == "minus_one" and d.name == "fp32":
            products += 2.0 ** (ERRATUM - 23) + 3
            texts.append(
                "a sum of exactly -1 unit may be returned as 2^27 times its value, an error of 19 times the step's |a||b|"
            )
        return errors.StepError(relative, absolute, self.tile, tuple(texts), products=products)

    def left_of_products(self, fmt: Format) -> float:
        """Return the largest share of a product of two numbers of the format that is lost, because no phase computes it."""
        digits, left = fmt.fraction_bits + 1, 0.0
        for phase in range(4):
            sides = [self._most(phase, side, digits) for side in (0, 1)]
            left += math.prod(sides) if phase not in self.phases else 0.0
        never = 2.0 ** (1 - DIGITS) if digits > 2 * TAKEN[1] else 0.0  # the last bit of B
        return left + never

    @staticmethod
    def _most(phase: int, side: int, digits: int) -> float:
        """Return the largest part of a significand that a phase takes, relative to the significand."""
        if not follows(phase, side):
            return 1.0
        return 2.0 ** (1 - TAKEN[side]) if digits > TAKEN[side] else 0.0

    def _lost(self, unit, facts, steps: int) -> float:
        """Return a bound on the loss by flushed operands, groups without a positive exponent field, and subnormal results."""
        a, b, _, d = unit.formats
        flushed = self.tile * operand_flush(unit.formats, facts.largest)
        small = 2.0 ** (1 - d.bias)
        zero = max(d.bias - a.bias - b.bias, 0)  # exponent field to which zero products lift the alignment
        lifted = 2.0 ** (zero - d.bias - 22) if zero else 0.0
        return flushed + steps * (2 * GROUP * 4 * small + 3 * small + lifted)

    # -- search and probe vectors ----------------------------------------------------------------------------------------
    @classmethod
    def searches(cls):
        fields = (
            _SOME,
            _TILES,
            Field(("erratum",), one_of("none", "minus_one"), lambda i, s: i.formats[3].name == "fp32"),
        )
        return (Search("fidelity phases", fields, unscaled(cls._starts), ("phases",), rank=95),)

    def probe(self, build):
        """Add vectors that show which bits of the operands each phase multiplies, and how the products of a group are rounded.

        A further vector shows whether the unit has Wormhole's erratum. In every phase, the parts of 1.0000001 and 1.00001
        (binary) have a nonzero product.
        """
        wide = build.row.formats[3].name == "fp32"
        first = self.phases[0]
        pair = (ONE, ONE) if first == 0 else (1 + power(-TAKEN[0]), 1 + power(-TAKEN[1]))
        parts = {phase: power(-lowered(phase)) for phase in range(4)}
        kept = [parts[phase] for phase in self.phases if wide or len(self.phases) == 1 or phase != 3]
        build.add(
            "the bits that the phases take", {0: (1 + power(-7), 1 + power(-5))}, 0, sum(kept), smallest=min(kept)
        )
        if not wide:
            return
        size = parts[first]
        last = size * power(-23)
        erratum = self.erratum == "minus_one"
        result = -last * (power(ERRATUM) if erratum else 1)
        if len(self.phases) == 1 or first == 0:
            name = f"a sum of -1 unit: {'2^27 times its value' if erratum else 'unchanged'}"
            build.add(name, {0: pair}, -size - last, result, smallest=last)
        if first:
            return
        for sign in (1, -1):
            tie = sign * power(-11)
            build.add("half a unit beside 1 in its group: away from zero", {0: ONE, 1: tie}, 0, 1 + 2 * tie)
            build.add(
                "less than half a unit beside 1 in its group: lost", {0: ONE, 1: tie / 2}, 0, 1, smallest=power(-12)
            )
            build.add("less than half a unit in the other group: kept", {0: ONE, 8: tie / 2}, 0, 1 + tie / 2)


def _value(code: int, fmt: Format) -> Fraction | None:
    """Return the value of an encoding, None for infinity and NaN."""
    kind, negative, significand, exponent = fmt.decode_exact(code)
    return (-significand if negative else significand) * power(exponent) if kind == "finite" else None


def _shown(code: int, fmt: Format) -> str:
    value = _value(code, fmt)
    return f"{code:#x}" if value is None else repr(float(value))


def _apart(after: int, before: int, added: Fraction, fmt: Format) -> float:
    """Return the distance of a rounded sum from the exact sum."""
    values = _value(after, fmt), _value(before, fmt)
    return 0.0 if values[0] is None or values[1] is None else float(abs(values[0] - values[1] - added))


@dataclass(frozen=True)
class IntegerPhases(_Phases):
    """`IntegerPhases` multiplies parts of 8-bit integers and adds them exactly, saturating (tenstorrent/ttsim, tensix.cpp).

    A multiplier takes these bits of the magnitudes in each phase:

    - phase 0: bits 4 to 9 of A and bits 5 to 7 of B
    - phase 1: bits 4 to 9 of A and bits 0 to 4 of B
    - phase 2: bits 0 to 3 of A and bits 5 to 7 of B
    - phase 3: bits 0 to 3 of A and bits 0 to 4 of B

    The 16 products of a step are added exactly to the sum, which saturates at +-(2^31 - 1).

    Parameters
    ----------
    phases, tile
        Phases and products of a tile, as in :class:`FidelityPhases`.
    """

    takes_integers: ClassVar[bool] = True
    left_out: ClassVar = {
        "terms": "solvers are asked about floating-point formats only",
        "probe vectors": "an integer sum has no alignment and no rounding that a vector could show",
        "symmetries": _NOT_DERIVED,
    }

    add_step, simplest = _Phases.add_step, _Phases.simplest

    def check_formats(self, formats, block_size):
        super().check_formats(formats, block_size)
        if [fmt.name for fmt in formats] != ["s8", "s8", "s32", "s32"]:
            got = ", ".join(fmt.name for fmt in formats)
            raise ValueError(f"IntegerPhases got the formats {got} of a, b, c and d, expected s8, s8, s32, s32")

    def pass_bits(self, p):
        """Return exact sums of 16 products of parts, each added to the sum with saturation."""
        total = p.formats[2].decode_integer(p.c)
        decoded = ([fmt.decode_integer(x) for x in codes] for codes, fmt in zip((p.a, p.b), p.formats, strict=False))
        for phase, a, b in self._ordered(*decoded):
            total += sum(self._taken(x, phase, 0) * self._taken(y, phase, 1) for x, y in zip(a, b, strict=True))
            total = max(-p.formats[3].maximum, min(total, p.formats[3].maximum))
        return total & (1 << 32) - 1

    @staticmethod
    def _taken(x: int, phase: int, side: int) -> int:
        part = abs(x) & INTEGER_BITS[side][follows(phase, side)]
        return -part if x < 0 else part

    def words(self, d):
        parts = " ".join(
            f"In phase {phase} the multiplier takes bits {'0 to 3' if phase & 2 else '4 to 9'} of the magnitude of a and bits "
            f"{'0 to 4' if phase & 1 else '5 to 7'} of the magnitude of b."
            for phase in self.phases
        )
        steps = (
            parts,
            self._turns,
            f"{STEP} products are added exactly to the sum, which saturates at 2^31 - 1 and -(2^31 - 1).",
        )
        brief = "multiplies parts of integers and adds them exactly, with saturation"
        title = f"The unit multiplies parts of integers in fidelity {self._title}"
        return Words(title, steps, r"d = c + \sum_i a_i' b_i'", brief)

    def plan_fields(self, formats, scale, block_size):
        fields = self._plan(plans.INTEGER_PHASES)
        for name, fmt in zip("abcd", formats, strict=True):
            fields |= {f"{name}_bits": fmt.bits, f"{name}_signed": fmt.signed}
        return fields

    def step_error(self, unit, facts):
        """Return the error of one step, in which nothing is rounded but phases that do not run leave parts of products out."""
        whole = self.phases == (0, 1, 2, 3)
        text = "integer products and sums are exact (the bound is infinite if int32 overflows)"
        left = "" if whole else "; the phases leave out up to the whole of each product"
        return errors.StepError(0.0, 0.0, self.tile, (text + left,), products=0.0 if whole else 1.0)

    @classmethod
    def searches(cls):
        return (Search("integer phases", (_SOME, _TILES), cls._starts, ("phases",), rank=105),)
