"""Defines the record of a kernel's run, apart from the arrays that it wrote."""

from dataclasses import dataclass

from ..results import Result


@dataclass(frozen=True, repr=False)
class KernelRun(Result):
    """`KernelRun` holds the facts of one launch that ran to its end.

    Attributes
    ----------
    kernel : str
        Name of the entry.
    unit : str
        Architecture of the matrix instructions.
    steps : int
        Number of instructions; an instruction that a group of threads ran together counts once.
    assumptions : tuple of str
        Assumptions of the result, where the program does not determine it.
    """

    kernel: str
    unit: str
    steps: int
    assumptions: tuple[str, ...]

    def __str__(self) -> str:
        assumed = "".join(f"\nassumed: {each}" for each in self.assumptions)
        return f"{self.kernel} ran on {self.unit} in {self.steps} steps{assumed}"

    def to_rows(self) -> list[dict]:
        """Return one row: kernel, unit, steps, assumptions."""
        assumed = "; ".join(self.assumptions)
        return [{"kernel": self.kernel, "unit": self.unit, "steps": self.steps, "assumptions": assumed}]
