"""`mpgemm report`: one Markdown page from the folders that other commands wrote."""

import argparse
import csv
import os
import sys
from pathlib import Path

from mpgemm.inputs.files import write_text
from mpgemm.reporting.report import json_text

MOST_ROWS = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "folders", nargs="+", metavar="FOLDER", help="what --out of evaluate, compare, plan or simulate wrote"
    )
    parser.add_argument("--output", metavar="FILE", help="where the page goes (standard output)")
    parser.add_argument("--title", default="Results", help="heading of the page")
    parser.add_argument(
        "--rows", type=int, default=MOST_ROWS, metavar="COUNT", help=f"rows shown of a table ({MOST_ROWS})"
    )
    parser.add_argument(
        "--json", action="store_true", help="print what the page holds instead: folders, tables, pictures"
    )


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status.

    Raises
    ------
    ValueError
        If a folder is missing or has nothing to show.
    """
    if args.rows < 1:
        raise ValueError(f"--rows is {args.rows}, expected at least 1")
    folders = [Path(folder) for folder in args.folders]
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"{folder}: no such folder")
        if not contents(folder):
            raise ValueError(f"{folder}: no tables (.csv) and no pictures (.png) in it")
    if args.json:
        found = [{"folder": str(f), "files": [path.name for path in contents(f)]} for f in folders]
        sys.stdout.write(json_text({"title": args.title, "folders": found}))
        return 0
    base = Path(args.output).resolve().parent if args.output else Path.cwd()
    text = page(folders, args.title, base, args.rows)
    if args.output:
        write_text(args.output, text)
    else:
        sys.stdout.write(text)
    return 0


def contents(folder: Path) -> list[Path]:
    """The tables and pictures of a folder, each picture behind the table of its name."""
    return sorted((p for p in folder.iterdir() if p.suffix in (".csv", ".png")), key=lambda p: (p.stem, p.suffix))


def page(folders: list[Path], title: str, base: Path, rows: int = MOST_ROWS) -> str:
    """The page as Markdown; pictures are linked relative to `base`."""
    lines = [f"# {title}", ""]
    for folder in folders:
        lines += [f"## {folder.name or folder.resolve().name}", ""]
        for path in contents(folder):
            lines += [f"### {path.stem}", ""] if path.suffix == ".csv" or not path.with_suffix(".csv").exists() else []
            lines += table(path, rows) if path.suffix == ".csv" else [f"![{path.stem}]({os.path.relpath(path, base)})"]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def table(path: Path, rows: int) -> list[str]:
    """A CSV file as a Markdown table, with a line that says how many rows are left out."""
    try:
        with open(path, newline="") as stream:
            cells = [[cell.replace("|", "\\|") for cell in row] for row in csv.reader(stream)]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not a readable table ({error})") from None
    if not cells:
        return ["(empty)"]
    heading, body = cells[0], cells[1:]
    lines = ["| " + " | ".join(row) + " |" for row in (heading, ["---"] * len(heading), *body[:rows])]
    return lines + ([f"\n{len(body) - rows} more rows in {path.name}."] if len(body) > rows else [])
