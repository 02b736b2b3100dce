"""Assertions for kernels: the model and its splits pass, and every kind of bug is found and called by its name."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorcore_models as tcm
from mpgemm.testing import assert_bits, assert_gemm_close, faults_of, gemm_tolerance, missed_faults
from mpgemm.testing.case import kernel_engine
from mpgemm.testing.faults import narrow_sums
from tensorcore_models import libraries

pytest_plugins = ["pytester"]
M, K, N = 64, 192, 48
ENGINES = {
    "fp16": "hopper:mma.m16n8k16.f32.f16.f16.f32",
    "bf16": "ampere:mma.m16n8k16.f32.bf16.bf16.f32",
    "e4m3fn": "hopper:wgmma.m64n8k32.f32.e4m3.e4m3",
    "fp32": "ieee",
}


def operands(fmt="fp16", seed=0, shape=(M, K, N)):
    rng = np.random.default_rng(seed)
    m, k, n = shape
    dtype = tcm.get_format(fmt).dtype
    return rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)


def kernel(a, b, out=np.float32, fmt="fp16"):
    engine = ENGINES[fmt] if fmt != "fp32" else "ieee"
    unit = tcm.get_instruction(engine) if ":" in engine else None
    d = unit.gemm(a, b) if unit else (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    return d.astype(out)


@pytest.mark.parametrize("fmt", ENGINES)
@pytest.mark.parametrize("out", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_the_engine_itself_passes(fmt, out):
    a, b = operands(fmt)
    assert_gemm_close(kernel(a, b, out, fmt), a, b, engine=ENGINES[fmt])


def test_devices_and_splits():
    a, b = operands()
    engine = tcm.default_instruction("a100", "fp16")
    assert_gemm_close(engine.gemm(a, b, k_order="split_k:4"), a, b, engine="a100", splits=4)
    one, four = (gemm_tolerance("a100", a, b, splits=s).bound for s in (1, 4))
    assert (four > one).all()


def test_the_addend_in_front_or_behind():
    a, b = operands()
    c = np.random.default_rng(2).standard_normal((M, N)).astype(np.float32)
    engine = tcm.get_instruction(ENGINES["fp16"])
    assert_gemm_close(engine.gemm(a, b, c), a, b, c, engine=engine)
    assert_gemm_close(engine.gemm(a, b) + c, a, b, c, engine=engine)


def test_block_scales():
    x = np.random.default_rng(0).standard_normal((8, 128))
    a, b = tcm.quantize_blocks(x, "mxfp8_e4m3", axis=1), tcm.quantize_blocks(x.T, "mxfp8_e4m3", axis=0)
    engine = tcm.get_instruction("rtx_blackwell:mma.m16n8k32.block32.f32.e4m3.e4m3.f32.ue8m0")
    d = engine.gemm(a.elements, b.elements, scale_a=a.scales, scale_b=b.scales)
    options = {"engine": engine, "scale_a": a.scales, "scale_b": b.scales}
    assert_gemm_close(d, a.elements, b.elements, **options)
    assert "zeros" not in missed_faults(gemm_tolerance(a=a.elements, b=b.elements, **options))
    with pytest.raises(AssertionError, match="every result is twice the exact one"):
        assert_gemm_close(2 * d, a.elements, b.elements, **options)


def without(a, b, start, stop):
    kept = np.ones(a.shape[1], bool)
    kept[start:stop] = False
    return kernel(np.ascontiguousarray(a[:, kept]), np.ascontiguousarray(b[kept]))


def swapped(d):
    out = d.copy()
    out[:16, :16] = d[:16, :16].T
    return out


def fp16_sums(a, b):
    total = np.zeros((a.shape[0], b.shape[1]), np.float16)
    for k in range(a.shape[1]):
        total = (total.astype(np.float64) + np.outer(a[:, k], b[k]).astype(np.float64)).astype(np.float16)
    return total.astype(np.float32)


def one_tile(d, value):
    out = d.copy()
    out[16:32, 8:24] = value
    return out


BUGS = {
    "a lost term: k = 77 is missing": lambda a, b: without(a, b, 77, 78),
    r"lost terms: k 64:128 is missing": lambda a, b: without(a, b, 64, 128),
    r"lost terms: the sum ends at k = 185 of 192": lambda a, b: without(a, b, 185, 192),
    r"a wrong scale: every result is 0.5 \(2\^-1\)": lambda a, b: kernel(a, b) / 2,
    "a wrong scale: every result is -1": lambda a, b: -kernel(a, b),
    "blocks of 16 x 16 are transposed": lambda a, b: swapped(kernel(a, b)),
    "neighbouring blocks of 8 rows are exchanged": lambda a, b: kernel(a, b)[np.arange(M) ^ 8],
    "0 in all wrong elements": lambda a, b: one_tile(kernel(a, b), 0),
    "every wrong result is": lambda a, b: one_tile(kernel(a, b), np.nan),
    "fp16 accumulation": fp16_sums,
    "the operands were rounded to bf16": lambda a, b: kernel(
        a.astype(ml_dtypes.bfloat16).astype(np.float16), b.astype(ml_dtypes.bfloat16).astype(np.float16)
    ),
}


@pytest.mark.sweep(8)
@pytest.mark.parametrize("text", BUGS)
@pytest.mark.parametrize("seed", [0, 1])
def test_bugs_are_called_by_their_names(text, seed):
    a, b = operands(seed=seed)
    with pytest.raises(AssertionError, match=f"looks like {text}") as caught:
        assert_gemm_close(BUGS[text](a, b), a, b, engine=ENGINES["fp16"])
    message = str(caught.value)
    assert message.count("looks like") == 1
    assert "worst: out[" in message and "bound" in message and "cause: the engine's own error here" in message


def test_bugs_of_the_addend_and_of_square_operands():
    a, b = operands()
    c = np.full((M, N), 3.0, np.float32)
    d = kernel(a, b)
    for out, text in ((d, "C is left out"), (d + 2 * c, "C is added twice")):
        with pytest.raises(AssertionError, match=text):
            assert_gemm_close(out, a, b, c, engine="h100")
    a, b = operands(shape=(48, 48, 48))
    with pytest.raises(AssertionError, match="B is read transposed"):
        assert_gemm_close(kernel(a, np.ascontiguousarray(b.T)), a, b, engine="h100")
    with pytest.raises(AssertionError, match="the result is transposed"):
        assert_gemm_close(kernel(a, b).T, a, b, engine="h100")


@pytest.mark.sweep(1)
@pytest.mark.parametrize("shape", [(1, 2048, 256), (256, 2048, 1)])
def test_bugs_in_long_sums_of_one_row_or_column(shape):
    """The bound is wide here: a wrong statement can lie inside of it, but is farther away than the right one."""
    a, b = operands(shape=shape)
    with pytest.raises(AssertionError) as caught:
        assert_gemm_close(without(a, b, 2045, 2048), a, b, engine=ENGINES["fp16"])
    (line,) = [line for line in str(caught.value).splitlines() if "looks like" in line]
    assert "the sum ends at k = 2045 of 2048" in line


def test_operands_that_were_rounded_twice():
    a, b = (x.astype(np.float32) for x in operands("fp32"))
    low = [x.astype(ml_dtypes.bfloat16).astype(np.float32) for x in (a, b)]
    engine = tcm.get_instruction(ENGINES["fp16"])
    with pytest.raises(AssertionError, match="looks like the operands were rounded to bf16"):
        assert_gemm_close(engine.gemm(*low, input_rounding="rne"), a, b, engine=engine, input_rounding="rne")


def test_hoppers_short_fp8_sums_are_recognised():
    a, b = operands("e4m3fn", shape=(32, 1024, 32))
    with pytest.raises(AssertionError, match="13 fraction bits, as Hopper"):
        assert_gemm_close(kernel(a, b, fmt="e4m3fn"), a, b, engine="ieee")


def test_one_unit_in_the_last_place_of_the_bound_matters():
    """The bound is tight enough that half of the elements' smallest products are seen."""
    a, b = operands()
    allowed = gemm_tolerance("h100", a, b)
    assert allowed.vacuity.lost_product_passes == 0
    worst = np.unravel_index(np.argmax(allowed.bound), allowed.bound.shape)
    out = allowed.exact.rounded("fp32").copy()
    out[worst] += np.float32(1.1 * allowed.bound[worst])
    with pytest.raises(AssertionError, match=r"1 of 3072 elements(.|\n)*no known fault: only 1"):
        assert_gemm_close(out, a, b, engine="h100")


