"""`mpgemm explain` shows one dot product step by step and the causes of its error, or why two engines differ on it."""

from __future__ import annotations

import argparse
import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import tensorcore_models as tcm
from mpgemm.cli.common.operand_options import add_scale_arguments, scales_of
from mpgemm.cli.common.parser import Parser
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Table, wrapped

if TYPE_CHECKING:
    import numpy as np

    from mpgemm.explanations.two_engines import SideBySide

QUESTION = "debug a kernel"
SUMMARY = "show one dot product step by step, and where its error comes from"
EXAMPLES = (
    ("", "the dot product of Valpey et al., table 5: every step and every bit"),
    ("ootomo --engine a100 --a 1.5 2 --b 0.25 3", "your own dot product"),
    ("markidis --files A.npy B.npy --element 3 7 --attribution-only", "where one result's error comes from"),
    ("--engine a100 h100 --distribution normal --k 1024", "why do two GPUs differ?"),
    ("--function ex2 0.7", "an exponential inside a GPU's special-function unit"),
    ("fp16 --engine v100 --a 1 -1e-3 2^-12 --b 1 1 1/3", "numbers as decimals, powers of two and fractions"),
)


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    add(
        "method",
        metavar="METHOD",
        nargs="?",
        help="method that computes the dot product, with options as in ootomo:terms=4 (default ootomo; with two "
        "engines, the plain product of their format)",
    )
    add(
        "--engine",
        nargs="+",
        default=[],
        metavar="ENGINE",
        help="engine: a device, an instruction (arch:name), or ieee (default: the default engine of the method). "
        "Two engines are compared",
    )
    add(
        "--operands",
        dest="format",
        metavar="FORMAT",
        help="format of the operands of a plain product, without a recovery method: half, bf16, tf32, fp8, ...",
    )
    _add_dot_product(parser.add_argument_group("dot product (default: Valpey et al., table 5)"))
    add(
        "--function",
        nargs="+",
        metavar="WORD",
        help="explain a special function in place of a dot product: its name and one or two numbers, such as ex2 0.7 or "
        "div.full.f32 1 3 (--function list prints all names)",
    )
    add(
        "--all",
        action="store_true",
        help="show every step of a long dot product, not only the steps that contribute to the error",
    )
    add("--attribution-only", action="store_true", help="show only where the error comes from")
    add("--json", action="store_true", help="print the result as JSON")
    parser.goes_with(("--scale-a", "--scale-b"), ("--a", "--files", "--distribution"))
    parser.goes_without(("--scale-a", "--scale-b"), ("method", "--c", "--attribution-only", "--all"))
    parser.goes_without(("--operands",), ("method",))
    parser.goes_with(("--a",), ("--b",))
    parser.goes_with(("--b",), ("--a",))
    parser.goes_with(("--k", "--seed"), ("--distribution",))
    parser.goes_with(("--element",), ("--files", "--distribution"))
    parser.goes_without(("--all",), ("--attribution-only", "--json"))
    others = ("method", "--operands", "--a", "--c", "--files", "--distribution", "--all", "--attribution-only")
    parser.goes_without(("--function",), others)


def _add_dot_product(source: argparse._ArgumentGroup) -> None:
    """Add the options that say which dot product is explained."""
    add = source.add_argument
    add("--a", nargs="+", metavar="X", help="elements of the row of A, such as -1e-3, 1/3, 2^-12, 0x1.8p-4")
    add("--b", nargs="+", metavar="X", help="elements of the column of B")
    add(
        "--c",
        metavar="X|FILE|NAME",
        help="number c that is added; with --files or --distribution also a matrix file or a distribution, whose "
        "element at --element is taken",
    )
    add(
        "--files",
        nargs=2,
        metavar="FILE",
        help="matrix files of A and B, from which the row and the column of --element are taken",
    )
    add(
        "--distribution",
        metavar="NAME",
        help="distribution from which A and B are drawn; the row and the column of --element are taken",
    )
    add("--k", type=int, help="length of a generated dot product (default 8)")
    add("--seed", type=int, default=0, help="seed of a generated dot product (default 0)")
    add(
        "--element",
        nargs=2,
        type=int,
        metavar=("I", "J"),
        help="row and column of the element of the product that is explained (default 0 0; with two engines, the "
        "first element that differs)",
    )
    add_scale_arguments(source)


#: Rows and columns of the generated product that is searched for an element on which two engines differ.
SIDE = 8


