"""Builds bulk copies with tensor maps (TMA) and without (PTX ISA 9.1, 9.7.9.25 to 28), done and counted at once."""

import struct

import numpy as np

from ..arguments import TENSOR_MAP_BYTES, decode_map, encode_map
from ..errors import KernelFault
from .barriers import places_of, update
from .decode import Operation, groups_left, reader, unknown
from .machine import RANK_SHIFT, WARP
from .movement import address_reader, load, store
from .shared_tiles import swizzled
from .syntax import Address, PTXInstruction, Vector
from .warps import warp_lanes, whole_warps

_CLUSTER = "shared::cluster"
_ELEMENT_BYTES = {0: 1, 1: 2, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 4, 9: 8, 10: 2, 11: 4, 12: 4}
_PASSED = {"async", "bulk", "tensor", "tile", "global", "shared::cta", _CLUSTER, "bulk_group", "L2::cache_hint",
           "mbarrier::complete_tx::bytes", "multicast::cluster", *(f"{n}d" for n in range(1, 6))}  # fmt: skip


def build_bulk(ins: PTXInstruction) -> Operation:
    """Return cp.async.bulk: groups, plain copies, boxes of tensors."""
    words = ins.modifiers
    if "commit_group" in words:
        return lambda machine, lanes: machine.checks.bulk_committed(lanes)
    if "wait_group" in words:
        left = groups_left(ins)
        return lambda machine, lanes: machine.checks.bulk_waited(lanes, left)
    if set(words) - _PASSED:
        raise unknown(ins)
    to_shared = words.index("global") > min(words.index(w) for w in ("shared::cta", _CLUSTER) if w in words)
    if "tensor" in words:
        return _box(ins, to_shared)
    return _plain(ins, to_shared)


def _plain(ins: PTXInstruction, to_shared: bool) -> Operation:
    """Return cp.async.bulk of neighbouring bytes."""
    if "multicast::cluster" in ins.modifiers:
        raise unknown(ins)
    target, source = (address_reader(operand, ins) for operand in ins.operands[:2])
    length = reader(ins.operands[2], "u32", ins)
    barrier = address_reader(ins.operands[3], ins) if to_shared else None
    goal, origin = (_CLUSTER, "global") if to_shared else ("global", "shared")
    if "global" not in ins.modifiers:
        raise unknown(ins)

    def run(machine, lanes):
        every = machine.threads.all_lanes if lanes is None else lanes
        lengths = np.broadcast_to(length(machine, lanes), (len(every),)).tolist()
        targets, sources = target(machine, lanes), source(machine, lanes)
        for turn, (lane, size) in enumerate(zip(every.tolist(), lengths, strict=True)):
            if size % 16:
                raise KernelFault(f"copies {size} bytes in a bulk copy, expected a multiple of 16")
            steps = np.arange(0, size, 16).astype(np.uint64)
            who = np.full(len(steps), lane)
            kind = "tma" if to_shared else "bulk"
            data, ids = load(machine, origin, sources[turn] + steps, 8, 2, who, kind=kind)
            store(machine, goal, targets[turn] + steps, data, who, ids, kind="tma")
            if barrier is not None:
                _arrived(machine, barrier(machine, lanes)[turn : turn + 1], np.array([lane]), size)

    return run


def _arrived(machine, addresses, lanes, size: int) -> None:
    for place in places_of(machine, addresses, lanes, space=_CLUSTER).tolist():
        machine.checks.copy_reports_to(int(machine.threads.row[lanes[0]]), place)
        update(machine, place, complete=size)


