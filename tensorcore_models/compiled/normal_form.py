"""Brings expressions into a form that equal arithmetic shares, by rules that change no bit of any result.

`RULES` lists them. A rule about a matrix instruction holds because the instruction's family says so (aspect "symmetries").
"""

from collections.abc import Iterable
from dataclasses import replace
from hashlib import blake2b

from ..families.aligned import AlignedSum
from ..formats import IntegerFormat
from .isa.meaning import Meaning
from .kernel_recipe import KernelRecipe
from .nodes import Applied, Constant, DerivedConstant, Element, Masked, Node, Step
from .solver_terms import special_functions

RULES = (
    "the place of an instruction in the code and the names of its registers do not matter",
    "operands of additions, products, minima and maxima commute (a NaN result has one encoding)",
    "add.rn and mul.rn are add and mul",
    "a fused multiply-add of x by 1 is an addition",
    "a sum that is never -0 plus +0 is the sum itself, in any rounding; a computed FP32 number times 1 is the number itself",
    "a computed FP32 number times 2^-p times 2^p is the number itself, if 2^-p keeps its lowest bit in range",
    "flushing of a sum, product or multiply-add does not matter if operands and result are multiples of 2^-126",
    "a chain is its accumulator's passes: instructions of one accumulator differ in their name and shape only",
    "products that the accumulator sums in any order are put in order within their pass",
    "factors of a product commute if both have one format and the unit treats them alike",
    "an approximate division by a constant is a product by its reciprocal from the special-function unit; 1 / x is rcp.approx",
    "ex2 is never -0, and NaN results of special functions have the encoding of additions'",
    "a pass over zeros leaves a result of the accumulator unchanged, if the accumulator's family says so",
)
_SUMS = ("add", "sub", "mul", "fma")
_ONE, _ZEROS = 0x3F800000, ("constant", 0)
#: Range of divisors that an approximate division does not scale (2^-126 to 2^126), whose reciprocals are normal.
_SMALLEST_DIVISOR, _LARGEST_DIVISOR = 0x00800000, 0x7E800000
#: Exponents of the smallest subnormal and of the smallest normal FP32 number.
_SMALLEST, _NORMAL = -149, -126
#: Exponent for zero, which is a multiple of every power of two.
_LARGEST = 1 << 20


def normal_forms(recipe: KernelRecipe, *, flushing: bool = True) -> dict[int, tuple]:
    """Return each element's normal form, by its flat place; without `flushing`, as if no number were subnormal."""
    found: dict[int, tuple] = {}
    forms = Forms(flushing=flushing)
    for form in recipe.forms:
        found |= dict.fromkeys(form.outputs.tolist(), forms.of(form.root))
    return found


class NormalForm(tuple):
    """`NormalForm` is a normal form with a digest of its parts, so that a part that is shared a thousand times is compared
    once."""

    digest: str

    def __new__(cls, parts: Iterable) -> "NormalForm":
        form = super().__new__(cls, parts)
        form.digest = blake2b(tuple.__repr__(form).encode(), digest_size=16).hexdigest()
        return form

    def __repr__(self) -> str:
        return self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, NormalForm) else super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other


