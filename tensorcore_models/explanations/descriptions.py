"""Describes an accumulator in words: a title, sentences, formulas in LaTeX and as plain text."""

import re
from dataclasses import asdict, dataclass
from typing import Any

from ..results import Result

ROUNDINGS = {
    "rne": "to nearest, ties to even", "rna": "to nearest, ties away from zero", "rz": "toward zero", "ru": "up", "rd": "down",
    "ro": "to odd", "ra": "away from zero", "rnu": "to nearest, ties up", "rnd": "to nearest, ties down",
    "rnz": "to nearest, ties toward zero", "rno": "to nearest, ties to odd",
    "sr": "up or down at random, by a key and the element's place in D",
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class Words(Result):
    """`Words` describes the arithmetic of a unit.

    Parameters
    ----------
    title : str
        A sentence without its full stop that says what the unit does.
    steps : tuple of str
        Sentences in the order of the arithmetic.
    formula : str
        LaTeX; ", \\quad " separates equations. It is empty where the arithmetic is not public.
    brief : str
        A verb with its object, for a sentence whose subject is the name of the unit.
    window : tuple of str
        Lines of text that show which bits of an addend a fused sum keeps.
    """

    title: str
    steps: tuple[str, ...]
    formula: str
    brief: str
    window: tuple[str, ...] = ()

    @property
    def equations(self) -> tuple[str, ...]:
        """Return the formula's equations in LaTeX."""
        return tuple(filter(None, self.formula.split(r", \quad ")))

    def to_rows(self) -> list[dict]:
        """Return a row for each step, then the formula's equations."""
        told = [{"kind": "step", "text": step} for step in self.steps]
        return [*told, *({"kind": "formula", "text": plain(line)} for line in self.equations)]

    def sentences(self) -> list[str]:
        """Return the title."""
        return [self.title]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-compatible values, with the formula as plain text and as LaTeX."""
        return {**asdict(self), "formula": list(map(plain, self.equations)), "latex": list(self.equations)}


#: Patterns in LaTeX and their plain text. They are applied until nothing changes, so that inner braces are replaced first.
_PLAIN = (
    (r"\\sum_\{i=1\}\^\{(\d+)\}", r"sum(i=1..\1)"), (r"\\sum_\{i \\in G_j\}", "sum(i in G_j)"), (r"\\sum_(\w)", r"sum(\1)"),
    (r"\\mathrm\{([^{}]*)\}", r"\1"), (r"\\pmod\{([^{}]*)\}", r"(mod \1)"), (r"([_^])\{([A-Za-z0-9]+)\}", r"\1\2"),
    (r"([_^])\{([^{}]*)\}", r"\1(\2)"), (r"\\alpha", "x"), (r"\\beta", "y"), (r"\\equiv", "="), (r"\\(left|right)", ""),
    (r"\\[ ,;]", " "), (r"\\(min|max|bmod)", lambda found: found[1].removeprefix("b")), (r"  +", " "),
)  # fmt: skip


def plain(latex: str) -> str:
    """Return a formula of this module as plain text."""
    before = ""
    while before != latex:
        before = latex
        for pattern, text in _PLAIN:
            latex = re.sub(pattern, text, latex)
    return latex.strip()


def kept_bits(spec: Any, d: str) -> str:
    """Return the result's format `d`, or the number of its fraction bits that a rounding keeps."""
    if spec.output_fraction_bits:
        return f"{spec.output_fraction_bits} fraction bits of {d}"
    return d


def rounded(rounding: str, to: str) -> str:
    """Return "rounded to fp32 (toward zero)": `to` is a format or a number of bits, in words."""
    return f"rounded to {to} ({ROUNDINGS[rounding]})"


def floor_words(floor: int | None) -> tuple[str, str]:
    """Return an alignment floor as a sentence and as an argument of max in a formula; empty without a floor."""
    if floor is None:
        return "", ""
    return f" This exponent is never below {floor}.", rf"{floor},\;"
