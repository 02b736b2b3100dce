"""Builds vector instructions on integers and bits (CDNA3 ISA, "Vector ALU Operations"): moves, sums, products, shifts,
selections."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from ..isa.meaning import Meaning
from ..isa.operations import exact
from .scalar_operands import Operation, type_of, unknown
from .syntax import AMDInstruction, Literal, Modified, Operand, RegisterRange
from .vector_operands import VectorSource, VectorTarget, active, vector_operation


def _of(operation: str, kind: str, *sources: str, **rest) -> Meaning:
    """Return the meaning of an operation on integers or bits; by default it has two operands of the result's type."""
    return Meaning(operation, type_of(kind), tuple(map(type_of, sources or (kind, kind))), **rest)


_SHIFTS = {"lshlrev": ("shl", "b", "u"), "lshrrev": ("shr", "b", "u"), "ashrrev": ("shr", "i", "i")}
_THREE = ("u32",) * 3
_NARROW = ("u32", "i32", "u16", "i16")
#: Elementwise instructions: name -> meaning.
ROWS: dict[str, Meaning] = {
    **{f"v_{name}": _of("move", "b32", "b32") for name in (
        "mov_b32", "accvgpr_write_b32", "accvgpr_read_b32", "accvgpr_mov_b32", "accvgpr_write", "accvgpr_read")},
    "v_mov_b64": _of("move", "b64", "b64"), "v_not_b32": _of("not", "u32", "u32"), "v_bfrev_b32": _of("reverse", "u32", "u32"),
    **{f"v_ffbh_{kind}": _of("highest", "i32", kind, options=("distance",)) for kind in ("u32", "i32")},
    "v_ffbl_b32": _of("lowest", "i32", "u32", options=(1,)),
    **{f"v_{name}_b32": _of(name, "u32") for name in ("and", "or", "xor", "xnor")},
    **{f"v_subrev_{kind}": _of("sub", kind, turned=True) for kind in ("u32", "u16")},
    **{f"v_{name}_{kind}": _of(name, kind) for kind in _NARROW for name in ("add", "sub", "min", "max")},
    **{f"v_{name}3_{kind}": _of("med3" if name == "med" else name, kind, kind, kind, kind) for kind in _NARROW
       for name in ("min", "max", "med")},
    **{f"v_{name}_{letter}{bits}": _of(operation, f"{own}{bits}", "u16" if bits == 16 else "u32", f"{own}{bits}", turned=True,
                                       options=("masked",))
       for name, (operation, letter, own) in _SHIFTS.items() for bits in (16, 32, 64)},
    "v_mul_lo_u32": _of("mul", "u32"), "v_mul_lo_u16": _of("mul", "u16"), "v_mad_u16": _of("mad", "u16", "u16", "u16", "u16"),
    **{f"v_mul_hi_{kind}": _of("mul_high", kind) for kind in ("u32", "i32")},
    **{f"v_mul_{part}{kind}_{kind[0]}24": _of(operation, kind) for kind in ("u32", "i32")
       for part, operation in (("", "mul_24"), ("hi_", "mul_high_24"))},
    **{f"v_mad_{kind}_{kind[0]}24": _of("mad_24", kind, kind, kind, kind) for kind in ("u32", "i32")},
    **{f"v_{name}": _of(operation, "u32", *_THREE) for name, operation in (
        ("add3_u32", "add3"), ("xad_u32", "xor_add"), ("lshl_add_u32", "shl_add"), ("add_lshl_u32", "add_shl"),
        ("lshl_or_b32", "shl_or"), ("and_or_b32", "and_or"), ("or3_b32", "or3"), ("bfi_b32", "merge_bits"),
        ("perm_b32", "permute_bytes"), ("sad_u32", "sad"))},
    "v_lshl_add_u64": _of("shl_add", "u64", "u64", "u32", "u64"),
    **{f"v_bfe_{kind}": _of("field", kind, kind, "u32", "u32", options=("masked",)) for kind in ("u32", "i32")},
    "v_alignbit_b32": _of("funnel", "u32", *_THREE, options=("high_first",)),
    "v_alignbyte_b32": _of("funnel", "u32", *_THREE, options=("high_first", "bytes")),
    "v_bcnt_u32_b32": _of("popc_add", "u32"), "v_bfm_b32": _of("ones", "u32"),
    "v_pack_b32_f16": _of("pack", "u32", "u16", "u16"),
    "v_cndmask_b32": Meaning("select", "b32", ("b32", "b32", "pred"), options=("second",)),
}  # fmt: skip


