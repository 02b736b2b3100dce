"""Holds the answer of whodunit: the candidates that give a result, the number expected by chance, and sentences on both."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from tensorcore_models.results import Result

#: Expected number of chance matches from which on a match does not identify the source of a result.
SETTLED = 0.05


@dataclass(frozen=True)
class DifferingElement:
    """`DifferingElement` is an element in which a candidate differs from the result."""

    row: int
    column: int
    found: float
    candidate: float


@dataclass(frozen=True)
class Suspect:
    """`Suspect` is a candidate with the outcome of its comparison."""

    who: str
    how: str
    same: tuple[str, ...]  #: Other instructions that give the same results.
    #: agree, of: number of elements with the same bits, and number of compared elements.
    agree: int
    of: int
    first: DifferingElement | None  #: First element that differs, if any.

    @property
    def exact(self) -> bool:
        """Return whether every compared element has the same bits."""
        return self.agree == self.of


@dataclass(frozen=True, repr=False)
class Whodunit(Result):
    """`Whodunit` holds the candidates (instructions, orders of k, recovery methods) that give a result bit for bit.

    Attributes
    ----------
    shape : (m, k, n)
        Shape of the product.
    result : str
        Format of the result.
    tried : int
        Number of candidates that were tried.
    compared : int
        Number of elements of the result that were compared with the candidates that match.
    exact, nearest : tuple of Suspect
        Candidates that give every compared element, and the nearest other candidates, best first.
    chance : float
        Expected number of candidates that match the result by chance (:func:`expected_by_chance`).
    shared : str
        Common properties of the exact candidates; empty if only their formats agree.
    alike : bool
        Whether all exact candidates have one arithmetic and one order of k.
    device : str or None
        The suspected device, if one was given.
    untried : int
        Number of candidates that were not tried because simpler candidates match; they round operands or are recovery
        methods.
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
        """Return whether one arithmetic alone gives the result, and a chance match is unlikely."""
        return bool(self.exact) and (self.alike or len(self.by_who()) == 1) and self.chance < SETTLED

    @property
    def verdict(self) -> str:
        """Return a few sentences on the candidates that give the result."""
        m, _, n = self.shape
        where = f"all {m * n}" if self.compared == m * n else f"the {self.compared} (of {m * n}) compared"
        if not self.exact:
            best = self.nearest[0] if self.nearest else None
            near = f" The nearest is {best.who}, {best.how}, with {best.agree} of {best.of} elements." if best else ""
            return f"None of {self.tried} candidates gives {where} elements.{near}"
        if self.settled:
            others = f" {self.untried} others, with rounded operands or of recovery methods, were left out."
            rest = others if self.untried else ""
            return f"Of {self.tried} candidates only {self._only()} {where} elements exactly. {self._by_chance()}{rest}"
        ways, names = len(self.exact), len(self.by_who())
        if ways == 1:
            counted, group = "1 gives", f"{self.exact[0].who}, {self.exact[0].how}"
        else:
            counted = f"{ways} ({names} name{'s' * (names > 1)}) give"
            group = f"they share {self.shared or 'nothing but their formats'}"
        told = "whether that candidate made it" if ways == 1 else "which of them made it"
        return (
            f"Of {self.tried} candidates {counted} {where} elements exactly; {group}. {self._by_chance()} This result does not "
            f"show {told}; {self._advice()} may show it."
        )

    def _only(self) -> str:
        """Return the settled arithmetic with the verb of the sentence."""
        by_who = self.by_who()
        if len(by_who) > 1:
            return f"{self.shared}: {', '.join(by_who)} give"
        ((who, suspects),) = by_who.items()
        ways = f", in {len(suspects)} orders of k with equal results," if len(suspects) > 1 else ""
        return f"{_named(who, suspects[0].same)}{ways} gives"

    def _by_chance(self) -> str:
        about = f"about {self.chance:.2g}" if self.chance >= SETTLED else f"fewer than {SETTLED}"
        return f"By chance {about} of them would match."

    def _advice(self) -> str:
        wider = "" if self.result in ("fp32", "fp64") else f"the sums before they are rounded to {self.result}, "
        return f"{wider}more elements, longer k, or operands with a wider range of exponents"

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
    """Return the name of an arithmetic with the other architectures that have it."""
    archs = dict.fromkeys(label.partition(":")[0] for label in same)
    others = [arch for arch in archs if f"{arch}:" not in name]
    return f"{name} (the same arithmetic on {', '.join(others)})" if others else name


def expected_by_chance(kinds: int, others: Iterable[tuple[int, int]]) -> float:
    """Return the expected number of candidates that give a result by chance, from the agreement between candidates.

    If several candidates give the result from different sums, all but one do so by chance. A candidate that differs from them
    in d of n elements gives a new element like theirs with probability p = (n - d + 1/2) / (n + 1), and n elements with p^n.
    If the result came from an arithmetic that is not modelled, about the sum of these probabilities would be the number of
    matches.

    kinds: number of exact candidates; candidates with the same sums before the last rounding count once.
    others: (elements that differ, all elements) of candidates with other sums.
    """
    return max(kinds - 1, 0) + sum(((n - d + 0.5) / (n + 1)) ** n for d, n in others)