@settings(max_examples=60, deadline=None)
@given(
    engine=st.sampled_from([*ENGINES.values(), "turing:mma.m16n8k8.f32.f16.f16.f32", "cdna3:v_mfma_f32_32x32x8_f16", "v100"]),
    splits=st.integers(1, 5), promoted=st.booleans(), spread=st.sampled_from([0, 6, 20]), k=st.integers(1, 150),
    out=st.sampled_from(["fp32", "fp16", "bf16"]), seed=st.integers(0, 99),
)  # fmt: skip
def test_no_order_of_the_engine_ever_fails(engine, splits, promoted, spread, k, out, seed):
    """The bound is certified: whatever the data and the order, the engine's own results pass."""
    rng = np.random.default_rng(seed)
    fmt = tcm.get_instruction(engine).a_format if ":" in engine else {"ieee": "fp32", "v100": "fp16"}[engine]
    dtype = tcm.get_format(fmt).dtype
    limit = min(float(tcm.get_format(fmt).max_finite), 2.0**12)
    a, b = (np.ldexp(rng.standard_normal(s), rng.integers(-spread, 1, s)) for s in ((4, k), (k, 3)))
    a, b = (np.clip(x, -limit, limit).astype(dtype) for x in (a, b))
    unit = kernel_engine(engine, a, b)
    if promoted:
        every = splits * unit.k
        options, chains = {"promote_every": every}, -(-k // every)
    else:
        options, chains = {"k_order": f"split_k:{splits}"}, splits
    d = unit.gemm(a, b, **options).astype(tcm.get_format(out).dtype)
    allowed = gemm_tolerance(engine, a, b, out_format=out, splits=chains)
    assert (np.abs(allowed.exact.error_of(d)) <= allowed.bound).all()


def test_vacuous_tolerances_fail():
    a, b = operands()
    big = (a * np.float16(60000 / 4)).astype(np.float16)
    with pytest.raises(AssertionError, match="3072 of 3072 elements are outside(.|\n)*have no finite bound"):
        assert_gemm_close(np.zeros((M, N), np.float16), big, big[:N].T, engine="h100")
    signs = np.where(np.arange(K) % 2, -1, 1).astype(np.float16)
    flat = np.ones((M, K), np.float16)
    with pytest.raises(AssertionError, match="vacuous"):
        assert_gemm_close(np.zeros((M, N), np.float32), flat, np.repeat(signs[:, None], N, 1), engine="h100")


def test_exact_zeros_infinities_and_nan():
    a, b = operands()
    a[0], a[1, 0] = 0, np.inf
    with np.errstate(invalid="ignore"):
        assert_gemm_close(kernel(a, b), a, b, engine="h100")


def test_bad_input():
    a, b = operands()
    with pytest.raises(ValueError, match="out must have the shape"):
        assert_gemm_close(np.zeros((2, 2), np.float32), a, b, engine="h100")
    with pytest.raises(ValueError, match="not representable in fp16.*input_rounding"):
        assert_gemm_close(kernel(a, b), a.astype(np.float32) * np.float32(1 + 2**-20), b, engine=ENGINES["fp16"])
    with pytest.raises(TypeError, match="must have a floating-point format, int32"):
        assert_gemm_close(np.zeros((M, N), int), a, b, engine="h100")
    with pytest.raises(ValueError, match="splits is 0"):
        gemm_tolerance("h100", a, b, splits=0)
    with pytest.raises(TypeError, match="splits"):
        gemm_tolerance("h100", a, b, splits=1.5)


def test_rounded_inputs():
    a, b = (x.astype(np.float32) for x in operands("fp32"))
    engine = tcm.default_instruction("a100", "tf32")
    assert_gemm_close(engine.gemm(a, b, input_rounding="rna"), a, b, engine=engine, input_rounding="rna")


# -- bits ------------------------------------------------------------------------------------------------------------------
def test_bits_of_engines_and_recipes():
    a, b = operands()
    engine = tcm.get_instruction(ENGINES["fp16"])
    assert_bits(engine.gemm(a, b), a, b, recipe=engine)
    assert_bits(engine.gemm(a, b).astype(np.float16), a, b, recipe="h100")
    split = libraries.cutlass("a100", k=K, split_k=3)
    out = split.gemm_bits(a.view("u2"), b.view("u2"), out_format="fp32").view(np.float32)
    assert_bits(out, a, b, recipe=split)
    with pytest.raises(AssertionError, match=r"these bits are those of CUTLASS.*split_k 3"):
        assert_bits(out, a, b, recipe="a100")


def test_one_wrong_bit_is_found():
    a, b = operands()
    out = kernel(a, b)
    out.view(np.uint32)[5, 7] ^= 1
    with pytest.raises(AssertionError, match=r"1 of 3072 elements have other bits.*\n  first: out\[5, 7\].*0x"):
        assert_bits(out, a, b, recipe=ENGINES["fp16"])
    with pytest.raises(AssertionError, match="none of the other orders"):
        assert_bits(out, a, b, recipe=ENGINES["fp16"])


# -- the plugin --------------------------------------------------------------------------------------------------------------
def test_the_fixture(pytester):
    pytester.makepyfile(
        """
        import numpy as np
        import pytest

        def test_tolerance(gemm_tolerance):
            a = np.eye(16, dtype=np.float16)
            assert gemm_tolerance("h100", a, a, out_format="fp16").atol < 0.01

        def test_vacuous(gemm_tolerance):
            a = np.zeros((4, 16), np.float16)
            gemm_tolerance("h100", a, a.T)
        """
    )
    result = pytester.runpytest("-p", "pytest_mpgemm")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*the tolerance is vacuous: a kernel that writes zeros passes*"])


def test_the_plugin_lists_what_a_tolerance_misses(pytester):
    pytester.makepyfile(
        """
        import numpy as np

        def operands(k):
            rng = np.random.default_rng(8)
            return rng.standard_normal((8, k)).astype(np.float16), rng.standard_normal((k, 8)).astype(np.float16)

        def test_narrow(gemm_tolerance):
            gemm_tolerance("h100", *operands(64))

        def test_wide(gemm_tolerance):
            gemm_tolerance("h100", *operands(64), out_format="e5m2")

        def test_without():
            pass
        """
    )
    result = pytester.runpytest("-p", "pytest_mpgemm")
    result.assert_outcomes(passed=3)
    listed = [line for line in result.outlines if "wgmma" in line or "mma." in line]
    assert len(listed) == 2 and listed[0].endswith("fp32: none of the faults tried")
    assert "test_wide: " in listed[1] and "output rounded twice" in listed[1] and "zeros" not in listed[1]


@pytest.mark.full
@pytest.mark.parametrize(("fmt", "out"), [("fp16", np.float32), ("fp16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_what_a_tolerance_misses_passes_and_what_it_sees_fails(fmt, out):
    a, b = operands(fmt, 5, (48, 256, 40))
    right = kernel(a, b, np.float32, fmt)
    fmt_out = tcm.format_of_dtype(np.dtype(out)).name
    shares = faults_of(gemm_tolerance(ENGINES[fmt], a, b, out_format=fmt_out))
    stale = right.copy()
    stale[:16, :16] += right[:16, 16:32]
    least = np.argmin(np.linalg.norm(a.astype(float), axis=0) * np.linalg.norm(b.astype(float), axis=1))
    lost = right - np.outer(a[:, least].astype(np.float32), b[least].astype(np.float32))
    made = {"zeros": 0 * right, "a stale accumulator in a tile of 16 x 16": stale, "the least single k dropped": lost}
    made["FP16 accumulation"] = narrow_sums("fp16", a.astype(float), b.astype(float))
    made["BF16 accumulation"] = narrow_sums("bf16", a.astype(float), b.astype(float))
    for fault, values in made.items():
        if 0.2 < shares[fault] < 0.8:
            continue
        passes = True
        try:
            assert_gemm_close(values.astype(out), a, b, engine=ENGINES[fmt])
        except AssertionError:
            passes = False
        assert passes == (shares[fault] < 0.5), (fault, shares)


def test_faults_with_an_addend_scales_promotion_and_overflow():
    a, b = operands("fp16", 6, (20, 64, 24))
    c = np.random.default_rng(6).standard_normal((20, 24))
    assert missed_faults(gemm_tolerance("h100", a, b, c, splits=2)) == "none of the faults tried"
    assert missed_faults(gemm_tolerance("h100", a[:, :0], b[:0])) is None
    x, y = operands("fp16", 6, (20, 512, 24))
    x, y = (v.astype(ml_dtypes.float8_e4m3fn) for v in (x, y))
    assert "no sums outside of the unit" in faults_of(gemm_tolerance("h100", x, y, promote_every=128))
    a[:], b[:] = 60000, 60000  # everything overflows in FP16
    assert set(faults_of(gemm_tolerance("h100", a, b, out_format="fp16")).values()) == {0.0}


def test_the_plugin_imports_nothing_heavy():
    code = "import sys, pytest_mpgemm; assert not {'numpy', 'mpgemm', 'tensorcore_models'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
