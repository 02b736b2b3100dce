"""Holds the state of some blocks of a grid while AMDGCN runs: registers of waves and lanes, memory, mode, outstanding accesses.

A wave has 64 lanes. It branches as a whole, and its EXEC register masks the lanes that a vector instruction acts on. So the
scheduler runs waves. All waves at one instruction run it together, on arrays over their active lanes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import numpy as np

from ...catalogue import get_instruction
from ...engines.instruction import Instruction as MatrixInstruction
from ..checks import NoChecks
from ..errors import KernelFault, KernelLimits, Refused
from ..isa.meaning import ROUNDED, Meaning
from ..isa.types import FORMATS
from ..memory import BlockMemory, GlobalMemory
from ..registers import Registers
from ..threads import Threads
from .counters import Counters, NoCounters
from .races import WaveRaces
from .syntax import EXEC, SCALARS, SCC, VECTORS, WINDOWS, AMDInstruction, AMDKernel, register_name

WAVE = 64
LDS_WINDOW, SCRATCH_WINDOW = WINDOWS["src_shared_base"], WINDOWS["src_private_base"]
WINDOW = 1 << 32
_ALL = np.uint32(0xFFFFFFFF)


@dataclass(frozen=True)
class Processor:
    """`Processor` holds the properties of a processor: architecture of its matrix instructions in the catalogue ("" if none),
    bytes of LDS."""

    unit: str
    lds: int


#: LLVM, "User Guide for AMDGPU Backend", processors; AMD CDNA3 and CDNA4 ISA, "LDS".
TARGETS = {"gfx942": Processor("cdna3", 64 << 10), "gfx950": Processor("", 160 << 10)}


def target_of(name: str) -> Processor:
    """Return the properties of a processor."""
    if name not in TARGETS:
        raise Refused(f"unknown processor {name}; known: {', '.join(TARGETS)}")
    return TARGETS[name]


@dataclass(frozen=True)
class FloatMode:
    """`FloatMode` is the MODE register: rounding and flushing of floating-point instructions (CDNA3 ISA, "MODE register").

    Parameters
    ----------
    bits : int
        Value of the register.
    """

    bits: int

    def rounding(self, fmt: str) -> str:
        """Return the rounding mode of operations in a format."""
        return ("rne", "ru", "rd", "rz")[self.bits >> (0 if fmt == "fp32" else 2) & 3]

    def flushes(self, fmt: str) -> tuple[bool, bool]:
        """Return whether subnormal operands and results of a format are made zero."""
        allowed = self.bits >> (4 if fmt == "fp32" else 6) & 3
        return not allowed & 1, not allowed & 2

    @property
    def quiets(self) -> bool:
        """Return whether minimum and maximum quiet a signalling NaN (IEEE mode)."""
        return bool(self.bits >> 9 & 1)

    @cache  # noqa: B019  # modes are few, and kept anyway
    def under(self, m: Meaning) -> Meaning:
        """Return the meaning of an operation on numbers in this mode.

        Raises
        ------
        Refused
            If the operation converts to f16 and FP16_OVFL asks for saturation.
        """
        source, target = FORMATS.get(m.sources[0]), FORMATS.get(m.result)
        if self.bits >> 23 & 1 and target == "fp16" and m.operation == "convert":
            raise Refused("conversions to f16 with FP16_OVFL are not modelled")
        extreme = m.operation in ("min", "max", "med3")
        options = (*m.options, "quiets") if extreme and self.quiets else m.options
        before = source is not None and self.flushes(source)[0]
        if extreme or "whole" in m.options or target is None:
            return replace(m, flush=(before, False), options=options)
        rounds = m.operation in (*ROUNDED, "scaled_by_power")
        rounding = self.rounding(target) if rounds else m.rounding
        return replace(m, rounding=rounding, flush=(before, self.flushes(target)[1]), options=options)


float_mode = cache(FloatMode)


@dataclass
class AMDLaunch:
    """`AMDLaunch` holds the data of a launch that are the same for all its blocks."""

    kernel: AMDKernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    memory: GlobalMemory
    arguments: int
    argument_words: np.ndarray
    unit: str
    lds: int
    limits: KernelLimits
    checks: bool = True
    unpublished: str = "refuse"
    trace: object | None = None
    assumptions: dict[str, None] = field(default_factory=dict)


class Waves:
    """`Waves` holds the waves of some blocks, which a scheduler runs.

    Parameters
    ----------
    threads : Threads
        Lanes of these waves.
    """

    live = None

    def __init__(self, threads: Threads):
        self.threads = threads
        self.count = threads.count // WAVE
        self.all_lanes = np.arange(self.count)

    @cached_property
    def row(self) -> np.ndarray:
        """Return the row of each wave's block among the blocks held here."""
        return self.all_lanes // self.threads.warps_per_block

    def name(self, wave: int) -> str:
        """Return the name of a wave for messages."""
        block = self.threads.name(wave * WAVE).partition(" of ")[2]
        return f"wave {wave % self.threads.warps_per_block} of {block}"


