"""Builds mma.sync on the package's bit-exact instructions, all warps at once (PTX ISA 9.1, 9.7.15)."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...hardware.cuda.layouts import FP4_BYTE_SHIFT, MmaLayout, mma_layout
from .. import fragments
from ..errors import Refused
from ..isa.types import MATRIX_FORMATS
from .decode import Operation, id_reader, reader, unknown
from .movement import items
from .syntax import PTXInstruction, Sink
from .warps import warp_lanes, whole_warps


@dataclass(frozen=True)
class ScaleVector:
    """`ScaleVector` describes the scales of a block-scaled instruction: type, number along k, products per scale."""

    kind: str
    count: int
    size: int


@dataclass(frozen=True)
class _Shape:
    """`_Shape` holds the parts of the opcode."""

    sizes: tuple[int, int, int]
    formats: tuple[str, str, str, str]
    name: str
    layout: MmaLayout
    scales: ScaleVector | None


_FLAGS = {"sync", "aligned", "row", "col", "satfinite", "kind::f8f6f4", "block_scale"}
#: Block-scaled kinds: number of scales along k if the instruction does not say it (PTX ISA 9.1, 9.7.15.3).
SCALED_KINDS = {"kind::mxf8f6f4": 1, "kind::mxf4": 2, "kind::mxf4nvf4": 0}


def block_scales(words: tuple[str, ...], kind: str, k: int) -> ScaleVector | None:
    """Return the scales that modifiers ask for; None if they ask for none, or the form is not modelled."""
    own = next((word for word in words if word in SCALED_KINDS), "")
    if not own or "block_scale" not in words:
        return None
    blocks = {f"scale_vec::{n}X": n for n in (1, 2, 4)} | {f"block{size}": k // size for size in (16, 32)}
    count = next((blocks[word] for word in words if word in blocks), SCALED_KINDS[own])
    return ScaleVector(kind, count, k // count) if count else None


def _shape(ins: PTXInstruction) -> _Shape:
    words = ins.modifiers
    sizes = next((found for word in words if (found := re.fullmatch(r"m(\d+)n(\d+)k(\d+)", word))), None)
    types = [word for word in words if word in MATRIX_FORMATS or word == "ue4m3"]
    scaled = "block_scale" in words
    if words[0] != "sync" or sizes is None or tuple(types) != words[-len(types) :] or len(types) != 4 + scaled:
        raise unknown(ins)
    d, a, b, c, *stype = types
    shape = int(sizes[1]), int(sizes[2]), int(sizes[3])
    scales = block_scales(words, stype[0], shape[2]) if scaled else None
    known = {
        *_FLAGS,
        sizes.group(),
        *(SCALED_KINDS if scaled else ()),
        *(f"scale_vec::{n}X" for n in (1, 2, 4) if scaled),
    }
    if (
        [w for w in words if w in ("row", "col")] != ["row", "col"]
        or set(words) - known - set(types)
        or scaled != bool(scales)
    ):
        raise unknown(ins)
    block = f".block{scales.size}" if scales else ""
    name = ".".join((f"mma.{sizes.group()}{block}", *types)) + (".satfinite" if "satfinite" in words else "")
    formats = MATRIX_FORMATS[a], MATRIX_FORMATS[b], MATRIX_FORMATS[c], MATRIX_FORMATS[d]
    try:
        return _Shape(shape, formats, name, mma_layout(shape, *formats, scaled), scales)
    except (ValueError, KeyError):
        raise unknown(ins) from None


def _narrow(values: np.ndarray, fmt: str, spread: bool) -> np.ndarray:
    """Return encodings of e2m1 from the bytes of the f8f6f4 kinds."""
    return values >> FP4_BYTE_SHIFT & 15 if spread and fmt == "e2m1" else values


def _scale_reader(ins: PTXInstruction, data, selector, scales: ScaleVector, side: str) -> Callable:
    """Return a function that reads the scales of A, shape (warps, 16, blocks), or of B, (warps, blocks, 8).

    Of each four threads, two hold the scales of rows g and g + 8 of A, and one holds those of column g of B. The selector gives
    the thread and the first byte of its register (PTX ISA 9.1, 9.7.15.3).
    """
    word = reader(items(data)[0], "b32", ins)
    byte, thread = (operand.value for operand in items(selector))
    step, most = {1: (1, 4), 2: (2, 4), 4: (4, 4)}[scales.count]
    if byte % step or byte >= most or thread >= (2 if side == "a" else 4):
        raise unknown(ins, f"selects its scales from byte {byte} of thread {thread}, which holds none")
    group = np.arange(8)
    lanes_of = (
        np.concatenate([4 * group + 2 * thread, 4 * group + 2 * thread + 1]) if side == "a" else 4 * group + thread
    )

    def read(machine, lanes, warps: int) -> np.ndarray:
        words = np.broadcast_to(word(machine, lanes), (32 * warps,)).reshape(warps, 32)[:, lanes_of]
        found = np.ascontiguousarray(words).view(np.uint8).reshape(warps, -1, 4)[:, :, byte : byte + scales.count]
        return found if side == "a" else found.swapaxes(1, 2)

    return read


def build(ins: PTXInstruction) -> Operation:
    """Return the operation of mma.sync."""
    shape = _shape(ins)
    layout, parts = shape.layout, [items(operand) for operand in ins.operands]
    if len(parts) != (8 if shape.scales else 4):
        raise unknown(ins)
    counts = [f.registers for f in (layout.d, layout.a, layout.b, layout.c)]
    if [len(part) for part in parts[:4]] != counts:
        raise unknown(ins, f"has {[len(p) for p in parts[:4]]} registers for D, A, B and C, expected {counts}")
    kinds = [f"b{f.register_bits}" for f in (layout.a, layout.b, layout.c)]
    reads = [[reader(x, kind, ins) for x in part] for part, kind in zip(parts[1:4], kinds, strict=True)]
    owners = [[id_reader(x, kind) for x in part] for part, kind in zip(parts[1:4], kinds, strict=True)]
    frags, spread = (layout.a, layout.b, layout.c), bool({"kind::f8f6f4", "kind::mxf8f6f4"} & {*ins.modifiers})
    scales = {}
    if shape.scales is not None:
        data = ins.operands[4:]
        scales["scale_a"], scales["scale_b"] = (
            _scale_reader(ins, data[at], data[at + 1], shape.scales, side) for side, at in (("a", 0), ("b", 2))
        )

    def run(machine, lanes):
        row = machine.matrix_row(shape.name, ins)
        warps = len(warp_lanes(machine, lanes, ins))
        size = warps * 32
        found = []
        for each, fragment, fmt in zip(reads, frags, shape.formats, strict=False):
            words = [np.broadcast_to(read(machine, lanes), (size,)) for read in each]
            found.append(_narrow(fragments.matrices(words, fragment), fmt, spread))
        tiles = [np.ascontiguousarray(x.reshape(-1, *x.shape[2:])) for x in found]
        result = row.mma_bits(*tiles, **{name: read(machine, lanes, warps) for name, read in scales.items()})
        ids = None
        if machine.trace is not None:
            refuse_scales_in_recipes(ins, bool(scales))
            held = [
                fragments.element_ids([read(machine, lanes) for read in each], fragment, warps)
                for each, fragment in zip(owners, frags, strict=True)
            ]
            held = [None if x is None else x.reshape(-1, *x.shape[2:]) for x in held]
            ids = machine.trace.product(row, held, tiles, ins.line)
        write_tiles(machine, parts[0], layout.d, result.reshape(warps, *layout.d.shape), ids, lanes)

    return whole_warps(run)


def refuse_scales_in_recipes(ins: PTXInstruction, scaled: bool) -> None:
    """Raise Refused if an instruction has block scales, because a recipe cannot hold them."""
    if scaled:
        raise Refused(f"{ins.opcode} has block scales, which a recipe cannot hold; run() can run the kernel", ins.line)


def write_tiles(machine, targets: tuple, fragment, result: np.ndarray, ids: np.ndarray | None, lanes) -> None:
    """Write matrices of shape (groups, blocks, rows, cols) to the registers that hold them."""
    words = fragments.registers_of(result, fragment)
    owners: list = [None] * len(words)
    if ids is not None:
        owners = fragments.register_ids(ids.reshape(*result.shape, -1), fragment)
    for register, word, own in zip(targets, words, owners, strict=True):
        if not isinstance(register, Sink):
            machine.registers.write(register.number, word, lanes, own)


BUILDERS = {"mma": build}
