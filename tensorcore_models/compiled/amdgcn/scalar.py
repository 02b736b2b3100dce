"""Builds scalar instructions SOP1, SOP2, SOPK and SOPC (CDNA3 ISA, "Scalar ALU Operations"), one value for each wave."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..errors import Refused
from ..isa.meaning import Meaning
from ..isa.operations import function_of
from .scalar_operands import Operation, ScalarSource, ScalarTarget, scalar_operation, type_of, unknown
from .syntax import EXEC, SCC, AMDInstruction, Call, Literal, RegisterRange


def _of(operation: str, kind: str, *sources: str, **rest) -> Meaning:
    """Return the meaning of an operation on integers; by default it has two operands of the result's type."""
    return Meaning(operation, type_of(kind), tuple(map(type_of, sources or (kind, kind))), **rest)


_WORD = 0xFFFFFFFF
_WIDTHS = ("b32", "b64")
#: Logic operations: name in the ISA -> name of the operation.
_LOGIC = {
    "and": "and", "or": "or", "xor": "xor", "andn2": "andn", "orn2": "orn", "nand": "nand", "nor": "nor", "xnor": "xnor",
}  # fmt: skip
_SHIFTS = {"lshl": ("shl", "b"), "lshr": ("shr", "b"), "ashr": ("shr", "i")}
#: Instructions that write SCC: name -> (meaning, how SCC is set).
FLAGGED: dict[str, tuple[Meaning, str]] = {
    **{f"s_{name}_{kind}": (_of(name, kind), flag) for name in ("add", "sub")
       for kind, flag in (("u32", "carry"), ("i32", "overflow"))},
    "s_addk_i32": (_of("add", "i32"), "overflow"),
    "s_addc_u32": (_of("add_carry", "u32", "u32", "u32", "u32"), "carry"),
    "s_subb_u32": (_of("sub_borrow", "u32", "u32", "u32", "u32"), "carry"),
    "s_absdiff_i32": (_of("absdiff", "i32"), "nonzero"), "s_abs_i32": (_of("abs", "i32", "i32"), "nonzero"),
    **{f"s_{name}_{kind}": (_of(name, kind), "first") for name in ("min", "max") for kind in ("i32", "u32")},
    **{f"s_{name}_{kind}": (_of(operation, kind), "nonzero") for kind in _WIDTHS for name, operation in _LOGIC.items()},
    **{f"s_not_{kind}": (_of("not", kind, kind), "nonzero") for kind in _WIDTHS},
    **{f"s_{name}_{letter}{bits}": (_of(operation, f"{letter}{bits}", f"{letter}{bits}", "u32", options=("masked",)), "nonzero")
       for name, (operation, letter) in _SHIFTS.items() for bits in (32, 64)},
    **{f"s_bfe_{kind}": (_of("field", kind, kind, "u32", options=("packed",)), "nonzero")
       for kind in ("u32", "i32", "u64", "i64")},
    **{f"s_bcnt{bit}_i32_{kind}": (_of(name, "u32", kind), "nonzero")
       for bit, name in enumerate(("popc_zeros", "popc")) for kind in _WIDTHS},
    **{f"s_lshl{by}_add_u32": (_of("shl_add", "u32", options=(by,)), "carry") for by in (1, 2, 3, 4)},
}  # fmt: skip

#: Instructions that leave SCC unchanged.
PLAIN: dict[str, Meaning] = {
    **{f"s_mov_{kind}": _of("move", kind, kind) for kind in _WIDTHS}, "s_movk_i32": _of("move", "i32", "i32"),
    "s_mul_i32": _of("mul", "i32"), "s_mulk_i32": _of("mul", "i32"),
    "s_mul_hi_u32": _of("mul_high", "u32"), "s_mul_hi_i32": _of("mul_high", "i32"),
    "s_sext_i32_i8": _of("resize", "i32", "i8"), "s_sext_i32_i16": _of("resize", "i32", "i16"),
    **{f"s_bfm_{kind}": _of("ones", kind, "u32", "u32") for kind in _WIDTHS},
    **{f"s_brev_{kind}": _of("reverse", kind, kind) for kind in _WIDTHS},
    **{f"s_ff{bit}_i32_{kind}": _of("lowest", "i32", kind, options=(bit,)) for bit in (0, 1) for kind in _WIDTHS},
    **{name: _of("highest", "i32", kind, options=("distance",)) for name, kind in (
        ("s_flbit_i32_b32", "b32"), ("s_flbit_i32_b64", "b64"), ("s_flbit_i32", "i32"), ("s_flbit_i32_i64", "i64"))},
    **{f"s_pack_{pair}_b32_b16": _of("halves", "u32", options=halves)
       for pair, halves in (("ll", (0, 0)), ("lh", (0, 1)), ("hh", (1, 1)))},
}  # fmt: skip

_COMPARED = {"eq": "eq", "lg": "ne", "gt": "gt", "ge": "ge", "lt": "lt", "le": "le"}
#: Comparisons, which write their result to SCC.
COMPARISONS: dict[str, Meaning] = {
    **{f"s_cmp{k}_{name}_{kind}": _of("compare", "pred", kind, kind, options=(how,)) for k in ("", "k")
       for name, how in _COMPARED.items() for kind in ("i32", "u32")},
    **{f"s_cmp_{name}_u64": _of("compare", "pred", "u64", "u64", options=(_COMPARED[name],)) for name in ("eq", "lg")},
    **{f"s_bitcmp{bit}_{kind}": _of("bit_is", "pred", kind, "u32", options=(bit,)) for bit in (0, 1) for kind in _WIDTHS},
}  # fmt: skip


