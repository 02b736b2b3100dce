"""Integer, logic and comparison instructions (PTX ISA 9.1, 9.7.1, 9.7.6 to 9.7.8)."""

from collections.abc import Callable

import numpy as np

from .. import floats
from ..errors import KernelFault
from .decode import Operation, Pure, array_type, id_reader, pure_operation, reader, unknown, unwritten_from
from .syntax import TYPE_BITS, Pair, PTXInstruction, Register, Sink

FLOAT_FORMATS = {"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64"}


def _wide(x: np.ndarray, kind: str) -> np.ndarray:
    """The number with twice the bits."""
    return x.astype(array_type(f"{kind[0]}{2 * TYPE_BITS[kind]}"))


def _high(x: np.ndarray, y: np.ndarray, kind: str) -> np.ndarray:
    """The upper half of a product."""
    bits = TYPE_BITS[kind]
    if bits < 64:
        return (_wide(x, kind) * _wide(y, kind) >> bits).astype(array_type(kind))
    x, y = np.broadcast_arrays(x, y)
    exact = [int(a) * int(b) >> 64 & (1 << 64) - 1 for a, b in zip(x.reshape(-1), y.reshape(-1), strict=True)]
    return np.array(exact, np.uint64).reshape(x.shape).view(array_type(kind))


def _divided(x: np.ndarray, y: np.ndarray, *, rest: bool) -> np.ndarray:
    """The quotient, cut, or what is left of it."""
    if np.any(y == 0):
        raise KernelFault("divides an integer by zero, whose result PTX leaves open")
    with np.errstate(over="ignore"):
        left = np.fmod(x, y)
        if rest:
            return left
        return (x - left) // y


def _halves(function: Callable, signed: bool) -> Callable:
    """A function of 16-bit numbers on both halves of 32-bit ones."""
    half = np.int16 if signed else np.uint16

    def run(*words):
        words = np.broadcast_arrays(*[np.ascontiguousarray(w, np.uint32) for w in words])
        parts = [np.ascontiguousarray(w).reshape(-1).view(half).reshape(-1, 2) for w in words]
        return np.ascontiguousarray(function(*parts).astype(half)).view(np.uint32).reshape(words[0].shape)

    return run


def arithmetic(ins: PTXInstruction) -> Pure | None:
    """add, sub, mul, mad, div, rem, abs, neg, min, max of integers; None for other types."""
    kind = ins.modifiers[-1]
    if kind in ("u16x2", "s16x2"):
        plain = {"add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum, "neg": np.negative}.get(
            ins.name
        )
        if plain is None or len(ins.modifiers) > 1:
            return None
        function = _halves(plain, kind[0] == "s")
        return Pure("b32", ("b32",) * (len(ins.operands) - 1), function)
    if kind[0] not in "us" or kind not in TYPE_BITS:
        return None
    modifiers = ins.modifiers[:-1]
    if ins.name in ("mul", "mad"):
        return _product(ins.name, kind, modifiers)
    if ins.name in ("add", "sub") and modifiers == ("sat",) and kind == "s32":
        step = np.add if ins.name == "add" else np.subtract

        def clamped(x, y):
            return np.clip(step(np.int64(x), np.int64(y)), -(1 << 31), (1 << 31) - 1).astype(np.int32)

        return Pure(kind, (kind, kind), clamped)
    if modifiers not in ((), ("relu",)) or (modifiers and ins.name not in ("min", "max")):
        return None
    table: dict[str, Callable] = {
        "add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum,
        "div": lambda x, y: _divided(x, y, rest=False), "rem": lambda x, y: _divided(x, y, rest=True),
        "abs": np.abs, "neg": np.negative,
    }  # fmt: skip
    function = table[ins.name]
    count = 1 if ins.name in ("abs", "neg") else 2
    if modifiers:
        return Pure(kind, (kind,) * 2, lambda x, y: np.maximum(function(x, y), x.dtype.type(0)))
    return Pure(kind, (kind,) * count, function)


def _product(name: str, kind: str, modifiers: tuple[str, ...]) -> Pure | None:
    if modifiers == ("wide",):
        double = f"{kind[0]}{2 * TYPE_BITS[kind]}"
        if name == "mul":
            return Pure(double, (kind, kind), lambda x, y: _wide(x, kind) * _wide(y, kind))
        return Pure(double, (kind, kind, double), lambda x, y, z: _wide(x, kind) * _wide(y, kind) + z)
    functions: dict[tuple[str, ...], Callable] = {("lo",): lambda x, y: x * y, ("hi",): lambda x, y: _high(x, y, kind)}
    product = functions.get(modifiers)
    if product is None:
        return None
    if name == "mul":
        return Pure(kind, (kind, kind), product)
    return Pure(kind, (kind, kind, kind), lambda x, y, z: product(x, y) + z)


