"""This module makes a `PassProgram`, the straight-line program that a family's `pass_bits` records on recorded integers.

Operations that depend on one operand alone are kept separately, so that they run once when operands are packed. Two
accumulators with equal programs compute the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..formats import Format
from ..formats.exact_rounding import shift_right_rounded
from . import recorded  # noqa: F401 - lets the operations work on what is recorded
from .nodes import Node
from .numbers import Number, decode
from .passes import Pass
from .recorder import ANYWHERE, PassRecorder, RecordedOperation, Unrecordable


class RecordedPass(Pass):
    """`RecordedPass` is a pass on integers that record each operation on them."""

    @property
    def draw(self) -> int:
        """Return 0, and refuse stochastic roundings, because each element has its own draw."""
        if self.spec.key is not None:
            raise Unrecordable("stochastic rounding draws for each element, which a recording cannot express")
        return 0

    def assume_part(self, numbers: Sequence[Number]) -> None:
        """Refuse numbers that take part or not depending on the data."""
        if any(number.part is not True for number in numbers):
            raise Unrecordable("a tree covers only the products that take part, which the data decide")

    def unencodable(self, reason: str) -> None:
        """Do nothing, because a recording may be longer than a solver could handle."""


class NotedPass(RecordedPass):
    """`NotedPass` is a pass recorded for the meaning of its numbers, which is the same for every draw."""

    @property
    def draw(self) -> int:
        return 0

    def assume_part(self, numbers: Sequence[Number]) -> None:
        """Remember the assumption that the numbers take part; the final node must not rest on it."""
        for x in numbers[:1]:
            x.significand.recorder.notes.assume(numbers)


@dataclass(frozen=True)
class Prepared:
    """`Prepared` is the program that is computed from one operand alone.

    Parameters
    ----------
    operations : tuple of RecordedOperation
        Straight-line program whose inputs are the encoding of an operand and of its block scale.
    outputs : tuple of int
        Positions of the values that a pass takes as inputs.
    seldom : int or None
        Position of the condition under which a regular PassProgram differs from the pass; None if it never does.
    """

    operations: tuple[RecordedOperation, ...]
    outputs: tuple[int, ...]
    seldom: int | None = None


@dataclass(frozen=True)
class PassProgram:
    """`PassProgram` is the recorded program of one pass of an accumulator over a number of products.

    Parameters
    ----------
    operations : tuple of RecordedOperation
        Straight-line program; its inputs are the encoding "c" and ``("a", term, output)``, ``("b", term, output)``.
    result : int
        Position of the result's encoding.
    prepared : tuple of Prepared
        Programs that run on each operand of A and on each operand of B.
    seldom : tuple of int
        Positions of conditions under which a regular PassProgram differs from the pass.
    """

    operations: tuple[RecordedOperation, ...]
    result: int
    prepared: tuple[Prepared, Prepared]
    seldom: tuple[int, ...] = ()

    def run(self, a: Sequence[int], b: Sequence[int], c: int, scales: Sequence[Sequence[int]] = ((), ())) -> int | None:
        """Compute the encoding of one pass on plain integers; None for operands that a regular PassProgram leaves out.

        Parameters
        ----------
        a, b : sequence of int
            Encodings of the operands.
        c : int
            Encoding of the addend.
        scales : pair of sequences of int
            Encodings of the block scales of each operand of a and of b.
        """
        taken: dict[tuple, int] = {("c", 0): c}
        for side, codes, theirs, prepared in zip("ab", (a, b), scales, self.prepared, strict=True):
            for term, code in enumerate(codes):
                given = {(side, 0): code, (f"scale_{side}", 0): theirs[term] if theirs else 0}
                values = run(prepared.operations, given)
                if prepared.seldom is not None and values[prepared.seldom]:
                    return None
                taken |= {(side, term, place): values[at] for place, at in enumerate(prepared.outputs)}
        values = run(self.operations, taken)
        return None if any(values[at] for at in self.seldom) else values[self.result]


# -- on plain integers ---------------------------------------------------------------------------------------------------
def _shifted(rounding: str, x: int, places: int, negative: int = 0) -> int:
    return shift_right_rounded(x, places, rounding, bool(negative))


#: Each operation on plain integers; its first argument is its constant.
_ON_INTEGERS: dict[str, Any] = {
    "constant": lambda value: value,
    "truth": int,
    "add": lambda _, x, y: x + y,
    "subtract": lambda _, x, y: x - y,
    "multiply": lambda _, x, y: x * y,
    "shl": lambda _, x, places: x << places,
    "shr": _shifted,
    "mask": lambda _, x, mask: x & mask,
    "larger": lambda _, x, y: max(x, y),
    "magnitude": lambda _, x: abs(x),
    "places": lambda top, x: top + 1 - x.bit_length(),
    "less": lambda _, x, y: int(x < y),
    "same": lambda _, x, y: int(x == y),
    "both": lambda _, x, y: x & y,
    "either": lambda _, x, y: x | y,
    "differ": lambda _, x, y: x ^ y,
    "choose": lambda _, condition, x, y: x if condition else y,
}


def run(operations: Sequence[RecordedOperation], inputs: dict[tuple, int]) -> list[int]:
    """Compute the values of a straight-line program on plain integers."""
    values: list[int] = []
    for x in operations:
        if x.name == "input":
            values.append(inputs[x.constant])
        else:
            values.append(_ON_INTEGERS[x.name](x.constant, *(values[at] for at in x.sources)))
    return values


def _refuse(*_: Any) -> Any:
    raise Unrecordable("the pass depends on its number in the chain or on the result element")


class _Unasked:
    """`_Unasked` stands for a number that a PassProgram must not depend on, and raises Unrecordable when it is used."""

    __bool__ = __int__ = __index__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __mod__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refuse
    at = low = high = property(_refuse)


# -- recorded ------------------------------------------------------------------------------------------------------------
def program_of(
    spec: Any,
    formats: Sequence[Any],
    terms: int,
    scale: Format | None = None,
    index: int | None = None,
    regular: bool = True,
) -> PassProgram:
    """Record one pass of an accumulator.

    Parameters
    ----------
    spec : Accumulator
        Accumulator whose pass is recorded.
    formats : sequence of Format or IntegerFormat
        Formats of a, b, c and d.
    terms : int
        Number of products of the pass.
    scale : Format, optional
        Format of block scales.
    index : int, optional
        Number of the pass in its chain; by default a pass that depends on it is refused.
    regular : bool
        Whether to leave out rare cases (infinite and NaN operands), which gives a shorter PassProgram for all other operands.

    Raises
    ------
    Unrecordable
        If the operations depend on the data by a Python `if`, on the result element or, without `index`, on the pass.
    """
    z = PassRecorder(regular)
    return _split(z, z.place(_result(z, RecordedPass, spec, formats, terms, scale, index)))


def meaning_of(
    spec: Any, formats: Sequence[Any], terms: int, scale: Format | None = None, index: int | None = None
) -> Node:
    """Return the node of one pass's result, which says how it is computed from products and c for all finite operands.

    Parameters are those of :func:`program_of`.

    Raises
    ------
    Unrecordable
        If the pass cannot be recorded, or computes a number without the functions of `tensorcore_models.arithmetic`.
    """
    z = PassRecorder(True)
    code = _result(z, NotedPass, spec, formats, terms, scale, index)
    if z.notes.assumed:
        raise Unrecordable(f"{type(spec).__name__} adds a tree over only the products that take part")
    if (node := z.notes.of_code(code, formats[3])) is None:
        raise Unrecordable(
            f"{type(spec).__name__}.pass_bits computes a number without the functions of tensorcore_models.arithmetic: use them"
        )
    return node


def meanings_of(spec: Any, formats: Sequence[Any], terms: int, scale: Format | None = None) -> tuple[Node, ...]:
    """Return the nodes of the results of the passes of one period of the chain: one pass, or one instruction's groups.

    Parameters and errors are those of :func:`meaning_of`.
    """
    passes: Any = range(spec.groups_per_instruction) if spec.groups_per_instruction > 1 else (None,)
    return tuple(meaning_of(spec, formats, terms, scale, index) for index in passes)


def why_unrecorded(p: Pass) -> str:
    """Return the reason why a pass like p cannot be recorded for all operands; the text is empty if it can."""
    scale = getattr(p.formats, "scale", None) if any(p.scales) else None
    try:
        program_of(p.spec, p.formats[:4], len(p.a), scale, p.index, regular=False)
    except Unrecordable as error:
        return str(error)
    return ""


def _result(
    z: PassRecorder, kind: type[RecordedPass], spec: Any, formats: Sequence[Any], terms: int, scale: Format | None,
    index: int | None,
) -> Any:  # fmt: skip
    """Run a pass on integers that `z` records; return the encoding of the result."""
    a, b = ([z.input(side, k, fmt.bits) for k in range(terms)] for side, fmt in zip("ab", formats, strict=False))
    scales: tuple[tuple[Number, ...], ...] = ((),) * terms
    if scale is not None:
        rule = getattr(spec, "zero_operand", "format_minimum")
        scales = tuple(
            tuple(decode(scale, z.input(f"scale_{side}", k, scale.bits), spec, zero_rule=rule) for side in "ab")
            for k in range(terms)
        )
    c = z.input("c", 0, formats[2].bits)
    unasked: Any = _Unasked()
    given = unasked if index is None else index
    try:
        return spec.pass_bits(kind(spec, a, b, c, tuple(formats), scales, given, unasked))
    except Exception as error:  # any error on recorded integers: the reference still runs the pass on plain ones
        raise Unrecordable(f"{type(spec).__name__}.pass_bits is not recorded: {error}") from error


def _split(z: PassRecorder, result: int) -> PassProgram:
    """Split a recording into the operations that depend on one operand alone and all others."""
    needed, boundary = set(), set()
    left_out = sorted(z.seldom)
    stack = [result, *(at for at in left_out if not _alone(z.origins[at]))]
    while stack:
        at = stack.pop()
        if at in needed:
            continue
        needed.add(at)
        if _alone(z.origins[at]):
            boundary.add(at)
        else:
            stack.extend(z.operations[at].sources)
    sides = [_Side(z, side) for side in "ab"]
    renamed: dict[int, int] = {}
    line: list[RecordedOperation] = []
    for at in sorted(needed):
        x = z.operations[at]
        if at in boundary:
            side, term = z.origins[at]
            place = sides["ab".index(side)].output(at)
            x = RecordedOperation("input", (), (side, term, place), x.low, x.high)
        renamed[at] = len(line)
        line.append(x._replace(sources=tuple(renamed[s] for s in x.sources)))
    for at in left_out:
        if _alone(z.origins[at]):
            sides["ab".index(z.origins[at][0])].leave_out(at)
    seldom = tuple(renamed[at] for at in left_out if not _alone(z.origins[at]))
    return PassProgram(tuple(line), renamed[result], (sides[0].prepared(), sides[1].prepared()), seldom)


def _alone(origin: Any) -> bool:
    return origin is not None and origin != ANYWHERE and origin[0] in "ab"


class _Side:
    """`_Side` gathers the program that prepares the operands of one side; it is the same for each operand."""

    def __init__(self, z: PassRecorder, side: str):
        self.z, self.side = z, side
        self.line: list[RecordedOperation] = []
        self.known: dict[RecordedOperation, int] = {}
        self.copied: dict[int, int] = {}
        self.outputs: list[int] = []
        self.seldom: list[int] = []

    def _put(self, x: RecordedOperation) -> int:
        if x not in self.known:
            self.known[x] = len(self.line)
            self.line.append(x)
        return self.known[x]

    def _copy(self, at: int) -> int:
        """Copy the operations that compute a value, renamed to the first operand."""
        if at not in self.copied:
            x = self.z.operations[at]
            constant = (x.constant[0], 0) if x.name == "input" else x.constant
            self.copied[at] = self._put(x._replace(sources=tuple(map(self._copy, x.sources)), constant=constant))
        return self.copied[at]

    def output(self, at: int) -> int:
        place = self._copy(at)
        if place not in self.outputs:
            self.outputs.append(place)
        return self.outputs.index(place)

    def leave_out(self, at: int) -> None:
        place = self._copy(at)
        if place not in self.seldom:
            self.seldom.append(place)

    def prepared(self) -> Prepared:
        left_out = None
        for place in self.seldom:
            if left_out is not None:
                place = self._put(RecordedOperation("either", (left_out, place), None, 0, 1))
            left_out = place
        return Prepared(tuple(self.line), tuple(self.outputs), left_out)
