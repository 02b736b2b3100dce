"""Describes a compiled kernel's computation for people: chains of a matrix instruction, restarts, the operations at the end.

Made from the common expressions of :mod:`.template`. Where the expression is chains over k of plain operands, joined by FP32
additions and rounded at the end, it is a recipe of :mod:`tensorcore_models.libraries`, which predicts and explains.
"""

import re
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from ..engines.matrix_engine import MatrixEngine
from ..families.fma_chain import SequentialFMA
from ..libraries.recipe import Epilogue, Recipe, Unknown
from ..orders.order import Chain, Order, Sum
from ..orders.trees import tree_of_order
from ..results import Result
from .common_texts import LARGEST, Texts, letter_beside, operands_of, tree_over_k
from .isa.meaning import Meaning
from .isa.types import FORMATS
from .template import Applied, CommonForm, Constant, Node, Step

#: Steps whose operands are all zeros: beyond the end of k.
_PADDING = ("{0}", "{0}")
#: Characters of a factor that is spelled out where it is used.
_LONGEST = 30


def _is_addition(node: Node) -> bool:
    """Whether a node joins sums: an FP32 addition to nearest, of vector units or as an atomic operation, which may flush."""
    m = node.meaning if isinstance(node, Applied) else None
    if m is not None and m.options == ("atomic",):
        m = replace(m, options=(), flush=(False, False))
    return m is not None and m.plain("add")


def _output_format(node: Node) -> str | None:
    """The format of 16 bits to which a node rounds an FP32 number to nearest; None of other nodes."""
    m = node.meaning if isinstance(node, Applied) else None
    usual = None if m is None else Meaning("convert", m.result, ("f32",), nan=m.nan)
    return FORMATS[m.result] if m is not None and m == usual and m.result in ("f16", "bf16") else None


@dataclass(frozen=True)
class StepRun:
    """Neighbouring steps of one accumulator whose operands have one form, each over values of k in order."""

    unit: str
    row: Any
    left: str
    right: str
    steps: tuple[tuple[int, ...], ...]
    line: int
    letter: str = "k"

    @property
    def ks(self) -> tuple[int, ...]:
        """The values of k of all steps."""
        return tuple(k for step in self.steps for k in step)


@dataclass(frozen=True)
class Accumulation:
    """Runs of steps from a start value, the first first."""

    start: Node
    runs: tuple[StepRun, ...]


def accumulation(node: Node, texts: Texts | None = None) -> Accumulation | None:
    """The chain of steps that ends in a node; None if the node is no step. `texts` has the names of common parts."""
    texts = texts or Texts()
    runs: list[StepRun] = []
    while (step := _step_of(node, texts)) is not None:
        run, node = step
        joins = runs and (runs[-1].unit, runs[-1].left, runs[-1].right) == (run.unit, run.left, run.right)
        if joins:
            last = runs.pop()
            run = StepRun(run.unit, run.row, run.left, run.right, run.steps + last.steps, run.line, run.letter)
        runs.append(run)
    return Accumulation(node, tuple(reversed(runs))) if runs else None


def _step_of(node: Node, texts: Texts) -> tuple[StepRun, Node] | None:
    """(one step, its addend): of a matrix instruction, or a fused multiply-add of two elements."""
    if isinstance(node, Step):
        letter = max(letter_beside(node.left[0]), letter_beside(node.right[0]))
        left, left_ks = texts.along(node.left, node.signs[0], letter)
        right, right_ks = texts.along(node.right, node.signs[1], letter)
        if left_ks and not right_ks and right != "{0}" and len(left_ks) == len(node.right):
            right, right_ks = texts.along(node.right, node.signs[1], letter, left_ks)
        elif right_ks and not left_ks and left != "{0}" and len(right_ks) == len(node.left):
            left, left_ks = texts.along(node.left, node.signs[0], letter, right_ks)
        ks = left_ks if left_ks == right_ks or not right_ks else () if left_ks else right_ks
        return StepRun(str(node.row), node.row, left, right, (ks,), node.line, letter), node.addend
    if not isinstance(node, Applied) or node.meaning is None:
        return None
    m = node.meaning
    if m.operation == "fma" and m.rounding == "rne":
        left, left_ks = texts.along((node.operands[0],), 1, "k")
        right, right_ks = texts.along((node.operands[1],), 1, "k")
        if left_ks and left_ks == right_ks:
            row = _fma() if m.plain("fma") else None
            return StepRun(node.name, row, left, right, (left_ks,), node.line), node.operands[2]
    return None


