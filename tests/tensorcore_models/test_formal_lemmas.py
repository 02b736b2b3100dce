"""Lemmas on the kernels: fast ones are proved, wrong ones refuted; the transcribed C computes what the kernel does."""

import numpy as np
import pytest
from kernel_proofs import down_lemmas as down
from kernel_proofs import group_lemmas as groups
from kernel_proofs import narrow_lemmas as narrow
from kernel_proofs import wide_lemmas as wide
from kernel_proofs.lemmas import prove
from kernel_proofs.proofs import CASES
from random_encodings import encodings
from solvers import needs_solver

import tensorcore_models as tcm
from tensorcore_models.arithmetic import numbers as n
from tensorcore_models.bitvectors import integers as z
from tensorcore_models.bitvectors import terms as t
from tensorcore_models.formats import FORMATS

FP16, E4M3 = FORMATS["fp16"], FORMATS["e4m3fn"]

FAST = (
    lambda: narrow.product_is_aligned(E4M3, E4M3, 13),
    lambda: narrow.powers_are_in_float32(FORMATS["bf16"]),
    lambda: narrow.powers_are_in_the_lanes(25),
    lambda: narrow.addend_is_aligned(25),
    lambda: narrow.sum_is_exact(FP16, FP16, 16, 25),
    lambda: narrow.wrapped_sum_is_truncated(FP16, FP16, 16, 25),
    lambda: narrow.result_is_truncated(2212495871, 25),
    lambda: narrow.result_is_truncated(937983, 13, 13),
    lambda: down.parts_are_floors((1 << 29) - 1, 7),
    lambda: down.addend_is_floor(24),
    wide.lowest_bit_of_product,
    lambda: wide.words_count_negative_fractions(25),
    lambda: groups.result_is_truncated(35),
    groups.clamped_sum,
)


@needs_solver
@pytest.mark.sweep(3)
@pytest.mark.parametrize("build", FAST, ids=lambda build: build().name)
def test_fast_lemmas(build):
    assert prove(build(), timeout=120).status == "proved"


@pytest.mark.parametrize("fmt", [FP16, E4M3, FORMATS["e5m2"]], ids=lambda fmt: fmt.name)
def test_enumerations(fmt):
    for lemma in (narrow.product_is_exact(fmt, fmt), narrow.exponent_bytes(fmt, fmt)):
        assert prove(lemma).status == "proved"


def test_enumerations_of_groups_and_integers(monkeypatch):
    fp4, scale = FORMATS["e2m1"], FORMATS["ue8m0"]
    assert prove(groups.sums_stay_in_words(fp4, fp4, 16)).status == "proved"
    assert prove(groups.sums_stay_in_words(FORMATS["e2m3"], FORMATS["e2m3"], 16)).status == "refuted"  # pairs saturate
    assert prove(groups.scaled_sums_are_exact(fp4, fp4, scale, 16)).status == "proved"
    assert prove(groups.integer_sums_fit((-128, 127), (0, 255), 64)).status == "proved"
    assert prove(groups.integer_sums_fit((-(1 << 15), 0), (-(1 << 15), 0), 2)).status == "refuted"
    assert prove(groups.words_say_what_takes_part(scale)).status == "proved"
    monkeypatch.setattr(groups, "_FLOORS", (-8000, 900))  # a floor below what is left of a scale of zero
    assert prove(groups.words_say_what_takes_part(scale)).status == "refuted"


@needs_solver
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.kernel}-{c.operands}-{c.result}-{c.terms}-{c.fraction_bits}")
def test_every_lemma(case):
    for lemma in case.lemmas():
        assert prove(lemma, timeout=1800).status == "proved", lemma.name


def test_wider_formats_do_not_fit_the_narrow_lanes():
    assert prove(narrow.product_is_exact(FORMATS["bf16"], FORMATS["bf16"])).status == "refuted"  # exponents
    assert prove(narrow.exponent_bytes(FORMATS["bf16"], FORMATS["bf16"])).status == "refuted"
    # the fault of a window: a zero whose power of two was infinite
    assert prove(narrow.powers_are_in_float32(FORMATS["bf16"], masked=False)).status == "refuted"


@needs_solver
def test_wrong_lemmas_are_refuted(monkeypatch):
    assert prove(narrow.sum_is_exact(FP16, FP16, 32, 25)).status == "refuted"  # 32 products overflow int32
    assert prove(narrow.result_is_truncated((1 << 32) - 1, 25, 22)).status == "proved"
    monkeypatch.setattr(narrow, "LOWEST", -100)  # a zero product's bits plus `up` would be 1 or more
    assert prove(narrow.product_is_aligned(E4M3, E4M3, 13)).status == "refuted"
    monkeypatch.setattr(wide, "_LOWEST_OF_ZERO", 0)  # zeros would be counted
    assert prove(wide.words_count_negative_fractions(25)).status == "refuted"


@needs_solver
def test_a_sum_that_keeps_all_bits_is_refuted(monkeypatch):
    lemma = down.result_is_rounded_once((1 << 29) + (1 << 25) - 1, 24, 7, 31)
    right = down.result
    monkeypatch.setattr(down, "result", lambda high, low, top, f, guard, whole: right(high, low, top, f, guard, 31))
    assert prove(lemma, timeout=120).status == "refuted"


@needs_solver
def test_a_wrong_step_is_refuted(monkeypatch):
    right = narrow.m.times_power
    monkeypatch.setattr(narrow.m, "times_power", lambda x, e, fmt, rounding="rz": right(x, z.plus(e, z.number(1)), fmt))
    assert prove(narrow.addend_is_aligned(13)).status == "refuted"


def constant(x: z.Int) -> int:
    return t.signed(x.term.value, x.width)


@pytest.mark.parametrize(
    "operands, terms, fraction_bits, kept", [("fp16", 16, 25, None), ("fp16", 4, 23, None), ("e4m3fn", 32, 13, 13)]
)
def test_the_transcribed_steps_compute_what_the_kernel_computes(operands, terms, fraction_bits, kept):
    """One fused operation: mpg_narrow_step as the lemmas have it, on constants, against the compiled lanes."""
    spec = tcm.FusedDotAdd(terms=terms, fraction_bits=fraction_bits, output_fraction_bits=kept)
    engine = tcm.MatrixEngine(spec, a_format=operands, b_format=operands)
    fmt, rng, size = FORMATS[operands], np.random.default_rng(1), 64
    a, b = (encodings(rng, fmt, shape, "normal") for shape in ((size, terms), (terms, size)))
    c = encodings(rng, FORMATS["fp32"], (size, size), "clustered")
    d = engine.gemm_bits(a, b, c)
    for i in range(0, size, 4):
        x, y = ([n.decode(fmt, t.constant(int(v), fmt.bits), spec) for v in row] for row in (a[i], b[:, i]))
        products = [n.multiply(p, q) for p, q in zip(x, y, strict=True)]
        bits = t.constant(int(c[i, i]), 32)
        addend = n.decode(FORMATS["fp32"], bits, spec, zero_rule="skip")
        top = n.largest_exponent([*(p._replace(part=t.negation(p.is_zero)) for p in products), addend])
        total = sum(constant(narrow.product_units(p, top, fraction_bits)) for p in products)
        total += constant(narrow.addend_units(bits, top, fraction_bits))
        result = narrow.truncated_result(z.number(total), top, fraction_bits, narrow.keep_of(kept))
        assert result.value == int(d[i, i])
