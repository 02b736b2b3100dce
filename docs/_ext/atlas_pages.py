"""Writes the pages of the atlas as Markdown (MyST) from the catalogue."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
from instructions_page import describe
from playground_data import link_state
from rows_pages import chips_page, methods_page

from tensorcore_models.atlas.evidence import MEANING, level_of, links_of, open_questions, remarks
from tensorcore_models.atlas.witnesses import PairWitness, witness
from tensorcore_models.catalogue import architectures, list_instructions
from tensorcore_models.catalogue.devices import DEVICES
from tensorcore_models.engines.description import words_of_engine
from tensorcore_models.engines.instruction import EVIDENCE, Instruction
from tensorcore_models.formats import IntegerFormat
from tensorcore_models.formats.operands import values_of_bits
from tensorcore_models.orders.trees import tree_of


def _formats_key(row: Instruction) -> tuple:
    return tuple(fmt.name for fmt in row.formats), row.scale_format, row.block_size


@cache
def _kin() -> dict[tuple, list[Instruction]]:
    """Return the rows of the catalogue by their formats."""
    kin: dict[tuple, list[Instruction]] = {}
    for row in list_instructions():
        kin.setdefault(_formats_key(row), []).append(row)
    return kin


def same_bits(row: Instruction) -> list[Instruction]:
    """Return the other rows with the same formats and accumulator, which return the same bits when chained over k."""
    return [other for other in _kin()[_formats_key(row)] if other.accumulator == row.accumulator and other != row]


def neighbours(row: Instruction) -> list[Instruction]:
    """Return the first row of each other accumulator that has rows with the same formats."""
    if not row.published:
        return []
    first = {other.accumulator: other for other in reversed(_kin()[_formats_key(row)])}
    return [other for spec, other in reversed(first.items()) if spec != row.accumulator and other.published]


@cache
def _witness(first: Instruction, second: Instruction) -> PairWitness | None:
    return witness(first, second)


def _representative(row: Instruction) -> Instruction:
    """Return the first row with the same arithmetic and k, so that one search serves all of them."""
    return next(
        other for other in _kin()[_formats_key(row)] if (other.accumulator, other.k) == (row.accumulator, row.k)
    )


# -- parts of an instruction's page --------------------------------------------------------------------------------------
def _link(row: Instruction, here: str) -> str:
    address = f"{row.name}.md" if row.arch == here else f"../{row.arch}/{row.name}.md"
    return f"[{row}]({address})"


def _facts(row: Instruction) -> list[str]:
    scales = f"{row.scale_format}, one scale for each {row.block_size} elements" if row.scale_format else "none"
    devices = ", ".join(
        name for name, (arch, lacks) in DEVICES.items() if arch == row.arch and row.a_format not in lacks
    )
    lines = [
        ("shape (m x n x k)", row.shape_text + (f", {row.blocks} independent blocks" if row.blocks > 1 else "")),
        ("A, B", f"{row.a_format}, {row.b_format}"),
        ("C, D", f"{row.c_format}, {row.d_format}"),
        ("block scales", scales),
        ("path", row.path),
        ("devices", devices or "-"),
        ("evidence", f"**{row.evidence}**: {MEANING[level_of(row)]}"),
    ]
    return ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in lines)]


def _arithmetic(row: Instruction) -> list[str]:
    words = words_of_engine(row)
    lines = ["## Arithmetic", "", f"**{words.title}.**", ""]
    lines += [f"{number}. {step}" for number, step in enumerate(words.steps, 1)]
    for equation in words.equations:
        lines += ["", "$$", equation, "$$"]
    if row.published:
        lines += ["", f"In Python: `{describe(row.accumulator)}`."]
    return lines


def _picture(row: Instruction) -> list[str]:
    tree = tree_of(row.accumulator, row.k)
    if tree is None:
        return []
    drawn = tree.svg(f"Order of the sum of {row}")
    text = (
        "The picture shows the order in which one element of D is summed. Circles are products, labelled by k. Boxes are "
        "operations, and *d* is the result."
    )
    return ["", "## Order of the sum", "", "```{raw} html", f'<div class="picture">{drawn}</div>', "```", "", text]


def _value(bits: int, fmt) -> str:
    if isinstance(fmt, IntegerFormat):
        value = bits - (1 << fmt.bits) if fmt.signed and bits >> (fmt.bits - 1) else bits
        return str(value)
    return f"{float(values_of_bits(np.array([bits], fmt.container), fmt)[0]):.10g}"


def _spelled(bits: int, fmt) -> str:
    return f"{_value(bits, fmt)} (`0x{bits:0{max(1, fmt.container.itemsize * 2)}x}`)"


#: Number of products of an input that a page shows.
SPELLED = 6


def _input(found: PairWitness, row: Instruction) -> str:
    a_format, b_format, c_format, _ = row.formats
    nonzero = [k for k, (x, y) in enumerate(zip(found.a, found.b, strict=True)) if x and y]
    terms = [
        f"k = {k}: {_spelled(found.a[k], a_format)} times {_spelled(found.b[k], b_format)}" for k in nonzero[:SPELLED]
    ]
    if len(nonzero) > SPELLED:
        terms.append(f"and {len(nonzero) - SPELLED} more products")
    return "; ".join([*terms, f"c = {_spelled(found.c, c_format)}"])


def _playground(row: Instruction) -> list[str]:
    """Return the playground with the unit and the first input that tells it from a neighbour, if there is one."""
    if not row.published:
        return []
    searched = ((other, _witness(_representative(row), _representative(other))) for other in neighbours(row))
    states = (link_state((row, other), seen) for other, seen in searched if seen)
    state = next(filter(None, states), {"units": str(row), "a": "1 1", "b": "1 1", "c": "0"})
    return ["", "## Playground", "", "```{playground}", *(f":{name}: {value}" for name, value in state.items()), "```"]


def _told_apart(row: Instruction) -> list[str]:
    twins = same_bits(row)
    lines = ["", "## Neighbours", ""]
    if twins:
        listed = ", ".join(_link(other, row.arch) for other in twins[:12])
        more = f", and {len(twins) - 12} more" if len(twins) > 12 else ""
        same = "These instructions return the same bits as this instruction when they are chained over the same k:"
        lines += [f"{same} {listed}{more}.", ""]
    others = neighbours(row)
    if not others and not twins:
        lines.append("The catalogue has no other instruction with these formats.")
    searched = [(other, _witness(_representative(row), _representative(other))) for other in others]
    alike = [_link(other, row.arch) for other, found in searched if found is None]
    if alike:
        lines += [
            f"On all inputs that were tried, these instructions return the same bits as this instruction: {', '.join(alike)}.",
            "",
        ]
    for other, found in searched:
        lines += _comparison(row, other, found) if found else []
    return lines


def _comparison(row: Instruction, other: Instruction, found: PairWitness) -> list[str]:
    d_format = row.formats[3]
    scales = " All block scales are 1." if row.scale_format else ""
    state = link_state((row, other), found)
    link = f'<a href="#{escape(urlencode(state))}">In the playground</a>' if state else ""
    return [
        f"### {_link(other, row.arch)}", "", f"{other.accumulator.words(other.d_format).title}.", "",
        "| | |", "|---|---|",
        f"| input | {_input(found, row)}.{scales} |",
        f"| {row} | {_spelled(found.here, d_format)} |",
        f"| {other} | {_spelled(found.there, d_format)} |", "",
        link, "",
    ]  # fmt: skip


def _evidence(row: Instruction) -> list[str]:
    lines = ["", "## Evidence", "", f"The evidence of this row is **{row.evidence}**: {MEANING[level_of(row)]}.", ""]
    lines += [f"The row rests on these sources: {row.source}. They are found here:", ""]
    lines += [*(f"- [{name}]({address})" for name, address in links_of(row)), ""]
    if row.note:
        lines += ["These remarks apply to the row:", "", *(f"- {text}" for text in remarks(row.note)), ""]
    questions = open_questions(row)
    lines += ["## Open questions", ""]
    return lines + ([f"- {text}" for text in questions] if questions else ["No open question about this row is known."])


def instruction_page(row: Instruction) -> str:
    """Return the page of one instruction."""
    lines = [
        "---",
        "orphan: true",
        "---",
        "",
        f"# {row.name}",
        "",
        f"[Atlas](../index.md) / [{row.arch}](index.md)",
        "",
        *_facts(row),
        "",
    ]
    lines += _arithmetic(row) + _picture(row) + _playground(row) + _told_apart(row) + _evidence(row)
    lines += [
        "",
        "## Run it",
        "",
        "```python",
        "import tensorcore_models as tcm",
        "",
        f'unit = tcm.get_instruction("{row}")',
        "```",
        "",
    ]
    return "\n".join(lines)


def architecture_page(arch: str) -> str:
    """Return the page of an architecture, which lists its devices and its instructions by their arithmetic."""
    rows = list_instructions(arch)
    devices = [name for name, (owner, _) in DEVICES.items() if owner == arch]
    lines = [
        f"# {arch}",
        "",
        f"The catalogue has {len(rows)} instruction{'s' * (len(rows) != 1)} of this architecture."
        + (f" Devices: {', '.join(devices)}." if devices else ""),
        "",
    ]
    levels = Counter(level_of(row) for row in rows)
    lines += [
        "| evidence | instructions |",
        "|---|---|",
        *(f"| {level} | {levels[level]} |" for level in EVIDENCE if levels[level]),
        "",
    ]
    groups: dict[tuple, list[Instruction]] = {}
    for row in rows:
        groups.setdefault((row.accumulator.words(row.d_format).title, row.d_format), []).append(row)
    for (title, d_format), members in groups.items():
        lines += [f"## {title} (D is {d_format})", "", "| instruction | operands | evidence |", "|---|---|---|"]
        for row in members:
            scale = f", scales {row.scale_format}" if row.scale_format else ""
            lines.append(
                f"| [{row.name}]({row.name}.md) | {row.a_format} x {row.b_format} + {row.c_format}{scale} | {row.evidence} |"
            )
        lines.append("")
    return "\n".join(lines)


def index_page() -> str:
    """Return the atlas's first page."""
    lines = [
        "# Atlas of instructions", "",
        "The atlas has one page for each matrix instruction of the catalogue. A page shows:", "",
        "- the arithmetic in words, as a formula and as a picture",
        "- inputs that tell the instruction from its neighbours, which are instructions with the same formats",
        "- the evidence for the arithmetic, and the open questions", "",
        "All pages are generated from the catalogue; [one table](../instructions.md) lists every row. "
        "`mpgemm models ARCH:NAME --url` prints the address of an instruction's page. The atlas also has pages of the "
        "[recovery methods](methods.md) and the [Ascend chips](chips.md).", "",
        "| architecture | devices | instructions | reproduces hardware |", "|---|---|---|---|",
    ]  # fmt: skip
    for arch in architectures():
        rows = list_instructions(arch)
        devices = ", ".join(name for name, (owner, _) in DEVICES.items() if owner == arch) or "-"
        hardware = sum(level_of(row).startswith("hardware") for row in rows)
        lines.append(f"| [{arch}]({arch}/index.md) | {devices} | {len(rows)} | {hardware} |")
    lines += ["", "The levels of evidence are, strongest first:", ""]
    lines += [f"- **{level}**: {MEANING[level]}." for level in EVIDENCE]
    lines += [
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *(f"{arch}/index" for arch in architectures()),
        "methods",
        "chips",
        "../instructions",
        "```",
        "",
    ]
    return "\n".join(lines)


def all_pages() -> Iterator[tuple[str, str]]:
    """Yield the path below the folder of the atlas and the text of every page."""
    yield "index.md", index_page()
    yield "methods.md", methods_page()
    yield "chips.md", chips_page()
    for arch in architectures():
        yield f"{arch}/index.md", architecture_page(arch)
        for row in list_instructions(arch):
            yield f"{arch}/{row.name}.md", instruction_page(row)


def write_atlas(folder: str | Path) -> int:
    """Write all pages below a folder and return their number.

    A page whose text has not changed keeps its file and time. Pages of rows that the catalogue no longer has are removed.
    """
    folder = Path(folder)
    known = set()
    for name, text in all_pages():
        path = folder / name
        known.add(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in set(folder.rglob("*.md")) - known:
        path.unlink()
    return len(known)
