"""Finds the order of a sum from masks (FPRev; xie-mma-sim, section III): X at one addend, -X at another, a small y elsewhere.

An addend y is lost if it is added before X and -X have met, so that the sum counts the remaining addends. The number of lost
addends is the number of addends below the operation in which X and -X meet (if this operation is exact: below its two addends
with X and -X). Measured against one pivot, these numbers sort all other addends into the operations between the pivot and the
sum; each set of addends is then taken apart in the same way. With pivots in the middle, a chain takes about 3 n sums, a
balanced tree n log n, and a chain of fused operations of N products n N / 2. All masks against one pivot are one batch.
"""

from collections.abc import Callable

import numpy as np

from ..explanations.tree import Operation, Tree

#: Mask values: addend absent, y, X, -X.
ABSENT, TINY, PLUS, MINUS = range(4)
#: Number of pairs of addends on which a finished tree is tried once more.
CHECKED = 64

#: counts(masks (batch, leaves)) -> number of y that survive (batch), -1 for a sum that is no such number.
Counts = Callable[[np.ndarray], np.ndarray]


class Inconsistent(ValueError):
    """`Inconsistent` is the error for counts that no tree gives."""


class TreeSearch:
    """`TreeSearch` searches one tree over `leaves`, with at most `chunk` y in one mask.

    `progress` gets the leaves placed, and all.
    """

    def __init__(self, counts: Counts, leaves: int, progress: Callable[[int, int], None], chunk: int):
        self.counts, self.leaves, self.progress, self.chunk = counts, leaves, progress, chunk
        self.operations: list[Operation] = []
        self.calls = self.placed = 0
        self._first: dict[int, int] = {}

    def find(self) -> Tree:
        """Return the tree; raise Inconsistent if no tree gives the counts."""
        if self.leaves > 1:
            self._build(np.arange(self.leaves))
        self._check(Tree(self.leaves, tuple(self.operations)))
        return Tree(self.leaves, tuple(self.operations), calls=self.calls)

    def losses(self, pivot: int, others: np.ndarray, among: np.ndarray) -> np.ndarray:
        """Return the number of addends of `among` below the operation in which the pivot meets each of the others."""
        kept = np.zeros(len(others), int)
        inside = among[among != pivot]
        for start in range(0, len(inside), self.chunk):
            masks = np.full((len(others), self.leaves), ABSENT, np.int8)
            part = inside[start : start + self.chunk]
            masks[:, part] = TINY
            masks[:, pivot] = PLUS
            masks[np.arange(len(others)), others] = MINUS
            found = self.counts(masks)
            self.calls += len(masks)
            if (found < 0).any() or (found > len(part)).any():
                raise Inconsistent(
                    "a sum of a large addend, its negative and small addends is no multiple of the small addend"
                )
            kept += found
        return len(among) - kept

    def _build(self, among: np.ndarray) -> int:
        """Return the operation that adds a set of leaves, or the leaf itself; waiting sets are on an explicit stack."""
        made: dict[int, int] = {}
        todo: list[tuple[int, np.ndarray, list | None]] = [(0, among, None)]
        number = 0
        while todo:
            ticket, leaves, steps = todo.pop()
            if len(leaves) == 1:
                made[ticket] = int(leaves[0])
                self.placed += 1
                self.progress(self.placed, self.leaves)
            elif steps is None:
                pivot, levels = self._levels(leaves)
                steps = [("leaf", pivot)]
                waiting = []
                for kind, parts in levels:
                    tickets = []
                    for part in parts:
                        number += 1
                        tickets.append(number)
                        waiting.append((number, part, None))
                    steps.append((kind, tickets))
                todo.append((ticket, leaves, steps))
                todo.extend(waiting)
            else:
                made[ticket] = self._joined(steps, made)
        return made[0]

    def _joined(self, steps: list, made: dict[int, int]) -> int:
        """Return the operations on a pivot's way to the sum, once their other addends are known."""
        node = steps[0][1]
        self.placed += 1
        self.progress(self.placed, self.leaves)
        for kind, tickets in steps[1:]:
            addends = sorted([node, *(made.pop(ticket) for ticket in tickets)], key=self._first_leaf)
            self.operations.append(Operation(tuple(addends), kind))
            self._first[len(self.operations) - 1] = self._first_leaf(addends[0])
            node = self.leaves + len(self.operations) - 1
        return node

    def _first_leaf(self, node: int) -> int:
        return node if node < self.leaves else self._first[node - self.leaves]

    def _levels(self, among: np.ndarray) -> tuple[int, list[tuple[str, list[np.ndarray]]]]:
        """Return a pivot, and for each operation on its way to the sum its kind and the sets of leaves of its other addends."""
        pivot = int(among[len(among) // 2])
        others = among[among != pivot]
        lost = self.losses(pivot, others, among)
        levels: list[tuple[str, list[np.ndarray]]] = []
        before, size = 0, 1  # number of leaves below the pivot's side: before the last operation, and now
        for loss in (int(x) for x in np.unique(lost)):
            members = others[lost == loss]
            if loss == size + len(members):
                levels.append(("aligned", self._parts(pivot, members, None)))
                before = size
            elif size < loss and len(members) % (loss - size) == 0:
                levels.append(("exact", self._parts(pivot, members, loss - size)))
                before = size
            elif (
                before and before < loss and len(members) % (loss - before) == 0
            ):  # the last operation has more addends
                levels[-1] = ("exact", levels[-1][1] + self._parts(pivot, members, loss - before))
            else:
                raise Inconsistent(f"{loss} addends are lost in an operation below which {size + len(members)} meet")
            size += len(members)
        return pivot, levels

    def _parts(self, pivot: int, members: np.ndarray, each: int | None) -> list[np.ndarray]:
        """Return the leaves that join a pivot in one operation, grouped by the addend below which they are.

        In an exact operation, only the leaves below the two addends with X and -X are lost: `each` leaves below every addend
        here.
        """
        if each == 1:
            return [np.array([leaf]) for leaf in members]
        parts = []
        left = members
        while len(left):
            first, rest = int(left[0]), left[1:]
            # the pivot represents its own side; if it is among them, a loss of all leaves means different addends
            among = np.concatenate([left, [pivot]])
            lost = self.losses(first, rest, among) if len(rest) else np.zeros(0, int)
            inside = lost < len(among) if each is None else lost <= each
            parts.append(np.concatenate([[first], rest[inside]]))
            left = rest[~inside]
        return parts

    def _check(self, tree: Tree) -> None:
        """Count some further pairs of leaves; raise Inconsistent if the tree gives other counts."""
        if self.leaves < 3:
            return
        rng = np.random.default_rng(self.leaves)
        for _ in range(min(CHECKED, self.leaves)):
            i, j = (int(x) for x in rng.choice(self.leaves, 2, replace=False))
            lost = int(self.losses(i, np.array([j]), np.arange(self.leaves))[0])
            if self.leaves - lost != tree.survivors(i, j):
                raise Inconsistent(f"leaves {i} and {j} meet in another operation than in the tree")
