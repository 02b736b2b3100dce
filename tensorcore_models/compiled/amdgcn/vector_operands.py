"""Reads operands and writes results of vector instructions: a value for each active lane, with modifiers, SDWA, DPP and
expressions."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from .. import floats
from ..errors import KernelFault, Refused
from ..isa.meaning import Meaning
from ..isa.operations import function_of, saturated
from ..isa.types import FORMATS, array_type, size_of
from .lanes import moved_lanes
from .scalar_operands import NUMBERS, Operation, ScalarSource, joined, unknown
from .syntax import AMDInstruction, Modified, Operand, RegisterRange

QUIET = {"fp16": 0x7E00, "fp32": 0x7FC00000, "fp64": 0x7FF8 << 48}
#: Parts of a register that SDWA selects: first byte and number of bytes.
PARTS = {
    "DWORD": (0, 4), "WORD_0": (0, 2), "WORD_1": (2, 2), "BYTE_0": (0, 1), "BYTE_1": (1, 1), "BYTE_2": (2, 1),
    "BYTE_3": (3, 1),
}  # fmt: skip


def part_mask(first: int, count: int) -> int:
    """Return the mask of some bytes of a register."""
    return (1 << 8 * count) - 1 << 8 * first & 0xFFFFFFFF


class VectorSource:
    """`VectorSource` is an operand of a vector instruction: a value for each active lane.

    Parameters
    ----------
    operand, kind, ins
        The operand, its type, and the instruction.
    part : tuple of two int, optional
        First byte and number of bytes of the register that are read; the rest is filled with zeros, or the sign.
    """

    def __init__(self, operand: Operand, kind: str, ins: AMDInstruction, part=None):
        self.kind, self.size, self.ins, self.part = kind, size_of(kind), ins, part
        self.negated = self.absolute = self.extended = False
        if isinstance(operand, Modified):
            self.negated, self.absolute, self.extended = operand.negated, operand.absolute, operand.extended
            operand = operand.operand
        if (self.negated or self.absolute) and kind not in NUMBERS or self.extended and part is None:
            raise unknown(ins, f"changes the sign of an operand of type {kind}, which is not modelled")
        self.dtype = array_type(kind)
        self.scalar: ScalarSource | None = None
        self.first, self.count = 0, max(1, self.size // 4)
        self.used = part_mask(*(part or (0, min(self.size, 4))))
        if isinstance(operand, RegisterRange) and operand.vector:
            if operand.count != self.count or kind == "pred":
                raise unknown(ins, f"needs an operand of {self.count} vector register{'s' * (self.count > 1)}")
            self.first = operand.first
        elif kind == "pred":
            self.scalar = ScalarSource(operand, "b64", ins)
        elif self.size < 4 and isinstance(operand, RegisterRange) or part is not None:
            self.scalar = ScalarSource(operand, "b32", ins)
        else:
            self.scalar = ScalarSource(operand, kind, ins)

    def read(self, machine, waves, lanes, moved=None) -> tuple[Any, np.ndarray | None]:
        """Return the values over the active lanes, or one number, and the expressions of their bytes or None.

        `moved` holds the lanes whose registers are read instead of the lanes' own, and a mask of the lanes that read (the other
        lanes get 0).
        """
        if moved is not None:
            value, owners = self._moved(machine, waves, *moved)
        elif self.scalar is None:
            value, owners = self._registers(machine, waves, lanes)
        else:
            value, owners = self._scalars(machine, waves, lanes)
        if self.kind == "pred":
            return value, None
        if self.part is not None or self.size < 4 and np.asarray(value).dtype.itemsize == 4:
            value, owners = self._taken(value, owners)
        if value.dtype != self.dtype:
            value = value.view(self.dtype)
        if self.negated or self.absolute:
            value, owners = self._signed(machine, value, owners)
        return value, owners

    def _registers(self, machine, waves, lanes):
        value = machine.read_vector(self.first, waves, lanes, self.used)
        if self.count == 2:
            high = machine.read_vector(self.first + 1, waves, lanes)
            value = value.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
        if machine.trace is None:
            return value, None
        return value, joined(
            [machine.vectors.read_ids(self.first + i, lanes) for i in range(self.count)], 4 * self.count
        )

    def _moved(self, machine, waves, held, valid):
        """Return the registers of other lanes, 0 for a lane that reads none."""
        found, owners = self._registers(machine, waves, held[valid])
        value = np.zeros(len(held), found.dtype)
        value[valid] = found
        if owners is not None:
            whole = np.zeros((len(held), owners.shape[1]), np.int64)
            whole[valid] = owners
            owners = whole
        return value, owners

    def _scalars(self, machine, waves, lanes):
        value = self.scalar.read(machine, waves)
        if self.kind == "pred":
            words = np.ascontiguousarray(
                np.broadcast_to(value, (len(machine.waves.all_lanes if waves is None else waves),))
            )
            held = np.zeros(machine.threads.count, bool)
            held[machine.lanes_of_mask(words.view(np.uint32).reshape(-1, 2), waves)] = True
            return (held if lanes is None else held[lanes]), None
        owners = None
        if machine.trace is not None and (own := self.scalar.owners(machine, waves)) is not None:
            owners = spread_owners(machine, own, waves, lanes)
        return machine.spread(value, waves, lanes), owners

    def _taken(self, value, owners):
        """Return a part of the register, extended to the operand's type."""
        first, count = self.part or (0, self.size)
        word = np.asarray(value, np.uint32) >> np.uint32(8 * first)
        if self.extended and count < 4:
            word = word.astype(f"i{count}").astype(np.int32).view(np.uint32)
        elif count < 4:
            word = word & np.uint32((1 << 8 * count) - 1)
        if owners is not None:
            kept = owners[:, first : first + count]
            owners = np.pad(kept, ((0, 0), (0, self.size - count))) if count < self.size else kept[:, : self.size]
        return (word if self.size == 4 else word.astype(f"u{self.size}")), owners

    def _signed(self, machine, value, owners):
        sign = value.dtype.type(1 << (8 * self.size - 1))
        name = "".join(("-" * self.negated, "abs" * self.absolute))
        changed = value
        if self.absolute:
            changed = changed & ~sign
        if self.negated:
            changed = changed ^ sign
        if owners is not None:
            m = Meaning("abs" if self.absolute else "neg", self.kind, (self.kind,), options=(name,), nan="quiet")
            owners = machine.trace.operation(name, self.ins.line, [value], [owners], len(owners), self.size, m)
        return changed, owners


