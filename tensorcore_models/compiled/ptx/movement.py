"""Builds cvta, loads and stores, and matrix loads (PTX ISA 9.1, 9.7.9 and 9.7.15.5). Cache hints and prefetches do nothing."""

import numpy as np

from ..isa.meaning import Meaning
from ..isa.types import TYPE_BITS, array_type
from .decode import Operation, id_reader, pure_operation, reader, unknown
from .machine import LOCAL_WINDOW, PARAM_WINDOW, RANK_SHIFT, SHARED_WINDOW, WARP
from .syntax import Address, Immediate, PTXInstruction, Register, Sink, Symbol, Vector
from .warps import warp_lanes

_SPACES = ("global", "shared", "local", "param", "const", "shared::cta", "shared::cluster", "param::entry")


def items(operand) -> tuple:
    """Return the operands of a vector, or the one operand."""
    return operand.items if isinstance(operand, Vector) else (operand,)


_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW, "global": 0, "const": 0}


def build_address(ins: PTXInstruction) -> Operation:
    """Return cvta, which converts between generic addresses and those of a space, or mapa, the address in another block of the
    cluster."""
    words, kind = ins.modifiers, ins.modifiers[-1]
    if ins.name == "mapa":
        generic = "shared::cluster" not in words
        return pure_operation(
            ins, Meaning("map", kind, (kind, "u32"), options=(generic,)), lambda x, r: _mapped(x, r, generic=generic)
        )
    space = next((w for w in words if w in _SPACES), "")
    base = _WINDOWS.get(space.partition("::")[0])
    if base is None or kind != "u64":
        raise unknown(ins)
    step = np.uint64(-base % (1 << 64)) if "to" in words else np.uint64(base)
    return pure_operation(ins, Meaning("window", kind, (kind,), options=(int(step),)), lambda x: np.asarray(x + step))


def _mapped(addresses, rank, *, generic: bool) -> np.ndarray:
    kind = addresses.dtype.type
    low = addresses & kind((1 << RANK_SHIFT) - 1)
    window = kind(SHARED_WINDOW) if generic else kind(0)
    return low | (rank.astype(kind) + kind(1)) << kind(RANK_SHIFT) | window


def address_reader(operand: Address, ins: PTXInstruction) -> Operation:
    """Return a function that gives the address of [base + offset] in each lane, as uint64."""
    if not isinstance(operand, Address):
        raise unknown(ins, "needs an address in brackets")
    base = operand.base
    offset = np.uint64(operand.offset % (1 << 64))
    if isinstance(base, Immediate | Symbol):
        fixed = reader(base, "u64", ins)

        def constant(machine, lanes):
            count = machine.threads.count if lanes is None else len(lanes)
            return np.broadcast_to(np.uint64(fixed(machine, lanes)) + offset, (count,))

        return constant
    if not isinstance(base, Register):
        raise unknown(ins, "has an address of a form that is not modelled")
    number, wide = base.number, base.bits == 64
    if wide:

        def address(machine, lanes):
            found = machine.registers.read(number, lanes) + offset
            if machine.trace is not None:
                machine.trace.gather(machine.memory, found, machine.registers.read_ids(number, lanes))
            return found

        return address
    low = np.uint32(operand.offset % (1 << 32))
    return lambda machine, lanes: (machine.registers.read(number, lanes) + low).astype(np.uint64)


def state_space(ins: PTXInstruction) -> str:
    """Return the state space of a load or store, "" for generic."""
    found = next((w for w in ins.modifiers if w in _SPACES), "")
    return "global" if found == "const" else found


_ACCESS_WORDS = {
    *_SPACES, "v2", "v4", "v8", "nc", "weak", "volatile", "relaxed", "acquire", "release", "cta", "gpu", "sys", "cluster",
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1::evict_last", "L1::evict_first", "L1::evict_normal", "L1::no_allocate",
    "L1::evict_unchanged", "L2::cache_hint", "L2::64B", "L2::128B", "L2::256B", "L2::evict_last", "L2::evict_first",
    "L2::evict_normal", "async", "unified", "mmio",
}  # fmt: skip


