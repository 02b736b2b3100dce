"""Describes a compiled kernel's computation in text: chains of a matrix instruction, restarts, the operations at the end.

It is made from the common expressions of :mod:`.common_forms`. If the expression consists of chains over k of plain operands,
joined by FP32 additions, it is also a recipe of :mod:`tensorcore_models.libraries` (:mod:`.library_recipes`), which predicts
and explains results.
"""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..libraries.recipe import Recipe, Unknown
from ..orders.trees import tree_of_order
from ..results import Result
from .chains import accumulation, run_text, step_of
from .common_forms import CommonForm
from .common_texts import LARGEST, Texts, nibble_of, tree_over_k
from .library_recipes import FinishedRecipe, library_recipe
from .nodes import Applied, Masked, Node, Step, operands_of

#: Longest factor, in characters, that is spelled out where it is used.
_LONGEST = 30


@dataclass(frozen=True, repr=False)
class KernelRecipe(Result):
    """`KernelRecipe` holds the expressions by which a kernel computes its output.

    Attributes
    ----------
    kernel, output : str
        Names of the kernel's entry and of the argument that holds the output.
    forms : tuple of CommonForm
        Expressions with the elements of the output that they give (:attr:`CommonForm.outputs`). The expression of the most
        elements comes first.
    assumptions : tuple of str
        Assumptions of the expressions: decisions that depend on data, and orders that the hardware leaves open.
    output_number : int
        Index of the output among the arguments.
    """

    kernel: str
    output: str
    forms: tuple[CommonForm, ...]
    assumptions: tuple[str, ...]
    output_number: int = 0

    @property
    def root(self) -> Node:
        """Return the expression that most elements share."""
        return self.forms[0].root

    def outline(self, form: int = 0) -> list[str]:
        """Return the lines of an indented tree of an expression.

        Subexpressions that occur often have names in the tree; their own trees follow after it.
        """
        return _Outline(self.forms[form].root).lines()

    @cached_property
    def instructions(self) -> tuple[str, ...]:
        """Return the matrix instructions and multiply-adds of the most common expression, in the order in which they appear."""
        return _instructions(self.root)

    def library(self) -> Recipe:
        """Return the computation as a recipe of `libraries`.

        If the kernel reads C, a bias or scales, the recipe takes them as named arrays.

        Raises
        ------
        Unknown
            If the expression has no recipe; the message says why. A recipe needs one sum of products of elements of A and B:
            chains over k whose results are joined by FP32 additions.
        """
        if len(self.forms) != 1:
            raise Unknown(
                f"{self.kernel} has {len(self.forms)} different expressions", field="expression", advice="See forms"
            )
        return library_recipe(self.root, self.kernel)

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
            library = self.library()
            lines += ["order of k:", *(f"  {line}" for line in tree_of_order(library.order).outline())]
            if isinstance(library, FinishedRecipe):
                lines.append(
                    f"operations after the sum use {', '.join(library.arrays) or 'constants'}, as in the expression"
                )
        except ValueError as error:
            lines.append(f"not a recipe of libraries: {error}")
        return "\n".join([*_named(lines), *(f"assumed: {each}" for each in self.assumptions)])

    def to_rows(self) -> list[dict]:
        """Return one row for each expression: elements, matrix instructions, tree."""
        return [
            {
                "elements": len(form.outputs),
                "instructions": ", ".join(self.instructions),
                "expression": "\n".join(self.outline(i)),
            }
            for i, form in enumerate(self.forms)
        ]


def _named(lines: list[str]) -> list[str]:
    """Return the lines with names for long factors of products, which are spelled out at the end."""
    factors = {side for line in lines for side in re.findall(r"then (.*?) x (.*?)(?:, k \d|$)", line) for side in side}
    names = {text: f"w{i}" for i, text in enumerate(sorted((f for f in factors if len(f) > _LONGEST), key=len), 1)}
    for text, name in sorted(names.items(), key=lambda item: -len(item[0])):
        lines = [line.replace(text, name) for line in lines]
    return [*lines, *(f"{name} = {text}" for text, name in names.items())]


class _Outline:
    """`_Outline` writes an expression as an indented tree.

    Large parts that are used more than once are written once, by name.
    """

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
        """Return the tree, then the named parts in the order in which they were met."""
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
        if nibble_of(node) is not None:
            return [space + texts.of(node)]
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
            plain = all(not isinstance(x, Applied | Step | Masked) for x in node.operands)
            head = f"{space}{node.name}" + (f" (line {node.line})" if node.line else "")
            if plain:
                return [f"{head}: {', '.join(x.text() for x in node.operands)}"]
            return [head, *(line for operand in node.operands for line in self._under(operand, depth + 1))]
        if isinstance(node, Masked):
            below, above = self._under(node.below, depth + 1), self._under(node.above, depth + 1)
            return [f"{space}where {node.condition}", *below, f"{space}else", *above]
        return [space + node.text()]


def _instructions(root: Node) -> tuple[str, ...]:
    """Return the units of the chains in an expression, in the order of computation."""
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
    """Return the unit of a chain's step; None for another node."""
    if isinstance(node, Step):
        return str(node.row)
    return node.name if isinstance(node, Applied) and step_of(node, Texts()) is not None else None


def owners_of(memory, number: int) -> np.ndarray:
    """Return the byte numbers of an array of global memory."""
    return memory.space.ids[memory.starts[number] : memory.stops[number]]
