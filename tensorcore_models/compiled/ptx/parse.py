"""Parses PTX text to data (:mod:`.syntax`); an error in the text gives one line with its line number.

A statement ends with a semicolon. Braces at the start of a statement open and close scopes of registers and labels; braces
inside a statement are vectors. Functions other than entries, debug sections and line information are skipped.
"""

import re
import struct
from bisect import bisect_right
from typing import NoReturn

from ..isa.types import TYPE_BITS
from .syntax import (
    Address,
    Decimal,
    Entry,
    Immediate,
    Module,
    Negated,
    Pair,
    PTXInstruction,
    Register,
    Sink,
    Special,
    Symbol,
    Variable,
    Vector,
)

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_LINE_INFORMATION = re.compile(r"^[ \t]*\.(?:loc|file)\b[^\n]*", re.M)
_NAME = r"[A-Za-z_$%][\w$]*"
_LABEL = re.compile(rf"({_NAME})\s*:(?!:)")
_OPCODE = re.compile(r"[a-z][\w]*(?:(?:\.|::)[\w]+)*")
_TOKEN = re.compile(
    rf"\s*(?:(?P<float>0[fF][0-9a-fA-F]{{8}}|0[dD][0-9a-fA-F]{{16}})|(?P<decimal>\d+\.\d*(?:[eE][-+]?\d+)?)"
    rf"|(?P<integer>0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?)|(?P<name>{_NAME}(?:\.\w+(?:::\w+)*)*)|(?P<mark>[-+!|,\[\]{{}}()<>=@]))"
)
#: Special registers that the machine has, without the percent sign.
SPECIAL = re.compile(
    r"%(?:n?tid|n?ctaid|cluster_n?ctaid|n?clusterid)(?:\.[xyz])?$|%(?:laneid|n?warpid|n?smid|gridid|clock\w*|globaltimer\w*|"
    r"lanemask_\w+|cluster_n?ctarank|dynamic_smem_size|total_smem_size|aggr_smem_size|is_explicit_cluster|envreg\d+|pm\d+\w*)$"
)
_LONGEST_VECTOR = 1 << 20


class MalformedPTX(ValueError):
    """`MalformedPTX` is the error for text that is not PTX; the message has the line."""


class _Text:
    """`_Text` is the text without comments, with a cursor."""

    def __init__(self, text: str):
        def blank(match):
            return re.sub(r"[^\n]", " ", match.group())

        self.text = _LINE_INFORMATION.sub(blank, _COMMENT.sub(blank, text))
        self.ends = [m.start() for m in re.finditer("\n", self.text)]
        self.at = 0

    def line(self, at: int | None = None) -> int:
        return bisect_right(self.ends, (self.at if at is None else at) - 1) + 1

    def fail(self, what: str, at: int | None = None) -> NoReturn:
        raise MalformedPTX(f"line {self.line(at)}: {what}")

    def skip(self) -> str:
        """Return the next character that is no space, '' at the end."""
        match = re.compile(r"\s*").match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def until(self, marks: str) -> str:
        """Return the text up to the first of the marks, and move the cursor past the mark."""
        found = re.compile(f"[{re.escape(marks)}]").search(self.text, self.at)
        if found is None:
            start = self.text[self.at : self.at + 30].strip().split("\n")[0]
            self.fail(f"{start!r} does not end with one of {' '.join(marks)}")
        taken, self.at = self.text[self.at : found.start()], found.end()
        return taken

    def block(self) -> None:
        """Skip a balanced block in braces, whose opening brace has been read."""
        depth = 1
        for match in re.compile("[{}]").finditer(self.text, self.at):
            depth += 1 if match.group() == "{" else -1
            if depth == 0:
                self.at = match.end()
                return
        self.fail("a brace is not closed")


def parse(text: str) -> Module:
    """Return the module of a PTX text.

    Raises
    ------
    ValueError
        If the text is malformed; the message has the line.
    """
    source, module = _Text(text), Module()
    while mark := source.skip():
        if mark in "};":
            source.at += 1
            continue
        start = source.at
        head = re.compile(r"\.?[\w$]+").match(source.text, start)
        if head is None:
            source.fail(f"{source.text[start : start + 20]!r} is not PTX")
        word = head.group()
        if word in (".version", ".target", ".address_size"):
            source.at = head.end()
            value = source.text[source.at :].partition("\n")[0]
            source.at += len(value)
            if word != ".address_size":
                setattr(module, word[1:], value.split(",")[0].strip())
        elif word == ".section":
            source.until("{")
            source.block()
        elif word == ".pragma":
            source.until(";")
        elif word.startswith("."):
            _module_statement(source, module)
        else:
            source.fail(f"{word!r} stands outside of an entry")
    if not module.target:
        raise MalformedPTX("the text has no .target: pass PTX")
    return module


