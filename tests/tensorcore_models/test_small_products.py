"""Small products and prepared ones: the bits of the long way, what they refuse, settings that change between two calls."""

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models import kernels
from tensorcore_models.formats import IntegerFormat
from tensorcore_models.kernels.generic import generic_bits

HOPPER = tcm.get_instruction("hopper", "mma.m16n8k16.f32.f16.f16.f32")
ENGINES = {
    "fp16 lanes": HOPPER,
    "fp16 result": tcm.get_instruction("hopper", "mma.m16n8k16.f16.f16.f16.f16"),
    "fp8, interleaved": tcm.get_instruction("hopper", "mma.m16n8k32.f32.e4m3.e4m3.f32"),
    "bf16": tcm.get_instruction("hopper", "mma.m16n8k16.f32.bf16.bf16.f32"),
    "tf32": tcm.get_instruction("hopper", "mma.m16n8k8.f32.tf32.tf32.f32"),
    "fp64": tcm.get_instruction("hopper", "mma.m8n8k4.f64.f64.f64.f64"),
    "s8": tcm.get_instruction("hopper", "mma.m16n8k32.s32.s8.s8.s32"),
    "fp4": tcm.MatrixEngine(tcm.FusedDotAdd(16, 25), a_format="e2m1"),
    "converted": tcm.get_instruction("cdna3", "v_mfma_f32_16x16x8_xf32"),
    "wider result": tcm.MatrixEngine(tcm.FusedDotAdd(4, 24), a_format="fp16", c_format="fp16"),
}


@pytest.fixture(autouse=True)
def restored():
    yield
    kernels.set_kernel(None)
    tcm.set_isa(None)


def encodings(engine, m, k, n, rng):
    """Operands with special values among them."""

    def draw(fmt, shape):
        bits = rng.integers(0, 1 << min(fmt.bits, 63), shape, np.uint64).astype(fmt.container)
        if isinstance(fmt, IntegerFormat):
            return bits
        plain = tcm.encode(rng.standard_normal(shape), fmt, "rne", saturate=True).astype(fmt.container)
        return np.where(rng.random(shape) < 0.02, bits, plain)

    a, b, c, _ = engine.formats
    return draw(a, (m, k)), draw(b, (k, n)), draw(c, (m, n))


@pytest.mark.parametrize("name", ENGINES)
def test_bits_are_those_of_the_reference(name):
    engine, rng = ENGINES[name], np.random.default_rng(sum(map(ord, name)))
    for m, k, n in ((16, engine.k, 8), (1, engine.k, 1), (2, 2 * engine.k, 9), (3, engine.k + 1, 2)):
        a, b, c = encodings(engine, m, k, n, rng)
        kernels.set_kernel("reference")
        expected, without = engine.gemm_bits(a, b, c), engine.gemm_bits(a[:1], b[:, :1])
        kernels.set_kernel("auto")
        product = engine.prepared(m, k, n)
        for isa in tcm.available_isas():
            tcm.set_isa(isa)
            for found in (engine.gemm_bits(a, b, c), product.bits(a, b, c)):
                assert found.dtype == expected.dtype and np.array_equal(found, expected)
            assert np.array_equal(engine.prepared(1, k, 1).bits(a[:1], b[:, :1].copy()), without)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64, ml_dtypes.float8_e4m3fn])
def test_values_are_those_of_the_long_way(dtype):
    rng = np.random.default_rng(4)
    engine = {
        np.float16: HOPPER,
        ml_dtypes.bfloat16: ENGINES["bf16"],
        np.float64: ENGINES["fp64"],
        ml_dtypes.float8_e4m3fn: ENGINES["fp8, interleaved"],
    }[dtype]
    a, b = rng.standard_normal((16, engine.k)).astype(dtype), rng.standard_normal((engine.k, 8)).astype(dtype)
    c = rng.standard_normal((16, 8)).astype(engine.formats[2].dtype)
    a[3, 1] = np.nan
    long_way = engine.gemm(a.tolist(), b.tolist(), c.tolist())
    product = engine.prepared(16, engine.k, 8)
    for found in (engine.gemm(a, b, c), product(a, b, c), product(a.tolist(), b, c)):
        assert found.dtype == long_way.dtype
        assert np.array_equal(found, long_way, equal_nan=True)
    assert np.isnan(long_way[3]).all() and not np.isnan(long_way[4]).any()


