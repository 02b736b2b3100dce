"""Reads the meanings of PTX's elementwise instructions from their names (PTX ISA 9.1, 9.7.1 to 9.7.9)."""

from collections.abc import Callable

from ...formats import get_float_format
from ..isa.floating import COMPARISONS
from ..isa.meaning import Meaning
from ..isa.types import COMPUTED, FORMATS, TYPE_BITS, one
from .syntax import PTXInstruction

ROUNDINGS = {"rn": "rne", "rz": "rz", "rm": "rd", "rp": "ru", "rna": "rna"}
_WHOLE = {"rni": "rne", "rzi": "rz", "rmi": "rd", "rpi": "ru"}
_FLOATING_WORDS = {"rn", "rz", "rm", "rp", "ftz", "sat", "NaN", "xorsign", "abs", "relu"}
_CONVERSION_WORDS = {*ROUNDINGS, *_WHOLE, "ftz", "sat", "satfinite", "relu"}
_PACKED = {f"{kind}x2" for kind in ("f16", "bf16", "e4m3", "e5m2", "e2m3", "e3m2", "e2m1")}


def meaning_of(ins: PTXInstruction) -> Meaning | None:
    """Return the meaning of an instruction; None if it has no meaning, or its form is not modelled."""
    maker = MAKERS.get(ins.name)
    return None if maker is None else maker(ins)


# -- arithmetic ----------------------------------------------------------------------------------------------------------
#: Number of operands, where it is not two.
_COUNTS = {"neg": 1, "abs": 1, "sqrt": 1, "rcp": 1, "fma": 3}
_PRODUCTS = {("lo",): "", ("hi",): "_high", ("wide",): "_wide"}


def _arithmetic(ins: PTXInstruction) -> Meaning | None:
    """Return the meaning of add, sub, mul, mad, div, rem, abs, neg, min or max of one type."""
    kind = ins.modifiers[-1]
    if kind not in TYPE_BITS:
        return None
    return _of_numbers(ins, kind) if one(kind) in COMPUTED else _of_integers(ins, kind)


def _of_numbers(ins: PTXInstruction, kind: str) -> Meaning | None:
    words, name = set(ins.modifiers[:-1]), "fma" if ins.name == "mad" else ins.name
    rounded = name not in ("div", "sqrt", "rcp") or "rn" in words and kind in ("f32", "f64")
    if words - _FLOATING_WORDS or not rounded or name == "rem":
        return None
    count = len(ins.operands) - 1 if name in ("min", "max") else _COUNTS.get(name, 2)
    flush, options = "ftz" in words, tuple(word for word in ("NaN", "abs", "relu") if word in words)
    rounding = next((ROUNDINGS[word] for word in ins.modifiers if word in ROUNDINGS), "rne")
    saturate = "sat" in words and name not in ("neg", "abs")
    return Meaning(name, kind, (kind,) * count, rounding, (flush, flush), saturate, options)


def _of_integers(ins: PTXInstruction, kind: str) -> Meaning | None:
    name, words = ins.name, ins.modifiers[:-1]
    if kind[0] not in "us" or name in ("fma", "sqrt", "rcp"):
        return None
    if kind != one(kind):
        known = name in ("add", "sub", "min", "max", "neg") and not words
        return Meaning(name, kind, (kind,) * (len(ins.operands) - 1)) if known else None
    if name in ("mul", "mad"):
        if words not in _PRODUCTS:
            return None
        wide = f"{kind[0]}{2 * TYPE_BITS[kind]}" if words == ("wide",) else kind
        return Meaning(name + _PRODUCTS[words], wide, (kind, kind, wide)[: 2 + (name == "mad")])
    if name in ("add", "sub") and words == ("sat",) and kind == "s32":
        return Meaning(name, kind, (kind, kind), saturate=True)
    if words and (words != ("relu",) or name not in ("min", "max")):
        return None
    return Meaning(name, kind, (kind,) * _COUNTS.get(name, 2), options=words)


def _copysign(ins: PTXInstruction) -> Meaning | None:
    kind = ins.modifiers[-1]
    return Meaning("copysign", kind, (kind, kind))


def _testp(ins: PTXInstruction) -> Meaning | None:
    return Meaning("test", "pred", (ins.modifiers[-1],), options=(ins.modifiers[0],))


# -- bits ----------------------------------------------------------------------------------------------------------------
#: Operations on bits: name -> (operation, type of the result, types of the operands); "" is the instruction's own type.
_BITS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    **{name: (name, "", ("", "")) for name in ("and", "or", "xor")}, **{name: (name, "", ("",)) for name in ("not", "cnot")},
    "shl": ("shl", "", ("", "u32")), "shr": ("shr", "", ("", "u32")), "bfe": ("field", "", ("", "u32", "u32")),
    "bfi": ("insert_field", "", ("", "", "u32", "u32")), "popc": ("popc", "u32", ("",)), "clz": ("clz", "u32", ("",)),
    "brev": ("reverse", "", ("",)), "bfind": ("highest", "u32", ("",)), "prmt": ("permute", "b32", ("b32",) * 3),
    "shf": ("funnel", "b32", ("b32",) * 3), "dp4a": ("dot4", "b32", ("b32",) * 3), "sad": ("sad", "", ("",) * 3),
    "lop3": ("table", "b32", ("b32",) * 3),
}  # fmt: skip


