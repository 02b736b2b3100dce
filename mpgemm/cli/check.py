"""`mpgemm check OUT A B` checks whether a kernel's result is right, and if not, which kind of bug it resembles."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from mpgemm.cli.common.operand_options import (
    add_attention_arguments,
    add_scale_arguments,
    attention_options,
    file_values,
    scales_of,
)
from mpgemm.cli.common.parser import Parser
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import item, wrapped

if TYPE_CHECKING:
    import numpy as np

    from mpgemm.testing.check import KernelCheck

QUESTION = "debug a kernel"
SUMMARY = "check whether a matrix unit can give a kernel's result, and if not, which kind of bug the errors resemble"
EXAMPLES = (
    ("out.npy A.npy B.npy --engine h100 --plot where.png", "where and why does a test fail?"),
    (
        "scaled.npy A.npy B.npy --scale-a SA.npy --scale-b SB.npy --promote-every 128",
        "a kernel with scales, which adds the unit's sums to FP32 sums after every 128 products",
    ),
    (
        "out.pt:y layer.safetensors:x W.npy --operands e4m3fn",
        "the name of a tensor stands after a colon; the files of A and B hold encodings of e4m3fn",
    ),
    (
        "dx.npy DY.npy W8.npy --operands e5m2,e4m3fn --out-format bf16",
        "operands of two formats, and a result stored as encodings",
    ),
    (
        "out.npy A.npy B.npy --k-order any --promote-every 64:512",
        "a kernel that sums k in an unknown order and adds the unit's sum to an FP32 sum after every 64 to 512 products",
    ),
    (
        "grouped.npy A.npy experts.npy --ends 3 5 8",
        "a grouped product of three experts: they take the rows 0 to 2, 3 to 4 and 5 to 7 of A",
    ),
    ("recovered.npy X.npy Y.npy --method sgemm_cube", "a kernel that recovers FP32 from FP16 words on an Ascend 910A"),
    ("attended.npy --attention Q.npy K.npy V.npy --causal", "an attention kernel"),
    (
        "q.npy QA.npy QB.npy --scale-a 0.1 --scale-b 0.2 --scale-out 8 --zero-a 3",
        "integers with a zero point, requantised",
    ),
)
DEFAULT_ENGINE = "h100"
#: Options of products that have no effect on attention.
_OF_PRODUCTS = (
    "--c", "--epilogue", "--residual", "--alpha", "--beta", "--input-rounding", "--scale-a", "--scale-b", "--splits",
    "--k-order", "--promote-every",
    "--zero-a", "--zero-b", "--zero-out", "--scale-out", "--ends",
)  # fmt: skip

#: Options of plain products that have no meaning for a recovery method.
_OF_PLAIN_PRODUCTS = (
    "--operands", "--input-rounding", "--scale-a", "--scale-b", "--splits", "--k-order", "--promote-every", "--alpha", "--beta",
    "--ends", "--zero-a", "--zero-b", "--zero-out", "--scale-out",
)  # fmt: skip


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    add("out", metavar="OUT", help="the kernel's result: a file, or FILE:TENSOR of .npz, .safetensors, .pt")
    for name in "ab":
        add(name, nargs="?", metavar=name.upper(), help=f"matrix file of {name.upper()}")
    add(
        "--engine",
        help="matrix unit that the kernel uses: a device (h100), a device's path (h100/mma) or an instruction (arch:name); "
        "default h100, with --method the default engine of the method",
    )
    add(
        "--method", metavar="NAME",
        help="recovery method that the kernel computes from FP32 or FP64 operands: a name of mpgemm models --methods, with "
        "options and a unit if needed, such as sgemm_cube:terms=4 or hf32@910B3 (default: none, but the plain product)",
    )  # fmt: skip
    add("--transpose-b", action="store_true", help="the file of B holds the transpose of B, as W in x @ W.T")
    add(
        "--operands", dest="format", metavar="FORMAT",
        help="format of A and B, or one format for each (e5m2,e4m3fn). It is needed if the files do not state it, "
        "because they hold encodings (unsigned integers, |V1 of numpy) or float32 values",
    )  # fmt: skip
    add(
        "--out-format",
        metavar="FORMAT",
        help="format of OUT, needed if its file holds encodings (default: the type of the file's elements)",
    )
    _add_epilogue_arguments(add)
    add(
        "--input-rounding", metavar="MODE",
        help="rounding of operands to the unit's format, if the kernel's library rounds them: rne, rna, rz, ... For "
        "tf32, cuBLAS rounds by rne on an H100 and by rna on GPUs of 2020, Triton's tl.dot by rz (default: operands "
        "have the format already)",
    )  # fmt: skip
    add(
        "--rows", type=int, metavar="N",
        help="check only N rows of OUT, evenly spread; with --attention, N queries of each head (default: all)",
    )  # fmt: skip
    add(
        "--ends", nargs="+", type=int, metavar="ROW",
        help="for a grouped product, where B holds one matrix for each expert: the number of the first row of A after "
        "the rows of each expert",
    )  # fmt: skip
    add_scale_arguments(parser)
    add_order_arguments(parser)
    add_attention_arguments(parser, ("a", "b", "--method", "--transpose-b", *_OF_PRODUCTS))
    _add_integer_arguments(parser)
    _add_output_arguments(parser)
    parser.goes_without(("--zero-a", "--zero-b", "--zero-out", "--scale-out", "--transpose-b"), ("--ends",))
    parser.goes_without(_OF_PLAIN_PRODUCTS, ("--method",), "plain products")


def _add_output_arguments(parser: Parser) -> None:
    """Add the options that say what is written."""
    parser.add_argument(
        "--plot", metavar="FILE", help="write a picture that shows the places of the wrong elements (.png, .pdf, .svg)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _add_epilogue_arguments(add: Callable[..., argparse.Action]) -> None:
    """Add the options of C and of the operations after the sum."""
    add(
        "--c", metavar="FILE",
        help="file of C, which is added to the product: a matrix, or a bias for each column (n elements) or each row (m "
        "x 1)",
    )  # fmt: skip
    add(
        "--epilogue", metavar="NAME",
        help="functions that the kernel applies to the product, in order and joined by +: relu, silu, gelu_tanh, "
        "gelu_erf, leaky_relu:SLOPE, softcap:C, swiglu, and at the end residual, which adds the matrix of "
        "--residual (default: none)",
    )  # fmt: skip
    add("--residual", metavar="FILE", help="file of the matrix that the residual of --epilogue adds")
    add("--alpha", type=float, default=1.0, metavar="X", help="factor of the product, in FP32 (default 1)")
    add("--beta", type=float, default=1.0, metavar="X", help="factor of C, in FP32 (default 1)")


def _add_integer_arguments(parser: Parser) -> None:
    """Add the options of integer outputs: zero points and a scale."""
    integers = parser.add_argument_group("outputs of integers")
    add = integers.add_argument
    for name in ("zero-a", "zero-b", "zero-out"):
        add(f"--{name}", type=int, metavar="Z", help=f"integer that stands for zero in {name[5:].upper()} (default 0)")
    add(
        "--scale-out", type=float, metavar="X",
        help="scale of an 8-bit OUT, by which the scaled sum is divided before it is rounded",
    )  # fmt: skip


def add_order_arguments(parser) -> None:
    """Add the options that say in which order the kernel sums k."""
    add = parser.add_argument
    add(
        "--splits", type=int, default=1, metavar="S",
        help="largest number of chains into which the kernel splits k; the sums of the chains are added outside of the "
        "unit (default 1)",
    )  # fmt: skip
    add(
        "--k-order", metavar="ORDER",
        help="order in which the kernel sums k: sequential (one chain), split_k:S (S slices of k), sliced_k:S (S chains, "
        "each of every S-th step), or any (the unit's steps in any order); default sequential",
    )  # fmt: skip
    add(
        "--promote-every", metavar="N|LEAST:MOST",
        help="number of products after which the kernel adds the unit's sum to an FP32 sum outside of the unit, or the "
        "least and the largest number that is possible (default: never)",
    )  # fmt: skip


#: Advice on faults that no tolerance sees.
BITS = "if the kernel sums in this order, comparing its bits finds them: mpgemm whodunit, or assert_bits in a test"


def orders_of(args: argparse.Namespace) -> dict:
    """Return splits, k_order and promote_every. Raises ValueError if --promote-every is neither a number nor a range."""
    every = None
    if args.promote_every is not None:
        try:
            numbers = tuple(int(word) for word in args.promote_every.split(":"))
        except ValueError:
            numbers = ()
        if len(numbers) not in (1, 2):
            raise ValueError(
                f"--promote-every is {args.promote_every!r}, expected a number of products such as 128, or a range "
                f"such as 64:512"
            )
        every = numbers[0] if len(numbers) == 1 else numbers
    return {"splits": args.splits, "k_order": args.k_order, "promote_every": every}


def run(args: argparse.Namespace) -> Output:
    """Carry out the command; the exit status is 1 where the result is wrong.

    Raises ValueError, TypeError, OSError on bad input.
    """
    if args.plot is not None:
        from tensorcore_models.figures import require_matplotlib

        require_matplotlib()
    out = file_values(args.out, args.out_format)
    found = _attention(args, out) if args.attention else _product(args, out)
    written = [] if args.plot is None else _plotted(found, out.shape, args.plot)
    allowed = _allowed(args, found) if found.passes else []
    first, *others = allowed if found.passes else f"FAILS: {found}".splitlines()
    text = [wrapped(first), *(line if line.startswith("    ") else item(line.strip()) for line in others)]
    return Output({**found.to_dict(), "allowed": allowed, "plots": written}, text, status=int(not found.passes))


def _product(args: argparse.Namespace, out: np.ndarray) -> KernelCheck:
    """Return the check of a product, or of a grouped one."""
    from mpgemm.inputs.files import read_array
    from mpgemm.testing.check import check_gemm
    from mpgemm.testing.grouped import check_grouped

    if args.b is None:
        raise ValueError("the operands are missing: give the files of A and B, or --attention Q K V for attention")
    a, b = (
        file_values(path, fmt, "operands") for path, fmt in zip((args.a, args.b), _stored_formats(args), strict=True)
    )
    b = b.T if args.transpose_b else b
    c, residual = (None if path is None else read_array(path) for path in (args.c, args.residual))
    options = {
        "engine": _engine_of(args), "input_rounding": args.input_rounding, **orders_of(args), **scales_of(args),
        "epilogue": args.epilogue, "residual": residual,
        "alpha": args.alpha, "beta": args.beta,
    }  # fmt: skip
    if args.ends is not None:
        return check_grouped(out, a, b, args.ends, c, **options, rows=args.rows)
    zeros = {"zero_a": args.zero_a, "zero_b": args.zero_b, "zero_out": args.zero_out, "scale_out": args.scale_out}
    return check_gemm(
        out, a, b, c, **options, method=args.method and args.method.partition("@")[0], rows=args.rows, **zeros
    )


def _stored_formats(args: argparse.Namespace) -> tuple[str | None, str | None]:
    """Return the formats that --operands names for A and B; None if the elements of the files are values to be rounded."""
    names = [None] if args.format is None else args.format.split(",")
    if len(names) > 2 or (len(names) == 2 and args.input_rounding is not None):
        expected = "one format (with --input-rounding)" if args.input_rounding is not None else "one format or two"
        raise ValueError(f"--operands is {args.format!r}, expected {expected}, as in e4m3fn or e5m2,e4m3fn")
    kept = args.input_rounding is None and not any(map(_unstored, names))
    return (names[0], names[-1]) if kept else (None, None)


def _unstored(fmt: str | None) -> bool:
    """Return whether a format's values are stored in a wider type, as tf32 values are in float32."""
    from tensorcore_models.formats import operand_format

    return fmt is not None and operand_format(fmt).name == "tf32"


