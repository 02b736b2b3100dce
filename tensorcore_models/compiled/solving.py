"""Asks solvers whether two expressions with different normal forms agree on all inputs, or for inputs to try.

Two expressions are walked side by side, operands first. Two parts are equal if their normal forms are, if they are one
operation on equal operands, or if a solver finds no values that tell them apart. Subexpressions common to both are free
variables in the first question, and expanded in the second. A solver's model is a witness only if the bits of the kernels
differ on it, which the caller tests.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..bitvectors import terms as t
from ..bitvectors.passes import Unencodable
from .kernel_recipe import KernelRecipe
from .nodes import Applied, Constant, DerivedIndex, Element, Node, Step, all_within, operands_of, width_of
from .normal_form import Forms
from .solver_terms import NodeTerms
from .trial_inputs import drawn, operand_formats, scaled

#: Most products of matrix instructions in one question; with more, no solver ends.
MOST_PRODUCTS = 64
#: Powers of two by which the arrays without values of a model are scaled in turn.
_SCALES = (0, 12, -12, 40, -40, 64, -64, 100, -100, 120)
#: Share of the time limit for a question with free operands; its model need not occur.
_SHARE = 0.3

Model = dict[Element, int]


@dataclass(frozen=True)
class Answered:
    """`Answered` is the solvers' answer: whether the expressions are equal, the reason, and the witness that a model led to."""

    equal: bool
    reason: str
    witness: Any = None


class _Shown(Exception):
    """`_Shown` carries the witness of a model that shows in the results."""


class Questions:
    """`Questions` asks about parts of two recipes, within a time limit for all questions together.

    Parameters
    ----------
    recipes : two KernelRecipe
    widths : mapping of int to int
        Bits of the elements of each array, by its number.
    shows : callable
        Function that gives the witness to which a model of a part leads, or None.
    seconds : float
        Time limit of the questions, without the time of `shows`.
    """

    def __init__(
        self, recipes: Sequence[KernelRecipe], widths: Mapping[int, int], shows: Callable[[Model], Any], seconds: float
    ):
        from ..probing.formal.limits import SolverLimits

        self.recipes, self.widths, self.shows = recipes, widths, shows
        self.limits = SolverLimits(timeout=seconds)
        self.forms = Forms()
        self.answers: dict[t.Term, str] = {}
        self.open = ""

    def ask(self) -> Answered:
        """Return whether the recipes' expressions agree on all inputs, as far as solvers decide it."""
        from ..probing.formal.solvers import available_backends

        if not available_backends():
            return Answered(False, "no solver is installed (pip install 'mpgemm[smt]')")
        try:
            with t.built_before(self.limits.start + self.limits.timeout):
                alike = self._settle()
        except t.OutOfTime:
            return Answered(False, f"no answer within {self.limits.timeout:g} s")
        except Unencodable as error:
            return Answered(False, f"no solver was asked: {error}")
        except _Shown as shown:
            return Answered(False, "a solver's input shows the difference", shown.args[0])
        if not alike:
            return Answered(False, self.open)
        count = list(self.answers.values()).count("unsat")
        return Answered(
            True,
            f"solvers find no values that tell apart the parts in which the expressions differ ({count} questions)",
        )

    def _settle(self) -> bool:
        """Return whether all pairs of expressions are equal; operands are asked before results."""
        where = [{int(i): form.root for form in recipe.forms for i in form.outputs} for recipe in self.recipes]
        if where[0].keys() != where[1].keys():
            raise Unencodable("the kernels write different elements")
        pairs = {(id(where[0][i]), id(where[1][i])): (where[0][i], where[1][i]) for i in where[0]}
        alike: dict[tuple, bool] = {}
        stack = [(pair, False) for pair in pairs.values()]
        while stack:
            pair, ready = stack.pop()
            key = self._key(pair)
            if key in alike:
                continue
            if key[0] == key[1]:
                alike[key] = True
                continue
            operands = side_by_side(*pair, self.forms)
            if operands is not None and not ready:
                stack += [(pair, True), *((each, False) for each in operands)]
                continue
            same = operands is not None and all(alike[self._key(each)] for each in operands)
            alike[key] = same or self._asked(pair)
        return all(alike[self._key(pair)] for pair in pairs.values())

    def _key(self, pair: tuple[Node, Node]) -> tuple:
        return self.forms.of(pair[0]), self.forms.of(pair[1])

    def _asked(self, pair: tuple[Node, Node]) -> bool:
        """Return whether no values tell two parts apart; a model is shown to the caller."""
        common: set[tuple] = _inside(pair[0], self.forms) & _inside(pair[1], self.forms)
        for free in [common, set()] if common else [set()]:
            if not free and sum(map(_products, pair)) > MOST_PRODUCTS:
                self.open = f"parts of the expressions have more than {MOST_PRODUCTS} products"
                return False
            terms = NodeTerms(self.widths, partial(self._form_in, free))
            width = width_of(pair[0]) or 32
            question = t.negation(t.equal(terms.of(pair[0], width), terms.of(pair[1], width)))
            if terms.conditions:
                raise Unencodable("the terms of a unit hold only under conditions")
            if self._answer(question, terms, _SHARE if free else 1.0) == "unsat":
                return True
        return False

    def _form_in(self, free: set[tuple], node: Node) -> tuple | None:
        """Return a node's form if it is among the free forms, else None."""
        form = self.forms.of(node)
        return form if form in free else None

    def _answer(self, question: t.Term, terms: NodeTerms, share: float) -> str:
        if question in self.answers:
            return self.answers[question]
        if question.value is not None:
            return "sat" if question.value else "unsat"
        answer = self.limits.solve([question], list(terms.variables.values()), share)
        self.answers[question] = answer.status
        self.open = f"solvers: {answer.status}"
        if answer.status == "sat":
            self.open = "values that tell parts of the expressions apart give the same results"
            model = {
                key: answer.model.get(x.params[0], 0) for key, x in terms.variables.items() if isinstance(key, Element)
            }
            if len(model) == len(terms.variables) and (witness := self.shows(model)) is not None:
                raise _Shown(witness)
        return answer.status