def _module_statement(source: _Text, module: Module) -> None:
    """Read an entry, a function or a variable."""
    start = source.at
    end = re.compile(r"[;{(=]|$").search(source.text, start)
    head = source.text[start : end.start()] if end else ""
    words = head.split()
    if ".entry" in words or ".func" in words:
        kind = ".entry" if ".entry" in words else ".func"
        name = words[words.index(kind) + 1] if words[-1] != kind else ""
        source.at = start + len(head)
        entry = Entry(name)
        if source.skip() == "(":
            source.at += 1
            inside = source.until(")")
            if kind == ".entry":
                entry.parameters = [_declared(p, source) for p in inside.split(",") if p.strip()]
            else:  # a function's results, then its name and parameters
                source.until("{;")
                if source.text[source.at - 1] == "{":
                    source.block()
                return
        text = source.until("{;")
        entry.directives = _directives(text)
        if source.text[source.at - 1] == ";":
            return
        if kind == ".func":
            source.block()
            return
        if name in module.entries:
            source.fail(f"the entry {name} is defined twice", start)
        module.entries[name] = entry
        _Body(source, entry).parse()
        return
    statement = source.until(";")
    module.variables.append(_declared(statement, source))


def _directives(text: str) -> dict[str, tuple[int, ...]]:
    found = {}
    for name, numbers in re.findall(r"\.(\w+)([\s\d,]*)", text):
        found[name] = tuple(int(n) for n in re.findall(r"\d+", numbers))
    return found


_DECLARED = re.compile(
    rf"(?P<words>(?:\.\w+\s+(?:\d+\s+)?)+)(?P<name>{_NAME})(?P<array>(?:\s*\[\s*\d*\s*\])*)\s*(?:=\s*(?P<initial>.*))?$",
    re.S,
)


