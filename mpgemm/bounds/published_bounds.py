"""Computes bounds of the literature, for comparison with the bounds that this package derives."""

import math

from tensorcore_models.formats import Format
from tensorcore_models.machine.fp_state import default_fp_state


def gamma(n: float, u: float) -> float:
    """Return gamma_n = n u / (1 - n u), infinite from n u = 1 on."""
    return n * u / (1 - n * u) if n * u < 1 else math.inf


@default_fp_state
def block_fma_bounds(
    n: int, block: int, u_low: float, u_high: float, u_out: float | None = None, probability: float = 0.99
):
    """Return the factors f of two bounds ``|computed - exact| <= f |A||B|`` for a block FMA.

    The bounds are those of Blanchard, Higham, Lopez, Mary and Pranesh (2020). Operands are rounded with unit roundoff `u_low`,
    products are summed with `u_high`, and the sum of each block is rounded with `u_out` if that is larger. The bounds ignore
    alignment, directed rounding, underflow and overflow.

    Parameters
    ----------
    n : int
        Length of the dot products.
    block : int
        Number of products of one block.
    u_low, u_high : float
        Unit roundoffs of the operands and of the sums inside a block.
    u_out : float, optional
        Unit roundoff of the result of a block; by default, or if it is at most `u_high`, this rounding adds no error.
    probability : float
        Probability that all n roundings are within the probabilistic bound.

    Returns
    -------
    dict of str to float
        "deterministic": (1 + u_low)^2 (1 + gamma_n(u_high)) (1 + gamma_(n/block)(u_out)) - 1.
        "probabilistic": the same formula, in which lambda sqrt(n) replaces n and lambda sqrt(n/block) replaces n/block, with
        2 n exp(-lambda^2 / 2) = 1 - probability (Higham and Mary 2019). It assumes independent rounding errors of mean zero,
        which directed rounding does not have, so no test relies on it.
    """
    blocks = -(-n // block)
    coarse = 0.0 if u_out is None or u_out <= u_high else u_out
    spread = math.sqrt(2 * math.log(2 * max(n, 1) / (1 - probability)))

    def total(count: float, block_count: float) -> float:
        return (1 + u_low) ** 2 * (1 + gamma(count, u_high)) * (1 + gamma(block_count, coarse)) - 1

    return {
        "deterministic": total(n, blocks),
        "probabilistic": total(spread * math.sqrt(n), spread * math.sqrt(blocks)),
    }


@default_fp_state
def multiword_bound(n: int, words: int, word: Format, result: Format, theta: float) -> float:
    """Return the bound of Mary and Mikaitis for a product of operands of p words, relative to ||A||_inf ||B||_inf.

    The bound is 2u + nU + 4 n^2 f_min/theta + 4 n^2 F_min/theta^2 with u = 2^-(t p). t and f_min are the precision and the
    smallest normal number of the word format; U and F_min are the unit roundoff and the smallest normal number of the sums.
    Figure 7 of Khattak and Mikaitis (arXiv:2512.07004) shows the bound with u = 2^-t for every p, according to its data files.

    Parameters
    ----------
    n : int
        Length of the dot products.
    words : int
        Number p of words.
    word, result : Format
        Formats of the words and of the sums.
    theta : float
        Upper limit of the elements after rows and columns are scaled (:func:`mpgemm.recovery.word_run.scaling_target`).
    """
    u, big = 2.0 ** -(word.precision * words), result.unit_roundoff
    return 2 * u + n * big + 4 * n**2 * word.min_normal / theta + 4 * n**2 * result.min_normal / theta**2
