"""Reads the dots of a kernel from the stages of Triton's compiler.

- TTIR shows which additions of a dot's result the compiler folded into the dot's accumulator: those that the source's stage has
  and TTIR has not.
- TTGIR shows the words that are multiplied for tf32x3, bf16x3 and bf16x6, in order. A word's number is the number of
  subtractions of earlier words (`arith.subf`) between the load and the word.
- PTX shows the matrix instruction of each position (`.loc`).

A position is (file name, line, column), both from 1, of the innermost function.
"""

import re
from dataclasses import dataclass
from pathlib import PurePath

from mpgemm.frameworks.triton_compiled import CompiledKernel

Position = tuple[str, int, int]
Words = tuple[tuple[int, int], ...]
_OPERATION = re.compile(r"^\s*(?:%([\w-]+)(?::\d+)? = )?([a-z_]+\.[\w.]+)\s?(.*) loc\((#loc\d*|\".*)\)$")
_DOTS = ("tt.dot", "ttng.warp_group_dot", "ttng.tc_gen5_mma")
#: Largest number of steps from a value to its load, or through nested locations.
_LIMIT = 64


@dataclass(frozen=True)
class DotCode:
    """`DotCode` holds the dots of a compiled kernel.

    Attributes
    ----------
    label : str
        Compiler and target as text.
    folded : frozenset of Position
        Additions that the compiler folded into the accumulator of their dot.
    dots : frozenset of Position
        Dots in TTIR.
    imprecise : dict of Position to int
        `max_num_imprecise_acc` of the dots.
    words : dict of Position to tuple
        Pairs (word of A, word of B) in order, for dots that became several.
    instructions : dict of Position to tuple of str
        Opcodes of the matrix instructions.
    widths : dict of Position to int
        Number of neighbours along k of an operand that a thread holds in registers (kWidth); if a register holds fewer, the
        instructions interleave k.
    """

    label: str
    folded: frozenset[Position]
    dots: frozenset[Position]
    imprecise: dict[Position, int]
    words: dict[Position, Words]
    instructions: dict[Position, tuple[str, ...]]
    widths: dict[Position, int]


def dot_code(compiled: CompiledKernel) -> DotCode:
    """Return the dots of a compiled kernel, read from its stages."""
    source, ttir = (_Module(compiled.texts[stage]) for stage in ("source", "ttir"))
    additions = {row.position for row in source.rows if row.name == "arith.addf"}
    left = {row.position for row in ttir.rows if row.name == "arith.addf"}
    dots = [row for row in ttir.rows if row.name == "tt.dot"]
    imprecise = {row.position: _imprecise(row.text) for row in dots if row.position is not None}
    ttgir = _Module(compiled.texts["ttgir"])
    return DotCode(
        compiled.label,
        frozenset(x for x in additions - left if x is not None),
        frozenset(imprecise),
        imprecise,
        ttgir.words(),
        _matrix_instructions(compiled.texts.get("ptx", "")),
        {
            row.position: int(width[1])
            for row in ttgir.rows
            if row.name == "tt.dot" and row.position and (width := re.search(r"kWidth = (\d+)", row.text))
        },
    )


