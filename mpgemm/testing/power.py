"""Which faults of :mod:`mpgemm.testing.faults` a test with a kernel's certified tolerance does not see, on its operands."""

from dataclasses import replace

import numpy as np

from mpgemm.bounds.bounded_product import Data, EngineProduct, Errors, sizes_of
from mpgemm.bounds.populations import evenly_spread
from mpgemm.testing.case import KernelCase
from mpgemm.testing.faults import SIDE, FaultCase, Limit, faults_seen
from mpgemm.testing.spread import compared, right_kernels
from mpgemm.testing.tolerance_result import in_words
from tensorcore_models.formats import Format, get_format
from tensorcore_models.formats.rounding import round_to
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.machine.threads import one_thread


@default_fp_state
def faults_of(allowed: KernelCase) -> dict[str, float]:
    """The faults that were tried, with the share of products like the test's in which a test with this tolerance sees them.

    They are tried on at most 32 rows and columns of the test's own operands, in one chain over k; what the tails of their
    errors tell of the whole product is said in :mod:`mpgemm.testing.faults`.

    Parameters
    ----------
    allowed : KernelCase

    Returns
    -------
    dict of str to float
        Empty for an empty product, in which no fault shows.
    """
    if 0 in (*allowed.bound.shape, allowed.a.shape[1]):
        return {}
    case, limit = _tried(allowed)
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        return faults_seen([case], {"": limit}, allowed.bound.size)[""]


def missed_faults(allowed: KernelCase) -> str | None:
    """The faults that a test with this tolerance misses, in the words of `mpgemm tolerance`; None for an empty product."""
    found = faults_of(allowed)
    return in_words(found) if found else None


def _tried(allowed: KernelCase) -> tuple[FaultCase, Limit]:
    """Some rows and columns of the right product, and what each of their elements is allowed."""
    rows, columns = evenly_spread(Data(*allowed.operands), SIDE)
    part = np.ix_(rows, columns)
    x, y, c, scaling = allowed.part(rows, columns)
    used = allowed.a[rows], allowed.b[:, columns], c
    data = Data(x, y, None if c is None else round_to(c, allowed.engine.formats[2]), scaling)
    with np.errstate(over="ignore", invalid="ignore"):
        computed = allowed.model(rows, columns)[-1]
        exact = allowed.values[part]
        right = Errors(computed, exact, sizes_of(*used), np.abs(computed - exact))
    line = allowed.statistics
    atol = allowed.bound[part]  # nothing is seen where it is infinite
    if line is not None:
        seen = line.half[part] + np.abs(line.middle - allowed.values)[part]
        atol = np.where(np.isfinite(atol), np.minimum(atol, seen), atol)
    out = get_format(allowed.out_format)
    order = allowed.order
    product = EngineProduct(allowed.engine, reference="rounded", k_order=order.k_order, splits=order.splits)
    outside = allowed.scaling is not None and allowed.scaling.roundings
    if isinstance(out, Format) and out != (get_format("fp32") if outside else allowed.engine.formats[3]):
        product = replace(product, out_format=out)
    if order.promote_every is not None:
        product = replace(product, promote_every=order.promote_every)
    kernels = right_kernels(allowed, rows, columns)

    def together(values: np.ndarray) -> bool:
        return not isinstance(out, Format) or compared(values, kernels, exact, allowed).right

    return FaultCase(product, data, right, used), Limit(atol=atol, together=together)
