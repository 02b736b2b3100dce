"""Turns expressions of kernels into solver terms with the machine's bits, stated in :mod:`tensorcore_models.bitvectors`.

An operation without a term raises :class:`Unencodable`, so that a question about it is left open.
"""

from collections.abc import Callable, Mapping
from functools import cache

from ..arithmetic import numbers as n
from ..arithmetic.sums import ieee_sum
from ..bitvectors import integers as z
from ..bitvectors import terms as t
from ..bitvectors.passes import Unencodable
from ..bitvectors.terms import Term
from ..families.fma_chain import SequentialFMA
from ..formats import Format, get_float_format
from ..functions import Function, list_functions
from .isa.meaning import Meaning
from .isa.types import FORMATS
from .nodes import Applied, Constant, DerivedConstant, Element, Masked, Node, Step, width_of

#: Accumulator with the edge rules of the vector units: a NaN result has all bits below the sign set.
_RULES = SequentialFMA(nan="all_ones")
#: Types whose operations have terms.
_TYPES = ("f32", "f16", "bf16")


@cache
def special_functions() -> dict[str, Function]:
    """Return PTX's special functions of FP32, FP16 and bf16 numbers by name; all architectures compute them alike."""
    names = ("fp32", "fp16", "bf16")
    return {
        f.name: f
        for f in list_functions("hopper")
        if f.row.operand in names and f.row.result in names and not f.row.packed
    }


class NodeTerms:
    """`NodeTerms` makes terms of nodes; inputs, and nodes that two expressions share, are variables, numbered as they are met.

    Parameters
    ----------
    widths : mapping of int to int
        Bits of the elements of each array.
    shared : callable
        Function that gives a key for a node that becomes a variable of its own, and None for a node that is expanded.

    Attributes
    ----------
    variables : dict
        Element or shared node's key -> its variable.
    """

    def __init__(self, widths: Mapping[int, int], shared: Callable[[Node], object | None]):
        self.widths, self.shared = widths, shared
        self.variables: dict[object, Term] = {}
        self.conditions: list[Term] = []
        self._known: dict[tuple[int, int], Term] = {}

    def of(self, node: Node, width: int = 32) -> Term:
        """Return the term of a node with the given number of bits; raise Unencodable if it has none."""
        if (id(node), width) not in self._known:
            self._known[id(node), width] = self._new(node, width)
        return self._known[id(node), width]

    def _variable(self, key: object, width: int) -> Term:
        if key not in self.variables:
            self.variables[key] = t.variable(f"v{len(self.variables)}", width)
        if self.variables[key].width != width:
            raise Unencodable("a value is used with two widths")
        return self.variables[key]

    def _new(self, node: Node, width: int) -> Term:
        if isinstance(node, Constant):
            return t.constant(node.bits, width)
        if isinstance(node, Element):
            return _fitted(self._variable(node, self.widths[node.array]), width)
        if (key := self.shared(node)) is not None:
            return self._variable(key, width)
        if isinstance(node, Masked | DerivedConstant):
            raise Unencodable("a value that depends on an index of the output has no term")
        return self._step(node) if isinstance(node, Step) else self._applied(node, width)

    def _applied(self, node: Applied, width: int) -> Term:
        m = node.meaning
        makers = {"bytes": self._bytes, "function": self._function, "convert": self._conversion, "min": self._extreme,
                  "max": self._extreme, **dict.fromkeys(("add", "sub", "mul", "fma"), self._operation)}  # fmt: skip
        made = makers[m.operation](node, m) if m is not None and m.operation in makers else None
        if made is None:
            raise Unencodable(f"{node.name} has no term")
        return _fitted(made, width)

    def _codes(self, node: Applied, m: Meaning) -> list[Term]:
        """Return the operands' encodings, flushed where the operation flushes."""
        fmt = _format(m.sources[0])
        codes = [self.of(operand, fmt.bits) for operand in node.operands]
        return [n.without_subnormals(code, fmt) for code in codes] if m.flush[0] else codes

    def _operation(self, node: Applied, m: Meaning) -> Term | None:
        if m.result not in _TYPES or m.saturate or m.options or m.nan != "all_ones":
            return None
        fmt = _format(m.result)
        numbers = [n.decode(fmt, code, _RULES) for code in self._codes(node, m)]
        if m.operation == "sub":
            numbers[1] = numbers[1]._replace(negative=t.negation(numbers[1].negative))
        if m.operation in ("mul", "fma"):
            product = n.multiply(*numbers[:2])
            numbers = [product, numbers[2] if m.operation == "fma" else _nothing(product.negative)]
        found = ieee_sum(numbers, fmt, _RULES, m.rounding)
        return n.without_subnormals(found, fmt) if m.flush[1] else found

    def _extreme(self, node: Applied, m: Meaning) -> Term | None:
        """Return the largest or smallest operand, by encodings in the order of numbers, in which -0 is below +0."""
        if m.result not in _TYPES or {*m.options} - {"NaN"} or m.saturate or m.nan != "all_ones":
            return None
        first, *others = self._codes(node, m)
        for code in others:
            first = _larger(first, code, _format(m.result), m.operation == "max", "NaN" in m.options)
        return first

    def _conversion(self, node: Applied, m: Meaning) -> Term | None:
        kinds = m.result, m.sources[0]
        if any(kind not in _TYPES for kind in kinds) or m.saturate or m.options or any(m.flush) or m.nan != "all_ones":
            return None
        fmt, own = map(_format, kinds)
        x = n.decode(own, self.of(node.operands[0], own.bits), _RULES)
        return ieee_sum([x, _nothing(x.negative)], fmt, _RULES, m.rounding)

    def _function(self, node: Applied, m: Meaning) -> Term | None:
        function = special_functions().get(m.options[0])
        if function is None:
            return None
        bits = get_float_format(function.row.operand).bits
        return function.terms(*(self.of(operand, bits) for operand in node.operands))

    def _bytes(self, node: Applied, m: Meaning) -> Term:
        """Return a value made of bytes of others: the option gives the byte of each operand, or "_" for a constant byte."""
        found = None
        for place, operand in zip(m.options[0], node.operands, strict=True):
            if place == "_":
                byte = self.of(operand, 8)
            else:
                width = self.widths[operand.array] if isinstance(operand, Element) else width_of(operand)
                if width is None:
                    raise Unencodable("a value has an unknown width")
                byte = t.extract(self.of(operand, width), 8 * int(place) + 7, 8 * int(place))
            found = byte if found is None else t.joined(byte, found)
        assert found is not None
        return found

    def _step(self, node: Step) -> Term:
        from ..probing.formal.encoding import Inputs, formats_of, result

        formats = formats_of(node.row)
        sides = []
        for operands, fmt, sign in zip((node.left, node.right), formats[:2], node.signs, strict=True):
            codes = [self.of(operand, fmt.bits) for operand in operands]
            flip = t.constant(fmt.sign_bit if sign < 0 else 0, fmt.bits)
            sides.append(tuple(t.bits_xor(code, flip) for code in codes))
        given = Inputs(sides[0], sides[1], self.of(node.addend, formats.c.bits))
        return result(node.row, given, self.conditions)