def interleaved(k: int, width: int, held: int, step: int) -> list[int] | None:
    """Return the order of k of instructions of `step` products; threads hold `width` neighbours along k, a register `held`.

    Each of width / held instructions takes the next `held` neighbours of every thread. None stands for ascending k.
    """
    turns = width // held
    if turns <= 1 or k % (step * turns):
        return None
    block = step * turns
    inner = [x for turn in range(turns) for x in range(block) if x // held % turns == turn]
    return [start + x for start in range(0, k, block) for x in inner]


def _imprecise(text: str) -> int:
    found = re.search(r"maxNumImpreciseAcc = (\d+)", text)
    return int(found[1]) if found else 0


@dataclass(frozen=True)
class _Row:
    """`_Row` is one operation: the name of its result, its name, the rest of its text, and its position."""

    result: str
    name: str
    text: str
    position: Position | None

    @property
    def operands(self) -> list[str]:
        """Names of the operands."""
        return re.findall(r"%([\w-]+)", self.text.partition(" : ")[0])


class _Module:
    """`_Module` is a stage in MLIR's text."""

    def __init__(self, text: str):
        self._places: dict[str, str] = dict(re.findall(r"^(#loc\d*) = loc\((.*)\)$", text, re.M))
        self.rows = [
            _Row(found[1] or "", found[2], found[3], self._position(found[4]))
            for found in map(_OPERATION.match, text.splitlines())
            if found
        ]

    def _position(self, place: str) -> Position | None:
        """Return the innermost file, line and column of a location."""
        for _ in range(_LIMIT):
            if found := re.match(r'"(.*)":(\d+):(\d+)', place):
                return PurePath(found[1]).name, int(found[2]), int(found[3])
            inner = re.search(r"#loc\d*", place)
            if inner is None or inner[0] not in self._places:
                return None
            place = self._places[inner[0]]
        return None

    def words(self) -> dict[Position, Words]:
        """Return the pairs of words at each position of a dot, without repetitions by unrolled loops.

        Dots whose words cannot be traced are left out.
        """
        made = {row.result: row for row in self.rows if row.result}
        for row in self.rows:
            if row.name in ("ttg.local_store", "ttng.tmem_store") and len(row.operands) > 1:
                made[row.operands[1]] = row
        found: dict[Position, list] = {}
        for row in self.rows:
            if row.name in _DOTS and row.position is not None:
                pair = tuple(_lost(operand, made) for operand in row.operands[:2])
                found.setdefault(row.position, []).append(pair)
        return {p: _period(pairs) for p, pairs in found.items() if not any(None in pair for pair in pairs)}


def _lost(name: str, made: dict[str, _Row]) -> int | None:
    """Return the number of words subtracted from a value since its load, or None if it cannot be traced."""
    lost = 0
    for _ in range(_LIMIT):
        row = made.get(name)
        if row is None:
            return None
        lost += row.name == "arith.subf"
        if row.name in ("tt.load", "ttg.local_load", "tt.descriptor_load") or not row.operands:
            return lost
        name = row.operands[0]
    return None


def _period(pairs: list) -> Words:
    """Return the shortest sequence whose repetition gives the pairs."""
    for size in range(1, len(pairs) + 1):
        if len(pairs) % size == 0 and pairs[:size] * (len(pairs) // size) == pairs:
            return tuple(pairs[:size])
    return ()


def _matrix_instructions(ptx: str) -> dict[Position, tuple[str, ...]]:
    files = {number: PurePath(name).name for number, name in re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', ptx, re.M)}
    found: dict[Position, dict[str, None]] = {}
    position: Position | None = None
    for line in ptx.splitlines():
        text = line.strip()
        if place := re.match(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)", text):
            position = files.get(place[1], ""), int(place[2]), int(place[3])
        elif position and (opcode := re.search(r"\b(?:mma\.sync|wgmma\.mma_async|tcgen05\.mma)\S*", text)):
            found.setdefault(position, {})[opcode[0]] = None
    return {position: tuple(opcodes) for position, opcodes in found.items()}


#: k steps of tcgen05's kinds.
_KIND_STEPS = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32}
_PTX_NAMES = {"fp16": "f16", "bf16": "bf16", "tf32": "tf32", "e4m3fn": "e4m3", "e5m2": "e5m2", "s8": "s8",
              "fp32": "f32", "s32": "s32"}  # fmt: skip


def instruction_name(opcode: str, a_format: str, b_format: str, d_format: str) -> str | None:
    """Return the catalogue's name of a PTX matrix instruction that computes a dot of these formats, or None for others."""
    words = opcode.split(".")
    shape = next((re.fullmatch(r"m(\d+)n(\d+)k(\d+)", w) for w in words if re.fullmatch(r"m\d+n\d+k\d+", w)), None)
    if opcode.startswith("mma.sync") and shape:
        return f"mma.{shape[0]}.{'.'.join(words[-4:])}" + (".satfinite" if "satfinite" in words else "")
    if opcode.startswith("wgmma") and shape:
        return f"wgmma.m64n8k{shape[3]}.{'.'.join(words[words.index(shape[0]) + 1 :][:3])}"
    kind = opcode.partition("kind::")[2].partition(".")[0]
    if opcode.startswith("tcgen05") and kind in _KIND_STEPS and {a_format, b_format, d_format} <= set(_PTX_NAMES):
        types = ".".join(_PTX_NAMES[f] for f in (d_format, a_format, b_format))
        return f"tcgen05.mma.m64n8k{_KIND_STEPS[kind]}.{types}"
    return None
