"""Scalar instructions: SOP1, SOP2, SOPK and SOPC (CDNA3 ISA, "Scalar ALU Operations"), one value for each wave."""

from collections.abc import Callable

import numpy as np

from ..errors import Refused
from .bits import first_bit, leading_signs, leading_zeros, reversed_bits
from .decode import AluRow, Operation, ScalarSource, ScalarTarget, scalar_operation, unknown
from .syntax import EXEC, SCC, AMDInstruction, Call, Literal, RegisterRange

_BITS = {"b32": 32, "u32": 32, "i32": 32, "b64": 64, "u64": 64, "i64": 64}


def _nonzero(function: Callable) -> Callable:
    """A function, and whether its result is not 0."""

    def run(*values):
        found = function(*values)
        return found, found != 0

    return run


def _by(kind: str, function: Callable) -> Callable:
    """A shift by the low bits of its second operand."""
    low = np.uint32(_BITS[kind] - 1)

    def run(x, by):
        return function(x, (by & low).astype(x.dtype))

    return run


def _add(x, y):
    total = x + y
    return total, total < x


def _subtract(x, y):
    return x - y, y > x


def _add_carry(x, y, carry):
    total = x.astype(np.uint64) + y + carry.astype(np.uint64)
    return total.astype(np.uint32), total >> np.uint64(32) != 0


def _subtract_borrow(x, y, carry):
    total = x.astype(np.int64) - y.astype(np.int64) - carry.astype(np.int64)
    return total.astype(np.uint32), total < 0


def _signed(function: Callable) -> Callable:
    """A sum of signed numbers, and whether it overflowed."""

    def run(x, y):
        exact = function(x.astype(np.int64), y.astype(np.int64))
        found = exact.astype(np.int32)
        return found, exact != found

    return run


def _extreme(largest: bool) -> Callable:
    """The larger or smaller one, and whether it is the first."""

    def run(x, y):
        first = x > y if largest else x < y
        return np.where(first, x, y), first

    return run


def _field(x, where):
    """s_bfe: bits from (where & 31) on, as many as (where >> 16 & 127)."""
    bits = 8 * x.dtype.itemsize
    start = (where & np.uint32(bits - 1)).astype(np.int64)
    length = np.minimum((where >> np.uint32(16) & np.uint32(127)).astype(np.int64), bits - start)
    up = np.where(length > 0, bits - start - length, 0).astype(x.dtype)
    down = np.where(length > 0, bits - length, 0).astype(x.dtype)
    return np.where(length > 0, x << up >> down, x.dtype.type(0))


def _ones(kind: str) -> Callable:
    """s_bfm: as many ones as the first operand says, shifted by the second."""
    wide, low = (np.uint64, np.uint32(63)) if kind == "b64" else (np.uint32, np.uint32(31))

    def run(count, by):
        return ((wide(1) << (count & low).astype(wide)) - wide(1)) << (by & low).astype(wide)

    return run


def _high(signed: bool) -> Callable:
    wide = np.int64 if signed else np.uint64
    return lambda x, y: (x.astype(wide) * y.astype(wide) >> wide(32)).astype(np.int32 if signed else np.uint32)


def _packed(first: int, second: int) -> Callable:
    """s_pack: a half of each operand."""

    def run(x, y):
        low, high = x >> np.uint32(16 * first) & np.uint32(0xFFFF), y >> np.uint32(16 * second) & np.uint32(0xFFFF)
        return low | high << np.uint32(16)

    return run


def _shifted_add(by: int) -> Callable:
    def run(x, y):
        total = (x.astype(np.uint64) << np.uint64(by)) + y
        return total.astype(np.uint32), total >> np.uint64(32) != 0

    return run


def _absolute_difference(x, y):
    found = np.abs(x.astype(np.int64) - y.astype(np.int64)).astype(np.uint32).view(np.int32)
    return found, found != 0


