"""Finds one expression for all elements of an output, in which indices of inputs are functions of the output's indices.

All outputs are walked at once. Where their expressions differ, the outputs are divided, and each part gets an expression of its
own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .expressions import ExpressionTrace, InputElements, Operations, Products
from .nodes import AXES, Applied, Constant, DerivedConstant, DerivedIndex, Element, Masked, Node, Step

#: Largest divisor of an index in the quotient or remainder that gives a constant.
LARGEST_DIVISOR = 256


class Irregular(ValueError):
    """`Irregular` is raised for outputs without a common expression; `labels` divides them, None if they cannot be divided."""

    def __init__(self, labels: np.ndarray | None):
        self.labels = labels
        super().__init__("the outputs have different expressions")


class Walker:
    """`Walker` walks the expressions of outputs at `places` (shape (outputs, axes)) together.

    A part of the expression that some axes do not change is walked without these axes, by a walker of fewer outputs: one for
    each place along the other axes (`first`); `inverse` maps each output to its representative.
    """

    def __init__(self, trace: ExpressionTrace, places: np.ndarray, starts: np.ndarray | None = None):
        self.trace, self.places = trace, places
        self._known: dict[bytes, Node] = {}
        self._starts = np.array(trace.starts) if starts is None else starts
        self._parts: dict[bytes, Walker] = {}
        self._inputs: dict[tuple, Element] = {}
        self._along: dict[int, tuple[np.ndarray, np.ndarray, Walker] | None] = {}
        first = places[0]
        self.probes: list[int | None] = []
        for axis in range(places.shape[1]):
            others = [a for a in range(places.shape[1]) if a != axis]
            alone = (places[:, others] == first[others]).all(1) & (places[:, axis] != first[axis])
            self.probes.append(int(alone.argmax()) if alone.any() else None)

    def node(self, numbers: np.ndarray, values: np.ndarray | None = None) -> Node:
        """Return the common form of expressions, one for each output; the number 0 is a constant of the given value.

        Raises
        ------
        Irregular
            If there is no common form.
        """
        if not numbers.any():
            return self._constant(values)
        if (numbers == 0).any():
            return self._masked(numbers, values)
        for axis in range(self.places.shape[1]):
            part = self._without(axis)
            if part is not None and (numbers[part[0]][part[1]] == numbers).all():
                first, inverse, walker = part
                try:
                    return walker.node(numbers[first])
                except Irregular as parted:
                    raise Irregular(None if parted.labels is None else parted.labels[inverse]) from None
        key = numbers.tobytes()
        if key not in self._known:
            self._known[key] = self._walk(numbers)
        return self._known[key]

    def _masked(self, numbers: np.ndarray, values: np.ndarray | None) -> Node:
        """Return a choice between a constant and an expression, by a bound on one of the output's indices."""
        constant, found = numbers == 0, []
        for axis in range(self.places.shape[1]):
            indices = self.places[:, axis]
            for below in (constant, ~constant):
                if indices[below].max() < indices[~below].min():
                    found.append((axis, below, int(indices[~below].min())))
        if not found:
            raise Irregular(constant.astype(np.int64))
        axis, below, bound = found[0]
        sides: list[Node] = []
        for side in (below, ~below):
            walker = self._parts.setdefault(side.tobytes(), Walker(self.trace, self.places[side], self._starts))
            try:
                sides.append(walker.node(numbers[side], None if values is None else values[side]))
            except Irregular as parted:
                labels = np.zeros(len(numbers), np.int64)
                labels[side] = 1 if parted.labels is None else 1 + parted.labels
                raise Irregular(labels) from None
        return Masked(axis, bound, int(self.places[:, axis].min()), *sides)

    def _without(self, axis: int) -> "tuple[np.ndarray, np.ndarray, Walker] | None":
        """Return representatives of the outputs without an axis, the map to them, and their walker; None if that leaves as many
        outputs."""
        if axis not in self._along:
            flat = self.places.copy()
            flat[:, axis] = flat[0, axis]
            distinct, first, inverse = np.unique(flat, axis=0, return_index=True, return_inverse=True)
            fewer = len(distinct) < len(flat)
            walker = Walker(self.trace, distinct, self._starts) if fewer else self
            self._along[axis] = (first, inverse.reshape(-1), walker) if fewer else None
        return self._along[axis]

    def _constant(self, values) -> Node:
        values = np.zeros(1, np.uint64) if values is None else np.asarray(values)
        if (values == values.flat[0]).all():
            return Constant(int(values.flat[0]))
        steps = int(np.gcd.reduce(values))
        if values.max() < 1 << 32:
            for axis, places, found in self._by_index((values // np.uint64(steps)).astype(np.int64)):
                if text := derived_text(AXES[axis], places, found, most=LARGEST_DIVISOR):
                    table = tuple(zip(places.tolist(), (found * steps).tolist(), strict=True))
                    return DerivedConstant(axis, text if steps == 1 else f"{steps} * ({text})", table)
        raise Irregular(np.unique(values, return_inverse=True)[1].reshape(-1))

    def _by_index(self, values: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield (axis, the output's indices along it, the value for each index) of each axis that alone decides the values."""
        for axis in range(self.places.shape[1]):
            places, first, inverse = np.unique(self.places[:, axis], return_index=True, return_inverse=True)
            if len(places) > 1 and (values[first][inverse.reshape(-1)] == values).all():
                yield axis, places, values[first]

    def _walk(self, numbers: np.ndarray) -> Node:
        at = np.searchsorted(self._starts, numbers, "right") - 1
        kinds = [self.trace.blocks[i] for i in np.unique(at).tolist()]
        heads = [_head(block) for block in kinds]
        if any(head != heads[0] for head in heads):
            order = {head: i for i, head in enumerate(dict.fromkeys(heads))}
            table = dict(zip(np.unique(at).tolist(), (order[head] for head in heads), strict=True))
            raise Irregular(np.array([table[i] for i in at.tolist()]))
        if isinstance(kinds[0], InputElements):
            return self._element(kinds[0], numbers - self.trace.starts[int(at[0])])
        return (self._step if isinstance(kinds[0], Products) else self._operation)(numbers, at)

    def _elements(self, numbers: np.ndarray) -> tuple[Element, ...] | None:
        """Return the factors of a step that are elements of one array at linear indices, at once; None for other factors."""
        at = int(np.searchsorted(self._starts, numbers[0, 0], "right")) - 1
        block = self.trace.blocks[at]
        if not isinstance(block, InputElements) or not block.shape or numbers.min() < self._starts[at]:
            return None
        flat = numbers - self._starts[at]
        if flat.max() >= np.prod(block.shape):
            return None
        index = []
        for found in np.unravel_index(flat, block.shape):
            steps = np.zeros((self.places.shape[1], numbers.shape[1]), np.int64)
            for out, probe in enumerate(self.probes):
                if probe is not None:
                    apart = int(self.places[probe, out] - self.places[0, out])
                    moved = found[probe] - found[0]
                    steps[out] = np.where(moved % apart == 0, moved // apart, 0)
            constants = found - self.places @ steps
            if (constants != constants[0]).any():
                return None
            index.append([*zip(constants[0].tolist(), map(tuple, steps.T.tolist()), strict=True)])
        return tuple(
            self._inputs.setdefault((block.array, each), Element(block.array, block.name, each))
            for each in zip(*index, strict=True)
        )

    def _element(self, block: InputElements, flat: np.ndarray) -> Element:
        coordinates = np.stack(np.unravel_index(flat, block.shape), 1) if block.shape else np.zeros((len(flat), 0), int)
        index: list[tuple[Any, tuple[int, ...]]] = []
        for axis in range(coordinates.shape[1]):
            found = coordinates[:, axis]
            steps = []
            for out, probe in enumerate(self.probes):
                apart = 0 if probe is None else int(self.places[probe, out] - self.places[0, out])
                moved = 0 if probe is None else int(found[probe] - found[0])
                steps.append(moved // apart if apart and moved % apart == 0 else 0)
            constants = found - self.places @ np.array(steps)
            if (constants == constants[0]).all():
                index.append((int(constants[0]), tuple(steps)))
                continue
            derived = self._derived(found, loaded=block.array in self.trace.gathered)
            if derived is None:
                raise Irregular(np.unique(constants, return_inverse=True)[1].reshape(-1))
            index.append((derived, (0,) * len(steps)))
        return Element(block.array, block.name, tuple(index))

    def _derived(self, found: np.ndarray, *, loaded: bool) -> DerivedIndex | None:
        """Return an index that is a quotient or remainder of one of the output's indices, or loaded; None for another index."""
        for axis, places, values in self._by_index(found):
            text = derived_text(AXES[axis], places, values) or (f"loaded({AXES[axis]})" if loaded else "")
            if text:
                return DerivedIndex(axis, text, tuple(zip(places.tolist(), values.tolist(), strict=True)))
        return None

    def _operation(self, numbers: np.ndarray, at: np.ndarray) -> Applied:
        block = self.trace.blocks[int(at[0])]
        assert isinstance(block, Operations)
        width = block.operands.shape[1]
        operands, constants = np.empty((len(numbers), width), np.int64), np.empty((len(numbers), width), np.uint64)
        for i in np.unique(at).tolist():
            each, here = self.trace.blocks[i], at == i
            assert isinstance(each, Operations)
            places = numbers[here] - self.trace.starts[i]
            operands[here], constants[here] = each.operands[places], each.constants[places]
        if block.meaning is not None and block.meaning.commutes:
            self._order(operands, constants)
        children = tuple(self.node(operands[:, i].copy(), constants[:, i]) for i in range(width))
        return Applied(block.name, block.line, children, block.meaning)

    def _order(self, operands: np.ndarray, constants: np.ndarray) -> None:
        """Sort the first two operands by kind of expression; their numbers only say which one was computed first."""
        at = np.searchsorted(self._starts, operands[:, :2], "right") - 1
        ranks = np.array([_RANKS[type(block)] for block in self.trace.blocks])[at]
        ranks[operands[:, :2] == 0] = 0
        turned = ranks[:, 0] > ranks[:, 1]
        for table in (operands, constants):
            table[turned, :2] = table[turned, 1::-1]
        constant = operands[:, 0] == 0
        if constant.any() and not constant.all():
            self._order_constants(operands, constants, constant & (operands[:, 1] != 0))

    def _order_constants(self, operands: np.ndarray, constants: np.ndarray, some: np.ndarray) -> None:
        """Swap operands of outputs with a constant, so that the other operand stands beside similar ones of outputs without a
        constant."""
        whole = np.flatnonzero((operands[:, :2] != 0).all(1))
        if not some.any() or not len(whole):
            return
        numbers = operands[some.argmax(), 1], *operands[whole[0], :2]
        other, first, second = (_head(self.trace.block_of(int(number))[0]) for number in numbers)
        if other == second != first:
            return
        for table in (operands, constants):
            table[some, :2] = table[some, 1::-1]

    def _step(self, numbers: np.ndarray, at: np.ndarray) -> Step:
        block = self.trace.blocks[int(at[0])]
        assert isinstance(block, Products)
        k = block.a.shape[2]
        parts = {name: np.zeros((len(numbers), k), np.int64) for name in ("a", "b")}
        values = {name: np.zeros((len(numbers), k), np.uint64) for name in ("a", "b")}
        addend, addend_values = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.uint64)
        for i in np.unique(at).tolist():
            each, here = self.trace.blocks[i], at == i
            assert isinstance(each, Products)
            tile, row, column = np.unravel_index(numbers[here] - self.trace.starts[i], each.c.shape)
            parts["a"][here], values["a"][here] = each.a[tile, row], each.values[0][tile, row]
            parts["b"][here], values["b"][here] = each.b[tile, :, column], each.values[1][tile, :, column]
            addend[here], addend_values[here] = each.c[tile, row, column], each.values[2][tile, row, column]
        sides: list[tuple[Node, ...]] = []
        for name in ("a", "b"):
            elements = self._elements(parts[name])
            each = (self.node(parts[name][:, j].copy(), values[name][:, j]) for j in range(k))
            sides.append(tuple(each) if elements is None else elements)
        return Step(block.row, block.line, sides[0], sides[1], self.node(addend, addend_values), block.signs)


def derived_text(name: str, places: np.ndarray, values: np.ndarray, *, most: int = 1 << 20) -> str:
    """Return `values` as quotient or remainder of `places` by a number, plus a constant; empty if they are neither."""
    for divisor in range(2, min(int(places[-1]), most) + 1):
        for sign, part in (("//", places // divisor), ("mod", places % divisor)):
            apart = values - part
            if (apart == apart[0]).all():
                return f"{name} {sign} {divisor}" + (f" + {apart[0]}" if apart[0] else "")
    return ""


#: Order of the operands of a sum or product, by kind of expression; constants come before all.
_RANKS = {Operations: 1, Products: 2, InputElements: 3}


def _head(block) -> tuple:
    """Return the key that blocks of one form share; it has no line, because unrolled code has one operation at many lines."""
    if isinstance(block, InputElements):
        return ("input", block.array)
    if isinstance(block, Operations):
        return ("operation", block.name, block.operands.shape[1])
    return ("product", str(block.row), block.signs)


@dataclass(frozen=True)
class CommonForm:
    """`CommonForm` is a common expression with the outputs (flat places) that have it."""

    root: Node
    outputs: np.ndarray


def forms(
    trace: ExpressionTrace,
    owners: np.ndarray,
    array: int,
    shape: tuple[int, ...],
    size: int,
    chosen: np.ndarray | None = None,
    *,
    most: int = 64,
) -> list[CommonForm]:
    """Return the expressions of an output array, the one of most elements first.

    Parameters
    ----------
    trace : ExpressionTrace
        Trace of the run.
    owners : ndarray
        Numbers of the output's bytes (:mod:`.expressions`), flat.
    array : int
        Number of the output's array; elements that still hold their first value are left out.
    shape, size : tuple, int
        Shape of the output, and bytes of an element.
    chosen : ndarray, optional
        Flat places of the elements that are read; all by default.
    most : int
        Largest number of forms; more of them raise ValueError.

    Returns
    -------
    list of CommonForm
        Expressions; elements that depend on no input are left out.
    """
    numbers = trace.values_of(owners.reshape(-1, size))
    before = next(
        start
        for start, b in zip(trace.starts, trace.blocks, strict=True)
        if isinstance(b, InputElements) and b.array == array
    )
    here = (numbers != 0) & (numbers != before + np.arange(len(numbers)))
    left = [np.flatnonzero(here) if chosen is None else chosen[here[chosen]]]
    found: list[CommonForm] = []
    while left:
        part = left.pop()
        if not len(part):
            continue
        if len(found) + len(left) > most:
            raise ValueError(f"the outputs have more than {most} different expressions; read fewer rows with rows=")
        places = np.stack(np.unravel_index(part, shape), 1)
        try:
            found.append(CommonForm(Walker(trace, places).node(numbers[part]), part))
        except Irregular as parted:
            if parted.labels is None or len(np.unique(parted.labels)) < 2:
                left += [part[:1], part[1:]]
            else:
                left += [part[parted.labels == label] for label in np.unique(parted.labels)]
    return sorted(found, key=lambda form: -len(form.outputs))
