"""Adds and reads the options that `mpgemm plan` and `mpgemm simulate` share: the size, the chip, the kernel."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ascend
from mpgemm.cli.common.option_values import ASSUMED_SIZE
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Table, fitted, json_text

if TYPE_CHECKING:
    from ascend.grid import Swizzle

#: Options of :class:`ascend.schedule_options.ScheduleOptions` that both commands have.
SHARED = (
    "terms", "buffering", "mode", "operand", "merge", "layout", "split", "presplit", "warm", "dequantize",
)  # fmt: skip
#: Of these options those whose default depends on the command or on other options; a command must know if they were given.
UNSAID = ("terms", "mode", "operand")
#: Options of the kernel, by their names on the command line; some outputs of these commands do not depend on them.
KERNEL_OPTIONS = tuple(f"--{name}" for name in SHARED)


def add_kernel_options(group: argparse._ArgumentGroup, names: Sequence[str]) -> None:
    """Add the named options of a kernel, as the record :class:`ascend.schedule_options.ScheduleOptions` describes them."""
    from ascend.schedule_options import ScheduleOptions, options_of

    known = options_of(ScheduleOptions)
    for name in names:
        default, row = known[name]
        more: dict[str, Any] = {"default": None if name in UNSAID else default}
        if isinstance(default, bool):
            more["action"] = "store_true"
        elif row.choices:
            more["choices"] = tuple(x for x in row.choices if x != "")
        if isinstance(default, int) and row.choices or row.command.get("metavar") == "COUNT":
            more["type"] = int
        shown = f" (default {default})" if default and row.choices else ""
        group.add_argument(f"--{name.replace('_', '-')}", **{**more, "help": row.says + shown, **row.command})


def add_chip_arguments(parser: argparse.ArgumentParser, *, several_chips: bool = False) -> argparse._ArgumentGroup:
    """Add the group "chip", whose options name the chip and change its parameters, and return the group."""
    from ascend.chips.files import list_chips  # its names are in the help of these commands alone

    chip = parser.add_argument_group("chip")
    add = chip.add_argument
    add(
        "--chip", metavar="NAME", action="append",
        help=f"chip: {', '.join(list_chips())}, or a .toml or CANN .ini file (default 910A)"
        + ("; more than once to compare chips" if several_chips else ""),
    )  # fmt: skip
    add("--calibrated", action="store_true", help="use the chip's fitted parameters in place of their nominal values")
    add(
        "--set", action="append", default=[], metavar="PARAMETER=VALUE", dest="changes",
        help="assume another value for a chip parameter (mpgemm plan --list-parameters lists the parameters)",
    )  # fmt: skip
    return chip


def add_shared_arguments(parser: argparse.ArgumentParser, *, several_chips: bool = False) -> None:
    """Add the options that name size, chip and kernel."""
    parser.add_argument(
        "size", nargs="*", type=int, metavar="M K N",
        help=f"A is M x K, B is K x N (default {' '.join(map(str, ASSUMED_SIZE))})",
    )  # fmt: skip
    chip = add_chip_arguments(parser, several_chips=several_chips)
    chip.add_argument(
        "--list-parameters", action="store_true", help="list the chip's parameters and the source of each"
    )
    add_kernel_options(parser.add_argument_group("kernel"), SHARED)


def kernel_of(args: argparse.Namespace) -> dict:
    """Return terms, operand and the other options of a kernel, with defaults for options that were not given.

    A named operand has one term, unless --mode says how several are combined.
    """
    from ascend.blocking import SPLIT_OPERANDS

    operand = args.operand or "fp16"
    named = args.operand is not None and args.mode is None  # --operand fp16 alone means a product of FP16
    terms = args.terms if args.terms is not None else 1 if named or operand not in SPLIT_OPERANDS else 3
    rest = {name: getattr(args, name) for name in SHARED if name not in (*UNSAID, "split")}
    return {"terms": terms, "operand": operand} | rest


def size_of(args: argparse.Namespace) -> tuple[int, int, int]:
    """Return (m, k, n), or the size that is assumed for the published figures if none is given.

    Raises ValueError if the size is not three numbers.
    """
    if not args.size:
        return ASSUMED_SIZE
    if len(args.size) != 3:
        raise ValueError(f"the size has {len(args.size)} number(s), expected three: M K N")
    return tuple(args.size)


def data_of(args: argparse.Namespace) -> tuple | None:
    """Return A and B of --files."""
    if not args.data:
        return None
    from mpgemm.inputs.files import check_matrix, read_matrix

    return tuple(check_matrix(read_matrix(Path(path)), path) for path in args.data)


def read_shapes(path: str | Path) -> list[tuple[str, tuple[int, int, int]]]:
    """Return (name, (m, k, n)) of each line of a file; a line without a name has its size as the name.

    A line holds an optional name and three numbers, separated by spaces or commas; "#" begins a comment.

    Raises ValueError with the file, the line and its text.
    """
    found = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        words = re.split(r"[,\s]+", line.split("#")[0].strip())
        if words == [""]:
            continue
        try:
            m, k, n = map(int, words[-3:])
        except ValueError:
            raise ValueError(f"{path}, line {number}: expected [name] M K N, got {line.strip()!r}") from None
        found.append((" ".join(words[:-3]) or f"{m} x {k} x {n}", (m, k, n)))
    if not found:
        raise ValueError(f"{path} holds no shapes, expected lines of the form [name] M K N")
    return found


def chip_of(args: argparse.Namespace) -> ascend.Chip:
    """Return the chip that the options name, with calibration and changes applied.

    Raises ValueError if the options name several chips.
    """
    chips = chips_of(args)
    if len(chips) > 1:
        raise ValueError(
            f"got {len(chips)} chips, but this command takes one --chip: run the command once for each chip"
        )
    return chips[0]


def chips_of(args: argparse.Namespace) -> list[ascend.Chip]:
    """Return every chip that the options name, with calibration and changes applied."""
    return [_chip(args, name) for name in args.chip or ["910A"]]


def _chip(args: argparse.Namespace, name: str) -> ascend.Chip:
    is_file = Path(name).suffix.lower() in (".toml", ".ini")
    chip = ascend.load_chip(name) if is_file else ascend.get_chip(name)
    if args.calibrated:
        chip = chip.with_calibration()
    changes = list(map(parse_change, args.changes or ()))
    names = [name for name, _ in changes]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"--set gives {twice[0]} twice, expected one value")
    return chip.replace(**dict(changes)) if changes else chip


def evidence(args: argparse.Namespace, chip: ascend.Chip) -> str:
    """Return the first line of a command's output, which says whether a chip's predictions are nominal or calibrated."""
    if args.calibrated:
        return f"{chip.name}: calibrated predictions ({chip.calibration_source})"
    if any(where.kind == "calibrated" for where in chip.provenance.values()):
        return f"{chip.name}: predictions with rates fitted to published measurements (--list-parameters)"
    return f"{chip.name}: nominal predictions, not measured on a chip"


def parse_change(text: str) -> tuple[str, float | str]:
    """Parse "PARAMETER=VALUE" as a pair; whole numbers stay integers.

    Raises ValueError if the text has another form, or the chip has no such parameter.
    """
    from ascend.chips.chip import FACTS

    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--set got {text!r}, expected PARAMETER=VALUE")
    if name.strip() in FACTS:
        return name.strip(), value.strip()
    return name.strip(), parse_number(name.strip(), value)


def parse_number(name: str, text: str) -> float:
    """Return a value for a chip parameter. Raises ValueError if the chip has no such parameter, or the text is no number."""
    from ascend.chips.chip import PARAMETERS

    if name not in PARAMETERS:
        raise ValueError(f"a chip has no parameter {name!r}: give a name that --list-parameters shows")
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{name} must be a number ({PARAMETERS[name].unit}), got {text!r}") from None
    return int(number) if PARAMETERS[name].integer and number == int(number) else number


def _integers(text: str, count: int, expected: str) -> list[int]:
    """Parse `count` integers, separated by commas or x."""
    try:
        found = [int(word) for word in text.replace("x", ",").split(",")]
    except ValueError:
        found = []
    if len(found) != count:
        raise ValueError(f"{expected}; got {text!r}")
    return found


def parse_block(text: str) -> tuple[int, int, int]:
    """Parse "BM,BK,BN" as three integers. Raises ValueError for another text."""
    bm, bk, bn = _integers(text, 3, "a block is BM,BK,BN, for instance 176,64,176")
    return bm, bk, bn


def parse_grid(text: str) -> tuple[int, int, int]:
    """Parse "M,K,N" or "MxKxN", the number of cores along each, as three integers. Raises ValueError for another text."""
    m, k, n = _integers(text, 3, "a grid is M,K,N, the numbers of cores along m, k and n, for instance 8,1,4")
    return m, k, n


def parse_swizzle(text: str) -> Swizzle:
    """Parse "OFFSET,DIRECTION", or "aswt" for CATLASS's adaptive order. Raises ValueError for another text."""
    from ascend.grid import Swizzle

    if text == "aswt":
        return Swizzle(4, 0, adaptive=True)
    offset, direction = _integers(
        text,
        2,
        "a swizzle is OFFSET,DIRECTION (tiles in a band, and 0 for bands of "
        "rows or 1 for columns), for instance 3,0, or aswt",
    )
    return Swizzle(offset, direction)


