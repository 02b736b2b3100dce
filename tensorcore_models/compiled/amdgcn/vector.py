"""Vector instructions on integers and bits (CDNA3 ISA, "Vector ALU Operations"): moves, sums, products, shifts, selections."""

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np

from .bits import first_bit, leading_signs, leading_zeros, reversed_bits
from .decode import AluRow, Operation, unknown
from .syntax import AMDInstruction, Literal, Operand, RegisterRange
from .vector_operands import VectorSource, VectorTarget, active, vector_operation

_U24 = np.uint32(0xFFFFFF)


def _by(function: Callable) -> Callable:
    """A shift whose first operand is the distance, of which the low bits count."""

    def run(by, x):
        low = by.dtype.type(8 * x.dtype.itemsize - 1)
        return function(x, (by & low).astype(x.dtype))

    return run


def _low24(x):
    """The low 24 bits, sign-extended for signed numbers."""
    return x & _U24 if x.dtype.kind == "u" else x << np.int32(8) >> np.int32(8)


def _wide(function: Callable, shift: int = 0) -> Callable:
    """A product of two 32-bit numbers in 64 bits; the part from bit `shift` on."""

    def run(x, y):
        wide = np.int64 if x.dtype.kind == "i" else np.uint64
        return (function(x.astype(wide), y.astype(wide)) >> wide(shift)).astype(x.dtype)

    return run


def _field(x, start, length):
    """v_bfe: `length` bits (of 5) from `start` (of 5) on, sign-extended for signed numbers."""
    start, length = (np.asarray(v).astype(np.int64) & 31 for v in (start, length))
    length = np.minimum(length, 32 - start)
    up, down = ((np.where(length > 0, v, 0)).astype(x.dtype) for v in (32 - start - length, 32 - length))
    return np.where(length > 0, x << up >> down, x.dtype.type(0))


def permuted(x, y, selector):
    """v_perm_b32: each byte takes one of {x, y} by 0 to 7, a sign of one by 8 to 11, 0 by 12, else 255."""
    both = y.astype(np.uint64) | x.astype(np.uint64) << np.uint64(32)
    out = np.zeros(np.shape(both | selector), np.uint32)
    for place in range(4):
        code = selector >> np.uint32(8 * place) & np.uint32(255)
        byte = both >> (np.minimum(code, np.uint32(7)) * np.uint32(8)).astype(np.uint64)
        signs = both >> ((np.clip(code, 8, 11) - 8) * 16 + 15).astype(np.uint64) & np.uint64(1)
        value = np.where(code < 8, byte & np.uint64(255), np.where(code < 12, signs * np.uint64(255), np.uint64(255)))
        out = out | np.where(code == 12, np.uint64(0), value).astype(np.uint32) << np.uint32(8 * place)
    return out


def _joined(unit: int) -> Callable:
    """v_alignbit (unit 1) and v_alignbyte (unit 8)."""

    def run(x, y, by):
        both = y.astype(np.uint64) | x.astype(np.uint64) << np.uint64(32)
        low = np.uint32(31 if unit == 1 else 3)
        return (both >> ((by & low) * np.uint32(unit)).astype(np.uint64)).astype(np.uint32)

    return run


def _middle(x, y, z):
    """med3: the one between the two others."""
    return np.maximum(np.minimum(x, y), np.minimum(np.maximum(x, y), z))


def _packed_pair(x, y):
    return x.astype(np.uint32) | y.astype(np.uint32) << np.uint32(16)


def _sum_of_differences(x, y, z):
    """v_sad_u32."""
    return np.maximum(x, y) - np.minimum(x, y) + z


