"""Plans units that no other mode holds by their recorded Programs, and prepares their operands on the device."""

import math
from dataclasses import replace
from typing import Any

from ..arithmetic.program import PassProgram, Prepared
from ..arithmetic.recorder import CONDITIONS, Unrecordable
from ..formats import FORMATS
from ..kernels.lowering import Lowered
from ..kernels.programs import LARGEST, TakenOperands, TooWide
from ..kernels.recorded import WORTH_RECORDING, RecordedKernel, recorded_kernel
from .launches import TritonLaunch, view_of
from .lines import LineBuilder, ProgramLine
from .plans import ModePlan

#: Bytes of an operand's element when k is sliced (:data:`tensorcore_models.gpu.products.PACKED_BYTES`).
_BYTES_EACH = 12
#: Most products of a pass with which 4 x 2 outputs of a thread fit its registers.
_MOST_WIDE = 16


class _Side:
    """`_Side` holds the values that Programs of one chain take of each operand of a side, and their places.

    Parameters
    ----------
    side : {"a", "b"}
    prepared : Prepared
        Preparation that all Programs of a chain share.
    """

    def __init__(self, side: str, prepared: Prepared):
        self.side, self.prepared = side, prepared
        self.places: list[int] = []
        self.counts = [0, 0]
        for at in prepared.outputs:
            x = prepared.operations[at]
            wide = x.low < -(1 << 31) or x.high >= 1 << 31
            self.places.append(-1 - self.counts[1] if wide else self.counts[0])
            self.counts[wide] += 1

    def line(self) -> ProgramLine:
        """Return the ProgramLine from an encoding and its scale to the values taken of them."""
        loads: dict[tuple, tuple[str, Any]] = {
            (self.side, 0): ("code", None),
            (f"scale_{self.side}", 0): ("scale", None),
        }
        seldom = [] if self.prepared.seldom is None else [self.prepared.seldom]
        return LineBuilder(self.prepared.operations, loads).line([*self.prepared.outputs, *seldom])

    def load(self, term: int, output: int) -> tuple[str, int]:
        """Return the step that gives one output of the operand of a product."""
        place = self.places[output]
        if place < 0:
            return f"{self.side}_longs", term * self.counts[1] - 1 - place
        return f"{self.side}_words", term * self.counts[0] + place

    def is_condition(self, output: int) -> bool:
        return self.prepared.operations[self.prepared.outputs[output]].name in CONDITIONS


class UnitPrograms:
    """`UnitPrograms` holds the Programs of a unit as lines of a kernel.

    Parameters
    ----------
    kernel : RecordedKernel
        Kernel that runs the Programs on the CPU.
    """

    def __init__(self, kernel: RecordedKernel):
        self.kernel = kernel
        self._made: dict[tuple, Any] = {}

    def chain(self, regular: bool, first: int, last: int) -> tuple[tuple[_Side, _Side], tuple[ProgramLine | None, ...]]:
        """Return both sides, and the lines of the first pass of `first` products, of whole passes, and of the last pass of
        `last` products.
        """
        key = (regular, first, last)
        if key not in self._made:
            program, step = self.kernel.program, self.kernel.step
            programs = [
                program(regular, True, first) if first else None, program(regular, False, step),
                program(regular, False, last) if last else None,
            ]  # fmt: skip
            self._made[key] = _laid_out(programs)
        return self._made[key]


def _laid_out(programs: list[PassProgram | None]) -> tuple[tuple[_Side, _Side], tuple[ProgramLine | None, ...]]:
    packed = {"a": TakenOperands(), "b": TakenOperands()}
    places = [
        None if p is None else [packed[s].add(x) for s, x in zip("ab", p.prepared, strict=True)] for p in programs
    ]
    sides = {s: _Side(s, Prepared(tuple(x.line), tuple(x.outputs), x.seldom)) for s, x in packed.items()}
    lines = [None if p is None else _line(p, sides, at) for p, at in zip(programs, places, strict=True)]
    return (sides["a"], sides["b"]), tuple(lines)


def _line(program: PassProgram, sides: dict[str, _Side], places: Any) -> ProgramLine:
    """Return the ProgramLine of a pass.

    `places` holds, for each side, the places of the Program's outputs among all outputs.
    """
    loads: dict[tuple, tuple[str, Any]] = {("c", 0): ("code", None)}
    masks = set()
    for x in program.operations:
        if max(x.high, -x.low) >= LARGEST:
            raise TooWide(f"a pass has numbers of {x.high.bit_length()} bits, but a GPU kernel has at most 62")
        if x.name == "input" and x.constant[0] in sides:
            side, term, output = x.constant
            output = places["ab".index(side)][output]
            loads[x.constant] = sides[side].load(term, output)
            if sides[side].is_condition(output):
                masks.add(x.constant)
    return LineBuilder(program.operations, loads, masks).line([program.result], program.seldom)