def _box(ins: PTXInstruction, to_shared: bool) -> Operation:
    """Return cp.async.bulk.tensor: a box of a tensor, with zeros where the box extends beyond the tensor."""
    operands = list(ins.operands)
    described = operands.pop(1 if to_shared else 0)
    if not isinstance(described, Address) or not isinstance(described.more[0], Vector):
        raise unknown(ins)
    where = address_reader(Address(described.base, described.offset), ins)
    coordinates = [reader(x, "s32", ins) for x in described.more[0].items]
    shared = address_reader(operands[0], ins)
    barrier = address_reader(operands[1], ins) if to_shared else None
    cast = "multicast::cluster" in ins.modifiers
    mask = reader(operands[2], "u16", ins) if cast else None

    def run(machine, lanes):
        every = machine.threads.all_lanes if lanes is None else lanes
        maps = where(machine, lanes)
        starts = np.stack([np.broadcast_to(c(machine, lanes), (len(every),)) for c in coordinates], 1).tolist()
        goals = shared(machine, lanes)
        masks = np.broadcast_to(mask(machine, lanes), (len(every),)).tolist() if cast else None
        for turn, lane in enumerate(every.tolist()):
            who = np.array([lane])
            row = _map_at(machine, maps[turn : turn + 1], who)
            if row["rank"] != len(coordinates):
                raise KernelFault(
                    f"{ins.opcode} takes {len(coordinates)} dimensions, but its tensor map has {row['rank']}"
                )
            ranks = [r for r in range(16) if masks[turn] >> r & 1] if cast else [None]
            for rank in ranks:
                goal = goals[turn : turn + 1]
                if rank is not None:
                    goal = _at_rank(goal, rank)
                size = _copy_box(machine, row, starts[turn], goal, lane, to_shared=to_shared)
                if barrier is not None:
                    at = barrier(machine, lanes)[turn : turn + 1]
                    _arrived(machine, at if rank is None else _at_rank(at, rank), who, size)

    return run


def _at_rank(addresses: np.ndarray, rank: int) -> np.ndarray:
    low = addresses & np.uint64((1 << RANK_SHIFT) - 1)
    return low | np.uint64(rank + 1 << RANK_SHIFT)


def _map_at(machine, address: np.ndarray, lane: np.ndarray) -> dict:
    """Return the tensor map at a generic (or parameter) address."""
    steps = address + np.arange(0, TENSOR_MAP_BYTES, 8).astype(np.uint64)
    space = "param" if int(address[0]) < 1 << 20 else ""
    words, _ = load(machine, space, steps, 8, 1, np.repeat(lane, len(steps)))
    row = decode_map(words.tobytes())
    if not 1 <= row["rank"] <= 5 or row["size"] not in (1, 2, 4, 8):
        raise KernelFault("uses an argument as a tensor map that is none: pass a TensorMap")
    return row


