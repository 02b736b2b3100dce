"""Parses the operands and modifiers of one instruction's text."""

import re

from .syntax import ACCUMULATORS, NAMED_SCALARS, SCC, Call, Literal, Modified, Operand, RegisterRange, Word


class MalformedAMDGCN(ValueError):
    """`MalformedAMDGCN` is the error for text that is not AMDGCN; the message has the line."""

    def __init__(self, what: str, line: int | None = None):
        super().__init__(what if line is None else f"line {line}: {what}")


_FLAGS = {
    "sc0", "sc1", "nt", "glc", "slc", "dlc", "lds", "offen", "idxen", "clamp", "gds", "tfe", "row_mirror", "row_half_mirror",
    "high", "vcnt",
}  # fmt: skip
_ENCODING = re.compile(r"(\w+?)_(e32|e64|sdwa|dpp)")
_RANGE = re.compile(r"([sva]|ttmp|acc)\[(\d+)(?::(\d+))?\]")
_SINGLE = re.compile(r"([sva]|ttmp|acc)(\d+)")
_CALL = re.compile(r"(\w+)\(([^()]*)\)")
_MODIFIER = re.compile(r"([a-z_]\w*):(.+)", re.S)
_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|\d+)")
_DECIMAL = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?")
_WORD = re.compile(r"[.$\w@+-]+")


def split_top(text: str, mark: str) -> list[str]:
    """Return the parts of the text between marks that stand outside of brackets and bars."""
    found, depth, start, bar = [], 0, 0, False
    for at, sign in enumerate(text):
        if sign in "[(":
            depth += 1
        elif sign in "])":
            depth -= 1
        elif sign == "|":
            bar = not bar
        elif sign == mark and depth == 0 and not bar:
            found.append(text[start:at])
            start = at + 1
    return [*found, text[start:]]


def instruction_parts(text: str, line: int) -> tuple[str, str, tuple[Operand, ...], dict]:
    """Return the name, encoding, operands and modifiers of an instruction."""
    opcode, _, rest = text.strip().partition(" ") if " " in text.strip() else (text.strip(), "", "")
    opcode = opcode.strip()
    encoded = _ENCODING.fullmatch(opcode)
    name, encoding = (encoded[1], encoded[2]) if encoded else (opcode, "")
    operands: list[Operand] = []
    modifiers: dict = {}
    for piece in split_top(rest, ","):
        for word in split_top(re.sub(r"\s*\|\s*(?=\w)", "|", piece).strip(), " "):
            if not word or word == "&":
                continue
            modifier = _MODIFIER.fullmatch(word)
            if word in _FLAGS:
                modifiers[word] = True
            elif modifier:
                modifiers[modifier[1]] = _modifier_value(modifier[2], line)
            else:
                operands.append(operand_of(word, line))
    return name, encoding, tuple(operands), modifiers


def _modifier_value(text: str, line: int):
    if text.startswith("[") and text.endswith("]"):
        return [_integer(part, line) for part in text[1:-1].split(",")]
    return int(text, 0) if _INTEGER.fullmatch(text) and not re.fullmatch(r"0\d+", text) else text


def _integer(text: str, line: int) -> int:
    if not _INTEGER.fullmatch(text.strip()):
        raise MalformedAMDGCN(f"{text.strip()!r} is not an integer", line)
    return int(text, 0)


def operand_of(text: str, line: int) -> Operand:
    """Return the operand that a text spells."""
    if text.startswith("|") and text.endswith("|") and len(text) > 2:
        return Modified(operand_of(text[1:-1], line), absolute=True)
    if text.startswith("-") and len(text) > 1 and not text[1].isdigit() and text[1] != ".":
        inner = operand_of(text[1:], line)
        if isinstance(inner, Modified):
            return Modified(inner.operand, True, inner.absolute, inner.extended)
        return Modified(inner, negated=True)
    if match := _RANGE.fullmatch(text):
        return _registers(match[1], int(match[2]), int(match[3] or match[2]), line)
    if match := _SINGLE.fullmatch(text):
        return _registers(match[1], int(match[2]), int(match[2]), line)
    if text in NAMED_SCALARS:
        return RegisterRange(False, *NAMED_SCALARS[text])
    if text in ("scc", "src_scc"):
        return RegisterRange(False, SCC, 1)
    if match := _CALL.fullmatch(text):
        return _call(match[1], match[2], line)
    if _INTEGER.fullmatch(text):
        return Literal(int(text, 16) if "x" in text.lower() else int(text))
    if _DECIMAL.fullmatch(text):
        return Literal(float(text))
    if _WORD.fullmatch(text):
        return Word(text)
    raise MalformedAMDGCN(f"{text[:40]!r} is not an operand", line)


def _call(name: str, inside: str, line: int) -> Operand:
    if name in ("abs", "neg", "sext"):
        inner = operand_of(inside.strip(), line)
        return Modified(inner, negated=name == "neg", absolute=name == "abs", extended=name == "sext")
    return Call(name, tuple(part.strip() for part in inside.split(",")))


def _registers(kind: str, first: int, last: int, line: int) -> RegisterRange:
    limit = {"s": 102, "ttmp": 16}.get(kind, 256)
    if last < first or last >= limit or last - first >= 32:
        raise MalformedAMDGCN(
            f"{kind}[{first}:{last}] are not registers: the first number must not exceed the last", line
        )
    base = {"s": 0, "ttmp": 108, "v": 0}.get(kind, ACCUMULATORS)
    return RegisterRange(kind not in ("s", "ttmp"), base + first, last - first + 1)
