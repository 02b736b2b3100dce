"""Asks solvers about two expressions with different normal forms: whether they agree on all inputs, or inputs to try.

Two expressions are walked side by side, operands first. Two parts are alike where their normal forms are the same, where they
are one operation on operands that are alike, or where a solver finds no values that tell them apart; what both are made of is
free in the first question and spelled out in the second. A model is a witness only where it shows in the bits of the kernels,
which the caller asks.
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

#: Products of matrix instructions in one question, at most; beyond them no solver comes to an end.
MOST_PRODUCTS = 64
#: Powers of two by which the operands beside those of a model are scaled in turn.
_SCALES = (0, 12, -12, 40, -40, 64, -64, 100, -100, 120)
#: Share of the time that a question with free operands may take: a model of it need not occur.
_SHARE = 0.3

Model = dict[Element, int]


@dataclass(frozen=True)
class Answered:
    """The solvers' answer: whether the expressions are equal; why, or why not; the witness that a model led to."""

    equal: bool
    reason: str
    witness: Any = None


class _Shown(Exception):
    """A model that shows in the results."""


class Questions:
    """Questions about parts of two recipes, within a time for all of them together.

    Parameters
    ----------
    recipes : two KernelRecipe
    widths : mapping of int to int
        Bits of the elements of each array, by its number.
    shows : callable
        The witness that a model of a part leads to, or None.
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
        """Return whether the recipes' expressions agree on all inputs, as far as solvers say."""
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
            return Answered(False, "a solver's input shows it", shown.args[0])
        if not alike:
            return Answered(False, self.open)
        count = list(self.answers.values()).count("unsat")
        return Answered(
            True, f"a solver finds no values that tell apart the parts in which they differ ({count} questions)"
        )

    def _settle(self) -> bool:
        """Return whether all pairs of expressions are alike; parts before what is made of them."""
        where = [{int(i): form.root for form in recipe.forms for i in form.outputs} for recipe in self.recipes]
        if where[0].keys() != where[1].keys():
            raise Unencodable("they write different elements")
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
        """Return whether no values tell two parts apart; models are shown to the caller."""
        common: set[tuple] = _inside(pair[0], self.forms) & _inside(pair[1], self.forms)
        for free in [common, set()] if common else [set()]:
            if not free and sum(map(_products, pair)) > MOST_PRODUCTS:
                self.open = f"parts of them have more than {MOST_PRODUCTS} products"
                return False
            terms = NodeTerms(self.widths, partial(self._form_in, free))
            width = width_of(pair[0]) or 32
            question = t.negation(t.equal(terms.of(pair[0], width), terms.of(pair[1], width)))
            if terms.conditions:
                raise Unencodable("the terms of a unit hold under conditions")
            if self._answer(question, terms, _SHARE if free else 1.0) == "unsat":
                return True
        return False

    def _form_in(self, free: set[tuple], node: Node) -> tuple | None:
        """Return a node's form, if it is free."""
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
            self.open = "values that tell parts of them apart show nothing in the results"
            model = {
                key: answer.model.get(x.params[0], 0) for key, x in terms.variables.items() if isinstance(key, Element)
            }
            if len(model) == len(terms.variables) and (witness := self.shows(model)) is not None:
                raise _Shown(witness)
        return answer.status


def side_by_side(first: Node, second: Node, forms: Forms) -> list[tuple[Node, Node]] | None:
    """Return the operands of two nodes that are the same operation; None if they are not."""
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
    """Return the forms of what stands below a node and is computed."""
    found, stack = set(), list(operands_of(root))
    while stack:
        node = stack.pop()
        if isinstance(node, Element | Constant) or (form := forms.of(node)) in found:
            continue
        found.add(form)
        stack += operands_of(node)
    return found


def _products(root: Node) -> int:
    """Return products of the matrix instructions in an expression, each node once."""
    return sum(len(node.left) for node in all_within(root) if isinstance(node, Step))


def completed(
    model: Mapping[Element, int], recipe: KernelRecipe, arguments: Sequence, place: int, rng: np.random.Generator
) -> Iterator[list]:
    """Yield arguments that hold a model's values, the other arrays drawn at several scales.

    The elements of the model are those of the first output; the other elements of their arrays get the first value, too.
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