def side_by_side(first: Node, second: Node, forms: Forms) -> list[tuple[Node, Node]] | None:
    """Return the operand pairs of two nodes that are the same operation; None for other nodes."""
    if isinstance(first, Applied) and isinstance(second, Applied):
        if (first.key, len(first.operands)) != (second.key, len(second.operands)):
            return None
        operands = list(second.operands)
        alike = [forms.of(x) == forms.of(y) for x, y in zip(first.operands, operands[1::-1], strict=False)]
        if first.meaning is not None and first.meaning.commutes and any(alike):
            operands[:2] = operands[1::-1]
        return list(zip(first.operands, operands, strict=True))
    if isinstance(first, Step) and isinstance(second, Step):
        same = (str(first.row), first.signs, len(first.left)) == (str(second.row), second.signs, len(second.left))
        if same:
            sides = zip((*first.left, *first.right), (*second.left, *second.right), strict=True)
            return [*sides, (first.addend, second.addend)]
    return None


def _inside(root: Node, forms: Forms) -> set[tuple]:
    """Return the forms of the computed nodes below a node."""
    found, stack = set(), list(operands_of(root))
    while stack:
        node = stack.pop()
        if isinstance(node, Element | Constant) or (form := forms.of(node)) in found:
            continue
        found.add(form)
        stack += operands_of(node)
    return found


def _products(root: Node) -> int:
    """Return the number of products of matrix instructions in an expression, each node once."""
    return sum(len(node.left) for node in all_within(root) if isinstance(node, Step))


def completed(
    model: Mapping[Element, int], recipe: KernelRecipe, arguments: Sequence, place: int, rng: np.random.Generator
) -> Iterator[list]:
    """Yield arguments that hold a model's values, with the other arrays drawn at several scales.

    The model gives the elements from which the first output is computed. The other elements of their arrays get the first of
    its values.
    """
    output = recipe.forms[0].outputs[0]
    numbers = [i for i, argument in enumerate(arguments) if isinstance(argument, np.ndarray)]
    at = [int(x) for x in np.unravel_index(int(output), arguments[place].shape)]
    formats = operand_formats(recipe)
    for scale in _SCALES:
        given = list(arguments)
        for number, i in enumerate(numbers):
            values = {x: bits for x, bits in model.items() if x.array == number}
            if i == place:
                continue
            if not values:
                given[i] = drawn(arguments[i], formats.get(number), rng, scaled(scale))
                continue
            bits = np.full(arguments[i].shape, next(iter(values.values())), f"u{arguments[i].itemsize}")
            for x, value in values.items():
                index = tuple(
                    c.at(at) if isinstance(c, DerivedIndex) else c + int(np.dot(steps, at[: len(steps)]))
                    for c, steps in x.index
                )
                bits[index] = value
            given[i] = bits.view(arguments[i].dtype)
        yield given