#: Rows of the catalogue, by architecture and name.
_ROWS: dict[tuple[str, str], MatrixInstruction] = {}


class AMDMachine:
    """`AMDMachine` holds the state of consecutive blocks.

    Parameters
    ----------
    launch : AMDLaunch
        Data that all blocks share.
    first, count : int
        Number of the first block, and how many blocks there are.
    """

    def __init__(self, launch: AMDLaunch, first: int, count: int):
        self.launch, self.trace, self.unpublished = launch, launch.trace, launch.unpublished
        self.threads = Threads(launch.grid, launch.block, first, count, WAVE)
        self.waves = Waves(self.threads)
        options = {"checks": launch.checks, "traced": launch.trace is not None}
        names = [register_name(False, i) for i in range(SCALARS)]
        self.scalars = Registers([32] * SCC + [1], names, self.waves.count, **options)
        names = [register_name(True, i) for i in range(VECTORS)]
        self.vectors = Registers([32] * VECTORS, names, self.threads.count, **options)
        self.memory, self.events = launch.memory, 0
        self.shared = BlockMemory("local (LDS)", count, launch.lds, 0, **options)
        scratch = launch.kernel.facts.get("private_segment_fixed_size", 0)
        self.scratch = BlockMemory("scratch", self.threads.count, scratch, 0, **options) if scratch else None
        self.arrived = np.zeros(count, np.int64)
        self.phase = np.zeros(count, np.int64)
        self.seen_phase = np.zeros(self.waves.count, np.int64)
        self.alive = np.full(count, self.threads.warps_per_block)
        self.counters: NoCounters = Counters(self) if launch.checks else NoCounters()
        self.checks: NoChecks = WaveRaces(self, narrowest_access(launch.kernel)) if launch.checks else NoChecks()
        self.mode = np.full(self.waves.count, initial_mode(launch.kernel.facts))
        self._lanes: dict[bytes | None, np.ndarray | None] = {}
        self._start()

    # -- the state in which a kernel starts (LLVM, "Initial Kernel Execution State") ---------------------------------------
    def _start(self) -> None:
        facts, at, threads = self.launch.kernel.facts, 0, self.threads

        def pair(value: int) -> None:
            nonlocal at
            for part in (value & 0xFFFFFFFF, value >> 32):
                self.scalars.write(at, np.uint32(part), None)
                at += 1

        given = {"private_segment_buffer": 4, "dispatch_ptr": 2, "queue_ptr": 2, "kernarg_segment_ptr": 2, "dispatch_id": 2,
                 "flat_scratch_init": 2, "private_segment_size": 1}  # fmt: skip
        for name, size in given.items():
            if not facts.get(f"user_sgpr_{name}"):
                continue
            if name == "kernarg_segment_ptr":
                pair(self.launch.arguments)
            else:
                at += size  # the memory it points to is not modelled, so that reading it is a fault
        words = self.launch.argument_words[facts.get("user_sgpr_kernarg_preload_offset", 0) :]
        for word in words[: facts.get("user_sgpr_kernarg_preload_length", 0)]:
            self.scalars.write(at, np.uint32(word), None)
            at += 1
        at = max(at, facts.get("user_sgpr_count", at))
        for axis, name in enumerate("xyz"):
            if facts.get(f"system_sgpr_workgroup_id_{name}", int(axis == 0)):
                self.scalars.write(at, threads.block_coordinate(axis)[::WAVE], None)
                at += 1
        packed = threads.thread(0) | threads.thread(1) << np.uint32(10) | threads.thread(2) << np.uint32(20)
        self.vectors.write(0, packed, None)
        inside = (threads.in_block < threads.per_block).reshape(-1, WAVE)
        whole = np.packbits(inside, axis=1, bitorder="little").view(np.uint32)
        for half in (0, 1):
            self.scalars.write(EXEC + half, np.ascontiguousarray(whole[:, half]), None)

    def assume(self, what: str) -> None:
        """Note an assumption on which the result rests."""
        self.launch.assumptions[what] = None

    # -- lanes -------------------------------------------------------------------------------------------------------------
    def lanes(self, waves: np.ndarray | None) -> np.ndarray | None:
        """Return the active lanes of waves, where EXEC is set; None if all lanes are active."""
        key = None if waves is None else waves.tobytes()
        if key not in self._lanes:
            self._lanes[key] = self._active(waves)
        return self._lanes[key]

    def _active(self, waves: np.ndarray | None) -> np.ndarray | None:
        low, high = (self.scalars.read(EXEC + half, waves) for half in (0, 1))
        if waves is None and (low == _ALL).all() and (high == _ALL).all():
            return None
        return self.lanes_of_mask(np.stack([low, high], 1), waves)

    def lanes_of_mask(self, words: np.ndarray, waves: np.ndarray | None) -> np.ndarray:
        """Return the numbers of the lanes that masks, shape (waves, 2), name."""
        bits = np.unpackbits(np.ascontiguousarray(words, np.uint32).view(np.uint8), axis=1, bitorder="little")
        row, lane = np.nonzero(bits)
        return (row if waves is None else waves[row]) * WAVE + lane

    def every_lane(self, waves: np.ndarray | None) -> np.ndarray | None:
        """Return all lanes of waves, whatever EXEC says."""
        return None if waves is None else (waves[:, None] * WAVE + np.arange(WAVE)).reshape(-1)

    def spread(self, values: np.ndarray, waves: np.ndarray | None, lanes: np.ndarray | None):
        """Return values of waves as values of lanes; one number if all waves have the same value."""
        if values.ndim == 0:
            return values[()]
        if len(values) == 1 or (values == values[0]).all():
            return values[0]
        if lanes is None:
            return np.repeat(values, WAVE)
        whole = values
        if waves is not None:
            whole = np.zeros(self.waves.count, values.dtype)
            whole[waves] = values
        return whole[lanes // WAVE]

    def mask_words(self, held, waves: np.ndarray | None, lanes: np.ndarray | None) -> np.ndarray:
        """Return masks, shape (waves, 2), of truth values of lanes; the bits of lanes that do not run are 0."""
        whole = np.zeros(self.threads.count, bool)
        if lanes is None:
            whole[:] = held
        else:
            whole[lanes] = held
        words = np.packbits(whole.reshape(-1, WAVE), axis=1, bitorder="little").view(np.uint32)
        return words if waves is None else words[waves]

    # -- registers ---------------------------------------------------------------------------------------------------------
    def read_scalar(self, number: int, waves: np.ndarray | None) -> np.ndarray:
        """Return a scalar register of waves."""
        try:
            self.counters.demand_scalar(number, waves)
            return self.scalars.read(number, waves)
        except KernelFault as fault:
            raise self.of_wave(fault, waves) from None

    def write_scalar(self, number: int, values, waves: np.ndarray | None, ids: np.ndarray | None = None) -> None:
        """Write a scalar register of waves."""
        self.counters.demand_scalar(number, waves)
        self.scalars.write(number, np.asarray(values), waves, ids)
        if number in (EXEC, EXEC + 1):
            self._lanes.clear()

    def read_vector(
        self, number: int, waves: np.ndarray | None, lanes: np.ndarray | None, used: int = -1
    ) -> np.ndarray:
        """Return a vector register of lanes; the bits of the mask `used` must have been written."""
        self.counters.demand_vector(number, waves)
        return self.vectors.read(number, lanes, used)

    def write_vector(self, number: int, values, waves, lanes, ids: np.ndarray | None = None) -> None:
        """Write a vector register of lanes."""
        self.counters.demand_vector(number, waves)
        self.vectors.write(number, np.asarray(values), lanes, ids)

    def of_wave(self, fault: KernelFault, waves: np.ndarray | None) -> KernelFault:
        """Return a fault with the name of the wave in its message."""
        if fault.index is None:
            return fault
        wave = fault.index if waves is None else int(waves[fault.index])
        return KernelFault(f"{self.waves.name(wave)} {fault.what}", fault.line)

    def of_lane(self, fault: KernelFault, lanes: np.ndarray | None) -> KernelFault:
        """Return a fault with the name of the thread in its message."""
        if fault.index is None:
            return fault
        named = lanes if fault.lanes is None else fault.lanes
        lane = fault.index if named is None else int(named[fault.index])
        return KernelFault(f"{self.threads.name(lane)} {fault.what}", fault.line)

    def mode_of(self, waves: np.ndarray | None) -> FloatMode:
        """Return the MODE register of the waves that run together."""
        values = self.mode if waves is None else self.mode[waves]
        if (values != values[0]).any():
            raise Refused("waves with different MODE registers at one instruction are not modelled")
        return float_mode(int(values[0]))

    # -- matrix instructions and memory ------------------------------------------------------------------------------------
    def matrix_row(self, ins: AMDInstruction) -> MatrixInstruction:
        """Return the catalogue's row of a matrix instruction on this launch's unit; refuse the instruction by name if there is
        no row."""
        key = self.launch.unit, ins.name
        if key not in _ROWS:
            if not key[0]:
                raise Refused(
                    f"{ins.opcode}: the catalogue has no matrix instructions of this processor",
                    ins.line,
                )
            try:
                _ROWS[key] = get_instruction(*key)
            except ValueError:
                raise Refused(f"{ins.opcode} is not in the catalogue of {key[0]}", ins.line) from None
        return _ROWS[key]

    def scalar_places(self, addresses: np.ndarray, size: int, waves: np.ndarray | None, *, write: bool = False):
        """Return the memory and the flat places of scalar accesses, one for each wave."""
        try:
            return self.memory.space, self.memory.places(addresses, size, write=write, alignment=4)
        except KernelFault as fault:
            raise self.of_wave(fault, waves) from None

    def generic(self, addresses: np.ndarray, size: int, lanes, *, write: bool):
        """Return the memory and the flat places of accesses through generic (flat) addresses."""
        spaces: dict[str, Callable] = {
            "lds": lambda x: (x >= LDS_WINDOW) & (x < LDS_WINDOW + WINDOW),
            "scratch": lambda x: (x >= SCRATCH_WINDOW) & (x < SCRATCH_WINDOW + WINDOW),
        }
        for name, inside in spaces.items():
            held = inside(addresses)
            if held.all() and len(addresses):
                base = np.uint64(LDS_WINDOW if name == "lds" else SCRATCH_WINDOW)
                return self.local(name, addresses - base, size, lanes, write=write)
            if held.any():
                raise Refused("an access whose lanes address different memories through flat addresses is not modelled")
        return self.memory.space, self.memory.places(addresses, size, write=write, alignment=1)

    def local(self, name: str, addresses: np.ndarray, size: int, lanes, *, write: bool):
        """Return the memory and the flat places of accesses to LDS or scratch."""
        every = self.threads.all_lanes if lanes is None else lanes
        if name == "lds":
            return self.shared.space, self.shared.places(
                self.threads.row[every], addresses, size, write=write, alignment=1
            )
        if self.scratch is None:
            raise KernelFault("uses scratch memory, but its descriptor asks for none", index=0)
        return self.scratch.space, self.scratch.places(every, addresses, size, write=write, alignment=1)


def initial_mode(facts: dict[str, int]) -> int:
    """Return the MODE register that a kernel descriptor asks for."""
    fields = (("float_round_mode_32", 0, 0), ("float_round_mode_16_64", 2, 0), ("float_denorm_mode_32", 4, 0),
              ("float_denorm_mode_16_64", 6, 3), ("dx10_clamp", 8, 1), ("ieee_mode", 9, 1),
              ("fp16_overflow", 23, 0))  # fmt: skip
    return sum(facts.get(name, default) << shift for name, shift, default in fields)


def narrowest_access(kernel: AMDKernel) -> int:
    """Return the bytes of the narrowest access to local memory in the code, at most 4."""
    narrow = {"u8": 1, "i8": 1, "b8": 1, "u16": 2, "i16": 2, "b16": 2}
    found = [4]
    for ins in kernel.code:
        if ins.name.startswith("ds_"):
            found += [narrow[part] for part in ins.name.split("_") if part in narrow and "tr" not in ins.name]
        elif ins.name.startswith("flat_") or "_lds_" in ins.name:
            found.append(1)
    return min(found)