def _nothing(negative: Term) -> n.Number:
    """Return a zero with the given sign; adding it to a number of that sign rounds the number."""
    return n.plain(negative, z.number(0), z.number(0), 0)


def _format(kind: str) -> Format:
    return get_float_format(FORMATS[kind])


def _larger(x: Term, y: Term, fmt: Format, largest: bool, nan_wins: bool) -> Term:
    """Return the larger or smaller of two codes; a NaN and a number give the number unless NaN wins."""
    bits = fmt.bits
    top, ones = t.constant(1 << (bits - 1), bits), t.constant((1 << bits) - 1, bits)
    infinity = z.number(fmt.magnitude_mask - (1 << fmt.fraction_bits) + 1)
    ordered = [z.natural(t.bits_xor(code, t.choose(t.bit(code, bits - 1), ones, top))) for code in (x, y)]
    nan = [z.less(infinity, z.natural(t.extract(code, bits - 2, 0))) for code in (x, y)]
    pair = ordered if largest else ordered[::-1]
    found = t.choose(nan[0], y, t.choose(nan[1], x, t.choose(z.less(*pair), y, x)))
    either = t.either(*nan) if nan_wins else t.both(*nan)
    return t.choose(either, t.constant(fmt.magnitude_mask, bits), found)


def _fitted(code: Term, width: int) -> Term:
    """Return a code truncated or extended with zeros, as registers do."""
    if code.width == width:
        return code
    return t.extract(code, width - 1, 0) if code.width > width else t.zero_extended(code, width)
