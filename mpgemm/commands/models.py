"""`mpgemm models`: the catalogue of matrix engines, recovery methods and formats."""

import argparse

import tensorcore_models as tcm
from mpgemm.inputs.files import write_text
from mpgemm.recovery.methods import list_methods
from mpgemm.reporting import report
from mpgemm.reporting.site import page_address
from tensorcore_models.accumulators import Unpublished
from tensorcore_models.atlas import catalogued, page_path, svg, tree_of
from tensorcore_models.catalogue.devices import DEVICES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "arch", nargs="?", help="architecture, device, or arch:name for everything about one instruction"
    )
    parser.add_argument("--a-format", metavar="FORMAT", help="only instructions with these operands")
    parser.add_argument("--d-format", metavar="FORMAT", help="only instructions with this result")
    parser.add_argument("--evidence", metavar="TEXT", help="only rows whose evidence contains TEXT")
    parser.add_argument("--methods", action="store_true", help="list the recovery methods instead")
    parser.add_argument("--devices", action="store_true", help="list the devices instead")
    parser.add_argument("--url", action="store_true", help="of one instruction: the address of its page in the atlas")
    parser.add_argument("--picture", metavar="FILE.svg", help="of one instruction: draw the order of its sum")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status.

    Raises
    ------
    ValueError
        If options contradict each other or name nothing that there is.
    """
    if args.methods and args.devices:
        raise ValueError("--methods or --devices, not both")
    if (args.url or args.picture) and not (args.arch and ":" in args.arch):
        raise ValueError("--url and --picture are for one instruction: give arch:name")
    if args.methods:
        rows, table = _methods()
    elif args.devices:
        rows = [{"device": name, "architecture": arch, "lacks": list(lacks)} for name, (arch, lacks) in DEVICES.items()]
        table = report.Table(
            "Devices",
            ["device", "architecture", "lacks"],
            [[r["device"], r["architecture"], ", ".join(r["lacks"])] for r in rows],
        )
    elif args.arch and ":" in args.arch:
        return _one(args)
    else:
        rows, table = _instructions(args)
    if args.json:
        print(report.json_text(rows), end="")
    else:
        table.print()
    return 0


def _methods():
    rows = [
        {
            "name": row.name,
            "passes": row.passes,
            "words": row.words,
            "formats": list(row.formats),
            "accumulation": row.accumulation,
            "certainty": row.certainty,
            "claimed_loss": row.claimed_loss,
            "title": row.title,
            "formula": row.formula,
            "source": row.source,
            "range": row.range_limits,
            "options": dict(row.options),
        }
        for row in list_methods()
    ]
    cells = [[r["name"], r["passes"], "/".join(r["formats"][:3]), r["certainty"], r["title"]] for r in rows]
    return rows, report.Table("Recovery methods", ["method", "passes", "words of", "certainty", "what it does"], cells)


def _instructions(args):
    found = [row for row in tcm.list_instructions(args.arch) if _wanted(row, args)]
    rows = [_facts(row) for row in found]
    cells = [
        [str(row), f"{row.m}x{row.n}x{row.k}", row.a_format, row.d_format, _algorithm(row), row.evidence]
        for row in found
    ]
    title = f"{len(rows)} instructions" + (f" of {args.arch}" if args.arch else "")
    return rows, report.Table(title, ["instruction", "m x n x k", "A", "D", "algorithm", "evidence"], cells)


def _wanted(row, args) -> bool:
    return (
        (args.a_format is None or row.a_format == tcm.get_format(args.a_format).name)
        and (args.d_format is None or row.d_format == tcm.get_format(args.d_format).name)
        and (args.evidence is None or args.evidence in row.evidence)
    )


def _algorithm(row) -> str:
    spec = row.accumulator
    if isinstance(spec, Unpublished):
        return "not public"
    text = type(spec).__name__
    facts = [f"N={spec.terms}"] if hasattr(spec, "terms") else []
    facts += [f"F={spec.fraction_bits}"] if getattr(spec, "fraction_bits", None) else []
    return f"{text}({', '.join(facts)})" if facts else text


def _facts(row) -> dict:
    names = (
        "arch",
        "name",
        "m",
        "n",
        "k",
        "blocks",
        "a_format",
        "b_format",
        "c_format",
        "d_format",
        "scale_format",
        "block_size",
        "path",
        "source",
        "evidence",
        "note",
    )
    return {**{name: getattr(row, name) for name in names}, "accumulator": repr(row.accumulator)}


def _one(args) -> int:
    row = tcm.get_instruction(args.arch)
    if args.url:
        print(page_address(page_path(catalogued(row))))
        return 0
    if args.picture:
        tree = tree_of(row.accumulator, row.k)
        if tree is None:
            raise ValueError(f"{row}: its arithmetic is not public, so there is no order to draw")
        write_text(args.picture, svg(tree, f"Order of the sum of {row}") + "\n")
        print(f"wrote {args.picture}")
        return 0
    facts = _facts(row)
    if args.json:
        print(report.json_text(facts), end="")
    else:
        width = max(map(len, facts))
        print("\n".join(f"{name:{width}}  {value}" for name, value in facts.items() if value not in (None, "")))
    return 0