def test_operands_of_any_layout_give_the_same_bits():
    rng = np.random.default_rng(2)
    a, b, c = encodings(HOPPER, 16, 16, 8, rng)
    expected = HOPPER.mma_bits(a, b, c)
    product = HOPPER.prepared(16, 16, 8)
    apart = np.zeros((32, 32), np.uint16)
    apart[::2, ::2] = a
    shifted = np.frombuffer(b"\0" + a.tobytes(), np.uint8)[1:].view(np.uint16).reshape(16, 16)
    swapped = a.astype(">u2")
    for x in (apart[::2, ::2], np.asfortranarray(a), shifted, swapped, a.view(np.matrix)):
        for found in (HOPPER.mma_bits(x, b, c), product.bits(x, b, c), HOPPER.gemm_bits(x, b, c)):
            assert type(found) is np.ndarray and np.array_equal(found, expected)
    a.flags.writeable = c.flags.writeable = False
    assert np.array_equal(product.bits(a, b, c), expected)


def test_what_is_refused():
    product = HOPPER.prepared(16, 16, 8)
    a, b, c = np.zeros((16, 16), np.float16), np.zeros((16, 8), np.float16), np.zeros((16, 8), np.float32)
    with pytest.raises(ValueError, match=r"prepared for \(16, 16\) and \(16, 8\)"):
        product(a, b[:, :4])
    with pytest.raises(ValueError, match=r"prepared for \(16, 16\) and \(16, 8\)"):
        product.bits(a[:8].view(np.uint16), b.view(np.uint16))
    with pytest.raises(TypeError, match="encodings of fp16 are uint16, got float16"):
        product.bits(a, b)
    with pytest.raises(ValueError, match="not representable in fp16"):
        product(a + np.float32(0.1), b)
    with pytest.raises(ValueError, match=r"c has shape \(8, 8\)"):
        product(a, b, c[:8])
    with pytest.raises(ValueError, match="has no block scales"):
        product.bits(a.view(np.uint16), b.view(np.uint16), scale_a=np.zeros((16, 1), np.uint8))
    with pytest.raises(ValueError, match="high bits"):
        ENGINES["fp4"].prepared(1, 16, 1).bits(np.full((1, 16), 16, np.uint8), np.zeros((16, 1), np.uint8))
    with pytest.raises(ValueError, match="expected sizes of at least 0"):
        HOPPER.prepared(16, -16, 8)
    with pytest.raises(TypeError, match="k must be an integer"):
        HOPPER.prepared(16, 2.0, 8)
    with pytest.raises(TypeError, match="encodings of fp32"):
        HOPPER.mma_bits(a.view(np.uint16), b.view(np.uint16), None)
    hidden = next(i for i in tcm.list_instructions() if not i.published)
    x, y = (np.zeros(s, f.container) for s, f in zip(((1, hidden.k), (hidden.k, 1)), hidden.formats, strict=False))
    with pytest.raises(ValueError, match="not public"):
        hidden.prepared(1, hidden.k, 1).bits(x, y)


def test_sizes_without_elements_and_block_scales():
    assert HOPPER.prepared(0, 16, 8)(np.zeros((0, 16)), np.zeros((16, 8))).shape == (0, 8)
    assert not HOPPER.prepared(2, 0, 3)(np.zeros((2, 0)), np.zeros((0, 3))).any()
    unit = tcm.MatrixEngine(tcm.FusedDotAdd(32, 25), a_format="e4m3fn", scale_format="ue8m0", block_size=32)
    a, b = np.full((2, 32), 0x38, np.uint8), np.full((32, 2), 0x38, np.uint8)
    scales = np.full((2, 1), 128, np.uint8), np.full((1, 2), 127, np.uint8)
    assert (unit.prepared(2, 32, 2).bits(a, b, None, *scales).view(np.float32) == 64).all()


