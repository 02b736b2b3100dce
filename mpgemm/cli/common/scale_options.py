"""Scales of operands on the command line: numbers, or matrix files."""

import argparse
from typing import Any


def add_scale_arguments(parser: Any) -> None:
    """--scale-a and --scale-b."""
    for side in "ab":
        parser.add_argument(
            f"--scale-{side}", nargs="+", metavar="X|FILE",
            help=f"scale of {side.upper()}: a number or a file, whose shape says the rule (per tensor, rows and "
            "columns, blocks of 128, mx, nvfp4); block scales and one number more for nvfp4",
        )  # fmt: skip


def scales_of(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments scale_a and scale_b, None where they are not given."""
    return {f"scale_{side}": _given(getattr(args, f"scale_{side}"), f"--scale-{side}") for side in "ab"}


def _given(words: list[str] | None, option: str) -> Any:
    from mpgemm.inputs.files import read_array

    if words is None:
        return None
    if len(words) > 2:
        raise ValueError(
            f"{option} takes a number or a file, and one number more beside block scales; got {len(words)} values"
        )
    first, *more = words
    value = _number(first)
    scale = read_array(first) if value is None else value
    if not more:
        return scale
    whole = _number(more[0])
    if value is not None or whole is None:
        raise ValueError(f"{option} with two values takes a file of block scales and a number, got {' '.join(words)}")
    return scale, whole


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