class Forms:
    """`Forms` computes the normal forms of one expression's nodes; without `flushing`, as if no number were subnormal."""

    def __init__(self, *, flushing: bool = True):
        self.flushing = flushing
        self._known: dict[int, tuple] = {}
        self._units: dict[tuple, int] = {}

    def of(self, node: Node) -> tuple:
        """Return the normal form of a node."""
        if id(node) not in self._known:
            self._known[id(node)] = NormalForm(self._new(node))
        return self._known[id(node)]

    def _new(self, node: Node) -> tuple:
        if isinstance(node, Constant):
            return ("constant", node.bits)
        if isinstance(node, Element):
            return ("element", node.array, node.index)
        if isinstance(node, DerivedConstant):
            return ("constants", node.axis, node.table)
        if isinstance(node, Masked):
            return ("masked", node.axis, node.bound, self.of(node.below), self.of(node.above))
        return self._applied(node) if isinstance(node, Applied) else self._chain(node)

    def _applied(self, node: Applied) -> tuple:
        m, operands = node.meaning, [self.of(operand) for operand in node.operands]
        if m is None:
            return ("applied", node.name, tuple(operands))
        m, operands = _without_division(m, operands)
        m = m if self.flushing else _without_flushing(m)
        if m.operation in _SUMS and m.result == "f32" and any(m.flush) and "atomic" not in m.options:
            units = [self.unit(operand) for operand in operands]
            if min([*units, self._unit_of(m.operation, units)]) >= _NORMAL:
                m = replace(m, flush=(False, False))
        if m.plain("fma") and ("constant", _ONE) in operands[:2]:
            other = 1 - operands.index(("constant", _ONE))
            m, operands = replace(m, operation="add", sources=("f32", "f32")), [operands[other], operands[2]]
        if m.plain("mul") and (inside := self._scaled_back(m, operands)) is not None:
            return inside
        for neutral, applies, keeps in (
            (_ZEROS, _is_sum(m), _never_minus_zero), (("constant", _ONE), m.plain("mul"), _computed)
        ):  # fmt: skip
            if applies and neutral in operands and keeps(left := operands[1 - operands.index(neutral)], m.nan):
                return left
        if m.commutes:
            operands[:2] = sorted(operands[:2], key=repr)
        return ("applied", m, tuple(operands))

    def unit(self, form: tuple) -> int:
        """Return the exponent of a power of two of which an FP32 value is a multiple, if it is finite."""
        if form[0] == "constant":
            bits = form[1] & 0x7FFFFFFF
            significand = bits & 0x7FFFFF | (bits >> 23 > 0) << 23
            return _LARGEST if not bits else max(bits >> 23, 1) - 150 + (significand & -significand).bit_length() - 1
        if form not in self._units:
            found = _SMALLEST
            if (
                form[0] == "applied"
                and isinstance(form[1], Meaning)
                and form[1].result == "f32"
                and not form[1].saturate
            ):
                found = self._unit_of(form[1].operation, [self.unit(operand) for operand in form[2]])
            self._units[form] = max(found, _SMALLEST)
        return self._units[form]

    @staticmethod
    def _unit_of(operation: str, units: list[int]) -> int:
        """Return the exponent of a result's power of two; rounding keeps a multiple of a power of two a multiple."""
        if operation in ("add", "sub"):
            return min(units)
        if operation == "mul":
            return sum(units)
        return min(units[0] + units[1], units[2]) if operation == "fma" else _SMALLEST

    def _scaled_back(self, m: Meaning, operands: list[tuple]) -> tuple | None:
        """Return x of (x 2^-p) 2^p, where x is an FP32 result and x 2^-p is exact; None for other products."""
        up = [(power, other) for power, other in _power_and_other(operands) if power > 0]
        for power, other in up:
            if other[:2] != ("applied", m):
                continue
            for down, inside in _power_and_other(list(other[2])):
                if down == -power and _computed(inside, m.nan) and self.unit(inside) - power >= _SMALLEST:
                    return inside
        return None

    def _chain(self, node: Node) -> tuple:
        """Return the passes (fused operations) of a chain of one accumulator, from its start."""
        steps: list[Step] = []
        key = _unit(node)
        while isinstance(node, Step) and _unit(node) == key:
            steps.append(node)
            node = node.addend
        start, spec, formats = self.of(node), steps[0].row.accumulator, steps[0].row.formats
        alike = spec.operands_alike and formats[0] == formats[1] and steps[0].signs == (1, 1)
        idle = spec.idle(formats)
        passes: list[tuple] = []
        for step in reversed(steps):
            size = spec.terms_per_step
            pairs = [(self.of(a), self.of(b)) for a, b in zip(step.left, step.right, strict=True)]
            for first in range(0, len(pairs), size):
                part = pairs[first : first + size]
                nothing = all(pair == (_ZEROS, _ZEROS) for pair in part)
                if not (nothing and idle and (passes or start == _ZEROS)):
                    passes.append(_ordered(part, spec, alike))
        if not passes:
            return start
        form = NormalForm(("chain", key, start, tuple(passes)))
        if isinstance(spec, AlignedSum) and key[-1]:
            smallest = sum(fmt.emin - fmt.fraction_bits for fmt in formats[:2])
            self._units[form] = max(min(smallest, self.unit(start)), _SMALLEST)
        return form