def run(args: argparse.Namespace) -> Output:
    """Carry out the command. Raises ValueError, TypeError, OSError on bad input."""
    from mpgemm.explanations.dots import explain
    from mpgemm.recovery.methods import get_method
    from mpgemm.recovery.rows import TF32_NOTE
    from tensorcore_models.formats.tf32_roundings import ROUNDINGS

    if args.function:
        return _function(args)
    if len(args.engine) > 2:
        raise ValueError(f"--engine got {len(args.engine)} engines, expected one, or two to compare")
    if len(args.engine) == 2:
        if args.scale_a is not None or args.scale_b is not None:
            raise ValueError("--scale-a and --scale-b work with one engine only, got two: leave one engine out")
        return _compare(args)
    engine = args.engine[0] if args.engine else None
    if args.scale_a is not None or args.scale_b is not None:
        return _scaled(args, engine or "h100")
    method = args.method or ("ootomo" if args.format is None else _plain(args.format))
    a, b, c = _operands(args)
    row = get_method(method)
    explanation = explain(row, a, b, c, engine)
    told = explanation.attribution if args.attribution_only else explanation
    text = _wrapped_lines(told if args.attribution_only or args.all else explanation.folded())
    if row.formats == ("tf32",) and row.words == 1:
        text.append(wrapped(f"{ROUNDINGS[row.rounding].capitalize()} here: {TF32_NOTE}.", hang="    "))
    return Output(told.to_dict(), text)


def _wrapped_lines(found: object) -> list[str]:
    """Return the lines of a result's text, wrapped with indentation."""
    return [wrapped(line, hang="    ") if line.strip() else line for line in str(found).split("\n")]


def _function(args) -> Output:
    """Return the explanation of a special function of the given numbers."""
    from mpgemm.explanations.functions import explain_function, find_function

    if len(args.engine) > 1:
        raise ValueError(f"--function takes one architecture or device as --engine, got {len(args.engine)}: give one")
    arch, (name, *texts) = args.engine[0] if args.engine else "h100", args.function
    if name == "list":
        names = [function.name for function in tcm.list_functions(arch)]
        return Output(names, names)
    numbers = [float(x) for x in _vector(texts, "function")] if texts else []
    found = explain_function(find_function(arch, name), numbers)
    return Output(found.to_dict(), _wrapped_lines(found))


def _scaled(args, name: str) -> Output:
    """Return the explanation of the plain product of operands with scales."""
    import numpy as np

    from mpgemm.explanations.scaled_dots import explain_scaled
    from mpgemm.recovery.engines import plain_engine
    from tensorcore_models.engines.scaling import read_scales

    matrices = _scaled_operands(args)
    engine = plain_engine(name, None if ":" in name else args.format or "fp8")
    a, b = matrices
    i, j = args.element or (0, 0)
    if not (0 <= i < a.shape[0] and 0 <= j < b.shape[1]):
        raise ValueError(
            f"--element {i} {j} is outside the {a.shape[0]} x {b.shape[1]} product, whose rows and columns count from 0: "
            "give a smaller row and column"
        )
    scaling = read_scales(**scales_of(args), m=a.shape[0], k=a.shape[1], n=b.shape[1], unit=engine)
    assert scaling is not None
    found = explain_scaled(engine, a[i], b[:, j], scaling.part(np.array([i]), np.array([j])))
    first, *others = found.sentences()
    headings = ("k", "chain", "exact", "times", "total")
    rows = [
        (f"{s.start}:{s.stop}", f"{s.chain:.9g}", f"{s.exact:.9g}", f"{s.factor:.9g}", f"{s.total:.9g}")
        for s in found.steps
    ]
    table = Table("chains of the unit", headings, rows)
    return Output(found.to_dict(), [wrapped(first), "", table, "", *map(wrapped, others)])


def _scaled_operands(args) -> tuple[np.ndarray, np.ndarray]:
    """Return A and B of a product with scales as matrices."""
    if args.a:
        return _vector(args.a, "a")[None], _vector(args.b, "b")[:, None]
    a, b, _ = _matrices(args, None)
    return a, b


# -- operands ------------------------------------------------------------------------------------------------------------
def _operands(args):
    """Return the row of A, the column of B, and c."""
    from mpgemm.explanations.example import VALPEY_A, VALPEY_B, VALPEY_C

    given = [name for name in ("a", "files", "distribution") if getattr(args, name)]
    if len(given) > 1:
        raise ValueError(f"got --{' and --'.join(given)}, expected one kind of input: keep one of these options")
    if args.k is not None and args.k < 0:
        raise ValueError(f"--k must be at least 0, got {args.k}")
    c = _number(args.c)
    if args.c is not None and c is None and not (args.files or args.distribution):
        raise ValueError(
            f"--c got {args.c!r}, expected a number; a file or a distribution needs --files or --distribution"
        )
    if args.a:
        return _vector(args.a, "a"), _vector(args.b, "b"), c
    if not given:
        return VALPEY_A, VALPEY_B, VALPEY_C if args.c is None else c
    matrix_a, matrix_b, matrix_c = _matrices(args, c)
    i, j = _element(args, matrix_a, matrix_b, matrix_c, c)
    if not (0 <= i < matrix_a.shape[0] and 0 <= j < matrix_b.shape[1]):
        raise ValueError(
            f"--element {i} {j} is outside the {matrix_a.shape[0]} x {matrix_b.shape[1]} product, whose rows and columns count "
            "from 0: give a smaller row and column"
        )
    return matrix_a[i], matrix_b[:, j], c if matrix_c is None else matrix_c[i, j]


