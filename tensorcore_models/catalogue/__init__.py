"""The instruction catalogue: rows of data in one module for each vendor, and the lookups over them."""

import difflib
import re
from collections.abc import Iterable
from functools import cache
from importlib import import_module

from ..engines.instruction import Instruction
from ..formats import Format, IntegerFormat, format_family, operand_format
from ..formats.names import FORMAT_ALIASES
from .devices import DEVICES
from .measured import load_tables, with_table
from .vendors import UNITS

__all__ = ["architectures", "default_instruction", "get_instruction", "list_instructions"]


@cache
def _rows(file: str) -> tuple[Instruction, ...]:
    """Return the rows of one vendor's file; no other's is read."""
    rows = import_module(f"{__name__}.{file}").rows()
    for table in load_tables():
        rows = [with_table(row, table) for row in rows]
    return tuple(rows)


@cache
def _catalogue() -> dict[tuple[str, str], Instruction]:
    rows = [row for file in dict.fromkeys(unit.file for unit in UNITS.values()) for row in _rows(file)]
    known = {(row.arch, row.name): row for row in rows}
    if len(known) != len(rows):
        names = [(row.arch, row.name) for row in rows]
        raise ValueError(f"rows given twice: {sorted({name for name in names if names.count(name) > 1})}")
    return known


@cache
def _of(arch: str) -> dict[str, Instruction]:
    """Return the rows of one architecture by their names."""
    rows = _rows(UNITS[arch].file) if arch in UNITS else _catalogue().values()
    return {row.name: row for row in rows if row.arch == arch}


def architectures() -> list[str]:
    """Return the names of all architectures, in the order of the tables."""
    return list(dict.fromkeys(arch for arch, _ in _catalogue()))