def _engine_of(args: argparse.Namespace):
    """Return the unit that --engine names; --operands chooses it where the type of the arrays does not determine the format."""
    from mpgemm.recovery.engines import plain_engine

    if args.method is not None:
        unit = args.method.partition("@")[2]
        if unit and args.engine is not None:
            raise ValueError(
                f"got --engine {args.engine} and --method {args.method}, which names a unit: leave --engine out"
            )
        return unit or args.engine
    narrowed = args.format is not None and _stored_formats(args) == (None, None)
    engine = args.engine or DEFAULT_ENGINE
    return plain_engine(engine, args.format) if narrowed and ":" not in engine else engine


def _attention(args: argparse.Namespace, out: np.ndarray) -> KernelCheck:
    from mpgemm.testing.attention import check_attention

    q, k, v = (file_values(path, args.format, "operands") for path in args.attention)
    return check_attention(
        out, q, k, v, engine=args.engine or DEFAULT_ENGINE, **attention_options(args), rows=args.rows
    )


def _plotted(found: KernelCheck, shape: tuple[int, ...], path: str) -> list[str]:
    """Write the picture of a result, or of the head with most wrong elements, and return the file names.

    The list is empty where the result is wrong, but no single element is.
    """
    import numpy as np

    from mpgemm.reporting.plots import wrong_elements
    from tensorcore_models.figures import save

    if found.outside is None and not found.passes:
        print("mpgemm check: no picture is written, because no single element is wrong", file=sys.stderr)
        return []
    outside = np.zeros(shape, bool) if found.outside is None else found.outside
    title = found.summary if found.place is None else f"{found.place}: {found.summary}"
    heads = outside.reshape(-1, *outside.shape[-2:])
    return save(wrong_elements(heads[int(np.argmax(heads.sum((1, 2))))], title), path)