_ONE, _TWO, _THREE = ("u32",), ("u32",) * 2, ("u32",) * 3
#: Elementwise instructions.
ROWS: dict[str, AluRow] = {
    **dict.fromkeys(("v_mov_b32", "v_accvgpr_write_b32", "v_accvgpr_read_b32", "v_accvgpr_mov_b32", "v_accvgpr_write",
                     "v_accvgpr_read"), AluRow("b32", ("b32",), np.asarray)),
    "v_mov_b64": AluRow("b64", ("b64",), np.asarray),
    "v_not_b32": AluRow("u32", _ONE, np.invert),
    "v_bfrev_b32": AluRow("u32", _ONE, reversed_bits),
    "v_ffbh_u32": AluRow("i32", _ONE, leading_zeros), "v_ffbh_i32": AluRow("i32", ("i32",), leading_signs),
    "v_ffbl_b32": AluRow("i32", _ONE, lambda x: first_bit(x, 1)),
    "v_and_b32": AluRow("u32", _TWO, np.bitwise_and), "v_or_b32": AluRow("u32", _TWO, np.bitwise_or),
    "v_xor_b32": AluRow("u32", _TWO, np.bitwise_xor), "v_xnor_b32": AluRow("u32", _TWO, lambda x, y: ~(x ^ y)),
    "v_subrev_u32": AluRow("u32", _TWO, lambda x, y: y - x, saturates=True),
    "v_subrev_u16": AluRow("u16", ("u16",) * 2, lambda x, y: y - x, saturates=True),
    **{f"v_{name}_{kind}": AluRow(kind, (kind, kind), function, saturates=True) for kind in ("u32", "i32", "u16", "i16")
       for name, function in (("add", np.add), ("sub", np.subtract))},
    "v_lshlrev_b32": AluRow("u32", _TWO, _by(np.left_shift)), "v_lshrrev_b32": AluRow("u32", _TWO, _by(np.right_shift)),
    "v_ashrrev_i32": AluRow("i32", ("u32", "i32"), _by(np.right_shift)),
    "v_lshlrev_b64": AluRow("u64", ("u32", "u64"), _by(np.left_shift)),
    "v_lshrrev_b64": AluRow("u64", ("u32", "u64"), _by(np.right_shift)),
    "v_ashrrev_i64": AluRow("i64", ("u32", "i64"), _by(np.right_shift)),
    "v_lshlrev_b16": AluRow("u16", ("u16", "u16"), _by(np.left_shift)),
    "v_lshrrev_b16": AluRow("u16", ("u16", "u16"), _by(np.right_shift)),
    "v_ashrrev_i16": AluRow("i16", ("u16", "i16"), _by(np.right_shift)),
    **{f"v_{name}_{kind}": AluRow(kind, (kind, kind), function) for kind in ("i32", "u32", "i16", "u16")
       for name, function in (("min", np.minimum), ("max", np.maximum))},
    **{f"v_{name}3_{kind}": AluRow(kind, (kind,) * 3, function) for kind in ("i32", "u32", "i16", "u16") for name, function in (
        ("min", lambda x, y, z: np.minimum(np.minimum(x, y), z)), ("max", lambda x, y, z: np.maximum(np.maximum(x, y), z)),
        ("med", _middle))},
    "v_mul_lo_u32": AluRow("u32", _TWO, np.multiply),
    "v_mul_hi_u32": AluRow("u32", _TWO, _wide(np.multiply, 32)),
    "v_mul_hi_i32": AluRow("i32", ("i32",) * 2, _wide(np.multiply, 32)),
    "v_mul_u32_u24": AluRow("u32", _TWO, lambda x, y: _low24(x) * _low24(y)),
    "v_mul_i32_i24": AluRow("i32", ("i32",) * 2, lambda x, y: _low24(x) * _low24(y)),
    "v_mul_hi_u32_u24": AluRow("u32", _TWO, lambda x, y: _wide(np.multiply, 32)(_low24(x), _low24(y))),
    "v_mul_hi_i32_i24": AluRow("i32", ("i32",) * 2, lambda x, y: _wide(np.multiply, 32)(_low24(x), _low24(y))),
    "v_mad_u32_u24": AluRow("u32", _THREE, lambda x, y, z: _low24(x) * _low24(y) + z),
    "v_mad_i32_i24": AluRow("i32", ("i32",) * 3, lambda x, y, z: _low24(x) * _low24(y) + z),
    "v_add3_u32": AluRow("u32", _THREE, lambda x, y, z: x + y + z),
    "v_xad_u32": AluRow("u32", _THREE, lambda x, y, z: (x ^ y) + z),
    "v_lshl_add_u32": AluRow("u32", _THREE, lambda x, y, z: (x << (y & np.uint32(31))) + z),
    "v_add_lshl_u32": AluRow("u32", _THREE, lambda x, y, z: (x + y) << (z & np.uint32(31))),
    "v_lshl_or_b32": AluRow("u32", _THREE, lambda x, y, z: (x << (y & np.uint32(31))) | z),
    "v_and_or_b32": AluRow("u32", _THREE, lambda x, y, z: (x & y) | z),
    "v_or3_b32": AluRow("u32", _THREE, lambda x, y, z: x | y | z),
    "v_lshl_add_u64": AluRow("u64", ("u64", "u32", "u64"), lambda x, y, z: (x << (y & np.uint32(7)).astype(np.uint64)) + z),
    "v_bfe_u32": AluRow("u32", _THREE, _field), "v_bfe_i32": AluRow("i32", ("i32", "u32", "u32"), _field),
    "v_bfi_b32": AluRow("u32", _THREE, lambda x, y, z: (x & y) | (~x & z)),
    "v_alignbit_b32": AluRow("u32", _THREE, _joined(1)), "v_alignbyte_b32": AluRow("u32", _THREE, _joined(8)),
    "v_perm_b32": AluRow("u32", _THREE, permuted),
    "v_bcnt_u32_b32": AluRow("u32", _TWO, lambda x, y: np.bitwise_count(x).astype(np.uint32) + y),
    "v_bfm_b32": AluRow("u32", _TWO, lambda n, by: (
        (np.uint32(1) << (n & np.uint32(31))) - np.uint32(1)) << (by & np.uint32(31))),
    "v_sad_u32": AluRow("u32", _THREE, _sum_of_differences),
    "v_mul_lo_u16": AluRow("u16", ("u16",) * 2, np.multiply),
    "v_mad_u16": AluRow("u16", ("u16",) * 3, lambda x, y, z: x * y + z),
    "v_pack_b32_f16": AluRow("u32", ("u16", "u16"), _packed_pair),
    "v_cndmask_b32": AluRow("b32", ("b32", "b32", "mask"), lambda x, y, held: np.where(held, y, x)),
}  # fmt: skip