_WORD = 0xFFFFFFFF
_LOGIC: dict[str, Callable] = {
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "andn2": lambda x, y: x & ~y,
    "orn2": lambda x, y: x | ~y, "nand": lambda x, y: ~(x & y), "nor": lambda x, y: ~(x | y), "xnor": lambda x, y: ~(x ^ y),
}  # fmt: skip
#: Instructions that write SCC: name -> row whose function gives (result, SCC).
FLAGGED: dict[str, AluRow] = {
    "s_add_u32": AluRow("u32", ("u32", "u32"), _add),
    "s_sub_u32": AluRow("u32", ("u32", "u32"), _subtract),
    "s_add_i32": AluRow("i32", ("i32", "i32"), _signed(np.add)),
    "s_sub_i32": AluRow("i32", ("i32", "i32"), _signed(np.subtract)),
    "s_addk_i32": AluRow("i32", ("i32", "i32"), _signed(np.add)),
    "s_absdiff_i32": AluRow("i32", ("i32", "i32"), _absolute_difference),
    "s_abs_i32": AluRow("i32", ("i32",), _nonzero(np.abs)),
    **{f"s_{name}_{kind}": AluRow(kind, (kind, kind), _extreme(name == "max")) for name in ("min", "max")
       for kind in ("i32", "u32")},
    **{f"s_{name}_{kind}": AluRow(kind, (kind, kind), _nonzero(function)) for kind in ("b32", "b64")
       for name, function in _LOGIC.items()},
    **{f"s_not_{kind}": AluRow(kind, (kind,), _nonzero(np.invert)) for kind in ("b32", "b64")},
    **{f"s_lshl_{kind}": AluRow(kind, (kind, "u32"), _nonzero(_by(kind, np.left_shift))) for kind in ("b32", "b64")},
    **{f"s_lshr_{kind}": AluRow(kind, (kind, "u32"), _nonzero(_by(kind, np.right_shift))) for kind in ("b32", "b64")},
    **{f"s_ashr_{kind}": AluRow(kind, (kind, "u32"), _nonzero(_by(kind, np.right_shift))) for kind in ("i32", "i64")},
    **{f"s_bfe_{kind}": AluRow(kind, (kind, "u32"), _nonzero(_field)) for kind in ("u32", "i32", "u64", "i64")},
    **{f"s_bcnt{bit}_i32_{kind}": AluRow("u32", (kind,), _nonzero(
        lambda x, bit=bit: np.bitwise_count(x if bit else ~x).astype(np.uint32))) for bit in (0, 1) for kind in ("b32", "b64")},
    **{f"s_lshl{by}_add_u32": AluRow("u32", ("u32", "u32"), _shifted_add(by)) for by in (1, 2, 3, 4)},
}  # fmt: skip

#: Instructions that leave SCC.
PLAIN: dict[str, AluRow] = {
    **{f"s_mov_{kind}": AluRow(kind, (kind,), np.asarray) for kind in ("b32", "b64")},
    "s_movk_i32": AluRow("i32", ("i32",), np.asarray),
    "s_mul_i32": AluRow("i32", ("i32", "i32"), np.multiply),
    "s_mulk_i32": AluRow("i32", ("i32", "i32"), np.multiply),
    "s_mul_hi_u32": AluRow("u32", ("u32", "u32"), _high(False)),
    "s_mul_hi_i32": AluRow("i32", ("i32", "i32"), _high(True)),
    "s_sext_i32_i8": AluRow("i32", ("i32",), lambda x: x.astype(np.int8).astype(np.int32)),
    "s_sext_i32_i16": AluRow("i32", ("i32",), lambda x: x.astype(np.int16).astype(np.int32)),
    **{f"s_bfm_{kind}": AluRow(kind, ("u32", "u32"), _ones(kind)) for kind in ("b32", "b64")},
    **{f"s_brev_{kind}": AluRow(kind, (kind,), reversed_bits) for kind in ("b32", "b64")},
    **{f"s_ff{bit}_i32_{kind}": AluRow("i32", (kind,), lambda x, bit=bit: first_bit(x, bit)) for bit in (0, 1)
       for kind in ("b32", "b64")},
    **{f"s_flbit_i32_{kind}": AluRow("i32", (kind,), leading_zeros) for kind in ("b32", "b64")},
    "s_flbit_i32": AluRow("i32", ("i32",), leading_signs),
    "s_flbit_i32_i64": AluRow("i32", ("i64",), leading_signs),
    **{f"s_pack_{a}{b}_b32_b16": AluRow("u32", ("u32", "u32"), _packed(a == "h", b == "h")) for a, b in ("ll", "lh", "hh")},
}  # fmt: skip

