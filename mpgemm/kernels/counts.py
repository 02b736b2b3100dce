"""Counts instructions of a kernel's PTX by purpose: matrix unit, splitting, additions, loads and stores, other."""

import re
from collections import Counter

#: Opcodes of each purpose, tried in this order; an opcode that none matches is "other".
PURPOSES = {
    "matrix": r"mma\.sync|wgmma\.mma_async|tcgen05\.mma",
    "conversion": r"cvt\.(?!.*\b[su]64)[\w.]*f\d",
    "fp32": r"(?:add|sub|mul|fma)\.(?:\w+\.)*f32",
    "global": r"(?:ld|st)\.global|cp\.async\.[cb]",
    "shared": r"(?:ld|st)\.shared|ldmatrix|stmatrix|tcgen05\.(?:ld|st)",
    "barrier": r"bar\.|mbarrier|fence|wgmma\.(?:fence|commit|wait)|tcgen05\.(?:commit|wait|fence)|cp\.async\.(?:wait|commit)",
    "integer": r"(?:add|sub|mul|mad|shl|shr|and|or|xor|lop3|prmt|bfe|bfi|not)\.",
}
_OPCODE = re.compile(r"^\s+(?:@!?%p\d+\s+)?([a-z][\w.:]*)\s", re.M)


def instruction_counts(ptx: str) -> dict[str, int]:
    """Return the number of a PTX text's instructions for each purpose, with loops counted once; {} for other texts."""
    if ".visible .entry" not in ptx:
        return {}
    body = ptx[ptx.index(".visible .entry") :]
    found = Counter(_purpose(opcode) for opcode in _OPCODE.findall(body))
    return {name: found[name] for name in (*PURPOSES, "other")}


def _purpose(opcode: str) -> str:
    return next((name for name, pattern in PURPOSES.items() if re.match(pattern, opcode)), "other")
