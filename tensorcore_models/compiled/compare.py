"""Do two compiled kernels give the same bits? Equal by their expressions, different by an input that shows it, else unknown.

Two expressions are the same where their normal forms are. Rules of the normal form, each exact:

- where an instruction stands in the code, and what its registers are called, does not matter;
- operands of additions and products commute (a NaN result has one encoding);
- a chain is its accumulator's passes: instructions of one accumulator differ in their name and shape only.

What is equal is equal for these sizes and this launch, and for all inputs for which data decide as they did (the assumptions).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..results import Result
from .recipe import KernelRecipe
from .template import Applied, Constant, Element, Node, Step

#: Inputs on which bits are compared before "unknown" is said.
TRIES = 6


@dataclass(frozen=True, repr=False)
class KernelComparison(Result):
    """Whether two kernels give the same bits.

    Attributes
    ----------
    verdict : {"equal", "different", "unknown"}
        What is known.
    reason : str
        Why.
    witness : tuple or None
        For "different": (arguments, index of an element, its bits from each kernel).
    assumptions : tuple of str
        What the verdict rests on.
    """

    verdict: str
    reason: str
    witness: tuple | None
    assumptions: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([f"{self.verdict}: {self.reason}", *(f"assumed: {each}" for each in self.assumptions)])

    def to_rows(self) -> list[dict]:
        """One row: verdict, reason, assumptions."""
        return [{"verdict": self.verdict, "reason": self.reason, "assumptions": "; ".join(self.assumptions)}]


def compare(
    first, second, *, arguments: Sequence, grids: Sequence, output: int | None = None, seed: int = 0, **options
) -> KernelComparison:
    """Whether two programs give the same bits for arguments of these shapes and values.

    Parameters
    ----------
    first, second : PTXProgram
        The kernels; they take the same arguments.
    arguments : sequence
        As for ``run``; arrays stay as they are.
    grids : sequence
        The grid of each.
    output : int, optional
        Which argument is the output; by default the last array that each writes.
    seed : int
        Of the inputs on which bits are compared; floating-point arrays are drawn anew, others shuffled.
    **options
        For both: unit, block, unpublished, limits, ...

    Returns
    -------
    KernelComparison
        Equal, different or unknown.

    Raises
    ------
    Refused, KernelFault, ValueError, TypeError
        As ``recipe``.
    """
    programs = tuple(zip((first, second), grids, strict=True))
    recipes = [p.recipe(arguments, g, output=output, **options) for p, g in programs]
    assumed = tuple(dict.fromkeys(each for recipe in recipes for each in recipe.assumptions))
    if recipes[0].output_number != recipes[1].output_number:
        raise ValueError("the kernels write to different arguments: name one with output=")
    place = recipes[0].output_number
    if _normal(recipes[0]) == _normal(recipes[1]):
        return KernelComparison("equal", "their expressions have one normal form", None, assumed)
    rng = np.random.default_rng(seed)
    for turn in range(TRIES):
        given = [_drawn(x, rng, turn) if i != place else x for i, x in enumerate(arguments)]
        bits = []
        for program, grid in programs:
            copies = [x.copy() if isinstance(x, np.ndarray) else x for x in given]
            program.run(copies, grid, **{"checks": False, "unpublished": "nearest", **options})
            bits.append(copies[place].view(f"u{copies[place].itemsize}"))
        apart = np.argwhere(bits[0] != bits[1])
        if len(apart):
            index = tuple(int(x) for x in apart[0])
            reason = f"{len(apart)} of {bits[0].size} elements differ, the first at {index}"
            return KernelComparison(
                "different", reason, (given, index, int(bits[0][index]), int(bits[1][index])), assumed
            )
    reason = f"their expressions have different normal forms, and the bits are the same on {TRIES} inputs"
    return KernelComparison("unknown", reason, None, assumed)


def _drawn(argument, rng: np.random.Generator, turn: int):
    """Another input of the same shape: as given first, then drawn with growing spread of exponents."""
    if not isinstance(argument, np.ndarray) or turn == 0:
        return argument
    if argument.dtype.kind in "fV":
        spread = rng.integers(-2 * turn, 2 * turn, argument.shape)
        return (rng.standard_normal(argument.shape) * 2.0**spread).astype(argument.dtype)
    return rng.permutation(argument.reshape(-1)).reshape(argument.shape)


# -- normal forms ------------------------------------------------------------------------------------------------------------
def _normal(recipe: KernelRecipe) -> dict[int, tuple]:
    """Each element's normal form."""
    found: dict[int, tuple] = {}
    for form in recipe.forms:
        found |= dict.fromkeys(form.outputs.tolist(), _form(form.root, {}))
    return found


def _form(node: Node, known: dict[int, tuple]) -> tuple:
    if id(node) not in known:
        known[id(node)] = _new_form(node, known)
    return known[id(node)]


def _new_form(node: Node, known: dict[int, tuple]) -> tuple:
    if isinstance(node, Constant):
        return ("constant", node.bits)
    if isinstance(node, Element):
        return ("element", node.array, node.index)
    if isinstance(node, Applied):
        operands = [_form(operand, known) for operand in node.operands]
        stem = node.name.removeprefix("v_").replace("_", ".").partition(".")[0]
        if stem in ("add", "mul", "fma") and len(operands) > 1:
            operands[:2] = sorted(operands[:2], key=repr)
        return ("applied", node.name, tuple(operands))
    return _chain_form(node, known)


def _chain_form(node: Node, known: dict[int, tuple]) -> tuple:
    """The passes of a chain of one accumulator, from its start."""
    steps: list[Step] = []
    key = _unit(node)
    while isinstance(node, Step) and _unit(node) == key:
        steps.append(node)
        node = node.addend
    passes: list[tuple] = []
    for step in reversed(steps):
        size = step.row.accumulator.terms_per_step
        pairs = [(_form(a, known), _form(b, known)) for a, b in zip(step.left, step.right, strict=True)]
        passes += [tuple(pairs[start : start + size]) for start in range(0, len(pairs), size)]
    return ("chain", key, _form(node, known), tuple(passes))


def _unit(node: Node) -> tuple:
    if not isinstance(node, Step):
        return ()
    row = node.row
    return (repr(row.accumulator), tuple(map(str, row.formats)), node.signs)