_COMPARED: dict[str, Callable] = {
    "eq": np.equal, "lg": np.not_equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
}  # fmt: skip
#: Comparisons, whose result is SCC.
COMPARISONS: dict[str, AluRow] = {
    **{f"s_cmp{k}_{name}_{kind}": AluRow("mask", (kind, kind), function) for k in ("", "k") for name, function in
       _COMPARED.items() for kind in ("i32", "u32")},
    **{f"s_cmp_{name}_u64": AluRow("mask", ("u64", "u64"), _COMPARED[name]) for name in ("eq", "lg")},
    **{f"s_bitcmp{bit}_{kind}": AluRow("mask", (kind, "u32"), lambda x, n, bit=bit: (
        x >> (n & np.uint32(8 * x.dtype.itemsize - 1)).astype(x.dtype) & x.dtype.type(1)) == bit)
       for bit in (0, 1) for kind in ("b32", "b64")},
}  # fmt: skip


def build(ins: AMDInstruction) -> Operation:
    """The operation of an elementwise scalar instruction."""
    row = FLAGGED.get(ins.name) or PLAIN.get(ins.name) or COMPARISONS[ins.name]
    operands = ins.operands
    if ins.name in ("s_addk_i32", "s_mulk_i32"):
        operands = (operands[0], *operands)
    flat = AMDInstruction(ins.name, ins.encoding, _short(ins, operands), ins.modifiers, ins.line)
    made = scalar_operation(flat, row, writes_scc=ins.name in FLAGGED)
    return _cleared(flat, row, made) if ins.name.startswith(("s_and_", "s_andn2_")) else made


def _cleared(ins: AMDInstruction, row: AluRow, compute: Operation) -> Operation:
    """An "and" whose operand was never written where the other one clears it: compilers begin to merge masks of lanes so."""
    target = ScalarTarget(ins.operands[0], row.result, ins)
    sources = [ScalarSource(x, kind, ins) for x, kind in zip(ins.operands[1:], row.sources, strict=True)]
    inverted = ins.name.startswith("s_andn2_")

    def run(machine, waves):
        registers, missing = machine.scalars, {}
        for source, other in (sources, sources[::-1]):
            for place in range(target.count if source.registers is not None else 0):
                absent = registers.unwritten(source.registers.first + place, waves)
                if absent is not None:
                    word = (other.read(machine, waves) >> (32 * place) & _WORD).astype(np.uint32)
                    kept = ~word if inverted and source is sources[0] else word
                    missing[place] = missing.get(place, np.uint32(0)) | absent & kept
        if not missing:
            return compute(machine, waves)
        with registers.unchecked():
            compute(machine, waves)
        for place, absent in missing.items():
            registers.forget(target.first + place, waves, absent)
            registers.forget(SCC, waves, absent != 0)
        return None

    return run


def _short(ins: AMDInstruction, operands: tuple) -> tuple:
    """Operands with the 16-bit constant of SOPK as 32 bits: signed, but for comparisons of unsigned numbers."""
    unsigned = ins.name.startswith("s_cmpk_") and ins.name.endswith("u32")
    if not ins.name.startswith(("s_movk", "s_addk", "s_mulk", "s_cmovk", "s_cmpk")) or unsigned:
        return operands
    return tuple(
        Literal(x.value - (1 << 16)) if isinstance(x, Literal) and 1 << 15 <= int(x.value) < 1 << 16 else x
        for x in operands
    )


def build_carry(ins: AMDInstruction) -> Operation:
    """s_addc_u32 and s_subb_u32: with SCC as carry."""
    function = _add_carry if ins.name == "s_addc_u32" else _subtract_borrow
    operands = (*ins.operands, RegisterRange(False, SCC, 1))
    flat = AMDInstruction(ins.name, ins.encoding, operands, ins.modifiers, ins.line)
    return scalar_operation(flat, AluRow("u32", ("u32", "u32", "u32"), function), writes_scc=True)


def build_select(ins: AMDInstruction) -> Operation:
    """s_cselect: one of two by SCC; s_cmov and s_cmovk: the operand if SCC, else what was there."""
    moves = ins.name.startswith("s_cmov")
    kind = "b32" if moves and ins.name != "s_cmov_b64" else ins.name.rpartition("_")[2]
    operands = (*_short(ins, ins.operands), *((ins.operands[0],) if moves else ()), RegisterRange(False, SCC, 1))
    flat = AMDInstruction(ins.name, ins.encoding, operands, ins.modifiers, ins.line)
    row = AluRow(kind, (kind, kind, "u32"), lambda x, y, flag: np.where(flag != 0, x, y))
    return scalar_operation(flat, row, writes_scc=False)