def test_settings_count_when_the_product_runs(monkeypatch):
    """The layer and the variant may change, by call and, where the setting is given back, by environment."""
    a, b, c = encodings(HOPPER, 16, 16, 8, np.random.default_rng(3))
    product, ran = HOPPER.prepared(16, 16, 8), []
    expected = product.bits(a, b, c)
    whole = kernels.dispatch.reference.mma_bits
    monkeypatch.setattr(kernels.dispatch.reference, "mma_bits", lambda *args: ran.append(1) or whole(*args))
    kernels.set_kernel("reference")
    assert np.array_equal(product.bits(a, b, c), expected) and ran == [1]
    monkeypatch.setenv("MPGEMM_KERNEL", "reference")
    monkeypatch.setenv("MPGEMM_ISA", "sse9")
    kernels.set_kernel("auto")
    assert np.array_equal(product.bits(a, b, c), expected) and ran == [1]
    kernels.set_kernel(None)
    assert np.array_equal(product.bits(a, b, c), expected) and ran == [1, 1]
    kernels.set_kernel("auto")
    tcm.set_isa(None)
    with pytest.raises(ValueError, match="environment variable MPGEMM_ISA"):
        product.bits(a, b, c)


def test_an_engine_that_has_multiplied_can_be_copied_and_sent():
    a, b, c = encodings(HOPPER, 16, 16, 8, np.random.default_rng(3))
    expected = HOPPER.mma_bits(a, b, c)
    for engine in (copy.deepcopy(HOPPER), pickle.loads(pickle.dumps(HOPPER))):
        assert engine == HOPPER and np.array_equal(engine.mma_bits(a, b, c), expected)


@pytest.mark.parametrize("name", ["bf16", "fp64", "fp8, interleaved", "mx"])
def test_a_batch_has_the_bits_of_its_products_whatever_shares_it(name):
    """Products that are large enough for a kernel of single ones, which threads share."""
    scaled = {"scale_format": "ue8m0", "block_size": 32}
    engine = tcm.MatrixEngine(tcm.FusedDotAdd(32, 25), a_format="e4m3fn", **scaled) if name == "mx" else ENGINES[name]
    rng = np.random.default_rng(9)
    operands = [np.stack(x) for x in zip(*(encodings(engine, 40, 64, 44, rng) for _ in range(40)), strict=True)]
    if name == "mx":
        operands += [rng.integers(120, 130, shape).astype(np.uint8) for shape in ((40, 40, 2), (40, 2, 44))]
    kernels.set_kernel("generic")
    expected = kernels.batch_bits(engine, *operands)
    kernels.set_kernel("auto")
    for threads in (1, 3):
        tcm.set_num_threads(threads)
        assert np.array_equal(kernels.batch_bits(engine, *operands), expected)
    tcm.set_num_threads(None)


@pytest.mark.parametrize("name", ["fp16 lanes", "bf16", "tf32"])
def test_a_special_anywhere_is_seen(name, isa):
    """An infinity at each place of A and of B, one product at a time and as the last of three."""
    engine = ENGINES[name]
    low = kernels.lowered(engine)
    a, b, c = (
        np.zeros(shape, fmt.container)
        for shape, fmt in zip(((16, engine.k), (engine.k, 8), (16, 8)), engine.formats, strict=False)
    )
    for x, fmt in ((a, engine.formats[0]), (b, engine.formats[1])):
        for place in range(x.size):
            x.flat[place] = fmt.inf_bits
            expected = generic_bits(low, a, b, c)
            assert np.array_equal(engine.mma_bits(a, b, c), expected), place
            three = engine.mma_bits(*(np.stack([y * 0, y * 0, y]) for y in (a, b, c)))
            assert np.array_equal(three[2], expected) and not three[:2].any(), place
            x.flat[place] = 0
