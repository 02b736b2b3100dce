"""Parses AMDGCN assembly text: kernels with their descriptors, metadata and code."""

import re

from .operands import MalformedAMDGCN, instruction_parts
from .syntax import AMDInstruction, AMDKernel, CodeObject, KernelArgument, Word

_LABEL = re.compile(r"([.$\w]+):")
_TARGET = re.compile(r"gfx[0-9a-f]+")
_HSA = re.compile(r"\.amdhsa_(\w+)\s+(.*)")


class _Code:
    """`_Code` holds the instructions of a text, its labels, and the branches that name them."""

    def __init__(self) -> None:
        self.code: list[AMDInstruction] = []
        self.labels: dict[str, int] = {}

    def add(self, text: str, line: int) -> None:
        """Add one instruction."""
        name, encoding, operands, modifiers = instruction_parts(text, line)
        self.code.append(AMDInstruction(name, encoding, operands, modifiers, line))

    def of(self, kernel: str) -> list[AMDInstruction]:
        """Return a kernel's instructions, up to the end of the text's code, with the targets of its branches."""
        start, found = self.labels[kernel], []
        for ins in self.code[start:]:
            if is_branch(ins.name):
                found.append(self._aimed(ins, start))
            else:
                found.append(ins)
        return found

    def _aimed(self, ins: AMDInstruction, start: int) -> AMDInstruction:
        goal = ins.operands[0] if len(ins.operands) == 1 else None
        if not isinstance(goal, Word):
            raise MalformedAMDGCN("a branch needs one label as its operand", ins.line)
        if goal.name not in self.labels:
            raise MalformedAMDGCN(f"the text has no label {goal.name}", ins.line)
        if self.labels[goal.name] < start:
            raise MalformedAMDGCN(f"a branch goes to {goal.name}, a label outside of the kernel", ins.line)
        target = self.labels[goal.name] - start
        return AMDInstruction(ins.name, ins.encoding, ins.operands, ins.modifiers, ins.line, target)


def is_branch(name: str) -> bool:
    """Return whether an instruction branches to a label in its operand."""
    return name == "s_branch" or name.startswith("s_cbranch_") and name not in ("s_cbranch_g_fork", "s_cbranch_join")


def parse(text: str) -> CodeObject:
    """Return the kernels of an assembly text.

    Raises
    ------
    ValueError
        If the text is malformed; the message has the line.
    """
    found, code, in_code = CodeObject(), _Code(), True
    described: AMDKernel | None = None
    metadata: list[str] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        if metadata is not None:
            if raw.strip() == ".end_amdgpu_metadata":
                _read_metadata(metadata, found)
                metadata = None
            else:
                metadata.append(raw)
            continue
        line = raw.split(";", 1)[0].split("//", 1)[0].strip()
        if label := _LABEL.match(line):
            if in_code:
                if label[1] in code.labels:
                    raise MalformedAMDGCN(f"the label {label[1]} is defined twice", number)
                code.labels[label[1]] = len(code.code)
            line = line[label.end() :].strip()
        if not line:
            continue
        word = line.split(None, 1)[0]
        if described is not None:
            if word == ".end_amdhsa_kernel":
                described = None
            elif match := _HSA.match(line):
                _describe(described, match[1], match[2])
        elif word == ".amdgcn_target":
            target = _TARGET.search(line)
            found.target = target.group() if target else ""
        elif word == ".amdhsa_kernel":
            described = found.kernels.setdefault(line.split()[-1], AMDKernel(line.split()[-1]))
        elif word == ".amdgpu_metadata":
            metadata = []
        elif word in (".text", ".section", ".data", ".bss"):
            in_code = word == ".text" or ".text" in line
        elif in_code and not word.startswith("."):
            code.add(line.replace("\t", " "), number)
    if described is not None or metadata is not None:
        raise MalformedAMDGCN("the text ends within .amdhsa_kernel or .amdgpu_metadata")
    if not found.target:
        raise MalformedAMDGCN("the text has no .amdgcn_target: pass AMDGCN assembly")
    for name, kernel in found.kernels.items():
        if name not in code.labels:
            raise MalformedAMDGCN(f"the text has no code for the kernel {name}")
        kernel.code = code.of(name)
    return found


def _describe(kernel: AMDKernel, field: str, text: str) -> None:
    """Store a field of the kernel descriptor; skip fields given as symbol expressions, because no such field is read here."""
    value = text.strip()
    if re.fullmatch(r"-?(?:0x[0-9a-fA-F]+|\d+)", value):
        kernel.facts[field] = int(value, 0)


# -- metadata: the part of YAML that the assembler writes ------------------------------------------------------------------
_ITEM = re.compile(r"(\s*)(- )?\s*(\.[\w.]+|amdhsa\.\w+):\s*(.*)")


def _read_metadata(lines: list[str], found: CodeObject) -> None:
    """Return the arguments and sizes of each kernel."""
    kernels: list[dict] = []
    for line in lines:
        match = _ITEM.match(line)
        if match is None:
            if kernels and (item := re.fullmatch(r"\s+- (\d+)", line)) and kernels[-1]["open"]:
                kernels[-1]["fields"].setdefault(kernels[-1]["open"], []).append(int(item[1]))
            continue
        depth, opens, name, value = len(match[1]), match[2], match[3], match[4].strip().strip("'\"")
        if name.startswith("amdhsa."):
            continue
        if depth == 2 and opens:
            kernels.append({"fields": {}, "args": [], "open": ""})
        if not kernels:
            continue
        if depth >= 6:
            if opens:
                kernels[-1]["args"].append({})
            if kernels[-1]["args"]:
                kernels[-1]["args"][-1][name[1:]] = value
        else:
            kernels[-1]["open"] = "" if value else name[1:]
            if value:
                kernels[-1]["fields"][name[1:]] = value
    for row in kernels:
        name = row["fields"].get("name", "")
        if name in found.kernels:
            add_metadata(found.kernels[name], row["fields"], row["args"])


def add_metadata(kernel: AMDKernel, fields: dict, arguments: list[dict]) -> None:
    """Add the metadata's facts to a kernel.

    Raises
    ------
    ValueError
        If an argument has no offset.
    """
    kernel.metadata = fields
    for number, row in enumerate(arguments):
        try:
            offset, size = int(row["offset"]), int(row["size"])
        except (KeyError, ValueError):
            raise MalformedAMDGCN(
                f"argument {number} of {kernel.name} has no offset and size in the metadata"
            ) from None
        if not 0 <= offset <= offset + size <= 1 << 16:
            raise MalformedAMDGCN(f"argument {number} of {kernel.name} lies at offset {offset}, expected 0 to 65536")
        name = str(row.get("name", f"argument_{number}"))
        kernel.arguments.append(KernelArgument(name, offset, size, str(row.get("value_kind", "by_value"))))
    kernel.arguments.sort(key=lambda argument: argument.offset)
