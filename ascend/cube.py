"""SGEMM-cube and native FP16 products as the Ascend cube computes them: the schedule's numeric interpreter.

Source: SGEMM-cube (arXiv:2507.23387v4): eq. 7 (split and terms), section 4.4 (orders), Algorithm 1 (blocking).

The split gives ``A = A_h + A_l / 2^s_a`` and ``B = B_h + B_l / 2^s_b`` in FP16 words
(:func:`tensorcore_models.split_fp16`), and the terms are hh = A_h B_h, lh = A_l B_h, hl = A_h B_l and, if asked
for, ll = A_l B_l. RN is rounding to nearest even.

What the cube does with one term
    A product of two FP16 numbers is exact in FP32. Products are taken in steps of 16 along k (the schedule's
    cube step); positions past k take no part. How a step rounds is not published, so it is an option; ``acc``
    is the FP32 sum in L0C:

    - ``sequential`` (default): acc = RN(acc + p) for each product p in k order.
    - ``pairwise``: the products of a step are summed in a binary tree of neighbours, each sum RN;
      acc = RN(acc + tree).
    - ``exact``: acc = RN(acc + the exact sum of the step's products), one rounding for a step.

    Within a k group of the schedule (bk * N_fused long) the sum stays in L0C. The first group's L0C starts from
    c (0 without it), later ones from 0, and the vector unit forms C = RN(C + L0C) between groups. With
    ``reseed_l0c`` every group starts from C, so that the chain runs on. Rows, columns and threads change no
    bit: only k groups, steps and orders do.

Orders
    - ``termwise`` (section 4.4): an FP32 C for each term over all of k, with c in the one of hh; then
      ``RN(hh + RN(RN(lh + hl) / s_f))``. See :func:`reconstruct`.
    - ``termwise_inplace``: Algorithm 1 run for each term into one C: all groups of hh, then of lh, then of hl
      (then of ll); C = RN(C + RN(L0C / s_f)) at each write-back. A re-seeded L0C starts from RN(C s_f), and
      C = RN(L0C / s_f).
    - ``elementwise``: one FP32 sum; each `group` products (at most one cube step) add their hh, then lh / s_f, then
      hl / s_f (then ll / s_f^2), each by the step order. Dividing a word by a power of two is exact here.

Slices of k (split-k)
    Each slice is a product of its own in the order above; c belongs to the first. ``reduce`` adds them in order of k,
    each addition RN. ``atomic`` adds them in the order in which the cores arrive: the product returned here is the one of
    ascending k,
    :func:`ascend.slices.atomic_results` lists them all and :func:`ascend.slices.atomic_spread` bounds how far they differ.

Overflow
    ``saturate`` (910A): conversions and sums beyond the format give its largest finite number, NaN becomes 0;
    infinite and NaN inputs go the same way. ``inf`` (910B): IEEE arithmetic; a NaN result is the positive quiet
    NaN. In both an input beyond 65504 is lost: with ``inf`` the low word of an infinite high word is the
    opposite infinity, so the result is NaN.
"""

from typing import Any, Literal

import numpy as np

from ascend._kernels import cube as cube_kernel
from ascend.blocking import Blocking
from ascend.chips.chip import Chip
from ascend.cube_arguments import (
    ORDERS,
    OVERFLOWS,
    STEP_ORDERS,
    Order,
    ScaleExponent,
    StepOrder,
    check_choice,
    checked_group,
    checked_matrices,
    checked_schedule,
    fp32_array,
    scale_exponents,
    scale_pair,
)
from ascend.row_scaling import scaled, unscaled
from ascend.slices import Overflow, merge_slices
from ascend.tile_schedule import TileSchedule
from tensorcore_models.formats.rounding import round_to
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.machine.instruction_sets import isa_level
from tensorcore_models.machine.threads import threads_for

_FP32_MAX = np.finfo(np.float32).max
_TERM_MASKS = {1: 0b0001, 3: 0b0111, 4: 0b1111}


