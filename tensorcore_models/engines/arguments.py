"""This module reads arguments of `gemm` that are no arrays: factors, and whether the sum over k is one chain."""

import numpy as np


def scalar(x, name: str) -> float:
    """Return `x` as a float; raises TypeError if it is not one real number."""
    if isinstance(x, str | bytes) or np.ndim(x) or not (hasattr(x, "__float__") or hasattr(x, "__index__")):
        raise TypeError(f"{name} must be one real number, got {x!r}")
    return float(x)


def one_chain(k_order, promote_every, promote_rounding) -> bool:
    """Return whether the sum over k is one chain."""
    return promote_every is None and promote_rounding == "rne" and type(k_order) is str and k_order == "sequential"
