"""Encodes specifications as terms: dot products of each accumulator's `pass_term`, the twin of `reference.matrix`.

:func:`result` gives the encoding of d as a term over the encodings of the operands (:class:`Inputs`). A term without variables
folds to a constant, and any term can be evaluated, so that the encoding is tested against the reference without a solver.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ...arithmetic import numbers as n
from ...arithmetic.numbers import Number
from ...bitvectors import terms as t
from ...bitvectors.passes import Formats, TermPass, Unencodable
from ...bitvectors.terms import Term
from ...engines.instruction import Instruction
from ...engines.matrix_engine import MatrixEngine
from ...families.base import Accumulator
from ...formats import Format, get_float_format

#: Types with an accumulator that can be encoded.
Modelled = MatrixEngine | Instruction


#: Longest dot product in a question: its term takes minutes to build, and no solver answers longer ones.
LONGEST = 4096


@dataclass(frozen=True)
class Inputs:
    """`Inputs` holds the operands of one dot product as terms: K encodings of a and b, c, and a scale for each `block_size`
    products.
    """

    a: tuple[Term, ...]
    b: tuple[Term, ...]
    c: Term
    scale_a: tuple[Term, ...] = ()
    scale_b: tuple[Term, ...] = ()

    @property
    def variables(self) -> list[Term]:
        """Return the operands, addend and scales that are variables."""
        every = (*self.a, *self.b, self.c, *self.scale_a, *self.scale_b)
        return [x for x in dict.fromkeys(every) if x.op == "var"]


def formats_of(engine: Modelled) -> Formats:
    """Return the formats of an engine's operands; raise Unencodable for integers, and for formats whose results have no
    infinity or NaN.
    """
    if not isinstance(getattr(engine, "accumulator", None), Accumulator):
        raise Unencodable(f"{engine!r} has no accumulator; a MatrixEngine or an Instruction is needed")
    if not all(isinstance(fmt, Format) for fmt in engine.formats):
        raise Unencodable(f"{engine.label} has integer formats; only floating-point formats have an encoding")
    if engine.accumulator.key is not None:
        raise Unencodable(f"{engine.label}: sums are rounded stochastically, so that an input has no single result")
    scale = None if engine.scale_format is None else get_float_format(engine.scale_format)
    a, b, c, d = engine.formats
    found = Formats(a, b, c, d, scale, engine.block_size)
    if not (found.d.has_inf or found.d.has_nan):
        raise Unencodable(f"{engine.label}: {found.d.name} has no encoding for results beyond its largest number")
    return found


def symbolic_inputs(formats: Formats, k: int, active: Sequence[int] | None = None) -> Inputs:
    """Return free operands of a dot product of k products (1 to LONGEST); operands outside of `active` are +0."""
    if not 1 <= k <= LONGEST:
        raise ValueError(f"solvers take dot products of 1 to {LONGEST} products, got k = {k}")
    chosen = set(range(k) if active is None else active)

    def operands(name: str, fmt: Format) -> tuple[Term, ...]:
        return tuple(t.variable(f"{name}{i}", fmt.bits) if i in chosen else t.constant(0, fmt.bits) for i in range(k))

    scales: list[tuple[Term, ...]] = [(), ()]
    if formats.scale is not None and formats.block_size is not None:
        for side, name in enumerate(("sa", "sb")):
            count = -(-k // formats.block_size)
            scales[side] = tuple(t.variable(f"{name}{i}", formats.scale.bits) for i in range(count))
    return Inputs(operands("a", formats.a), operands("b", formats.b), t.variable("c", formats.c.bits), *scales)


def finite_inputs(inputs: Inputs, formats: Formats, spec: Accumulator) -> list[Term]:
    """Return assertions that no operand, addend or scale is an infinity or a NaN."""
    rows = [(inputs.a, formats.a), (inputs.b, formats.b), ((inputs.c,), formats.c)]
    if formats.scale is not None:
        rows.append((inputs.scale_a + inputs.scale_b, formats.scale))
    numbers = [n.decode(fmt, code, spec) for codes, fmt in rows for code in codes]
    return [t.negation(t.either(x.nan, x.inf)) for x in numbers]


def result(engine: Modelled, inputs: Inputs, conditions: list[Term]) -> Term:
    """Return the encoding of d for K products, added in chained passes as the engine does; raise Unencodable if it has none.

    `conditions` receives the conditions under which the term is right. With the alignment "pairwise", no product may be zero
    (unless it is zero for all inputs), because zeros change the tree.
    """
    formats, spec = formats_of(engine), engine.accumulator
    left, right = (_block_scales(inputs, formats, spec, side) for side in ("scale_a", "scale_b"))
    scales = tuple(zip(left, right, strict=True)) if left else ((),) * len(inputs.a)
    total, step = inputs.c, spec.terms_per_step
    for start in range(0, len(inputs.a), step):
        part = slice(start, start + step)
        given = TermPass(
            spec, inputs.a[part], inputs.b[part], total, formats[:4], scales[part], start // step, conditions=conditions
        )
        total = given.term
        formats = formats._replace(c=formats.d)
    return total


def _block_scales(inputs: Inputs, formats: Formats, spec: Accumulator, side: str) -> list[Number]:
    codes = getattr(inputs, side)
    if formats.scale is None or formats.block_size is None:
        return []
    rule = getattr(spec, "zero_operand", "format_minimum")
    decoded = [n.decode(formats.scale, code, spec, zero_rule=rule) for code in codes]
    return [decoded[k // formats.block_size] for k in range(len(inputs.a))]