def _count_leading(x: np.ndarray) -> np.ndarray:
    """Zeros above the highest bit that is set."""
    bits = 8 * x.dtype.itemsize
    out = np.full(np.shape(x), bits, np.uint32)
    rest = np.array(x)
    for step in (32, 16, 8, 4, 2, 1):
        if step < bits:
            high = rest >> rest.dtype.type(step)
            some = high != 0
            out = np.where(some, out - np.uint32(step), out)
            rest = np.where(some, high, rest)
    return np.where(rest != 0, out - np.uint32(1), out)


def _find_highest(x: np.ndarray, *, distance: bool) -> np.ndarray:
    """bfind: place of the highest bit that differs from the sign, all ones if there is none."""
    bits = 8 * x.dtype.itemsize
    if x.dtype.kind == "i":
        x = np.where(x < 0, ~x, x).view(x.dtype.str.replace("i", "u"))
    place = np.uint32(bits - 1) - _count_leading(x)
    found = np.uint32(bits - 1) - place if distance else place
    return np.where(x == 0, np.uint32(0xFFFFFFFF), found)


def _reversed(x: np.ndarray) -> np.ndarray:
    kind = x.dtype
    raw = np.ascontiguousarray(np.atleast_1d(x)).view(np.uint8).reshape(-1, kind.itemsize)
    turned = np.packbits(np.unpackbits(raw, axis=1, bitorder="little")[:, ::-1], axis=1, bitorder="little")
    return np.ascontiguousarray(turned).view(kind).reshape(np.shape(x))


def shifted(x, by, *, left: bool) -> np.ndarray:
    """x shifted by a number of places that may exceed its width: all bits leave (or become the sign)."""
    bits = 8 * x.dtype.itemsize
    over = by >= bits
    step = np.where(over, 0, by).astype(x.dtype)
    if left:
        return np.where(over, x.dtype.type(0), x << step)
    gone = np.where(x < 0, x.dtype.type(-1), x.dtype.type(0)) if x.dtype.kind == "i" else x.dtype.type(0)
    return np.where(over, gone, x >> step)


def field_extracted(x: np.ndarray, place, length) -> np.ndarray:
    """bfe: `length` bits from `place` on, sign-extended for signed types (PTX ISA, 9.7.1.19)."""
    bits, signed = 8 * x.dtype.itemsize, x.dtype.kind == "i"
    place, length = np.uint32(place) & np.uint32(255), np.uint32(length) & np.uint32(255)
    # Shifted to the top and back: the sign bit is that of the field, or of x where the field goes beyond it.
    top = np.minimum(place + length, np.uint32(bits))
    raised = shifted(x, np.uint32(bits) - top, left=True)
    width = np.maximum(top.astype(np.int64) - place, 0)
    if signed:
        out = shifted(raised, np.uint32(np.minimum(bits - width, bits - 1)), left=False)
        beyond = shifted(x, np.broadcast_to(np.uint32(bits - 1), np.shape(x)), left=False)
        out = np.where(width == 0, beyond, out)
    else:
        out = shifted(raised, np.uint32(bits - width), left=False)
    return np.where(length == 0, x.dtype.type(0), out)


def field_inserted(x: np.ndarray, y: np.ndarray, place, length) -> np.ndarray:
    """bfi: the low `length` bits of x at `place` of y."""
    bits = 8 * y.dtype.itemsize
    place, length = np.uint32(place) & np.uint32(255), np.minimum(np.uint32(length) & np.uint32(255), bits)
    ones = np.broadcast_to(y.dtype.type((1 << bits) - 1), np.shape(length))
    mask = shifted(shifted(ones, np.uint32(bits) - length, left=False), place, left=True)
    return (y & ~mask) | (shifted(x, place, left=True) & mask)