def _access(ins: PTXInstruction) -> tuple[str, int, int]:
    """Return the space, the bytes of a word and the number of words of a load or store."""
    kind = ins.modifiers[-1]
    if (
        kind not in TYPE_BITS
        or TYPE_BITS[kind] > 64
        or set(ins.modifiers[:-1]) - _ACCESS_WORDS
        or "async" in ins.modifiers
    ):
        raise unknown(ins)
    count = next((int(w[1:]) for w in ins.modifiers if w in ("v2", "v4", "v8")), 1)
    return state_space(ins), TYPE_BITS[kind] // 8, count


def _strength(ins: PTXInstruction) -> str:
    """Return the kind of an access for the checks: strong ones (PTX ISA, 8.3) do not race, and order others between blocks."""
    return "strong" if {"volatile", "relaxed", "acquire", "release", "mmio"} & {*ins.modifiers} else "generic"


def build_load(ins: PTXInstruction) -> Operation:
    """Return ld, which loads one or more neighbouring words to registers."""
    space, width, count = _access(ins)
    targets, where = items(ins.operands[0]), address_reader(ins.operands[1], ins)
    if len(targets) != count:
        raise unknown(ins, f"has {len(targets)} registers for {count} words")
    signed = array_type(ins.modifiers[-1]) if ins.modifiers[-1][0] == "s" else None
    strong = _strength(ins)

    def run(machine, lanes):
        if strong == "strong":
            machine.checks.exchanged(lanes)
        words, ids = load(machine, space, where(machine, lanes), width, count, lanes, kind=strong)
        for place, register in enumerate(targets):
            if isinstance(register, Sink):
                continue
            value = words[:, place] if signed is None else words[:, place].view(signed)
            own = None if ids is None else ids[:, place * width : (place + 1) * width]
            write_loaded(machine, register, value, lanes, own)

    return run


