"""Fast kernels against the plain-integer reference, bit for bit: every path, every instruction set, shapes that do not fit."""

import dataclasses

import numpy as np
import pytest
from fast_units import (
    CHAINS,
    NARROW,
    OF_EACH_PATH,
    PAIRWISE,
    PATHS,
    RNE,
    SHAPES,
    WIDE,
    pairwise_slices,
    path_named,
    run,
)
from random_encodings import STYLES
from twins import Unit, assert_same, operands

from tensorcore_models import kernels, reference, set_num_threads
from tensorcore_models.accumulators import (
    FusedDotAdd,
)


@pytest.mark.sweep(69)
@pytest.mark.parametrize(("name", "unit"), PATHS, ids=lambda x: x if isinstance(x, str) else str(x)[17:90])
def test_twins(name, unit, isa):
    rng = np.random.default_rng(1)
    for m, n, k in SHAPES:
        for style in rng.choice(STYLES, 2, replace=False):
            args = operands(rng, unit, m, k, n, str(style))
            assert_same(
                unit, run(name, unit, args), kernels.generic_bits(kernels.lowered(unit), *args), args, str(style)
            )


@pytest.mark.parametrize("unit", NARROW, ids=lambda u: str(u)[17:90])
def test_batches_of_tiles(unit, isa):
    rng = np.random.default_rng(2)
    # Two tiles of at most 8 columns share a vector: odd counts, rows that are no multiple of 4, fewer columns.
    for m, n, k, count in ((16, 8, 16, 9), (3, 20, 37, 4), (1, 1, 1, 3), (7, 8, 32, 6), (6, 5, 20, 4), (16, 16, 16, 2)):
        parts = [operands(rng, unit, m, k, n, str(style)) for style in rng.choice(STYLES, count)]
        a, b, c = (np.stack([part[i] for part in parts]) for i in range(3))
        low, path = kernels.lowered(unit), path_named("lanes of 32 bits")
        got = path.of(low).run_batch(low, a, b, c, None, None)
        assert np.array_equal(got, kernels.generic_batch_bits(low, a, b, c))
        assert np.array_equal(kernels.matrix_bits(unit, a[0], b[0], c[0]), got[0])


@pytest.mark.parametrize(
    ("name", "unit"),
    [(n, u) for n, u in PATHS if n in ("pairwise sums", "exact sums of few products", "chains of multiply-adds")],
    ids=lambda x: x if isinstance(x, str) else str(x)[17:90],
)
def test_values_of_operands_in_slices(name, unit, monkeypatch):
    """Slices of k as short as they can be."""
    monkeypatch.setattr(kernels.common, "_VALUES", 1)
    if name != "chains of multiply-adds":
        pairwise_slices(monkeypatch, path_named(name).of(kernels.lowered(unit)).terms)
    rng = np.random.default_rng(8)
    for style in STYLES:
        args = operands(rng, unit, 5, 37, 9, str(style))
        assert_same(unit, run(name, unit, args), kernels.generic_bits(kernels.lowered(unit), *args), args)


@pytest.mark.parametrize(("name", "unit"), OF_EACH_PATH, ids=lambda x: str(x)[:20])
def test_reference_and_threads(name, unit):
    """Against the plain-integer truth itself, with one and with three threads, strided and read-only operands."""
    rng = np.random.default_rng(3)
    a, b, c, *scales = operands(rng, unit, 70, 40, 66, "normal")
    for x in (a, b, c):
        x.flags.writeable = False
    results = []
    for threads in (1, 3):
        set_num_threads(threads)
        results.append(run(name, unit, (a, b, c, *scales)))
    set_num_threads(None)
    assert np.array_equal(*results)
    strided = np.repeat(a, 2, axis=1)[:, ::2]
    assert np.array_equal(run(name, unit, (strided, b, c, *scales)), results[0])
    part = slice(3, 6)
    assert np.array_equal(results[0][part], reference.mma_bits(unit, a[part], b, c[part], *scales))


def test_scattered_specials(isa):
    """Infinities and NaNs reach the generic kernel, everything else stays in the lanes; the operands are left alone."""
    unit = Unit(FusedDotAdd(8, 24), "fp16", "fp16")
    a, b, c, *_ = operands(np.random.default_rng(4), unit, 80, 48, 90, "normal")
    b = b.copy()
    a[7, 5], a[70, 40], b[9, 3], b[47, 89], c[2, 2], c[3, 3] = 0x7C00, 0xFE01, 0xFC00, 0x7C01, 0x7F800000, 1
    before = [x.copy() for x in (a, b, c)]
    got = kernels.matrix_bits(unit, a, b, c)
    assert np.array_equal(got, kernels.generic_bits(kernels.lowered(unit), a, b, c))
    assert all(np.array_equal(x, y) for x, y in zip(before, (a, b, c), strict=True))


@pytest.mark.parametrize("unit", [WIDE[1], WIDE[8], WIDE[11], WIDE[16]], ids=lambda u: str(u)[17:60])
def test_unlike_rows_and_columns(unit, isa):
    """Rows and columns of subnormals, zeros, infinities and extreme scales among ordinary ones, in one product."""
    rng = np.random.default_rng(6)
    a, b, c, *scales = operands(rng, unit, 23, 64, 70, "normal")
    b = b.copy()
    for place, style in enumerate(("subnormal", "sparse", "specials", "overflow", "bits")):
        x, y, z, *others = operands(rng, unit, 23, 64, 70, style)
        a[3 * place], b[:, 9 * place], c[4 * place] = x[3 * place], y[:, 9 * place], z[4 * place]
        if unit.scale_format is not None:
            scales[0][3 * place], scales[1][:, 9 * place] = others[0][3 * place], others[1][:, 9 * place]
    got = run("lanes of 64 bits", unit, (a, b, c, *scales))
    assert_same(unit, got, kernels.generic_bits(kernels.lowered(unit), a, b, c, *scales), (a, b, c, *scales))


@pytest.mark.parametrize(("name", "unit"), OF_EACH_PATH, ids=lambda x: str(x)[:20])
def test_rounding_of_the_caller_is_left_alone(name, unit, isa):
    one, half_more = np.ones(4), np.full(4, 1.5 * 2.0**-53)
    run(name, unit, operands(np.random.default_rng(7), unit, 5, 37, 33, "normal"))
    assert (one + half_more == 1 + 2.0**-52).all() and (-one - half_more == -1 - 2.0**-52).all()
    assert (np.full(4, 2.0**-1070) * np.full(4, 0.5) == 2.0**-1071).all()  # subnormal numbers are kept


def test_paths_are_chosen():
    assert kernels.kernel_name(NARROW[0]) == "lanes of 32 bits"
    assert kernels.kernel_name(WIDE[6]) == "lanes of 64 bits"
    assert kernels.kernel_name(PAIRWISE[0]) == "pairwise sums"
    assert kernels.kernel_name(CHAINS[0]) == "chains of multiply-adds"
    for rules in (RNE, {"zero_operand": "minus126"}, {"zero_c": "minus126"}):
        accumulator = FusedDotAdd(4, 23, **rules)
        for unit in (NARROW[0], WIDE[0]):
            assert kernels.kernel_name(dataclasses.replace(unit, accumulator=accumulator)).startswith("generic")