def _declared(statement: str, source: _Text) -> Variable:
    """Return the variable that a statement declares."""
    match = _DECLARED.match(statement.strip())
    words = match["words"].split() if match else []
    types = [word[1:] for word in words if word[1:] in TYPE_BITS]
    spaces = [word[1:] for word in words if word in (".param", ".shared", ".local", ".global", ".const")]
    if match is None or not types or not spaces:
        source.fail(f"{' '.join(statement.split())[:60]!r} is an unknown declaration")
    size = max(1, TYPE_BITS[types[0]] // 8) * next((int(word[2:]) for word in words if word in (".v2", ".v4")), 1)
    count = 1
    for extent in re.findall(r"\[\s*(\d*)\s*\]", match["array"]):
        count *= int(extent or 0)
    aligned = [
        int(number) for word, number in zip(words, words[1:], strict=False) if word == ".align" and number.isdecimal()
    ]
    if len(aligned) != words.count(".align"):
        source.fail(f"{' '.join(statement.split())[:60]!r} has no number after .align")
    initial = _initial(match["initial"], size, count * size, source) if match["initial"] else None
    return Variable(match["name"], spaces[0], count * size, max([size, *aligned[:1]]), initial)


def _initial(text: str, size: int, total: int, source: _Text) -> bytes:
    values = text.strip(" \t\n{}").split(",")
    try:
        numbers = [int(value, 0) for value in values]
    except ValueError:
        source.fail("the initial value of a variable is not plain integers")
    return b"".join((n % (1 << 8 * size)).to_bytes(size, "little") for n in numbers)[:total].ljust(total, b"\0")


class _Body:
    """`_Body` reads the statements of one entry: scopes of registers and labels, instructions in order."""

    def __init__(self, source: _Text, entry: Entry):
        self.source, self.entry = source, entry
        self.scopes: list[dict] = [{}]
        self.ranges: list[list[tuple[str, int, int]]] = [[]]
        self.labels: list[dict[str, int]] = [{}]
        self.branches: list[tuple[int, str, list[dict[str, int]]]] = []
        self.last_label = ""
        self.tables: dict[str, list[str]] = {}

    def parse(self) -> None:
        source = self.source
        while True:
            mark = source.skip()
            if not mark:
                source.fail(f"the entry {self.entry.name} is not closed")
            if mark == "}":
                source.at += 1
                self.labels.pop()
                self.ranges.pop()
                self.scopes.pop()
                if not self.scopes:
                    break
            elif mark == "{":
                source.at += 1
                self.scopes.append({})
                self.ranges.append([])
                self.labels.append({})
            elif mark == ";":
                source.at += 1
            elif mark == ".":
                self._directive()
            elif label := _LABEL.match(source.text, source.at):
                self.last_label = label[1]
                self.labels[-1][label[1]] = len(self.entry.code)
                source.at = label.end()
            else:
                start = source.at
                self._instruction(source.until(";"), start)
        for index, name, scopes in self.branches:
            target = next((scope[name] for scope in reversed(scopes) if name in scope), None)
            if target is None:
                source.fail(f"the entry has no label {name}")
            self.entry.labels[index] = target

    def _directive(self) -> None:
        source, start = self.source, self.source.at
        statement = source.until(";")
        words = statement.split()
        if words[0] == ".reg":
            self._registers(statement.strip()[4:].strip())
        elif words[0] in (".shared", ".local", ".global", ".const", ".param"):
            self.entry.variables.append(_declared(statement, source))
        elif words[0] == ".branchtargets":
            self.tables[self.last_label] = [name.strip() for name in statement.strip()[len(words[0]) :].split(",")]
        elif words[0] not in (".pragma", ".maxnreg", ".noreturn"):
            source.fail(f"unknown directive {words[0]}", start)

    def _registers(self, text: str) -> None:
        match = re.match(r"(?:\.v\d\s*)?\.(\w+)\s+(.*)$", text, re.S)
        if match is None or match[1] not in TYPE_BITS:
            self.source.fail(f"{' '.join(text.split())[:40]!r} declares no registers")
        bits = TYPE_BITS[match[1]]
        for name in match[2].split(","):
            counted = re.fullmatch(rf"({_NAME})\s*(?:<\s*(\d+)\s*>)?", name.strip())
            if counted is None:
                self.source.fail(f"{name.strip()!r} is not a register's name")
            if counted[2] is None:
                self.scopes[-1][counted[1]] = self._new(counted[1], bits)
            else:  # the registers of a range are made when they are first used
                self.ranges[-1].append((counted[1], int(counted[2]), bits))

    def _new(self, name: str, bits: int) -> Register:
        register = Register(len(self.entry.registers), bits, name)
        self.entry.registers.append(register)
        return register

    def _register(self, name: str) -> Register | None:
        """Return the register of a name, from the innermost scope that has it; None if no scope has it."""
        for scope, ranges in zip(reversed(self.scopes), reversed(self.ranges), strict=True):
            if name in scope:
                return scope[name]
            for stem, count, bits in ranges:
                rest = name[len(stem) :]
                if name.startswith(stem) and rest.isdigit() and int(rest) < count:
                    scope[name] = self._new(name, bits)
                    return scope[name]
        return None

    def _instruction(self, text: str, start: int) -> None:
        source = self.source
        guard, body = None, text.strip()
        if body.startswith("@"):
            match = re.match(rf"@(!?)\s*({_NAME})\s+(.*)$", body, re.S)
            register = self._register(match[2]) if match else None
            if match is None or register is None or register.bits != 1:
                source.fail(f"{body[:30]!r} has an undeclared predicate", start)
            guard, body = (register, match[1] == "!"), match[3]
        opcode = _OPCODE.match(body)
        if opcode is None:
            source.fail(f"{body[:30]!r} is not an instruction", start)
        name, *modifiers = opcode.group().split(".")
        operands = _Operands(body[opcode.end() :], self, start).all()
        if name == "brx":
            self._indexed_branch(operands, guard, start)
            return
        self.entry.code.append(PTXInstruction(name, tuple(modifiers), operands, guard, source.line(start)))
        if name == "bra":
            if len(operands) != 1 or not isinstance(operands[0], Symbol):
                source.fail("a branch needs one label as its operand", start)
            self.branches.append((len(self.entry.code) - 1, operands[0].name, list(self.labels)))

    def _indexed_branch(self, operands: tuple, guard, start: int) -> None:
        """Read brx.idx: one branch for each label of the table, taken if the index is its place, and a trap after them."""
        source, code = self.source, self.entry.code
        table = self.tables.get(getattr(operands[-1], "name", "")) if len(operands) == 2 else None
        if table is None or guard is not None or not isinstance(operands[0], Register):
            source.fail(
                "brx.idx takes an index and a table that .branchtargets declared before it, and no predicate", start
            )
        line = source.line(start)
        for place, label in enumerate(table):
            held = self._new(f"(index is {place})", 1)
            code.append(PTXInstruction("setp", ("eq", "u32"), (held, operands[0], Immediate(place)), None, line))
            code.append(PTXInstruction("bra", (), (Symbol(label),), (held, False), line))
            self.branches.append((len(code) - 1, label, list(self.labels)))
        code.append(PTXInstruction("trap", (), (), None, line))


class _Operands:
    """`_Operands` reads the operands of one instruction."""

    def __init__(self, text: str, body: _Body, start: int):
        self.body, self.start, self.tokens, at = body, start, [], 0
        stripped = text.rstrip()
        while at < len(stripped):
            match = _TOKEN.match(stripped, at)
            if match is None:
                self._fail(f"{stripped[at : at + 20].strip()!r} is not an operand")
            self.tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            at = match.end()
        self.at = 0

    def _fail(self, what: str) -> NoReturn:
        self.body.source.fail(what, self.start)

    def _peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def _expect(self, mark: str) -> None:
        if self._peek() != mark:
            self._fail(f"expected {mark!r}, got {self._peek()!r}")
        self.at += 1

    def all(self) -> tuple:
        found = self._list("")
        if self.at != len(self.tokens):
            self._fail(f"{self._peek()!r} stands after the operands")
        return found

    def _list(self, end: str) -> tuple:
        found = []
        while self.at < len(self.tokens) and self._peek() != end:
            found.append(self._operand())
            if self._peek() == ",":
                self.at += 1
            elif self._peek() != end:
                self._fail(f"{self._peek()!r} stands between operands")
        return tuple(found)

    def _operand(self):
        mark = self._peek()
        if mark == "{":
            self.at += 1
            items = self._list("}")
            self._expect("}")
            return Vector(items)
        if mark == "[":
            self.at += 1
            inside = self._list("]")
            self._expect("]")
            if not inside:
                self._fail("an address is empty")
            base, offset = inside[0] if isinstance(inside[0], tuple) else (inside[0], 0)
            return Address(base, offset, inside[1:])
        if mark == "!":
            self.at += 1
            register = self._operand()
            if not isinstance(register, Register) or register.bits != 1:
                self._fail("'!' needs a predicate after it")
            return Negated(register)
        value = self._atom()
        if self._peek() == "|":
            self.at += 1
            return Pair(value, self._operand())
        offset, moved = 0, False
        while self._peek() in ("+", "-"):  # base + offset of an address; an offset may have a second sign
            sign = -1 if self._peek() == "-" else 1
            self.at += 1
            number = self._atom()
            if not isinstance(number, Immediate):
                self._fail("the offset of an address must be an integer")
            offset, moved = offset + sign * _signed(number.value), True
        return (value, offset) if moved else value

    def _atom(self):
        if self.at >= len(self.tokens):
            self._fail("an operand is missing")
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "mark" and text == "-":
            value = self._atom()
            if isinstance(value, Decimal):
                return Decimal(-value.value)
            if not isinstance(value, Immediate) or value.float_bits:
                self._fail("'-' needs a number after it")
            return Immediate(-value.value % (1 << 64))
        if kind == "integer":
            digits = text.rstrip("U")
            base = 0 if digits[:2].lower() in ("0x", "0b") or not digits.startswith("0") else 8
            return Immediate(int(digits, base) % (1 << 64))
        if kind == "float":
            return Immediate(int(text[2:], 16), 32 if text[1] in "fF" else 64)
        if kind == "decimal":
            return Decimal(float(text))
        if kind != "name":
            self._fail(f"{text!r} is not an operand")
        return self._named(text)

    def _named(self, text: str):
        if text == "_":
            return Sink()
        if text == "WARP_SZ":
            return Immediate(32)
        register = self.body._register(text)
        if register is not None:
            return register
        if SPECIAL.match(text):
            return Special(text[1:])
        if text.startswith("%"):
            self._fail(f"the register {text} is not declared")
        return Symbol(text)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def decimal_bits(value: float, bits: int) -> int:
    """Return the encoding of a decimal constant in an operand of 32 or 64 bits."""
    return (
        struct.unpack("<Q", struct.pack("<d", value))[0]
        if bits == 64
        else struct.unpack("<I", struct.pack("<f", value))[0]
    )
