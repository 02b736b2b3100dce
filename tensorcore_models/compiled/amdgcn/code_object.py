"""Reads code objects (ELF files for AMD GPUs): kernel descriptors, metadata, and code through llvm-objdump.

The layouts are those of LLVM's "User Guide for AMDGPU Backend", section "Code Object". The package has no disassembler of its
own: an llvm-objdump that knows the processor must be installed.
"""

import re
import shutil
import struct
import subprocess
import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from .operands import MalformedAMDGCN, instruction_parts
from .parse import add_metadata, is_branch
from .syntax import AMDInstruction, AMDKernel, CodeObject

MAGIC = b"\x7fELF"
_AMDGPU = 224
#: Processors by the low byte of an ELF file's flags.
_PROCESSORS = {0x4C: "gfx942", 0x4F: "gfx950", 0x3F: "gfx90a"}
_NOTE_METADATA = 32
_SECONDS = 120
_LINE = re.compile(r"\s+(\S.*?)\s*//\s*([0-9A-Fa-f]{8,16}): ([0-9A-Fa-f]{8})")


class _Section(NamedTuple):
    kind: int
    address: int
    offset: int
    size: int
    link: int


def _unpack(form: str, data: bytes, offset: int) -> tuple:
    try:
        return struct.unpack_from(form, data, offset)
    except struct.error:
        raise MalformedAMDGCN(f"the code object ends before byte {offset + struct.calcsize(form)}") from None


def _sections(data: bytes) -> list[_Section]:
    start, size, count = *_unpack("<Q", data, 0x28), *_unpack("<HH", data, 0x3A)
    if size != 64 or count > 4096:
        raise MalformedAMDGCN(f"the code object has {count} sections of {size} bytes, expected up to 4096 of 64")
    found = []
    for i in range(count):
        _, kind, _, address, offset, length, link = _unpack("<IIQQQQI", data, start + i * size)
        if kind != 8 and offset + length > len(data):
            raise MalformedAMDGCN("a section of the code object extends beyond the end of the data")
        found.append(_Section(kind, address, offset, length, link))
    return found


def _text_at(data: bytes, section: _Section, place: int) -> str:
    end = data.find(b"\0", section.offset + place, section.offset + section.size)
    if place < 0 or end < 0:
        raise MalformedAMDGCN("a name in the code object is not terminated")
    return data[section.offset + place : end].decode("utf-8", "replace")


def _symbols(data: bytes, sections: list[_Section]) -> dict[str, int]:
    """Return the addresses of the named symbols."""
    found: dict[str, int] = {}
    for section in sections:
        if section.kind not in (2, 11):  # SYMTAB, DYNSYM
            continue
        if section.link >= len(sections):
            raise MalformedAMDGCN("a symbol table of the code object links to no table of names")
        for at in range(section.offset, section.offset + section.size - 23, 24):
            name, _, _, _, value = _unpack("<IBBHQ", data, at)
            if name:
                found[_text_at(data, sections[section.link], name)] = value
    return found


def _file_offset(sections: list[_Section], address: int, size: int) -> int:
    for section in sections:
        if section.kind == 1 and section.address <= address and address + size <= section.address + section.size:
            return section.offset + address - section.address
    raise MalformedAMDGCN(f"the address {address:#x} lies in no section of the code object")


