"""Defines the order of a sum as a tree: which addends meet in one operation, and which operation takes whose result.

A tree is a flat list, because a chain of thousands of additions is thousands of levels deep. Leaves are numbered 0 to n - 1; in
a dot product leaf k is product k, and the last leaf may be c. Operations follow the leaves, and each comes after the operations
whose results it takes. An operation with two addends is an addition. An operation with more addends is fused, or exact if no
small addend is lost when large addends cancel.
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

#: Number of lines of an outline that are shown.
OUTLINE = 40
#: Number of names and ranges of an operation that an outline shows before "..." and the last one.
SHOWN = 4


class Operation(NamedTuple):
    """`Operation` is one operation of a sum.

    `addends` are leaves, and operations as their number plus the number of leaves, in the order of their first leaf. `kind`
    says whether small addends are lost when large addends cancel ("aligned") or not ("exact"). `label` and `note` describe the
    operation in a word and in a sentence; comparisons of orders ignore them.
    """

    addends: tuple[int, ...]
    kind: Literal["aligned", "exact"] = "aligned"
    label: str = ""
    note: str = ""

    @property
    def does(self) -> str:
        """Return a word for the operation; empty for a plain sum."""
        return self.label or ("exact" if self.kind == "exact" else "")


class Difference(NamedTuple):
    """`Difference` is an input on which two orders differ: X at leaf i, -X at leaf j, and a small y at all other leaves.

    `counts` says how many y survive in each order.
    """

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
        Operations of the sum, each after the operations whose results it takes; the last one is the whole sum.
    names : tuple of (int, str)
        Number and name of each leaf that has a name, such as (16, "c"); the name of any other leaf is its number.
    calls : int
        Number of sums that were evaluated to find the tree; 0 for a tree that was stated, not observed.

    Raises
    ------
    ValueError
        If an addend is used twice or never, or an operation takes the result of a later operation.
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
                    raise ValueError(
                        f"operation {number} takes addend {addend}, which was taken before or comes later: give each leaf and "
                        "each result to one later operation"
                    )
                used.add(addend)
        if len(used) != self.leaves + len(self.operations) - 1:
            raise ValueError(
                f"{self.leaves} leaves and {len(self.operations)} operations do not form one sum: every leaf and every result "
                "but the last must be an addend"
            )

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Return the number of leaves below each operation."""
        return tuple(self._folded(sum, lambda leaf: 1))

    def _folded(self, combine: Callable, of_leaf: Callable) -> list:
        """Return a value for each operation: `combine` of the values of its addends, where `of_leaf` gives those of leaves."""
        found: list = []
        for operation in self.operations:
            found.append(combine(of_leaf(x) if x < self.leaves else found[x - self.leaves] for x in operation.addends))
        return found

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Return the number of the operation that takes each leaf and each result; -1 for the whole sum."""
        found = [-1] * (self.leaves + len(self.operations))
        for number, operation in enumerate(self.operations):
            for addend in operation.addends:
                found[addend] = number
        return tuple(found)

    def met(self, i: int, j: int) -> tuple[int, int, int]:
        """Return the first operation whose result contains both leaves, and its addends that contain leaf i and leaf j."""
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
        """Return how many small addends remain in the sum if leaf i is X and leaf j is -X.

        X is so large that it absorbs every small addend that is added to it.
        """
        number, one, two = self.met(i, j)
        if self.operations[number].kind == "aligned":
            return self.leaves - self.sizes[number]
        return self.leaves - sum(1 if x < self.leaves else self.sizes[x - self.leaves] for x in (one, two))

    # -- comparing ---------------------------------------------------------------------------------------------------------
    @cached_property
    def _shape(self) -> dict[frozenset[int], str]:
        """Return the kind of each operation by the set of its leaves."""
        below = self._folded(lambda parts: frozenset().union(*parts), lambda leaf: frozenset([leaf]))
        return {leaves: operation.kind for leaves, operation in zip(below, self.operations, strict=True)}

    def same(self, other: "Tree") -> bool:
        """Return whether both trees are the same order; the order of addends within an operation does not count."""
        return self.leaves == other.leaves and self._shape == other._shape

    def difference(self, other: "Tree") -> Difference | None:
        """Return an input on which two orders give different sums, None if the orders are the same.

        Raises
        ------
        ValueError
            If the trees have different numbers of leaves.
        """
        if self.leaves != other.leaves:
            raise ValueError(
                f"one tree has {self.leaves} leaves, the other {other.leaves}, so no input fits both: compare sums of one "
                "length"
            )
        if self.same(other):
            return None
        for i, j in chain(
            self._telling_pairs(), other._telling_pairs()
        ):  # one of the two trees has a pair that shows the difference
            one, two = self.survivors(i, j), other.survivors(i, j)
            if one != two:
                return Difference(i, j, (one, two))
        return None

    def _telling_pairs(self):
        """Yield pairs of leaves that meet in an operation: the first leaves of each two addends."""
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
        """Return the number of operations on the longest path from a leaf to the sum."""
        depths = self._folded(lambda below: 1 + max(below), lambda leaf: 0)
        return depths[-1] if depths else 0

    @property
    def summary(self) -> str:
        """Return one line with the numbers of addends and operations, how many addends operations have, and the depth."""
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
        """Return the addends of an operation as text: results in brackets, leaves as ranges, long sums without their middle."""
        results = [f"[{text}]" for text in spelled([x - self.leaves for x in operation.addends if x >= self.leaves])]
        own = spelled([x for x in operation.addends if x < self.leaves and x not in self._named])
        named = [self.name(x) for x in operation.addends if x in self._named]
        return " + ".join(results + _shortened(own) + _shortened(named))

    def outline(self) -> list[str]:
        """Return a line for each operation, with its addends and its kind; long lines and long lists omit their middle."""
        lines = [
            f"[{n}] = {self._terms(o)}{f' ({o.does})' if o.does else ''}" for n, o in enumerate(self.operations)
        ] or [self.name(0)]
        half, more = OUTLINE // 2, len(lines) - OUTLINE
        return lines if more <= 0 else [*lines[:half], f"... {more} operations", *lines[-half:]]

    def __str__(self) -> str:
        return "\n  ".join([self.summary, *self.outline()])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: leaves, operations as lists of addends, and their kinds."""
        return {
            "leaves": self.leaves,
            "operations": [list(operation.addends) for operation in self.operations],
            "exact": [n for n, operation in enumerate(self.operations) if operation.kind == "exact"],
            "names": {str(leaf): name for leaf, name in self.names},
            "labels": {str(n): [o.label, o.note] for n, o in enumerate(self.operations) if o.label or o.note},
            "calls": self.calls,
        }

    def to_json(self) -> str:
        """Return the tree as JSON text, which `json.loads` and :meth:`from_dict` read back."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Tree":
        """Return the tree of the data that :meth:`to_dict` returned."""
        exact, labels = set(data["exact"]), data["labels"]
        operations = (
            Operation(tuple(addends), "exact" if number in exact else "aligned", *labels.get(str(number), ()))
            for number, addends in enumerate(data["operations"])
        )
        names = tuple((int(leaf), name) for leaf, name in data["names"].items())
        return cls(data["leaves"], tuple(operations), names, data["calls"])

    def svg(self, title: str = "Order of a sum", shown: int | None = None) -> str:
        """Return the tree as an SVG element with the result on top and the first additions at the bottom.

        Parameters
        ----------
        title : str
            Text for readers who cannot see the picture.
        shown : int, optional
            Number of addends of an operation that are drawn; a box for the omitted addends and the last addend follow. By
            default all addends are drawn.
        """
        return svg(self._boxes(shown), title)

    def _boxes(self, shown: int | None) -> list[DrawnBox]:
        """Return a box for each leaf and operation, each after the boxes below it; :meth:`svg` explains `shown`."""
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
        """Write the picture of :meth:`svg` to a file in the format of its ending: .svg, .png or .pdf.

        :func:`tensorcore_models.figures.save` writes PNG and PDF, which need matplotlib.

        Returns
        -------
        list of str
            Names of the written files.

        Raises
        ------
        ValueError
            If the name has another ending, or matplotlib is needed and not installed.
        """
        from .. import figures

        path, boxes = Path(path), self._boxes(shown)
        if path.suffix == ".svg":
            write_text(path, svg(boxes, title) + "\n")
            return [path.name]
        return figures.save(figure_of(boxes, title), path)


def _shortened(texts: list[str]) -> list[str]:
    """Return the first texts, the number of omitted texts, and the last text."""
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
