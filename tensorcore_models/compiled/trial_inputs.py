"""Draws inputs on which two kernels are tried: of the given shapes, made to show order, roundings, ranges and special values.

An operand of a matrix instruction is drawn in the instruction's format even if the array holds plain encodings.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ..formats import IntegerFormat, get_format
from ..formats.operands import operand_bits
from .isa.types import FORMATS
from .kernel_recipe import KernelRecipe
from .nodes import Applied, Element, Masked, Node, Step


def _normal(rng, shape):
    return rng.standard_normal(shape)


def _spread(width: int) -> Callable:
    def numbers(rng, shape):
        return rng.standard_normal(shape) * 2.0 ** rng.integers(-width, width + 1, shape)

    return numbers


def _ties(rng, shape):
    """Return powers of two and their neighbours, whose sums lie halfway between two results."""
    return rng.choice([1.0, 1.5, -1.0, 2.0**-6, 2.0**-11, -(2.0**-12), 2.0**-12, 3 * 2.0**-13], shape)


def _cancelling(rng, shape):
    """Return small numbers and some large ones, each with its negative elsewhere in its row."""
    values = rng.standard_normal(shape) * 2.0**-5
    for line in values.reshape(-1, shape[-1]) if len(shape) else ():
        places = rng.permutation(len(line))[: 2 * (len(line) // 8)].reshape(2, -1)
        large = 2.0 ** rng.integers(0, 7, places.shape[1])
        line[places[0]], line[places[1]] = large, -large
    return values


def _sparse(rng, shape):
    return np.where(rng.random(shape) < 0.1, rng.standard_normal(shape) * 2.0 ** rng.integers(-8, 9, shape), 0.0)


def scaled(power: int) -> Callable:
    """Return a function that draws normal numbers times a power of two."""

    def numbers(rng, shape):
        return rng.standard_normal(shape) * 2.0**power

    return numbers


def _special(rng, shape):
    """Return normal numbers with a few infinities, NaN and signed zeros."""
    rare = rng.choice([np.inf, -np.inf, np.nan, -0.0, 0.0], shape)
    return np.where(rng.random(shape) < 0.02, rare, rng.standard_normal(shape))


#: Distributions, drawn in turn.
DRAWN: tuple[Callable, ...] = (
    _normal, _spread(2), _spread(6), _ties, _cancelling, _spread(12), _sparse, scaled(-8), scaled(8), _special,
    scaled(-62), scaled(62), scaled(-70), _cancelling, _ties, _spread(4),
)  # fmt: skip


def trial(arguments: Sequence, place: int, formats: dict[int, str], rng: np.random.Generator, turn: int) -> list:
    """Return the arguments of turn `turn`: the given ones first, then drawn ones; the output at `place` and scalars stay.

    Parameters
    ----------
    arguments : sequence
        Arguments of a launch.
    place : int
        Index of the output, which is not drawn.
    formats : dict of int to str
        Formats of the arrays by their number among the arrays (:func:`operand_formats`).
    rng : Generator
    turn : int
    """
    found, number = [], -1
    for i, argument in enumerate(arguments):
        if not isinstance(argument, np.ndarray):
            found.append(argument)
            continue
        number += 1
        if i == place or turn == 0:
            found.append(argument)
        else:
            found.append(drawn(argument, formats.get(number), rng, DRAWN[(turn - 1) % len(DRAWN)]))
    return found


def drawn(array: np.ndarray, fmt: str | None, rng, style: Callable) -> np.ndarray:
    """Return an array like `array`, drawn by `style` in a format (None: the array's type); integers are shuffled."""
    plain = array.dtype.kind in "fV"
    if plain and fmt in (None, "tf32", "fp32"):
        with np.errstate(all="ignore"):
            return style(rng, array.shape).astype(array.dtype)
    row = None if fmt is None else get_format(fmt)
    if row is None or isinstance(row, IntegerFormat) or row.container.itemsize != array.itemsize:
        return rng.permutation(array.reshape(-1)).reshape(array.shape)
    values = style(rng, array.shape)
    values = values if row.has_nan else np.nan_to_num(values)
    return operand_bits(values, row, "rne", "the input", saturate=True).view(array.dtype)


def operand_formats(recipe: KernelRecipe) -> dict[int, str]:
    """Return the format of each array that a matrix instruction takes, directly or converted."""
    found: dict[int, str] = {}

    def walk(node: Node, fmt: str, seen: set[int]) -> None:
        stack = [(node, fmt)]
        while stack:
            node, fmt = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, Element):
                if fmt:
                    found.setdefault(node.array, fmt)
            elif isinstance(node, Applied):
                m = node.meaning
                source = m.sources[0] if m is not None and m.operation == "convert" else ""
                stack += [(operand, FORMATS.get(source, "")) for operand in node.operands]
            elif isinstance(node, Masked):
                stack += [(node.below, fmt), (node.above, fmt)]
            elif isinstance(node, Step):
                names = [str(f.name) for f in node.row.formats]
                stack += [(x, names[0]) for x in node.left] + [(x, names[1]) for x in node.right] + [(node.addend, "")]

    for form in recipe.forms:
        walk(form.root, "", set())
    return found
