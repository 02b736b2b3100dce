"""This module models torch's CUDA kernels on rows (softmax, sums, means, norms) with the order in which threads add.

Results were recorded on an H100 with torch 2.11 for softmax of 64, 128, 256, 300, 512 and 1024, means of 256, sums and norms of
512. Results of other lengths are inferred from the kernels' source (softmax_warp_forward, Reduce.cuh,
vectorized_layer_norm_kernel).
"""

import numpy as np

from ..engines.scaled import fused_multiply_add
from ..machine.fp_state import default_fp_state
from .fp32_lanes import WARP, apply, butterfly, chain, halves
from .recipe import Unknown

#: Lengths of rows whose results were recorded.
RECORDED = {
    "softmax": (64, 128, 256, 300, 512, 1024),
    "mean": (256,),
    "sum": (512,),
    "layer_norm": (512,),
    "rms_norm": (512,),
}
#: Length of the longest row that one warp computes.
LONGEST_SOFTMAX = 1024
#: Number of threads in norms, and number of elements that a thread reads at once.
_THREADS, _VECTOR = 128, 4
#: Number of threads in a block of a reduction, and number of values per thread from which warps share a row.
_BLOCK, _MANY = 512, 256
#: Rows shorter than this are read without vectors.
_SHORT = 128


