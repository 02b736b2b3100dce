"""Derives the tree of a step and its words from the nodes of a pass (:mod:`tensorcore_models.arithmetic.nodes`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ..arithmetic.nodes import ZERO, Node, in_order
from ..arithmetic.program import meanings_of
from ..arithmetic.recorder import Unrecordable
from ..formats import get_format
from .descriptions import Words, floor_words, rounded
from .sums import Position, SumBuilder

#: Formats of operands and of results for which a pass is described; the descriptions for the first operand formats must agree.
OPERANDS = ("fp16", "bf16", "e4m3", "fp32", "fp64")
RESULTS = ("fp32", "fp16", "fp64")
#: Number of operand formats whose descriptions are compared.
AGREEING = 2


@dataclass(frozen=True)
class Addition:
    """An Addition is one operation of a pass.

    Parameters
    ----------
    addends : tuple of int
        Indices of the addends: k for product k, the number of products for c, and higher numbers for results of earlier
        operations.
    fused : bool
        Whether this is a fused multiply-add: of two addends, one is a product that is not rounded before the sum.
    cuts : tuple of (int, str)
        Pairs of the fraction bits that are kept of aligned addends and the rounding, each pair once.
    raised, floor
        Largest distance of the alignment exponent above the largest exponent, and the smallest value of the alignment exponent.
    roundings : tuple of (int, str, str)
        Roundings of the sum before it is used: fraction bits, rounding, and the format, if there is one.
    tree : bool
        Whether addends are added two by two.
    aligned : bool
        Whether the alignment exponent is the largest exponent of exactly these addends.
    """

    addends: tuple[int, ...]
    fused: bool = False
    cuts: tuple[tuple[int, str], ...] = ()
    raised: int = 0
    floor: int | None = None
    roundings: tuple[tuple[int, str, str], ...] = ()
    tree: bool = False
    aligned: bool = False


class PassSteps(NamedTuple):
    """PassSteps holds the operations of a pass, the roundings of products before, and the kinds of numbers that are flushed."""

    additions: tuple[Addition, ...]
    products: tuple[tuple[int, str, str], ...]
    flushed: tuple[str, ...]


class _Reader:
    """A _Reader collects the operations of a pass from its nodes."""

    def __init__(self, terms: int):
        self.terms = terms
        self.found: list[Addition] = []
        self.products: dict[tuple[int, str, str], None] = {}
        self.flushed: dict[str, None] = {}
        self.places: dict[Node, int | tuple[str, int] | None] = {}

    def read(self, last: Node) -> PassSteps | None:
        """Return all operations; None if a product or c is not added exactly once, or another number is added."""
        for node in in_order(last):
            try:
                self.places[node] = self._place(node)
            except LookupError:
                return None
        taken = [x for addition in self.found for x in addition.addends]
        whole = sorted(taken) == list(range(self.terms + len(self.found)))
        if not whole or self.places[last] != self.terms + len(self.found):
            return None
        return PassSteps(tuple(self.found), tuple(self.products), tuple(self.flushed))

    def _place(self, node: Node) -> int | tuple[str, int] | None:
        """Return the operand of a node, or the index of an addend or result that it is; None for zeros."""
        if node.does == "operand":
            return node.operand
        places = [place for x in node.of if (place := self.places[x]) is not None]
        if node.does == "flush":
            self.flushed[self._named(places[0])] = None
        if node.does == "part":  # the first part stands for all parts
            return places[0] if node.bits == 0 else None
        if node.does == "product":
            return self._product(places)
        if node.does in ("sum", "tree", "round", "keep", "cut") and places:
            addends = list(map(self._addend, places))
            if len(addends) > 1:
                return self._add(node, addends)
            if node.does in ("round", "keep"):
                self._rounded(addends[0], node)
            return addends[0]
        if len(set(places)) > 1:
            raise LookupError("data decide what is added")
        return places[0] if places else None

    def _named(self, place: int | tuple[str, int]) -> str:
        if isinstance(place, tuple):
            return "c" if place[0] == "c" else "operands"
        return "products" if place < self.terms else "sums"

    def _product(self, places: Sequence[int | tuple[str, int]]) -> int:
        """Return the index of a product, or of a sum that is multiplied by scales."""
        numbers = [place for place in places if isinstance(place, int)]
        operands = sorted(x for x in places if isinstance(x, tuple) and not x[0].startswith("scale"))
        if len(numbers) == 1 and not operands:
            return numbers[0]
        if not numbers and [side for side, _ in operands] == ["a", "b"] and operands[0][1] == operands[1][1]:
            return operands[0][1]
        raise LookupError("operands are multiplied that are not of one product")

    def _addend(self, place: int | tuple[str, int]) -> int:
        """Return the index of an addend: a product, c, or the result of an earlier operation."""
        if isinstance(place, int):
            return place
        if place[0] != "c":
            raise LookupError("an operand is added")
        return self.terms

    def _add(self, node: Node, places: list[int]) -> int:
        cases = [y for x in node.of for y in (x.of if x.does == "either" else (x,))]
        cuts = [node] if node.does == "tree" else [x for x in cases if x.does == "cut"]
        kinds = tuple(dict.fromkeys((x.bits, x.rounding) for x in cuts))
        tops = [x.top for x in cuts if x.top is not None]
        numbers = node.of if node.does == "tree" else [x.of[0] for x in cuts]
        floors = {top.floor for top in tops}
        products = [x for x in node.of if x.does == "product"]
        self.found.append(
            Addition(
                tuple(sorted(places, key=lambda place: (place < self.terms, place))),
                len(node.of) == 2 and len(products) == 1,
                kinds,
                max((top.most for top in tops), default=0),
                floors.pop() if len(floors) == 1 else None,
                tree=node.does == "tree",
                aligned=len(set(tops)) == 1 and set(tops[0].numbers) - {ZERO} == set(numbers),
            )
        )
        return self.terms + len(self.found)

    def _rounded(self, place: int, node: Node) -> None:
        number = place - self.terms - 1
        if number == -1:
            raise LookupError("c is rounded before it is added")
        # 0 stands for all fraction bits of the format.
        bits = 0 if node.format is not None and node.bits == node.format.fraction_bits else node.bits
        rounding = (bits, node.rounding, node.format.name if node.format else "")
        if number < 0:
            self.products[rounding] = None
            return
        before = self.found[number]
        if rounding not in before.roundings:
            self.found[number] = Addition(**vars(before) | {"roundings": (*before.roundings, rounding)})


@lru_cache(256)
def steps_of(spec: Any, terms: int, d: str | None = None) -> PassSteps | None:
    """Return the operations of a pass over `terms` products; None if its nodes do not tell, or operand formats disagree.

    `d` is the format of c and of the result; by default the first of :data:`RESULTS` that the algorithm takes.
    """
    for result in RESULTS if d is None else (d,):
        found: set[PassSteps | None] = set()
        taken = 0
        for name in OPERANDS:
            formats = tuple(map(get_format, (name, name, result, result)))
            try:
                spec.check_formats(formats, None)
                nodes = meanings_of(spec, formats, terms)
            except (ValueError, Unrecordable):
                continue
            taken += 1
            found.add(_all_passes([_Reader(terms).read(node) for node in nodes]))
            if taken == AGREEING:
                break
        if found:
            return found.pop() if len(found) == 1 else None
    return None


def _all_passes(several: Sequence[PassSteps | None]) -> PassSteps | None:
    """Return the common operations of passes that differ at most in the numbers they flush; None if they differ otherwise."""
    first, *others = several
    if first is None or any(x is None or x[:2] != first[:2] for x in others):
        return None
    return first._replace(flushed=tuple(dict.fromkeys(text for x in several if x is not None for text in x.flushed)))


# -- as a tree -----------------------------------------------------------------------------------------------------------
def add_step(spec: Any, ks: Sequence[Position], c: Position, to: SumBuilder) -> Position | None:
    """Add the operations of one step to a tree of the sum; None if the nodes of its pass do not tell them."""
    steps = steps_of(spec, len(ks))
    if steps is None:
        return None
    places = [*ks, c]
    for addition in steps.additions:
        addends = [places[x] for x in addition.addends]
        label, note, exact = _label(addition), _note(addition), not addition.cuts and len(addends) > 2
        places.append(to.halves(addends, label, note) if addition.tree else to.add(addends, label, note, exact=exact))
    return places[-1]


def _label(addition: Addition) -> str:
    if addition.cuts:
        bits = sorted({bits for bits, _ in addition.cuts})
        return f"F={bits[0]}" + (f" to {bits[-1]}" if len(bits) > 1 else "")
    if addition.fused:
        return "FMA"
    if len(addition.addends) > 2:
        return "exact"
    return "odd" if any(rounding == "ro" for _, rounding, _ in addition.roundings) else ""


def _note(addition: Addition) -> str:
    """Return a note for the box of one operation."""
    rounded = [f"rounded {rounding}" for _, rounding, _ in addition.roundings]
    if not addition.cuts and len(addition.addends) == 2:
        return ", ".join(["fused multiply-add" if addition.fused else "addition", *rounded])
    kept = " and ".join(f"rounded to {bits} fraction bits ({rounding})" for bits, rounding in addition.cuts)
    start = f"addends aligned and {kept}, " if addition.cuts else ""
    return ", ".join([f"one fused operation: {start}added exactly", *(f"sum {text}" for text in rounded)])


# -- in words ------------------------------------------------------------------------------------------------------------
def words(spec: Any, d: str) -> Words | None:
    """Return the words of an algorithm whose results have the format `d`; None if the nodes of its pass do not tell them."""
    steps = steps_of(spec, spec.terms_per_step, d)
    if steps is None or any(addition.cuts and not addition.aligned for addition in steps.additions):
        return None
    terms, last = spec.terms_per_step, steps.additions[-1]
    products = "a product" if terms == 1 else f"{terms} products"
    late = len(steps.additions) > 1 and terms in last.addends
    kinds = {bits for addition in steps.additions for bits, _ in addition.cuts}
    title = f"The unit adds {products} and " + ("c last" if late else "c")
    title += f" and keeps {kinds.pop()} fraction bits of each" if len(kinds) == 1 else ""
    flushed = " and ".join(sorted(steps.flushed, reverse=True))
    sentences = [f"Subnormal {flushed} become zero."] if steps.flushed else []
    sentences += [f"Each product is {_rounded(x)}." for x in steps.products]
    told = [_sentence(addition, terms) for addition in steps.additions]
    for text in dict.fromkeys(told):
        sentences.append(f"{told.count(text)} times: {text}" if told.count(text) > 1 else text)
    operations = "one operation" if len(told) == 1 else f"{len(told)} operations"
    brief = f"adds {products} and the running sum in {operations}" + (", the running sum last" if late else "")
    return Words(title, tuple(sentences), _formula(steps, terms), brief)


def _rounded(rounding: tuple[int, str, str]) -> str:
    bits, how, fmt = rounding
    kept = f"{bits} fraction bits" if bits else ""
    where = f"{kept} of {fmt}" if kept and fmt else kept or fmt
    return rounded(how, where)


def _sentence(addition: Addition, terms: int) -> str:
    """Describe one operation in a sentence or two."""
    products = sum(x < terms for x in addition.addends)
    before = sum(x > terms for x in addition.addends)
    named = ("", "a product")[products] if products < 2 else f"{products} products"
    sums = ("", "the previous sum")[before] if before < 2 else f"{before} previous sums"
    subject = " and ".join(filter(None, (named, sums, "c" if terms in addition.addends else "")))
    subject = subject[0].upper() + subject[1:]
    if addition.fused:
        text = f"{subject} are added by a fused multiply-add"
    elif not addition.cuts:
        text = f"{subject} are added exactly"
    else:
        raised = f" plus at most {addition.raised}" if addition.raised else ""
        two = ", two by two as a binary tree" if addition.tree else ""
        text = f"{subject} are shifted to the largest exponent among them{raised}{two}."
        text += floor_words(addition.floor)[0]
        cuts = [rounded(how, f"{bits} fraction bits") for bits, how in addition.cuts]
        text += f" Each shifted number is {', others are '.join(cuts)}. They are added exactly"
    if addition.roundings:
        text += f", and the sum is {', then '.join(map(_rounded, addition.roundings))}"
    return f"{text}."


def _formula(steps: PassSteps, terms: int) -> str:
    """Return the result as a formula in LaTeX; empty where products meet in more than one operation."""
    many = [x for x in steps.additions if any(place < terms for place in x.addends)]
    if len(many) != 1 or steps.products or any(len(x.cuts) > 1 for x in steps.additions):
        return ""
    found: list[str] = []
    for addition in steps.additions:
        cut = f"T_{{{addition.cuts[0][0]}}}" if addition.cuts else ""
        dot = sum(place < terms for place in addition.addends)
        parts = []
        for place in addition.addends:
            if place >= terms:
                text = "c" if place == terms else found[place - terms - 1]
                parts.append(f"{cut}({text})" if cut else text)
        if dot:
            product = "a_i b_i" if dot > 1 else "a b"
            product = f"{cut}({product})" if cut else product
            parts.append(rf"\sum_{{i=1}}^{{{dot}}} {product}" if dot > 1 else product)
        text = " + ".join(parts)
        for _, how, _ in addition.roundings:
            text = rf"\mathrm{{{how.upper()}}}\left({text}\right)"
        found.append(text)
    return f"d = {found[-1]}"