@dataclass(frozen=True, repr=False)
class KernelRecipe(Result):
    """The computation of a kernel for its output.

    Attributes
    ----------
    kernel, output : str
        The entry, and the argument that holds the output.
    forms : tuple of CommonForm
        Common expressions, that of most elements first; :attr:`CommonForm.outputs` says which elements have it.
    assumptions : tuple of str
        What the expressions rest on: decisions by data, orders that the hardware does not determine.
    output_number : int
        Place of the output among the arguments.
    """

    kernel: str
    output: str
    forms: tuple[CommonForm, ...]
    assumptions: tuple[str, ...]
    output_number: int = 0

    @property
    def root(self) -> Node:
        """The expression of most elements."""
        return self.forms[0].root

    def outline(self, form: int = 0) -> list[str]:
        """Lines of an indented tree; what is used again and again stands behind it, by name."""
        return _Outline(self.forms[form].root).lines()

    @cached_property
    def instructions(self) -> tuple[str, ...]:
        """The matrix instructions and multiply-adds of the most common expression, in the order in which they appear."""
        return _instructions(self.root)

    def library(self) -> Recipe:
        """The same as a recipe of `libraries`.

        Raises
        ------
        Unknown
            If the expression is not of chains over k of plain operands that FP32 additions join; says what is in the way.
        """
        if len(self.forms) != 1:
            raise Unknown(
                f"{self.kernel} has {len(self.forms)} different expressions", field="expression", advice="See forms"
            )
        root, fmt = self.root, _output_format(self.root)
        if fmt is not None and isinstance(root, Applied):
            root = root.operands[0]
        root = _without_factor_one(root)
        rows: list = []
        order = _order(root, rows)
        units = {str(row) for row in rows}
        if len(units) != 1:
            raise Unknown(f"{self.kernel} uses several units: {', '.join(sorted(units))}", field="engine")
        pieces = [piece for chain in _chains(order) for piece in chain.pieces]
        length = max((piece[-1] + 1 for piece in pieces), default=0)
        source = "read from the compiled kernel"
        return Recipe(rows[0], length, order, Epilogue(formats=(fmt or "fp32",), scales=False), self.kernel, source)

    def __str__(self) -> str:
        count = sum(len(form.outputs) for form in self.forms)
        lines = [
            f"{self.kernel}: {self.output}, {count} elements, {len(self.forms)} expression{'s' * (len(self.forms) > 1)}"
        ]
        for number, form in enumerate(self.forms[:4]):
            if len(self.forms) > 1:
                lines.append(f"  of {len(form.outputs)} elements:")
            lines += [f"  {line}" for line in self.outline(number)]
        if len(self.forms) > 4:
            lines.append(f"  and {len(self.forms) - 4} more expressions")
        try:
            lines += ["order of k:", *(f"  {line}" for line in tree_of_order(self.library().order).outline())]
        except ValueError as error:
            lines.append(f"not a recipe of libraries: {error}")
        return "\n".join([*_named(lines), *(f"assumed: {each}" for each in self.assumptions)])

    def to_rows(self) -> list[dict]:
        """One row for each expression: elements, matrix instructions, tree."""
        return [
            {
                "elements": len(form.outputs),
                "instructions": ", ".join(self.instructions),
                "expression": "\n".join(self.outline(i)),
            }
            for i, form in enumerate(self.forms)
        ]


