"""What a test of a kernel may allow, as a result: lines, where they come from, and which faults each of them misses."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

import numpy as np

from mpgemm.testing.sampled import Statistical
from mpgemm.testing.vacuity import Vacuity
from tensorcore_models.results import Result

#: A fault is seen where a test sees it in this share of the products.
SEEN = 0.99


class Line(NamedTuple):
    """|computed - expected| <= atol + rtol |expected|, as numpy.allclose and torch.allclose take it."""

    rtol: float
    atol: float


class Checked(NamedTuple):
    """A given tolerance: what it would let pass, and how many draws and which share of whole right products fail it."""

    line: Line
    vacuity: Vacuity
    draws: int
    failures: int
    failing: float

    def to_dict(self) -> dict:
        """JSON-compatible values."""
        counts = {"draws": self.draws, "failures": self.failures, "failing": self.failing}
        return {**self.line._asdict(), "vacuity": self.vacuity.to_dict(), **counts}


@dataclass(frozen=True, repr=False)
class Tolerance(Result):
    """What a test of a kernel may allow: ``|computed - exact| <= relative S + absolute``, ``S = |A||B| + |C|``.

    Attributes
    ----------
    label : str
        The engine, or the method on its engine.
    k : int
    relative, absolute : float or None
        Certified. Without data they hold for any operands of the formats, else for operands with the data's exponents (a
        recovery method: for the data). None where nothing is certified: an operand or a sum may overflow.
    bound : numpy.ndarray or None
        The same for the data, element by element.
    derivation : str
        How it comes about.
    published : dict of str to float
        Published bounds of the relative part.
    vacuity : Vacuity or None
        What the bound lets pass on the data.
    certified : Line or None
        A line above every bound of the data, or of the drawn pairs; None where a bound is infinite.
    statistical : Statistical or None
        By sampling; None without data and distribution, and where results overflow in what was drawn (`notes` say so).
    lines : mapping of str to Vacuity
        What the certified and the statistical line let pass on the data.
    faults : mapping of str to mapping of str to float
        For each tolerance ("certified by size", "certified", "statistical", "given") the faults that were tried, with the share
        of whole products in which a test sees them.
    checked : Checked or None
        The tolerance that was given.
    reference : str
        "given" or "rounded": from which operands the expected result must be computed.
    notes : tuple of str
        What a reader must know.
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
    notes: tuple[str, ...] = ()

    def to_rows(self) -> list[dict]:
        """The certified bound, then the lines above it, above the sample, and what was given."""
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
        """The faults that a test with a tolerance misses, in words; None where none was tried.

        Parameters
        ----------
        name : str
            "certified by size", "certified", "statistical" or "given".
        """
        found = self.faults.get(name)
        return in_words(found) if found else None

    def sentences(self) -> list[str]:
        """What is tested, how the bound comes about, and what a reader must know."""
        return [f"{self.label}, k = {self.k}", *self.derivation.split("\n"), *self.notes]

    @property
    def snippet(self) -> str:
        """Python to paste into a test; d is the kernel's result, a, b (and c) its operands."""
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
        """JSON-compatible values."""
        return {
            "label": self.label,
            "k": self.k,
            "reference": self.reference,
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


#: Where every fault is seen.
NONE_MISSED = "none of the faults tried"


def in_words(found: Mapping[str, float]) -> str:
    """The faults that are missed, of those tried with the share of products in which each is seen."""
    missed = [f"{fault}{_often(share)}" for fault, share in found.items() if share < SEEN]
    return "; ".join(missed) or NONE_MISSED


def _often(share: float) -> str:
    """How often a fault is missed."""
    return "" if share < 0.005 else f" (in {1 - share:.0%} of the products)"


def _allclose(line: Line) -> str:
    return f"np.testing.assert_allclose(d, expected, rtol={line.rtol:.3g}, atol={line.atol:.3g})"