def _copy_box(machine, row: dict, start: list[int], goal: np.ndarray, lane: int, *, to_shared: bool) -> int:
    """Copy one box between global and shared memory; return its bytes."""
    rank, size = row["rank"], row["size"]
    extents = [-(-row["box"][d] // row["steps"][d]) for d in range(rank)]
    grids = np.meshgrid(*[np.arange(e) for e in extents[::-1]], indexing="ij")[::-1]
    shape = grids[0].shape
    flat, pitch = np.zeros(shape, np.int64), 1
    origin, inside = np.full(shape, row["address"], np.int64), np.ones(shape, bool)
    for d in range(rank):
        flat += grids[d] * pitch
        pitch *= extents[d]
        index = start[d] + grids[d] * row["steps"][d]
        inside &= (index >= 0) & (index < row["sizes"][d])
        origin += index * (size if d == 0 else row["strides"][d - 1])
    base = int(goal[0])
    rank_bits, low = base >> RANK_SHIFT << RANK_SHIFT, base & ((1 << RANK_SHIFT) - 1)
    shared = (swizzled(low + flat.reshape(-1) * size, row["swizzle"]) | rank_bits).astype(np.uint64)
    who = np.full(len(shared), lane)
    some = np.flatnonzero(inside)
    addresses = origin.reshape(-1)[some].astype(np.uint64)
    if not to_shared:
        data, ids = load(machine, "shared", shared[some], size, 1, who[some], kind="bulk")
        store(machine, "global", addresses, data, who[some], ids, kind="tma")
        return len(shared) * size
    data, own = load(machine, "global", addresses, size, 1, who[some])
    whole = np.zeros((len(shared), 1), data.dtype)
    whole[some] = data
    ids = None
    if own is not None:
        ids = np.zeros((len(shared), size), np.int64)
        ids[some] = own
    store(machine, _CLUSTER, shared, whole, who, ids, kind="tma")
    return len(shared) * size


# -- tensor maps made by kernels ---------------------------------------------------------------------------------------------
_ORDERED = {"box_dim": "box", "global_dim": "sizes", "global_stride": "strides", "element_stride": "steps"}


def build_tensor_map(ins: PTXInstruction) -> Operation:
    """Return tensormap.replace, which changes a field of a tensor map in memory, or tensormap.cp_fenceproxy, which copies
    one."""
    if ins.modifiers[0] == "cp_fenceproxy":
        return _publish(ins)
    if ins.modifiers[:2] != ("replace", "tile"):
        raise unknown(ins)
    field = ins.modifiers[2]
    where = address_reader(ins.operands[0], ins)
    ordinal = ins.operands[1].value if field in _ORDERED else None
    value = reader(ins.operands[-1], "b64" if ins.modifiers[-1] == "b64" else "b32", ins)
    space = "shared" if "shared::cta" in ins.modifiers else "global" if "global" in ins.modifiers else ""

    def run(machine, lanes):
        every = machine.threads.all_lanes if lanes is None else lanes
        addresses = where(machine, lanes)
        values = np.broadcast_to(value(machine, lanes), (len(every),)).tolist()
        for turn, lane in enumerate(every.tolist()):
            steps = addresses[turn] + np.arange(0, TENSOR_MAP_BYTES, 8).astype(np.uint64)
            who = np.full(len(steps), lane)
            words, _ = load(machine, space, steps, 8, 1, who)
            data = _replaced(words.tobytes(), field, ordinal, values[turn], ins)
            store(machine, space, steps, np.frombuffer(data, np.uint64).reshape(-1, 1), who)

    return run


def _replaced(data: bytes, field: str, ordinal: int | None, value: int, ins: PTXInstruction) -> bytes:
    row = decode_map(data)
    fill = row.pop("fill")
    if ordinal is not None:
        changed = list(row[_ORDERED[field]])
        changed[ordinal] = value
        row[_ORDERED[field]] = tuple(changed)
    elif field == "global_address":
        row["address"] = value
    elif field == "rank":
        row["rank"] = value + 1
    elif field == "elemtype":
        row["size"] = _ELEMENT_BYTES[value]
    elif field == "swizzle_mode":
        row["swizzle"] = (0, 32, 64, 128)[value]
    elif field not in ("interleave_layout", "fill_mode") or value:
        raise unknown(ins)
    try:
        return encode_map(**row, fill=fill)
    except struct.error:
        raise KernelFault(f"{ins.opcode} sets {field} to {value}, which a tensor map cannot hold") from None


def _publish(ins: PTXInstruction) -> Operation:
    target, source = (address_reader(operand, ins) for operand in ins.operands[:2])
    if ins.operands[2].value != TENSOR_MAP_BYTES or ins.modifiers[1:3] != ("global", "shared::cta"):
        raise unknown(ins)

    def run(machine, lanes):
        warps = warp_lanes(machine, lanes, ins)
        first = slice(None, None, WARP)
        for lane, goal, origin in zip(
            warps[:, 0], target(machine, lanes)[first], source(machine, lanes)[first], strict=True
        ):
            steps = np.arange(0, TENSOR_MAP_BYTES, 8).astype(np.uint64)
            who = np.full(len(steps), lane)
            words, _ = load(machine, "shared", origin + steps, 8, 1, who)
            store(machine, "global", goal + steps, words, who)

    return whole_warps(run)


BUILDERS = {"tensormap": build_tensor_map}
