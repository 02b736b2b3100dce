"""This module holds the tolerance of a kernel's test: bounds, their sources, and the faults that each of them lets pass."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import NamedTuple

import numpy as np

from mpgemm.exact.product import exact_gemm
from tensorcore_models.formats.rounding import source_array
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Result

#: Products in a dropped block of k by default: a small tile of a kernel.
BLOCK = 32


#: Number of products that are examined together.
_PRODUCTS = 1 << 18


#: Share of the products from which on a fault counts as detected.
SEEN = 0.99


@dataclass(frozen=True, repr=False)
class Vacuity(Result):
    """`Vacuity` holds the faults of a kernel that a test with a tolerance would not detect on given data.

    Attributes
    ----------
    elements : int
        Number of elements of the result.
    zero_passes : int
        Number of elements that pass with the result 0.
    lost_product_passes : int
        Number of elements that pass although the largest product of their sum is missing.
    block : int
        Number of products in a block of k.
    blocks : int
        Number of blocks of k.
    unseen_blocks : int
        Number of blocks of k that a kernel can leave out while every element still passes.
    terms : int
        Number of values of k.
    unseen_terms : int
        Number of single values of k that a kernel can leave out while every element still passes.
    """

    elements: int
    zero_passes: int
    lost_product_passes: int
    block: int = 0
    blocks: int = 0
    unseen_blocks: int = 0
    terms: int = 0
    unseen_terms: int = 0

    @property
    def vacuous(self) -> bool:
        """Return whether every element of a result of zeros passes, although the product is not zero."""
        return self.elements > 0 and self.terms > 0 and self.zero_passes == self.elements

    @property
    def verdict(self) -> str:
        """Return a few words on the worst fault that the test does not detect."""
        if self.vacuous:
            return "VACUOUS: a kernel that writes zeros passes"
        if self.unseen_blocks:
            return f"WEAK: a kernel that drops {self.block} products of k can pass"
        if self.unseen_terms:
            return "can fail, but does not detect the loss of a single product"
        return "can fail: zeros, a dropped block and a lost product are all detected"

    def to_rows(self) -> list[dict]:
        """Return a list of one row (a dict of column names and values), as for a table."""
        return [self.to_dict()]

    def to_dict(self) -> dict:
        """Return the fields and the verdict as JSON-compatible values."""
        return {**asdict(self), "vacuous": self.vacuous, "verdict": self.verdict}

    def __str__(self) -> str:
        return (
            f"{self.verdict}; of {self.elements} elements, 0 passes for {self.zero_passes} and the loss of the largest product "
            f"for {self.lost_product_passes}; {self.unseen_blocks} of {self.blocks} blocks of {self.block} products and "
            f"{self.unseen_terms} of {self.terms} single values of k can be left out undetected"
        )


class Line(NamedTuple):
    """`Line` is the bound |computed - expected| <= atol + rtol |expected| of numpy.allclose and torch.allclose."""

    rtol: float
    atol: float


@dataclass(frozen=True)
class Statistical:
    """`Statistical` is a tolerance that whole products stay below with a stated probability."""

    #: quantile, confidence: share of whole right products that stays below, and its confidence.
    quantile: float
    confidence: float
    #: draws, elements: computed blocks of products, and their elements.
    draws: int
    elements: int
    population: str  #: population of the draws, in words
    shape: tuple[int, int, int]  #: (m, k, n) of the products that the tolerance is for
    #: relative, absolute: tolerance as relative S + absolute, S = |A||B| + |C|.
    relative: float
    absolute: float
    #: rtol, atol: tolerance as ``|computed - exact| <= atol + rtol |exact|``.
    rtol: float
    atol: float
    #: Largest error that was seen over the limit; the rest to 1 covers the step from the sample to whole products,
    #: and the margin.
    largest: float
    of_bound: float  #: Largest error that was seen over its certified bound: below 1, or the bound is wrong.


class Checked(NamedTuple):
    """`Checked` is a given tolerance with the faults that it would let pass, and the right products that fail it."""

    line: Line
    vacuity: Vacuity
    draws: int
    failures: int
    failing: float

    def to_dict(self) -> dict:
        """Return the content as a dict of JSON-compatible values."""
        counts = {"draws": self.draws, "failures": self.failures, "failing": self.failing}
        return {**self.line._asdict(), "vacuity": self.vacuity.to_dict(), **counts}


@dataclass(frozen=True, repr=False)
class Tolerance(Result):
    """`Tolerance` is the tolerance of a kernel's test: ``|computed - exact| <= relative S + absolute``, ``S = |A||B| + |C|``.

    Attributes
    ----------
    label : str
        Name of the engine, or of the method on its engine.
    k : int
        Length of the dot products.
    relative, absolute : float or None
        Certified values in the formula above; None if an operand or a sum may overflow. Without data they hold for all operands
        of the formats. With data they hold for all operands whose exponents are those of the data; for a recovery method they
        hold for the data only.
    bound : numpy.ndarray or None
        Certified bound of the error of each element, for the data; None without data.
    derivation : str
        Derivation of the bound.
    published : dict of str to float
        Published bounds that `relative` can be compared with, by name.
    vacuity : Vacuity or None
        Faults of a kernel that pass a test with `bound`; None without data.
    certified : Line or None
        The tolerance "certified", numbers rtol and atol: atol + rtol |exact| is at least the certified bound of every element
        of the data, or of one drawn pair. None if a bound is infinite.
    statistical : Statistical or None
        The tolerance "statistical", which a stated fraction of right products meets with a stated confidence. None if neither
        data nor a distribution was given, or if sampled results overflow (`notes` then say so).
    lines : mapping of str to Vacuity
        Faults of a kernel that pass a test with the tolerance "certified" or "statistical", by the tolerance's name.
    faults : mapping of str to mapping of str to float
        Fraction of the products in which a test detects a fault, by the name of the tolerance and then by that of the fault.
        The tolerances are "certified by size" (from `relative` and `absolute`), "certified", "statistical" and "given".
    checked : Checked or None
        The tolerance "given", which the caller asked to check, with the faults that it lets pass and the fraction of right
        products that fail it.
    reference : str
        Operands from which the expected result must be computed: "given", or "rounded" to the engine's formats.
    rounded_operands : float
        Fraction of the operands that the engine's formats do not hold, so that their rounding counts as an error of the
        kernel; 0 with the reference "rounded".
    notes : tuple of str
        Restrictions of the tolerances, as sentences.
    """

    relative: float | None
    absolute: float | None
    bound: np.ndarray | None
    derivation: str
    published: dict[str, float]
    vacuity: Vacuity | None
    label: str = ""
    k: int = 0
    certified: Line | None = None
    statistical: Statistical | None = None
    lines: Mapping[str, Vacuity] | None = None
    faults: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    checked: Checked | None = None
    reference: str = "given"
    rounded_operands: float = 0.0
    notes: tuple[str, ...] = ()

    def to_rows(self) -> list[dict]:
        """Return one row for each tolerance: "certified by size", "certified", "statistical", "given"."""
        s, lines = self.statistical, {"certified": self.certified}
        lines |= {"statistical": None if s is None else Line(s.rtol, s.atol)}
        lines |= {"given": None if self.checked is None else self.checked.line}
        seen = {**(self.lines or {}), **({"given": self.checked.vacuity} if self.checked else {})}
        by_size = {"tolerance": "certified by size", "relative": self.relative, "absolute": self.absolute}
        by_size |= {"rtol": None, "atol": None, "verdict": self.vacuity.verdict if self.vacuity else None}
        by_size |= {"misses": self.misses("certified by size")}
        return [by_size] + [
            {"tolerance": name, "relative": None if s is None or name != "statistical" else s.relative,
             "absolute": None if s is None or name != "statistical" else s.absolute, "rtol": line.rtol, "atol": line.atol,
             "verdict": seen[name].verdict if name in seen else None, "misses": self.misses(name)}
            for name, line in lines.items()
            if line is not None
        ]  # fmt: skip

    def misses(self, name: str) -> str | None:
        """Return a sentence on the faults that a test with a tolerance misses; None if no faults were tried.

        Parameters
        ----------
        name : str
            Name of the tolerance: "certified by size", "certified", "statistical" or "given".
        """
        found = self.faults.get(name)
        return in_words(found) if found else None

    def sentences(self) -> list[str]:
        """Return sentences on the tested kernel, the derivation of the bound, and its restrictions."""
        return [f"{self.label}, k = {self.k}", *self.derivation.split("\n"), *self.notes]

    @property
    def snippet(self) -> str:
        """Return Python code to paste into a test, where d is the kernel's result and a, b (and c) are its operands."""
        rounded = " as rounded for the kernel" if self.reference == "rounded" else ""
        lines = [
            "import numpy as np",
            f"# a, b: operands{rounded}, in float64; d: the kernel's result",
            "expected = a @ b",
        ]
        if self.relative is not None:
            lines += [
                "size = np.abs(a) @ np.abs(b)",
                "# certified:",
                f"assert (np.abs(d - expected) <= {self.relative:.3g} * size + {self.absolute:.3g}).all()",
            ]
        if self.certified is not None:
            lines += ["# certified on these data:", _allclose(self.certified)]
        if self.statistical is not None:
            s = self.statistical
            lines += [
                f"# {s.quantile:.4g} of right {' x '.join(map(str, s.shape))} products pass, confidence {s.confidence:.4g}:",
                _allclose(Line(s.rtol, s.atol)),
            ]
        return "\n".join(lines)

    def to_dict(self) -> dict:
        """Return the content as a dict of JSON-compatible values."""
        return {
            "label": self.label,
            "k": self.k,
            "reference": self.reference,
            "rounded_operands": self.rounded_operands,
            "certified": {
                "relative": self.relative,
                "absolute": self.absolute,
                "line": None if self.certified is None else self.certified._asdict(),
                "derivation": self.derivation.split("\n"),
                "published": self.published,
            },
            "statistical": None if self.statistical is None else asdict(self.statistical),
            "vacuity": {
                "certified by size": None if self.vacuity is None else self.vacuity.to_dict(),
                **{name: value.to_dict() for name, value in (self.lines or {}).items()},
            },
            "faults": {name: dict(found) for name, found in self.faults.items()},
            "checked": None if self.checked is None else self.checked.to_dict(),
            "snippet": self.snippet,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        size = "nothing is certified"
        if self.relative is not None:
            size = f"|computed - exact| <= {self.relative:.6g} (|A||B| + |C|) + {self.absolute:.3g}"
        lines = [size, self.derivation]
        lines += [f"published, {name}: {value:.6g}" for name, value in self.published.items()]
        if self.vacuity is not None:
            lines.append(str(self.vacuity))
        elif self.relative is not None and self.relative >= 1:
            lines.append("VACUOUS: at least |A||B| + |C| itself, so zeros pass")
        if self.certified is not None:
            lines.append(f"certified on the data: rtol={self.certified.rtol:.3g}, atol={self.certified.atol:.3g}")
        if self.statistical is not None:
            s = self.statistical
            lines.append(
                f"statistical: rtol={s.rtol:.3g}, atol={s.atol:.3g} ({s.quantile:.4g} of whole products, confidence "
                f"{s.confidence:.4g}, {s.draws} draws of {s.population})"
            )
        lines += [f"{name} misses: {self.misses(name)}" for name in self.faults]
        return "\n".join([*lines, *self.notes])


#: Words for no missed fault.
NONE_MISSED = "none of the faults tried"


def in_words(found: Mapping[str, float]) -> str:
    """Return the missed faults in words, from the share of products in which each is detected."""
    missed = [f"{fault}{_often(share)}" for fault, share in found.items() if share < SEEN]
    return "; ".join(missed) or NONE_MISSED


def _often(share: float) -> str:
    """Return how often a fault is missed, in words."""
    return "" if share < 0.005 else f" (in {1 - share:.0%} of the products)"


def _allclose(line: Line) -> str:
    return f"np.testing.assert_allclose(d, expected, rtol={line.rtol:.3g}, atol={line.atol:.3g})"


def check_line(rtol: float, atol: float) -> None:
    """Raise ValueError, naming the part, if a tolerance is negative or NaN."""
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise ValueError(f"{name} must be a number of at least 0, got {value}")


@default_fp_state
def check_tolerance(a, b, c=None, *, rtol: float = 0.0, atol: float = 0.0, bound=None, block: int = BLOCK) -> Vacuity:
    """Return the faults that the test ``|computed - exact| <= atol + rtol |exact|`` (or `<= bound`) would miss on these data.

    A fault counts as missed if every element of the product passes in spite of it; rounding errors of the kernel are
    ignored.

    Parameters
    ----------
    a, b, c : array_like, shapes (m, k), (k, n), (m, n)
        The operands of the test; block-scaled operands must be multiplied by their scales (:meth:`BlockScaled.values`).
    rtol, atol : float
        Tolerances as for numpy.allclose.
    bound : array_like, optional
        Tolerance of each element, instead of rtol and atol.
    block : int
        Number of products in a dropped block of k.

    Raises
    ------
    ValueError
        If a tolerance is negative or NaN, or `block` is below 1.
    """
    check_line(rtol, atol)
    if block < 1:
        raise ValueError(f"block must be at least one product, got {block}")
    a, b = (source_array(x, name).astype(np.float64) for x, name in ((a, "a"), (b, "b")))
    c = None if c is None else source_array(c, "c").astype(np.float64)
    exact = np.abs(np.asarray(exact_gemm(a, b, c).rounded("fp64")))
    allowed = atol + rtol * exact if bound is None else np.broadcast_to(np.asarray(bound, np.float64), exact.shape)
    k = a.shape[1]
    largest, unseen_terms = np.zeros(exact.shape), 0
    part = max(1, _PRODUCTS // max(1, exact.size))
    for start in range(0, k, part):
        products = np.abs(a[:, start : start + part].T[:, :, None] * b[start : start + part, None, :])
        np.maximum(largest, products.max(axis=0), out=largest)
        unseen_terms += int((products <= allowed).all(axis=(1, 2)).sum())
    starts = range(0, k, block)
    lost = (np.abs(a[:, start : start + block] @ b[start : start + block]) for start in starts)
    return Vacuity(
        exact.size,
        int(np.count_nonzero((exact <= allowed) & np.isfinite(exact))),
        int(np.count_nonzero(largest <= allowed)),
        block,
        len(starts),
        sum(bool((x <= allowed).all()) for x in lost),
        k,
        unseen_terms,
    )


def on_the_whole(part: Vacuity, a: np.ndarray, b: np.ndarray, exact: np.ndarray, allowed: np.ndarray) -> Vacuity:
    """Return the faults on the whole product from those on some rows and columns.

    Lost largest products are a share of the part.
    """
    zeros = int(np.count_nonzero(exact <= allowed))
    lost = round(part.lost_product_passes / max(1, part.elements) * exact.size)
    found = replace(part, elements=exact.size, zero_passes=zeros, lost_product_passes=lost)
    if found.vacuous or part.elements == exact.size:
        return found
    blocks, terms = part.unseen_blocks, part.unseen_terms
    if blocks:
        starts = range(0, a.shape[1], part.block)
        blocks = sum(_unseen(a[:, i : i + part.block], b[i : i + part.block], allowed) for i in starts)
    if terms:
        terms = _unseen_terms(a, b, allowed)
    return replace(found, unseen_blocks=blocks, unseen_terms=terms)


def _unseen(a: np.ndarray, b: np.ndarray, allowed: np.ndarray) -> bool:
    """Return whether a test would miss a part of k, whose product is nowhere larger than the limit.

    A few rows are computed at a time, because the first rows usually settle it.
    """
    rows = max(1, _PRODUCTS // max(1, a.shape[1] * b.shape[1]))
    return all((np.abs(a[i : i + rows] @ b) <= allowed[i : i + rows]).all() for i in range(0, len(a), rows))


def _unseen_terms(a: np.ndarray, b: np.ndarray, allowed: np.ndarray) -> int:
    """Return how many single products (values of k) a test would miss; their largest elements settle most of them."""
    a, b, k = np.abs(a), np.abs(b), np.arange(a.shape[1])
    i, j = a.argmax(0), b.argmax(1)
    largest = a[i, k] * b[k, j]
    seen, unseen = largest > allowed[i, j], largest <= allowed.min()
    open_terms = np.flatnonzero(~seen & ~unseen)
    return int(unseen.sum()) + sum(bool((np.outer(a[:, at], b[at]) <= allowed).all()) for at in open_terms)