@default_fp_state
def cube_gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    schedule: TileSchedule | None = None,
    blocking: Blocking | None = None,
    chip: Chip | str = "910A",
    order: Order = "termwise",
    scale_exponent: ScaleExponent = 12,
    low_low: bool = False,
    step_order: StepOrder = "sequential",
    overflow: Overflow = "saturate",
    group: int = 16,
    reseed_l0c: bool = False,
    row_scaling: bool = False,
) -> np.ndarray:
    """A B (+ C) by SGEMM-cube, bit for bit as the module describes it.

    Parameters
    ----------
    a, b : array_like, shapes (m, k) and (k, n)
        FP32 values: float32, narrower types, or wider ones whose values FP32 has. Any strides; never modified.
    c : array_like, shape (m, n), optional
        FP32 values; the sum of hh starts from it.
    schedule : TileSchedule, optional
        What :func:`ascend.build_schedule` built for these sizes; its terms and order must be those asked for.
    blocking : Blocking, optional
        Instead of a schedule: block sizes on `chip` (largest N_fused, double buffers). Neither: one block, all of k
        in one group.
    chip : Chip or str
        What a `blocking` is planned for.
    order : {"termwise", "termwise_inplace", "elementwise"}
        The order of the terms (section 4.4 of the paper).
    scale_exponent : int, (int, int) or "auto"
        s_b of eq. 7 for both matrices, or (s_a, s_b), or chosen for each matrix from its elements
        (:func:`tensorcore_models.formats.split_analysis.automatic_scale_exponent`).
    low_low : bool
        Add the fourth term, too.
    step_order : {"sequential", "pairwise", "exact"}
        Rounding inside a cube step.
    overflow : {"saturate", "inf"}
        As the 910A, or IEEE.
    group : int
        Elementwise order: products of one term before the next term's, from 1 to the cube step.
    reseed_l0c : bool
        Start every k group from C. A schedule brings its own.
    row_scaling : bool
        Beyond the paper: multiply each row of A and column of B by a power of two so that its largest element
        lies in [2^14, 2^15), and undo it at the end. This extends the range to all of FP32. Undoing is exact
        unless the result leaves FP32's normal range: it is then rounded once more to a subnormal, or overflows.
        `c` is added last, by RN. Infinities and NaNs take no part in choosing the power.

    Returns
    -------
    numpy.ndarray
        float32, shape (m, n). k = 0 gives c, or zeros: no instruction runs.

    Raises
    ------
    TypeError
        If an argument is no array of real numbers.
    ValueError
        If shapes do not fit, values are not FP32 numbers, an option is unknown, or a block does not fit the chip.

    Examples
    --------
    >>> import numpy as np
    >>> a = np.float32([[1 / 3, 2 / 3]])
    >>> cube_gemm(a, a.T)[0, 0]
    np.float32(0.55555564)
    """
    a, b, c = checked_matrices(a, b, c)
    check_choice("order", order, ORDERS)
    check_choice("step_order", step_order, STEP_ORDERS)
    check_choice("overflow", overflow, OVERFLOWS)
    terms = 4 if low_low else 3
    schedule = checked_schedule(a, b, schedule, blocking, chip, terms, order, reseed_l0c)
    group = checked_group(group, schedule.cube_step[1])
    if a.shape[1] == 0:
        return _without_products(a, b, c)
    added_last, shifts = None, None
    if row_scaling:
        (a, row_shifts), (b, column_shifts) = scaled(a, axis=1), scaled(b, axis=0)
        added_last, c, shifts = c, None, row_shifts + column_shifts
    exponents = scale_exponents(scale_exponent, a, b, order)
    largest = 0.0 if c is None else float(np.max(np.abs(c), initial=0.0))
    out = _run(
        a,
        b,
        _seed(c, overflow),
        schedule,
        order=order,
        terms=_TERM_MASKS[terms],
        step_order=STEP_ORDERS.index(step_order),
        step=group if order == "elementwise" else schedule.cube_step[1],
        exponents=exponents,
        saturate=overflow == "saturate",
        clamp=overflow == "saturate" and _may_overflow(largest, a.shape[1], exponents),
    )
    if shifts is None:
        return out
    return unscaled(out, shifts, _seed(added_last, overflow), overflow)


@default_fp_state
def cube_hgemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    accumulate: Literal["fp32", "fp16"] = "fp32",
    schedule: TileSchedule | None = None,
    blocking: Blocking | None = None,
    chip: Chip | str = "910A",
    step_order: StepOrder = "sequential",
    overflow: Overflow = "saturate",
    reseed_l0c: bool = False,
) -> np.ndarray:
    """A B (+ C) in one pass of the cube on operands rounded to FP16: what SGEMM-cube improves on.

    Parameters
    ----------
    a, b, c, schedule, blocking, chip, step_order, overflow, reseed_l0c
        As for :func:`cube_gemm`. Operands are rounded to FP16 (RN).
    accumulate : {"fp32", "fp16"}
        Format of L0C and of the result. fp16: every sum of the step order is rounded once to FP16 from its
        exact value (a product is not rounded by itself), c is rounded to FP16, and C = RN16(C + L0C) between k
        groups.

    Returns
    -------
    numpy.ndarray
        float32 or float16, shape (m, n).

    Raises
    ------
    TypeError, ValueError
        As :func:`cube_gemm`.
    """
    a, b, c = checked_matrices(a, b, c)
    check_choice("accumulate", accumulate, ("fp32", "fp16"))
    check_choice("step_order", step_order, STEP_ORDERS)
    check_choice("overflow", overflow, OVERFLOWS)
    half = accumulate == "fp16"
    if half and c is not None:
        nan = 0.0 if overflow == "saturate" else None
        c = round_to(c, "fp16", saturate=overflow == "saturate", nan=nan).astype(np.float32)
    schedule = checked_schedule(a, b, schedule, blocking, chip, 1, "termwise", reseed_l0c)
    if half and len(schedule.k_slices) > 1:
        raise ValueError("slices of k are merged in FP32: accumulate='fp16' needs a schedule without split-k")
    if a.shape[1] == 0:
        out = _without_products(a, b, c)
        return out.astype(np.float16) if half else out
    largest = 0.0 if c is None else float(np.max(np.abs(c), initial=0.0))
    out = _run(
        a,
        b,
        _seed(c, overflow),
        schedule,
        order="termwise",
        terms=_TERM_MASKS[1],
        step_order=STEP_ORDERS.index(step_order),
        step=schedule.cube_step[1],
        exponents=(0, 0),
        saturate=overflow == "saturate",
        clamp=overflow == "saturate" and (half or _may_overflow(largest, a.shape[1], (0, 0))),
        half=half,
    )
    return out.astype(np.float16) if half else out


