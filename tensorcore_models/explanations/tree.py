"""The order of a sum as a tree: which addends meet in one operation, and which operation takes whose result.

A tree is flat: leaves are numbered 0 to n - 1 (of a dot product, leaf k is product k and the last one may be c), operations
follow, each after those whose results it takes. An operation of two addends is an addition, one of more is fused (or exact:
addends cancel and no other is lost). Flat, because a chain of thousands of additions is thousands deep.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..files import write_text
from .drawing import DrawnBox, figure_of, svg

#: Lines of an outline that are shown.
OUTLINE = 40
#: Names and ranges of one operation that an outline shows before the last, where it leaves some out.
SHOWN = 4


class Operation(NamedTuple):
    """One operation of a sum: leaves, and operations as their number plus the number of leaves, in order of their first leaf.

    `kind` says whether small addends are lost beside large ones that cancel ("aligned") or not ("exact"). `label` and `note`
    say what the operation does, in a word and in a sentence; orders are compared without them.
    """

    addends: tuple[int, ...]
    kind: Literal["aligned", "exact"] = "aligned"
    label: str = ""
    note: str = ""

    @property
    def does(self) -> str:
        """Return a word for what the operation does; a plain sum has none."""
        return self.label or ("exact" if self.kind == "exact" else "")


class Difference(NamedTuple):
    """An input on which two orders differ: X at leaf i, -X at leaf j, a small y everywhere else; how many y survive in each."""

    i: int
    j: int
    counts: tuple[int, int]


@dataclass(frozen=True)
class Tree:
    """`Tree` is the order of a sum.

    Parameters
    ----------
    leaves : int
        Number of addends.
    operations : tuple of Operation
        Each after those whose results it takes; the last is the whole sum.
    names : tuple of (int, str)
        Leaves with names of their own, such as c.
    calls : int
        Sums that were evaluated to find it; 0 for a tree that was not observed.

    Raises
    ------
    ValueError
        If an addend is used twice or never, or an operation takes a later one's result.
    """

    leaves: int
    operations: tuple[Operation, ...]
    names: tuple[tuple[int, str], ...] = ()
    calls: int = 0

    def __post_init__(self):
        used: set[int] = set()
        for number, operation in enumerate(self.operations):
            for addend in operation.addends:
                if addend in used or not 0 <= addend < self.leaves + number:
                    raise ValueError(f"operation {number} takes addend {addend}, which is used already or comes later")
                used.add(addend)
        if len(used) != self.leaves + len(self.operations) - 1:
            raise ValueError(f"{self.leaves} leaves and {len(self.operations)} operations do not join to one sum")

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Return the number of leaves below each operation."""
        return tuple(self._folded(sum, lambda leaf: 1))

    def _folded(self, combine: Callable, of_leaf: Callable) -> list:
        """Return a value of each operation, made of those of its addends."""
        found: list = []
        for operation in self.operations:
            found.append(combine(of_leaf(x) if x < self.leaves else found[x - self.leaves] for x in operation.addends))
        return found

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Return the operation (as its number) that takes each leaf and each result; -1 for the whole sum."""
        found = [-1] * (self.leaves + len(self.operations))
        for number, operation in enumerate(self.operations):
            for addend in operation.addends:
                found[addend] = number
        return tuple(found)

    def met(self, i: int, j: int) -> tuple[int, int, int]:
        """Return the operation in which two leaves meet, and its addends through which they come."""
        ways = {}
        node = i
        while node >= 0:
            above = self.parents[node]
            ways[above] = node
            node = self.leaves + above if above >= 0 else -1
        node = j
        while self.parents[node] not in ways:
            node = self.leaves + self.parents[node]
        return self.parents[node], ways[self.parents[node]], node

    def survivors(self, i: int, j: int) -> int:
        """Return how many small addends survive where leaf i is X and leaf j is -X."""
        number, one, two = self.met(i, j)
        if self.operations[number].kind == "aligned":
            return self.leaves - self.sizes[number]
        return self.leaves - sum(1 if x < self.leaves else self.sizes[x - self.leaves] for x in (one, two))

    # -- comparing ---------------------------------------------------------------------------------------------------------
    @cached_property
    def _shape(self) -> dict[frozenset[int], str]:
        """Each operation as the set of its leaves; sets of thousands are replaced by a number once they are known."""
        below = self._folded(lambda parts: frozenset().union(*parts), lambda leaf: frozenset([leaf]))
        return {leaves: operation.kind for leaves, operation in zip(below, self.operations, strict=True)}

    def same(self, other: "Tree") -> bool:
        """Return whether both orders are the same: addition commutes, so the order of an operation's addends does not count."""
        return self.leaves == other.leaves and self._shape == other._shape

    def difference(self, other: "Tree") -> Difference | None:
        """Return an input on which two orders give different sums, None where they are the same.

        Raises
        ------
        ValueError
            If they add different numbers of addends.
        """
        if self.leaves != other.leaves:
            raise ValueError(f"one tree has {self.leaves} leaves, the other {other.leaves}: no input fits both")
        if self.same(other):
            return None
        for i, j in chain(self._telling_pairs(), other._telling_pairs()):  # one of the two has a pair that tells
            one, two = self.survivors(i, j), other.survivors(i, j)
            if one != two:
                return Difference(i, j, (one, two))
        return None

    def _telling_pairs(self):
        """Pairs of leaves that meet in each operation: a first leaf of each addend with those of all others."""
        first: list[int] = []
        for operation in self.operations:
            leaves = [x if x < self.leaves else first[x - self.leaves] for x in operation.addends]
            first.append(leaves[0])
            for index, i in enumerate(leaves):
                for j in leaves[index + 1 :]:
                    yield i, j

    # -- showing -----------------------------------------------------------------------------------------------------------
    @property
    def depth(self) -> int:
        """Return the number of operations on the longest way from a leaf to the sum."""
        depths = self._folded(lambda below: 1 + max(below), lambda leaf: 0)
        return depths[-1] if depths else 0

    @property
    def summary(self) -> str:
        """Return one line: how many addends meet at once, and how deep the tree is."""
        widths = Counter(len(operation.addends) for operation in self.operations)
        kinds = ", ".join(f"{count} of {width} addends" for width, count in sorted(widths.items()))
        exact = sum(operation.kind == "exact" for operation in self.operations)
        tail = f", {exact} of them exact" if exact else ""
        return f"{self.leaves} addends, {len(self.operations)} operations ({kinds}{tail}), depth {self.depth}"

    @cached_property
    def _named(self) -> dict[int, str]:
        return dict(self.names)

    def name(self, leaf: int) -> str:
        """Return the name of a leaf."""
        return self._named.get(leaf, str(leaf))

    def _terms(self, operation: Operation) -> str:
        """Return addends of an operation: results in brackets and leaves as ranges, the middle of long sums left out."""
        results = [f"[{text}]" for text in spelled([x - self.leaves for x in operation.addends if x >= self.leaves])]
        own = spelled([x for x in operation.addends if x < self.leaves and x not in self._named])
        named = [self.name(x) for x in operation.addends if x in self._named]
        return " + ".join(results + _shortened(own) + _shortened(named))

    def outline(self) -> list[str]:
        """Return a line for each operation with its addends and what it does in parentheses; the middle of long orders is left
        out."""
        lines = [
            f"[{n}] = {self._terms(o)}{f' ({o.does})' if o.does else ''}" for n, o in enumerate(self.operations)
        ] or [self.name(0)]
        half, more = OUTLINE // 2, len(lines) - OUTLINE
        return lines if more <= 0 else [*lines[:half], f"... {more} operations", *lines[-half:]]

    def __str__(self) -> str:
        return "\n  ".join([self.summary, *self.outline()])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: leaves, operations as lists of addends, their kinds."""
        return {
            "leaves": self.leaves,
            "operations": [list(operation.addends) for operation in self.operations],
            "exact": [n for n, operation in enumerate(self.operations) if operation.kind == "exact"],
            "names": {str(leaf): name for leaf, name in self.names},
            "labels": {str(n): [o.label, o.note] for n, o in enumerate(self.operations) if o.label or o.note},
            "calls": self.calls,
        }

    def to_json(self) -> str:
        """Return the tree as JSON text; :meth:`from_dict` takes what `json.loads` makes of it."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Tree":
        """Return the tree that :meth:`to_dict` wrote."""
        exact, labels = set(data["exact"]), data["labels"]
        operations = (
            Operation(tuple(addends), "exact" if number in exact else "aligned", *labels.get(str(number), ()))
            for number, addends in enumerate(data["operations"])
        )
        names = tuple((int(leaf), name) for leaf, name in data["names"].items())
        return cls(data["leaves"], tuple(operations), names, data["calls"])

    def svg(self, title: str = "Order of a sum", shown: int | None = None) -> str:
        """Return the tree as an SVG element: the result is on top, what is added first lies lowest.

        Parameters
        ----------
        title : str
            For readers who do not see the picture.
        shown : int, optional
            Addends of one operation that are drawn before the last, where it leaves some out; all by default.
        """
        return svg(self._boxes(shown), title)

    def _boxes(self, shown: int | None) -> list[DrawnBox]:
        """Leaves and operations as boxes, each after those below it; `shown` as :meth:`svg` takes it."""
        boxes = [DrawnBox(self.name(leaf)) for leaf in range(self.leaves)]
        at = list(range(self.leaves))  # the box of each leaf and result
        for operation in self.operations:
            below = [at[addend] for addend in operation.addends]
            if shown is not None and len(below) > shown + 2:
                boxes.append(DrawnBox(f"{len(below) - shown - 1} more"))
                below = [*below[:shown], len(boxes) - 1, below[-1]]
            sign = "+" if len(operation.addends) < 3 else "\u03a3"
            at.append(len(boxes))
            boxes.append(DrawnBox(f"{sign} {operation.does}".rstrip(), operation.note, tuple(below)))
        return boxes

    def picture(self, path: str | PathLike, title: str = "Order of a sum", shown: int | None = None) -> list[str]:
        """Write the picture of :meth:`svg` in the format that its name ends with: .svg, .png or .pdf.

        PNG and PDF are sized, coloured and named as :func:`tensorcore_models.figures.save` does it, and need matplotlib.

        Returns
        -------
        list of str
            The names of the files.

        Raises
        ------
        ValueError
            If the name has another ending, or if matplotlib is needed and not installed.
        """
        from .. import figures

        path, boxes = Path(path), self._boxes(shown)
        if path.suffix == ".svg":
            write_text(path, svg(boxes, title) + "\n")
            return [path.name]
        return figures.save(figure_of(boxes, title), path)


def _shortened(texts: list[str]) -> list[str]:
    """Return the first texts and the last, and how many are left out between them."""
    return texts if len(texts) <= SHOWN + 2 else [*texts[:SHOWN], f"... ({len(texts) - SHOWN - 1} more)", texts[-1]]


def spelled(numbers: list[int]) -> list[str]:
    """Return numbers as ranges with their steps: 0..15, 1,3..31."""
    found: list[str] = []
    start = 0
    while start < len(numbers):
        stop = start + 1
        step = numbers[stop] - numbers[start] if stop < len(numbers) else 0
        while stop < len(numbers) and numbers[stop] - numbers[stop - 1] == step:
            stop += 1
        if stop - start < 3:
            found.append(str(numbers[start]))
            start += 1
            continue
        gap = "" if step == 1 else f" by {step}"
        found.append(f"{numbers[start]}..{numbers[stop - 1]}{gap}")
        start = stop
    return found
