"""Holds the instruction catalogue, whose rows are in a module for each vendor, and looks instructions up."""

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
    """Return the rows of one vendor's file, without reading other files."""
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
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"the catalogue has these rows twice: {twice}; give each row a name of its own")
    return known


@cache
def _of(arch: str) -> dict[str, Instruction]:
    """Return the rows of one architecture by their names."""
    rows = _rows(UNITS[arch].file) if arch in UNITS else _catalogue().values()
    return {row.name: row for row in rows if row.arch == arch}


def architectures() -> list[str]:
    """Return the names of all architectures, in the order of the catalogue."""
    return list(dict.fromkeys(arch for arch, _ in _catalogue()))


def canonical_device(name: str) -> str:
    """Return the name of a device or architecture in the tables.

    Other spellings are known, too, such as "H100", "NVIDIA A100-SXM4-80GB", "sm_90" and "gfx942".
    """
    if not isinstance(name, str):
        raise TypeError(
            f"got {type(name).__name__} for an architecture, expected the architecture's name as a string, such as 'h100'"
        )
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
            f"unknown architecture {name!r}{hint} Expected an architecture ({', '.join(known)}) or a device "
            f"({', '.join(DEVICES)})"
        )
    return found


def _resolve(arch: str) -> tuple[str, tuple[str, ...]]:
    """Return the architecture of a device or architecture name, and the operand formats that the device lacks."""
    name = canonical_device(arch)
    return DEVICES.get(name, (name, ()))


def list_instructions(arch: str | None = None) -> list[Instruction]:
    """Return the instructions of the catalogue, or those of one architecture or device.

    Instructions whose m or n is free (wgmma, tcgen05) are listed once, at their smallest shape; `get_instruction` finds them in
    every legal shape.

    Raises
    ------
    ValueError
        If the architecture or device is unknown; the message lists the nearest names.
    """
    if arch is None:
        return list(_catalogue().values())
    arch, lacking = _resolve(arch)
    return [row for row in _of(arch).values() if row.a_format not in lacking]


def usual_path(device: str) -> str | None:
    """Return the default path of a device whose paths compute differently; None if there is no default."""
    return next((row.path for row in list_instructions(device) if row.usual), None)


def get_instruction(arch: str, name: str | None = None) -> Instruction:
    """Return an instruction by architecture (or device) and name, or by "arch:name" as one string.

    Parameters
    ----------
    arch : str
        Architecture such as "hopper", device such as "h100", or "arch:name".
    name : str, optional
        Name from :func:`list_instructions`, or the instruction's name in PTX, SASS, AMD's compiler or x86's intrinsics, in
        upper or lower case.

    Raises
    ------
    ValueError
        If the architecture or the name is unknown, or the instruction is not on that architecture; the message lists the
        nearest names and the architectures that have it.
    """
    if name is None:
        arch, separator, name = arch.partition(":")
        if not separator:
            raise ValueError(
                f"got {arch!r}, expected an instruction as 'arch:name'; list_instructions() returns all instructions"
            )
    resolved, lacking = _resolve(arch)
    row = _find(resolved, name) or _find(resolved, name.lower()) or _spelled(resolved, name)
    if row is None:
        raise ValueError(_not_found(arch, resolved, name))
    if row.a_format in lacking:
        raise ValueError(
            f"{arch} has no {row.a_format} matrix unit, although other {resolved} devices have {name}: name another device or "
            "format"
        )
    return row


def _find(arch: str, name: str) -> Instruction | None:
    """Return the row with a name, in the legal shape that the name gives; None if there is none."""
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
    """Return the row of an architecture that another spelling means, None if there is none.

    Of several modes of an instruction the row without a suffix is returned. Raises ValueError if several instructions fit.
    """
    rows = _answers(name, _of(arch).values())
    plain = [row for row in rows if all(other.name.startswith(row.name) for other in rows)]
    if plain:  # the other rows are modes of this one, whose names have a suffix
        return plain[0]
    if len(rows) > 1:
        listed = ", ".join(row.name for row in rows[:6]) + (", ..." if len(rows) > 6 else "")
        raise ValueError(f"{name} on {arch} is the name of {len(rows)} instructions: choose one of {listed}")
    return rows[0] if rows else None


