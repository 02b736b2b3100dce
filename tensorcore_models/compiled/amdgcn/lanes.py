"""Models the DPP patterns, by which a lane reads registers of other lanes (CDNA3 ISA, "Data Parallel Processing")."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import Refused
from .syntax import AMDInstruction

_ROW, _WAVE = 16, 64
_LANE = np.arange(_WAVE)
_IN_ROW, _ROW_START = _LANE % _ROW, _LANE - _LANE % _ROW


def _shifted(step: int) -> np.ndarray:
    """Return for each lane the lane `step` further in its row, -1 if there is none."""
    inside = _IN_ROW + step
    return np.where((inside >= 0) & (inside < _ROW), _ROW_START + inside, -1)


def _quad(order: list[int]) -> np.ndarray:
    return _LANE - _LANE % 4 + np.array(order)[_LANE % 4]


def _broadcast(last: int) -> np.ndarray:
    """Return the sources of row_bcast: lane 15 of each row to the next row, or lane 31 to the two rows after it."""
    if last == 31:
        return np.where(_LANE >= 32, 31, -1)
    return np.where(_LANE >= _ROW, _ROW_START - 1, -1)


#: DPP's modifiers: the lane whose register each lane reads, -1 for no lane.
_PATTERNS: dict[str, Callable] = {
    "quad_perm": _quad,
    "row_shl": lambda n: _shifted(n), "row_shr": lambda n: _shifted(-n),
    "row_ror": lambda n: _ROW_START + (_IN_ROW - n) % _ROW,
    "row_mirror": lambda _: _ROW_START + _ROW - 1 - _IN_ROW,
    "row_half_mirror": lambda _: _LANE - _LANE % 8 + 7 - _LANE % 8,
    "row_bcast": _broadcast,
    "row_newbcast": lambda n: _ROW_START + n,
    "wave_shl": lambda _: np.where(_LANE < _WAVE - 1, _LANE + 1, -1),
    "wave_shr": lambda _: _LANE - 1,
    "wave_rol": lambda _: (_LANE + 1) % _WAVE,
    "wave_ror": lambda _: (_LANE - 1) % _WAVE,
}  # fmt: skip
_RANGES = {
    "row_shl": range(1, 16), "row_shr": range(1, 16), "row_ror": range(1, 16), "row_bcast": (15, 31),
    "row_newbcast": range(16), "wave_shl": (1,), "wave_shr": (1,), "wave_rol": (1,), "wave_ror": (1,),
}  # fmt: skip


@dataclass(frozen=True)
class LaneMove:
    """`LaneMove` says how a DPP instruction reads other lanes.

    Parameters
    ----------
    source : ndarray
        Lane of the wave that each lane reads, -1 for no lane.
    rows, banks : int
        Masks of the rows that write, and of the groups of four lanes in a row that write.
    zero : bool
        Whether a lane without a source reads zero (bound_ctrl); otherwise it does not write.
    """

    source: np.ndarray
    rows: int
    banks: int
    zero: bool

    def plan(self, machine, lanes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the lanes that write, the lane that each one reads, and whether that lane exists and is active."""
        every = machine.threads.all_lanes if lanes is None else lanes
        running = np.zeros(machine.threads.count, bool)
        running[every] = True
        lane = every % _WAVE
        source = self.source[lane]
        held = every - lane + np.maximum(source, 0)
        valid = (source >= 0) & running[held]
        writes = (self.rows >> (lane // _ROW) & 1 != 0) & (self.banks >> (lane % _ROW // 4) & 1 != 0)
        if not self.zero:
            writes &= valid
        return every[writes], held[writes], valid[writes]


def moved_lanes(ins: AMDInstruction) -> LaneMove:
    """Return the lane move that a DPP instruction's modifiers ask for; refuse unknown modifiers by name."""
    words = [word for word in ins.modifiers if word in _PATTERNS]
    rest = ins.modifiers.keys() - {*words, "row_mask", "bank_mask", "bound_ctrl", "clamp"}
    if len(words) != 1 or rest:
        raise Refused(f"{ins.opcode} with {', '.join(sorted(ins.modifiers))} is not modelled", ins.line)
    value = ins.modifiers[words[0]]
    if words[0] == "quad_perm":
        good = isinstance(value, list) and len(value) == 4 and all(0 <= x < 4 for x in value)
    else:
        good = words[0] not in _RANGES or value in _RANGES[words[0]]
    if not good:
        raise Refused(f"{ins.opcode} with {words[0]}:{value} is not modelled", ins.line)
    rows, banks = (int(ins.modifiers.get(name, 15)) for name in ("row_mask", "bank_mask"))
    return LaneMove(_PATTERNS[words[0]](value), rows, banks, "bound_ctrl" in ins.modifiers)
