"""Uses sums as counters of small addends: chooses X, -X and y for an engine, a library's recipe or a function on numbers."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..aspects.values import Unreachable, encode_value, factors, power
from ..engines.engine import Engine
from ..explanations.tree import Tree
from ..formats import Format, IntegerFormat
from ..formats.rounding import decode
from ..libraries.recipe import Recipe
from .dots import dot_codes
from .tree_search import ABSENT, MINUS, PLUS, TINY, Counts, Inconsistent, TreeSearch

#: Number of operands of one batch.
BATCH_ELEMENTS = 1 << 22
#: Binades between X and y: more than any unit aligns; a zero may be aligned far above the smallest number.
REACH = 160


def spans(formats: tuple[Format, ...], addend: bool) -> Iterator[tuple[Any, Any]]:
    """Return pairs X and y to try: powers of two that serve as products (and as c), and whose counts the result can show.

    Products of subnormal operands are smaller still, but some units align them by a larger exponent and cut them off among
    themselves, or flush them. Rounding up keeps a part of every y, so that -y must serve, too.
    """
    a, b, c, d = formats
    for subnormal in (False, True):
        high = min(a.emax + b.emax, d.emax - 1, c.emax - 1)
        low = a.quantum_exponent + b.quantum_exponent if subnormal else a.emin + b.emin
        low = max(low, d.quantum_exponent, c.quantum_exponent if addend else low)
        high, low = _reachable(formats, high, -1, addend), _reachable(formats, low, 1, addend)
        middle = (high + low) // 2
        if high - low > REACH:
            high, low = middle + REACH // 2, middle - REACH // 2
        if high - low > 8:
            yield power(high), power(low)
            yield power(high), -power(low)


def _reachable(formats: tuple[Format, ...], exponent: int, step: int, addend: bool) -> int:
    """Return the first exponent at which a power of two is a product, and a number of c."""
    for _ in range(4096):
        try:
            factors(power(exponent), *formats[:2])
            if addend:
                encode_value(power(exponent), formats[2])
            return exponent
        except Unreachable:
            exponent += step
    raise ValueError(
        f"the order of the sum is found with powers of two, but none is a product of numbers of {formats[0].name} and "
        f"{formats[1].name}: take other operand formats"
    )


def _counted(values: np.ndarray, y: float) -> np.ndarray:
    """Return sums as numbers of y, -1 for a sum that is no such number."""
    with np.errstate(all="ignore"):
        counts = np.asarray(values, np.float64) / y
        whole = np.isfinite(counts) & (counts == np.round(counts)) & (counts >= 0) & (counts < 2.0**53)
    return np.where(whole, counts, -1).astype(np.int64)


def _factor_tables(x: Any, y: Any, formats: Sequence[Format]) -> list[np.ndarray]:
    """Return encodings of A and of B whose products have the value of a mask entry: 0, y, X, -X."""
    pairs = [(0, 0), *(factors(value, *formats) for value in (y, x, -x))]
    return [np.array(side, fmt.container) for side, fmt in zip(zip(*pairs, strict=True), formats, strict=True)]


def engine_counts(unit: Engine, n: int, x: Any, y: Any) -> Counts:
    """Return the counts of an engine's dot products of n products and c."""
    c_format, d_format = unit.formats[2:]
    a_table, b_table = _factor_tables(x, y, unit.formats[:2])
    c_table = np.array([0, *(encode_value(v, c_format) for v in (y, x, -x))], c_format.container)
    rows = max(1, BATCH_ELEMENTS // n)

    def few(masks: np.ndarray) -> np.ndarray:
        return dot_codes(unit, a_table[masks[:, :n]], b_table[masks[:, :n]], c_table[masks[:, n]])

    def counts(masks: np.ndarray) -> np.ndarray:
        d = np.concatenate([few(masks[i : i + rows]) for i in range(0, len(masks), rows)])
        return _counted(decode(d.astype(d_format.container), d_format, np.float64), float(y))

    return counts


def recipe_counts(recipe: Recipe, x: Any, y: Any) -> Counts:
    """Return the counts of a library recipe's dot products, which add no c."""
    a_table, b_table = _factor_tables(x, y, recipe.engine.formats[:2])

    def counts(masks: np.ndarray) -> np.ndarray:
        d = [recipe.gemm_bits(a_table[row][None], b_table[row][:, None], out_format="fp32")[0, 0] for row in masks]
        return _counted(np.array(d, np.uint32).view(np.float32), float(y))

    return counts


def function_spans(dtype: np.dtype) -> Iterator[tuple[float, float]]:
    """Return pairs X and y to try with a function: those of its addends' type, then those of fp16, to which it may round or
    split them.
    """
    for info in dict.fromkeys(map(np.finfo, (dtype, np.dtype(np.float16)))):
        y = 1.0 if info.maxexp > 64 else float(info.smallest_subnormal)
        yield from ((2.0 ** (info.maxexp - 2), sign * y) for sign in (1, -1))


def function_counts(function: Callable, dtype: np.dtype, batched: bool, x: float, y: float) -> Counts:
    """Return the counts of a function that adds up numbers."""
    table = np.zeros(4, dtype)
    table[[ABSENT, TINY, PLUS, MINUS]] = 0.0, y, x, -x

    def counts(masks: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            if batched:
                sums = np.asarray(function(table[masks]), np.float64)
            else:
                sums = np.array([float(function(table[row])) for row in masks])
        if sums.shape != (len(masks),):
            raise ValueError(
                f"the function returned shape {sums.shape}, expected one sum for each of {len(masks)} inputs"
            )
        return _counted(sums, y)

    return counts


def _attempts(f: Any, n: int, dtype: Any, batched: bool) -> tuple[int, Iterator[Counts], int]:
    """Return the leaves, the ways to count, and the number up to which the result shows every count."""
    if isinstance(f, Engine):
        if any(isinstance(fmt, IntegerFormat) for fmt in f.formats):
            raise ValueError(
                f"{f.label} multiplies integers, whose sum does not depend on the order: pass a floating-point engine"
            )
        return n + 1, (engine_counts(f, n, x, y) for x, y in spans(f.formats, True)), 1 << f.formats[3].precision
    if isinstance(f, Recipe):
        formats = tuple(f.engine.formats)
        return n, (recipe_counts(f, x, y) for x, y in spans(formats, False)), 1 << 24
    if not callable(f):
        raise TypeError(f"f must be an engine, a recipe or a function of the addends, got {type(f).__name__}")
    kind = np.dtype(dtype)
    if kind.kind != "f":
        raise ValueError(f"dtype must be a floating-point type of numpy, got {kind}")
    digits = np.finfo(kind).nmant + 1
    return n, (function_counts(f, kind, batched, x, y) for x, y in function_spans(kind)), 1 << digits


def summation_tree(
    f: Any,
    n: int,
    *,
    dtype: Any = np.float32,
    batched: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Tree:
    """Return the order in which a unit, a library or a function adds its products or addends.

    Parameters
    ----------
    f : Engine, Recipe or callable
        Unit, library kernel or function whose order is found:

        - an engine adds n products and c, which is leaf n of the tree;
        - a recipe adds n products;
        - a function ``f(x)`` adds the n numbers of x, shape (n,). A dot product with ones is such a function: ``lambda x:
          np.dot(x, ones)``.
    n : int
        Number of products of an engine or recipe, or of addends of a function.
    dtype : dtype
        Type of the numbers that a function takes (float64, float32 or float16).
    batched : bool
        Whether the function takes many sums at once: x of shape (batch, n), results of shape (batch,).
    progress : callable
        Function that is called with the number of leaves placed so far and the number of all leaves.

    Raises
    ------
    ValueError
        If the formats span too few binades for a large addend to absorb small ones, or no tree explains the results, because
        the order depends on the numbers or the function computes no such sum.
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 2:
        raise ValueError(f"n is {n!r}, expected at least 2 addends")
    leaves, attempts, most = _attempts(f, int(n), dtype, batched)
    why = "the formats span too few binades for a large addend to absorb small ones"
    for counts in attempts:
        for chunk in dict.fromkeys((min(leaves, most), 8, 1)):
            try:
                tree = TreeSearch(counts, leaves, progress, chunk).find()
            except Inconsistent as error:
                why = f"no order explains the results ({error})"
                continue
            named = ((n, "c"),) if isinstance(f, Engine) else ()
            return Tree(leaves, tree.operations, named, tree.calls)
    raise ValueError(f"{getattr(f, 'label', getattr(f, '__name__', f))}: the order of the sum cannot be found: {why}")
