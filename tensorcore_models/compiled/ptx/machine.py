"""Holds the state of some blocks of a grid while PTX runs: registers, memory spaces, tensor memory, barriers, special
registers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...catalogue import get_instruction
from ...engines.instruction import Instruction as MatrixInstruction
from ..checks import Checks, NoChecks
from ..errors import KernelFault, KernelLimits, Refused
from ..isa.types import TYPE_BITS
from ..memory import BlockMemory, GlobalMemory
from ..races import RaceChecks
from ..registers import Registers
from ..threads import Threads
from .pending import NoPending, WatchedRegisters, asynchronous_registers
from .syntax import Entry, Module, PTXInstruction, Variable

WARP = 32
#: First address of shared memory (the first KiB is the system's), and of the generic windows of shared, local, parameter
#: memory.
SHARED_BASE = 1024
SHARED_WINDOW, LOCAL_WINDOW, PARAM_WINDOW = 1 << 36, 1 << 37, 1 << 38
WINDOW = 1 << 32
#: Bits of a cluster's shared address that name the block: 1 + its rank in the cluster; 0 is the thread's own block.
RANK_SHIFT = 24
BARRIERS = 16


@dataclass(frozen=True)
class Target:
    """`Target` holds the properties of a .target: architecture of its matrix instructions, most bytes of shared memory of a
    block."""

    unit: str
    shared: int


#: Rows of the catalogue, by architecture and name.
_ROWS: dict[tuple[str, str], MatrixInstruction] = {}
_KIB = 1024
#: PTX ISA, .target; CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
TARGETS = {
    "sm_70": Target("volta", 96 * _KIB), "sm_75": Target("turing", 64 * _KIB), "sm_80": Target("ampere", 163 * _KIB),
    "sm_86": Target("ampere", 99 * _KIB), "sm_89": Target("ada", 99 * _KIB), "sm_90": Target("hopper", 227 * _KIB),
    "sm_100": Target("blackwell", 227 * _KIB), "sm_103": Target("blackwell", 227 * _KIB),
    "sm_120": Target("rtx_blackwell", 99 * _KIB), "sm_121": Target("rtx_blackwell", 99 * _KIB),
}  # fmt: skip


def target_of(name: str) -> Target:
    """Return the properties of a .target; sm_90a and sm_100f have those of their architecture."""
    plain = name.rstrip("af")
    if plain not in TARGETS:
        raise Refused(f"unknown .target {name}; known: {', '.join(TARGETS)}")
    return TARGETS[plain]


@dataclass
class KernelLaunch:
    """`KernelLaunch` holds the data of a launch that are the same for all its blocks."""

    module: Module
    entry: Entry
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    memory: GlobalMemory
    parameters: BlockMemory
    parameter_places: dict[str, int]
    global_variables: dict[str, int]
    unit: str
    shared: int
    limits: KernelLimits
    checks: bool = True
    unpublished: str = "refuse"
    trace: object | None = None
    tensor_maps: dict[int, object] = field(default_factory=dict)
    assumptions: dict[str, None] = field(default_factory=dict)


class PTXMachine:
    """`PTXMachine` holds the state of consecutive blocks.

    Parameters
    ----------
    launch : KernelLaunch
        Data that all blocks share.
    first, count : int
        Number of the first block, and how many blocks there are.
    """

    def __init__(self, launch: KernelLaunch, first: int, count: int):
        self.launch, self.trace, self.unpublished = launch, launch.trace, launch.unpublished
        self.threads = Threads(launch.grid, launch.block, first, count, WARP)
        widths = [register.bits for register in launch.entry.registers]
        names = [register.name for register in launch.entry.registers]
        options = {"checks": launch.checks, "traced": launch.trace is not None}
        self.registers, self.pending = Registers(widths, names, self.threads.count, **options), NoPending()
        if launch.checks and (numbers := asynchronous_registers(launch.entry)):
            traced = launch.trace is not None
            watched = WatchedRegisters(widths, names, self.threads.count, numbers, self.assume, traced=traced)
            self.registers, self.pending = watched, watched.pending
        self.memory, self.events = launch.memory, 0
        self.shared_places, static = place_variables(launch, "shared", SHARED_BASE)
        self.shared_size = max(launch.shared, static - SHARED_BASE)
        self.shared = BlockMemory("shared", count, self.shared_size, SHARED_BASE, **options)
        self.local_places, local = place_variables(launch, "local", 0)
        self.local = BlockMemory("local", self.threads.count, local, 0, **options) if local else None
        self.arrived = np.zeros((count, BARRIERS), np.int64)
        self.phase = np.zeros((count, BARRIERS), np.int64)
        self.wanted = np.full((count, BARRIERS), -1, np.int64)
        self.alive = np.full(count, self.threads.per_block)
        self.barrier_seen = np.zeros(self.threads.count, np.int64)
        clusters = max(1, count // self.cluster_size)
        self.cluster_arrived, self.cluster_phase = np.zeros(clusters, np.int64), np.zeros(clusters, np.int64)
        self.cluster_seen = np.zeros(self.threads.count, np.int64)
        self.threads_in_warps = np.bincount(
            (self.threads.all_lanes if self.threads.live is None else self.threads.live) // WARP,
            minlength=self.threads.count // WARP,
        )
        self.checks: NoChecks = NoChecks()
        if launch.checks:  # clusters share memory between blocks, which the clocks of the race checks do not cover
            self.checks = Checks(self) if self.cluster_size > 1 else RaceChecks(self, narrowest_access(launch.entry))
        self._special: dict[str, np.ndarray] = {}
        self.tensor = None  # tensor memory, made by the first allocation (tcgen05)

    def assume(self, what: str) -> None:
        """Note an assumption on which the result rests."""
        self.launch.assumptions[what] = None

    def matrix_row(self, name: str, ins: PTXInstruction) -> MatrixInstruction:
        """Return the catalogue's row of a matrix instruction on this launch's unit; refuse the instruction by name if there is
        no row."""
        key = self.launch.unit, name
        if key not in _ROWS:
            try:
                row = get_instruction(*key)
            except ValueError:
                raise Refused(
                    f"{ins.opcode} is not in the catalogue of {key[0]} (looked for {name})", ins.line
                ) from None
            if not row.published:
                raise Refused(f"{ins.opcode} is {row}, whose arithmetic is not public", ins.line)
            _ROWS[key] = row
        return _ROWS[key]

    # -- addresses ---------------------------------------------------------------------------------------------------------
    def address_of(self, name: str) -> int:
        """Return the address of a variable or parameter, as `mov` gives it: in its own space."""
        for places in (
            self.shared_places,
            self.local_places,
            self.launch.global_variables,
            self.launch.parameter_places,
        ):
            if name in places:
                return places[name]
        raise KernelFault(f"uses {name}, which is not declared")

    def located(self, space: str, addresses: np.ndarray, size: int, lanes: np.ndarray | None, *, write: bool):
        """Return the memory and the flat places of accesses of `size` bytes; `space` "" is generic."""
        if space == "global":
            return self.memory.space, self.memory.places(addresses, size, write=write)
        if space == "":
            return self._generic(addresses, size, lanes, write)
        if space.startswith("shared"):
            rows, addresses = self.shared_rows(addresses, lanes, cluster=space.endswith("cluster"))
            return self.shared.space, self.shared.places(rows, addresses, size, write=write)
        if space == "local" and self.local is not None:
            rows = self.threads.all_lanes if lanes is None else lanes
            return self.local.space, self.local.places(rows, addresses, size, write=write)
        if space.startswith("param"):
            if write:
                raise KernelFault("writes to a parameter")
            rows = np.zeros(len(addresses), np.int64)
            return self.launch.parameters.space, self.launch.parameters.places(rows, addresses, size, write=False)
        raise KernelFault(f"uses {space} memory, which the entry does not declare")

    def _generic(self, addresses: np.ndarray, size: int, lanes, write: bool):
        windows = {"global": addresses >= 1 << 40}
        for space, base in (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW), ("param", PARAM_WINDOW)):
            windows[space] = (addresses >= base) & (addresses < base + WINDOW)
        for space, inside in windows.items():
            if inside.all():
                base = {"global": 0, "shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW}[space]
                return self.located(space, addresses - np.uint64(base), size, lanes, write=write)
        if not np.logical_or.reduce(list(windows.values())).all():
            index = int((~np.logical_or.reduce(list(windows.values()))).argmax())
            raise KernelFault(f"uses the address {int(addresses[index]):#x}, which is in no memory", index=index)
        raise Refused("an access whose threads address different memories through generic addresses is not modelled")

    def shared_rows(self, addresses: np.ndarray, lanes: np.ndarray | None, *, cluster: bool = True):
        """Return the block row, and the address in it, of shared addresses, which may name another block of the cluster."""
        rows = self.threads.row if lanes is None else self.threads.row[lanes]
        rank = addresses.astype(np.int64) >> RANK_SHIFT
        if not rank.any():
            return rows, addresses
        size = self.cluster_size
        if (rank > size).any():
            raise KernelFault("names the shared memory of a block that the cluster does not have")
        own = rows - rows % size
        return np.where(rank > 0, own + rank - 1, rows), addresses.astype(np.int64) & ((1 << RANK_SHIFT) - 1)

    @cached_property
    def cluster_size(self) -> int:
        """Return the number of blocks of a cluster."""
        x, y, z = self.launch.cluster
        return x * y * z

    # -- special registers -------------------------------------------------------------------------------------------------
    def special(self, name: str) -> np.ndarray:
        """Return a special register: an array over lanes, or one number for all lanes."""
        if name not in self._special:
            self._special[name] = self._make_special(name)
        return self._special[name]

    def _make_special(self, name: str) -> np.ndarray:
        stem, _, axis = name.partition(".")
        threads, launch = self.threads, self.launch
        number = "xyz".find(axis) if axis else -1
        by_axis: dict[str, Callable] = {
            "tid": threads.thread,
            "ctaid": threads.block_coordinate,
            "ntid": lambda i: np.uint32(launch.block[i]),
            "nctaid": lambda i: np.uint32(launch.grid[i]),
            "cluster_ctaid": lambda i: threads.block_coordinate(i) % np.uint32(launch.cluster[i]),
            "cluster_nctaid": lambda i: np.uint32(launch.cluster[i]),
            "clusterid": lambda i: threads.block_coordinate(i) // np.uint32(launch.cluster[i]),
            "nclusterid": lambda i: np.uint32(-(-launch.grid[i] // launch.cluster[i])),
        }
        if stem in by_axis and number >= 0:
            return by_axis[stem](number)
        lane = (threads.in_block % WARP).astype(np.uint32)
        one = np.uint64(1)
        below = (one << lane.astype(np.uint64)) - one
        masks = {
            "lanemask_eq": below + one, "lanemask_lt": below, "lanemask_le": 2 * below + one,
            "lanemask_gt": ~(2 * below + one), "lanemask_ge": ~below,
        }  # fmt: skip
        if name in masks:
            return masks[name].astype(np.uint32)
        plain: dict[str, Callable] = {
            "laneid": lambda: lane,
            "warpid": lambda: (threads.in_block // WARP).astype(np.uint32),
            "nwarpid": lambda: np.uint32(threads.warps_per_block),
            "cluster_ctarank": lambda: (threads.row % self.cluster_size).astype(np.uint32),
            "cluster_nctarank": lambda: np.uint32(self.cluster_size),
            "dynamic_smem_size": lambda: np.uint32(launch.shared),
            "total_smem_size": lambda: np.uint32(self.shared_size),
            "gridid": lambda: np.uint64(0),
            "is_explicit_cluster": lambda: np.bool_(self.cluster_size > 1),
        }
        if name not in plain:
            raise Refused(f"%{name} depends on the hardware or on time, which are not modelled")
        return plain[name]()


def narrowest_access(entry: Entry) -> int:
    """Return the bytes of the narrowest load or store of shared memory in the code, at most 4."""
    widths = [
        TYPE_BITS.get(ins.modifiers[-1], 32) // 8
        for ins in entry.code
        if ins.name in ("ld", "st", "atom", "red") and not {"global", "param", "local"} & {*ins.modifiers}
    ]
    return max(1, min([4, *widths]))


def place_variables(launch: KernelLaunch, space: str, base: int) -> tuple[dict[str, int], int]:
    """Return the addresses of the variables of a space, dynamic arrays last, and the end of the space."""
    variables: list[Variable] = [v for v in (*launch.module.variables, *launch.entry.variables) if v.space == space]
    places, at = {}, base
    for variable in sorted(variables, key=lambda v: v.size == 0):
        # A dynamic array starts after the static arrays; swizzled tiles of compilers rely on 128-byte alignment.
        alignment = max(variable.alignment, 16 if variable.size else 1024)
        at = -(-at // alignment) * alignment
        places[variable.name] = at
        at += variable.size
    dynamic = any(v.size == 0 for v in variables)
    return places, at + (launch.shared if dynamic and space == "shared" else 0)