def program_plan(low: Lowered, mode: Any) -> ModePlan | None:
    """Return the plan of any unit whose passes are recorded in numbers of at most 62 bits; None for others."""
    kernel, _ = recorded_kernel(low, WORTH_RECORDING)
    if kernel is None or kernel.formats[2].bits > 32 or kernel.formats[3].bits > 32:
        return None
    programs = UnitPrograms(kernel)
    try:
        sides = [programs.chain(regular, 0, 0)[0] for regular in (True, False)]
    except (Unrecordable, TooWide):
        return None
    most = max(4 * x.counts[0] + 8 * x.counts[1] for pair in sides for x in pair)
    constants = {"TERMS": kernel.step, "PARTS": max(-(-most // _BYTES_EACH), 1), "PROGRAMS": programs}
    types = low.c_format.name, low.d_format.name
    if kernel.step > _MOST_WIDE:
        mode = replace(mode, each=(2, 2))
    return ModePlan(mode, low, constants, kernel.step, None, None, types, kernel.step)


def run_programs(unit: Any, a, b, c, every: int | None, scales):
    """Return the encodings of D and the flags of tiles, as :meth:`tensorcore_models.gpu.products.DeviceUnit.chain` does."""
    import torch

    plan, (batch, m, _), n = unit.plan, a.shape, b.shape[1]
    down, across = (-(-size // tile) for size, tile in zip((m, n), unit.tile, strict=True))
    container = plan.low.d_format.container.itemsize
    out = torch.empty((batch, m, n), dtype=getattr(torch, f"int{8 * container}"), device=a.device)
    flags = torch.empty(batch * down * across, dtype=torch.int32, device=a.device)
    _launch(unit, (a, b), c, every, scales, out, flags, regular=True)
    if bool(flags.any()):
        _launch(unit, (a, b), c, every, scales, out, flags, regular=False)
    return out, torch.zeros_like(flags)


def _launch(unit: Any, operands, c, every: int | None, scales, out, flags, regular: bool) -> None:
    """Compute all tiles by the Programs that leave out rare cases, or the flagged tiles by the full Programs."""
    plan, (batch, m, k), n = unit.plan, operands[0].shape, out.shape[2]
    programs, kernel = plan.constants["PROGRAMS"], plan.constants["PROGRAMS"].kernel
    step = kernel.step
    if plan.low.scale_format is None and kernel.spec.idle(kernel.formats):
        k += -k % step  # zeros that fill the last pass change nothing, and one kernel runs every length
    first = min(step, k) if kernel.formats[2] != kernel.formats[3] else 0
    passes, last = -(-(k - first) // step), (k - first) % step
    taken, lines = programs.chain(regular, first, last)
    arguments: dict[str, Any] = {}
    tiles = []
    for side, codes, of, tile in zip(taken, operands, scales, unit.tile, strict=True):
        words, longs, special, count = _prepared(unit, side, codes, of, tile, k)
        arguments |= {f"{side.side}_words": words, f"{side.side}_longs": longs, f"{side.side}_special": special}
        tiles.append(count)
    strides = (0, 0, 0) if c is None else c.stride()
    arguments |= {
        "c": None if c is None else view_of(c), "out": view_of(out), "flags": view_of(flags), "m": m, "n": n, "k": k,
        "passes": passes, "chain": max(passes if every is None else every // step, 1), "row_tiles": tiles[0],
        "column_tiles": tiles[1], "c_batch": strides[0], "c_row": strides[1], "c_column": strides[2],
    }  # fmt: skip
    constants = {
        "FIRST": lines[0], "WHOLE": lines[1], "LAST": lines[2], "TERMS": step, "A_COUNTS": tuple(taken[0].counts),
        "B_COUNTS": tuple(taken[1].counts), "C_BITS": kernel.formats[2].bits, "NAN": FORMATS["fp32"].nan_encoding(),
        "CLAMPS": unit.target.backend == "cuda", "AGAIN": not regular, "PROMOTES": every is not None, "EACH": unit.each,
        "THREADS": (unit.target.warp // 8, 8), "WARPS": unit.warps,
    }  # fmt: skip
    unit.launch(TritonLaunch("program_passes", arguments, constants, batch * math.prod(tiles), math.prod(unit.warps)))


def _prepared(unit: Any, side: _Side, codes, scales, tile: int, padded: int):
    """Return words, 64-bit numbers and special rows of an operand, as views or None, and the number of tiles."""
    import torch

    low, (batch, rows, k) = unit.plan.low, codes.shape
    tiles, strides = -(-rows // tile), codes.stride()
    of_scales = (0, 0, 0) if scales is None else scales.stride()
    size = batch * tiles * padded * tile

    def empty(count: int, dtype):
        return view_of(torch.empty(size * count, dtype=dtype, device=codes.device)) if count else None

    words, longs = empty(side.counts[0], torch.int32), empty(side.counts[1], torch.int64)
    special = None
    if side.prepared.seldom is not None:
        special = view_of(torch.zeros(batch * tiles * tile, dtype=torch.int32, device=codes.device))
    arguments = {
        "codes": view_of(codes), "words": words, "longs": longs, "special": special,
        "scales": None if scales is None else view_of(scales), "rows": rows, "k": k, "code_batch": strides[0],
        "code_row": strides[1], "code_k": strides[2], "scale_batch": of_scales[0], "scale_row": of_scales[1],
        "scale_k": of_scales[2], "row_tiles": tiles, "padded_k": padded,
    }  # fmt: skip
    fmt = low.a_format if side.side == "a" else low.b_format
    scale = None if low.scale_format is None else (low.block_size or 1, low.scale_format.bits)
    constants = {
        "LINE": side.line(), "BITS": fmt.bits, "SCALE": scale, "PLACES": tuple(side.places), "COUNTS": tuple(side.counts),
        "TILE": tile, "LANES": unit.target.warp, "CLAMPS": unit.target.backend == "cuda",
    }  # fmt: skip
    if side.places or special is not None:
        unit.launch(TritonLaunch("pack_program", arguments, constants, batch * tiles * padded, 1))
    return words, longs, special, tiles
