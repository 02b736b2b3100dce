"""Returns the address of an instruction's page on the site."""

from ..catalogue import list_instructions
from ..engines.instruction import Instruction

#: Folder of the atlas on the site.
FOLDER = "atlas"


def catalogued(row: Instruction) -> Instruction:
    """Return the row of the catalogue whose page describes an instruction; all shapes of a row share its page."""
    rows = [
        other
        for other in list_instructions(row.arch)
        if other.path == row.path and other.accumulator == row.accumulator
    ]
    same = [other for other in rows if other == row] or [
        other for other in rows if other.legal_shapes and other.with_shape(row.m, row.n) == row
    ]
    if not same:
        raise ValueError(
            f"{row} is not in the catalogue, so it has no page: name an instruction of list_instructions()"
        )
    return same[0]


def page_path(row: Instruction) -> str:
    """Return the path of an instruction's page below the root of the site."""
    return f"{FOLDER}/{row.arch}/{row.name}.html"