def _logic(ins: PTXInstruction) -> Meaning | None:
    """Return the meaning of logic, shifts, counts and fields of bits."""
    name, words, kind = ins.name, ins.modifiers, ins.modifiers[-1]
    if name in ("prmt", "lop3") and words != ("b32",) or name == "sad" and TYPE_BITS.get(kind, 0) != 32:
        return None
    operation, result, sources = _BITS[name]
    options: tuple = ()
    if name == "bfind":
        options = ("distance",) * ("shiftamt" in words)
    elif name == "dp4a":
        options = tuple("i" if word[0] == "s" else "u" for word in words[-2:])
    elif name == "shf":
        options = ("left",) * ("l" in words) + ("clamp",) * ("clamp" in words)
    elif name == "lop3":
        options = (ins.operands[4].value,)
    return Meaning(operation, result or kind, tuple(each or kind for each in sources), options=options)


# -- comparisons and selections ------------------------------------------------------------------------------------------
def compared(ins: PTXInstruction, between: tuple[str, ...]) -> Meaning | None:
    """Return the comparison of setp or set; `between` holds the modifiers between the comparison and the type."""
    words, kind = ins.modifiers, ins.modifiers[-1]
    if words[0] not in COMPARISONS or kind not in TYPE_BITS or set(between) - {"ftz"}:
        return None
    return Meaning("compare", "pred", (kind, kind), flush=("ftz" in words, False), options=words[:1])


def _set(ins: PTXInstruction) -> Meaning | None:
    m, result = compared(ins, ins.modifiers[1:-2]), ins.modifiers[-2]
    return None if m is None else Meaning("set", result, m.sources, flush=m.flush, options=m.options)


def _selp(ins: PTXInstruction) -> Meaning | None:
    kind = ins.modifiers[-1]
    return Meaning("select", kind, (kind, kind, "pred")) if kind in TYPE_BITS else None


def _slct(ins: PTXInstruction) -> Meaning | None:
    kind, by = ins.modifiers[-2:]
    return Meaning("select_by_sign", kind, (kind, kind, by))


# -- conversions ---------------------------------------------------------------------------------------------------------
def _cvt(ins: PTXInstruction) -> Meaning | None:
    """Return the meaning of a conversion between integers and formats; None also if a required rounding is missing."""
    if len(ins.modifiers) < 2 or set(ins.modifiers[:-2]) - _CONVERSION_WORDS:
        return None
    (target, source), words, count = ins.modifiers[-2:], ins.modifiers[:-2], len(ins.operands) - 1
    kinds = {kind: kind in FORMATS or kind in _PACKED for kind in (target, source)}
    if any(not known and (kind[0] not in "us" or kind not in TYPE_BITS) for kind, known in kinds.items()):
        return None
    if {target, source} & _PACKED and not _pairs(target, source, count):
        return None
    rounding = next((ROUNDINGS[word] for word in words if word in ROUNDINGS), None)
    whole = next((_WHOLE[word] for word in words if word in _WHOLE), None)
    if not any(kinds.values()):
        return Meaning("resize", target, (source,), saturate="sat" in words)
    missing = (
        whole is None if not kinds[target] else rounding is None and (not kinds[source] or _narrows(target, source))
    )
    if missing:
        return None
    flush = "ftz" in words and source == "f32", "ftz" in words and target == "f32"
    options = [word for word in ("satfinite", "relu") if word in words] + ["whole"] * (
        whole is not None and kinds[target]
    )
    how = whole or rounding or "rne"
    return Meaning("convert", target, (source,) * count, how, flush, "sat" in words, tuple(options))


def _pairs(target: str, source: str, count: int) -> bool:
    """Return whether the conversion of two numbers, or of a pair, to a pair is modelled."""
    if source == "f32":
        return count == 2
    halves = ("f16x2", "bf16x2")
    return (
        count == 1 and source in _PACKED and (target in halves or source in halves and target in ("e4m3x2", "e5m2x2"))
    )


def _narrows(target: str, source: str) -> bool:
    """Return whether cvt may round; for f16 to bf16, ptxas makes one instruction with and without .rn (F2F.BF16.F16, sm_90)."""
    wide, narrow = (get_float_format(FORMATS[one(kind)]).precision for kind in (target, source))
    return wide < narrow and (target, source) != ("bf16", "f16")


#: Readers of instructions by name.
MAKERS: dict[str, Callable[[PTXInstruction], Meaning | None]] = {
    **dict.fromkeys(
        ("add", "sub", "mul", "mad", "div", "rem", "abs", "neg", "min", "max", "fma", "sqrt", "rcp"), _arithmetic),
    **dict.fromkeys(_BITS, _logic), "copysign": _copysign, "testp": _testp, "set": _set, "selp": _selp, "slct": _slct,
    "cvt": _cvt,
}  # fmt: skip
