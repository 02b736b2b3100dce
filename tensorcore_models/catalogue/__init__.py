"""The instruction catalogue: rows of data in one module for each vendor, and the lookups over them."""

import difflib
import re
from functools import cache

from ..engines.instruction import Instruction
from ..formats import get_format
from . import amd, ascend, nvidia, other
from .devices import DEVICES
from .measured import load_tables, with_table

__all__ = ["architectures", "default_instruction", "get_instruction", "list_instructions"]


@cache
def _catalogue() -> dict[tuple[str, str], Instruction]:
    rows = [*nvidia.rows(), *amd.rows(), *other.rows(), *ascend.rows()]
    for table in load_tables():
        rows = [with_table(row, table) for row in rows]
    known = {(row.arch, row.name): row for row in rows}
    if len(known) != len(rows):
        names = [(row.arch, row.name) for row in rows]
        raise ValueError(f"rows given twice: {sorted({name for name in names if names.count(name) > 1})}")
    return known


def architectures() -> list[str]:
    """Names of all architectures, in the order of the tables."""
    return list(dict.fromkeys(arch for arch, _ in _catalogue()))


def _resolve(arch: str) -> tuple[str, tuple[str, ...]]:
    """Architecture of a device alias and the operand formats it lacks."""
    if not isinstance(arch, str):
        raise TypeError(f"an architecture is a name, got {type(arch).__name__}")
    if arch in DEVICES:
        return DEVICES[arch]
    known = architectures()
    if arch not in known:
        near = difflib.get_close_matches(arch.lower(), [*known, *DEVICES], 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else "."
        raise ValueError(
            f"unknown architecture {arch!r}{hint} Architectures: {', '.join(known)}. Devices: {', '.join(DEVICES)}"
        )
    return arch, ()


def list_instructions(arch: str | None = None) -> list[Instruction]:
    """The catalogue's rows, of one architecture or device if named.

    Instructions whose m or n is free (wgmma, tcgen05) stand there once, at their smallest shape; `get_instruction` knows every
    legal one.
    """
    if arch is None:
        return list(_catalogue().values())
    arch, lacking = _resolve(arch)
    return [row for row in _catalogue().values() if row.arch == arch and row.a_format not in lacking]


def get_instruction(arch: str, name: str | None = None) -> Instruction:
    """One instruction, by architecture (or device) and name, or by "arch:name" as one string.

    Parameters
    ----------
    arch : str
        Architecture, device ("h100"), or "arch:name".
    name : str, optional
        Name as :func:`list_instructions` gives it.

    Raises
    ------
    ValueError
        If the architecture or the name is unknown, or the instruction is not on that architecture; the message lists the
        nearest names and the architectures that have it.
    """
    if name is None:
        arch, separator, name = arch.partition(":")
        if not separator:
            raise ValueError(f"an instruction is 'arch:name', got {arch!r}; list_instructions() names them")
    resolved, lacking = _resolve(arch)
    row = _find(resolved, name)
    if row is None:
        raise ValueError(_not_found(arch, resolved, name))
    if row.a_format in lacking:
        raise ValueError(f"{arch} has no {row.a_format} matrix unit, although other {resolved} devices have {name}")
    return row


def _find(arch: str, name: str) -> Instruction | None:
    """The row of that name, or of another legal shape of it."""
    row = _catalogue().get((arch, name))
    shape = re.search(r"\.m(\d+)n(\d+)k", name)
    if row is not None or shape is None:
        return row
    m, n = int(shape[1]), int(shape[2])
    for base in _catalogue().values():
        if base.arch == arch and base.legal_shapes:
            renamed = re.sub(r"\.m\d+n\d+k", f".m{m}n{n}k", base.name, count=1)
            if renamed == name:
                return base.with_shape(m, n)
    return None


def _not_found(arch: str, resolved: str, name: str) -> str:
    elsewhere = [a for a in architectures() if _find(a, name) is not None]
    if elsewhere:
        return f"{name} is not on {arch}; it is on {', '.join(elsewhere)}"
    names = [n for a, n in _catalogue() if a == resolved]
    near = difflib.get_close_matches(name, names, 3, cutoff=0.3)
    return f"unknown instruction {name!r} on {arch}; nearest: {', '.join(near or names[:3])}"


def default_instruction(
    arch: str, a_format: str, d_format: str = "fp32", path: str | None = None, b_format: str | None = None
) -> Instruction:
    """The instruction that a GEMM of these formats uses on an architecture or device.

    Of each path (mma, wgmma, tcgen05, mfma, ...) the one with the largest k counts, plain ones before block-scaled ones; WMMA
    only if asked for.

    Parameters
    ----------
    arch : str
        Architecture or device.
    a_format, d_format : str
        Formats of a (and b, unless `b_format` is given) and of d (and c).
    path : str, optional
        Needed where paths compute differently.

    Raises
    ------
    ValueError
        If there is none, or paths differ in their arithmetic and none is named (the message names them).
    """
    b_format = b_format or a_format
    for fmt in (a_format, b_format, d_format):
        get_format(fmt)
    rows = [
        row
        for row in list_instructions(arch)
        if (row.a_format, row.b_format, row.c_format, row.d_format) == (a_format, b_format, d_format, d_format)
        and row.scale_format is None
        and not row.name.endswith(".satfinite")
    ]
    best: dict[str, Instruction] = {}
    for row in rows:
        if row.path not in best or row.k > best[row.path].k:
            best[row.path] = row
    if path is not None:
        if path not in best:
            raise ValueError(
                f"{arch} has no {a_format} x {b_format} to {d_format} on path {path!r}; it has {sorted(best)}"
            )
        return best[path]
    usual = {name: row for name, row in best.items() if name != "wmma"} or best
    if not usual:
        formats = sorted({f"{r.a_format} to {r.d_format}" for r in list_instructions(arch)})
        raise ValueError(f"{arch} has no {a_format} x {b_format} to {d_format}; it has {', '.join(formats)}")
    if len({row.accumulator for row in usual.values()}) > 1:
        named = ", ".join(f"path={name!r} ({row.name})" for name, row in usual.items())
        raise ValueError(f"{a_format} to {d_format} on {arch} is computed differently by path: choose {named}")
    return max(usual.values(), key=lambda row: row.k)
