"""`mpgemm models` lists matrix engines and recovery methods, and explains an instruction in words, formula and picture."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import tensorcore_models as tcm
from mpgemm.cli.common.parser import Parser
from mpgemm.cli.common.run_options import add_style_argument
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Table, item, wrapped
from tensorcore_models.explanations.descriptions import plain

if TYPE_CHECKING:
    from tensorcore_models.engines.instruction import Instruction

QUESTION = "look into a unit"
SUMMARY = "list and explain matrix engines and recovery methods"
EXAMPLES = (
    ("h100", "the instructions of a device"),
    ("H100 fp8", "the instructions of a device for one format"),
    ("hopper:mma.m16n8k16.f32.f16.f16.f32", "one instruction in words, a formula and a picture"),
    ("HMMA.16816.F32", "an instruction by its name in SASS, PTX or AMD's compiler"),
    ("--methods", "the recovery methods"),
)


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    add(
        "names",
        nargs="*",
        metavar="NAME",
        help="device, architecture, operand format, or name of an instruction in the catalogue, in PTX, in SASS "
        "or in AMD's compiler; capitals and small letters count as equal. With several names, an "
        "instruction must match all of them. Up to four different arithmetics are explained; more are only "
        "listed",
    )
    add("--a-format", metavar="FORMAT", help="list only instructions with operands of this format")
    add("--d-format", metavar="FORMAT", help="list only instructions with results of this format")
    add(
        "--evidence",
        metavar="TEXT",
        help="list only instructions whose evidence, the source that supports their arithmetic, contains TEXT",
    )
    add("--methods", action="store_true", help="list the recovery methods instead")
    add("--devices", action="store_true", help="list the devices instead")
    add("--url", action="store_true", help="print the address of one instruction's page, on which inputs can be tried")
    add(
        "--picture",
        metavar="FILE.svg",
        help="draw the order in which one instruction adds its products: .svg, .png or .pdf",
    )
    add_style_argument(parser)
    add("--json", action="store_true", help="print the result as JSON")
    parser.goes_without(("--methods",), ("--devices",))
    parser.goes_without(
        ("names", "--a-format", "--d-format", "--evidence", "--url", "--picture"), ("--methods", "--devices")
    )
    parser.goes_with(("--style",), ("--picture",))
    parser.goes_with(("--url", "--picture"), ("names",), "the name of one instruction, arch:name")


#: Largest number of different arithmetics that are explained; more are listed.
EXPLAINED = 4


def run(args: argparse.Namespace) -> Output:
    """Carry out the command.

    Raises ValueError if options contradict each other or match no row.
    """
    from tensorcore_models.catalogue import find_instructions

    if args.methods:
        rows, table = _methods()
    elif args.devices:
        rows, table = _devices()
    else:
        named = find_instructions(" ".join(args.names)) if args.names else tcm.list_instructions()
        found = [row for row in named if _wanted(row, args)]
        if args.url or args.picture:
            return _page(found, args)
        if args.names and 0 < len(_by_arithmetic(found)) <= EXPLAINED:
            return _explain(found)
        rows, table = _instructions(found, args)
    return Output(rows, [table])


def _devices() -> tuple[list[dict], Table]:
    """Return the devices with the dense peak rates of their data sheets, in TFLOP/s or TOP/s."""
    from tensorcore_models.catalogue.devices import DEVICES
    from tensorcore_models.catalogue.rates import DATA_SHEETS

    rows = [
        {
            "device": name, "architecture": arch, "lacks": list(lacks),
            "rates": dict(DATA_SHEETS[name].rates), "source": DATA_SHEETS[name].source,
        }
        for name, (arch, lacks) in DEVICES.items()
    ]  # fmt: skip
    cells = [
        [
            row["device"], row["architecture"], ", ".join(row["lacks"]),
            ", ".join(f"{fmt} {rate:g}" for fmt, rate in DATA_SHEETS[str(row["device"])].rates.items()), row["source"],
        ]
        for row in rows
    ]  # fmt: skip
    return rows, Table("Devices", ["device", "architecture", "lacks", "dense peak, TFLOP/s", "source"], cells)


def _methods():
    from mpgemm.recovery.methods import list_methods

    names = (
        "name",
        "passes",
        "words",
        "formats",
        "accumulation",
        "certainty",
        "claimed_loss",
        "title",
        "formula",
        "source",
    )
    rows = [
        {**{name: getattr(row, name) for name in names}, "range": row.range_limits, "options": dict(row.options)}
        for row in list_methods()
    ]
    cells = [[r["name"], r["passes"], "/".join(r["formats"][:3]), r["certainty"], r["title"]] for r in rows]
    return rows, Table("Recovery methods", ["method", "passes", "words of", "certainty", "what it does"], cells)


def _instructions(found: list[Instruction], args):
    from tensorcore_models.catalogue.vendors import unit_of

    rows = [_facts(row) for row in found]
    cells = [
        [str(r), f"{r.m}x{r.n}x{r.k}", r.a_format, r.d_format, _algorithm(r), r.evidence, unit_of(r.arch).vendor]
        for r in found
    ]
    title = f"{len(rows)} instructions" + (f" of {' '.join(args.names)}" if args.names else "")
    return rows, Table(title, ["instruction", "m x n x k", "A", "D", "algorithm", "evidence", "vendor"], cells)


def _wanted(row: Instruction, args) -> bool:
    return (
        (args.a_format is None or row.a_format in _formats(args.a_format))
        and (args.d_format is None or row.d_format in _formats(args.d_format))
        and (args.evidence is None or args.evidence in row.evidence)
    )


def _formats(text: str) -> tuple[str, ...]:
    from tensorcore_models.formats.names import format_family, unknown_format

    family = format_family(text)
    if not family:
        raise unknown_format(text)
    return family


def _algorithm(row: Instruction) -> str:
    spec = row.accumulator
    if not spec.published:
        return "not public"
    text = type(spec).__name__
    facts = [f"N={spec.terms}"] if hasattr(spec, "terms") else []
    kept = getattr(spec, "fraction_bits", None)
    facts += [f"F={kept}"] if kept else []
    return f"{text}({', '.join(facts)})" if facts else text


def _facts(row: Instruction) -> dict:
    from tensorcore_models.catalogue.vendors import unit_of

    names = (
        "arch", "name", "m", "n", "k", "blocks", "a_format", "b_format", "c_format", "d_format", "scale_format",
        "block_size", "path", "source", "evidence", "note",
    )  # fmt: skip
    facts = {name: getattr(row, name) for name in names}
    return {"vendor": unit_of(row.arch).vendor, **facts, "accumulator": repr(row.accumulator)}


def _page(found: list[Instruction], args: argparse.Namespace) -> Output:
    """Return the address or the picture of one instruction."""
    from mpgemm.reporting.site import page_address
    from tensorcore_models.atlas import catalogued, page_path
    from tensorcore_models.orders.trees import tree_of

    if len(found) != 1:
        raise ValueError(
            f"--url and --picture take one instruction, but these names match {len(found)}: give the name of one, "
            "arch:name"
        )
    row = found[0]
    address = page_address(page_path(catalogued(row))) + "#playground" * row.published if args.url else None
    written: list[str] = []
    if args.picture:
        tree = tree_of(row.accumulator, row.k)
        if tree is None:
            raise ValueError(
                f"{row} has no public arithmetic, so there is no order to draw: choose another instruction"
            )
        written = tree.picture(args.picture, f"Order of the sum of {row}")
    text = [*([address] if address else []), *([f"wrote {', '.join(written)}"] if written else [])]
    return Output({"url": address, "written": written}, text)


# -- instructions explained ----------------------------------------------------------------------------------------------
def _by_arithmetic(rows: list[Instruction]) -> list[list[Instruction]]:
    """Group rows that compute the same: equal accumulator, formats and k."""
    groups: dict[tuple, list[Instruction]] = {}
    for row in rows:
        formats = (row.a_format, row.b_format, row.c_format, row.d_format, row.scale_format, row.block_size)
        groups.setdefault((row.accumulator, formats, row.k), []).append(row)
    return list(groups.values())


def _explain(rows: list[Instruction]) -> Output:
    from tensorcore_models.engines.description import words_of_engine

    whole = [{**_facts(row), "explanation": {**words_of_engine(row).to_dict(), "order": _order(row)}} for row in rows]
    text = ["\n\n".join("\n".join(_lines(group)) for group in _by_arithmetic(rows))]
    return Output(whole[0] if len(whole) == 1 else whole, text)


def _order(row: Instruction) -> list[str]:
    from tensorcore_models.orders.trees import tree_of

    tree = tree_of(row.accumulator, row.k)
    return tree.outline() if tree else []


def _lines(group: list[Instruction]):
    from tensorcore_models.engines.description import words_of_engine

    row = group[0]
    told = words_of_engine(row)
    yield wrapped(", ".join(map(str, group)), hang="  ")
    yield wrapped(
        f"{row.shape_text}{f', {row.blocks} blocks' if row.blocks > 1 else ''}: "
        f"A {row.a_format}, B {row.b_format}, C {row.c_format}, D {row.d_format}",
        "  ",
    )
    yield f"\n{wrapped(' '.join([f'{told.title}.', *told.steps]), '  ')}\n"
    if told.formula:
        yield "\n".join(wrapped(plain(line), "  ", "      ") for line in told.equations)
        yield "\n" + wrapped(
            "order of the additions (k stands for a_k b_k, [n] for the result of line n; the operation is in parentheses):",
            "  ",
        )
        yield "\n".join(wrapped(line, "    ", "        ") for line in _order(row)) + "\n"
    if told.window:
        yield "\n".join(f"  {line}" for line in told.window) + "\n"
    facts = [("evidence", row.evidence), ("source", row.source), ("note", row.note)]
    yield "\n".join(item(f"{name}: {text}") for name, text in facts if text)
    yield item(f"accumulator: {row.accumulator!r}")