def spread_owners(machine, owners: np.ndarray, waves, lanes) -> np.ndarray:
    """Return the expressions of wave values as those of lane values."""
    whole = np.zeros((machine.waves.count, owners.shape[1]), np.int64)
    whole[slice(None) if waves is None else waves] = owners
    each = machine.threads.all_lanes if lanes is None else lanes
    return whole[each // machine.threads.warp]


class VectorTarget:
    """`VectorTarget` holds the registers of a vector result.

    Narrow results are extended with zeros unless `keeps` says otherwise.

    Parameters
    ----------
    operand, kind, ins
        The operand, the result's type, and the instruction.
    part : tuple of two int, optional
        First byte and number of bytes of the register that the result goes to.
    unused : str
        Treatment of the other bytes: "PAD" (zeros), "SEXT" (the sign) or "PRESERVE".
    """

    def __init__(self, operand: Operand, kind: str, ins: AMDInstruction, part=None, unused: str = "PAD"):
        self.size = size_of(kind)
        self.count = max(1, self.size // 4)
        if not isinstance(operand, RegisterRange) or not operand.vector or operand.count != self.count:
            raise unknown(ins, f"needs {self.count} vector register{'s' * (self.count > 1)} for its result")
        self.first = operand.first
        self.part = part or ((0, self.size) if self.size < 4 else None)
        self.unused = unused
        if unused == "SEXT" or self.part is not None and self.part[1] > self.size:
            raise unknown(ins, "writes a part of its register with a destination select that is not modelled")

    def write(self, machine, value, waves, lanes, ids) -> None:
        """Write values over the active lanes, or one number for all lanes."""
        value = np.asarray(value)
        if self.part is not None:
            self._write_part(machine, value, waves, lanes, ids, *self.part)
            return
        if self.count == 1:
            machine.write_vector(self.first, value if value.dtype.itemsize > 4 else _word(value), waves, lanes, ids)
            return
        bits = value.view(np.uint64) if value.dtype.itemsize == 8 else value.astype(np.uint64)
        for place in range(2):
            own = None if ids is None else ids[:, 4 * place : 4 * place + 4]
            part = (bits >> np.uint64(32 * place)).astype(np.uint32)
            machine.write_vector(self.first + place, part, waves, lanes, own)

    def _write_part(self, machine, value, waves, lanes, ids, first: int, count: int) -> None:
        """Write the result to its part of the register; preserved bytes that nobody wrote stay unwritten."""
        mask = np.uint32(part_mask(first, count))
        word = _word(value) << np.uint32(8 * first) & mask
        before: Any = None
        absent: Any = None
        if self.unused == "PRESERVE":
            absent = machine.vectors.unwritten(self.first, lanes)
            with machine.vectors.unchecked() if absent is not None else nullcontext():
                word = machine.read_vector(self.first, waves, lanes) & ~mask | word
            before = machine.vectors.read_ids(self.first, lanes) if machine.trace is not None else None
        if ids is not None or before is not None:
            length = len(ids) if ids is not None else len(before)
            whole = np.zeros((length, 4), np.int64) if before is None else before.copy()
            whole[:, first : first + count] = 0 if ids is None else ids[:, :count]
            ids = whole
        machine.write_vector(self.first, word, waves, lanes, ids)
        if absent is not None:
            machine.vectors.forget(self.first, lanes, absent & ~mask)


def _word(value: np.ndarray) -> np.ndarray:
    """Return the 32-bit register word of a value, zero-extended."""
    if value.dtype.itemsize == 4 and value.dtype.kind in "ui":
        return value.view(np.uint32)
    return (
        value.view(f"u{value.dtype.itemsize}").astype(np.uint32) if value.dtype.kind == "i" else value.astype(np.uint32)
    )


#: 16-bit instructions that keep the upper half of their register on this generation; others clear it (LLVM, GCNSubtarget).
KEEPING = {"v_fma_f16", "v_mad_u16", "v_mad_i16", "v_div_fixup_f16", "v_fma_mixlo_f16", "v_fma_mixhi_f16"}


def vector_sources(ins: AMDInstruction, operands, kinds) -> list[VectorSource]:
    """Return the operands of a vector instruction, each with the part and modifiers that its encoding selects."""
    found, selected = [], ins.modifiers.get("op_sel", [])
    if ins.modifiers.keys() - {"op_sel", "clamp"} and ins.encoding not in ("sdwa", "dpp"):
        raise unknown(ins, f"with {', '.join(sorted(ins.modifiers))} is not modelled")
    for place, (operand, kind) in enumerate(zip(operands, kinds, strict=True)):
        part = None
        if ins.encoding == "sdwa" and kind != "pred":
            word = ins.modifiers.get(f"src{place}_sel", "DWORD")
            part = PARTS.get(word)
            if part is None or size_of(kind) > 4:
                raise unknown(ins, f"selects {word}, which is not modelled")
            part = None if part == (0, 4) else part
        elif place < len(selected) and selected[place]:
            if size_of(kind) != 2:
                raise unknown(ins, "selects a half of an operand that is not 16 bits wide")
            part = (2, 2)
        found.append(VectorSource(operand, kind, ins, part))
    return found


def vector_target(ins: AMDInstruction, operand: Operand, kind: str, sources: int) -> VectorTarget:
    """Return the target registers of a vector instruction."""
    if ins.encoding == "sdwa":
        part = PARTS.get(ins.modifiers.get("dst_sel", "DWORD"))
        unused = str(ins.modifiers.get("dst_unused", "UNUSED_PAD")).removeprefix("UNUSED_")
        if part == (0, 4):
            return VectorTarget(operand, kind, ins)
        if part is None:
            raise unknown(ins, "has a destination select that is not modelled")
        return VectorTarget(operand, kind, ins, part, unused)
    selected = ins.modifiers.get("op_sel", [])
    high = len(selected) > sources and bool(selected[sources])
    if high or size_of(kind) == 2 and (ins.name in KEEPING or any(selected)):
        return VectorTarget(operand, kind, ins, (2 if high else 0, 2), "PRESERVE")
    return VectorTarget(operand, kind, ins)


def active(operation: Callable) -> Operation:
    """Return the operation of a vector instruction: skipped if EXEC has no lane; faults carry their thread's name."""

    def run(machine, waves):
        lanes = machine.lanes(waves)
        if lanes is not None and not len(lanes):
            return None
        try:
            return operation(machine, waves, lanes)
        except KernelFault as fault:
            raise machine.of_lane(fault, lanes) from None

    return run


def settled(machine, ins: AMDInstruction, bits: np.ndarray, fmt: str) -> np.ndarray:
    """Return floating-point results, clamped if the instruction asks for that; refuse NaN, because its payload is not
    published."""
    bits = np.asarray(bits)
    nan = floats.is_nan(bits, fmt)
    if ins.modifiers.get("clamp"):
        if nan.any() and not machine.launch.kernel.facts.get("dx10_clamp", 1):
            raise Refused(f"{ins.opcode} clamps NaN without DX10_CLAMP, which is not modelled", ins.line)
        return floats.saturated(bits, fmt)  # NaN becomes 0 (DX10_CLAMP)
    if nan.any():
        if machine.unpublished != "nearest":
            raise Refused(
                f"{ins.opcode} gives NaN, whose payload is not published; run with unpublished='nearest' for the quiet NaN",
                ins.line,
            )
        machine.assume("NaN results of vector instructions are the quiet NaN without payload; AMD publishes no payload")
        bits = np.where(nan, bits.dtype.type(QUIET[fmt]), bits)
    return bits


def vector_operation(ins: AMDInstruction, m: Meaning) -> Operation:
    """Return the operation of an elementwise vector instruction whose first operand is the result."""
    if len(ins.operands) != 1 + len(m.sources):
        raise unknown(ins, f"has {len(ins.operands)} operands, expected {1 + len(m.sources)}")
    sources = vector_sources(ins, ins.operands[1:], m.sources)
    target = vector_target(ins, ins.operands[0], m.result, len(m.sources))
    fmt = FORMATS[m.result] if m.floating and m.result in NUMBERS else None
    function = None if m.floating else function_of(m)
    if ins.modifiers.get("clamp") and fmt is None:
        if m.operation not in ("add", "sub"):
            raise unknown(ins, "with clamp is not modelled")
        function = saturated(function_of(m), array_type(m.result))
    move = moved_lanes(ins) if ins.encoding == "dpp" else None
    if move is not None and sources[0].scalar is not None:
        raise unknown(ins, "moves lanes of an operand that is no vector register")

    def run(machine, waves, lanes):
        moved = None
        if move is not None:
            lanes, *moved = move.plan(machine, lanes)
        read = [source.read(machine, waves, lanes, moved if i == 0 else None) for i, source in enumerate(sources)]
        values, settings = [value for value, _ in read], m
        if m.floating:
            settings = machine.mode_of(waves).under(m)
        found = (function or function_of(settings))(*values)
        if fmt is not None:
            found = settled(machine, ins, found, fmt)
        ids = None
        if machine.trace is not None:
            told = replace(settings, saturate=bool(ins.modifiers.get("clamp")))
            owners = [owner for _, owner in read]
            ids = machine.trace.elementwise(named(ins, m, settings), ins.line, told, values, owners)
        target.write(machine, found, waves, lanes, ids)

    return active(run)


def side_by_side(owners: list, size: int) -> np.ndarray | None:
    """Return the expressions of neighbouring numbers of `size` bytes; None if no byte depends on an input."""
    if all(own is None for own in owners):
        return None
    count = next(len(own) for own in owners if own is not None)
    return np.concatenate([np.zeros((count, size), np.int64) if own is None else own[:, :size] for own in owners], 1)


def named(ins: AMDInstruction, m: Meaning, settings: Meaning) -> str:
    """Return an instruction's name with its clamp and the settings of the MODE register that change its result."""
    words = ["clamp"] * bool(ins.modifiers.get("clamp"))
    words += [settings.rounding] * (settings.rounding != m.rounding)
    kinds = {"in": m.sources[0], "out": m.result}
    words += [
        f"flush_{side}_{FORMATS[kind]}"
        for (side, kind), flushes in zip(kinds.items(), settings.flush, strict=True)
        if flushes
    ]
    return ".".join([ins.name, *words])