def descriptor_facts(data: bytes, offset: int) -> tuple[dict[str, int], int]:
    """Return the fields of a kernel descriptor, under the assembler's directive names, and the place of its code relative to
    it."""
    group, private, arguments, entry = _unpack("<III4xq", data, offset)
    first, second, properties, preload = _unpack("<IIHH", data, offset + 48)
    facts = {
        "group_segment_fixed_size": group, "private_segment_fixed_size": private, "kernarg_size": arguments,
        "next_free_vgpr": 512 if first & 63 == 63 else 8 * ((first & 63) + 1),
        "user_sgpr_kernarg_preload_length": preload & 127, "user_sgpr_kernarg_preload_offset": preload >> 7,
    }  # fmt: skip
    fields = {
        "float_round_mode_32": (first, 12, 2), "float_round_mode_16_64": (first, 14, 2), "float_denorm_mode_32": (first, 16, 2),
        "float_denorm_mode_16_64": (first, 18, 2), "dx10_clamp": (first, 21, 1), "ieee_mode": (first, 23, 1),
        "fp16_overflow": (first, 26, 1), "user_sgpr_count": (second, 1, 5), "system_sgpr_workgroup_id_x": (second, 7, 1),
        "system_sgpr_workgroup_id_y": (second, 8, 1), "system_sgpr_workgroup_id_z": (second, 9, 1),
        "user_sgpr_private_segment_buffer": (properties, 0, 1), "user_sgpr_dispatch_ptr": (properties, 1, 1),
        "user_sgpr_queue_ptr": (properties, 2, 1), "user_sgpr_kernarg_segment_ptr": (properties, 3, 1),
        "user_sgpr_dispatch_id": (properties, 4, 1), "user_sgpr_flat_scratch_init": (properties, 5, 1),
        "user_sgpr_private_segment_size": (properties, 6, 1),
    }  # fmt: skip
    facts |= {name: word >> shift & (1 << bits) - 1 for name, (word, shift, bits) in fields.items()}
    return facts, entry


# -- metadata: MessagePack ---------------------------------------------------------------------------------------------------
class _Packed:
    """`_Packed` reads MessagePack: maps, arrays, text, integers, truth values."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def _take(self, form: str) -> Any:
        (value,) = _unpack(f">{form}", self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def value(self, depth: int = 0) -> Any:
        """Return the next value of the MessagePack data."""
        if depth > 16:
            raise MalformedAMDGCN("the metadata are nested too deeply")
        mark = self._take("B")
        if mark < 0x80 or mark >= 0xE0:
            return mark if mark < 0x80 else mark - 256
        if mark < 0x90 or mark in (0xDE, 0xDF):
            count = mark & 15 if mark < 0x90 else self._take("H" if mark == 0xDE else "I")
            return {str(self.value(depth + 1)): self.value(depth + 1) for _ in range(self._checked(count))}
        if mark < 0xA0 or mark in (0xDC, 0xDD):
            count = mark & 15 if mark < 0xA0 else self._take("H" if mark == 0xDC else "I")
            return [self.value(depth + 1) for _ in range(self._checked(count))]
        if mark < 0xC0 or mark in (0xD9, 0xDA, 0xDB):
            size = mark & 31 if mark < 0xC0 else self._take("BHI"[mark - 0xD9])
            text = self.data[self.at : self.at + self._checked(size)]
            self.at += size
            return text.decode("utf-8", "replace")
        if mark in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[mark]
        if 0xCC <= mark <= 0xD3:
            return self._take("BHIQbhiq"[mark - 0xCC])
        raise MalformedAMDGCN(f"the metadata hold a value of the unknown MessagePack kind {mark:#x}")

    def _checked(self, count: int) -> int:
        if count > len(self.data) - self.at:
            raise MalformedAMDGCN("the metadata end within a value")
        return count


def _metadata(data: bytes, sections: list[_Section]) -> dict:
    """Return the metadata of a code object."""
    for section in sections:
        if section.kind != 7:  # NOTE
            continue
        at, end = section.offset, section.offset + section.size
        while at + 12 <= end:
            name, size, kind = _unpack("<III", data, at)
            start = at + 12 + -(-name // 4) * 4
            if kind == _NOTE_METADATA and data[at + 12 : at + 18] == b"AMDGPU":
                found = _Packed(data[start : min(start + size, end)]).value()
                return found if isinstance(found, dict) else {}
            at = start + -(-size // 4) * 4
    return {}


def _plain(row: Any) -> dict:
    """Return a metadata map without the leading dots of its names."""
    return {str(name).lstrip("."): value for name, value in row.items()} if isinstance(row, dict) else {}


# -- code --------------------------------------------------------------------------------------------------------------------
def disassemblers() -> list[str]:
    """Return the commands of all llvm-objdump found, the one without a version first."""
    names = [
        "llvm-objdump",
        *(f"llvm-objdump-{version}" for version in range(30, 16, -1)),
        "/opt/rocm/llvm/bin/llvm-objdump",
    ]
    return [found for found in map(shutil.which, names) if found]


def disassembled(data: bytes, target: str) -> str:
    """Return the code of a code object as llvm-objdump prints it.

    Raises
    ------
    ValueError
        If no llvm-objdump is found that knows the processor.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.co"
        path.write_bytes(data)
        for tool in disassemblers():
            try:
                ran = subprocess.run(
                    [tool, "-d", f"--mcpu={target}", str(path)], capture_output=True, timeout=_SECONDS, check=False
                )
            except (OSError, subprocess.TimeoutExpired):
                continue
            if ran.returncode == 0 and b"//" in ran.stdout:
                return ran.stdout.decode("utf-8", "replace")
    tried = ", ".join(disassemblers()) or "none is on the PATH"
    raise ValueError(
        f"reading a code object needs an llvm-objdump of version 17 or later that knows {target}, tried: {tried}; install "
        f"one (Debian: the package llvm-19), or pass the assembly text"
    )