def build(ins: AMDInstruction) -> Operation:
    """Return the operation of an elementwise instruction."""
    m = ROWS[ins.name]
    if m.operation == "select" and any(isinstance(x, Modified) for x in ins.operands):
        m = replace(
            m, result="f32", sources=("f32", "f32", "pred")
        )  # sign modifiers change operands as floating-point numbers
    if m.operation == "select" and ins.encoding == "dpp":
        raise unknown(ins)
    return vector_operation(ins, m)


# -- sums with a carry -------------------------------------------------------------------------------------------------------
_CARRIES = {
    "v_add_co_u32": _of("add", "u32"), "v_sub_co_u32": _of("sub", "u32"), "v_subrev_co_u32": _of("sub", "u32", turned=True),
    **{f"v_{name}_co_u32": _of(operation, "u32", *_THREE) for name, operation in (
        ("addc", "add_carry"), ("subb", "sub_borrow"), ("subbrev", "sub_turned_borrow"))},
}  # fmt: skip


def build_carry(ins: AMDInstruction) -> Operation:
    """Return a 32-bit sum or difference whose carry goes to a mask, and may come from one."""
    m = _CARRIES[ins.name]
    function, carries = exact(m), len(m.sources) == 3
    if ins.modifiers or ins.encoding in ("sdwa", "dpp") or len(ins.operands) != 4 + carries:
        raise unknown(ins, "has operands or modifiers that are not modelled")
    target = VectorTarget(ins.operands[0], "u32", ins)
    sources = [VectorSource(x, "u32", ins) for x in ins.operands[2:4]]
    carry = VectorSource(ins.operands[4], "pred", ins) if carries else None
    out = mask_target(ins.operands[1], ins)

    def run(machine, waves, lanes):
        read = [source.read(machine, waves, lanes) for source in sources]
        wide = [np.asarray(value).astype(np.int64) for value, _ in read]
        if carry is not None:
            wide.append(np.asarray(carry.read(machine, waves, lanes)[0]).astype(np.int64))
        found, ids = function(*wide), None
        if machine.trace is not None:
            owners = [owner for _, owner in read] + [None] * carries
            ids = machine.trace.elementwise(ins.name, ins.line, m, wide, owners)
        target.write(machine, found.astype(np.uint32), waves, lanes, ids)
        write_mask(machine, out, (found >> 32) != 0, waves, lanes)

    return active(run)


def mask_target(operand, ins: AMDInstruction) -> int:
    """Return the first of the two scalar registers that take a mask."""
    if not isinstance(operand, RegisterRange) or operand.vector or operand.count != 2:
        raise unknown(ins, "needs two scalar registers for its mask")
    return operand.first


def write_mask(machine, first: int, held, waves, lanes) -> None:
    """Write truth values of lanes to two scalar registers; the bits of lanes that do not run are 0."""
    words = machine.mask_words(held, waves, lanes)
    for half in (0, 1):
        machine.write_scalar(first + half, np.ascontiguousarray(words[:, half]), waves)


def build_wide(ins: AMDInstruction) -> Operation:
    """Return v_mad_u64_u32 or v_mad_i64_i32: the product of two 32-bit numbers plus a 64-bit addend; the carry goes to a mask.

    Compilers that need only 32 bits of the sum leave the upper half of the addend unwritten; then the upper half of the sum and
    the carry count as unwritten, too.
    """
    kind, wide = ("u32", "u64") if ins.name == "v_mad_u64_u32" else ("s32", "s64")
    if ins.modifiers or len(ins.operands) != 5:
        raise unknown(ins, "has operands or modifiers that are not modelled")
    target, out = VectorTarget(ins.operands[0], wide, ins), mask_target(ins.operands[1], ins)
    kinds = (kind, kind, wide)
    sources = [VectorSource(x, k, ins) for x, k in zip(ins.operands[2:], kinds, strict=True)]
    m = Meaning("mad_wide", wide, kinds)
    upper = sources[2].first + 1 if sources[2].scalar is None else None

    def run(machine, waves, lanes):
        read = [source.read(machine, waves, lanes) for source in sources[:2]]
        absent = None if upper is None else machine.vectors.unwritten(upper, lanes)
        if absent is not None:
            machine.read_vector(sources[2].first, waves, lanes)  # a fault if the lower half was never written
        with machine.vectors.unchecked() if absent is not None else nullcontext():
            read.append(sources[2].read(machine, waves, lanes))
        x, y, z = (np.asarray(value) for value, _ in read)
        big = np.uint64 if wide == "u64" else np.int64
        product = x.astype(big) * y.astype(big)
        total = product + z
        carry = total < product if wide == "u64" else ((product ^ total) & (z ^ total)) < 0
        ids = None
        if machine.trace is not None:
            ids = machine.trace.elementwise(ins.name, ins.line, m, [x, y, z], [owner for _, owner in read])
        target.write(machine, total, waves, lanes, ids)
        write_mask(machine, out, carry, waves, lanes)
        if absent is not None:
            lost = np.where(absent != 0, np.uint32(0xFFFFFFFF), np.uint32(0))
            machine.vectors.forget(target.first + 1, lanes, lost)
            words = machine.mask_words(absent != 0, waves, lanes)
            for half in (0, 1):
                machine.scalars.forget(out + half, waves, words[:, half])

    return active(run)


