"""Compares a sample of a product on a device with the exact product and the certified bound of its method."""

from fractions import Fraction

import numpy as np
import torch

from mpgemm.bounds.watching import JudgedProduct, ended_bound, hold, quick_run_bound
from mpgemm.exact.product import ExactResult, exact_gemm
from mpgemm.frameworks.torch_tensors import to_array
from mpgemm.kernels import devices
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.run import prepare

#: Number of rows and columns of a result that are sampled.
SAMPLED_ROWS, SAMPLED_COLUMNS = 4, 64


def verify(
    row: RecoveryMethod, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None, alpha: float, beta: float,
    result: torch.Tensor, unit: str,
) -> None:  # fmt: skip
    """Compare sampled rows and columns of one product of a batch with the method's bound.

    Parameters
    ----------
    row : RecoveryMethod
        Method.
    a, b, c : Tensor, shapes (batch, m, k), (batch, k, n), (batch, m, n)
        Operands.
    alpha, beta : float
        Factors, rounded to the result's format as in the kernel.
    result : Tensor, shape (batch, m, n)
        Result of the kernel.
    unit : str
        Unit whose bound is taken for tensors on the CPU.

    Raises
    ------
    mpgemm.bounds.watching.OutsideBound
        If an element is outside of its bound.
    ValueError
        If no bound is derived for the method on this unit.
    """
    if 0 in (*a.shape, *b.shape):
        return
    target = devices.device_target(a.device)
    engine = unit if target is None or target.unit is None else target.unit
    rng = np.random.default_rng(0)
    index = int(rng.integers(a.shape[0]))
    rows = torch.as_tensor(rng.choice(a.shape[1], min(SAMPLED_ROWS, a.shape[1]), replace=False), device=a.device)
    columns = torch.as_tensor(rng.choice(b.shape[2], min(SAMPLED_COLUMNS, b.shape[2]), replace=False), device=a.device)

    def sample(x: torch.Tensor, name: str) -> np.ndarray:
        return to_array(x.detach().cpu(), name)

    x, y = sample(a[index][rows], "a"), sample(b[index][:, columns], "b")
    z = None if c is None else sample(c[index][rows][:, columns], "c")
    found = sample(result[index][rows][:, columns], "the result")
    plain = (alpha, beta) == (1.0, 1.0)
    run = prepare(x, y, z if plain else None, row, engine)
    bound = quick_run_bound(run)
    if bound is None:
        raise ValueError(f"no bound is derived for {row.name} on {engine}, but verify needs one: leave verify out")
    exact = exact_gemm(run.a, run.b, run.c)
    if plain:
        error = exact.error_of(found)
    else:
        alpha, beta = (float(found.dtype.type(x)) for x in (alpha, beta))
        bound = ended_bound(
            bound, exact.rounded("fp64"), z, alpha, beta, "fp64" if found.dtype == np.float64 else "fp32"
        )
        error = ended_error(found, exact, z, alpha, beta)
    recipe = {"kernel": row.name, "alpha": alpha, "beta": beta}
    hold(JudgedProduct(f"{row.name} on {a.device}", recipe, run.a, run.b, z), found, error, bound)


def ended_error(found: np.ndarray, product: ExactResult, c: np.ndarray | None, alpha: float, beta: float) -> np.ndarray:
    """Return found - (alpha P + beta C), with P in twice the bits of FP64; NaN where a number is not finite."""
    high = product.rounded("fp64")
    low = product.error_of(high)
    added = np.zeros(high.shape) if c is None else np.asarray(c, np.float64)
    error = np.full(high.shape, np.nan)
    if not np.isfinite([alpha, beta]).all():
        return error
    for i, j in np.argwhere(np.isfinite(found) & np.isfinite(high) & np.isfinite(added)).tolist():
        f, x, rest, z = (Fraction(float(values[i, j])) for values in (found, high, low, added))
        error[i, j] = float(f - Fraction(alpha) * (x - rest) - Fraction(beta) * z)
    return error
