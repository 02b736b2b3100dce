"""Traces expressions through AMDGCN instructions: which of them only move bytes."""

from collections.abc import Callable

import numpy as np

from .. import moves
from ..expressions import PLACES, ExpressionTrace, Operations
from .decode import FORMATS, AluRow, size_of
from .syntax import AMDInstruction

#: Ends of the name of a number rounded to bf16 by integers: by bytes of the value, and where the number lies in it.
_ROUNDED = {(2, 0): "", (4, 2): ".f32", (4, 0): ".b32"}


class AMDTrace(ExpressionTrace):
    """Expressions of an AMDGCN run."""

    def elementwise(self, ins: AMDInstruction, row: AluRow, values: list, owners: list, mode=None) -> np.ndarray | None:
        """Whose bytes the results of an elementwise instruction are, shape (lanes, bytes); None: nobody's.

        `mode` is the MODE register of a floating-point instruction.
        """
        if ins.name in _EXTREMES and mode is not None and _keeps(mode, row, owners):
            return owners[0]
        count = next(len(owner) for owner in owners if owner is not None)
        size = size_of(row.result)
        rule = MOVES.get(ins.name)
        if rule is not None:
            sizes = [size_of(kind) for kind in row.sources]
            whole = [np.zeros((count, s), np.int64) if o is None else o for o, s in zip(owners, sizes, strict=True)]
            raw = [moves.as_bytes(value, count, s) for value, s in zip(values, sizes, strict=True)]
            moved = rule(whole, raw, size)
            if moved is not None:
                return moved if moved.any() else None
        name = ins.name + ".clamp" * bool(ins.modifiers.get("clamp")) + ("" if mode is None else _mode_text(mode, row))
        return self.operation(name, ins.line, values, owners, count, size, commutes=ins.name in COMMUTING)

    def _mixture(self, row: list[int], held: list[int], line: int) -> int:
        """A value of moved bytes; the upper half of a number that integers rounded to bf16 is named as what it is."""
        places = [n for n in row if n]
        name = _ROUNDED.get((len(row), next(i for i, n in enumerate(row) if n)))
        if (
            name is not None
            and not any(held)
            and len(places) == 2
            and places[1] == places[0] + 1
            and places[0] % PLACES == 2
        ):
            number, rounding = self._rounded_to_bf16(places[0] // PLACES)
            if number:
                return self.single(f"bf16.{rounding}{name}", line, [number * PLACES], [0])
        return super()._mixture(row, held, line)

    def _rounded_to_bf16(self, number: int) -> tuple[int, str]:
        """(x, rounding) of a sum whose upper half is x in bf16 unless it is NaN; (0, "") of another expression.

        x + 0x7fff + (bit 16 of x) rounds ties to even, x + 0x7fff + 1 away from zero.
        """
        block, place = self.block_of(number)
        if not isinstance(block, Operations) or block.name != "v_add3_u32":
            return 0, ""
        operands, constants = block.operands[place].tolist(), block.constants[place].tolist()
        if constants.count(0x7FFF) != 1 or operands[constants.index(0x7FFF)]:
            return 0, ""
        if sorted(constants) == [0, 1, 0x7FFF] and not operands[constants.index(1)]:
            return operands[constants.index(0)], "rna"
        one, other = (n for n, c in zip(operands, constants, strict=True) if c != 0x7FFF)
        return next(((x, "rne") for x, bit in ((one, other), (other, one)) if self._is_bit_16(bit, x)), (0, ""))

    def _is_bit_16(self, number: int, of: int) -> bool:
        """Whether an expression is bit 16 of another one."""
        if not number or not of:
            return False
        block, place = self.block_of(number)
        if not isinstance(block, Operations):
            return False
        operands, constants = block.operands[place].tolist(), block.constants[place].tolist()
        if block.name == "v_bfe_u32":
            return operands == [of, 0, 0] and constants[1:] == [16, 1]
        if block.name != "v_and_b32" or sorted(constants) != [0, 1] or operands[constants.index(1)]:
            return False
        inner = operands[constants.index(0)]
        block, place = self.block_of(inner)
        if not isinstance(block, Operations) or block.name != "bytes.23__":
            return False
        return block.operands[place].tolist()[:2] == [of, of]

    def flag(self, ins: AMDInstruction, values: list, owners: list) -> np.ndarray:
        """Whose SCC is, where data decided it."""
        count = next(len(owner) for owner in owners if owner is not None)
        return self.operation(f"{ins.name}.scc", ins.line, values, owners, count, 1)

    def compared(self, ins: AMDInstruction, values: list, owners: list, held) -> None:
        """Lanes compared values, of which some rest on inputs: what follows is decided by them."""
        count = next(len(owner) for owner in owners if owner is not None)
        made = self.operation(ins.name, ins.line, values, owners, count, 1)
        self.decided(made, np.broadcast_to(held, (count,)), False)

    def atomic(self, name: str, old: np.ndarray, old_owners: np.ndarray, added: np.ndarray, owners) -> np.ndarray:
        """Whose bytes memory holds after an atomic operation on words of shape (lanes, words)."""
        count, words = old.shape
        width, parts = old.dtype.itemsize, []
        if added.shape[1] > words:  # compare and swap: the new word, or what was there
            new = np.zeros_like(old_owners) if owners is None else owners[:, : old_owners.shape[1]]
            return np.where((old == added[:, words:]).all(1)[:, None], new, old_owners)
        for i in range(words):
            part = slice(i * width, (i + 1) * width)
            both = [None if each is None else each[:, part] for each in (old_owners, owners)]
            both = [each if each is not None and each.any() else None for each in both]
            if all(each is None for each in both):
                parts.append(np.zeros((count, width), np.int64))
            else:
                parts.append(self.operation(name, 0, [old[:, i], added[:, i]], both, count, width))
        return np.concatenate(parts, 1)


#: The larger or smaller of a number and itself is the number (compilers quiet NaN so).
_EXTREMES = {f"v_{name}_{kind}" for name in ("min", "max") for kind in FORMATS}


def _mode_text(mode, row: AluRow) -> str:
    """Describe the MODE register's changes to an operation, behind its name: the rounding, and which numbers it flushes."""
    told: dict[str, None] = {}
    for fmt in {FORMATS[kind]: None for kind in (row.result, *row.sources) if kind in FORMATS}:
        rounding, (before, after) = mode.rounding(fmt), mode.flushes(fmt)
        told |= dict.fromkeys(
            word
            for word, held in ((rounding, rounding != "rne"), (f"flush_in_{fmt}", before), (f"flush_out_{fmt}", after))
            if held
        )
    return "".join(f".{word}" for word in told)


def _keeps(mode, row: AluRow, owners: list) -> bool:
    """Whether both operands are one number, which the MODE register does not flush."""
    same = len(owners) == 2 and owners[0] is not None and owners[1] is not None and np.array_equal(owners[0], owners[1])
    return same and not any(mode.flushes(FORMATS[row.result]))


#: Results that do not depend on the order of the first two operands.
COMMUTING = {
    "v_add_f32", "v_mul_f32", "v_fma_f32", "v_pk_add_f32", "v_pk_mul_f32", "v_pk_fma_f32", "v_add_f16", "v_mul_f16",
    "v_fma_f16", "v_add_f64", "v_mul_f64", "v_fma_f64",
}  # fmt: skip


def _copied(owners: list, values: list, size: int):
    return moves.resized(owners[0], size)


def _chosen(owners: list, values: list, size: int):
    return np.where(values[2] != 0, owners[1], owners[0])


def _and(owners: list, values: list, size: int):
    return moves.masked(owners[:2], values[:2])


def _or(owners: list, values: list, size: int):
    return moves.merged(owners[:2], values[:2])


def _shift(left: bool, reverse: bool = True) -> Callable:
    def rule(owners: list, values: list, size: int):
        by, what = (0, 1) if reverse else (1, 0)
        return None if owners[by].any() else moves.shifted(owners[what], moves.numbers(values[by]), size, left=left)

    return rule


def _shifted_or(owners: list, values: list, size: int):
    """v_lshl_or_b32: (a << b) | c."""
    by = moves.numbers(values[1])
    if owners[1].any() or (by % 8).any() or (by != by[0]).any():
        return None
    placed = moves.shifted(owners[0], by, size, left=True)
    word = np.ascontiguousarray(values[0]).view(np.uint32)[:, 0] << by
    return moves.merged([placed, owners[2]], [word.view(np.uint8).reshape(-1, 4), values[2]])


def _masked_or(owners: list, values: list, size: int):
    """v_and_or_b32: (a & b) | c."""
    kept = moves.masked(owners[:2], values[:2])
    return None if kept is None else moves.merged([kept, owners[2]], [values[0] & values[1], values[2]])


def _merged_three(owners: list, values: list, size: int):
    first = moves.merged(owners[:2], values[:2])
    return None if first is None else moves.merged([first, owners[2]], [values[0] | values[1], values[2]])


def _permuted(owners: list, values: list, size: int):
    """v_perm_b32: bytes of {a, b} by selectors; 12 gives 0."""
    selector = values[2]
    if owners[2].any() or ((selector > 7) & (selector != 12)).any():
        return None
    found = np.take_along_axis(np.concatenate([owners[1], owners[0]], 1), np.minimum(selector, 7).astype(np.int64), 1)
    return np.where(selector == 12, 0, found)


def _field(owners: list, values: list, size: int):
    """v_bfe_u32 of whole bytes."""
    if owners[1].any() or owners[2].any():
        return None
    return moves.extracted(owners[0], moves.numbers(values[1]), moves.numbers(values[2]), size)


def _aligned(unit: int) -> Callable:
    """v_alignbit and v_alignbyte: 32 bits of {a, b} from a place on."""

    def rule(owners: list, values: list, size: int):
        by = moves.numbers(values[2]) * np.uint32(unit) & np.uint32(31)
        if owners[2].any() or (by % 8).any() or (by != by[0]).any():
            return None
        first = int(by[0]) // 8
        return np.concatenate([owners[1], owners[0]], 1)[:, first : first + 4]

    return rule


def _inserted(owners: list, values: list, size: int):
    """v_bfi_b32: bits of b where the mask a has ones, of c elsewhere."""
    if owners[0].any() or not np.isin(values[0], (0, 255)).all():
        return None
    return np.where(values[0] == 255, owners[1], owners[2])


def _packed(owners: list, values: list, size: int):
    return np.concatenate([owners[0][:, :2], owners[1][:, :2]], 1)


#: Instructions that move whole bytes: name -> rule of (owners, values as bytes, size of the result), None where it does not.
MOVES: dict[str, Callable] = {
    **dict.fromkeys(("v_mov_b32", "v_mov_b64", "s_mov_b32", "s_mov_b64", "v_accvgpr_write_b32", "v_accvgpr_read_b32",
                     "v_accvgpr_mov_b32", "v_readfirstlane_b32", "v_accvgpr_write", "v_accvgpr_read"), _copied),
    "v_cndmask_b32": _chosen,
    **dict.fromkeys(("v_and_b32", "s_and_b32", "s_and_b64"), _and),
    **dict.fromkeys(("v_or_b32", "v_xor_b32", "s_or_b32", "s_or_b64", "s_xor_b32"), _or),
    **dict.fromkeys(("v_lshlrev_b32", "v_lshlrev_b64", "v_lshlrev_b16"), _shift(True)),
    **dict.fromkeys(("v_lshrrev_b32", "v_lshrrev_b64", "v_lshrrev_b16"), _shift(False)),
    **dict.fromkeys(("s_lshl_b32", "s_lshl_b64"), _shift(True, reverse=False)),
    **dict.fromkeys(("s_lshr_b32", "s_lshr_b64"), _shift(False, reverse=False)),
    "v_lshl_or_b32": _shifted_or, "v_and_or_b32": _masked_or, "v_or3_b32": _merged_three, "v_perm_b32": _permuted,
    "v_bfe_u32": _field, "v_alignbit_b32": _aligned(1), "v_alignbyte_b32": _aligned(8), "v_bfi_b32": _inserted,
    "v_pack_b32_f16": _packed, "s_pack_ll_b32_b16": _packed,
}  # fmt: skip