def _without_factor_one(node: Node) -> Node:
    """A sum without the factor 1.0 that epilogues have for alpha = 1, which changes none of its bits."""
    while isinstance(node, Applied) and node.meaning is not None and node.meaning.plain("mul"):
        if Constant(0x3F800000) not in node.operands:
            break
        inside = node.operands[node.operands[0] == Constant(0x3F800000)]
        if not (isinstance(inside, Step) or _is_addition(inside)):
            break
        node = inside
    return node


def _named(lines: list[str]) -> list[str]:
    """The lines with names for long factors of products, which are spelled out at the end."""
    factors = {side for line in lines for side in re.findall(r"then (.*?) x (.*?)(?:, k \d|$)", line) for side in side}
    names = {text: f"w{i}" for i, text in enumerate(sorted((f for f in factors if len(f) > _LONGEST), key=len), 1)}
    for text, name in sorted(names.items(), key=lambda item: -len(item[0])):
        lines = [line.replace(text, name) for line in lines]
    return [*lines, *(f"{name} = {text}" for text, name in names.items())]


@cache
def _fma() -> MatrixEngine:
    """The CUDA cores' fused multiply-add in FP32."""
    return MatrixEngine(SequentialFMA(), a_format="fp32", b_format="fp32", c_format="fp32", d_format="fp32", k=1)


def _chains(order: Order) -> list[Chain]:
    return [order] if isinstance(order, Chain) else [chain for part in order.parts for chain in _chains(part)]


def _order(node: Node, rows: list) -> Order:
    """The order of a sum; Unknown where it has no place for what the expression does."""
    chain = accumulation(node)
    if chain is not None:
        if not (isinstance(chain.start, Constant) and chain.start.bits == 0):
            raise Unknown(f"a chain starts from {_short(chain.start)}", field="start", known=("+0",))
        runs = [run for run in chain.runs if (run.left, run.right) != _PADDING]
        if len(runs) != 1 or not runs[0].ks or any(mark in runs[0].left + runs[0].right for mark in "({-"):
            told = "; ".join(map(run_text, runs))
            raise Unknown(f"the factors of a chain are not plain elements: {told}", field="operands")
        row = runs[0].row
        if row is None:
            raise Unknown(
                f"{runs[0].unit} is no multiply-add of FP32 numbers that flushes and clamps nothing", field="engine"
            )
        if row.formats[0] != row.formats[1] and re.search(r"\bj\b", runs[0].left):
            raise Unknown(
                f"{row} gets the output's columns as its first matrix, whose format is another", field="operands"
            )
        rows.append(row)
        return _chain(runs[0])
    if _is_addition(node):
        parts: list[Node] = []
        while isinstance(node, Applied) and _is_addition(node):
            sums = [_is_addition(x) for x in node.operands]
            own = 1 if sums == [False, True] else 0  # which operand goes on to the left: additions commute
            parts.append(node.operands[1 - own])
            node = node.operands[own]
        zero = isinstance(node, Constant) and node.bits == 0
        orders = [_order(part, rows) for part in ([*parts, *([] if zero else [node])])[::-1]]
        return Sum(tuple(orders), start="zero" if zero else "first")
    raise Unknown(f"the expression has {_short(node)} where a chain or an addition is expected", field="expression")


def _chain(run: StepRun) -> Chain:
    """A run of steps as pieces of k; where k is interleaved, several of them share a step."""
    size = run.row.k
    if all(len(_pieces(step)) == 1 for step in run.steps):
        pieces: list[range] = []
        for step in run.steps:
            if pieces and pieces[-1].stop == step[0] and len(pieces[-1]) % size == 0:
                pieces[-1] = range(pieces[-1].start, step[-1] + 1)
            else:
                pieces.append(range(step[0], step[-1] + 1))
        return Chain(tuple(pieces))
    if any(len(step) != size for step in run.steps[:-1]):
        raise Unknown(f"steps that interleave k are not full: {run_text(run)}", field="order")
    return Chain(_pieces(run.ks), joined=True)


