"""Compare two compiled kernels: equal by their expressions, different by an input that shows it, or unknown.

Kernels that are equal except for which operations flush subnormal numbers, and that no tried input tells apart, get the verdict
"flushing".

Two expressions are the same if their normal forms are (:mod:`.normal_form`, `RULES`), or if a solver finds no values that tell
apart the parts in which they differ (:mod:`.solving`). "Equal" holds for these sizes, this launch, and all inputs for which
data decide as they did (the assumptions).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..results import Result
from .differences import difference
from .expressions import some
from .kernel_recipe import KernelRecipe
from .nodes import Applied, all_within
from .normal_form import normal_forms
from .solving import Questions, completed
from .trial_inputs import DRAWN, operand_formats, trial

#: Number of inputs on which bits are compared before the verdict "unknown": the given ones, and two of each kind.
TRIES = 1 + 2 * len(DRAWN)


@dataclass(frozen=True, repr=False)
class KernelComparison(Result):
    """`KernelComparison` says whether two kernels give the same bits.

    Attributes
    ----------
    verdict : {"equal", "different", "flushing", "unknown"}
        Answer. "flushing": the expressions are the same except for operations that flush subnormal numbers (.ftz, AMD's
        MODE register) in one of them, and no input that was tried shows a difference.
    reason : str
        Reason for the verdict.
    witness : tuple or None
        For "different": (arguments, index of an element, its bits from the first kernel, from the second kernel).
    assumptions : tuple of str
        Assumptions of the verdict.
    """

    verdict: str
    reason: str
    witness: tuple | None
    assumptions: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([f"{self.verdict}: {self.reason}", *(f"assumed: {each}" for each in self.assumptions)])

    def to_rows(self) -> list[dict]:
        """Return one row: verdict, reason, assumptions."""
        return [{"verdict": self.verdict, "reason": self.reason, "assumptions": "; ".join(self.assumptions)}]


def compare(
    first,
    second,
    *,
    arguments: Sequence,
    grids: Sequence,
    output: int | None = None,
    seed: int = 0,
    seconds: float = 30.0,
    **options,
) -> KernelComparison:
    """Return whether two programs give the same bits for arguments of these shapes and values.

    Parameters
    ----------
    first, second : PTXProgram or AMDProgram
        Kernels, which take the same arguments.
    arguments : sequence
        Arguments as for ``run``; the arrays are not changed.
    grids : sequence
        Grid of each kernel.
    output : int, optional
        Index of the output argument; by default the last array that each kernel writes.
    seed : int
        Seed of the random inputs on which the kernels are compared after the given ones. Floating-point operands are drawn
        from several distributions (:mod:`.trial_inputs`); integer arrays are shuffled.
    seconds : float
        Time limit of solvers, which are called if neither the expressions nor the inputs decide; with 0, no solver is called.
    **options
        Options of ``recipe`` for both kernels: unit, block, unpublished, limits, ...

    Returns
    -------
    KernelComparison
        Verdict with its reason, witness and assumptions.

    Raises
    ------
    Refused, KernelFault, ValueError, TypeError
        See ``recipe``.
    """
    programs = tuple(zip((first, second), grids, strict=True))
    recipes = [p.recipe(arguments, g, output=output, **options) for p, g in programs]
    assumed = tuple(dict.fromkeys(each for recipe in recipes for each in recipe.assumptions))
    if recipes[0].output_number != recipes[1].output_number:
        raise ValueError("the kernels write to different arguments: name one with output=")
    place = recipes[0].output_number
    if not isinstance(arguments[place], np.ndarray):
        raise TypeError(
            f"argument {place}, the output, is not an array: pass output= with the index of an array argument"
        )
    if normal_forms(recipes[0]) == normal_forms(recipes[1]):
        return KernelComparison("equal", "their expressions have one normal form", None, assumed)
    tries = _Tries(programs, recipes, arguments, place, options)
    witness, answered = tries.drawn(rng := np.random.default_rng(seed)), ""
    if witness is None and seconds > 0:
        answer = Questions(recipes, _widths(arguments), partial(tries.of_model, rng=rng), seconds).ask()
        if answer.equal:
            return KernelComparison("equal", answer.reason, None, assumed)
        witness, answered = answer.witness, f"; {answer.reason}"
    if witness is None:
        return _undecided(recipes, answered, assumed)
    given, bits = witness
    apart = np.argwhere(bits[0] != bits[1])
    index = tuple(int(x) for x in apart[0])
    first, other = (int(each[index]) for each in bits)
    why = difference(recipes[0].forms, recipes[1].forms)
    reason = f"{len(apart)} of {bits[0].size} elements differ, the first at {index}: {first:#x} and {other:#x}; {why}"
    return KernelComparison("different", reason, (given, index, first, other), assumed)


@dataclass(frozen=True)
class _Tries:
    """`_Tries` runs both programs on inputs that may tell them apart."""

    programs: tuple
    recipes: Sequence[KernelRecipe]
    arguments: Sequence
    place: int
    options: dict

    def drawn(self, rng: np.random.Generator):
        """Return a witness among the given and the drawn arguments, or None."""
        formats = operand_formats(self.recipes[0])
        inputs = (trial(self.arguments, self.place, formats, rng, turn) for turn in range(TRIES))
        return _witness(self.programs, inputs, self.place, self.options)

    def of_model(self, model, *, rng: np.random.Generator):
        """Return the witness that a solver's values lead to, or None."""
        inputs = completed(model, self.recipes[0], self.arguments, self.place, rng)
        return _witness(self.programs, inputs, self.place, self.options)


