"""Finds a function, class, macro or constant in a source file by its name, for mutants that change it."""

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate

#: A name, its first character and the one after its last.
Place = tuple[str, int, int]

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_MACRO = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*\n", re.MULTILINE)
_DEFINED = re.compile(r"\s*#\s*define\s+(\w+)")
_CYTHON = re.compile(r"^(?:cdef|cpdef|def)\b[^\n(=]*?(\w+)\(.*?(?=^\S(?<!\)))", re.MULTILINE | re.DOTALL)


def changed(path: str, text: str, place: str, old: str, new: str) -> str:
    """A file's text with one change within one of its functions, classes, macros or constants.

    Parameters
    ----------
    path : str
        Its ending says the language: py, pyx, c or h.
    text : str
    place : str
        "function", "Class.method", "CONSTANT", 'CONSTANT["key"]'; in C "function", "NAME(function)" of a template, "MACRO".
    old, new : str
        What stands there once, and what takes its place.

    Raises
    ------
    ValueError
        If `old` does not stand there once.
    """
    spans = [(start, end) for name, start, end in places(path, text) if name == place]
    found = [(start, end) for start, end in spans if old in text[start:end]]
    if len(found) != 1 or text.count(old, *found[0]) != 1:
        raise ValueError(
            f"{path}: expected {old!r} once in {place}, found {len(spans)} such places, {len(found)} with it"
        )
    start, end = found[0]
    return text[:start] + text[start:end].replace(old, new) + text[end:]


@lru_cache
def places(path: str, text: str) -> tuple[Place, ...]:
    """All named things of a file."""
    return tuple(_places(path, text))


def _places(path: str, text: str) -> Iterator[Place]:
    if path.endswith(".py"):
        lines = [0, *accumulate(len(line.encode()) for line in text.splitlines(True))]
        yield from _of_python(ast.parse(text), lines, text.encode(), "")
    elif path.endswith(".pyx"):
        yield from ((m[1], m.start(), m.end()) for m in _CYTHON.finditer(text + "\nend"))
    else:
        yield from _of_c(text)


def _of_python(node: ast.AST, lines: list[int], text: bytes, prefix: str) -> Iterator[Place]:
    """Functions, classes, and what is assigned outside of functions."""

    def at(line: int, column: int) -> int:
        return len(text[: lines[line - 1] + column].decode())

    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                pass
            case _:
                continue
        assert child.end_lineno is not None and child.end_col_offset is not None
        yield prefix + name, at(child.lineno, child.col_offset), at(child.end_lineno, child.end_col_offset)
        if isinstance(child, ast.ClassDef):
            yield from _of_python(child, lines, text, f"{prefix}{name}.")
        elif isinstance(child, ast.Assign | ast.AnnAssign) and isinstance(child.value, ast.Dict):
            for key, row in zip(child.value.keys, child.value.values, strict=True):
                if isinstance(key, ast.Constant):
                    assert row.end_lineno is not None and row.end_col_offset is not None
                    yield (
                        f'{name}["{key.value}"]',
                        at(row.lineno, row.col_offset),
                        at(row.end_lineno, row.end_col_offset),
                    )


def _of_c(text: str) -> Iterator[Place]:
    """Macros, and functions, which begin behind the last end of anything else."""

    def blank(match: re.Match) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    text = _COMMENT.sub(blank, text)
    for macro in _MACRO.finditer(text):
        defined = _DEFINED.match(macro[0])
        if defined:
            yield defined[1], macro.start(), macro.end()
    text = _MACRO.sub(blank, text)
    depth = begin = opened = 0
    for at, character in enumerate(text):
        if character == "{":
            opened, depth = (at if depth == 0 else opened), depth + 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                name = _function(text[begin:opened])
                if name:
                    yield name, begin, at + 1
                begin = at + 1
        elif character == ";" and depth == 0:
            begin = at + 1


def _function(head: str) -> str | None:
    """The name before the last parentheses of what stands before a body: "f", or "NAME(f)" of a template."""
    found = re.search(r"(\w+(?:\(\w+\))?)\s*\((?:[^()]|\([^()]*\))*\)\s*$", head)
    return None if found is None or "=" in head else found[1]
