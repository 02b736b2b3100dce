"""mma.sync on the package's bit-exact instructions, all warps at once (PTX ISA 9.1, 9.7.15)."""

import re
from dataclasses import dataclass

import numpy as np

from ...hardware.cuda.layouts import FP4_BYTE_SHIFT, MmaLayout, mma_layout
from .. import fragments
from .decode import Operation, id_reader, reader, unknown
from .movement import items
from .syntax import PTXInstruction, Sink
from .warps import warp_lanes, whole_warps

#: PTX's names of formats.
FORMATS = {
    "f64": "fp64", "f32": "fp32", "tf32": "tf32", "f16": "fp16", "bf16": "bf16", "e4m3": "e4m3fn", "e5m2": "e5m2",
    "e3m2": "e3m2", "e2m3": "e2m3", "e2m1": "e2m1", "s32": "s32", "s8": "s8", "u8": "u8", "s4": "s4", "u4": "u4",
}  # fmt: skip


@dataclass(frozen=True)
class _Shape:
    """The parts of the opcode."""

    sizes: tuple[int, int, int]
    formats: tuple[str, str, str, str]
    name: str
    layout: MmaLayout


def _shape(ins: PTXInstruction) -> _Shape:
    words = ins.modifiers
    sizes = next((re.fullmatch(r"m(\d+)n(\d+)k(\d+)", w) for w in words if re.fullmatch(r"m\d+n\d+k\d+", w)), None)
    rest = set(words[: words.index(sizes.group())] + words[words.index(sizes.group()) + 1 : -4]) if sizes else {""}
    if words[0] != "sync" or sizes is None or rest - {"sync", "aligned", "row", "col", "satfinite", "kind::f8f6f4"}:
        raise unknown(ins)
    if [w for w in words if w in ("row", "col")] != ["row", "col"] or any(w not in FORMATS for w in words[-4:]):
        raise unknown(ins)
    d, a, b, c = words[-4:]
    shape = int(sizes[1]), int(sizes[2]), int(sizes[3])
    name = f"mma.{sizes.group()}.{d}.{a}.{b}.{c}" + (".satfinite" if "satfinite" in words else "")
    formats = FORMATS[a], FORMATS[b], FORMATS[c], FORMATS[d]
    try:
        return _Shape(shape, formats, name, mma_layout(shape, *formats))
    except (ValueError, KeyError):
        raise unknown(ins) from None


def _narrow(values: np.ndarray, fmt: str, spread: bool) -> np.ndarray:
    """Encodings of e2m1 from the bytes of the f8f6f4 kind."""
    return values >> FP4_BYTE_SHIFT & 15 if spread and fmt == "e2m1" else values


def build(ins: PTXInstruction) -> Operation:
    """The operation of mma.sync."""
    shape = _shape(ins)
    layout, parts = shape.layout, [items(operand) for operand in ins.operands]
    if len(parts) != 4:
        raise unknown(ins)
    counts = [f.registers for f in (layout.d, layout.a, layout.b, layout.c)]
    if [len(part) for part in parts] != counts:
        raise unknown(ins, f"has {[len(p) for p in parts]} registers, expected {counts}")
    kinds = [f"b{f.register_bits}" for f in (layout.a, layout.b, layout.c)]
    reads = [[reader(x, kind, ins) for x in part] for part, kind in zip(parts[1:], kinds, strict=True)]
    owners = [[id_reader(x, kind) for x in part] for part, kind in zip(parts[1:], kinds, strict=True)]
    frags, spread = (layout.a, layout.b, layout.c), "kind::f8f6f4" in ins.modifiers

    def run(machine, lanes):
        row = machine.matrix_row(shape.name, ins)
        warps = len(warp_lanes(machine, lanes, ins))
        size = warps * 32
        found = []
        for each, fragment, fmt in zip(reads, frags, shape.formats, strict=False):
            words = [np.broadcast_to(read(machine, lanes), (size,)) for read in each]
            found.append(_narrow(fragments.matrices(words, fragment), fmt, spread))
        tiles = [np.ascontiguousarray(x.reshape(-1, *x.shape[2:])) for x in found]
        result = row.mma_bits(*tiles)
        ids = None
        if machine.trace is not None:
            held = [
                fragments.element_ids([read(machine, lanes) for read in each], fragment, warps)
                for each, fragment in zip(owners, frags, strict=True)
            ]
            held = [None if x is None else x.reshape(-1, *x.shape[2:]) for x in held]
            ids = machine.trace.product(row, held, tiles, ins.line)
        write_tiles(machine, parts[0], layout.d, result.reshape(warps, *layout.d.shape), ids, lanes)

    return whole_warps(run)


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