def build(ins: AMDInstruction) -> Operation:
    """Return the operation of an elementwise scalar instruction."""
    m, flag = FLAGGED.get(ins.name) or (PLAIN.get(ins.name) or COMPARISONS[ins.name], "")
    operands = ins.operands
    if ins.name in ("s_addk_i32", "s_mulk_i32"):
        operands = (operands[0], *operands)
    elif m.operation in ("add_carry", "sub_borrow"):
        operands = (*operands, RegisterRange(False, SCC, 1))
    flat = replace(ins, operands=_short(ins, operands))
    made = scalar_operation(flat, m, flag)
    return _cleared(flat, m, made) if m.operation in ("and", "andn") else made


def _cleared(ins: AMDInstruction, m: Meaning, compute: Operation) -> Operation:
    """Return an "and" that allows an unwritten operand where the other operand's bits are 0.

    Compilers merge lane masks this way.
    """
    target = ScalarTarget(ins.operands[0], m.result, ins)
    sources = [ScalarSource(x, kind, ins) for x, kind in zip(ins.operands[1:], m.sources, strict=True)]
    inverted = m.operation == "andn"

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
    """Return the operands with SOPK's 16-bit constant extended to 32 bits: signed, except for comparisons of unsigned
    numbers."""
    unsigned = ins.name.startswith("s_cmpk_") and ins.name.endswith("u32")
    if not ins.name.startswith(("s_movk", "s_addk", "s_mulk", "s_cmovk", "s_cmpk")) or unsigned:
        return operands
    return tuple(
        Literal(x.value - (1 << 16)) if isinstance(x, Literal) and 1 << 15 <= int(x.value) < 1 << 16 else x
        for x in operands
    )


def build_select(ins: AMDInstruction) -> Operation:
    """Return s_cselect, which selects one of two operands by SCC, or s_cmov and s_cmovk, which write the operand only if SCC is
    set."""
    moves = ins.name.startswith("s_cmov")
    kind = "b64" if ins.name.endswith("b64") else "b32"
    operands = (*_short(ins, ins.operands), *((ins.operands[0],) if moves else ()), RegisterRange(False, SCC, 1))
    return scalar_operation(replace(ins, operands=operands), Meaning("select", kind, (kind, kind, "pred")))


def build_bitset(ins: AMDInstruction) -> Operation:
    """Return s_bitset0 or s_bitset1, which sets one bit of the target."""
    kind = "b64" if ins.name.endswith("b64") else "b32"
    m = Meaning("set_bit", kind, (kind, "u32"), options=(int(ins.name.startswith("s_bitset1")),))
    return scalar_operation(replace(ins, operands=(ins.operands[0], *ins.operands)), m)


#: s_<name>_saveexec_b64: name -> function that gives the new EXEC from the operand and EXEC.
_SAVEEXEC = {**_LOGIC, "andn1": "andn", "orn1": "orn"}


def build_saveexec(ins: AMDInstruction) -> Operation:
    """Return s_and_saveexec_b64 (or or, xor, ...): the old EXEC goes to the target, a combination to EXEC; SCC says it is not
    0."""
    name = ins.name.split("_")[1]
    function = function_of(Meaning(_SAVEEXEC[name], "b64", ("b64", "b64"), turned=name in ("andn1", "orn1")))
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
    """Return the first bit and the number of bits of the MODE register that hwreg(...) names."""
    call = next((x for x in ins.operands if isinstance(x, Call)), None)
    if call is None or call.name != "hwreg" or call.arguments[0] not in ("HW_REG_MODE", "1"):
        raise Refused(f"{ins.opcode} uses a hardware register that is not modelled", ins.line)
    start, length = (int(x, 0) for x in call.arguments[1:]) if len(call.arguments) == 3 else (0, 32)
    if not 0 <= start < 32 or not 1 <= length <= 32 - start:
        raise unknown(ins, "names bits outside of the 32 of a register")
    return start, length


def build_setreg(ins: AMDInstruction) -> Operation:
    """Return the operation of s_setreg, which writes bits of the MODE register."""
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
    """Return the operation of s_getreg_b32, which reads bits of the MODE register."""
    start, length = _mode_field(ins)
    target = ScalarTarget(ins.operands[0], "u32", ins)

    def run(machine, waves):
        mode = machine.mode if waves is None else machine.mode[waves]
        target.write(machine, (mode >> start & (1 << length) - 1).astype(np.uint32), waves)

    return run


BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = {
    **dict.fromkeys((*FLAGGED, *PLAIN, *COMPARISONS), build),
    **dict.fromkeys(("s_cselect_b32", "s_cselect_b64", "s_cmov_b32", "s_cmov_b64", "s_cmovk_i32"), build_select),
    **dict.fromkeys((f"s_bitset{bit}_{kind}" for bit in (0, 1) for kind in ("b32", "b64")), build_bitset),
    **dict.fromkeys((f"s_{name}_saveexec_b64" for name in _SAVEEXEC), build_saveexec),
    **dict.fromkeys(("s_setreg_b32", "s_setreg_imm32_b32"), build_setreg),
    "s_getreg_b32": build_getreg,
}
