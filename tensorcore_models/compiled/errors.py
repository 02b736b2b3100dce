"""Defines the errors of reading or running a compiled kernel, and the limits within which it runs."""

from dataclasses import dataclass, fields
from typing import Any

from ..integers import checked_integer


class Refused(ValueError):
    """`Refused` is the error for an instruction or a result that the emulator does not know; it never guesses.

    Parameters
    ----------
    what : str
        Instruction as the program spells it, and the part of it that is not modelled.
    line : int, optional
        Line of the program's text.
    """

    def __init__(self, what: str, line: int | None = None):
        self.what, self.line = what, line
        super().__init__(_placed(what, line))


class KernelFault(ValueError):
    """`KernelFault` is the error for a fault of a kernel, such as an address out of bounds, a read of an unwritten register, or
    a deadlock.

    Parameters
    ----------
    what : str
        Description of the fault, with thread and address.
    line : int, optional
        Line of the program's text.
    index : int, optional
        Index of the faulty lane among the lanes that ran the instruction.
    lanes : ndarray, optional
        Lanes that ran the instruction; None if the whole group of threads ran it.
    """

    def __init__(self, what: str, line: int | None = None, *, index: int | None = None, lanes: Any = None):
        self.what, self.line, self.index, self.lanes = what, line, index, lanes
        super().__init__(_placed(what, line))


def _placed(what: str, line: int | None) -> str:
    return what if line is None else f"line {line}: {what}"


@dataclass(frozen=True, kw_only=True)
class KernelLimits:
    """`KernelLimits` holds the limits of a run, because a program of unknown origin may loop for ever or use any
    amount of memory.

    Parameters
    ----------
    steps : int
        Largest number of instructions; an instruction that a whole group of threads runs counts once.
    threads : int
        Largest number of threads of the grid.
    memory : int
        Largest number of bytes of the arrays, and of the registers, shared and tensor memory that exist at a time.
    text : int
        Largest number of characters of the program's text.

    Raises
    ------
    ValueError, TypeError
        If a limit is not a positive integer.
    """

    steps: int = 20_000_000
    threads: int = 1 << 22
    memory: int = 2 << 30
    text: int = 64 << 20

    def __post_init__(self):
        for field in fields(self):
            value = checked_integer(getattr(self, field.name), f"the limit {field.name}")
            if value < 1:
                raise ValueError(f"the limit {field.name} must be positive, got {value}")
            object.__setattr__(self, field.name, value)