def write_loaded(machine, register: Register, value: np.ndarray, lanes, ids) -> None:
    """Write a word to a register that may be wider."""
    if ids is not None and register.bits // 8 > ids.shape[1]:
        ids = np.pad(ids, ((0, 0), (0, register.bits // 8 - ids.shape[1])))
    machine.registers.write(register.number, value, lanes, ids)


def load(machine, space: str, addresses: np.ndarray, width: int, count: int, lanes, *, kind: str = "generic"):
    """Return the words at addresses, shape (lanes, count), and the expressions of their bytes or None."""
    memory, places = machine.located(space, addresses, width * count, lanes, write=False)
    if machine.launch.checks:
        machine.checks.watch_read(memory, places, width * count, lanes, kind)
    owners = memory.load_ids(places, width * count)
    return memory.load(places, width, count), owners if owners is not None and owners.any() else None


def store(
    machine, space: str, addresses: np.ndarray, words: np.ndarray, lanes, ids=None, *, kind: str = "generic"
) -> None:
    """Store words, shape (lanes, count), at addresses."""
    size = words.dtype.itemsize * words.shape[1]
    memory, places = machine.located(space, addresses, size, lanes, write=True)
    if machine.launch.checks:
        machine.checks.watch_write(memory, places, size, lanes, kind, words)
    memory.store(places, words)
    memory.store_ids(places, ids, size)


def build_store(ins: PTXInstruction) -> Operation:
    """Return st, which stores words of registers to memory."""
    space, width, count = _access(ins)
    where, sources = address_reader(ins.operands[0], ins), items(ins.operands[1])
    if len(sources) != count:
        raise unknown(ins, f"has {len(sources)} registers for {count} words")
    kind = f"b{8 * width}"
    reads = [reader(source, kind, ins) for source in sources]
    owners = [id_reader(source, kind) for source in sources]
    strong = _strength(ins)

    def run(machine, lanes):
        addresses = where(machine, lanes)
        words = np.stack([np.broadcast_to(read(machine, lanes), addresses.shape) for read in reads], 1)
        ids = None
        if machine.trace is not None:
            ids = joined_ids([read(machine, lanes) for read in owners], len(addresses), width)
        if strong == "strong":
            machine.checks.exchanged(lanes)
        store(machine, space, addresses, words, lanes, ids, kind=strong)

    return run


def joined_ids(parts: list, count: int, width: int) -> np.ndarray | None:
    """Return the expressions of the bytes of several words side by side; None if no byte depends on an input."""
    if all(part is None for part in parts):
        return None
    return np.concatenate([np.zeros((count, width), np.int64) if part is None else part for part in parts], 1)


# -- matrix loads and stores -------------------------------------------------------------------------------------------------
def build_matrix_load(ins: PTXInstruction) -> Operation:
    """Return ldmatrix, which loads 8 x 8 matrices of 16 bits from the row addresses of the lanes (PTX ISA 9.7.15.5.15)."""
    words = ins.modifiers
    if "m8n8" not in words or words[-1] != "b16":
        raise unknown(ins)
    count = next(int(w[1:]) for w in words if w in ("x1", "x2", "x4"))
    targets, where = items(ins.operands[0]), address_reader(ins.operands[1], ins)
    transposed = "trans" in words
    if len(targets) != count:
        raise unknown(ins)

    def run(machine, lanes):
        warps = warp_lanes(machine, lanes, ins)
        addresses = where(machine, lanes).reshape(-1, WARP)[:, : 8 * count]
        rows = warps[:, : 8 * count].reshape(-1)
        data, ids = load(machine, "shared", addresses.reshape(-1), 2, 8, rows)
        matrices = data.reshape(len(warps), count, 8, 8)
        owners = None if ids is None else ids.reshape(len(warps), count, 8, 8, 2)
        if transposed:
            matrices = matrices.swapaxes(2, 3)
            owners = None if owners is None else owners.swapaxes(2, 3)
        packed = np.ascontiguousarray(matrices).view(np.uint32).reshape(len(warps), count, WARP)
        for place, register in enumerate(targets):
            own = None if owners is None else np.ascontiguousarray(owners[:, place]).reshape(-1, 4)
            machine.registers.write(register.number, packed[:, place].reshape(-1), lanes, own)

    return run


def build_matrix_store(ins: PTXInstruction) -> Operation:
    """Return stmatrix, the inverse of ldmatrix."""
    words = ins.modifiers
    if "m8n8" not in words or words[-1] != "b16":
        raise unknown(ins)
    count = next(int(w[1:]) for w in words if w in ("x1", "x2", "x4"))
    where, sources = address_reader(ins.operands[0], ins), items(ins.operands[1])
    transposed = "trans" in words
    reads, owners = [reader(s, "b32", ins) for s in sources], [id_reader(s, "b32") for s in sources]
    if len(sources) != count:
        raise unknown(ins)

    def run(machine, lanes):
        warps = warp_lanes(machine, lanes, ins)
        addresses = where(machine, lanes).reshape(-1, WARP)[:, : 8 * count]
        shape = len(warps) * WARP
        data = np.stack([np.broadcast_to(read(machine, lanes), (shape,)).reshape(-1, WARP) for read in reads], 1)
        matrices = np.ascontiguousarray(data).view(np.uint16).reshape(len(warps), count, 8, 8)
        ids = None
        if machine.trace is not None:
            parts = [own(machine, lanes) for own in owners]
            if any(part is not None for part in parts):
                whole = [np.zeros((shape, 4), np.int64) if part is None else part for part in parts]
                ids = np.stack(whole, 0).reshape(count, len(warps), 8, 8, 2).swapaxes(0, 1)
        if transposed:
            matrices = matrices.swapaxes(2, 3)
            ids = None if ids is None else ids.swapaxes(2, 3)
        rows = warps[:, : 8 * count].reshape(-1)
        flat = None if ids is None else np.ascontiguousarray(ids).reshape(-1, 16)
        store(machine, "shared", addresses.reshape(-1), np.ascontiguousarray(matrices).reshape(-1, 8), rows, flat)

    return run


def nothing(ins: PTXInstruction) -> Operation:
    """Return the operation of an instruction that changes no values."""
    return lambda machine, lanes: None


BUILDERS = {
    "cvta": build_address, "mapa": build_address, "ld": build_load, "ldu": build_load, "st": build_store,
    "ldmatrix": build_matrix_load, "stmatrix": build_matrix_store,
    **dict.fromkeys(
        ("prefetch", "prefetchu", "applypriority", "discard", "createpolicy", "griddepcontrol",
         "nanosleep", "setmaxnreg"), nothing
    ),
}  # fmt: skip