def _answers(text: str, among: Iterable[Instruction]) -> list[Instruction]:
    """Return the rows that fit a spelling of an instruction."""
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
    """Return the rows that fit every word of a text: devices, operand formats and instructions in any spelling and case.

    Raises ValueError if a word is unknown (the message has the nearest names), or no row fits all words.

    >>> [row.arch for row in find_instructions("HMMA.16816.F32.BF16")]
    ['ampere', 'ada', 'hopper', 'blackwell', 'rtx_blackwell']
    """
    rows, words = list(_catalogue().values()), text.replace("::", "\0").replace(":", " ").replace("\0", "::").split()
    if not words:
        raise ValueError("got an empty name, expected a device, a format or an instruction")
    while words:
        count, found = _first_meaning(words)
        rows = _both(rows, found)
        words = words[count:]
    if not rows:
        raise ValueError(f"no instruction matches all of {text!r}: leave a name out")
    return rows


def _both(rows: list[Instruction], found: list[Instruction]) -> list[Instruction]:
    """Return the rows that are in both lists; a row with free m and n is returned in the shape that was asked for."""

    def key(row: Instruction) -> tuple[str, str]:
        return row.arch, re.sub(r"\.m\d+n\d+k", ".k", row.name) if row.legal_shapes else row.name

    meant = {key(row): row for row in found}
    pairs = [(row, meant[key(row)]) for row in rows if key(row) in meant]
    return [other if (row.arch, row.name) in _catalogue() else row for row, other in pairs]


def _first_meaning(words: list[str]) -> tuple[int, list[Instruction]]:
    """Return the number of words of the first name, and the rows that it fits."""
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
        f"unknown name {words[0]!r}{hint} Expected a device (mpgemm models --devices), a format (fp16, fp8, ...) or an "
        "instruction as PTX, SASS or AMD spells it"
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
    """SeveralPaths is raised if paths of a device compute a product differently and the caller names none."""


def default_instruction(
    arch: str,
    a_format: str | Format | IntegerFormat,
    d_format: str = "fp32",
    path: str | None = None,
    b_format: str | Format | IntegerFormat | None = None,
) -> Instruction:
    """Return the instruction that a GEMM of these formats uses on an architecture or device.

    It is the instruction with the largest k, without block scales and without `.satfinite`. WMMA is used only if `path` names
    it, or if no other path (mma, wgmma, tcgen05, mfma, ...) has an instruction of these formats.

    Parameters
    ----------
    arch : str
        Architecture or device.
    a_format : str or Format
        Format of a, and of b unless `b_format` is given.
    d_format : str
        Format of c and d.
    path : str, optional
        Path of the instruction; needed if instructions of different paths give different results.
    b_format : str or Format, optional
        Format of b.

    Raises
    ------
    ValueError
        If there is no such instruction, or `path` is needed and not given; the message lists the choices.
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
            raise ValueError(
                f"{arch} has no instruction for {a_format} x {b_format} to {d_format} on path {path!r}: choose one of {named}"
            )
        return best[path]
    usual = {name: row for name, row in best.items() if name != "wmma"} or best
    if not usual:
        formats = sorted({f"{r.a_format} to {r.d_format}" for r in list_instructions(arch)})
        raise ValueError(
            f"{arch} has no instruction for {a_format} x {b_format} to {d_format}: choose one of {', '.join(formats)}"
        )
    if len({row.accumulator for row in usual.values()}) > 1:
        named = ", ".join(f"path={name!r} ({row.name})" for name, row in usual.items())
        raise SeveralPaths(f"{a_format} to {d_format} on {arch} is computed differently by path: choose {named}")
    return max(usual.values(), key=lambda row: row.k)