def build(ins: AMDInstruction) -> Operation:
    """The operation of an elementwise instruction."""
    row = ROWS[ins.name]
    if ins.name == "v_cndmask_b32" and any(type(x).__name__ == "Modified" for x in ins.operands):
        row = AluRow("f32", ("f32", "f32", "mask"), row.function)  # signs of operands are changed as those of numbers
    if ins.name == "v_cndmask_b32" and ins.encoding == "dpp":
        raise unknown(ins)
    return vector_operation(ins, row)


# -- sums with a carry -------------------------------------------------------------------------------------------------------
_CARRIES: dict[str, Callable] = {
    "v_add_co_u32": lambda x, y: x + y, "v_addc_co_u32": lambda x, y, c: x + y + c,
    "v_sub_co_u32": lambda x, y: x - y, "v_subb_co_u32": lambda x, y, c: x - y - c,
    "v_subrev_co_u32": lambda x, y: y - x, "v_subbrev_co_u32": lambda x, y, c: y - x - c,
}  # fmt: skip


def build_carry(ins: AMDInstruction) -> Operation:
    """Sums and differences of 32 bits whose carry goes to a mask, and may come from one."""
    function, carries = _CARRIES[ins.name], ins.name.split("_")[1].endswith("c") or "subb" in ins.name
    if ins.modifiers or ins.encoding in ("sdwa", "dpp") or len(ins.operands) != 4 + carries:
        raise unknown(ins, "has operands or modifiers that are not known here")
    target = VectorTarget(ins.operands[0], "u32", ins)
    sources = [VectorSource(x, "u32", ins) for x in ins.operands[2:4]]
    carry = VectorSource(ins.operands[4], "mask", ins) if carries else None
    out = mask_target(ins.operands[1], ins)
    row = AluRow("u32", _THREE, function)

    def run(machine, waves, lanes):
        read = [source.read(machine, waves, lanes) for source in sources]
        wide = [np.asarray(value).astype(np.int64) for value, _ in read]
        if carry is not None:
            wide.append(np.asarray(carry.read(machine, waves, lanes)[0]).astype(np.int64))
        exact = function(*wide)
        ids = None
        if machine.trace is not None and any(owner is not None for _, owner in read):
            ids = machine.trace.elementwise(ins, row, wide, [owner for _, owner in read] + [None] * carries)
        target.write(machine, exact.astype(np.uint32), waves, lanes, ids)
        write_mask(machine, out, (exact >> 32) != 0, waves, lanes)

    return active(run)


