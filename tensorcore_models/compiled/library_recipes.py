"""Turns kernels' expressions into recipes of :mod:`tensorcore_models.libraries`: the order of k, and the operations after the
sum.

Below the last operations on single elements (a bias, scales, a rounding) stands one sum of products. A recipe states its order.
The operations above the sum, and the start of its chain, are evaluated as the machine computes them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..engines.engine import Engine
from ..engines.scaling import Scaling
from ..libraries.recipe import Epilogue, Recipe, Unknown
from ..orders.order import Chain, Order, Sum
from .chains import Accumulation, StepRun, accumulation, has_products, pieces_of, run_text
from .common_texts import Texts
from .isa.meaning import Meaning
from .isa.operations import function_of
from .isa.types import FORMATS, array_type
from .nodes import Applied, Constant, DerivedConstant, DerivedIndex, Element, Masked, Node, Step, operands_of
from .solver_terms import special_functions

#: Steps whose operands are all zeros, which lie beyond the end of k.
_PADDING = ("{0}", "{0}")


def _is_addition(node: Node) -> bool:
    """Return whether a node joins sums by an FP32 addition to nearest, of vector units or atomic, with or without flushing."""
    m = node.meaning if isinstance(node, Applied) else None
    if m is not None and m.options == ("atomic",):
        m = replace(m, options=(), flush=(False, False))
    return m is not None and m.plain("add")


def _output_format(node: Node) -> str | None:
    """Return the 16-bit format to which a node rounds an FP32 number to nearest; None for other nodes."""
    m = node.meaning if isinstance(node, Applied) else None
    usual = None if m is None else Meaning("convert", m.result, ("f32",), nan=m.nan)
    return FORMATS[m.result] if m is not None and m == usual and m.result in ("f16", "bf16") else None


def _without_factor_one(node: Node) -> Node:
    """Return a sum without the factor 1.0 that an epilogue multiplies by for alpha = 1, which changes no bit."""
    while isinstance(node, Applied) and node.meaning is not None and node.meaning.plain("mul"):
        if Constant(0x3F800000) not in node.operands:
            break
        inside = node.operands[node.operands[0] == Constant(0x3F800000)]
        if not (isinstance(inside, Step) or _is_addition(inside)):
            break
        node = inside
    return node


def _chains(order: Order) -> list[Chain]:
    return [order] if isinstance(order, Chain) else [chain for part in order.parts for chain in _chains(part)]


def _order(node: Node, rows: list) -> Order:
    """Return the order of a sum that starts at +0; raise Unknown if the expression is no such sum."""
    chain = accumulation(node)
    if chain is not None:
        if chain.start != Constant(0):
            raise Unknown(f"a chain starts from {_short(chain.start)}", field="start", known=("+0",))
        return _chain_order(chain, rows)
    if _is_addition(node):
        parts: list[Node] = []
        while isinstance(node, Applied) and _is_addition(node):
            sums = [_is_addition(x) for x in node.operands]
            # `own` is the index of the operand that continues to the left: additions commute
            own = 1 if sums == [False, True] else 0
            parts.append(node.operands[1 - own])
            node = node.operands[own]
        zero = isinstance(node, Constant) and node.bits == 0
        orders = [_order(part, rows) for part in ([*parts, *([] if zero else [node])])[::-1]]
        return Sum(tuple(orders), start="zero" if zero else "first")
    raise Unknown(f"the expression has {_short(node)} where a chain or an addition is expected", field="expression")


def _chain_order(chain: Accumulation, rows: list) -> Chain:
    """Return the order of one chain, for any start value."""
    runs = [run for run in chain.runs if (run.left, run.right) != _PADDING]
    if len(runs) != 1 or not runs[0].ks or any(mark in runs[0].left + runs[0].right for mark in "({-"):
        told = "; ".join(map(run_text, runs))
        raise Unknown(f"the factors of a chain are not plain elements: {told}", field="operands")
    row = runs[0].row
    if row is None:
        raise Unknown(f"{runs[0].unit} flushes or clamps, or is no FP32 multiply-add", field="engine")
    if row.formats[0] != row.formats[1] and re.search(r"\bj\b", runs[0].left):
        raise Unknown(
            f"{row} takes the output's columns as its first matrix, but its two formats differ", field="operands"
        )
    rows.append(row)
    return _chain(runs[0])


def _chain(run: StepRun) -> Chain:
    """Return a run of steps as parts of k; where k is interleaved, several parts share a step."""
    size = run.row.k
    if all(len(pieces_of(step)) == 1 for step in run.steps):
        pieces: list[range] = []
        for step in run.steps:
            if pieces and pieces[-1].stop == step[0] and len(pieces[-1]) % size == 0:
                pieces[-1] = range(pieces[-1].start, step[-1] + 1)
            else:
                pieces.append(range(step[0], step[-1] + 1))
        return Chain(tuple(pieces))
    if any(len(step) != size for step in run.steps[:-1]):
        raise Unknown(f"steps over interleaved k have too few products: {run_text(run)}", field="order")
    return Chain(pieces_of(run.ks), joined=True)


def _short(node: Node) -> str:
    text = Texts().of(node)
    return text if len(text) < 70 else text[:67] + "..."


# -- operations after the sum ---------------------------------------------------------------------------------------------
def library_recipe(root: Node, kernel: str) -> Recipe:
    """Return the recipe of an expression; raise Unknown, with the obstacle, if there is none."""
    plain, fmt = root, _output_format(root)
    if fmt is not None and isinstance(root, Applied):
        plain = root.operands[0]
    core, start, order, engine = _core(_without_factor_one(plain), kernel, {})
    pieces = [piece for chain in _chains(order) for piece in chain.pieces]
    length = max((piece[-1] + 1 for piece in pieces), default=0)
    facts: dict[str, Any] = {"name": kernel, "source": "read from the compiled kernel"}
    if core is _without_factor_one(plain) and start is None:
        return Recipe(engine, length, order, Epilogue(formats=(fmt or "fp32",), scales=False), **facts)
    kind = root.meaning.result if isinstance(root, Applied) and root.meaning is not None else ""
    written = engine.formats[3].name if root is core else FORMATS.get(kind)
    if written is None:
        raise Unknown(f"the output is {_short(root)}, which has no known format", field="out_format")
    facts |= {"epilogue": Epilogue(formats=(written,), scales=False), "root": root, "core": core, "start": start}
    return FinishedRecipe(engine, length, order, **facts)


class _Core(NamedTuple):
    """`_Core` is the sum of products in an expression: the start of its chain (None: +0), its order, its unit."""

    node: Node
    start: Node | None
    order: Order
    engine: Engine


def _core(node: Node, kernel: str, known: dict[int, _Core]) -> _Core:
    """Return the one sum of products in an expression; raise Unknown if there are several, or no recipe states it."""
    if id(node) not in known:
        try:
            known[id(node)] = _sum_at(node, kernel)
        except Unknown:
            parts = operands_of(node) if isinstance(node, Applied) and accumulation(node) is None else ()
            found = {id(core.node): core for core in (_core(x, kernel, known) for x in parts if has_products(x))}
            if len(found) != 1:
                raise
            known[id(node)] = next(iter(found.values()))
    return known[id(node)]


def _sum_at(node: Node, kernel: str) -> _Core:
    """Return the sum that a node computes."""
    rows: list = []
    chain = accumulation(node)
    if chain is not None and chain.start != Constant(0) and not has_products(chain.start):
        return _Core(node, chain.start, _chain_order(chain, rows), rows[0])
    order = _order(node, rows)
    units = {str(row) for row in rows}
    if len(units) != 1:
        raise Unknown(f"{kernel} uses several units: {', '.join(sorted(units))}", field="engine")
    return _Core(node, None, order, rows[0])


@dataclass(frozen=True, kw_only=True)
class FinishedRecipe(Recipe):
    """`FinishedRecipe` is a recipe of a kernel that reads arrays besides A and B, such as C, a bias or scales.

    Parameters
    ----------
    root : Node
        Expression of an element of the output.
    core : Node
        Sum of products in this expression.
    start : Node or None
        Expression from which the sum starts; None for a start at +0.
    """

    root: Any
    core: Any
    start: Any = None

    @cached_property
    def arrays(self) -> tuple[str, ...]:
        """Return the names of the arrays beside A and B, as the kernel's expression has them."""
        found: dict[str, None] = {}
        stack, seen = [self.root], set()
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, Element):
                found[node.name] = None
            stack += ([self.start] if self.start is not None else []) if node is self.core else operands_of(node)
        return tuple(sorted(found))

    def gemm_bits(
        self, a, b, *, arrays: Mapping[str, Any] | None = None, out_format: str | None = None, scale: float = 1.0,
        scale_result: float | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return the kernel's output as encodings, shape (m, n).

        Parameters
        ----------
        a, b : array of unsigned integers
            Encodings, shapes (m, k) and (k, n).
        arrays : mapping of str to array
            The kernel's arrays besides A and B; the attribute `arrays` lists their names.
        out_format : str, optional
            Output format of the kernel; another format is refused.
        scale, scale_result : float
            Must be 1 and None, because the factors are part of the kernel's expression.

        Raises
        ------
        ValueError, TypeError
            See :meth:`Recipe.gemm_bits`; also if an array is missing, or the kernel takes no such array.
        """
        (fmt,) = self.epilogue.formats
        if out_format not in (None, fmt):
            raise Unknown(
                f"{self.name}: the output format {out_format} is not the kernel's", field="out_format", known=(fmt,)
            )
        if scale != 1 or scale_result is not None:
            raise Unknown(
                f"{self.name} applies its own factors, so that no other scale can be given", field="scale", known=(1,)
            )
        given = dict(arrays or {})
        if set(given) != {*self.arrays}:
            raise ValueError(
                f"{self.name} takes {', '.join(self.arrays) or 'no arrays'} in addition to A and B, got "
                f"{', '.join(given) or 'none'}: "
                "pass arrays={name: array, ...}"
            )
        a, b = np.asarray(a), np.asarray(b)
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != self.k:
            raise ValueError(f"{self.name}: a is {a.shape} and b {b.shape}, expected (m, {self.k}) and ({self.k}, n)")
        evaluation = Evaluation((a.shape[0], b.shape[1]), given)
        evaluation.known[id(self.core)] = self._sum(a, b, evaluation)
        return np.ascontiguousarray(np.broadcast_to(evaluation.of(self.root), evaluation.shape))

    def sum_bits(self, a, b, *, out_format: str = "fp32") -> np.ndarray:
        """Return the encodings of the sum that starts at +0; raise Unknown if the kernel starts it at another value."""
        if self.start is not None:
            raise Unknown(f"{self.name} starts its sum from {_short(self.start)}", field="start", known=("+0",))
        return super().sum_bits(a, b, out_format=out_format)

    def scaled_bits(self, a, b, scaling: Scaling, *, out_format: str = "fp32") -> np.ndarray:
        """Raise Unknown, because the factors are part of the kernel's expression, so that no other factors can be given."""
        raise Unknown(f"{self.name} applies its own factors, so that no other scales can be given", field="scales")

    def _sum(self, a: np.ndarray, b: np.ndarray, evaluation: "Evaluation") -> np.ndarray:
        """Return encodings of the sum."""
        if self.start is None:
            return self.sum_bits(a, b)
        chain = self.order
        assert isinstance(chain, Chain)
        pieces = [np.array(piece) for piece in chain.pieces]
        if chain.joined:
            pieces = [np.concatenate(pieces)]
        total = np.ascontiguousarray(np.broadcast_to(evaluation.of(self.start), evaluation.shape))
        for piece in pieces:
            total = self.engine.gemm_bits(a[:, piece], b[piece], total)
        return total


class Evaluation:
    """`Evaluation` computes the nodes of an expression over all elements of an output, as encodings."""

    def __init__(self, shape: tuple[int, ...], arrays: dict[str, Any]):
        self.shape, self.places = shape, np.indices(shape)
        self.arrays = {name: np.ascontiguousarray(x) for name, x in arrays.items()}
        self.known: dict[int, np.ndarray] = {}

    def of(self, node: Node) -> np.ndarray:
        """Return the encodings of a node."""
        if id(node) not in self.known:
            self.known[id(node)] = self._new(node)
        return self.known[id(node)]

    def _new(self, node: Node) -> np.ndarray:
        if isinstance(node, Constant):
            return np.array(node.bits, np.uint64)
        if isinstance(node, DerivedConstant):
            return np.vectorize(dict(node.table).__getitem__, otypes=[np.uint64])(self.places[node.axis])
        if isinstance(node, Element):
            array = self.arrays[node.name]
            return array.view(f"u{array.itemsize}")[tuple(self._index(*each) for each in node.index)]
        if isinstance(node, Masked):
            return np.where(self.places[node.axis] < node.bound, self.of(node.below), self.of(node.above))
        m = node.meaning if isinstance(node, Applied) else None
        if m is None:
            raise Unknown(f"the output is made by {_short(node)}, which is not modelled", field="expression")
        values = []
        for operand, kind in zip(operands_of(node), m.sources, strict=True):
            value, dtype = self.of(operand), array_type(kind)
            bits = value.view(f"u{value.itemsize}").astype(f"u{dtype.itemsize}")
            values.append(bits.view(dtype) if dtype.kind != "b" else bits != 0)
        function = special_functions()[m.options[0]].bits if m.operation == "function" else function_of(m)
        with np.errstate(all="ignore"):
            found = np.asarray(function(*values))
        return found if found.dtype.kind != "b" else found.astype(np.uint8)

    def _index(self, constant: Any, steps: tuple[int, ...]) -> np.ndarray:
        """Return one index of an element for all places of the output."""
        if isinstance(constant, DerivedIndex):
            table = dict(constant.table)
            return np.vectorize(table.__getitem__)(self.places[constant.axis])
        moved = (step * place for step, place in zip(steps, self.places, strict=True))
        return constant + sum(moved, np.zeros(self.shape, np.int64))