def parameters(chip: ascend.Chip) -> Output:
    """Return the chip's parameters with units and provenance."""
    headings = ("parameter", "value", "unit", "kind", "source")
    facts = [dict(zip(headings, row, strict=True)) for row in chip.describe()]
    rows = [(name, f"{value:g}", unit, kind, source) for name, value, unit, kind, source in chip.describe()]
    text: list[str | Table] = [Table(f"{chip.name} ({chip.soc_version})", headings, rows)]
    if chip.calibrated:
        values = ", ".join(f"{name} = {value:g}" for name, value in chip.calibrated.items())
        text.append(fitted(f"fitted values, which --calibrated applies: {values}\n  {chip.calibration_source}"))
    return Output({"chip": chip.name, "parameters": facts, "calibrated": dict(chip.calibrated)}, text)


def folder_of(args: argparse.Namespace) -> Path:
    """Return the folder of --out and create it if it does not exist. Raises ValueError if the path is a file."""
    folder = Path(args.out or "out")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out {folder} is not a folder but a file: give a folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_rows(folder: Path, name: str, rows: list[dict]) -> list[Path]:
    """Write the rows as NAME.json and NAME.csv into a folder, and return the paths."""
    from tensorcore_models.files import write_text

    paths = [folder / f"{name}.json", folder / f"{name}.csv"]
    write_text(paths[0], json_text(rows))
    write_text(paths[1], Table.of_rows(name, rows).to_csv())
    return paths