def _pieces(ks: tuple[int, ...]) -> tuple[range, ...]:
    """Values of k as ascending ranges."""
    found: list[range] = []
    for k in ks:
        if found and k == found[-1].stop:
            found[-1] = range(found[-1].start, k + 1)
        else:
            found.append(range(k, k + 1))
    return tuple(found)


def _short(node: Node) -> str:
    text = node.text()
    return text if len(text) < 70 else text[:67] + "..."


def pieces_text(ks: tuple[int, ...]) -> str:
    """Values of k as ranges, the first six."""
    pieces = _pieces(ks)
    return ", ".join(f"{p.start}:{p.stop}" for p in pieces[:6]) + (" ..." if len(pieces) > 6 else "")


def run_text(run: StepRun) -> str:
    """The factors of a run, and their k."""
    return f"{run.left} x {run.right}" + (f", {run.letter} {pieces_text(run.ks)}" if run.ks else "")


class _Outline:
    """Lines of the tree of an expression. Large parts that are used more than once are written once, by name."""

    def __init__(self, root: Node):
        self.root, self.texts = root, Texts()
        self.uses: dict[int, int] = {}
        stack = [root]
        while stack:
            node = stack.pop()
            for operand in {id(x): x for x in operands_of(node)}.values():
                self.uses[id(operand)] = self.uses.get(id(operand), 0) + 1
                if self.uses[id(operand)] == 1:
                    stack.append(operand)

    def lines(self) -> list[str]:
        """The tree, then the named parts in the order in which they were met."""
        found = self._under(self.root, 0)
        while self.texts.named:
            node = self.texts.named.pop(0)
            below = self._under(node, 1, named=True)
            found += [f"{self.texts.names[id(node)]} =", *below]
        return found

    def _under(self, node: Node, depth: int, *, named: bool = False) -> list[str]:
        space, texts = "  " * depth, self.texts
        shared = self.uses.get(id(node), 0) > 1 and texts.size(node) > LARGEST
        if not named and (shared or id(node) in texts.names):
            return [space + texts.name(node)]
        if isinstance(node, Applied) and (tree := tree_over_k(node, texts.parts)) is not None:
            form, order = tree
            return [
                f"{space}{node.name} over k (line {node.line}), of",
                *self._under(form, depth + 1),
                f"{space}  in the order {order}",
            ]
        chain = accumulation(node, texts)
        if chain is not None:
            lines = [f"{space}chain of {chain.runs[0].unit} (line {chain.runs[0].line}), from"]
            lines += self._under(chain.start, depth + 1)
            return [*lines, *(f"{space}  then {run_text(run)}" for run in chain.runs)]
        if isinstance(node, Applied):
            plain = all(not isinstance(x, Applied | Step) for x in node.operands)
            head = f"{space}{node.name}" + (f" (line {node.line})" if node.line else "")
            if plain:
                return [f"{head}: {', '.join(x.text() for x in node.operands)}"]
            return [head, *(line for operand in node.operands for line in self._under(operand, depth + 1))]
        return [space + node.text()]


def _instructions(root: Node) -> tuple[str, ...]:
    """Units of the chains in an expression, what is computed first before."""
    found: dict[str, None] = {}
    stack, seen = [(root, False)], set()
    while stack:
        node, ready = stack.pop()
        unit = _unit_of(node)
        if ready and unit is not None:
            found[unit] = None
        if not ready and id(node) not in seen:
            seen.add(id(node))
            stack += [(node, True), *((x, False) for x in reversed(operands_of(node)))]
    return tuple(found)


def _unit_of(node: Node) -> str | None:
    """The unit of a step of a chain; None of another node."""
    if isinstance(node, Step):
        return str(node.row)
    return node.name if isinstance(node, Applied) and _step_of(node, Texts()) is not None else None


def owners_of(memory, number: int) -> np.ndarray:
    """Whose bytes an array of global memory holds."""
    return memory.space.ids[memory.starts[number] : memory.stops[number]]
