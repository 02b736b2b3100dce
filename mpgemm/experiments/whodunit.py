"""Finds which GPU, CPU, order or method made a result, by candidates tried on a few elements first, then on all elements."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np

from mpgemm.experiments.candidates import Candidate, GivenProduct, candidates
from mpgemm.experiments.suspects import DifferingElement, Suspect, Whodunit, expected_by_chance
from mpgemm.recovery.methods import RecoveryMethod
from tensorcore_models.engines.scaling import read_scales
from tensorcore_models.formats import Format, IntegerFormat, get_format, operand_format
from tensorcore_models.formats.interop import format_of_dtype
from tensorcore_models.formats.operands import check_bits, operand_bits, values_of_bits
from tensorcore_models.libraries import Recipe
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Interrupted

#: Number of rows and of columns of the elements on which every candidate is tried first.
FIRST = 8
#: Numbers of multiplications, of all candidates that pass and of one, above which only some rows and columns are compared.
BUDGET, BUDGET_OF_ONE = 1 << 31, 1 << 28
#: Number of nearest candidates that are named, and number of candidates among which they are sought.
NEAREST, LOOKED_AT = 4, 12
#: Number of other candidates that must differ from a settled candidate before later turns are left out.
TELLING = 3
#: Number of elements on which candidates are compared that miss some of the first elements, if others give all of these.
TOLD_BY = 1024

Progress = Callable[[int, int, str], None]
Elements = tuple[np.ndarray, np.ndarray]


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
    device: str | None = None,
    scale_a=None,
    scale_b=None,
    thorough: bool = False,
    progress: Progress | None = None,
) -> Whodunit:
    """Return the instructions, orders of k, recovery methods and CPU kernels that give a result bit for bit.

    The answer also states how many candidates are expected to match by chance.

    Parameters
    ----------
    a, b : ndarray, shapes (m, k) and (k, n)
        Operands in the numpy types of their formats.
    found : ndarray, shape (m, n)
        The result: values in the numpy type of their format (int32 for integer sums), or encodings.
    result : str, Format or IntegerFormat, optional
        Format of `found`, if it holds encodings (unsigned integers).
    addend : ndarray, shape (m, n), optional
        The addend C0 of A B + C0.
    methods : sequence of RecoveryMethod, optional
        Recovery methods to try, by default all.
    recipes : iterable of Recipe
        Recipes of libraries to try as well.
    device : str, optional
        The suspected device, whose instructions come first and give candidates their names.
    scale_a, scale_b : array_like, optional
        Scales of the operands, whose shape and type say how they apply (:func:`tensorcore_models.read_scales`); with scales,
        only instructions and recipes are tried.
    thorough : bool
        Whether to try candidates that round operands, and recovery methods, even if simpler candidates match.
    progress : callable, optional
        Function called as ``progress(done, total, label)``.

    Raises
    ------
    ValueError
        If shapes do not fit, the product is empty, no candidate has the formats of the operands and the result, or the device
        is not known.
    Interrupted
        If the user presses Ctrl-C; the error has the findings so far.
    """
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or found.shape != (a.shape[0], b.shape[1]):
        raise ValueError(f"A is {a.shape}, B is {b.shape} and C is {found.shape}, expected (m, k), (k, n) and (m, n)")
    if 0 in (*found.shape, a.shape[1]):
        raise ValueError(f"A is {a.shape} and B is {b.shape}, expected matrices that are not empty")
    found, fmt = _encoded(found, result)
    scaling = read_scales(scale_a, scale_b, a.shape[0], a.shape[1], b.shape[1])
    line = list(candidates(a, b, fmt, methods=methods, recipes=recipes, device=device, scaling=scaling))
    if not line:
        raise ValueError(
            f"no modelled unit takes {a.dtype} and {b.dtype} operands and gives {fmt.name}; check the types of A, B and C"
        )
    search = _Search(_Scene(a, b, found, fmt, addend, scaling), line, progress or (lambda done, total, label: None))
    try:
        return search.answer(device, thorough)
    except KeyboardInterrupt:
        raise Interrupted(search.known()) from None


def _encoded(
    found: np.ndarray, result: str | Format | IntegerFormat | None
) -> tuple[np.ndarray, Format | IntegerFormat]:
    """Return the encodings of a result and their format."""
    if result is not None:
        fmt = operand_format(result)
        return check_bits(found, fmt, "C"), fmt
    known = get_format("s32") if found.dtype == np.int32 else format_of_dtype(found.dtype)
    if known is None:
        raise TypeError(
            f"C is {found.dtype}, expected int32 or a floating-point format; give encodings as unsigned integers with result=, "
            "their format"
        )
    return operand_bits(found, known, None, "C"), known


def _spread_over(size: int, count: int) -> np.ndarray:
    """Return at most `count` evenly spread indices below `size`, including the last."""
    return np.unique(np.linspace(0, size - 1, min(size, count)).round().astype(int))


class _Scene:
    """`_Scene` holds the operands and the result in question, and chooses elements to compare."""

    def __init__(self, a, b, found, result, addend, scaling=None):
        self.a, self.b, self.found, self.result, self.addend, self.scaling = a, b, found, result, addend, scaling
        self._whole: tuple[Candidate, list] | None = None

    @property
    def everything(self) -> Elements:
        """Return the indices of all rows and columns."""
        return np.arange(self.found.shape[0]), np.arange(self.found.shape[1])

    def spread(self, side: int) -> Elements:
        """Return the indices of at most `side` evenly spread rows and columns, including the last."""
        return tuple(_spread_over(x, side) for x in self.found.shape)  # type: ignore[return-value]

    def evenly(self, count: int) -> Elements:
        """Return the rows and columns of about `count` elements, evenly spread, more along the longer side."""
        m, n = self.found.shape
        short = min(m, n, max(1, int(count**0.5)))
        sides = (short, count // short) if m <= n else (count // short, short)
        return tuple(_spread_over(x, side) for x, side in zip((m, n), sides, strict=True))  # type: ignore[return-value]

    def telling(self, side: int) -> Elements:
        """Return rows and columns with sums near a rounding boundary of the result, where nearly equal sums differ.

        For results of more than 16 bits, evenly spread rows and columns are returned.
        """
        rows, columns = self.spread(max(side * 8, 64))
        if not isinstance(self.result, Format) or self.result.bits > 16 or rows.size * columns.size <= side * side:
            return self.spread(side)
        with np.errstate(all="ignore"):
            a, b = self.a[rows].astype(np.float64), self.b[:, columns].astype(np.float64)
            if self.scaling is not None:
                part = self.scaling.part(rows, columns)
                a, b = a * part.spread_a(), b * part.spread_b()
            sums = a @ b
            if self.addend is not None:
                sums = sums + self.addend[np.ix_(rows, columns)].astype(np.float64)
            found = values_of_bits(self.found[np.ix_(rows, columns)], self.result).astype(np.float64)
            spacing = np.ldexp(1.0, np.frexp(found)[1] - 1 - self.result.fraction_bits)
            margin = np.abs(np.abs(sums - found) / spacing - 0.5)
        order = np.argsort(np.where(np.isfinite(margin), margin, np.inf), axis=None, kind="stable")
        some_rows, some_columns = (list(dict.fromkeys(x)) for x in np.unravel_index(order, margin.shape))
        last = rows.size - 1, columns.size - 1
        picked = (
            np.unique([*line[: side - 1], end]) for line, end in zip((some_rows, some_columns), last, strict=True)
        )
        return tuple(x[i] for x, i in zip((rows, columns), picked, strict=True))  # type: ignore[return-value]

    def affordable(self, count: int) -> Elements:
        """Return all rows and columns, or as many evenly spread ones as the budget allows for `count` candidates."""
        m, n = self.found.shape
        elements = min(BUDGET_OF_ONE, BUDGET // max(1, count)) // self.a.shape[1]
        return self.everything if m * n <= elements else self.spread(max(FIRST, int(elements**0.5)))

    def product(self, where: Elements) -> GivenProduct:
        """Return the operands of these elements."""
        rows, columns = where
        c = None if self.addend is None else self.addend[np.ix_(rows, columns)]
        scaling = None if self.scaling is None else self.scaling.part(rows, columns)
        m, n = self.found.shape
        a = self.a if rows.size == m else self.a[rows]
        b = self.b if columns.size == n else self.b[:, columns]
        return GivenProduct(np.ascontiguousarray(a), np.ascontiguousarray(b), c, scaling)

    def sums(self, candidate: Candidate, product: GivenProduct, where: Elements) -> list | None:
        """Return a candidate's sums of these elements before the last rounding, None if it refuses the operands."""
        with np.errstate(all="ignore"):
            try:
                if not candidate.whole:
                    return candidate.sums(product)
                if self._whole is None or self._whole[0] is not candidate:
                    self._whole = candidate, candidate.sums(GivenProduct(self.a, self.b, self.addend, self.scaling))
                return [(bits[np.ix_(*where)], unit) for bits, unit in self._whole[1]]
            except (ValueError, TypeError):
                return None

    def equal(self, bits: np.ndarray, where: Elements) -> np.ndarray:
        """Return the mask of elements that equal the result in one of the kinds of tiles; NaNs are equal."""
        found = self.found[np.ix_(*where)]
        same = bits == found
        if isinstance(self.result, Format) and not same.any(axis=0).all():
            values = (values_of_bits(x, self.result).astype(np.float64) for x in (bits, found))
            same = same | np.logical_and(*(np.isnan(x) for x in values))
        return same.any(axis=0)


