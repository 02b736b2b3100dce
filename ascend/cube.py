"""This module computes SGEMM-cube and plain FP16 products bit for bit as the Ascend cube does.

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
    A chip's own (:attr:`ascend.Chip.overflow`) unless asked otherwise. ``saturate`` (910A): conversions and sums beyond the
    format give its largest finite number, NaN becomes 0; infinite and NaN inputs go the same way. ``inf`` (910B): IEEE
    arithmetic; a NaN result is the positive quiet NaN. In both an input beyond 65504 is lost: with ``inf`` the low word of an
    infinite high word is the opposite infinity, so the result is NaN.
"""

from typing import Any, Literal

import numpy as np

from ascend._kernels import cube as cube_kernel
from ascend.blocking import SPLIT_OPERANDS, Blocking
from ascend.chips.chip import Chip
from ascend.chips.files import get_chip
from ascend.numeric.arguments import (
    DEFAULT_STEP_ORDER,
    ORDERS,
    OVERFLOWS,
    Order,
    ScaleExponent,
    StepOrder,
    check_choice,
    checked_matrices,
    fp32_array,
    scale_pair,
)
from ascend.numeric.fp16_products import CubeArithmetic, words_product
from ascend.schedule import build_schedule
from ascend.slices import Overflow
from ascend.term_modes import Mode
from ascend.tile_schedule import TileSchedule
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.machine.instruction_sets import isa_level


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
    step_order: StepOrder = DEFAULT_STEP_ORDER,
    overflow: Overflow | None = None,
    group: int = 16,
    reseed_l0c: bool = False,
    row_scaling: bool = False,
) -> np.ndarray:
    """Return A B (+ C) by SGEMM-cube (Xue et al., arXiv:2507.23387v4), with the bits of the arithmetic in :mod:`ascend.cube`.

    Parameters
    ----------
    a, b : array_like, shapes (m, k) and (k, n)
        FP32 values: float32, narrower types, or wider types whose values FP32 can represent. Any strides; never modified.
    c : array_like, shape (m, n), optional
        FP32 values; the sum of the term A_h B_h of the high words starts from them.
    schedule : TileSchedule, optional
        A result of :func:`ascend.build_schedule`, or a plan's schedule, for these sizes. It sets the terms, their order,
        the operand format and the unit. An option that is not at its default must agree with the schedule. If the schedule
        has one term, the options order, low_low, scale_exponent, group and row_scaling must have their defaults.
    blocking : Blocking, optional
        Block sizes, in place of a schedule. The schedule is then built for `chip`, with the largest N_fused and double buffers.
        Without `schedule` and `blocking` there is one block, and one sum in L0C adds all of k.
    chip : Chip or str
        Chip for a `blocking`, and for the default of `overflow` if there is no `schedule`.
    order : {"termwise", "termwise_inplace", "elementwise"}
        Order in which the terms are added (section 4.4 of Xue et al.): "termwise" sums each term over all of k and then adds
        the sums; "termwise_inplace" adds one term after the other to one C; "elementwise" alternates between the terms along k.
    scale_exponent : int, (int, int) or "auto"
        s_b of eq. 7 of Xue et al. for both matrices; or (s_a, s_b); or "auto", which chooses s_a and s_b from the elements of A
        and of B (:func:`tensorcore_models.formats.split_analysis.automatic_scale_exponent`).
    low_low : bool
        Whether to add the fourth term, A_l B_l.
    step_order : {"sequential", "pairwise", "exact"}
        Sum of the products inside a cube step: rounded after each product, rounded in a binary tree of neighbours, or exact
        and rounded once.
    overflow : {"saturate", "inf"}, optional
        Rule for overflow: "saturate" as on 910A, "inf" as in IEEE 754. The default is the chip's rule
        (:attr:`ascend.Chip.overflow`).
    group : int
        Number of consecutive products of one term in the elementwise order, from 1 to the length of a cube step.
    reseed_l0c : bool
        Whether the sum in L0C starts from C in every k group, the part of k that L0C adds up before C is written. If `schedule`
        is given, the schedule's setting applies.
    row_scaling : bool
        Extension of the published method: multiply each row of A and column of B by a power of two so that its largest finite
        element lies in [2^14, 2^15), and undo the scaling at the end. The method then covers the whole range of FP32. Undoing
        is exact unless the result leaves FP32's normal range, where it is rounded once more or overflows. `c` is added last,
        by RN.

    Returns
    -------
    numpy.ndarray
        float32 (int32 for a schedule of INT8 operands), shape (m, n). k = 0 gives c, or zeros, because no instruction runs.

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers.
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
    arithmetic = CubeArithmetic(
        scale_exponent=scale_exponent, step_order=step_order, overflow=overflow, group=group, row_scaling=row_scaling
    )
    if schedule is None:
        schedule = checked_schedule(a, b, None, blocking, chip, 4 if low_low else 3, order, reseed_l0c)
        arithmetic = arithmetic.on(get_chip(chip))
    elif isinstance(schedule, TileSchedule) and schedule.terms == 1:
        words = {
            "order": order != "termwise", "low_low": low_low, "scale_exponent": scale_exponent != 12,
            "group": group != 16, "row_scaling": row_scaling,
        }  # fmt: skip
        _refuse_words(words, schedule)
        checked_schedule(a, b, schedule, blocking, chip, 1, "termwise", reseed_l0c)
    else:
        terms = 4 if low_low else getattr(schedule, "terms", 3)
        own = getattr(schedule, "order", order) if order == "termwise" else order
        checked_schedule(a, b, schedule, blocking, chip, terms, own, reseed_l0c)
    return schedule.product(a, b, c, arithmetic)


def _refuse_words(given: dict[str, bool], schedule: TileSchedule) -> None:
    """Refuse options of words for a schedule of one term, whose operands are not split."""
    asked = [name for name, value in given.items() if value]
    if asked:
        raise ValueError(
            f"got {', '.join(asked)}, but the schedule has terms=1, so its {schedule.operand} operands are not split into "
            f"words: leave {', '.join(asked)} out"
        )


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
    step_order: StepOrder = DEFAULT_STEP_ORDER,
    overflow: Overflow | None = None,
    reseed_l0c: bool = False,
) -> np.ndarray:
    """Return A B (+ C) of operands rounded to FP16, as one pass of the cube computes it; SGEMM-cube is compared with it.

    Parameters
    ----------
    a, b, c, schedule, blocking, chip, step_order, overflow, reseed_l0c
        See :func:`cube_gemm`. Operands are rounded to FP16 (RN).
    accumulate : {"fp32", "fp16"}
        Format of L0C and of the result. With "fp16" products are not rounded, but each sum is rounded once to FP16, and so
        is c. After each k group (the part of k that L0C adds up) C becomes C + L0C, rounded to FP16.

    Returns
    -------
    numpy.ndarray
        float32 or float16, shape (m, n).

    Raises
    ------
    TypeError, ValueError
        See :func:`cube_gemm`.
    """
    a, b, c = checked_matrices(a, b, c)
    arithmetic = CubeArithmetic(step_order=step_order, overflow=overflow, accumulate=accumulate)
    if schedule is None:
        arithmetic = arithmetic.on(get_chip(chip))
    schedule = checked_schedule(a, b, schedule, blocking, chip, 1, "termwise", reseed_l0c)
    if schedule.sums.lanes or schedule.operand not in SPLIT_OPERANDS:
        raise ValueError(
            f"the schedule multiplies {schedule.operand} ({schedule.kernel} kernel), but cube_hgemm multiplies FP16 on the "
            "cube: use cube_gemm"
        )
    return words_product(schedule.sums, a, b, c, arithmetic.on(schedule.chip))


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
    """Return the sum of the terms in termwise order: RN(hh + RN(RN(lh + hl) / s_f)) with s_f = 2^s_b, every step in FP32.

    If ll is given, RN(RN(lh + hl) + RN(ll / s_f)) takes the place of RN(lh + hl). If the scale exponents s_a and s_b differ,
    lh and hl are first scaled exactly to the larger one, s = max(s_a, s_b), so that the inner part becomes
    RN(lh 2^(s - s_a) + hl 2^(s - s_b)) / 2^s. A division by s_f rounds only if the quotient is subnormal.

    Parameters
    ----------
    hh, hl, lh, ll : array_like
        float32 sums of the terms, all of one shape, from any engine. h and l stand for the high and low words: hl = A_h B_l.
    scale : int or (int, int)
        s_b of eq. 7 of Xue et al. (arXiv:2507.23387v4), or (s_a, s_b).
    overflow : {"inf", "saturate"}
        Result of an overflow: an infinity, or the largest FP32 number.

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
            raise ValueError(f"{name} must have the shape {shape} of hh, got {x.shape}")
    check_choice("overflow", overflow, OVERFLOWS)
    a_exponent, b_exponent = scale_pair(scale)
    out = np.empty(shape, np.float32)
    cube_kernel.reconstruct(
        hh.reshape(-1), lh.reshape(-1), hl.reshape(-1), None if ll is None else ll.reshape(-1), out.reshape(-1),
        a_exponent=a_exponent, b_exponent=b_exponent, clamp=overflow == "saturate", level=isa_level(),
    )  # fmt: skip
    return out