def _matrices(args, c):
    """Return A, B, and the matrix C or None."""
    from mpgemm.experiments.cases import file_case, generated_cases, with_addend

    if args.files:
        case = file_case(Path(args.files[0]), Path(args.files[1]))
    else:
        least = SIDE if len(args.engine) == 2 and args.element is None else 1
        i, j = (max(least - 1, index) for index in args.element or (0, 0))
        case = generated_cases(args.distribution, (i + 1, 8 if args.k is None else args.k, j + 1), [args.seed])[0]
    if args.c is not None and c is None:
        case = with_addend(case, args.c)
    return case.operands()


def _element(args, a, b, matrix_c, c) -> tuple[int, int]:
    """Return row and column of --element; by default those of the first element on which two engines differ, else 0 0."""
    import numpy as np

    from mpgemm.recovered import recovered_gemm

    if args.element is not None:
        return args.element[0], args.element[1]
    if len(args.engine) < 2 or 0 in (*a.shape, *b.shape):
        return 0, 0
    addend = matrix_c if c is None else np.full((a.shape[0], b.shape[1]), c, np.float32)
    results = [recovered_gemm(a, b, addend, _method(args), engine) for engine in args.engine]
    unequal = np.argwhere(results[0] != results[1])
    size = results[0].size
    if not args.json:
        print(wrapped(f"the results differ in {len(unequal)} of {size} elements"))
    if not len(unequal):
        return 0, 0
    i, j = (int(x) for x in unequal[0])
    if not args.json:
        print(f"the first that differs, row {i} column {j}:\n")
    return i, j


def _vector(texts: list[str], name: str) -> np.ndarray:
    import numpy as np

    values = [_number(text) for text in texts]
    wrong = [text for text, value in zip(texts, values, strict=True) if value is None]
    if wrong:
        raise ValueError(f"--{name} got {wrong[0]!r}, expected a number such as -1e-3, 1/3, 2^-12 or 0x1.8p-4")
    return np.array(values, np.float32)


def _number(text: str | None) -> np.float32 | None:
    """Parse a decimal or hexadecimal number, a fraction, or a power of two; return None for another text."""
    import numpy as np

    if text is None:
        return None
    power = re.fullmatch(r"(-?)2(?:\^|\*\*)(-?\d{1,4})", text)
    try:
        if power:
            return np.float32(float(f"{power[1]}1") * 2.0 ** int(power[2]))
        if "0x" in text.lower():
            return np.float32(float.fromhex(text))
        return np.float32(float(Fraction(text)) if "/" in text else text)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


# -- two engines ---------------------------------------------------------------------------------------------------------
def _plain(fmt: str) -> str:
    """Return the name of the method that is the plain product of a format."""
    from tensorcore_models.formats.names import FP8, format_family, operand_format

    if format_family(fmt) == FP8:
        return "fp8"
    name = operand_format(fmt).name
    if name in ("fp16", "bf16", "tf32", "fp32", "fp64"):
        return name
    if name in FP8:
        return f"fp8:format={name}"
    raise ValueError(f"the plain product of {name} cannot be explained: give fp16, bf16, tf32, fp8, fp32 or fp64")


def _method(args) -> str:
    """Return the name of the method that two engines run, by default their plain product."""
    from mpgemm.recovery.engines import plain_engine

    if args.method is not None:
        return args.method
    if args.format is not None:
        return _plain(args.format)
    named = [tcm.get_instruction(name).a_format for name in args.engine if ":" in name]
    devices = [name for name in args.engine if name != "ieee"]
    return _plain(named[0] if named else plain_engine(devices[0]).formats[0].name if devices else "fp32")


def _compare(args) -> Output:
    from mpgemm.explanations.two_engines import side_by_side
    from mpgemm.recovery.methods import get_method

    if args.attribution_only:
        raise ValueError("--attribution-only takes one engine, got two: leave one engine out")
    a, b, c = _operands(args)
    found = side_by_side(get_method(_method(args)), a, b, c, tuple(args.engine))
    return Output(found.to_dict(), _lines(found, args.all))


def _lines(found: SideBySide, everything: bool):
    names = [name.partition(":")[0] for name in found.engines]
    if names[0] == names[1]:
        names = ["first", "second"]
    yield wrapped(f"{found.method}: {found.engines[0]} and {found.engines[1]}", hang="  ")
    cells, before = [], -1
    for index in range(len(found.rows)) if everything else found.shown():
        if index > before + 1:
            alike = sum(row.alike for row in found.rows[before + 1 : index])
            cells.append([f"... {index - before - 1} more", "", "", f"{alike} equal"])
        row, before = found.rows[index], index
        mark = "<- first that differs" if index == found.first else "" if row.alike else "differ"
        cells.append([f"{row.text}, k < {row.stop}", f"{row.first:.9g}", f"{row.second:.9g}", mark])
    yield ""
    yield Table("sum after these products", ["products", *names, ""], cells)
    yield f"\nresults: {found.results[0]:.9g} and {found.results[1]:.9g}\n"
    yield wrapped(found.why)