def build_bitset(ins: AMDInstruction) -> Operation:
    """s_bitset0 and s_bitset1: one bit of the target."""
    kind, wide = ("b64", np.uint64) if ins.name.endswith("b64") else ("b32", np.uint32)

    def changed(x, by):
        bit = wide(1) << (by & np.uint32(8 * wide().itemsize - 1)).astype(wide)
        return x | bit if ins.name.startswith("s_bitset1") else x & ~bit

    operands = (ins.operands[0], *ins.operands)
    flat = AMDInstruction(ins.name, ins.encoding, operands, ins.modifiers, ins.line)
    return scalar_operation(flat, AluRow(kind, (kind, "u32"), changed), writes_scc=False)


#: s_<name>_saveexec_b64: what EXEC becomes from the operand and EXEC.
_SAVEEXEC: dict[str, Callable] = {
    "and": lambda x, e: x & e, "or": lambda x, e: x | e, "xor": lambda x, e: x ^ e, "andn2": lambda x, e: x & ~e,
    "orn2": lambda x, e: x | ~e, "nand": lambda x, e: ~(x & e), "nor": lambda x, e: ~(x | e), "xnor": lambda x, e: ~(x ^ e),
    "andn1": lambda x, e: ~x & e, "orn1": lambda x, e: ~x | e,
}  # fmt: skip


def build_saveexec(ins: AMDInstruction) -> Operation:
    """s_and_saveexec_b64 and its kin: EXEC goes to the target, a combination of both to EXEC; SCC: it is not 0."""
    function = _SAVEEXEC[ins.name.split("_")[1]]
    target, source = ScalarTarget(ins.operands[0], "b64", ins), ScalarSource(ins.operands[1], "b64", ins)
    executed = ScalarSource(RegisterRange(False, EXEC, 2), "b64", ins)
    into = ScalarTarget(RegisterRange(False, EXEC, 2), "b64", ins)

    def run(machine, waves):
        value, before = source.read(machine, waves), executed.read(machine, waves)
        after = function(value, before)
        target.write(machine, before, waves)
        into.write(machine, after, waves)
        machine.write_scalar(SCC, after != 0, waves)

    return run


def _mode_field(ins: AMDInstruction) -> tuple[int, int]:
    """(first bit, bits) of the MODE register that hwreg(...) names."""
    call = next((x for x in ins.operands if isinstance(x, Call)), None)
    if call is None or call.name != "hwreg" or call.arguments[0] not in ("HW_REG_MODE", "1"):
        raise Refused(f"{ins.opcode} uses a hardware register that is not modelled", ins.line)
    start, length = (int(x, 0) for x in call.arguments[1:]) if len(call.arguments) == 3 else (0, 32)
    if not 0 <= start < 32 or not 1 <= length <= 32 - start:
        raise unknown(ins, "names bits that a register does not have")
    return start, length


def build_setreg(ins: AMDInstruction) -> Operation:
    """s_setreg of the MODE register."""
    start, length = _mode_field(ins)
    source = ScalarSource(next(x for x in ins.operands if not isinstance(x, Call)), "u32", ins)
    mask = (1 << length) - 1

    def run(machine, waves):
        value = np.broadcast_to(source.read(machine, waves).astype(np.int64) & mask, machine.mode.shape if waves is None
                                else waves.shape)  # fmt: skip
        which = slice(None) if waves is None else waves
        machine.mode[which] = machine.mode[which] & ~(mask << start) | value << start

    return run


def build_getreg(ins: AMDInstruction) -> Operation:
    """s_getreg_b32 of the MODE register."""
    start, length = _mode_field(ins)
    target = ScalarTarget(ins.operands[0], "u32", ins)

    def run(machine, waves):
        mode = machine.mode if waves is None else machine.mode[waves]
        target.write(machine, (mode >> start & (1 << length) - 1).astype(np.uint32), waves)

    return run


BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = {
    **dict.fromkeys((*FLAGGED, *PLAIN, *COMPARISONS), build),
    **dict.fromkeys(("s_addc_u32", "s_subb_u32"), build_carry),
    **dict.fromkeys(("s_cselect_b32", "s_cselect_b64", "s_cmov_b32", "s_cmov_b64", "s_cmovk_i32"), build_select),
    **dict.fromkeys((f"s_bitset{bit}_{kind}" for bit in (0, 1) for kind in ("b32", "b64")), build_bitset),
    **dict.fromkeys((f"s_{name}_saveexec_b64" for name in _SAVEEXEC), build_saveexec),
    **dict.fromkeys(("s_setreg_b32", "s_setreg_imm32_b32"), build_setreg),
    "s_getreg_b32": build_getreg,
}
