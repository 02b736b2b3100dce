"""Tolerances by sampling the exact model of a kernel: how large the error of a whole product is, with a stated confidence.

Each draw is one whole product; its statistic is the largest ratio of an element's error to what is allowed for it. Of n
independent draws the largest is at or above the q-quantile with probability 1 - q^n, whatever its distribution, so with n =
ln(1 - confidence) / ln(q) draws the largest is an upper confidence bound of that quantile (order statistics; no normality and
no independence of the elements of one product is assumed).

Draws are fresh pairs of a distribution, or, for data that are given, random orders of k: a kernel on these very operands makes
always the same errors, what is not known is the order in which it adds.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mpgemm.bounds.bounded_product import BoundedProduct, Data, Measured

#: Rows and columns of a product that is drawn.
SIDE = 32


@dataclass(frozen=True)
class Statistical:
    """A tolerance that whole products stay below with a stated probability.

    Attributes
    ----------
    quantile, confidence : float
        At least this share of whole products stays below, with this confidence.
    draws : int
        Products that were computed.
    population : str
        What was drawn.
    shape : (m, k, n)
        Of each product: larger products have more elements, so larger errors.
    relative : float
        Tolerance over S = |A||B| + |C|.
    rtol, atol : float
        The same as ``|computed - exact| <= atol + rtol |exact|``.
    of_bound : float
        Largest error over its certified bound among all draws: below 1, or the bound is wrong.
    """

    quantile: float
    confidence: float
    draws: int
    population: str
    shape: tuple[int, int, int]
    relative: float
    rtol: float
    atol: float
    of_bound: float


def draws_for(quantile: float, confidence: float) -> int:
    """How many draws make the largest an upper confidence bound of a quantile.

    Raises
    ------
    ValueError
        If one of them is not between 0 and 1, or more than 100000 draws were needed.

    Examples
    --------
    >>> draws_for(0.99, 0.95)
    299
    """
    for name, value in (("quantile", quantile), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ValueError(f"{name} is {value}, expected a number between 0 and 1, as 0.99")
    needed = math.ceil(math.log1p(-confidence) / math.log(quantile))
    if needed > 100_000:
        raise ValueError(f"quantile {quantile} with confidence {confidence} takes {needed} products: ask for less")
    return max(1, needed)


def corner(data: Data, side: int = SIDE) -> Data:
    """At most `side` rows of A and columns of B, evenly spread; the rest of the product is left out."""
    rows, columns = (
        np.unique(np.linspace(0, n - 1, min(n, side)).astype(int)) for n in (data.a.shape[0], data.b.shape[1])
    )
    c = None if data.c is None else data.c[np.ix_(rows, columns)]
    scale_a = None if data.scale_a is None else data.scale_a[rows]
    scale_b = None if data.scale_b is None else data.scale_b[:, columns]
    return Data(data.a[rows], data.b[:, columns], c, scale_a, scale_b)


def orders_of_k(data: Data, block: int, count: int, seed: int = 0) -> Iterator[Data]:
    """The data, then with their k in random orders; blocks of products that share a scale stay together."""
    yield data
    rng, k = np.random.default_rng(seed), data.a.shape[1]
    whole = k // block
    for _ in range(count - 1):
        blocks = rng.permutation(whole)
        order = np.append((blocks[:, None] * block + np.arange(block)).ravel(), np.arange(whole * block, k))
        if data.scale_a is None or data.scale_b is None:
            yield data._replace(a=data.a[:, order], b=data.b[order])
            continue
        blocks = np.append(blocks, np.arange(whole, data.scale_a.shape[1]))
        scales = {"scale_a": data.scale_a[:, blocks], "scale_b": data.scale_b[blocks]}
        yield data._replace(a=data.a[:, order], b=data.b[order], **scales)


@dataclass(frozen=True)
class Sample:
    """Statistics of draws, one for each.

    Attributes
    ----------
    relative : ndarray, shape (draws,)
        Largest error over S.
    lines : ndarray, shape (draws, lines)
        Largest error over each line ``atol + rtol |exact|``.
    bounds : ndarray, shape (draws,)
        Largest bound over the first line.
    of_bound : ndarray, shape (draws,)
        Largest error over its bound.
    """

    relative: np.ndarray
    lines: np.ndarray
    bounds: np.ndarray
    of_bound: np.ndarray


def sample(
    product: BoundedProduct,
    draws: Iterator[Data],
    count: int,
    lines: Sequence[tuple[float, float]],
    progress: Callable[[int, int, str], None] | None = None,
) -> Sample:
    """Measure draws.

    Parameters
    ----------
    product : BoundedProduct
    draws : iterator of Data
    count : int
        How many there are.
    lines : sequence of (rtol, atol)
    progress : callable, optional
        (done, total, label).
    """
    found = []
    for done, data in enumerate(draws, 1):
        measured = product.measure(data)
        allowed = [atol + rtol * np.abs(measured.exact) for rtol, atol in lines]
        found.append(
            (
                largest_ratio(measured.error, measured.sizes),
                [largest_ratio(measured.error, line) for line in allowed],
                largest_ratio(measured.bound, allowed[0]),
                largest_ratio(measured.error, measured.bound),
            )
        )
        if progress is not None:
            progress(done, count, f"products of {product.label}")
    return Sample(*(np.array(column) for column in zip(*found, strict=True)))


def largest_ratio(error: np.ndarray, allowed: np.ndarray) -> float:
    """Largest error over what is allowed: 0/0 is 0, an error of infinity within an infinite allowance is 1."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(error == 0, 0.0, np.where(np.isinf(error) & np.isinf(allowed), 1.0, error / allowed))
    return float(np.max(ratio, initial=0.0))


def tightest_line(measured: Measured) -> tuple[float, float] | None:
    """(rtol, atol) of the line above every bound that is lowest at the mean |exact|; None where a bound is infinite."""
    x, bound = np.abs(measured.exact).ravel(), measured.bound.ravel()
    if not bound.size:
        return 0.0, 0.0
    if not np.isfinite(bound).all():
        return None

    def atol(rtol: float) -> float:
        return float(np.max(bound - rtol * x, initial=0.0))

    mean, low, high = (
        float(x.mean()),
        0.0,
        float(np.max(bound, initial=0.0) / max(float(x.mean()), np.finfo(float).tiny)),
    )
    golden = (math.sqrt(5) - 1) / 2
    high = min(high, 1e300)
    for _ in range(60):  # atol(r) + r mean is convex in r
        left, right = high - golden * (high - low), low + golden * (high - low)
        if atol(left) + left * mean <= atol(right) + right * mean:
            high = right
        else:
            low = left
    rtol = low if atol(low) + low * mean <= atol(0.0) * (1 - 1e-6) else 0.0
    return rtol, atol(rtol)