def _allowed(args: argparse.Namespace, found: KernelCheck) -> list[str]:
    """Describe the tolerance that was applied, and the faults that would pass it on these operands."""
    from mpgemm.testing.faults import missed_faults
    from mpgemm.testing.tolerance_result import NONE_MISSED

    allowed = found.case
    if allowed is None:
        return [f"passes: {found.summary}"]
    line = allowed.statistics
    kind = f"within its certified bound, at most {allowed.atol:.3g}" if line is None else str(line)
    from tensorcore_models.formats.tf32_roundings import TF32_ROUNDINGS

    rounded = ""
    if args.input_rounding is not None:
        owners = [str(row) for row in TF32_ROUNDINGS if row.rounding == args.input_rounding]
        known = allowed.engine.a_format == "tf32" and bool(owners)
        rounded = f"; operands rounded {'; '.join(owners) if known else args.input_rounding}"
    scales = "" if allowed.scaling is None else f"; scales: {allowed.scaling.in_words()}"
    what = f"passes: {found.summary}, {allowed.order_in_words}"
    lines = [f"{what}: {kind}; {allowed.vacuity.verdict}{scales}{rounded}"]
    missed = missed_faults(allowed)
    if missed is not None:
        bits = f"; {BITS}" if allowed.order.known and missed != NONE_MISSED else ""
        lines.append(f"faults that this test would miss on these operands: {missed}{bits}")
    return lines