@dataclass
class _Compared:
    """`_Compared` holds a candidate, its outcome in the last comparison, and digests of its sums."""

    candidate: Candidate
    suspect: Suspect
    sums: frozenset[bytes]


@dataclass
class _Search:
    """`_Search` narrows all candidates down to those that give every compared element."""

    scene: _Scene
    line: list[Candidate]
    progress: Progress
    scored: list[tuple[int, Candidate]] = field(default_factory=list)
    compared: list[_Compared] = field(default_factory=list)

    def answer(self, device: str | None, thorough: bool) -> Whodunit:
        """Run candidates on a few elements, turn by turn until the answer is settled, and the best of them on all elements."""
        first = self.scene.telling(FIRST)
        size, product = first[0].size * first[1].size, self.scene.product(first)
        turns = sorted({candidate.turn for candidate in self.line})
        for turn in turns:
            for candidate in self._stepped([c for c in self.line if c.turn == turn], f"on {size} elements"):
                self.scored.append((self._agreement(candidate, product, first), candidate))
            exact = any(score == size for score, _ in self.scored)
            if turn == turns[-1] or (exact and not thorough):
                answer = self._on_all(size, device)
                if turn == turns[-1] or (answer.settled and len(answer.nearest) >= TELLING):
                    break
        self.progress(len(self.line), len(self.line), "")
        return answer

    def _on_all(self, size: int, device: str | None) -> Whodunit:
        """Return the answer of the candidates tried so far, after comparing the best of them on all elements.

        size: number of elements of the first comparison.
        """
        scene = self.scene
        self.compared = []
        passed = [c for score, c in self.scored if score == size]
        others = [c for score, c in sorted(self.scored, key=lambda s: -s[0]) if 0 <= score < size]
        where = scene.affordable(len(passed) + LOOKED_AT)
        product = scene.product(where)
        for candidate in self._stepped(passed, "on all"):
            self._compare(candidate, product, where)
        missed = sum(not c.suspect.exact for c in self.compared)
        # Ranking the other candidates needs fewer elements than identifying the right one.
        fewer = scene.evenly(TOLD_BY) if passed else where
        product = scene.product(fewer)
        for candidate in others[: max(0, LOOKED_AT - missed)]:
            self._compare(candidate, product, fewer)
        (m, k), n = scene.a.shape, scene.b.shape[1]
        exact = _simplest([c for c in self.compared if c.suspect.exact])
        known = frozenset(x for c in exact for x in c.sums)
        rest = [c for c in self.compared if not c.suspect.exact]
        nearest = _different(sorted((c.suspect for c in rest), key=lambda s: -s.agree))[:NEAREST]
        apart = {c.sums: (c.suspect.of - c.suspect.agree, c.suspect.of) for c in rest if not c.sums & known}
        traits = _shared([c.candidate for c in exact])
        return Whodunit(
            (m, k, n), scene.result.name, len(self.scored), where[0].size * where[1].size,
            tuple(c.suspect for c in exact), tuple(nearest),
            expected_by_chance(len({c.sums for c in exact}), apart.values()), "; ".join(traits.values()),
            {"arithmetic", "order"} <= set(traits), device, len(self.line) - len(self.scored),
        )  # fmt: skip

    def known(self) -> str:
        """Return a sentence on the state of a search that ends early."""
        exact = [c.suspect for c in self.compared if c.suspect.exact]
        text = f"{len(self.scored)} of {len(self.line)} candidates were tried on a few elements"
        if self.compared:
            text += f", {len(self.compared)} of them on all: {len(exact)} give every one"
        text += "".join(f"; {s.who}, {s.how}" for s in exact[:NEAREST])
        return text

    def _stepped(self, line: Sequence[Candidate], what: str):
        for done, candidate in enumerate(line):
            self.progress(done, len(line), f"{what}: {candidate.who}")
            yield candidate

    def _agreement(self, candidate: Candidate, product: GivenProduct, where: Elements) -> int:
        """Return the number of elements with the same bits, -1 if the candidate refuses the operands."""
        sums = self.scene.sums(candidate, product, where)
        return -1 if sums is None else int(self.scene.equal(candidate.finished(sums), where).sum())

    def _compare(self, candidate: Candidate, product: GivenProduct, where: Elements) -> None:
        """Compare a candidate with the result on these elements, and keep the outcome."""
        scene, size = self.scene, where[0].size * where[1].size
        sums = scene.sums(candidate, product, where)
        if sums is None:
            return
        bits = candidate.finished(sums)
        same, first = scene.equal(bits, where), None
        if not same.all():
            i, j = np.argwhere(~same)[0]
            row, column = int(where[0][i]), int(where[1][j])
            found, own = (
                float(values_of_bits(x[None, None], scene.result)[0, 0])
                for x in (scene.found[row, column], bits[0, i, j])
            )
            first = DifferingElement(row, column, found, own)
        suspect = Suspect(candidate.who, candidate.how, candidate.same, int(same.sum()), size, first)
        digests = frozenset(sha256(np.ascontiguousarray(x).data).digest() for x, _ in sums)
        self.compared.append(_Compared(candidate, suspect, digests))


def _different(suspects: list[Suspect]) -> list[Suspect]:
    """Return the suspects without those whose agreement and first difference equal an earlier suspect's."""
    found: dict[tuple, Suspect] = {}
    for suspect in suspects:
        found.setdefault((suspect.agree, suspect.first), suspect)
    return list(found.values())


def _simplest(exact: list[_Compared]) -> list[_Compared]:
    """Return the candidates without those with several kinds of tiles of which one kind alone gives the result."""
    alone = frozenset(x for c in exact if len(c.sums) == 1 for x in c.sums)
    return [c for c in exact if len(c.sums) == 1 or not c.sums & alone]


def _shared(exact: list[Candidate]) -> dict[str, str]:
    """Return the traits that all candidates share."""
    traits = exact[0].traits.items() if exact else ()
    return {name: text for name, text in traits if all(c.traits.get(name) == text for c in exact)}
