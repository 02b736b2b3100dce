"""Faults of a kernel that was checked, and what every check of a kernel is."""

from typing import NamedTuple


class PtoFault(NamedTuple):
    """Something wrong: its kind ("race", "flag left up", "bits", "tiles", ...), the core, and what."""

    kind: str
    core: int | None
    what: str


class EmittedCheck:
    """The faults that were found in a kernel; what derives from it has its name and them."""

    name: str
    faults: tuple[PtoFault, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    def to_rows(self) -> list[dict]:
        """Return one record for each fault."""
        return [fault._asdict() for fault in self.faults]
