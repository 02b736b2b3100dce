"""Whodunit's answer: candidates that give a result, how many would by chance, and the sentence that follows from both."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from tensorcore_models.results import Result

#: Candidates that match by chance, on average, from which on a match does not name who made a result.
SETTLED = 0.05


@dataclass(frozen=True)
class DifferingElement:
    """An element that tells a candidate from the result."""

    row: int
    column: int
    found: float
    candidate: float


@dataclass(frozen=True)
class Suspect:
    """A candidate and how it compares."""

    who: str
    how: str
    same: tuple[str, ...]  #: Other instructions that compute the same.
    #: agree, of: Elements with the same bits, of those compared.
    agree: int
    of: int
    first: DifferingElement | None  #: The first element that differs.

    @property
    def exact(self) -> bool:
        """Whether every element compared has the same bits."""
        return self.agree == self.of


@dataclass(frozen=True, repr=False)
class Whodunit(Result):
    """`Whodunit` holds the candidates (instructions, orders of k, recovery methods) that give a result bit for bit.

    Attributes
    ----------
    shape : (m, k, n)
    result : str
        Format of the result.
    tried : int
        Candidates.
    compared : int
        Elements on which the last ones were compared.
    exact, nearest : tuple of Suspect
        Candidates that give every compared element; and the nearest of the others that were compared on as many, best
        first.
    chance : float
        Candidates that would give a result like this by chance (:func:`expected_by_chance`).
    shared : str
        Common properties of the exact candidates; empty if only their formats agree.
    alike : bool
        Whether all exact candidates are one arithmetic in one order of k.
    device : str or None
        The device asked about.
    untried : int
        Candidates that round operands, and recovery methods, which were left out because the others settle it.
    """

    shape: tuple[int, int, int]
    result: str
    tried: int
    compared: int
    exact: tuple[Suspect, ...]
    nearest: tuple[Suspect, ...]
    chance: float
    shared: str
    alike: bool
    device: str | None = None
    untried: int = 0

    def to_dict(self) -> dict:
        """Return the content as a dict of JSON-compatible values."""
        return {**asdict(self), "settled": self.settled, "verdict": self.verdict}

    def to_rows(self) -> list[dict]:
        """Return one row for each candidate that gives the result, then rows for the nearest others."""
        return [
            {"who": s.who, "how": s.how, "exact": s.exact, "agree": s.agree, "of": s.of, "same": len(s.same)}
            for s in (*self.exact, *self.nearest)
        ]

    @property
    def settled(self) -> bool:
        """Return whether one arithmetic alone gives the result, and chance does not explain that."""
        return bool(self.exact) and (self.alike or len(self.by_who()) == 1) and self.chance < SETTLED

    @property
    def verdict(self) -> str:
        """Return the answer in a few sentences."""
        m, _, n = self.shape
        where = f"all {m * n}" if self.compared == m * n else f"the {self.compared} compared of {m * n}"
        if not self.exact:
            best = self.nearest[0] if self.nearest else None
            near = f" Of those compared on as many, {best.who}, {best.how}, is nearest: {best.agree}." if best else ""
            return f"None of {self.tried} candidates gives {where} elements.{near}"
        if self.settled:
            rest = f" {self.untried} others, which round operands or recover, were left out." if self.untried else ""
            return f"Of {self.tried} candidates only {self._only()} {where} elements exactly. {self._by_chance()}{rest}"
        ways, names = len(self.exact), len(self.by_who())
        if ways == 1:
            counted, group = "1 gives", f"{self.exact[0].who}, {self.exact[0].how}"
        else:
            counted = f"{ways} ({names} name{'s' * (names > 1)}) give"
            group = f"what they share: {self.shared or 'nothing but their formats'}"
        told = "whether it made it" if ways == 1 else "them apart"
        return (
            f"Of {self.tried} candidates {counted} {where} elements exactly; {group}. {self._by_chance()} This result does not "
            f"tell {told}; {self._advice()} may."
        )

    def _only(self) -> str:
        """Return the settled arithmetic and its verb."""
        by_who = self.by_who()
        if len(by_who) > 1:
            return f"{self.shared}: {', '.join(by_who)} give"
        ((who, suspects),) = by_who.items()
        ways = f", in {len(suspects)} orders of k that add alike," if len(suspects) > 1 else ""
        return f"{_named(who, suspects[0].same)}{ways} gives"

    def _by_chance(self) -> str:
        about = f"about {self.chance:.2g}" if self.chance >= SETTLED else f"fewer than {SETTLED}"
        return f"By chance {about} of them would."

    def _advice(self) -> str:
        wider = "" if self.result in ("fp32", "fp64") else f"the sums before they are rounded to {self.result}, "
        return f"{wider}more elements, longer k, or operands of more different sizes"

    def by_who(self) -> dict[str, list[Suspect]]:
        """Return the candidates that match exactly, grouped by arithmetic."""
        found: dict[str, list[Suspect]] = {}
        for suspect in self.exact:
            found.setdefault(suspect.who, []).append(suspect)
        return found

    def __str__(self) -> str:
        lines = [self.verdict]
        lines += [f"  {s.who}, {s.how}" for s in self.exact]
        lines += [f"  not {s.who}, {s.how}: {s.agree} of {s.of}, first {s.first}" for s in self.nearest]
        return "\n".join(lines)


def _named(name: str, same: tuple[str, ...]) -> str:
    """Return an arithmetic with the other architectures that have it."""
    archs = dict.fromkeys(label.partition(":")[0] for label in same)
    others = [arch for arch in archs if f"{arch}:" not in name]
    return f"{name} (the same arithmetic on {', '.join(others)})" if others else name


def expected_by_chance(kinds: int, others: Iterable[tuple[int, int]]) -> float:
    """Return how many candidates give a result by chance, as the agreement of the candidates among each other tells.

    Of several that give it from different sums, all but one do by chance. Another one that differs from them in d of n elements
    gives a new element like these with probability p = (n - d + 1/2) / (n + 1), and n of them with p^n: were the result that of
    an arithmetic which nobody models, about the sum of these would be found to give it.

    kinds: Exact candidates, those of the same sums before the last rounding counted once.
    others: Elements that differ and all elements, of candidates of other sums.
    """
    return max(kinds - 1, 0) + sum(((n - d + 0.5) / (n + 1)) ** n for d, n in others)
