"""Contracts products, additions and divisions that name no rounding, as ptxas does by default (``--fmad=true``).

PTX leaves these to the assembler: ``mul.f32`` and ``add.f32`` may become one multiply-add, ``mul.rn.f32`` may not (PTX ISA 9.1,
9.7.3). What ptxas does was read from its SASS (12.9 and 13.4, sm_80 and sm_90a;
``tests/tensorcore_models/test_compiled_assembled.py``):

- a product, or a division whose last step is one, goes into the additions of its basic block if all of its uses are such
  additions; if both addends are products, the first one goes in and the other one is rounded;
- an approximate division by a constant becomes a product by the constant's reciprocal, rounded to nearest (also with
  ``--fmad=false``).

The entry keeps its number of instructions, so that branches keep their targets. A product that goes into additions becomes an
instruction that saves its factors, and each addition becomes a multiply-add of the saved factors.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..isa.types import TYPE_BITS
from .decode import immediate
from .syntax import (
    Address,
    Decimal,
    Entry,
    Immediate,
    Negated,
    Pair,
    PTXInstruction,
    Register,
    Vector,
)

#: Types whose products and additions are contracted.
_KINDS = ("f32", "f64", "f16", "f16x2", "bf16", "bf16x2", "f32x2")
#: Scaling of a division's divisor: name of a scale in :mod:`.approximations`, None for a division without scaling.
SCALES = {"div.full.f32": "full", "div.full.ftz.f32": "large", "div.approx.f32": "tiny", "div.approx.ftz.f32": None}
#: Range of magnitudes of divisors that are not scaled.
_SMALLEST, _LARGEST = 2.0**-126, 2.0**126
#: Name of the instruction that scales a divisor; no PTX name has a space.
SCALE = "scale of a divisor"


@dataclass(frozen=True)
class Several(PTXInstruction):
    """`Several` is an instruction that the assembler replaces by several."""

    parts: tuple[PTXInstruction, ...] = ()


@dataclass
class _Product:
    """`_Product` is an instruction whose result may go into additions; `uses` holds (instruction, operand) pairs."""

    place: int
    uses: list[tuple[int, int]]
    open: bool = True


def assembled(entry: Entry, *, fmad: bool) -> tuple[Entry, tuple[int, ...]]:
    """Return the entry as ptxas assembles it with or without ``--fmad``, and the lines of additions that became
    multiply-adds."""
    code = _with_reciprocals(entry.code)
    chosen = _chosen(code, _blocks(entry)) if fmad else {}
    if not chosen:
        return replace(entry, code=code), ()
    registers, factors = list(entry.registers), {}
    for place in sorted({product.place for product in chosen.values()}):
        code[place], factors[place] = _saved(code[place], registers)
    for place, product in chosen.items():
        left = code[place].operands[1] == entry.code[product.place].operands[0]
        code[place] = _multiply_add(code[place], *factors[product.place], left=left, registers=registers)
    lines = tuple(sorted({code[place].line for place in chosen}))
    return replace(entry, code=code, registers=registers), lines


def _within(operand) -> Iterator[int]:
    """Yield the numbers of the registers in an operand."""
    parts: tuple = ()
    match operand:
        case Register(number=number):
            yield number
        case Negated(register=register):
            yield register.number
        case Vector(items=items):
            parts = items
        case Pair(first=first, second=second):
            parts = first, second
        case Address(base=base, more=more):
            parts = base, *more
    for part in parts:
        yield from _within(part)


def _blocks(entry: Entry) -> np.ndarray:
    """Return the basic block of each instruction."""
    starts = np.zeros(len(entry.code) + 1, np.int64)
    for place, target in entry.labels.items():
        starts[target] = starts[place + 1] = 1
    return np.cumsum(starts)


# -- divisions by constants ----------------------------------------------------------------------------------------------
def _with_reciprocals(code: list[PTXInstruction]) -> list[PTXInstruction]:
    """Return the code with divisions by constants replaced by products."""
    written: dict[int, list[PTXInstruction]] = defaultdict(list)
    for ins in code:
        for number in _within(ins.operands[0]) if ins.operands else ():
            written[number].append(ins)
    return [_by_reciprocal(ins, written) if ins.opcode in SCALES else ins for ins in code]


def _by_reciprocal(ins: PTXInstruction, written: dict[int, list[PTXInstruction]]) -> PTXInstruction:
    divisor = _constant(ins.operands[2], written) if len(ins.operands) == 3 else None
    if divisor is None or not _SMALLEST <= abs(divisor) <= _LARGEST:
        return ins
    reciprocal = Immediate(int((np.float32(1) / divisor).view(np.uint32)), 32)
    return replace(ins, name="mul", modifiers=ins.modifiers[1:], operands=(*ins.operands[:2], reciprocal))


def _constant(operand, written: dict[int, list[PTXInstruction]]) -> np.float32 | None:
    """Return the FP32 number of a constant, or of a register whose only write is a move of a constant; None for other
    operands."""
    if isinstance(operand, Register) and len(written[operand.number]) == 1:
        (ins,) = written[operand.number]
        operand = ins.operands[1] if ins.name == "mov" and ins.guard is None and len(ins.operands) == 2 else None
    if not isinstance(operand, Immediate | Decimal):
        return None
    return np.uint32(immediate(operand, "b32")).view(np.float32)


# -- contraction ---------------------------------------------------------------------------------------------------------
def _rounds_by_default(ins: PTXInstruction, names: tuple[str, ...]) -> bool:
    """Return whether an instruction of the given names has one type and no modifier but .ftz."""
    plain = ins.modifiers[-1:] and ins.modifiers[-1] in _KINDS and set(ins.modifiers[:-1]) <= {"ftz"}
    return bool(plain) and ins.name in names and len(ins.operands) == 3


def _alike(addition: PTXInstruction, product: PTXInstruction) -> bool:
    """Return whether an addition and a product have the same type and the same flushing, so that they can be contracted."""
    kinds = [(ins.modifiers[-1], "ftz" in ins.modifiers) for ins in (addition, product)]
    return kinds[0] == kinds[1] and not (addition.name == "sub" and kinds[0][0] == "f32x2")


def _chosen(code: list[PTXInstruction], blocks: np.ndarray) -> dict[int, _Product]:
    """Return the product that goes into the addition at each place."""
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for place, ins in enumerate(code):
        for where, operand in enumerate(ins.operands):
            for number in _within(operand):
                found[number].append((place, where))
        if ins.guard is not None:
            found[ins.guard[0].number].append((place, -1))
    products: dict[int, _Product] = {}
    for place, ins in enumerate(code):
        if ins.guard is not None or not (ins.opcode in SCALES or _rounds_by_default(ins, ("mul",))):
            continue
        target = ins.operands[0] if len(ins.operands) == 3 else None
        if not isinstance(target, Register):
            continue
        uses = [use for use in found[target.number] if use != (place, 0)]
        if uses and all(_takes(code, blocks, place, use) for use in uses):
            products[target.number] = _Product(place, uses)
    chosen: dict[int, _Product] = {}
    for place in sorted({place for product in products.values() for place, _ in product.uses}):
        first, second = (_open(products, operand) for operand in code[place].operands[1:])
        if first is not None and second is not None:
            second.open = False
            first.open = first is not second
    for product in products.values():
        if product.open:
            chosen.update((place, product) for place, _ in product.uses)
    return chosen


def _open(products: dict[int, _Product], operand) -> _Product | None:
    product = products.get(operand.number) if isinstance(operand, Register) else None
    return product if product is not None and product.open else None


def _takes(code: list[PTXInstruction], blocks: np.ndarray, place: int, use: tuple[int, int]) -> bool:
    """Return whether a use of the product at a place is an addition that the product may go into."""
    at, where = use
    addition = code[at]
    plain = _rounds_by_default(addition, ("add", "sub")) and where in (1, 2) and at > place
    return plain and blocks[at] == blocks[place] and _alike(addition, code[place])


def _saved(product: PTXInstruction, registers: list[Register]) -> tuple[Several, tuple]:
    """Return the instruction that saves the factors of a product, and the factors."""
    bits = TYPE_BITS[product.modifiers[-1]]
    flush = ("ftz",) if "ftz" in product.modifiers else ()

    def made(name: str, modifiers: tuple[str, ...], *operands) -> Register:
        target = _new(registers, bits)
        parts.append(PTXInstruction(name, modifiers, (target, *operands), None, product.line))
        return target

    parts: list[PTXInstruction] = []
    x, y = product.operands[1:]
    if product.name == "mul":
        factors = tuple(made("mov", (f"b{bits}",), each) if isinstance(each, Register) else each for each in (x, y))
    else:
        scale = SCALES[product.opcode]
        if scale is not None:
            by = made(SCALE, (scale, "f32"), y)
            x, y = (made("mul", ("rn", *flush, "f32"), each, by) for each in (x, y))
        else:
            x = made("mov", ("b32",), x)
        factors = x, made("rcp", ("approx", "ftz", "f32"), y)
    return Several(product.name, product.modifiers, product.operands, None, product.line, tuple(parts)), factors


def _new(registers: list[Register], bits: int) -> Register:
    registers.append(Register(len(registers), bits, f"factor {len(registers)}"))
    return registers[-1]


def _multiply_add(addition: PTXInstruction, x, y, *, left: bool, registers: list[Register]) -> PTXInstruction:
    """Return the multiply-add that replaces an addition whose first (`left`) or second operand is x y."""
    kind = addition.modifiers[-1]
    result, other = addition.operands[0], addition.operands[2 if left else 1]
    parts = []
    if addition.name == "sub":
        minus = _new(registers, TYPE_BITS[kind])
        parts.append(PTXInstruction("neg", (kind,), (minus, other if left else x), None, addition.line))
        x, other = (x, minus) if left else (minus, other)
    flush = ("ftz",) if "ftz" in addition.modifiers else ()
    fused = PTXInstruction("fma", ("rn", *flush, kind), (result, x, y, other), None, addition.line)
    if not parts:
        return replace(fused, guard=addition.guard)
    parts.append(fused)
    return Several(addition.name, addition.modifiers, addition.operands, addition.guard, addition.line, tuple(parts))
