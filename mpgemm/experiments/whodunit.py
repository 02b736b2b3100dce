"""Which GPU, order or method made these bits? Candidates are tried on a few elements first, what is left on all."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from mpgemm.experiments.candidates import Candidate, candidates
from mpgemm.recovery.methods import RecoveryMethod
from tensorcore_models.formats import Format, IntegerFormat, get_format, operand_format
from tensorcore_models.formats.interop import format_of_dtype
from tensorcore_models.formats.operands import check_bits, operand_bits, values_of_bits
from tensorcore_models.libraries import Recipe
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Result

#: Rows and columns of the elements that are tried first, and of those by which the nearest are told.
FIRST, SECOND = 2, 8
#: Multiplications for each candidate at the end, beyond which it is tried on evenly spread rows and columns only.
BUDGET = 1 << 28
#: Candidates beside the right ones that are named, and of which they are the nearest.
NEAREST, LOOKED_AT = 4, 24


@dataclass(frozen=True)
class Difference:
    """An element that tells a candidate from the result."""

    row: int
    column: int
    found: float
    candidate: float


@dataclass(frozen=True)
class Suspect:
    """A candidate and how it compares.

    Attributes
    ----------
    who, how : str
    same : tuple of str
        Other instructions that compute the same.
    agree, of : int
        Elements with the same bits, of those compared.
    first : Difference or None
        The first element that differs.
    """

    who: str
    how: str
    same: tuple[str, ...]
    agree: int
    of: int
    first: Difference | None

    @property
    def exact(self) -> bool:
        """Whether every element compared has the same bits."""
        return self.agree == self.of


@dataclass(frozen=True, repr=False)
class Whodunit(Result):
    """Who gives a result exactly.

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
        Those that give every element compared; the nearest of the others, best first.
    """

    shape: tuple[int, int, int]
    result: str
    tried: int
    compared: int
    exact: tuple[Suspect, ...]
    nearest: tuple[Suspect, ...]

    def to_dict(self) -> dict:
        """JSON-compatible values."""
        return {**asdict(self), "verdict": self.verdict}

    def to_rows(self) -> list[dict]:
        """One for each candidate that gives the result, then the nearest others."""
        return [
            {"who": s.who, "how": s.how, "exact": s.exact, "agree": s.agree, "of": s.of, "same": len(s.same)}
            for s in (*self.exact, *self.nearest)
        ]

    @property
    def verdict(self) -> str:
        """The answer in a sentence."""
        m, _, n = self.shape
        where = f"all {m * n}" if self.compared == m * n else f"the {self.compared} compared of {m * n}"
        if not self.exact:
            best = self.nearest[0] if self.nearest else None
            near = f" The nearest, {best.who}, {best.how}, gives {best.agree} of {best.of}." if best else ""
            return f"None of {self.tried} candidates gives {where} elements.{near}"
        who = self.by_who()
        if len(who) > 1:
            return (
                f"{len(who)} arithmetics of {self.tried} candidates give {where} elements exactly. This result does not "
                "tell them apart: longer k, a wider result, or operands of more different sizes would."
            )
        ((name, suspects),) = who.items()
        archs = dict.fromkeys(label.partition(":")[0] for label in suspects[0].same)
        others = [arch for arch in archs if f"{arch}:" not in name]
        name += f" (the same arithmetic on {', '.join(others)})" if others else ""
        orders = ", in orders of k that add alike" if len(suspects) > 1 else ""
        return f"Of {self.tried} candidates only {name} gives {where} elements exactly{orders}."

    def by_who(self) -> dict[str, list[Suspect]]:
        """The exact ones by arithmetic."""
        found: dict[str, list[Suspect]] = {}
        for suspect in self.exact:
            found.setdefault(suspect.who, []).append(suspect)
        return found

    def __str__(self) -> str:
        lines = [self.verdict]
        lines += [f"  {s.who}, {s.how}" for s in self.exact]
        lines += [f"  not {s.who}, {s.how}: {s.agree} of {s.of}, first {s.first}" for s in self.nearest]
        return "\n".join(lines)


@default_fp_state
def whodunit(
    a: np.ndarray,
    b: np.ndarray,
    found: np.ndarray,
    result: str | Format | IntegerFormat | None = None,
    addend: np.ndarray | None = None,
    *,
    methods: Sequence[RecoveryMethod] | None = None,
    recipes: Iterable[Recipe] = (),
    progress: Callable[[int, int, str], None] | None = None,
) -> Whodunit:
    """Which instructions, orders of k and recovery methods give a result bit for bit.

    Parameters
    ----------
    a, b : ndarray, shapes (m, k) and (k, n)
        Values in the natural types of their formats.
    found : ndarray, shape (m, n)
        The result: values in the natural type of their format (int32 for integer sums), or encodings.
    result : str, Format or IntegerFormat, optional
        The format where they are encodings (unsigned integers).
    addend : ndarray, shape (m, n), optional
        C0 of A B + C0.
    methods : sequence of RecoveryMethod, optional
        Recovery methods to try; all by default.
    recipes : iterable of Recipe
        Recipes of libraries to try as well.
    progress : callable, optional
        (done, total, label).

    Returns
    -------
    Whodunit

    Raises
    ------
    ValueError
        If shapes do not fit, the product is empty, or nothing has such formats.
    """
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or found.shape != (a.shape[0], b.shape[1]):
        raise ValueError(f"A is {a.shape}, B is {b.shape} and C is {found.shape}: they do not fit as C = A B")
    if 0 in (*found.shape, a.shape[1]):
        raise ValueError(f"A is {a.shape} and B is {b.shape}: an empty product tells nothing")
    found, fmt = _encoded(found, result)
    line = list(candidates(a, b, fmt, methods=methods, recipes=recipes))
    if not line:
        raise ValueError(f"nothing modelled takes {a.dtype} and {b.dtype} operands and gives {fmt.name}")
    scene = _Scene(a, b, found, fmt, addend)
    first, second, last = scene.spread(FIRST), scene.spread(SECOND), scene.affordable()
    scored = []
    for done, candidate in enumerate(line):
        if progress is not None:
            progress(done, len(line), candidate.who)
        scored.append((scene.agreement(candidate, first), candidate))
    top = max(score for score, _ in scored)
    left = [c for score, c in scored if score == top] if top == scene.count(first) else [c for _, c in scored]
    ranked = _ranked(scene, left, second)
    survivors = [c for score, c in ranked if score == scene.count(second)]
    others = [c for score, c in ranked if score < scene.count(second)]
    if len(others) < LOOKED_AT:  # few passed the first elements: the nearest are among those that did not
        others += [c for _, c in _ranked(scene, [c for _, c in scored if c not in left], second)]
    suspects = [scene.suspect(c, last) for c in _step(survivors, progress)]
    exact = [s for s in suspects if s.exact]
    missed = [s for s in suspects if not s.exact]
    missed += [scene.suspect(c, last) for c in others[: max(0, LOOKED_AT - len(missed))]]
    nearest = _different(sorted(missed, key=lambda s: -s.agree))[:NEAREST]
    if progress is not None:
        progress(len(line), len(line), "")
    return Whodunit(
        (a.shape[0], a.shape[1], b.shape[1]), fmt.name, len(line), scene.count(last), tuple(exact), tuple(nearest)
    )


def _encoded(
    found: np.ndarray, result: str | Format | IntegerFormat | None
) -> tuple[np.ndarray, Format | IntegerFormat]:
    """Encodings of a result and their format."""
    if result is not None:
        fmt = operand_format(result)
        return check_bits(found, fmt, "C"), fmt
    known = get_format("s32") if found.dtype == np.int32 else format_of_dtype(found.dtype)
    if known is None:
        raise TypeError(f"C is {found.dtype}, which is no format of a result; give encodings and their format")
    return operand_bits(found, known, None, "C"), known


def _ranked(scene: "_Scene", line: Sequence[Candidate], where: "Elements") -> list[tuple[int, Candidate]]:
    """Candidates with the elements that agree, best first."""
    return sorted(((scene.agreement(c, where), c) for c in line), key=lambda scored: -scored[0])


def _different(suspects: list[Suspect]) -> list[Suspect]:
    """Suspects without those that compare like an earlier one."""
    found: dict[tuple, Suspect] = {}
    for suspect in suspects:
        found.setdefault((suspect.agree, suspect.first), suspect)
    return list(found.values())


def _step(line: Sequence[Candidate], progress):
    for done, candidate in enumerate(line):
        if progress is not None:
            progress(done, len(line), f"on all elements: {candidate.who}")
        yield candidate


Elements = tuple[np.ndarray, np.ndarray]


class _Scene:
    """The product and what was found."""

    def __init__(self, a, b, found, result, addend):
        self.a, self.b, self.found, self.result, self.addend = a, b, found, result, addend
        self._whole: dict[str, np.ndarray] = {}

    def spread(self, side: int) -> Elements:
        """At most `side` rows and columns, evenly spread; the last ones are among them."""
        m, n = self.found.shape
        return tuple(np.unique(np.linspace(0, x - 1, min(x, side)).round().astype(int)) for x in (m, n))  # type: ignore[return-value]

    def affordable(self) -> Elements:
        """All rows and columns, or as many as :data:`BUDGET` allows."""
        m, n = self.found.shape
        if m * n * self.a.shape[1] <= BUDGET:
            return self.spread(max(m, n))
        return self.spread(max(SECOND, int((BUDGET // self.a.shape[1]) ** 0.5)))

    def count(self, where: Elements) -> int:
        """How many elements these are."""
        return where[0].size * where[1].size

    def bits(self, candidate: Candidate, where: Elements) -> np.ndarray | None:
        """The candidate's encodings of elements, None where it refuses the operands."""
        rows, columns = where
        with np.errstate(all="ignore"):
            try:
                if candidate.whole:
                    if candidate.label not in self._whole:
                        self._whole[candidate.label] = candidate.multiply(self.a, self.b, self.addend)
                    return self._whole[candidate.label][np.ix_(rows, columns)]
                c = None if self.addend is None else self.addend[np.ix_(rows, columns)]
                return candidate.multiply(self.a[rows], self.b[:, columns], c)
            except (ValueError, TypeError):
                return None

    def agreement(self, candidate: Candidate, where: Elements) -> int:
        """Elements with the same bits; -1 where the candidate refuses."""
        bits = self.bits(candidate, where)
        return -1 if bits is None else int(self.equal(bits, where).sum())

    def equal(self, bits: np.ndarray, where: Elements) -> np.ndarray:
        """Which elements have the same bits; NaNs are equal."""
        found = self.found[np.ix_(*where)]
        same = bits == found
        if isinstance(self.result, Format) and not same.all():
            values = (values_of_bits(x, self.result).astype(np.float64) for x in (bits, found))
            same = same | np.logical_and(*(np.isnan(x) for x in values))
        return same

    def suspect(self, candidate: Candidate, where: Elements) -> Suspect:
        """How a candidate compares on elements."""
        bits = self.bits(candidate, where)
        size = self.count(where)
        if bits is None:
            return Suspect(candidate.who, candidate.how, candidate.same, 0, size, None)
        same, first = self.equal(bits, where), None
        if not same.all():
            own, found = (values_of_bits(x, self.result) for x in (bits, self.found[np.ix_(*where)]))
            i, j = np.argwhere(~same)[0]
            first = Difference(int(where[0][i]), int(where[1][j]), float(found[i, j]), float(own[i, j]))
        return Suspect(candidate.who, candidate.how, candidate.same, int(same.sum()), size, first)
