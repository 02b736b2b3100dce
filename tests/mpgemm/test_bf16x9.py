"""BF16x9 as CUTLASS publishes it: bits against plain loops over the instruction, with its words split in plain integers."""

import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm import UnsuitableEngine, get_method, method_bound, recovered_gemm
from mpgemm.exact.product import exact_gemm
from mpgemm.recovery import arithmetic, bands
from mpgemm.recovery.framework_names import framework_name
from tensorcore_models.engines.description import words_of_engine

UNIT = tcm.get_instruction("blackwell:tcgen05.mma.m64n8k16.f32.bf16.bf16")
BANDS = [[(2, 2)], [(1, 2), (2, 1)], [(0, 2), (1, 1), (2, 0)], [(0, 1), (1, 0)], [(0, 0)]]


def bf16(x: np.float32) -> int:
    """Nearest even, saturating to finite numbers."""
    bits = int(np.float32(x).view(np.uint32))
    if np.isnan(x):
        return 0x7FFF
    if not np.isinf(x):
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        if rounded & 0x7FFF < 0x7F80:
            return rounded
    return bits >> 16 & 0x8000 | 0x7F7F


def words(x: np.float32) -> list[int]:
    found, rest = [], np.float32(x)
    with np.errstate(invalid="ignore"):
        for _ in range(3):
            found.append(bf16(rest))
            rest = np.float32((rest - np.uint32(found[-1] << 16).view(np.float32)) * np.float32(256))
    return found


def twin(a, b, count=5):
    """The kernel, one instruction after the other."""
    (m, k), n = a.shape, b.shape[1]
    x, y = (np.array([[words(v) for v in row] for row in matrix], np.uint16) for matrix in (a, b))
    total = np.zeros((m, n), np.float32)
    for start in range(0, k, 16):
        held = np.zeros((64, 8), np.uint32)
        for number, band in enumerate(BANDS[5 - count :]):
            for place, (i, j) in enumerate(band):
                left, right = np.zeros((64, 16), np.uint16), np.zeros((16, 8), np.uint16)
                left[:m, : min(16, k - start)] = x[:, start : start + 16, i]
                right[: min(16, k - start), :n] = y[start : start + 16, :, j]
                held = UNIT.mma_bits(left, right, held, input_scale=8 if number and not place else 0)
        with np.errstate(over="ignore", invalid="ignore"):
            total = total + held[:m, :n].view(np.float32)
    return total


def operands(kind: str):
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((9, 37)).astype(np.float32), rng.standard_normal((37, 7)).astype(np.float32)
    if kind == "sparse":
        a[rng.random(a.shape) < 0.8] = 0
    elif kind == "tiny":
        a, b = a * np.float32(1e-30), b * np.float32(1e-9)
    elif kind == "subnormal":
        a = a * np.float32(1e-40)
    elif kind == "wide":
        a, b = (np.ldexp(x, rng.integers(-60, 60, x.shape)).astype(np.float32) for x in (a, b))
    elif kind == "huge":
        a = a * np.float32(1e38)
    elif kind == "not finite":
        a[0, 0], a[5, 5], b[3, 3], b[9, 1] = np.inf, 3.4e38, np.nan, -np.inf
    return a, b


@pytest.mark.parametrize("kind", ("normal", "sparse", "tiny", "subnormal", "wide", "huge", "not finite"))
def test_every_path_has_the_bits_of_the_published_kernel(kind, monkeypatch):
    a, b = operands(kind)
    for count in (5, 4, 3) if kind in ("normal", "wide") else (5,):
        expected = twin(a, b, count)
        row = get_method("cutlass_bf16x9", bands=count)
        assert row.passes == {5: 9, 4: 8, 3: 6}[count]
        assert np.array_equal(recovered_gemm(a, b, None, row), expected, equal_nan=True)
        with monkeypatch.context() as changed:
            changed.setattr(arithmetic, "unscaled_words", lambda *given: None)
            assert np.array_equal(recovered_gemm(a, b, None, row), expected, equal_nan=True)


def test_benign_operands_take_the_fast_path_and_others_do_not():
    def taken(kind):
        split = [tcm.split(x, "bf16", 3, 8, overflow="saturate", bits=True) for x in operands(kind)]
        return bands.unscaled_words(UNIT, *split, BANDS, 8) is not None

    assert {kind: taken(kind) for kind in ("normal", "sparse", "tiny", "wide", "huge", "not finite")} == {
        "normal": True, "sparse": True, "tiny": False, "wide": False, "huge": False, "not finite": False,
    }  # fmt: skip


def test_c_is_added_last():
    a, b = operands("normal")
    c = np.random.default_rng(1).standard_normal((9, 7)).astype(np.float32)
    assert np.array_equal(recovered_gemm(a, b, c, "cutlass_bf16x9"), twin(a, b) + c)


