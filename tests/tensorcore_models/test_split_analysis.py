"""SGEMM-cube, sections 4.1 and 4.2: eqs. 3 to 6, fig. 2, Rules 1 and 2, and the choice of s_b."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorcore_models as tcm
from tensorcore_models.formats import split_analysis as sa


@pytest.mark.parametrize(
    ("exponent", "gradual", "probability"),
    [(0, True, 0.1249), (-10, False, 0.1249), (-12, False, 0.4999), (-13, False, 0.9999), (-14, False, 1.0)],
)
def test_published_probabilities(exponent, gradual, probability):
    assert round(sa.underflow_probability(exponent, gradual=gradual), 4) == probability


def test_eq_3_is_a_distribution():
    assert sum(sa.residual_probability(n, m) for n in range(-1, 13) for m in ("truncated", "rounded")) == 1.0
    assert sa.residual_probability(13, "rounded") == sa.residual_probability(-2, "truncated") == 0.0
    with pytest.raises(ValueError, match="unknown mode"):
        sa.residual_probability(0, "rne")


@pytest.mark.parametrize("scale", [0, 6, 12])
def test_counts_agree_with_eqs_4_and_5_where_the_high_word_is_normal(scale):
    for exponent in range(-14, 15):
        counts = sa.count_residuals(exponent, scale)
        # a residual of zero, one in 2^13, is counted everywhere; the formula has it up to E + s_b = -1 (9) only
        zero = 2.0**-13
        assert counts.probability("underflow") == max(zero, sa.underflow_probability(exponent, scale))
        gradual = max(zero, sa.underflow_probability(exponent, scale, gradual=True))
        assert counts.probability("underflow_or_gradual") == gradual


@pytest.mark.parametrize(("exponent", "flushed"), [(-10, 0.0625), (-12, 0.25), (-13, 0.5), (0, 0.0)])
def test_rounding_to_nearest_flushes_half_of_the_papers_event(exponent, flushed):
    assert sa.count_residuals(exponent).probability("flushed") == flushed


@pytest.mark.full
@pytest.mark.parametrize(("exponent", "scale"), [(-16, 0), (-13, 0), (-3, 6), (15, 12), (-24, 12), (-30, 3)])
def test_representatives_stand_for_all_fractions(exponent, scale):
    x = (np.arange(1 << 23, dtype=np.uint32) | np.uint32((exponent + 127) << 23)).view(np.float32)
    high, low = tcm.split_fp16(x, scale)
    with np.errstate(invalid="ignore"):
        residual = x - high.astype(np.float32)
    finite = np.isfinite(high)
    counts = sa.count_residuals(exponent, scale)
    size = np.abs(np.where(finite, residual, 1)).astype(np.float64) * 2.0**scale
    assert counts.total == x.size
    assert counts.high_overflow == np.count_nonzero(~finite)
    assert counts.low_overflow == np.count_nonzero(finite & np.isinf(low))
    assert counts.underflow == np.count_nonzero(finite & (size < 2.0**-24))
    assert counts.underflow_or_gradual == np.count_nonzero(finite & (size < 2.0**-14))
    assert counts.flushed == np.count_nonzero(finite & (residual != 0) & (low == 0))
    kept = finite & np.isfinite(low)
    bits = tcm.bits_kept(x[kept], (high[kept], low[kept]), scale)
    retained = sa.bits_retained(exponent, scale)
    assert retained.worst == bits.min()
    assert retained.overflowed == 1 - kept.mean()
    # two summation orders of at most 2^23 numbers below 32
    assert abs(retained.mean - bits.mean()) < 2.0**23 * 2.0**-53 * 32


@pytest.mark.full  # 2 s and more: all fractions of 23 bits
def test_fig_2b_formula_is_the_measured_worst_case():
    for scale in (0, 12):
        for exponent in (-20, *range(-17, 16), 16, 20):
            assert sa.bits_retained_formula(exponent, scale) == sa.bits_retained(exponent, scale).worst


def test_truncated_splits_keep_less():
    # the residual of a truncated split has 13 bits, one more than to nearest, and two of them are cut off
    for exponent in (-5, 0, 10):
        assert sa.bits_retained(exponent, 12, "rz").worst < 21 < sa.bits_retained(exponent, 12).worst == 22


@pytest.mark.full
def test_upper_bound_of_eq_6_overlooks_ties():
    # at E = 15, s_b = 12 a residual of half a unit scales to 2^16; some neighbours round to it
    assert sa.allowed_scale_exponents(-14, 15) == (12, 12)
    assert sa.count_residuals(15, 12).low_overflow > 0
    assert sa.count_residuals(15, 11).low_overflow == 0
    assert sa.count_residuals(14, 12).low_overflow == 0


def test_nothing_is_kept_from_exponent_16_up():
    for scale in (-12, 0, 12):
        assert sa.bits_retained(16, scale).overflowed == 1.0
        assert sa.bits_retained_formula(16, scale) == 0


def test_rules_1_and_2():
    # Rule 1: below 2^-2 the low word must be scaled; Rule 2: 12 at most when large values are present
    assert sa.allowed_scale_exponents(-2, 0)[0] == 0
    assert sa.allowed_scale_exponents(-3, 0)[0] == 1
    assert sa.allowed_scale_exponents(0, 15)[1] == 12
    with pytest.raises(ValueError, match="above max_exponent"):
        sa.allowed_scale_exponents(1, 0)


def test_automatic_choice():
    rng = np.random.default_rng(0)
    x = (rng.uniform(0.5, 2, 500) * rng.choice([-1, 1], 500)).astype(np.float32)
    choice = tcm.automatic_scale_exponent(x)
    assert (choice.scale_exponent, choice.has_solution, choice.losing, choice.bits_lost) == (12, True, 0, 0.0)
    assert choice.lower == -1 and choice.upper == 27 - choice.max_exponent

    small = tcm.automatic_scale_exponent(x * np.float32(2.0**-18))
    assert not small.has_solution and small.scale_exponent == small.upper == 27 + 14 - (small.scale_exponent != 41)
    assert 0 < small.losing <= 500 and 0 < small.bits_lost < 22

    mixed = np.concatenate([x, np.float32([0, np.inf, np.nan, 1e30])])
    report = tcm.automatic_scale_exponent(mixed)
    assert (report.elements, report.overflowing, report.has_solution) == (501, 1, False)
    assert "1 overflow" in str(report)


@given(
    st.lists(st.floats(width=32) | st.builds(math.ldexp, st.sampled_from([1.0, 1 + 2**-11, 1 - 2**-12]), st.integers(-30, 17)),
             max_size=8)
)  # fmt: skip
def test_the_automatic_choice_is_that_of_all_elements(found):
    """Eq. 6 over the exponents of all high words, one less where a residual overflows."""
    x = np.array(found, np.float32)
    report = sa.scale_report(x, 12)
    expected = 12
    if report.lower is not None:
        expected = 12 if report.lower <= 12 <= report.upper else report.upper
        inside = x[np.isfinite(x) & (np.abs(x) < 65520)]
        expected -= int(np.isinf(tcm.split_fp16(inside, expected)[1]).any())
    assert sa.chosen_scale_exponent(x) == expected


def test_automatic_choice_steps_below_a_tie():
    x = np.float32([40000 + 16])  # half a unit of float16 above 40000
    assert np.isinf(tcm.split_fp16(x, 12)[1]).all()
    choice = tcm.automatic_scale_exponent(x)
    assert (choice.upper, choice.scale_exponent) == (12, 11)


@pytest.mark.parametrize("x", [[], [0.0, -0.0], [np.inf, np.nan]])
def test_automatic_choice_without_elements(x):
    choice = tcm.automatic_scale_exponent(np.array(x, np.float32))
    assert (choice.scale_exponent, choice.elements, choice.lower, choice.worst_bits) == (12, 0, None, None)
    assert "no nonzero finite element" in str(choice)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((0, 0, "ru"), "rne and rz"), ((128,), "-126 to 127"), ((0, 501), "beyond every float32")],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        sa.count_residuals(*arguments)
    with pytest.raises(ValueError, match=message):
        sa.bits_retained(*arguments)