def permuted(x: np.ndarray, y: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """prmt in its default mode: each nibble takes a byte of {y, x}, bit 3 its sign (PTX ISA, 9.7.9.7)."""
    both = x.astype(np.uint64) | y.astype(np.uint64) << np.uint64(32)
    out = np.zeros(np.shape(both), np.uint32)
    for place in range(4):
        nibble = selector >> np.uint32(4 * place) & np.uint32(15)
        byte = (both >> ((nibble & np.uint32(7)) * np.uint32(8)).astype(np.uint64)).astype(np.uint32) & np.uint32(255)
        sign = np.where(byte & np.uint32(128) != 0, np.uint32(255), np.uint32(0))
        out = out | np.where(nibble & np.uint32(8) != 0, sign, byte) << np.uint32(8 * place)
    return out


def _lop3(table: int) -> Callable:
    """lop3: any function of three bits."""

    def run(x, y, z):
        out = np.zeros(np.broadcast(x, y, z).shape, np.uint32)
        for case in range(8):
            if table >> case & 1:
                out |= (x if case & 4 else ~x) & (y if case & 2 else ~y) & (z if case & 1 else ~z)
        return out

    return run


def _funnel(*, left: bool, clamp: bool) -> Callable:
    """shf: 32 bits of the 64 of {b, a}."""

    def run(a, b, c):
        step = np.minimum(c, np.uint32(32)) if clamp else c & np.uint32(31)
        both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
        step = step.astype(np.uint64)
        return ((both << step) >> np.uint64(32) if left else both >> step).astype(np.uint32)

    return run


def _dot4(a_signed: bool, b_signed: bool) -> Callable:
    """dp4a: four products of bytes and an addend."""

    def run(a, b, c):
        a, b = np.broadcast_arrays(a, b)
        left = np.ascontiguousarray(a).view(np.int8 if a_signed else np.uint8).reshape(*np.shape(a), 4).astype(np.int64)
        right = (
            np.ascontiguousarray(b).view(np.int8 if b_signed else np.uint8).reshape(*np.shape(b), 4).astype(np.int64)
        )
        return ((left * right).sum(-1) + c.astype(np.int64)).astype(np.uint32)

    return run


def logic(ins: PTXInstruction) -> Pure | None:
    """and, or, xor, not, cnot, shifts, bit counts and fields, prmt, lop3, shf, dp4a, sad."""
    name, kind = ins.name, ins.modifiers[-1]
    bits = TYPE_BITS.get(kind, 0)
    if name in ("and", "or", "xor"):
        function = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[name]
        return Pure(kind, (kind, kind), function)
    if name == "not":
        return Pure(kind, (kind,), np.invert)
    if name == "cnot":
        return Pure(kind, (kind,), lambda x: (x == 0).astype(x.dtype))
    if name in ("shl", "shr"):
        return Pure(kind, (kind, "u32"), lambda x, by: shifted(x, by, left=name == "shl"))
    if name == "bfe":
        return Pure(kind, (kind, "u32", "u32"), field_extracted)
    if name == "bfi":
        return Pure(kind, (kind, kind, "u32", "u32"), field_inserted)
    if name == "popc":
        return Pure("u32", (kind,), lambda x: np.bitwise_count(x).astype(np.uint32))
    if name == "clz":
        return Pure("u32", (kind,), _count_leading)
    if name == "brev":
        return Pure(kind, (kind,), _reversed)
    if name == "bfind":
        return Pure("u32", (kind,), lambda x: _find_highest(x, distance="shiftamt" in ins.modifiers))
    if name == "prmt" and ins.modifiers == ("b32",):
        return Pure("b32", ("b32",) * 3, permuted)
    if name == "lop3" and ins.modifiers == ("b32",):
        return Pure("b32", ("b32",) * 3, _lop3(ins.operands[4].value)) if len(ins.operands) == 5 else None
    if name == "shf":
        return Pure("b32", ("b32",) * 3, _funnel(left="l" in ins.modifiers, clamp="clamp" in ins.modifiers))
    if name == "dp4a":
        return Pure("b32", ("b32",) * 3, _dot4(*(word[0] == "s" for word in ins.modifiers[-2:])))
    if name == "sad" and bits == 32:
        return Pure(kind, (kind,) * 3, lambda x, y, z: (np.maximum(x, y) - np.minimum(x, y)) + z)
    return None


def build_logic(ins: PTXInstruction) -> Operation:
    """The operation of a logic instruction."""
    row = logic(ins)
    if row is None:
        raise unknown(ins)
    if ins.name == "lop3":
        named = f"{ins.operands[4].value:#x}", *ins.modifiers  # expressions of different tables are different
        ins = PTXInstruction(ins.name, named, ins.operands[:4], ins.guard, ins.line)
    return pure_operation(ins, row)


# -- comparisons and selections ----------------------------------------------------------------------------------------------
def _comparison(name: str, kind: str, flush: bool) -> Callable:
    """A function of two operands of a PTX type that gives a predicate."""
    if kind in FLOAT_FORMATS:
        fmt = FLOAT_FORMATS[kind]
        if flush:
            return lambda x, y: floats.compare(floats.flushed(x, fmt), floats.flushed(y, fmt), fmt, name)
        return lambda x, y: floats.compare(x, y, fmt, name)
    plain = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(name, name)
    return floats.COMPARISONS[plain]


_COMBINE = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
_COMPARISON_NAMES = {*floats.COMPARISONS, *(f"{n}u" for n in floats.COMPARISONS), "num", "nan", "lo", "ls", "hi", "hs"}


def build_setp(ins: PTXInstruction) -> Operation:
    """setp: one or two predicates from a comparison, joined with a third one."""
    words = ins.modifiers
    kind = words[-1]
    if words[0] not in _COMPARISON_NAMES or kind not in TYPE_BITS:
        raise unknown(ins)
    combine = next((_COMBINE[w] for w in words[1:-1] if w in _COMBINE), None)
    if set(words[1:-1]) - {*_COMBINE, "ftz"}:
        raise unknown(ins)
    function = _comparison(words[0], kind, "ftz" in words)
    target, sources = ins.operands[0], ins.operands[1:]
    if len(sources) != 2 + (combine is not None):
        raise unknown(ins, f"compares {len(sources)} operands, expected {2 + (combine is not None)}")
    targets = (target.first, target.second) if isinstance(target, Pair) else (target,)
    kinds = (kind, kind, "pred")[: len(sources)]
    reads = [reader(operand, k, ins) for operand, k in zip(sources, kinds, strict=True)]
    ids = [id_reader(operand, k) for operand, k in zip(sources, kinds, strict=True)]
    row = Pure("pred", kinds, function)
    named = ins, PTXInstruction(ins.name, ("not", *words), ins.operands, ins.guard, ins.line)

    def compute(machine, lanes):
        values = [read(machine, lanes) for read in reads]
        found = np.asarray(function(*values[:2]))
        for turn, register in enumerate(targets):
            if isinstance(register, Sink):
                continue
            each = ~found if turn else found
            if combine is not None:
                each = combine(each, values[2])
            owners = None
            if machine.trace is not None:
                owners = machine.trace.elementwise(
                    named[turn], row, values, [read(machine, lanes) for read in ids], each
                )
            machine.registers.write(register.number, each, lanes, owners)

    return unwritten_from(ins, row, sources, reads, [x.number for x in targets if isinstance(x, Register)], compute)


def build_set(ins: PTXInstruction) -> Operation:
    """set: a comparison as all ones or 1.0."""
    words = ins.modifiers
    kind, result = words[-1], words[-2]
    if words[0] not in _COMPARISON_NAMES or set(words[1:-2]) - {"ftz"}:
        raise unknown(ins)
    function = _comparison(words[0], kind, "ftz" in words)
    one = np.uint32(0x3F800000) if result == "f32" else np.uint32(0xFFFFFFFF)
    return pure_operation(ins, Pure(result, (kind, kind), lambda x, y: np.where(function(x, y), one, np.uint32(0))))


def _selected(x, y, holds) -> np.ndarray:
    return np.where(holds, x, y)


def build_selp(ins: PTXInstruction) -> Operation:
    """selp: one of two operands by a predicate; the expression of what was chosen goes along."""
    kind = ins.modifiers[-1]
    if len(ins.operands) != 4 or kind not in TYPE_BITS:
        raise unknown(ins)
    return pure_operation(ins, Pure(kind, (kind, kind, "pred"), _selected))


def build_slct(ins: PTXInstruction) -> Operation:
    """slct: one of two operands by the sign of a third."""
    kind, by = ins.modifiers[-2:]

    def chosen(x, y, z):
        number = floats.values(z, "fp32") if by == "f32" else z
        return np.where(number >= 0, x, y)

    return pure_operation(ins, Pure(kind, (kind, kind, by), chosen))


BUILDERS = {
    **dict.fromkeys(
        (
            "and", "or", "xor", "not", "cnot", "shl", "shr", "bfe", "bfi", "popc", "clz", "brev", "bfind", "prmt", "lop3",
            "shf", "dp4a", "sad",
        ),
        build_logic,
    ),
    "setp": build_setp, "set": build_set, "selp": build_selp, "slct": build_slct,
}  # fmt: skip
