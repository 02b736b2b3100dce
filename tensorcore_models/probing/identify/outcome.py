"""Defines the result of an identification: specification, evidence, open questions, cost."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from ...accumulators import Accumulator
from ...engines.matrix_engine import MatrixEngine
from ...results import Result
from ..interface import Interface
from .evidence import Counterexample, Evidence, OpenQuestion
from .fields import spec_text


@dataclass(frozen=True)
class Nearest:
    """`Nearest` is a specification with the number of the first pool's answers that it misses; that pool is made without
    specifications.
    """

    specification: Accumulator
    wrong: int
    of: int

    def __str__(self) -> str:
        return f"{spec_text(self.specification)}: {self.wrong} of the first {self.of} answers are not its own"


@dataclass(frozen=True, kw_only=True, repr=False)
class Identification(Result):
    """`Identification` holds the result of an identification of a black box.

    Attributes
    ----------
    label : str
        Name of the box.
    interface : Interface
        Formats of the box, and the number of products that one call adds.
    engine : MatrixEngine or None
        Engine that runs the specification; None if the box is faulty or no specification gives all answers.
    family : str
        Family of the specification, empty for a faulty box.
    nearest : Nearest or None
        Specification that was found; if there is none, the specification that contradicts the fewest answers of the box.
    others : tuple of Nearest
        For each other family that was searched, the specification that contradicts the fewest answers of the box.
    evidence : tuple of Evidence
        Answers of the box that exclude values of fields, one for each excluded value.
    open_questions : tuple of OpenQuestion
        Fields of which several values agree with all answers of the box.
    equal_values : tuple of OpenQuestion
        Fields of which several values give the same result on every input of these formats.
    counterexample : Counterexample or None
        Input on which the nearest specification contradicts the box, or on which the box is faulty.
    fault : str
        Reason why the box cannot be identified (it raises an error, it is not deterministic, ...); empty if it can.
    any_nan : bool
        Whether any two NaN counted as equal.
    queries, queries_before_random : int
        Number of dot products that the search constructed and gave to the box, in total and before the first random phase.
    vectors : int
        Number of random dot products that were given to the box.
    seconds : float
        Wall time in seconds.
    """

    label: str
    interface: Interface
    seconds: float
    queries: int
    vectors: int
    engine: MatrixEngine | None = None
    family: str = ""
    nearest: Nearest | None = None
    others: tuple[Nearest, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    open_questions: tuple[OpenQuestion, ...] = ()
    equal_values: tuple[OpenQuestion, ...] = ()
    counterexample: Counterexample | None = None
    fault: str = ""
    any_nan: bool = False
    queries_before_random: int = 0

    @property
    def specification(self) -> Accumulator | None:
        """Return the accumulator that was identified, None if no accumulator was identified."""
        return None if self.engine is None else self.engine.accumulator

    @property
    def verdict(self) -> str:
        """Return one line on whether a specification was identified, and on which one."""
        if self.fault:
            return f"the box cannot be identified: {self.fault}"
        if self.engine is not None:
            return f"identified: {spec_text(self.engine.accumulator)}"
        return "outside of the families: no specification explains every answer"

    def catalogue_row(self, arch: str = "mine", name: str = "unit") -> str:
        """Return Python code of a row for a table of :mod:`tensorcore_models.catalogue`.

        Raises
        ------
        ValueError
            If no specification was identified.
        """
        if self.engine is None:
            raise ValueError(
                f"{self.label}: no specification was identified, so no row of the catalogue can be made; `verdict` gives the "
                "reason"
            )
        a, b, c, d = (f.name for f in self.interface.formats)
        scales = ""
        if self.interface.scale_format is not None:
            scales = f" scale_format={self.interface.scale_format.name!r}, block_size={self.interface.block_size},"
        return (
            f"Instruction(\n    {spec_text(self.engine.accumulator)},\n    arch={arch!r}, name={name!r}, m=1, n=1, "
            f"k={self.interface.k},{scales}\n    a_format={a!r}, b_format={b!r}, c_format={c!r}, d_format={d!r},\n"
            f"    source={f'identified as a black box: {self.label}'!r}, evidence='inferred',\n"
            f"    note='{self.queries} queries, {self.vectors} random vectors',\n)"
        )

    def to_rows(self) -> list[dict]:
        """Return a list of one row (a dict of column names and values), as for a table."""
        names = ("label", "family", "fault", "queries", "vectors", "seconds")
        return [{"verdict": self.verdict, **{name: getattr(self, name) for name in names}}]

    def sentences(self) -> list[str]:
        """Return the verdict, then the open questions."""
        return [f"{self.label}: {self.verdict}", *(f"open: {question}" for question in self.open_questions)]

    def to_dict(self) -> dict[str, Any]:
        """Return the identification as a dict of plain data for JSON."""
        plain = ("label", "family", "fault", "any_nan", "queries", "queries_before_random", "vectors", "seconds")
        found = ("evidence", "open_questions", "equal_values")
        spec = self.specification
        return {
            **{name: getattr(self, name) for name in plain},
            "verdict": self.verdict,
            "interface": str(self.interface),
            "specification": None if spec is None else {"class": type(spec).__name__, **dataclasses.asdict(spec)},
            "nearest": None if self.nearest is None else str(self.nearest),
            "others": [str(other) for other in self.others],
            **{name: [dataclasses.asdict(row) for row in getattr(self, name)] for name in found},
            "counterexample": None if self.counterexample is None else dataclasses.asdict(self.counterexample),
        }

    def __str__(self) -> str:
        lines = [
            f"{self.label} ({self.interface})",
            self.verdict,
            f"{self.queries} queries ({self.queries_before_random} before the random phase), {self.vectors} random vectors, "
            f"{self.seconds:.1f} s",
        ]
        if self.counterexample is not None:
            lines.append(f"counter-example: {self.counterexample.text}")
        if self.engine is None and self.nearest is not None:
            lines.append(f"nearest: {self.nearest}")
        lines += [f"other family: {other}" for other in self.others]
        lines += [f"open: {question}" for question in self.open_questions]
        lines += [f"the same: {question}" for question in self.equal_values]
        return "\n".join(lines)