def _power_and_other(operands: list[tuple]) -> list[tuple[int, tuple]]:
    """Return (p, the other operand) for each of two operands that is 2^p."""
    found = []
    for i, form in enumerate(operands):
        if form[0] == "constant" and form[1] & 0x7FFFFF == 0 and 0 < form[1] >> 23 < 255:
            found.append(((form[1] >> 23) - 127, operands[1 - i]))
    return found


def _without_flushing(m: Meaning) -> Meaning:
    """Return the operation without flushing, which gives the same results if no number is subnormal."""
    options = (m.options[0].replace(".ftz", ""),) if m.operation == "function" else m.options
    return replace(m, flush=(False, False), options=options)


def _without_division(m: Meaning, operands: list[tuple]) -> tuple[Meaning, list[tuple]]:
    """Return an approximate division as the product or reciprocal that computes it; other nodes unchanged."""
    if m.operation != "function" or len(operands) != 2 or m.options[0] not in special_functions():
        return m, operands
    numerator, divisor = operands
    if divisor[0] == "constant" and _SMALLEST_DIVISOR <= divisor[1] & 0x7FFFFFFF <= _LARGEST_DIVISOR:
        (reciprocal,) = special_functions()["rcp.approx.f32"].bits([divisor[1]])
        made = Meaning("mul", "f32", ("f32", "f32"), flush=m.flush)
        return made, [numerator, NormalForm(("constant", int(reciprocal)))]
    if m.options[0] == "div.full.f32" and numerator == ("constant", _ONE):
        return Meaning("function", "f32", ("f32",), options=("rcp.approx.f32",)), [divisor]
    return m, operands


def _is_sum(m: Meaning) -> bool:
    """Return whether a form is an FP32 addition, in any rounding, that neither flushes nor clamps."""
    return replace(m, rounding="rne").plain("add")


def _computed(form: tuple, nan: str) -> bool:
    """Return whether a form is an FP32 result, whose NaN is the canonical NaN of a unit's FP32 operations."""
    if form[0] == "chain":
        return form[1][-1] and nan == "all_ones"
    if form[0] != "applied" or not isinstance(form[1], Meaning) or form[1].nan != nan:
        return False
    m = form[1]
    function = special_functions().get(m.options[0]) if m.operation == "function" else None
    return _is_sum(m) or m.plain("mul") or m.plain("fma") or function is not None and function.row.result == "fp32"


def _never_minus_zero(form: tuple, nan: str) -> bool:
    """Return whether a sum is never -0: one addend is never -0, and the rounding is not down, so that cancellation gives +0."""
    if form[0] != "applied":
        return form == _ZEROS or _computed(form, nan)
    m = form[1]
    if not isinstance(m, Meaning) or m.nan != nan:
        return False
    if m.operation == "function" and m.options[0] in ("ex2.approx.f32", "ex2.approx.ftz.f32"):
        return True
    return _is_sum(m) and m.rounding != "rd" and any(_never_minus_zero(operand, nan) for operand in form[2])


def _ordered(pairs: list[tuple], spec, alike: bool) -> tuple:
    """Return the products of a pass; each set whose order is free is sorted."""
    if alike:
        pairs = [tuple(sorted(pair, key=repr)) for pair in pairs]
    found = list(pairs)
    for places in spec.interchangeable(len(pairs)):
        for place, pair in zip(places, sorted((pairs[i] for i in places), key=repr), strict=True):
            found[place] = pair
    return tuple(found)


def _unit(node: Node) -> tuple:
    """Return the key of a step's accumulator; its last part says whether results are never -0 and have the NaN of additions."""
    if not isinstance(node, Step):
        return ()
    row = node.row
    spec, result = row.accumulator, row.formats[3]
    plain = not isinstance(result, IntegerFormat) and result.name == "fp32" and spec.nan == "all_ones"
    signs = (getattr(spec, name, "") for name in ("zero_sign", "negative_underflow"))
    positive = plain and all(sign == "positive" for sign in signs) and not spec.flush_outputs
    return (repr(spec), tuple(map(str, row.formats)), node.signs, positive)
