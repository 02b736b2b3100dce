"""Draws the expression of a compiled kernel as a tree of boxes."""

from ..explanations.drawing import DrawnBox, svg
from .chains import accumulation, pieces_text, run_text
from .kernel_recipe import KernelRecipe
from .nodes import Applied, Masked, Node, Step, all_within

#: Most characters of a box; its note has the full text.
_WIDEST = 34


def expression_svg(recipe: KernelRecipe, form: int = 0) -> str:
    """Return an expression of a recipe, the most common one by default, as an SVG element."""
    return svg(expression_boxes(recipe.forms[form].root), f"What {recipe.kernel} computes")


def expression_boxes(root: Node) -> list[DrawnBox]:
    """Return the boxes of an expression, operands before results: runs of a chain, additions, conversions, inputs."""
    boxes: list[DrawnBox] = []

    def add(label: str, note: str, below: tuple[int, ...] = ()) -> int:
        short = label if len(label) <= _WIDEST else label[: _WIDEST - 3] + "..."
        boxes.append(DrawnBox(short, note or label, below))
        return len(boxes) - 1

    def drawn(node: Node) -> int:
        chain = accumulation(node)
        if chain is not None:
            at = drawn(chain.start)
            for run in chain.runs:
                label = f"k {pieces_text(run.ks)}" if run.ks else f"{run.left} x {run.right}"
                factors = add(label, run_text(run))
                at = add("chain", f"{run.unit}, line {run.line}: {run_text(run)}", (at, factors))
            return at
        if isinstance(node, Applied):
            below = tuple(drawn(operand) for operand in node.operands)
            return add(node.name, f"line {node.line}" if node.line else node.name, below)
        if isinstance(node, Masked):
            return add(f"where {node.condition}, else", "", (drawn(node.below), drawn(node.above)))
        return add(node.text(), "")

    drawn(root)
    return boxes


def lines_of(root: Node) -> set[int]:
    """Return the lines of the program that an expression names."""
    return {node.line for node in all_within(root) if isinstance(node, Applied | Step)} - {0}
