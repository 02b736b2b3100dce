"""Where the site has the page of an instruction."""

from ..catalogue import list_instructions
from ..engines.instruction import Instruction

#: Where the site has the atlas.
FOLDER = "atlas"


def catalogued(row: Instruction) -> Instruction:
    """Return the row of the catalogue whose page describes an instruction: of free shapes there is one page."""
    rows = [
        other
        for other in list_instructions(row.arch)
        if other.path == row.path and other.accumulator == row.accumulator
    ]
    same = [other for other in rows if other == row] or [
        other for other in rows if other.legal_shapes and other.with_shape(row.m, row.n) == row
    ]
    if not same:
        raise ValueError(f"{row} is not a row of the catalogue, so it has no page")
    return same[0]


def page_path(row: Instruction) -> str:
    """Return path of an instruction's page below the site's root."""
    return f"{FOLDER}/{row.arch}/{row.name}.html"
