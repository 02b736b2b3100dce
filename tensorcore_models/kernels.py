"""Chooses the kernel that runs an accumulator over matrices of encodings.

Arguments are validated by :mod:`tensorcore_models.engine` before they come here.
"""

import numpy as np

from . import reference


def matrix_bits(engine, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
    """D = A B + C for one pair of matrices of encodings, chained over k.

    Parameters
    ----------
    engine : MatrixEngine
        Accumulator and formats.
    a, b, c : ndarray of unsigned integers
        Shapes (m, k), (k, n), (m, n) in the container types of the formats; k a multiple of the engine's k step.
    scale_a, scale_b : ndarray, optional
        Block scales, shapes (m, k/bs) and (k/bs, n).

    Returns
    -------
    ndarray
        Shape (m, n), the container type of the output format.
    """
    return reference.mma_bits(engine, a, b, c, scale_a, scale_b)


def batch_bits(engine, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
    """D = A B + C for a batch of small matrices of encodings: shapes (batch, m, k), (batch, k, n), (batch, m, n)."""
    return reference.mma_bits(engine, a, b, c, scale_a, scale_b)