def test_it_is_as_accurate_as_fp32_is_stated_to_be():
    """Positive numbers: nothing cancels, so every result has the bits of FP32 but the unit's cuts, 2^-22 of k = 512."""
    rng = np.random.default_rng(5)
    a, b = rng.uniform(0, 1, (8, 512)).astype(np.float32), rng.uniform(0, 1, (512, 8)).astype(np.float32)
    exact = np.asarray(exact_gemm(a, b).rounded("fp64"))
    error = np.abs(recovered_gemm(a, b, None, "cutlass_bf16x9") - exact) / exact
    assert error.max() < 2.0**-20 and (error * exact <= method_bound(a, b, None, "cutlass_bf16x9").total).all()


def test_units_that_scale_nothing_are_refused_and_named():
    a, b = operands("normal")
    with pytest.raises(
        UnsuitableEngine,
        match=r"scales its accumulator input .* bf16x9 runs on it, in an order that this package chose",
    ):
        recovered_gemm(a, b, None, "cutlass_bf16x9", "h100")
    with pytest.raises(ValueError, match=r"bands is 6, expected an integer from 3 to 5"):
        get_method("cutlass_bf16x9", bands=6)


def test_names_of_frameworks_lead_to_it():
    for name in ("bfx9", "CUBLAS_COMPUTE_32F_EMULATED_16BFX9"):
        assert get_method(name).name == "cutlass_bf16x9" and "as CUTLASS publishes it" in framework_name(name).order
    assert get_method("ieee").name == "fp32" and get_method("tf32").name == "tf32"


# -- the scaled accumulator input ----------------------------------------------------------------------------------------
def test_the_accumulator_input_is_scaled_as_its_exponent_is_lowered():
    values = np.float32([1.5, -3.25, 0, -0.0, 2.0**-126, 3 * 2.0**-149, -(2.0**-140), np.inf, np.nan, 3.4e38])
    found = UNIT.scaled_input(values.view(np.uint32), 8).view(np.float32)
    wanted = np.float32(
        [1.5 / 256, -3.25 / 256, 0, -0.0, 2.0**-134, 0, -(2.0**-148), np.inf, np.nan, np.float32(3.4e38) / 256]
    )
    assert np.array_equal(found, wanted, equal_nan=True) and np.array_equal(
        np.signbit(found[:8]), np.signbit(wanted[:8])
    )
    cut = UNIT.scaled_input(np.uint32([0x1FF, 0x801FF]), 8)  # 511 and 524799 times 2^-149: 1.99 and 2049.99 are cut
    assert cut.tolist() == [1, 2049]


def test_mma_adds_to_the_scaled_input():
    rng = np.random.default_rng(2)
    a, b = (tcm.encode(rng.standard_normal(shape), "bf16") for shape in ((64, 16), (16, 8)))
    c = rng.standard_normal((64, 8)).astype(np.float32)
    scaled = UNIT.mma_bits(a, b, c.view(np.uint32), input_scale=15)
    assert np.array_equal(scaled, UNIT.mma_bits(a, b, (c * np.float32(2.0**-15)).view(np.uint32)))
    for instruction, scale, takes in (
        (UNIT, 16, "0 to 15"),
        (tcm.default_instruction("h100", "bf16", path="mma"), 1, "0, because this unit cannot scale c"),
    ):
        with pytest.raises(ValueError, match=f"input_scale is {scale}, expected {takes}"):
            instruction.scaled_input(c.view(np.uint32), scale)
    assert any("multiply c by 2^-s first, for s up to 15" in step for step in words_of_engine(UNIT).steps)
    with_it = {(row.path, row.arch) for row in tcm.list_instructions() if row.largest_input_scale}
    assert with_it == {("tcgen05", "blackwell")}


# -- the split -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scale", (0, 8))
def test_upper_halves_are_the_words_of_the_general_split(scale):
    """Every exponent, ties among the fractions; an element that is not finite takes the general way."""
    rng = np.random.default_rng(6)
    bits = rng.integers(0, 1 << 32, 4000, dtype=np.uint64).astype(np.uint32)
    bits[::3] &= np.uint32(0xFFFF8000)
    x = bits.view(np.float32)
    x = x[np.abs(x) < 2.0**100]
    fast = tcm.split(x, "bf16", 3, scale, bits=True)
    general = tcm.split(np.append(x, np.float32(np.inf)), "bf16", 3, scale, bits=True)
    assert all(np.array_equal(u, v[:-1]) for u, v in zip(fast, general, strict=True))
    assert [words(v) for v in x[:200]] == [[int(w[i]) for w in fast] for i in range(200)] or scale == 0
