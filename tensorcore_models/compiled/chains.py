"""Finds chains of a matrix instruction or of multiply-adds in an expression: their runs of steps over k."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from ..engines.matrix_engine import MatrixEngine
from ..families.fma_chain import SequentialFMA
from .common_texts import Texts, letter_beside
from .nodes import Applied, Node, Step, all_within


@dataclass(frozen=True)
class StepRun:
    """`StepRun` is a run of neighbouring steps of one accumulator whose operands have one form, each step over values of k in
    order."""

    unit: str
    row: Any
    left: str
    right: str
    steps: tuple[tuple[int, ...], ...]
    line: int
    letter: str = "k"

    @property
    def ks(self) -> tuple[int, ...]:
        """Return the values of k of all steps, in order."""
        return tuple(k for step in self.steps for k in step)


@dataclass(frozen=True)
class Accumulation:
    """`Accumulation` is a start value and the runs of steps that add to it, in order."""

    start: Node
    runs: tuple[StepRun, ...]


def accumulation(node: Node, texts: Texts | None = None) -> Accumulation | None:
    """Return the chain of steps that ends in a node; None if the node is no step. `texts` holds the names of common parts."""
    texts = texts or Texts()
    runs: list[StepRun] = []
    while (step := step_of(node, texts)) is not None:
        run, node = step
        joins = runs and (runs[-1].unit, runs[-1].left, runs[-1].right) == (run.unit, run.left, run.right)
        if joins:
            last = runs.pop()
            run = StepRun(run.unit, run.row, run.left, run.right, run.steps + last.steps, run.line, run.letter)
        runs.append(run)
    return Accumulation(node, tuple(reversed(runs))) if runs else None


def step_of(node: Node, texts: Texts) -> tuple[StepRun, Node] | None:
    """Return one step of a matrix instruction, or of multiply-adds of two elements, and its addend; None for other nodes."""
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
    if m.operation == "fma" and m.rounding == "rne" and not any(map(_has_steps, node.operands[:2])):
        left, left_ks = texts.along((node.operands[0],), 1, "k")
        right, right_ks = texts.along((node.operands[1],), 1, "k")
        if left_ks and left_ks == right_ks:
            row = _fma() if m.plain("fma") else None
            return StepRun(node.name, row, left, right, (left_ks,), node.line), node.operands[2]
    return None


@cache
def _fma() -> MatrixEngine:
    """Return the engine of the CUDA cores' FP32 fused multiply-add."""
    return MatrixEngine(SequentialFMA(), a_format="fp32", b_format="fp32", c_format="fp32", d_format="fp32", k=1)


def pieces_of(ks: tuple[int, ...]) -> tuple[range, ...]:
    """Return values of k as ascending ranges."""
    found: list[range] = []
    for k in ks:
        if found and k == found[-1].stop:
            found[-1] = range(found[-1].start, k + 1)
        else:
            found.append(range(k, k + 1))
    return tuple(found)


def pieces_text(ks: tuple[int, ...]) -> str:
    """Return values of k as text: the first six ranges."""
    pieces = pieces_of(ks)
    return ", ".join(f"{p.start}:{p.stop}" for p in pieces[:6]) + (" ..." if len(pieces) > 6 else "")


def run_text(run: StepRun) -> str:
    """Return the factors of a run and its values of k, as text."""
    return f"{run.left} x {run.right}" + (f", {run.letter} {pieces_text(run.ks)}" if run.ks else "")


def _has_steps(node: Node) -> bool:
    """Return whether an expression has a step of a matrix instruction."""
    return any(isinstance(inside, Step) for inside in all_within(node))


def has_products(node: Node) -> bool:
    """Return whether an expression has a step of a matrix instruction, or of a chain of multiply-adds."""
    return any(
        step_of(inside, Texts()) is not None for inside in all_within(node) if isinstance(inside, Applied | Step)
    )
