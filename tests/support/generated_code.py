"""Runs lines of generated C in Python: what the kernels pack and stage is checked without a compiler or a GPU."""

import re


def python_of(line):
    """A generated C assignment as Python: casts away, C and Python agree on the rest."""
    return re.sub(r"(\d)u\b", r"\1", re.sub(r"\(u\d+\)", "", line)).rstrip(";").replace("/", "//")


def _statement(line):
    """One statement of the staging loops as Python; pointers into shared memory are offsets."""
    line = re.sub(r"^const (u32|u64) |^u8\* ", "", line.replace("threadIdx.x", "thread").replace("g.", "g_"))
    loop = re.fullmatch(r"for \(u32 (\w+) = (.*); \w+ < (.*); (?:\w+ \+= (.*)|\+\+\w+)\) (\{|.*;)", line)
    if loop:
        name, first, last, step, rest = loop.groups()
        head = f"for {name} in range({python_of(first)}, {python_of(last)}, {python_of(step or '1')}):"
        return head if rest == "{" else f"{head} {_statement(rest)}"
    if line.startswith("if ("):
        condition, body = re.fullmatch(r"if \((.*?)\) (core.*;)", line.replace("&&", "and")).groups()
        return f"if {python_of(condition)}: {_statement(body)}"
    line = re.sub(r"\*\(u\d+\*\)\((.*)\) = (.*);", r"shared[\1] = \2;", line)
    line = re.sub(r"core\[(.*?)\] (\|?=)", r"shared[core + \1] \2", line)
    return "; ".join(python_of(part) for part in line.split(", "))


def run_staging(lines, scope):
    """Runs C lines that fill `shared_a` or `shared_b` (offset 0 of the mapping `shared`) for thread `thread`."""
    source, depth = [], 0
    for raw in lines:
        line = raw.strip()
        if line.startswith("asm"):
            continue
        if line == "}":
            depth -= 1
            continue
        source.append("  " * depth + _statement(line))
        depth += line.endswith("{")
    exec("\n".join(source), scope)
