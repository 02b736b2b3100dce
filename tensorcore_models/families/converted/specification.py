"""Defines ConvertedDotAdd, a unit that converts its operands to another format and then runs another accumulator."""

import dataclasses
import itertools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

from ...aspects.search import Field, Interface, Search, divisors, inside, unscaled
from ...explanations.descriptions import Words, rounded
from ...formats import get_float_format
from ..base import Accumulator, Conversion, Form, SumAlgorithm
from ..checks import require
from ..fma_chain import SequentialFMA
from ..fused import ParametricDotAdd
from ..fused.search import FIELDS as PARAMETRIC
from ..ieee import operand_flush
from . import integers

SpecialCodes = Literal["own", "ieee", "finite", "fn"]
#: Edge rules of the conversion; the inner accumulator has all others.
OWN_RULES = ("bias_a", "bias_b", "specials_a", "specials_b")
#: Formats in which units multiply.
CARRIERS = ("fp16", "bf16", "tf32", "fp32")


@dataclass(frozen=True)
class ConvertedDotAdd(Accumulator):
    """`ConvertedDotAdd` converts operands to `via_format` and computes the sum by another accumulator, `dot`.

    A conversion to a narrower format rounds to nearest even.

    Gaudi's matrix engines convert their operands (HabanaAI/Intel_Gaudi3_Software, mme/mme_reference). fp8 and fp16 operands
    become FP32 numbers, so that subnormal numbers have the exponent of their leading bit. A tf32 operand is given as an FP32
    number, which the unit rounds.

    Parameters
    ----------
    dot : Accumulator
        Algorithm of the sum, whose operands have `via_format`.
    via_format : str
        Format of the converted operands. The conversion also reads the low bits that other units ignore, such as tf32's 13.
    flush : bool
        Whether operands that are subnormal in `via_format` become zeros of the same sign.
    bias_a, bias_b : int or None
        Edge rules: exponent biases of the operands; None for the biases of their formats.
    specials_a, specials_b : {"own", "ieee", "finite", "fn"}
        Edge rules: meaning of encodings with the largest exponent. "own": that of the format. "ieee": infinities and NaN.
        "finite": numbers. "fn": numbers, except that all ones is NaN.
    bias_range : tuple of int
        Lowest and highest bias that the unit supports, and the step between biases; empty if the unit supports only the biases
        of its formats.
    codes : tuple of str
        Values of `specials_a` and `specials_b` that the unit supports in addition to "own".
    """

    dot: Accumulator = ParametricDotAdd()
    via_format: str = "fp32"
    flush: bool = False
    bias_a: int | None = None
    bias_b: int | None = None
    specials_a: SpecialCodes = "own"
    specials_b: SpecialCodes = "own"
    bias_range: tuple[int, ...] = ()
    codes: tuple = ()

    edge_rules: ClassVar = {**Accumulator.edge_rules, **dict.fromkeys(OWN_RULES)}
    converts: ClassVar = True
    left_out: ClassVar = {"probe vectors": "the vectors of `dot` are not made for converted subnormal operands"}

    def _check(self):
        via = get_float_format(self.via_format)
        require(
            via.specials == "ieee" and via.signed,
            self,
            f"via_format {via.name} lacks a sign, infinities or NaN: choose a format such as fp32",
        )
        require(
            not isinstance(self.dot, ConvertedDotAdd),
            self,
            "dot is a ConvertedDotAdd, too: give the accumulator that runs after both conversions",
        )
        given = self.bias_range
        require(len(given) in (0, 3), self, f"bias_range is {given}, expected (lowest, highest, step) or ()")
        biases = range(given[0], given[1] + 1, given[2]) if given else range(0)
        known = ", ".join(map(str, biases)) if len(biases) < 9 else f"{biases[0]} to {biases[-1]}"
        for name in ("bias_a", "bias_b"):
            bias = getattr(self, name)
            has = known or "only the bias of its format: None"
            require(bias is None or bias in biases, self, f"{name} is {bias}, the unit has {has}")
        for name in ("specials_a", "specials_b"):
            value, has = getattr(self, name), ", ".join(map(repr, ("own", *self.codes)))
            require(value == "own" or value in self.codes, self, f"{name} is {value!r}, the unit has {has}")

    @property
    def terms_per_step(self) -> int:
        return self.dot.terms_per_step

    @property
    def groups_per_instruction(self) -> int:
        return self.dot.groups_per_instruction

    @property
    def key(self) -> int | None:
        return self.dot.key

    @property
    def inner(self) -> Accumulator:
        return self.dot.inner

    def interchangeable(self, length):
        return self.dot.interchangeable(length)

    def with_rules(self, **rules):
        """Return a copy with other values of edge rules of the conversion or of `dot`.

        Raises
        ------
        ValueError
            If a name is not an edge rule of the conversion or of `dot` (the message lists all), or the unit does not support a
            value.
        """
        unknown = sorted(set(rules) - {*OWN_RULES, *self.dot.edge_rules})
        if unknown:
            known = ", ".join((*OWN_RULES, *self.dot.edge_rules))
            raise ValueError(f"{type(self).__name__} has no edge rule {', '.join(map(repr, unknown))}; it has {known}")
        own = {name: value for name, value in rules.items() if name in OWN_RULES}
        inner = {name: value for name, value in rules.items() if name not in OWN_RULES}
        return dataclasses.replace(self, dot=self.dot.with_rules(**inner), **own)

    def operand_format(self, fmt, side: int):
        """Return the format of operand a (side 0) or b (1) under the edge rules.

        A format that the rules change gets a name of its own and no NumPy type.
        """
        bias = (self.bias_a, self.bias_b)[side]
        specials = (self.specials_a, self.specials_b)[side]
        changes: dict[str, Any] = {} if bias is None else {"bias": bias}
        if specials != "own":
            changes["specials"] = specials
        read = dataclasses.replace(fmt, **changes)
        if read == fmt:
            return fmt
        return dataclasses.replace(
            read, name=f"{fmt.name.split('_')[0]}_{read.specials}_bias{read.bias}", dtype_name=""
        )

    def _formats(self, formats) -> tuple:
        """Return the formats of the converted operands, of c and of d."""
        via = get_float_format(self.via_format)
        return (via, via, *formats[2:])

    def check_formats(self, formats, block_size):
        super().check_formats(formats, block_size)
        via = get_float_format(self.via_format)
        for side, fmt in enumerate(formats[:2]):
            if not integers.converts(self.operand_format(fmt, side), via):
                raise ValueError(
                    f"ConvertedDotAdd converts its operands to {via.name} first, which cannot take all numbers of "
                    f"{'ab'[side]}_format {fmt.name}: choose a narrower operand format or another via_format"
                )
        self.dot.check_formats(self._formats(formats), block_size)

    def pass_bits(self, p):
        """Return the encoding of the result that `dot` computes from the converted operands."""
        z, via = p.arithmetic, get_float_format(self.via_format)
        a, b = (
            [self._converted(z, self.operand_format(p.formats[side], side), code, via) for code in codes]
            for side, codes in enumerate((p.a, p.b))
        )
        return p.inner(self.dot, a=a, b=b, formats=(via, via, *p.formats[2:4]))

    def _converted(self, z, fmt, code, via):
        """Return a code converted to the format in which the unit multiplies, with the ignored bits of a padded format."""
        found = z.converted(integers.full_width(fmt), code, via, self)
        return z.without_subnormals(found, via) if self.flush else found

    def words(self, d):
        words = self.dot.words(d)
        verb = rounded("rne", self.via_format)
        if not get_float_format(self.via_format).padding_bits:
            verb = f"converted to {self.via_format}"
        first = [f"Operands are {verb}."]
        if self.flush:
            first.append(f"Operands that are subnormal in {self.via_format} become zero and keep their sign.")
        elif verb.startswith("converted"):
            first.append(
                f"A subnormal operand that is a normal number in {self.via_format} then has the exponent of its leading bit."
            )
        given = [f"{name} = {getattr(self, name)}" for name in OWN_RULES if getattr(self, name) not in (None, "own")]
        if given:
            first.append(f"Operands are read with {', '.join(given)}.")
        brief = f"converts its operands to {self.via_format}, then {words.brief}"
        title = words.title.replace("The unit ", f"The unit converts its operands to {self.via_format}, then ", 1)
        return Words(title, (*first, *words.steps), words.formula, brief, words.window)

    def add_step(self, ks, c, to):
        return self.dot.add_step(ks, c, to)

    def shows_order(self, formats):
        """Return False, because the small addends that show an order may be converted to zero."""
        return False

    def plan_fields(self, formats, scale, block_size):
        return self.dot.plan_fields(self._formats(formats), scale, block_size)

    def arrangement(self, length):
        return self.dot.arrangement(length)

    def conversion(self, formats):
        via = get_float_format(self.via_format)
        given = [self.operand_format(fmt, side) for side, fmt in enumerate(formats[:2])]
        converted = self._formats(formats)

        def convert(codes, side):
            return integers.convert_array(codes, given[side], via, self.flush)

        return Conversion(self.dot, converted, convert)

    def form(self):
        return Form(SumAlgorithm.CONVERTED, self)

    def unrounded(self):
        dot = self.dot.unrounded()
        return None if dot is None else dataclasses.replace(self, dot=dot)

    def step_error(self, unit, facts):
        """Return a bound on the error of a step of `dot`, plus that of operands that are flushed to zero.

        Apart from flushing, the conversion is exact, because `via_format` has all numbers of the operand formats. The bound is
        on the safe side for subnormal operands, because the unit normalises them and `facts` do not.
        """
        inner = SimpleNamespace(
            formats=self._formats(unit.formats), scale_format=None, block_size=None, label=unit.label
        )
        found = self.dot.step_error(inner, facts)
        if not self.flush:
            return found
        flushed = self.terms_per_step * operand_flush(inner.formats, facts.largest)
        texts = (*found.derivation, f"subnormal {inner.formats[0].name} operands are flushed")
        return dataclasses.replace(found, absolute=found.absolute + flushed, derivation=texts)

    @classmethod
    def searches(cls):
        conversion = Field(("via_format", "flush"), _carriers)
        fused = tuple(inside(field, "dot") for field in PARAMETRIC if field.name != "scaled_zero")
        chain = tuple(inside(field, "dot") for search in SequentialFMA.searches() for field in search.fields)
        shape = ("dot.terms", "dot.c_position", "via_format")
        return (
            Search(
                "fused sums of converted operands", (conversion, *fused), unscaled(cls._fused_starts), shape, 90,
                lambda s: isinstance(s.dot.parametric(), ParametricDotAdd),
            ),
            Search(
                "chains of multiply-adds of converted operands", (conversion, *chain), unscaled(cls._chain_starts),
                ("via_format",), 91, lambda s: isinstance(s.dot, Accumulator) and s.dot.parametric() is None,
            ),
        )  # fmt: skip

    @classmethod
    def _fused_starts(cls, interface):
        digits = interface.formats[3].fraction_bits
        places: tuple[tuple[Any, str], ...] = (("early", "rz"), ("exact", "rne"))
        shapes = itertools.product(_carriers(interface), divisors(interface), places, (digits + 1, 2 * digits))
        for (via, flush), terms, (c_position, rounding), bits in shapes:
            yield cls(ParametricDotAdd(terms, bits, c_position=c_position, output_rounding=rounding), via, flush)

    @classmethod
    def _chain_starts(cls, interface):
        for (via, tiny), flush in itertools.product(_carriers(interface), (False, True)):
            yield cls(SequentialFMA(flush_inputs=flush, flush_outputs=flush), via, tiny)

    def simplest(self):
        return dataclasses.replace(self, dot=self.dot.simplest())


def _carriers(interface: Interface, spec: Any = None) -> list[tuple[str, bool]]:
    """Return pairs (format, flush) that a search tries: formats that have the operands' numbers, where either can show."""
    operands = interface.formats[:2]
    found = []
    for name, flush in itertools.product(CARRIERS, (False, True)):
        via = get_float_format(name)
        rounds = any(fmt.padding_bits for fmt in operands)
        other = rounds or any((fmt.emin, fmt.bias) != (via.emin, via.bias) for fmt in operands)
        tiny = any(fmt.quantum_exponent < via.emin for fmt in operands)
        if all(integers.converts(fmt, via) for fmt in operands) and (other or flush) and (tiny or not flush):
            found.append((name, flush))
    return found