def checked_schedule(
    a: np.ndarray,
    b: np.ndarray,
    schedule: TileSchedule | None,
    blocking: Blocking | None,
    chip: Chip | str,
    terms: int,
    order: Order,
    reseed_l0c: bool,
) -> TileSchedule:
    """Return the caller's schedule after checking it against the matrices and options, or a schedule made from the options."""
    m, k, n = a.shape[0], a.shape[1], b.shape[1]
    if schedule is None:
        if blocking is not None and not isinstance(blocking, Blocking):
            raise TypeError(
                f"blocking must be a Blocking or None, got {type(blocking).__name__}: pass a schedule as schedule="
            )
        mode: Mode = order if terms > 1 else "termwise"
        if blocking is None or 0 in (m, k, n):
            return TileSchedule.unblocked(m=m, k=k, n=n, terms=terms, mode=mode, reseed_l0c=bool(reseed_l0c))
        return build_schedule(m, k, n, chip, blocking, terms=terms, mode=mode, reseed_l0c=bool(reseed_l0c))
    if not isinstance(schedule, TileSchedule):
        raise TypeError(f"schedule must be a TileSchedule or None, got {type(schedule).__name__}")
    if blocking is not None:
        raise ValueError(
            "got both a schedule and a blocking, but a schedule has its own blocks: leave the blocking out"
        )
    if (schedule.m, schedule.k, schedule.n) != (m, k, n):
        raise ValueError(
            f"the schedule is for (m, k, n) = {(schedule.m, schedule.k, schedule.n)}, the matrices have {(m, k, n)}: build "
            "a schedule for their sizes"
        )
    if schedule.terms != terms:
        raise ValueError(
            f"the schedule has {schedule.terms} term(s), but this call computes {terms} (cube_hgemm: 1, low_low=True: 4): "
            f"build a schedule with terms={terms}"
        )
    if terms > 1 and schedule.order != order:
        raise ValueError(
            f"the schedule's mode {schedule.mode!r} does not give order {order!r}: leave out order, or build a schedule "
            "whose mode gives this order"
        )
    return schedule