def _undecided(recipes: Sequence, answered: str, assumed: tuple[str, ...]) -> KernelComparison:
    """Return the comparison if no input shows a difference: its reason names the parts in which the expressions differ."""
    why = difference(recipes[0].forms, recipes[1].forms)
    alike = [normal_forms(recipe, flushing=False) for recipe in recipes]
    verdict, reason = "unknown", "their expressions have different normal forms"
    if alike[0] == alike[1]:
        verdict, reason = "flushing", "their expressions differ only in which operations flush subnormal numbers"
        why = " and ".join(
            f"the {which} flushes in {_flushing(x)}" for which, x in zip(("first", "second"), recipes, strict=True)
        )
    return KernelComparison(
        verdict, f"{reason}, and the bits are the same on {TRIES} inputs{answered}; {why}", None, assumed
    )


def _flushing(recipe: KernelRecipe) -> str:
    """Return the operations of a recipe that flush, with their lines."""
    lines: dict[str, set[int]] = {}
    for node in (x for form in recipe.forms for x in all_within(form.root)):
        if isinstance(node, Applied) and node.meaning is not None and any(node.meaning.flush):
            lines.setdefault(node.name, set()).add(node.line)
    told = (f"{name} (line{'s' * (len(at) > 1)} {some(sorted(at))})" for name, at in sorted(lines.items()))
    return ", ".join(told) or "none"


def _widths(arguments: Sequence) -> dict[int, int]:
    """Return the bits of an element of each array, by the array's number."""
    return dict(enumerate(8 * x.itemsize for x in arguments if isinstance(x, np.ndarray)))


def _witness(programs, inputs: Iterable[list], place: int, options: dict):
    """Return the arguments on which the programs differ, and the bits of both; None if no input shows a difference."""
    for given in inputs:
        bits = [outputs(program, given, grid, place, **options) for program, grid in programs]
        if (bits[0] != bits[1]).any():
            return given, bits
    return None


def outputs(program, arguments: Sequence, grid, place: int, **options) -> np.ndarray:
    """Return the encodings that a program writes to the argument at `place`, run on copies."""
    copies = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]
    program.run(copies, grid, **{"checks": False, "unpublished": "nearest", **options})
    return copies[place].view(f"u{copies[place].itemsize}")
