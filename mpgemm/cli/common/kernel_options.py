"""Adds the options of commands that read a compiled kernel, and makes the kernel's arguments from words."""

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
    """Add the options that say how a kernel is launched and which of its outputs is read."""
    add = parser.add_argument
    add(
        "--arguments",
        nargs="+",
        metavar="FORMAT:MxN|FILE.npy|NUMBER",
        help="arguments of the kernel in order: FORMAT:MxN (such as fp16:64x64) for an array of random values, a "
        ".npy file, or a number",
    )
    add(
        "--grid",
        nargs="+",
        type=int,
        default=[1],
        metavar="N",
        help="number of thread blocks along x, y, z (default 1)",
    )
    add(
        "--block",
        nargs="+",
        type=int,
        metavar="N",
        help="number of threads in a block along x, y, z (default: as the kernel states)",
    )
    add("--entry", metavar="NAME", help="name of the kernel in the file, needed if the file has several")
    add(
        "--fmad",
        choices=("true", "false"),
        help="whether ptxas contracts a product and an addition into one fma, as its option --fmad does (default true)",
    )
    add(
        "--unit",
        metavar="ARCH",
        help="architecture whose matrix instructions are modelled (default: that of the kernel's target)",
    )
    add(
        "--output", type=int, metavar="N", help="index of the output argument (default: the last array that is written)"
    )


def read_kernel(path: str, args: argparse.Namespace) -> KernelProgram:
    """Return the kernel of a file: the entry that --entry names, with ptxas's contraction as --fmad says.

    Raises
    ------
    ValueError, OSError
        If the file cannot be read, or --fmad is given for a kernel that is not PTX.
    """
    from tensorcore_models import compiled

    return compiled.read(path, entry=args.entry, fmad=None if args.fmad is None else args.fmad == "true")


def launch_arguments(words: list[str], seed: int = 0) -> list:
    """Return the arguments of a kernel from words: FORMAT:SHAPE makes an array of random values, FILE.npy is read."""
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
            f"--arguments got {word!r}, expected FORMAT:SHAPE (such as fp16:64x64), a .npy file, or a number"
        ) from None


def kernel_recipe(args: argparse.Namespace, fmt: str) -> tuple[libraries.Recipe, tuple[str, ...]]:
    """Return the recipe that is read from --kernel, for operands of a format, and the assumptions on which it rests.

    Raises
    ------
    ValueError, TypeError, OSError
        If the kernel cannot be read, does not compute a product as recipes describe it, or multiplies another format.
    """
    from tensorcore_models import compiled
    from tensorcore_models.formats import get_format

    if args.arguments is None:
        raise ValueError("--kernel needs --arguments, because its result depends on the launch: see mpgemm read --help")
    program = read_kernel(args.kernel, args)
    found = program.recipe(
        launch_arguments(args.arguments), args.grid, block=args.block, unit=args.unit, output=args.output
    )
    recipe = found.library()
    if isinstance(recipe, compiled.FinishedRecipe):
        beside = ", ".join(recipe.arrays) or "constants"
        raise ValueError(
            f"{recipe.name} also reads {beside}, which this command cannot pass: compute its bits in Python with "
            "tensorcore_models.compiled.read(...).recipe(...).library().gemm_bits(a, b, arrays=...)"
        )
    taken = [get_format(each).name for each in recipe.engine.formats[:2]]
    if taken != [fmt, fmt]:
        raise ValueError(
            f"{recipe.name} multiplies {' by '.join(taken)}, but A and B are {fmt}: name the kernel's format with "
            "--operands, and the rounding of A and B to it with --input-rounding"
        )
    return recipe, found.assumptions
