"""Gives probe vectors: inputs with the result that an instruction's published parameters predict, derived by hand.

For every floating-point row of the catalogue, the vectors tell its fraction bits F from F - 1 and F + 1, its number of terms N
from half and twice N, and its roundings from all others. Expected results come from formulas (xie-mma-sim, section III; fasi,
section 3; khattak-mikaitis, section IV), never from the models. So a model and a catalogue row that share a wrong parameter do
not agree with them.
"""

from functools import cache
from typing import NamedTuple

from ..aspects.probes import Builder, ProbeVector
from ..engines.instruction import Instruction
from ..formats import IntegerFormat, get_format


class ProbeSet(NamedTuple):
    """`ProbeSet` holds the probe vectors of an instruction, and the names of probes that its operand formats cannot express."""

    vectors: tuple[ProbeVector, ...]
    unreachable: tuple[str, ...]


@cache
def probe_set(row: Instruction) -> ProbeSet:
    """Return the probe vectors of an instruction, and the names of probes that its formats cannot express.

    The set is empty for families without probes.

    Raises
    ------
    ValueError
        If the instruction has integer operands or unpublished arithmetic, because it then has no probe vectors.
    """
    if not row.published or isinstance(get_format(row.d_format), IntegerFormat):
        what = "integer results" if row.published else "unpublished arithmetic"
        raise ValueError(f"{row} has {what}, but probe vectors exist only for published floating-point arithmetic")
    builder = Builder(row)
    row.accumulator.probe(builder)
    return ProbeSet(tuple(builder.vectors), tuple(builder.unreachable))


def probe_vectors(row: Instruction) -> list[ProbeVector]:
    """Return probe vectors that were derived by hand, with their expected bits; see :func:`probe_set`."""
    return list(probe_set(row).vectors)