def mask_target(operand, ins: AMDInstruction) -> int:
    """The first of two scalar registers that take a mask."""
    if not isinstance(operand, RegisterRange) or operand.vector or operand.count != 2:
        raise unknown(ins, "gives a mask to two scalar registers")
    return operand.first


def write_mask(machine, first: int, held, waves, lanes) -> None:
    """Write truth values of lanes to two scalar registers; lanes that do not run give 0."""
    words = machine.mask_words(held, waves, lanes)
    for half in (0, 1):
        machine.write_scalar(first + half, np.ascontiguousarray(words[:, half]), waves)


def build_wide(ins: AMDInstruction) -> Operation:
    """v_mad_u64_u32 and v_mad_i64_i32: a product of 32 bits added to 64; the carry goes to a mask.

    Compilers that want 32 bits of it leave the upper half of the addend unwritten: then that of the sum and the carry are.
    """
    kind, wide = ("u32", "u64") if ins.name == "v_mad_u64_u32" else ("i32", "i64")
    if ins.modifiers or len(ins.operands) != 5:
        raise unknown(ins, "has operands or modifiers that are not known here")
    target, out = VectorTarget(ins.operands[0], wide, ins), mask_target(ins.operands[1], ins)
    kinds = (kind, kind, wide)
    sources = [VectorSource(x, k, ins) for x, k in zip(ins.operands[2:], kinds, strict=True)]
    row = AluRow(wide, kinds, np.add)
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
        if machine.trace is not None and any(owner is not None for _, owner in read):
            ids = machine.trace.elementwise(ins, row, [x, y, z], [owner for _, owner in read])
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
    """v_mbcnt_lo and v_mbcnt_hi: set bits of a mask below the own lane, plus an addend."""
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
    """v_bitop3_b32: any function of three bits; bit 4a + 2b + c of the table is its value."""
    table = ins.modifiers.get("bitop3", 0)
    if not isinstance(table, int) or not 0 <= table < 256 or ins.modifiers.keys() - {"bitop3"}:
        raise unknown(ins)

    def function(x, y, z):
        out = np.zeros(np.broadcast(x, y, z).shape, np.uint32)
        for case in range(8):
            if table >> case & 1:
                out |= (x if case & 4 else ~x) & (y if case & 2 else ~y) & (z if case & 1 else ~z)
        return out

    plain = AMDInstruction(f"{ins.name}.{table:#x}", ins.encoding, ins.operands, {}, ins.line)
    return vector_operation(plain, AluRow("u32", _THREE, function))


def build_packed_move(ins: AMDInstruction) -> Operation:
    """v_pk_mov_b32: one register of each of two pairs, chosen by op_sel and op_sel_hi."""
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
            raise unknown(ins, "has operands that are not known here")
    target = VectorTarget(ins.operands[0], "b64", ins)
    sources = [VectorSource(pick, "b32", ins) for pick in picks]

    def run(machine, waves, lanes):
        read = [source.read(machine, waves, lanes) for source in sources]
        for place, (value, owners) in enumerate(read):
            machine.write_vector(target.first + place, value, waves, lanes, owners)

    return active(run)


def build_swap(ins: AMDInstruction) -> Operation:
    """v_swap_b32."""
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