@default_fp_state
def reconstruct(
    hh: Any,
    hl: Any,
    lh: Any,
    scale: int | tuple[int, int],
    ll: Any = None,
    *,
    overflow: Overflow = "inf",
) -> np.ndarray:
    """The terms put together as in termwise order: RN(hh + RN(RN(lh + hl) / s_f)), every step in FP32.

    With different exponents for A and B the sums are first brought to the larger scale s = max(s_a, s_b), exactly:
    RN(lh 2^(s - s_a) + hl 2^(s - s_b)) / 2^s. With ll: RN(RN(lh + hl) + RN(ll / s_f)) in place of RN(lh + hl).
    Dividing by s_f rounds only where the quotient is subnormal.

    Parameters
    ----------
    hh, hl, lh, ll : array_like
        float32 sums of the terms, one shape; any engine's. hl = A_h B_l, lh = A_l B_h.
    scale : int or (int, int)
        s_b of eq. 7, or (s_a, s_b).
    overflow : {"inf", "saturate"}
        What becomes of results beyond the largest number.

    Returns
    -------
    numpy.ndarray
        float32, the shape of the terms.

    Raises
    ------
    ValueError, TypeError
        If shapes differ, values are not FP32 numbers, or the scale is not one or two integers in [-126, 126].
    """
    hh, lh, hl = fp32_array(hh, "hh"), fp32_array(lh, "lh"), fp32_array(hl, "hl")
    ll = None if ll is None else fp32_array(ll, "ll")
    shape = hh.shape
    for x, name in ((lh, "lh"), (hl, "hl"), (ll, "ll")):
        if x is not None and x.shape != shape:
            raise ValueError(f"{name} has shape {x.shape}, hh has {shape}")
    check_choice("overflow", overflow, OVERFLOWS)
    a_exponent, b_exponent = scale_pair(scale)
    out = np.empty(shape, np.float32)
    cube_kernel.reconstruct(
        hh.reshape(-1),
        lh.reshape(-1),
        hl.reshape(-1),
        None if ll is None else ll.reshape(-1),
        out.reshape(-1),
        a_exponent=a_exponent,
        b_exponent=b_exponent,
        clamp=overflow == "saturate",
        level=isa_level(),
    )
    return out


# ---------------------------------------------------------------- running


def _seed(c: np.ndarray | None, overflow: str) -> np.ndarray | None:
    if c is None or overflow == "inf" or np.isfinite(c).all():
        return c
    return np.nan_to_num(c, nan=0.0, posinf=float(_FP32_MAX), neginf=-float(_FP32_MAX))


def _may_overflow(largest_c: float, k: int, exponents: tuple[int, int]) -> bool:
    """Whether any FP32 number on the way could pass the largest finite one: k products below 2^32, scaled."""
    growth = max(abs(s) for s in (*exponents, sum(exponents), exponents[0] - exponents[1]))
    return not (largest_c + 4.0 * k * 2.0**32) * 2.0**growth < 2.0**126


def _run(a, b, c, schedule, **options) -> np.ndarray:
    """The product of every slice of k, merged in order of k; c is the seed of the first."""
    if len(schedule.k_slices) < 2:
        return _run_slice(a, b, c, schedule, (0, schedule.k), **options)
    seeds = [c] + [None] * (len(schedule.k_slices) - 1)
    partial = [_run_slice(a, b, seed, schedule, s, **options) for seed, s in zip(seeds, schedule.k_slices, strict=True)]
    return merge_slices(np.stack(partial), "saturate" if options["saturate"] else "inf")


def _run_slice(
    a, b, c, schedule, k_slice, *, order, terms, step_order, step, exponents, saturate, clamp, half=False
) -> np.ndarray:
    start, stop = k_slice
    out = np.empty((a.shape[0], b.shape[1]), np.float32)
    if out.size == 0:
        return out
    cube_kernel.run(
        np.ascontiguousarray(a[:, start:stop]),
        np.ascontiguousarray(b[start:stop]),
        c,
        np.array([end - start for _, end in schedule.groups_of(k_slice)], np.int64),
        out,
        order=order,
        terms=terms,
        step_order=step_order,
        step=step,
        a_exponent=exponents[0],
        b_exponent=exponents[1],
        saturate=saturate,
        clamp=clamp,
        half=half,
        reseed=schedule.reseed_l0c,
        level=isa_level(),
        threads=threads_for((stop - start) * out.size),
    )
    return out


def _without_products(a: np.ndarray, b: np.ndarray, c: np.ndarray | None) -> np.ndarray:
    return np.zeros((a.shape[0], b.shape[1]), np.float32) if c is None else c.copy()
