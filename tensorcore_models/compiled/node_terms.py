"""Expressions of kernels as terms for solvers: the same bits as the machine's, stated in :mod:`tensorcore_models.bitvectors`.

Operations that have no term here raise :class:`Unencodable`, so that a question about them is left open.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache

from ..arithmetic import numbers as n
from ..arithmetic.sums import ieee_sum
from ..bitvectors import integers as z
from ..bitvectors import terms as t
from ..bitvectors.passes import Unencodable
from ..bitvectors.terms import Term
from ..families.fma_chain import SequentialFMA
from ..formats import get_float_format
from ..functions import Function, list_functions
from .template import Applied, Constant, Element, Node, Step

_FP32 = get_float_format("fp32")
#: Whose edge rules the vector units have: a NaN result has all bits below the sign set.
_RULES = SequentialFMA(nan="all_ones")
_ROUNDINGS = {"rn": "rne", "rz": "rz", "rm": "rd", "rp": "ru"}
_FORMATS = {"f32": "fp32", "f16": "fp16", "bf16": "bf16"}
_OPERATION = re.compile(r"(add|sub|mul|fma)(?:\.(rn|rz|rm|rp))?(\.ftz)?\.f32")
_EXTREME = re.compile(r"(min|max)(\.ftz)?(\.NaN)?\.f32")
_CONVERSION = re.compile(r"cvt(?:\.(rn|rz|rm|rp))?\.(f32|f16|bf16)\.(f32|f16|bf16)")


@cache
def special_functions() -> dict[str, Function]:
    """PTX's special functions of FP32, FP16 and bf16 numbers by name; all architectures compute them alike."""
    names = ("fp32", "fp16", "bf16")
    return {
        f.name: f
        for f in list_functions("hopper")
        if f.row.operand in names and f.row.result in names and not f.row.packed
    }


class NodeTerms:
    """Terms of nodes; inputs, and nodes that two expressions share, are variables in the order in which they are met.

    Parameters
    ----------
    widths : mapping of int to int
        Bits of the elements of each array.
    shared : callable
        A key for a node that is to be a variable of its own; None for one that is taken apart.

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
        """The term of a node of so many bits; Unencodable."""
        if (id(node), width) not in self._known:
            self._known[id(node), width] = self._new(node, width)
        return self._known[id(node), width]

    def _variable(self, key: object, width: int) -> Term:
        if key not in self.variables:
            self.variables[key] = t.variable(f"v{len(self.variables)}", width)
        if self.variables[key].width != width:
            raise Unencodable("a value is used in two widths")
        return self.variables[key]

    def _new(self, node: Node, width: int) -> Term:
        if isinstance(node, Constant):
            return t.constant(node.bits, width)
        if isinstance(node, Element):
            return _fitted(self._variable(node, self.widths[node.array]), width)
        if (key := self.shared(node)) is not None:
            return self._variable(key, width)
        return self._step(node) if isinstance(node, Step) else self._applied(node, width)

    def _applied(self, node: Applied, width: int) -> Term:
        if found := _OPERATION.fullmatch(node.name):
            return self._operation(node, *found.groups())
        if found := _EXTREME.fullmatch(node.name):
            return self._extreme(node, *found.groups())
        if found := _CONVERSION.fullmatch(node.name):
            return _fitted(self._conversion(node, *found.groups()), width)
        if node.name.startswith("bytes."):
            return _fitted(self._bytes(node), width)
        if function := special_functions().get(node.name):
            bits = get_float_format(function.row.operand).bits
            return _fitted(function.terms(*(self.of(operand, bits) for operand in node.operands)), width)
        raise Unencodable(f"{node.name} has no term")

    def _operation(self, node: Applied, stem: str, rounding: str | None, flush: str | None) -> Term:
        codes = [self.of(operand) for operand in node.operands]
        if flush:
            codes = [n.without_subnormals(code, _FP32) for code in codes]
        numbers = [n.decode(_FP32, code, _RULES) for code in codes]
        if stem == "sub":
            numbers[1] = numbers[1]._replace(negative=t.negation(numbers[1].negative))
        if stem in ("mul", "fma"):
            product = n.multiply(*numbers[:2])
            numbers = [product, numbers[2] if stem == "fma" else _nothing(product.negative)]
        found = ieee_sum(numbers, _FP32, _RULES, _ROUNDINGS[rounding or "rn"])
        return n.without_subnormals(found, _FP32) if flush else found

    def _extreme(self, node: Applied, stem: str, flush: str | None, nan_wins: str | None) -> Term:
        """The first operand or the other: by encodings in the order of numbers, in which -0 is below +0."""
        found = None
        for operand in node.operands:
            code = self.of(operand)
            code = n.without_subnormals(code, _FP32) if flush else code
            found = code if found is None else _larger(found, code, stem == "max", nan_wins is not None)
        assert found is not None
        return found

    def _conversion(self, node: Applied, rounding: str | None, target: str, source: str) -> Term:
        fmt, own = get_float_format(_FORMATS[target]), get_float_format(_FORMATS[source])
        x = n.decode(own, self.of(node.operands[0], own.bits), _RULES)
        return ieee_sum([x, _nothing(x.negative)], fmt, _RULES, _ROUNDINGS[rounding or "rn"])

    def _bytes(self, node: Applied) -> Term:
        """A value made of bytes of others: the name says which byte of each, "_" a constant one."""
        found = None
        for place, operand in zip(node.name.removeprefix("bytes."), node.operands, strict=True):
            if place == "_":
                byte = self.of(operand, 8)
            else:
                whole = self.of(operand, _width(operand, self.widths))
                byte = t.extract(whole, 8 * int(place) + 7, 8 * int(place))
            found = byte if found is None else t.joined(byte, found)
        if found is None:
            raise Unencodable("a value without bytes")
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
    """A zero of a sign, which rounds another number of that sign where it is added."""
    return n.plain(negative, z.number(0), z.number(0), 0)


def _larger(x: Term, y: Term, largest: bool, nan_wins: bool) -> Term:
    """The larger of two FP32 codes, or the smaller; a NaN loses unless it wins."""
    top, ones = t.constant(1 << 31, 32), t.constant((1 << 32) - 1, 32)
    ordered = [z.natural(t.bits_xor(code, t.choose(t.bit(code, 31), ones, top))) for code in (x, y)]
    nan = [z.less(z.number(0x7F800000), z.natural(t.extract(code, 30, 0))) for code in (x, y)]
    pair = ordered if largest else ordered[::-1]
    found = t.choose(nan[0], y, t.choose(nan[1], x, t.choose(z.less(*pair), y, x)))
    either = t.either(*nan) if nan_wins else t.both(*nan)
    return t.choose(either, t.constant(0x7FFFFFFF, 32), found)


def _fitted(code: Term, width: int) -> Term:
    """A code cut or filled with zeros, as registers do."""
    if code.width == width:
        return code
    return t.extract(code, width - 1, 0) if code.width > width else t.zero_extended(code, width)


def _width(node: Node, widths: Mapping[int, int]) -> int:
    """Bits of a value by what made it."""
    if isinstance(node, Element):
        return widths[node.array]
    if isinstance(node, Step):
        return node.row.formats[3].bits
    if isinstance(node, Applied):
        kinds = [part for part in node.name.split(".") if part in _FORMATS]
        if kinds:
            return get_float_format(_FORMATS[kinds[0]]).bits
        if node.name.startswith("bytes."):
            return 8 * len(node.operands)
    raise Unencodable("a value whose width is not known")