# -- halves, truth tables, counts of lanes -------------------------------------------------------------------------------------
def build_count_below(ins: AMDInstruction) -> Operation:
    """Return v_mbcnt_lo or v_mbcnt_hi, which counts the set bits of a mask below the lane's own, plus an addend."""
    high = ins.name.startswith("v_mbcnt_hi")
    target = VectorTarget(ins.operands[0], "u32", ins)
    mask, addend = (VectorSource(x, "u32", ins) for x in ins.operands[1:])

    def run(machine, waves, lanes):
        lane = (machine.threads.all_lanes if lanes is None else lanes) % 64 - 32 * high
        below = ((np.uint64(1) << np.clip(lane, 0, 32).astype(np.uint64)) - np.uint64(1)).astype(np.uint32)
        count = np.bitwise_count(mask.read(machine, waves, lanes)[0] & below).astype(np.uint32)
        target.write(machine, count + addend.read(machine, waves, lanes)[0], waves, lanes, None)

    return active(run)


def build_truth_table(ins: AMDInstruction) -> Operation:
    """Return v_bitop3_b32, any function of three bits; bit 4a + 2b + c of the table is its value."""
    table = ins.modifiers.get("bitop3", 0)
    if not isinstance(table, int) or not 0 <= table < 256 or ins.modifiers.keys() - {"bitop3"}:
        raise unknown(ins)

    plain = AMDInstruction(f"{ins.name}.{table:#x}", ins.encoding, ins.operands, {}, ins.line)
    return vector_operation(plain, _of("table", "u32", *_THREE, options=(table,)))


def build_packed_move(ins: AMDInstruction) -> Operation:
    """Return v_pk_mov_b32, which moves one register of each of two pairs, chosen by op_sel and op_sel_hi."""
    low = ins.modifiers.get("op_sel", [0, 0])
    if ins.modifiers.keys() - {"op_sel", "op_sel_hi"} or len(low) != 2:
        raise unknown(ins)
    picks: list[Operand] = []
    for operand, place in zip(ins.operands[1:], low, strict=True):
        if isinstance(operand, RegisterRange) and operand.count == 2:
            picks.append(RegisterRange(operand.vector, operand.first + place, 1))
        elif isinstance(operand, Literal) and not place:
            picks.append(operand)
        else:
            raise unknown(ins, "has operands that are not modelled")
    target = VectorTarget(ins.operands[0], "b64", ins)
    sources = [VectorSource(pick, "b32", ins) for pick in picks]

    def run(machine, waves, lanes):
        read = [source.read(machine, waves, lanes) for source in sources]
        for place, (value, owners) in enumerate(read):
            machine.write_vector(target.first + place, value, waves, lanes, owners)

    return active(run)


def build_swap(ins: AMDInstruction) -> Operation:
    """Return v_swap_b32, which exchanges two registers."""
    targets = [VectorTarget(x, "b32", ins) for x in ins.operands]
    sources = [VectorSource(x, "b32", ins) for x in ins.operands]
    if len(targets) != 2 or ins.modifiers:
        raise unknown(ins)

    def run(machine, waves, lanes):
        read = [source.read(machine, waves, lanes) for source in sources]
        for target, (value, owners) in zip(targets, reversed(read), strict=True):
            target.write(machine, value, waves, lanes, owners)

    return active(run)


BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = {
    **dict.fromkeys(ROWS, build), **dict.fromkeys(_CARRIES, build_carry),
    "v_mad_u64_u32": build_wide, "v_mad_i64_i32": build_wide,
    "v_mbcnt_lo_u32_b32": build_count_below, "v_mbcnt_hi_u32_b32": build_count_below, "v_bitop3_b32": build_truth_table,
    "v_pk_mov_b32": build_packed_move, "v_swap_b32": build_swap,
}  # fmt: skip
