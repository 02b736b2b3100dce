"""`mpgemm.jax.dot_general` has the bits of the engine that a named algorithm means, under jit, vmap and grad."""

import ml_dtypes
import numpy as np
import pytest

import mpgemm
import tensorcore_models as tcm

jax = pytest.importorskip("jax", reason="jax is not installed: pip install 'mpgemm[jax]'")
import jax.numpy as jnp  # noqa: E402

from mpgemm.jax import ALGORITHMS, dot_general  # noqa: E402

MATRIX = (((1,), (0,)), ((), ()))


@pytest.fixture(scope="module", autouse=True)
def doubles():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def pair(dtype, shape=(9, 160, 7)):
    rng = np.random.default_rng(0)
    m, k, n = shape
    return rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)


@pytest.mark.parametrize(
    ("name", "dtype", "fmt"),
    [
        ("F16_F16_F32", np.float16, "fp16"), ("BF16_BF16_F32", ml_dtypes.bfloat16, "bf16"),
        ("F64_F64_F64", np.float64, "fp64"), ("F16_F16_F16", np.float16, "fp16"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("jit", [False, True])
def test_named_algorithms_are_instructions(name, dtype, fmt, jit):
    a, b = pair(dtype)
    sums = {"F16_F16_F16": "fp16", "F64_F64_F64": "fp64"}.get(name, "fp32")
    wide = np.float64 if fmt == "fp64" else np.float32

    def product(x, y):
        return dot_general(x, y, MATRIX, name, wide, engine="a100")

    found = (jax.jit(product) if jit else product)(a, b)
    expected = tcm.default_instruction("a100", fmt, sums).gemm(a, b).astype(wide)
    assert found.dtype == wide and np.array_equal(np.asarray(found), expected)
    member = getattr(jax.lax.DotAlgorithmPreset, name)
    assert np.array_equal(np.asarray(dot_general(a, b, MATRIX, member, wide, engine="a100")), expected)
    narrow = dot_general(a, b, MATRIX, name, engine="a100")
    assert narrow.dtype == a.dtype and np.array_equal(np.asarray(narrow), expected.astype(dtype))


def test_fp32_arrays_as_bf16_tf32_and_fp32():
    a, b = pair(np.float32)
    engine = {fmt: tcm.default_instruction("a100", fmt) for fmt in ("bf16", "tf32")}
    low = [x.astype(ml_dtypes.bfloat16) for x in (a, b)]
    assert np.array_equal(dot_general(a, b, MATRIX, "BF16_BF16_F32", engine="a100"), engine["bf16"].gemm(*low))
    found = dot_general(a, b, MATRIX, "TF32_TF32_F32", engine="a100", input_rounding="rna")
    assert np.array_equal(found, engine["tf32"].gemm(a, b, input_rounding="rna"))
    fma = tcm.MatrixEngine(tcm.SequentialFMA(), a_format="fp32")
    assert np.array_equal(dot_general(a, b, MATRIX, "F32_F32_F32", engine="a100"), fma.gemm(a, b))


@pytest.mark.parametrize("name", ["BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9", "TF32_TF32_F32_X3"])
def test_several_products_are_recovery_methods(name):
    a, b = pair(np.float32)
    found = np.asarray(dot_general(a, b, MATRIX, name, engine="a100"))
    assert np.array_equal(found, mpgemm.recovered_gemm(a, b, method=ALGORITHMS[name].method, engine="a100"))
    exact = a.astype(np.float64) @ b
    assert np.abs(found - exact).max() < 1e-3


@pytest.mark.parametrize("fast", [False, True])
def test_fp8_with_and_without_fast_accumulation(fast):
    a, b = pair(ml_dtypes.float8_e4m3fn, (9, 320, 7))
    name = "ANY_F8_ANY_F8_F32" + "_FAST_ACCUM" * fast
    found = dot_general(a, b, MATRIX, name, engine="h100")
    engine = tcm.get_instruction("h100", "wgmma.m64n8k32.f32.e4m3.e4m3")
    assert np.array_equal(found, engine.gemm(a, b, promote_every=None if fast else 128))


def test_dimensions_batches_and_vmap():
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal(s).astype(np.float16) for s in ((3, 8, 2, 5), (5, 4, 3, 8)))
    numbers = (((1, 3), (3, 0)), ((0,), (2,)))
    found = dot_general(x, y, numbers, "F16_F16_F32", np.float32, engine="a100")
    engine = tcm.default_instruction("a100", "fp16")
    for i in range(3):
        a = x[i].transpose(1, 0, 2).reshape(2, 40)
        b = y[:, :, i].transpose(2, 0, 1).reshape(40, 4)
        assert np.array_equal(found[i], engine.gemm(a, b))
    assert found.shape == jax.lax.dot_general(x, y, numbers).shape
    a, b = pair(np.float16)
    mapped = jax.vmap(lambda p: dot_general(p, b, MATRIX, "F16_F16_F32", np.float32, engine="a100"))(
        jnp.stack([a, 2 * a])
    )
    assert np.array_equal(mapped[0], engine.gemm(a, b)) and np.array_equal(mapped[1], engine.gemm(2 * a, b))


def test_gradients_run_on_the_engine():
    a, b = pair(np.float16)
    grad = np.random.default_rng(2).standard_normal((9, 7)).astype(np.float16)
    _, pullback = jax.vjp(lambda x, y: dot_general(x, y, MATRIX, "F16_F16_F32", engine="a100"), a, b)
    into_a, into_b = pullback(jnp.asarray(grad))
    engine = tcm.default_instruction("a100", "fp16")
    assert np.array_equal(into_a, engine.gemm(grad, b.T).astype(np.float16))
    assert np.array_equal(into_b, engine.gemm(a.T, grad).astype(np.float16))


def test_bad_input():
    a, b = pair(np.float32)
    for precision in (None, "HIGHEST", jax.lax.Precision.DEFAULT, "BF16_BF16_BF16"):
        with pytest.raises(ValueError, match="name the algorithm"):
            dot_general(a, b, MATRIX, precision)
    with pytest.raises(ValueError, match=r"F16_F16_F32 takes fp16, got float32 and float32; convert"):
        dot_general(a, b, MATRIX, "F16_F16_F32")
    with pytest.raises(ValueError, match="input_rounding='rna' or 'rz'"):
        dot_general(a, b, MATRIX, "TF32_TF32_F32")
    with pytest.raises(ValueError, match="unknown architecture"):
        dot_general(a, b, MATRIX, "F32_F32_F32", engine="h1000")
    with pytest.raises(TypeError, match="engine is a Instruction"):
        dot_general(a, b, MATRIX, "F32_F32_F32", engine=tcm.default_instruction("a100", "fp16"))
    with pytest.raises(ValueError, match="do not fit dimension_numbers"):
        dot_general(a, a, MATRIX, "F32_F32_F32")


def test_every_preset_is_known_or_refused():
    presets = {row.name for row in jax.lax.DotAlgorithmPreset}
    assert set(ALGORITHMS) <= presets
    assert presets - set(ALGORITHMS) == {
        "DEFAULT", "BF16_BF16_BF16", "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    }  # fmt: skip


def test_gradients_of_fp8_operands_take_cotangents_in_e5m2_and_do_not_overflow_silently():
    a, b = (jnp.asarray(np.full(s, 0.5), jnp.float8_e4m3fn) for s in ((2, 32), (32, 2)))
    matrix = (((1,), (0,)), ((), ()))

    def product(x, y):
        return dot_general(x, y, matrix, "ANY_F8_ANY_F8_F32_FAST_ACCUM")

    _, pull = jax.vjp(product, a, b)
    grad_a, grad_b = pull(jnp.full((2, 2), 200.0, jnp.float32))
    assert (np.asarray(grad_a).astype(np.float32) == 192).all()  # 2 * 0.5 * RN(200) in E5M2
    with pytest.raises(Exception, match="64 of 64 values are beyond the range of e4m3fn"):  # the gradient's type
        jax.block_until_ready(pull(jnp.full((2, 2), 1000.0, jnp.float32)))
    with pytest.raises(Exception, match="the cotangent, rounded to e5m2, overflows"):
        jax.block_until_ready(pull(jnp.full((2, 2), 1e6, jnp.float32)))


def test_forward_mode_is_refused():
    a = jnp.ones((2, 2), jnp.float32)
    with pytest.raises(TypeError, match="jvp|forward"):
        jax.jvp(lambda x: dot_general(x, a, (((1,), (0,)), ((), ())), "F32_F32_F32"), (a,), (a,))
