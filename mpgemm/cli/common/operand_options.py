"""Adds and reads the options of scales, and those of attention kernels."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mpgemm.cli.common.parser import Parser

if TYPE_CHECKING:
    import numpy as np


def add_scale_arguments(parser: Any) -> None:
    """Add the options --scale-a and --scale-b."""
    for side, line, blocks in (
        ("a", "a row", "1 x 128, 128 x 128 or 1 x 64"),
        ("b", "a column", "128 x 1, 128 x 128 or 64 x 1"),
    ):
        name = side.upper()
        parser.add_argument(
            f"--scale-{side}", nargs="+", metavar="X|FILE",
            help=f"scale of {name}: a number or a file. The file's shape and type determine what each scale covers: all of "
            f"{name}, {line} of {name}, or a block ({blocks} elements; 32 of an MX format or 16 of NVFP4 along k). A number "
            f"after a file of MX or NVFP4 scales is a further scale of all of {name}",
        )  # fmt: skip


def scales_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments scale_a and scale_b; an option that is not given is None."""
    return {f"scale_{side}": _given(getattr(args, f"scale_{side}"), f"--scale-{side}") for side in "ab"}


def _given(words: list[str] | None, option: str) -> Any:
    from mpgemm.inputs.files import read_array

    if words is None:
        return None
    if len(words) > 2:
        raise ValueError(
            f"{option} got {len(words)} values, expected a number or a file, or a file of block scales and a number"
        )
    first, *more = words
    value = _number(first)
    scale = read_array(first) if value is None else value
    if not more:
        return scale
    whole = _number(more[0])
    if value is not None or whole is None:
        raise ValueError(f"{option} got {' '.join(words)}, expected two values: a file of block scales and a number")
    return scale, whole


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


# -- attention ---------------------------------------------------------------------------------------------------------------
#: Options that describe an attention kernel.
_OPTIONS = (
    "--causal", "--window", "--softmax-scale", "--kv-tile", "--p-scale", "--exp-ulps", "--softcap", "--sinks", "--cu-seqlens-q",
    "--cu-seqlens-k", "--block-table", "--cache-seqlens",
)  # fmt: skip


def add_attention_arguments(parser: Parser, others: tuple[str, ...]) -> None:
    """Add --attention and the options that need it; the options `others` have no effect beside it."""
    group = parser.add_argument_group("attention")
    add = group.add_argument
    add(
        "--attention",
        nargs=3,
        metavar=("Q", "K", "V"),
        help="files of Q, K and V, shape (..., heads, rows, d), in place of A and B",
    )
    add(
        "--causal",
        action="store_true",
        help="causal mask: the last query sees all keys, each earlier query one key fewer",
    )
    add(
        "--window",
        nargs=2,
        type=int,
        metavar=("LEFT", "RIGHT"),
        help="numbers of keys that a query sees to the left and to the right of its own position; -1: all of them",
    )
    add("--softmax-scale", type=float, metavar="X", help="factor of Q K^T (default 1 / sqrt(d))")
    add(
        "--kv-tile",
        type=int,
        metavar="KEYS",
        help="number of keys in a tile of the kernel (default: unknown, but at least 16)",
    )
    add(
        "--p-scale",
        type=float,
        metavar="X",
        help="factor by which the kernel multiplies P, the exponentials of the scores, before it rounds P "
        "(default 256 for 8-bit formats, else 1)",
    )
    add(
        "--exp-ulps",
        type=float,
        metavar="ULPS",
        help="largest error of the kernel's exponential in ulp (default 2.06, that of MUFU.EX2)",
    )
    _add_scores_and_sequences(add)
    parser.goes_with(_OPTIONS, ("--attention",))
    parser.goes_without(others, ("--attention",))


def _add_scores_and_sequences(add: Callable[..., argparse.Action]) -> None:
    """Add the options that change scores, and those of packed or paged sequences."""
    add("--softcap", type=float, metavar="X", help="replace each scaled score s by X tanh(s / X)")
    add(
        "--sinks",
        metavar="FILE",
        help="file with one more score for each query head, whose exponential is added to every row sum of the softmax",
    )
    for side in "qk":
        add(
            f"--cu-seqlens-{side}",
            metavar="FILE",
            help=f"file of the row numbers at which the sequences begin in {side.upper()}, whose shape is (rows "
            "of all sequences, heads, d)",
        )
    add(
        "--block-table",
        metavar="FILE",
        help="file of integers, shape (sequences, pages of a sequence): the indices, from 0, of the pages that hold the keys "
        "of each sequence, in order. K and V then have the shape (pages, rows of a page, heads, d)",
    )
    add("--cache-seqlens", metavar="FILE", help="file with the number of keys of each sequence, for --block-table")


def attention_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the given options as keywords of :func:`mpgemm.testing.check_attention`."""
    from mpgemm.inputs.files import read_array

    given = {
        "causal": args.causal, "scale": args.softmax_scale, "kv_tile": args.kv_tile, "p_scale": args.p_scale,
        "exp_ulps": args.exp_ulps, "window": None if args.window is None else tuple(args.window), "softcap": args.softcap,
    }  # fmt: skip
    for name in ("sinks", "cu_seqlens_q", "cu_seqlens_k", "block_table", "cache_seqlens"):
        path = getattr(args, name)
        given[name] = None if path is None else read_array(path)
    return {name: value for name, value in given.items() if value is not None}


def file_values(path: str, fmt: str | None, path_of: str | None = None) -> np.ndarray:
    """Return the values of a file; encodings of a named format become that format's type.

    path_of: Name of the option that states whether uint8 elements are encodings or integers.
    """
    from mpgemm.inputs.files import read_array
    from tensorcore_models.formats import operand_format
    from tensorcore_models.formats.operands import operand_bits, values_of_bits

    array = read_array(path, encodings=fmt is not None)
    if fmt is None and array.dtype == "uint8" and path_of is not None:
        raise ValueError(
            f"{path} holds uint8, which may be encodings or integers: give --{path_of} e4m3fn (or another 8-bit format), or "
            f"--{path_of} u8 for integers"
        )
    if fmt is None or operand_format(fmt).name in ("s8", "u8", "s4", "u4"):
        return array
    row = operand_format(fmt)
    encoded = array.dtype.kind == "u" and array.dtype == row.container
    return values_of_bits(array if encoded else operand_bits(array, row, None, path), row)
