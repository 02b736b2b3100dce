"""Makes pairs of matrices to multiply: draws from distributions, and pairs that ship with the package; both are tables.

Elements are drawn in float64 and rounded once to float32 unless FP64 is asked for. A and B come from two child streams of the
seed, so A does not change with n, nor B with m. Versions of NumPy may change a generator's stream, so the JSON that
`mpgemm evaluate` writes records NumPy's version beside the seed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from types import MappingProxyType

import numpy as np

from tensorcore_models.integers import integer_arguments
from tensorcore_models.machine.fp_state import default_fp_state

Pair = tuple[np.ndarray, np.ndarray]
Generator = np.random.Generator


@dataclass(frozen=True)
class Distribution:
    """`Distribution` is a way to draw A (m x k) and B (k x n)."""

    name: str  #: Name on the command line.
    summary: str  #: Description of an element in one line.
    make: Callable[..., Pair]  #: ``make(a_stream, b_stream, m, k, n, **parameters)`` gives the pair in float64.
    #: Parameters with their defaults; a parameter has the type of its default.
    parameters: Mapping[str, float] = field(default_factory=dict)
    source: str = ""  #: Publication that uses this distribution.
    #: Whether the distribution of rows of A and columns of B does not depend on their number, so that a small pair may stand
    #: for a large one.
    independent: bool = True

    def __post_init__(self):
        if not self.name.isidentifier() or not self.summary:
            raise ValueError(
                f"a distribution has the name {self.name!r} and the summary {self.summary!r}, expected a Python identifier and "
                "a text that is not empty"
            )
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    def complete(self, given: Mapping[str, float]) -> dict[str, float]:
        """Return the defaults updated by the given values, in the defaults' types.

        Raises ValueError for unknown parameters and wrong values.
        """
        values = dict(self.parameters)
        for key, value in given.items():
            if key not in values:
                raise ValueError(
                    f"distribution {self.name!r} has no parameter {key!r}, expected one of: {', '.join(values) or 'none'}"
                )
            kind = type(values[key])
            try:
                values[key] = kind(value)
            except (TypeError, ValueError):
                raise ValueError(f"{self.name}: {key} must be {kind.__name__}, got {value!r}") from None
            if not np.isfinite(values[key]) or values[key] != float(value):
                raise ValueError(f"{self.name}: {key} must be a finite {kind.__name__}, got {value!r}")
        return values


def _independent(draw: Callable[..., np.ndarray]) -> Callable[..., Pair]:
    """Return a function that draws A and B with independent elements of one distribution."""

    def make(a_stream: Generator, b_stream: Generator, m: int, k: int, n: int, **parameters: float) -> Pair:
        return draw(a_stream, (m, k), **parameters), draw(b_stream, (k, n), **parameters)

    return make


def _uniform_symmetric(stream, shape, exponent):
    return np.ldexp(stream.uniform(-1.0, 1.0, shape), exponent)


def _uniform_nonnegative(stream, shape, exponent):
    return np.ldexp(stream.uniform(0.0, 1.0, shape), exponent)


def _normal(stream, shape, mean, deviation):
    return mean + deviation * stream.standard_normal(shape)


def _signs(stream, shape):
    return np.where(stream.random(shape) < 0.5, -1.0, 1.0)


def _log_uniform(stream, shape, low, high):
    _check_range(low, high)
    significand = 1.0 + stream.random(shape)
    return _signs(stream, shape) * np.ldexp(significand, stream.integers(low, high + 1, shape, dtype=np.int32))


def _decades(stream, shape, low, high):
    _check_range(low, high)
    return _signs(stream, shape) * 10.0 ** stream.uniform(low, high, shape)


def _check_range(low, high):
    if low > high:
        raise ValueError(f"low is {low} and high is {high}, expected low <= high")


def _two_ranges(a_low: int, a_high: int, b_low: int, b_high: int) -> Callable[..., Pair]:
    def make(a_stream, b_stream, m, k, n):
        return _log_uniform(a_stream, (m, k), a_low, a_high), _log_uniform(b_stream, (k, n), b_low, b_high)

    return make


def _conditioned(a_stream, b_stream, m, k, n, condition):
    """Return A = U diag(s) V^T with s falling geometrically from 1 to 1/condition, and B uniform in [-1, 1]."""
    if condition < 1:
        raise ValueError(f"condition must be at least 1, got {condition}")
    rank = min(m, k)
    left = np.linalg.qr(a_stream.standard_normal((m, rank)))[0]
    right = np.linalg.qr(a_stream.standard_normal((k, rank)))[0]
    singular = condition ** -(np.arange(rank) / max(rank - 1, 1))
    return (left * singular) @ right.T, _uniform_symmetric(b_stream, (k, n), 0)


def _cancelling(a_stream, b_stream, m, k, n, bits):
    """Return A = [X, -X] P and B = P^T [Y; Y + 2^-bits Z], P a permutation: A B = -2^-bits X Z, but |A||B| is near 2 |X||Y|."""
    if not 0 <= bits <= 20:
        raise ValueError(f"bits must be from 0 to 20 (float32 holds no finer difference), got {bits}")
    half = k // 2
    x = _uniform_symmetric(a_stream, (m, half), 0)
    y, z = _uniform_symmetric(b_stream, (half, n), 0), _uniform_symmetric(b_stream, (half, n), 0)
    x, y = x.astype(np.float32), y.astype(np.float32)  # rounded first, so that the two halves cancel exactly
    order = np.random.default_rng(k).permutation(k)
    a = np.concatenate([x, -x, np.zeros((m, k - 2 * half))], axis=1)[:, order]
    b = np.concatenate([y, y + np.ldexp(z, -bits), np.zeros((k - 2 * half, n))])[order]
    return a, b


def _ill_conditioned(a_stream, b_stream, m, k, n, condition):
    """Return A = [X, -X, sW] P and B = P^T [Y; Y; sV] for a permutation P, so X Y cancels exactly and A B = s^2 W V, W, V >= 0.

    Products of elements of X and Y, and of W and V, have the mean size 1/4, and there are two of the former for each of the
    latter. So s^2 = 2 / (condition - 1) makes |A||B| about condition times |A B|.
    """
    if not 1 <= condition < 1e60:
        raise ValueError(f"condition must be from 1 to below 1e60, got {condition}")
    third = k // 3
    rest = k - 2 * third
    ratio = rest / third if third else 1.0
    scale = np.sqrt(2 / (condition - 1) / ratio) if condition > 1 else 1.0
    cancelling = 1.0 if condition > 1 else 0.0
    x, y = (
        cancelling * _uniform_symmetric(s, shape, 0) for s, shape in ((a_stream, (m, third)), (b_stream, (third, n)))
    )
    x, y = x.astype(np.float32), y.astype(np.float32)  # rounded first, so that the two parts cancel exactly
    w, v = (scale * s.uniform(0, 1, shape) for s, shape in ((a_stream, (m, rest)), (b_stream, (rest, n))))
    order = np.random.default_rng(k).permutation(k)
    return np.concatenate([x, -x, w], axis=1)[:, order], np.concatenate([y, y, v])[order]


_XUE = "Xue et al., arXiv:2507.23387v4, section 6.1 and fig. 8"
_OOTOMO = "Ootomo and Yokota 2022, input types; which range belongs to which of types 2 to 4 is our reading"

DISTRIBUTIONS: dict[str, Distribution] = {
    row.name: row
    for row in (
        Distribution(
            "uniform_symmetric", "uniform in [-2^exponent, 2^exponent]", _independent(_uniform_symmetric),
            {"exponent": 0}, _XUE + "a",
        ),
        Distribution(
            "uniform_nonnegative", "uniform in [0, 2^exponent]", _independent(_uniform_nonnegative), {"exponent": 0},
            _XUE + "b",
        ),
        Distribution(
            "normal", "normal with given mean and deviation", _independent(_normal), {"mean": 0.0, "deviation": 1.0},
        ),
        Distribution(
            "log_uniform", "+-1.f * 2^e, the exponent e uniform in [low, high], the fraction uniform",
            _independent(_log_uniform), {"low": -10, "high": 10},
        ),
        Distribution(
            "decades", "+-10^u, u uniform in [low, high]", _independent(_decades), {"low": -10.0, "high": 10.0},
            "Khattak and Mikaitis, fig. 7 (after Mary and Mikaitis)",
        ),
        Distribution(
            "ootomo_type1", "exponents uniform in [-15, 14], both operands", _two_ranges(-15, 14, -15, 14),
            source="Ootomo and Yokota 2022, input type 1",
        ),
        Distribution(
            "ootomo_type2", "exponents uniform in [-15, 14] (A) and [-100, -35] (B)", _two_ranges(-15, 14, -100, -35),
            source=_OOTOMO,
        ),
        Distribution(
            "ootomo_type3", "exponents uniform in [-35, -15], both operands", _two_ranges(-35, -15, -35, -15),
            source=_OOTOMO,
        ),
        Distribution(
            "ootomo_type4", "exponents uniform in [-100, -35], both operands", _two_ranges(-100, -35, -100, -35),
            source=_OOTOMO,
        ),
        Distribution(
            "conditioned", "A with the given condition number (2-norm), B uniform in [-1, 1]", _conditioned,
            {"condition": 1e6}, independent=False,
        ),
        Distribution(
            "ill_conditioned", "products whose |A||B| is about condition times |A B|", _ill_conditioned,
            {"condition": 1e6}, independent=False,
        ),
        Distribution(
            "cancelling", "products that cancel to about 2^-bits of |A||B|", _cancelling, {"bits": 12},
        ),
    )
}  # fmt: skip


def get_distribution(name: str) -> Distribution:
    """Return the distribution `name`. Raises ValueError, with a list of the known names, if it is unknown."""
    try:
        return DISTRIBUTIONS[name]
    except KeyError:
        raise ValueError(f"unknown distribution {name!r}, expected one of {', '.join(DISTRIBUTIONS)}") from None


@default_fp_state
@integer_arguments("m", "k", "n", "seed")
def generate(name: str, m: int, k: int, n: int, seed: int = 0, *, precision: str = "fp32", **parameters: float) -> Pair:
    """Return a random pair of matrices from a distribution.

    Parameters
    ----------
    name : str
        Name of a row of :data:`DISTRIBUTIONS`.
    m, k, n : int
        Sizes: A is m x k, B is k x n; 0 is allowed.
    seed : int
        Seed; the same seed, sizes and parameters give the same matrices.
    precision : {"fp32", "fp64"}
        Precision of the numbers: "fp32" rounds them to FP32, "fp64" keeps all bits of FP64.
    **parameters
        Parameters of the distribution, which its row of :data:`DISTRIBUTIONS` lists.

    Returns
    -------
    a, b : numpy.ndarray
        Matrices of float32 or float64. Values beyond float32's range become infinite or zero by rounding to nearest.

    Raises
    ------
    ValueError
        If the name, a parameter or the precision is unknown, or a size or the seed is negative.

    Examples
    --------
    >>> a, b = generate("uniform_nonnegative", 2, 3, 4, seed=1, exponent=-3)
    >>> a.shape, b.shape, a.dtype, bool((b >= 0).all() and (b <= 0.125).all())
    ((2, 3), (3, 4), dtype('float32'), True)
    """
    if precision not in ("fp32", "fp64"):
        raise ValueError(f"precision is {precision!r}, expected fp32 or fp64")
    a, b = _draw(name, (m, k, n), seed, parameters, streams=(0, 1))
    return (a, b) if precision == "fp64" else (_as_float32(a), _as_float32(b))


@default_fp_state
@integer_arguments("m", "n", "seed")
def generate_addend(name: str, m: int, n: int, seed: int = 0, **parameters: float) -> np.ndarray:
    """Draw a matrix C to add, from the distribution of A and a stream of its own.

    name, seed, **parameters: See :func:`generate`; C is independent of A and B of the same seed.
    m, n: Sizes of C.
    Returns: Matrix of float32, shape (m, n).
    Raises ValueError as :func:`generate`.
    """
    return _as_float32(_draw(name, (m, n, 0), seed, parameters, streams=(2, 1))[0])


def _draw(name: str, sizes: tuple[int, int, int], seed: int, parameters: Mapping, streams: tuple[int, int]) -> Pair:
    """Draw a pair in float64 from two child streams of the seed."""
    distribution = get_distribution(name)
    values = distribution.complete(parameters)
    if min(*sizes, seed) < 0:
        raise ValueError(f"sizes and seed must not be negative, got {', '.join(map(str, sizes))} and seed {seed}")
    children = np.random.default_rng(seed).spawn(3)
    return distribution.make(*(children[i] for i in streams), *sizes, **values)


def _as_float32(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return x.astype(np.float32)


# -- pairs that ship --------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ShippedPair:
    """`ShippedPair` is a pair of float32 matrices in an .npz file of the package, with its source and licence.

    `tools/make_shipped_matrices.py` made the file.
    """

    name: str
    summary: str
    source: str
    licence: str

    @property
    def path(self):
        """File inside the installed package (a `Traversable`)."""
        return resources.files("mpgemm.inputs") / "data" / f"{self.name}.npz"


SHIPPED: dict[str, ShippedPair] = {
    row.name: row
    for row in (
        ShippedPair(
            "digits",
            "Gram matrix of 1797 standardised images of handwritten digits: A (61 x 1797) is the transpose of B; the "
            "three pixels that never change are left out",
            "E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository "
            "(1998), doi:10.24432/C50P49, the test part, as shipped by scikit-learn (load_digits); standardised here",
            "CC BY 4.0 (UCI Machine Learning Repository)",
        ),
        ShippedPair(
            "diffusion",
            "Finite-difference operator of -div(c grad u) on a 16 x 16 grid, c from 0.01 to 100 (A, 256 x 256, in "
            "units of 1/h^2), times 96 grid functions (B); 98 % of A is zero, the rest runs from 0.012 to 279",
            "Computed for this project by tools/make_shipped_matrices.py",
            "BSD-3-Clause, as the project",
        ),
    )
}


@default_fp_state
def load_shipped(name: str) -> Pair:
    """Return a pair of matrices that the package ships, as two new float32 arrays.

    Raises
    ------
    ValueError
        If the name is unknown; the message lists the known names.

    Examples
    --------
    >>> a, b = load_shipped("diffusion")
    >>> a.shape, b.shape
    ((256, 256), (256, 96))
    """
    try:
        row = SHIPPED[name]
    except KeyError:
        raise ValueError(f"unknown shipped pair {name!r}, expected one of {', '.join(SHIPPED)}") from None
    with row.path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return archive["a"], archive["b"]