@default_fp_state
def softmax(x: np.ndarray) -> np.ndarray:
    """Return the softmax of rows in FP32, as computed by softmax_warp_forward.

    Parameters
    ----------
    x : ndarray of float32, shape (..., length)
        Rows.

    Returns
    -------
    ndarray of float32
        Softmax in the shape of `x`.

    Raises
    ------
    Unknown
        If rows are longer than 1024, which another kernel computes.
    """
    x = _rows(x, "softmax")
    length = x.shape[-1]
    if length > LONGEST_SOFTMAX:
        raise Unknown(f"softmax of rows of {length} is not known", field="length", known=[f"up to {LONGEST_SOFTMAX}"])
    lanes = min(WARP, 1 << (length - 1).bit_length())
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        e = apply("expf", x - x.max(-1, keepdims=True))
        padded = np.zeros((*x.shape[:-1], -(-length // lanes) * lanes), np.float32)
        padded[..., :length] = e
        of_lanes = chain(padded.reshape(*x.shape[:-1], -1, lanes).swapaxes(-1, -2))
        return e / butterfly(of_lanes, halves(lanes))[..., None]


@default_fp_state
def sums(x: np.ndarray) -> np.ndarray:
    """Return the sums of rows in FP32, as computed by torch's reduce_kernel.

    In rows of 128 and more, a thread adds vectors of four, then the four elements of the sum from the left. In shorter rows, a
    thread adds single elements into four sums. Lanes then add their sums at halving distances.

    Parameters
    ----------
    x : ndarray of float32, shape (..., length)
        Rows.

    Returns
    -------
    ndarray of float32, shape (...)
        Sums.

    Raises
    ------
    Unknown
        If several warps or blocks share a row, or the length is at least 128 and not a multiple of 4.
    """
    x = _rows(x, "sum")
    length, rows = x.shape[-1], x.size // x.shape[-1]
    vectors = length >= _SHORT
    if vectors and length % _VECTOR:
        raise Unknown(f"sums of rows of {length} are not known", field="length", known=["below 128", "multiples of 4"])
    width = _block_width(length // _VECTOR if vectors else length, rows)
    together = min(_power_below(rows), _BLOCK // width)
    if -(-length // width) >= min(_MANY, 16 * together):
        raise Unknown(
            f"sums of {rows} rows of {length} are not known",
            field="length",
            known=[f"below {min(_MANY, 16 * together) * width}"],
        )
    per = width * _VECTOR
    padded = np.zeros((*x.shape[:-1], -(-length // per) * per), np.float32)
    padded[..., :length] = x
    shape = (width, _VECTOR) if vectors else (_VECTOR, width)
    parts = np.moveaxis(padded.reshape(*x.shape[:-1], -1, *shape), -3, -1)
    parts = chain(parts if vectors else parts.swapaxes(-2, -3))
    return butterfly(chain(parts), halves(width))


def _block_width(vectors: int, rows: int) -> int:
    """Return the number of threads of a block that share a row."""
    wide, high = (_power_below(min(n, _BLOCK)) for n in (vectors, rows))
    height = min(high, _BLOCK // min(wide, WARP))
    return min(wide, _BLOCK // height)


def _power_below(n: int) -> int:
    """Return the largest power of two up to n."""
    return 1 << (n.bit_length() - 1)


@default_fp_state
def means(x: np.ndarray) -> np.ndarray:
    """Return the means of rows in FP32: :func:`sums` times the rounded quotient of the numbers of results and elements."""
    total = sums(x)
    return total * (np.float32(total.size) / np.float32(np.size(x)))


@default_fp_state
def rms_norm(x: np.ndarray, weight: np.ndarray | None = None, eps: float | None = None) -> np.ndarray:
    """Return rows divided by their root mean square in FP32, as computed by vectorized_layer_norm_kernel.

    Parameters
    ----------
    x : ndarray of float32, shape (..., length)
        Rows.
    weight : ndarray of float32, shape (length,), optional
        Factor of the normalised row (inferred from the kernel's source).
    eps : float, optional
        Addend of the mean square, by default 2^-23.

    Raises
    ------
    Unknown
        If the length is not a multiple of 4.
    """
    x = _rows(x, "rms_norm")
    of_threads, _ = _dealt(x, "rms_norm")
    total = np.zeros(of_threads.shape[:-1], np.float32)
    for i in range(of_threads.shape[-1]):
        total = fused_multiply_add(of_threads[..., i], of_threads[..., i], total)
    warps = butterfly(total.reshape(*x.shape[:-1], _THREADS // WARP, WARP), halves(WARP))
    square = butterfly(warps, halves(_THREADS // WARP)) / np.float32(x.shape[-1])
    added = np.float32(2.0**-23 if eps is None else eps)
    found = apply("rsqrtf", square + added)[..., None] * x
    return found if weight is None else weight * found


@default_fp_state
def layer_norm(
    x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, eps: float = 1e-5
) -> np.ndarray:
    """Return rows minus their mean, divided by their standard deviation, in FP32, by Welford's sums.

    The result is that of vectorized_layer_norm_kernel.

    Parameters
    ----------
    x : ndarray of float32, shape (..., length)
        Rows.
    weight, bias : ndarray of float32, shape (length,), optional
        Factor and addend of the normalised row, applied by one fused multiply-add (inferred from the kernel's source).
    eps : float
        Addend of the variance.

    Raises
    ------
    Unknown
        If the length is not a multiple of 4.
    """
    x = _rows(x, "layer_norm")
    of_threads, counts = _dealt(x, "layer_norm")
    mean = np.zeros(of_threads.shape[:-1], np.float32)
    square = np.zeros_like(mean)
    for i in range(of_threads.shape[-1]):
        value, here = of_threads[..., i], i < counts
        delta = value - mean
        moved = fused_multiply_add(delta, np.broadcast_to(np.float32(1) / np.float32(i + 1), delta.shape), mean)
        square = np.where(here, fused_multiply_add(delta, value - moved, square), square)
        mean = np.where(here, moved, mean)
    warps = (*x.shape[:-1], _THREADS // WARP, WARP)
    state = mean.reshape(warps), square.reshape(warps), np.broadcast_to(np.float32(counts), mean.shape).reshape(warps)
    for width in (WARP, _THREADS // WARP):
        for distance in halves(width):
            state = _welford(*(part for s in state for part in (s[..., :distance], s[..., distance : 2 * distance])))
        state = state[0][..., 0], state[1][..., 0], state[2][..., 0]
    mean, square = state[0][..., None], state[1][..., None]
    r = apply("rsqrtf", square / np.float32(x.shape[-1]) + np.float32(eps))
    found = r * (x - mean)
    if weight is None:
        return found if bias is None else found + bias
    weight = np.broadcast_to(weight, x.shape)
    return weight * found if bias is None else fused_multiply_add(weight, found, np.broadcast_to(bias, x.shape))


def _welford(mean_a, mean_b, square_a, square_b, count_a, count_b):
    """Return the join of two partial Welford sums: (mean, sum of squares, count)."""
    count = count_a + count_b
    inverse = np.float32(1) / np.maximum(count, np.float32(1))
    share_a, share_b = count_a * inverse, count_b * inverse
    delta = mean_b - mean_a
    mean = fused_multiply_add(share_a, mean_a, share_b * mean_b)
    square = fused_multiply_add((delta * delta) * count_a, share_b, square_a + square_b)
    return mean, square, count


def _dealt(x: np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows as (..., threads, values), with vectors of 4 dealt to 128 threads in turn, and each thread's count."""
    length = x.shape[-1]
    if length % _VECTOR:
        raise Unknown(f"{what} of rows of {length} is not known", field="length", known=["multiples of 4"])
    per = _THREADS * _VECTOR
    padded = np.zeros((*x.shape[:-1], -(-length // per) * per), np.float32)
    padded[..., :length] = x
    counts = np.bincount(np.arange(length // _VECTOR) % _THREADS, minlength=_THREADS) * _VECTOR
    return np.moveaxis(padded.reshape(*x.shape[:-1], -1, _THREADS, _VECTOR), -2, -3).reshape(
        *x.shape[:-1], _THREADS, -1
    ), counts


def _rows(x: np.ndarray, what: str) -> np.ndarray:
    x = np.asarray(x)
    if x.dtype != np.float32 or not x.ndim or not x.size:
        raise TypeError(f"{what} needs a float32 array of rows that is not empty, got {x.dtype} of shape {x.shape}")
    return x
