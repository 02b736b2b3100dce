"""`mpgemm models`: the catalogue of matrix engines and recovery methods; an instruction in words, formula and picture."""

import argparse

import tensorcore_models as tcm
from mpgemm.options.prose import wrapped
from mpgemm.recovery.methods import list_methods
from mpgemm.reporting import report
from mpgemm.reporting.site import page_address
from tensorcore_models.atlas import catalogued, page_path
from tensorcore_models.catalogue import find_instructions
from tensorcore_models.catalogue.devices import DEVICES
from tensorcore_models.catalogue.rates import DATA_SHEETS
from tensorcore_models.catalogue.vendors import unit_of
from tensorcore_models.engines.instruction import Instruction
from tensorcore_models.explanations.engine_words import words_of_engine
from tensorcore_models.explanations.orders import tree_of
from tensorcore_models.explanations.words import plain
from tensorcore_models.files import write_text
from tensorcore_models.formats.names import format_family, unknown_format

#: Names that mean at most so many arithmetics are explained, others listed.
EXPLAINED = 4


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status.

    Raises ValueError if options contradict each other or name nothing that there is.
    """
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
            return _explain(found, args.json)
        rows, table = _instructions(found, args)
    if args.json:
        print(report.json_text(rows), end="")
    else:
        table.print()
    return 0


def _devices() -> tuple[list[dict], report.Table]:
    """Devices with the dense peaks of their data sheets, TFLOP/s or TOP/s."""
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
    return rows, report.Table("Devices", ["device", "architecture", "lacks", "dense peak, TFLOP/s", "source"], cells)


def _methods():
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
    return rows, report.Table("Recovery methods", ["method", "passes", "words of", "certainty", "what it does"], cells)


def _instructions(found: list[Instruction], args):
    rows = [_facts(row) for row in found]
    cells = [
        [unit_of(r.arch).vendor, str(r), f"{r.m}x{r.n}x{r.k}", r.a_format, r.d_format, _algorithm(r), r.evidence]
        for r in found
    ]
    title = f"{len(rows)} instructions" + (f" of {' '.join(args.names)}" if args.names else "")
    return rows, report.Table(title, ["vendor", "instruction", "m x n x k", "A", "D", "algorithm", "evidence"], cells)


def _wanted(row: Instruction, args) -> bool:
    return (
        (args.a_format is None or row.a_format in _formats(args.a_format))
        and (args.d_format is None or row.d_format in _formats(args.d_format))
        and (args.evidence is None or args.evidence in row.evidence)
    )


def _formats(text: str) -> tuple[str, ...]:
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
    names = (
        "arch", "name", "m", "n", "k", "blocks", "a_format", "b_format", "c_format", "d_format", "scale_format",
        "block_size", "path", "source", "evidence", "note",
    )  # fmt: skip
    facts = {name: getattr(row, name) for name in names}
    return {"vendor": unit_of(row.arch).vendor, **facts, "accumulator": repr(row.accumulator)}


def _page(found: list[Instruction], args: argparse.Namespace) -> int:
    """The address or the picture of one instruction."""
    if len(found) != 1:
        raise ValueError(f"--url and --picture are for one instruction, give arch:name; these names mean {len(found)}")
    row = found[0]
    if args.url:
        print(page_address(page_path(catalogued(row))) + "#playground" * row.published)
    if args.picture:
        tree = tree_of(row.accumulator, row.k)
        if tree is None:
            raise ValueError(f"{row}: its arithmetic is not public, so there is no order to draw")
        write_text(args.picture, tree.svg(f"Order of the sum of {row}") + "\n")
        print(f"wrote {args.picture}")
    return 0


# -- instructions explained ----------------------------------------------------------------------------------------------
def _by_arithmetic(rows: list[Instruction]) -> list[list[Instruction]]:
    """Rows that compute the same together: accumulator, formats and k."""
    groups: dict[tuple, list[Instruction]] = {}
    for row in rows:
        formats = (row.a_format, row.b_format, row.c_format, row.d_format, row.scale_format, row.block_size)
        groups.setdefault((row.accumulator, formats, row.k), []).append(row)
    return list(groups.values())


def _explain(rows: list[Instruction], json: bool) -> int:
    if json:
        whole = [
            {**_facts(row), "explanation": {**words_of_engine(row).to_dict(), "order": _order(row)}} for row in rows
        ]
        print(report.json_text(whole[0] if len(whole) == 1 else whole), end="")
        return 0
    print("\n\n".join("\n".join(_lines(group)) for group in _by_arithmetic(rows)))
    return 0


def _order(row: Instruction) -> list[str]:
    tree = tree_of(row.accumulator, row.k)
    return tree.outline() if tree else []


def _lines(group: list[Instruction]):
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
            "order of the additions (k is a_k b_k, [n] the result of line n, in parentheses what is done):", "  "
        )
        yield "\n".join(wrapped(line, "    ", "        ") for line in _order(row)) + "\n"
    if told.window:
        yield "\n".join(f"  {line}" for line in told.window) + "\n"
    facts = [("evidence", row.evidence), ("source", row.source), ("note", row.note)]
    yield "\n".join(wrapped(f"{name}: {text}", "  ", "    ") for name, text in facts if text)
    yield wrapped(f"accumulator: {row.accumulator!r}", "  ", "    ")