def canonical_device(name: str) -> str:
    """Return a device or architecture as the tables spell it: "H100", "NVIDIA A100-SXM4-80GB", "sm_90" and "gfx942" are known,
    too."""
    if not isinstance(name, str):
        raise TypeError(f"an architecture is a name, got {type(name).__name__}")
    if name in DEVICES or name in UNITS:
        return name
    known = architectures()
    if name in known:
        return name
    from . import names

    found = names.device_or_architecture(name, known)
    if found is None:
        unknown = names.not_modelled(name)
        if unknown is not None:
            raise ValueError(f"{name} is {unknown}")
        near = difflib.get_close_matches(name.lower(), [*known, *DEVICES], 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else "."
        raise ValueError(
            f"unknown architecture {name!r}{hint} Architectures: {', '.join(known)}. Devices: {', '.join(DEVICES)}"
        )
    return found


def _resolve(arch: str) -> tuple[str, tuple[str, ...]]:
    """Return architecture of a device alias and the operand formats it lacks."""
    name = canonical_device(arch)
    return DEVICES.get(name, (name, ()))


def list_instructions(arch: str | None = None) -> list[Instruction]:
    """Return the instructions of the catalogue, or those of one architecture or device.

    Instructions whose m or n is free (wgmma, tcgen05) are listed once, at their smallest shape; `get_instruction` knows every
    legal one.

    Raises
    ------
    ValueError
        If the architecture or device is unknown, with the nearest names.
    """
    if arch is None:
        return list(_catalogue().values())
    arch, lacking = _resolve(arch)
    return [row for row in _of(arch).values() if row.a_format not in lacking]


def usual_path(device: str) -> str | None:
    """Return the path that an architecture or device means where paths compute differently and none is named; None: one has to
    be."""
    return next((row.path for row in list_instructions(device) if row.usual), None)


def get_instruction(arch: str, name: str | None = None) -> Instruction:
    """Return an instruction by architecture (or device) and name, or by "arch:name" as one string.

    Parameters
    ----------
    arch : str
        Architecture, device ("h100"), or "arch:name".
    name : str, optional
        Name as :func:`list_instructions` gives it, or as PTX, SASS, AMD's compiler or x86's intrinsics spell it, in any case.

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
    row = _find(resolved, name) or _find(resolved, name.lower()) or _spelled(resolved, name)
    if row is None:
        raise ValueError(_not_found(arch, resolved, name))
    if row.a_format in lacking:
        raise ValueError(f"{arch} has no {row.a_format} matrix unit, although other {resolved} devices have {name}")
    return row


def _find(arch: str, name: str) -> Instruction | None:
    """Return the row of that name, or of another legal shape of it."""
    row = _of(arch).get(name)
    shape = re.search(r"\.m(\d+)n(\d+)k", name)
    if row is not None or shape is None:
        return row
    m, n = int(shape[1]), int(shape[2])
    for base in _of(arch).values():
        if base.legal_shapes:
            renamed = re.sub(r"\.m\d+n\d+k", f".m{m}n{n}k", base.name, count=1)
            if renamed == name:
                return base.with_shape(m, n)
    return None


def _spelled(arch: str, name: str) -> Instruction | None:
    """Return the one row of an architecture that another spelling of a name means, None for none; of modes of it, the usual
    one."""
    rows = _answers(name, _of(arch).values())
    plain = [row for row in rows if all(other.name.startswith(row.name) for other in rows)]
    if plain:  # the others are modes of it, named by a suffix
        return plain[0]
    if len(rows) > 1:
        listed = ", ".join(row.name for row in rows[:6]) + (", ..." if len(rows) > 6 else "")
        raise ValueError(f"{name} on {arch} is the name of {len(rows)} instructions, choose one: {listed}")
    return rows[0] if rows else None


def _answers(text: str, among: Iterable[Instruction]) -> list[Instruction]:
    """Return rows that a spelling of an instruction means."""
    from . import names

    query = names.instruction_query(text)
    if query is None or query.empty:
        return []
    rows = [row for row in among if query.answers(row)]
    if query.shape is None:
        return rows
    m, n, _ = query.shape
    return [row.with_shape(m, n) if row.legal_shapes else row for row in rows]


def find_instructions(text: str) -> list[Instruction]:
    """Return rows that words mean: devices, operand formats and instructions in any spelling and case, all of which must fit.

    Raises ValueError if a word means nothing (the message has the nearest names), or nothing is all of them.

    >>> [row.arch for row in find_instructions("HMMA.16816.F32.BF16")]
    ['ampere', 'ada', 'hopper', 'blackwell', 'rtx_blackwell']
    """
    rows, words = list(_catalogue().values()), text.replace("::", "\0").replace(":", " ").replace("\0", "::").split()
    if not words:
        raise ValueError("a name is empty: give a device, a format or an instruction")
    while words:
        count, found = _first_meaning(words)
        rows = _both(rows, found)
        words = words[count:]
    if not rows:
        raise ValueError(f"no instruction matches all of {text!r}")
    return rows


def _both(rows: list[Instruction], found: list[Instruction]) -> list[Instruction]:
    """Return rows in both lists; of a row with free m and n the one whose shape was asked for."""

    def key(row: Instruction) -> tuple[str, str]:
        return row.arch, re.sub(r"\.m\d+n\d+k", ".k", row.name) if row.legal_shapes else row.name

    meant = {key(row): row for row in found}
    pairs = [(row, meant[key(row)]) for row in rows if key(row) in meant]
    return [other if (row.arch, row.name) in _catalogue() else row for row, other in pairs]


def _first_meaning(words: list[str]) -> tuple[int, list[Instruction]]:
    """Return how many of the words make the first name, and its rows."""
    from . import names

    for count in range(len(words), 0, -1):
        device = names.device_or_architecture(" ".join(words[:count]), architectures())
        if device is not None:
            return count, list_instructions(device)
    formats = format_family(words[0])
    if formats:
        return 1, [row for row in _catalogue().values() if row.a_format in formats]
    named = [row for row in _catalogue().values() if row.name == words[0].lower()]
    rows = list(dict.fromkeys([*named, *_answers(words[0], _catalogue().values())]))
    if rows:
        return 1, rows
    known = [
        *architectures(),
        *DEVICES,
        *FORMAT_ALIASES,
        *dict.fromkeys(row.name for row in _catalogue().values()),
    ]
    for count in range(len(words), 0, -1):
        unknown = names.not_modelled(" ".join(words[:count]))
        if unknown is not None:
            raise ValueError(f"{' '.join(words[:count])} is {unknown}")
    near = difflib.get_close_matches(words[0].lower(), known, 3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else "."
    raise ValueError(
        f"unknown name {words[0]!r}{hint} Known are devices (mpgemm models --devices), formats (fp16, fp8, ...) and "
        "instructions as PTX, SASS and AMD spell them"
    )


def _not_found(arch: str, resolved: str, name: str) -> str:
    elsewhere = [a for a in architectures() if _find(a, name) is not None]
    if elsewhere:
        return f"{name} is not on {arch}; it is on {', '.join(elsewhere)}"
    rows = _of(resolved)
    operands = dict.fromkeys(fmt.name for row in rows.values() for fmt in row.formats[:2])
    near = difflib.get_close_matches(name, rows, 3, cutoff=0.3) or [*rows][:3]
    return f"unknown instruction {name!r} on {arch} (operands: {', '.join(operands)}); nearest: {', '.join(near)}"


class SeveralPaths(ValueError):
    """SeveralPaths is raised where a device computes a product differently by path and none is named."""


def default_instruction(
    arch: str,
    a_format: str | Format | IntegerFormat,
    d_format: str = "fp32",
    path: str | None = None,
    b_format: str | Format | IntegerFormat | None = None,
) -> Instruction:
    """Return the instruction that a GEMM of these formats uses on an architecture or device.

    For each path (mma, wgmma, tcgen05, mfma, ...) the instruction with the largest k is considered, plain
    instructions before block-scaled ones; WMMA only if it is named.

    Parameters
    ----------
    arch : str
        Architecture or device.
    a_format : str or Format
    d_format : str
        Formats of a (and b, unless `b_format` is given) and of d (and c).
    path : str, optional
        Needed where paths compute differently.

    Raises
    ------
    ValueError
        If there is none, or paths differ in their arithmetic and none is named (the message names them).
    """
    a_format, b_format, d_format = (operand_format(fmt).name for fmt in (a_format, b_format or a_format, d_format))
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
    if path is not None and best:
        if path not in best:
            named = ", ".join(map(repr, sorted(best)))
            raise ValueError(f"{arch} has no {a_format} x {b_format} to {d_format} on path {path!r}; it has {named}")
        return best[path]
    usual = {name: row for name, row in best.items() if name != "wmma"} or best
    if not usual:
        formats = sorted({f"{r.a_format} to {r.d_format}" for r in list_instructions(arch)})
        raise ValueError(f"{arch} has no {a_format} x {b_format} to {d_format}; it has {', '.join(formats)}")
    if len({row.accumulator for row in usual.values()}) > 1:
        named = ", ".join(f"path={name!r} ({row.name})" for name, row in usual.items())
        raise SeveralPaths(f"{a_format} to {d_format} on {arch} is computed differently by path: choose {named}")
    return max(usual.values(), key=lambda row: row.k)
