"""Options of the commands that read a compiled kernel: its launch, and arguments from words."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from tensorcore_models import libraries
    from tensorcore_models.compiled.program import KernelProgram

#: The options of :func:`add_launch_arguments`.
LAUNCH = ("--arguments", "--grid", "--block", "--entry", "--fmad", "--unit", "--output")


def add_launch_arguments(parser: argparse.ArgumentParser) -> None:
    """How a kernel is launched, and what of it is read."""
    add = parser.add_argument
    add(
        "--arguments",
        nargs="+",
        metavar="FORMAT:MxN|FILE.npy|NUMBER",
        help="arguments of the kernel; a shape is filled with random values",
    )
    add("--grid", nargs="+", type=int, default=[1], metavar="N", help="number of blocks along x, y, z (default 1)")
    add(
        "--block",
        nargs="+",
        type=int,
        metavar="N",
        help="number of threads in a block, where the kernel does not state it",
    )
    add("--entry", metavar="NAME", help="name of the kernel, where the file has several")
    add(
        "--fmad",
        choices=("true", "false"),
        help="whether ptxas contracts a product and an addition into one fma, as its option --fmad does (default true)",
    )
    add("--unit", metavar="ARCH", help="architecture of the matrix instructions (default: the target's)")
    add(
        "--output", type=int, metavar="N", help="index of the output argument (default: the last array that is written)"
    )


def read_kernel(path: str, args: argparse.Namespace) -> KernelProgram:
    """Return the kernel of a file as the options say: its entry, and ptxas's contraction.

    Raises
    ------
    ValueError, OSError
        If it cannot be read, or --fmad is given for another language than PTX.
    """
    from tensorcore_models import compiled

    return compiled.read(path, entry=args.entry, fmad=None if args.fmad is None else args.fmad == "true")


def launch_arguments(words: list[str], seed: int = 0) -> list:
    """Return the arguments of a kernel that words spell: arrays of random values, arrays of files, and numbers."""
    import numpy as np

    rng = np.random.default_rng(seed)
    return [_argument(word, rng) for word in words]


def _argument(word: str, rng: np.random.Generator):
    import numpy as np

    import tensorcore_models as tcm
    from tensorcore_models.formats import get_float_format

    fmt, colon, shape = word.partition(":")
    if colon and all(part.isdigit() for part in shape.split("x")):
        values = rng.standard_normal([int(part) for part in shape.split("x")])
        row = get_float_format(fmt)
        bits = tcm.encode(values, row, "rz")
        return bits.view({"fp32": np.float32, "fp16": np.float16, "fp64": np.float64}.get(row.name, bits.dtype))
    if word.endswith(".npy"):
        return np.ascontiguousarray(np.load(word))
    try:
        return int(word, 0)
    except ValueError:
        pass
    try:
        return float(word)
    except ValueError:
        raise ValueError(
            f"--arguments {word!r}: expected FORMAT:SHAPE (such as fp16:64x64), a .npy file, or a number"
        ) from None


def kernel_recipe(args: argparse.Namespace, fmt: str) -> tuple[libraries.Recipe, tuple[str, ...]]:
    """Return the recipe of `libraries` that is read from --kernel, for operands of a format, and what it rests on.

    Raises
    ------
    ValueError, TypeError, OSError
        If the kernel cannot be read, computes something else than such a recipe, or its unit takes another format.
    """
    from tensorcore_models import compiled
    from tensorcore_models.formats import get_format

    if args.arguments is None:
        raise ValueError("--kernel needs --arguments: its result depends on how it is launched; see mpgemm read --help")
    program = read_kernel(args.kernel, args)
    found = program.recipe(
        launch_arguments(args.arguments), args.grid, block=args.block, unit=args.unit, output=args.output
    )
    recipe = found.library()
    if isinstance(recipe, compiled.FinishedRecipe):
        beside = ", ".join(recipe.arrays) or "constants"
        raise ValueError(
            f"{recipe.name} also reads {beside} when it starts or finishes its sum: compute its bits in Python with "
            f"compiled.read(...).recipe(...).library().gemm_bits(a, b, arrays=...)"
        )
    taken = [get_format(each).name for each in recipe.engine.formats[:2]]
    if taken != [fmt, fmt]:
        raise ValueError(
            f"{recipe.name} multiplies {' by '.join(taken)}, but A and B are {fmt}: name the format with "
            f"--operands, and "
            "--input-rounding where values are rounded"
        )
    return recipe, found.assumptions
