"""This module lists the dialects in which a plan's kernel is written, and the chips that have each of them.

Sources: AscendC API reference, Matmul (supported: Atlas A2, A3, Atlas inference series, Ascend 950; not the training series);
CATLASS (github.com/hicann/catlass, 0dfcf9df: Atlas A2, A3, Ascend 950); pto-isa (hw-native-sys/pto-isa, 3186c381: a2a3 and a5);
triton-ascend (Atlas A2 and A3; its options have compile_on_910_95).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ascend.chips.chip import Chip
from ascend.term_modes import MODES, Mode


class Dialect(NamedTuple):
    """`Dialect` is a way to write a kernel, with the schedules that it can express."""

    name: str
    title: str
    has: Callable[[Chip], bool]  #: whether a chip has it
    chips: str  #: the chips that have it, in words
    directions: tuple[int, ...] = (0, 1)  #: directions of swizzles that deal tiles one by one; () if none does
    turns: bool = True  #: whether every second band of a swizzle is walked back
    rectangles: bool = True  #: whether a core may own a rectangle of tiles
    slices: bool = True  #: whether k may be split among cores
    powers_of_two: bool = False  #: whether block sizes must be powers of two
    modes: tuple[Mode, ...] = MODES  #: how several terms may be combined
    one_term: bool = True  #: whether it multiplies operands of one term


def _second_generation(chip: Chip) -> bool:
    return bool(chip.fixpipe)


DIALECTS: dict[str, Dialect] = {
    row.name: row
    for row in (
        Dialect("ascendc", "AscendC's Matmul (TCubeTiling)",
                lambda chip: _second_generation(chip) or chip.soc_version.startswith("Ascend310P"),
                "Atlas A2 (910B), A3 (910C), 310P, 950", directions=()),
        Dialect("catlass", "CATLASS", _second_generation, "Atlas A2 (910B), A3 (910C), 950", rectangles=False),
        Dialect("pto", "PTO", _second_generation, "Atlas A2 (910B), A3 (910C), 950"),
        Dialect("triton", "Triton (triton-ascend)", _second_generation, "Atlas A2 (910B), A3 (910C), 950",
                directions=(0,), turns=False, rectangles=False, slices=False,
                powers_of_two=True, modes=("fused",), one_term=False),
    )
}  # fmt: skip
#: A row that can express every schedule, for a request that names no dialect.
ANY = Dialect("", "", lambda chip: True, "all")


def check_dialect(name: str, chip: Chip) -> None:
    """Raise ValueError if there is no such dialect, or the chip lacks it."""
    if name not in DIALECTS:
        raise ValueError(f"target must be one of {', '.join(DIALECTS)}, got {name!r}")
    row = DIALECTS[name]
    if not row.has(chip):
        raise ValueError(
            f"{row.title} does not exist for {chip.name}, only for {row.chips}. {chip.name} has only AscendC's basic API "
            "(DataCopy, LoadData, Mmad): use --tiling, which prints blocks and buffers for this API"
        )


def said_modes(name: str, terms: int, modes: Sequence[Mode], split: int | None) -> list[Mode]:
    """Return the modes of `modes` that a dialect can express; the name "" stands for any dialect.

    Raises ValueError if it can express none of them, or not this number of terms or of slices of k (`split`).
    """
    row = DIALECTS.get(name, ANY)
    if terms == 1 and not row.one_term:
        raise ValueError(
            f"the kernels for {row.title} need several terms, because they recover FP32 from words of fp16, got one term: "
            "plan with --terms 3 (terms=3)"
        )
    if (split or 1) > 1 and not row.slices:
        raise ValueError(
            f"the kernels for {row.title} do not split k, got {split} slices of k: plan with --split 1 (split=1)"
        )
    said = [mode for mode in modes if terms == 1 or mode in row.modes]
    if not said:
        raise ValueError(
            f"the mode of kernels for {row.title} must be one of {', '.join(row.modes)}, got {', '.join(modes)}: take --mode "
            f"{row.modes[0]}"
        )
    return said
