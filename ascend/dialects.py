"""Where a plan is typed into, and which chips have it.

Sources: AscendC API reference, Matmul (supported: Atlas A2, A3, Atlas inference series, Ascend 950; not the training series);
CATLASS (github.com/hicann/catlass, 0dfcf9df: Atlas A2, A3, Ascend 950); pto-isa (hw-native-sys/pto-isa, 3186c381: a2a3 and a5).
"""

from collections.abc import Callable
from typing import NamedTuple

from ascend.chips.chip import Chip


class Dialect(NamedTuple):
    """A way to write a kernel."""

    name: str
    title: str
    has: Callable[[Chip], bool]  #: Whether a chip has it.
    chips: str  #: Those that do, in words.


def _second_generation(chip: Chip) -> bool:
    return bool(chip.fixpipe)


DIALECTS: dict[str, Dialect] = {
    row.name: row
    for row in (
        Dialect("ascendc", "AscendC's Matmul (TCubeTiling)",
                lambda chip: _second_generation(chip) or chip.soc_version.startswith("Ascend310P"),
                "Atlas A2 (910B), A3 (910C), 310P, 950"),
        Dialect("catlass", "CATLASS", _second_generation, "Atlas A2 (910B), A3 (910C), 950"),
        Dialect("pto", "PTO", _second_generation, "Atlas A2 (910B), A3 (910C), 950"),
    )
}  # fmt: skip


def check_dialect(name: str, chip: Chip) -> None:
    """Refuse a dialect that there is not, or that a chip lacks (ValueError)."""
    if name not in DIALECTS:
        raise ValueError(f"target is one of {', '.join(DIALECTS)}, got {name!r}")
    row = DIALECTS[name]
    if not row.has(chip):
        raise ValueError(
            f"{row.title} does not exist for {chip.name}: it is for {row.chips}; {chip.name} has AscendC's basic API only "
            "(DataCopy, LoadData, Mmad), for which --tiling prints blocks and buffers"
        )