class _Placed(NamedTuple):
    """`_Placed` is an instruction with its address and the first word of its encoding."""

    instruction: AMDInstruction
    address: int
    word: int


def _instructions(text: str) -> list[_Placed]:
    """Yield the instructions of a disassembly."""
    code = []
    for number, line in enumerate(text.splitlines(), 1):
        if match := _LINE.match(line):
            name, encoding, operands, modifiers = instruction_parts(match[1].replace("\t", " "), number)
            ins = AMDInstruction(name, encoding, operands, modifiers, number)
            code.append(_Placed(ins, int(match[2], 16), int(match[3], 16)))
    return code


def _aimed(code: list[_Placed], places: dict[int, int]) -> list[AMDInstruction]:
    """Return a kernel's instructions with the targets of its branches.

    The low 16 bits count words from the next instruction.
    """
    found = []
    for ins, address, word in code:
        if ins.name == "s_getpc_b64":
            ins = replace(ins, behind=address + 4)
        if is_branch(ins.name):
            words = (word + (1 << 15)) % (1 << 16) - (1 << 15)
            target = places.get(address + 4 + 4 * words)
            if target is None:
                raise MalformedAMDGCN("a branch goes to an instruction outside of the kernel", ins.line)
            ins = replace(ins, target=target)
        found.append(ins)
    return found


def read_code_object(data: bytes) -> tuple[str, CodeObject]:
    """Return the disassembly and the kernels of a code object.

    Raises
    ------
    ValueError
        If the data are malformed, or no disassembler is found.
    """
    if data[4:6] != b"\2\1" or _unpack("<H", data, 18)[0] != _AMDGPU:
        raise MalformedAMDGCN(
            "the file is no code object for AMD GPUs: pass PTX or AMDGCN text, or an ELF file for an AMD GPU"
        )
    flags = _unpack("<I", data, 48)[0]
    target = _PROCESSORS.get(flags & 0xFF, f"number {flags & 0xFF:#x}")
    if not target.startswith("gfx"):
        raise ValueError(
            f"the code object is for the processor {target}, expected one of {', '.join(sorted(_PROCESSORS.values()))}"
        )
    sections, found = _sections(data), CodeObject(target)
    starts: dict[str, int] = {}
    for name, address in _symbols(data, sections).items():
        if name.endswith(".kd"):
            facts, entry = descriptor_facts(data, _file_offset(sections, address, 64))
            kernel = AMDKernel(name.removesuffix(".kd"), facts)
            found.kernels[kernel.name], starts[kernel.name] = kernel, address + entry
    for row in _metadata(data, sections).get("amdhsa.kernels", []):
        fields = _plain(row)
        described = found.kernels.get(str(fields.get("symbol", "")).removesuffix(".kd"))
        if described is not None:
            add_metadata(described, fields, [_plain(each) for each in fields.get("args") or []])
    if not found.kernels:
        raise MalformedAMDGCN("the code object has no kernels")
    text = disassembled(data, target)
    code = _instructions(text)
    ends = dict(pairwise([*sorted(set(starts.values())), 1 << 63]))
    for name, kernel in found.kernels.items():
        inside = [placed for placed in code if starts[name] <= placed.address < ends[starts[name]]]
        if not inside or inside[0].address != starts[name]:
            raise MalformedAMDGCN(f"the code object has no code for the kernel {name}")
        kernel.places = {placed.address: place for place, placed in enumerate(inside)}
        kernel.code = _aimed(inside, kernel.places)
    return text, found
