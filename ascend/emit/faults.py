"""This module defines the fault of a checked kernel, and the base class of the checks."""

from typing import NamedTuple


class PtoFault(NamedTuple):
    """`PtoFault` is a fault: its kind ("race", "flag left up", "bits", "tiles", ...), the core, and a description."""

    kind: str
    core: int | None
    what: str


class EmittedCheck:
    """`EmittedCheck` holds the faults that a check found in a kernel."""

    name: str
    faults: tuple[PtoFault, ...]

    @property
    def sound(self) -> bool:
        """Return whether the kernel has no fault."""
        return not self.faults

    def to_rows(self) -> list[dict]:
        """Return one record for each fault."""
        return [fault._asdict() for fault in self.faults]
