"""Foreign floating-point states change no bit: flush-to-zero, as -ffast-math leaves it behind, and other rounding modes."""

import subprocess
import sys

import numpy as np
import pytest
from foreign_state import MODES, needs_compiler, polluter_library, setter_library

import ascend
import mpgemm
import tensorcore_models as tcm
from tensorcore_models.kernels import set_kernel
from tensorcore_models.machine.instruction_sets import set_isa

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return setter_library(tmp_path_factory.mktemp("foreign"))


def bits(x):
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}").tolist()


def operands(seed=0, m=33, k=48, n=34):
    """Numbers of all sizes, subnormal ones among them, and sums whose last bits depend on the rounding."""
    rng = np.random.default_rng(seed)

    def draw(shape):
        x = rng.standard_normal(shape) * 2.0 ** rng.integers(-140, 3, shape)
        return x.astype(np.float32)

    return draw((m, k)), draw((k, n))


A, B = operands()
WIDE = A.astype(np.float64) * 2.0**-900


def everything():
    a, b, wide = A, B, WIDE
    results = {
        "encode fp16": tcm.encode(a, "fp16"),
        "encode bf16 wide": tcm.encode(wide, "bf16"), "encode fp32": tcm.encode(wide, "fp32"),
        "encode tf32 rz": tcm.encode(a, "tf32", "rz"), "decode": tcm.decode(tcm.encode(a, "bf16"), "bf16"),
    }  # fmt: skip
    words = tcm.split(a, "fp16", 2, scale_exponent=12)
    results |= {f"split {i}": w for i, w in enumerate(words)}
    results["join"] = tcm.join(words, 12)
    half = tcm.split(a, "fp16", 1)[0], tcm.split(b, "fp16", 1)[0]
    names = ("hopper:mma.m16n8k16.f32.f16.f16.f32", "cdna3:v_mfma_f32_16x16x16_f16", "cdna2:v_mfma_f32_16x16x16f16")
    for name in names:
        results[name] = tcm.get_instruction(name).gemm(*half)
    results["promoted rd"] = tcm.get_instruction(names[0]).gemm(*half, promote_every=16, promote_rounding="rd")
    results["alpha"] = tcm.get_instruction(names[0]).gemm(*half, alpha=1 / 3)
    fp32 = tcm.MatrixEngine(tcm.SequentialFMA(), a_format="fp32", d_format="fp32")
    results["fma"] = fp32.gemm(a, b)
    custom = tcm.MatrixEngine(tcm.FusedDotAdd(terms=8, fraction_bits=40, output_rounding="rne"), a_format="fp32")
    results["custom"] = custom.gemm(a, b)
    results["cube"] = ascend.cube_gemm(a, b)
    results["hgemm"] = ascend.cube_hgemm(a, b)
    exact = mpgemm.exact_gemm(a, b)
    for fmt in ("fp32", "fp64", "bf16"):
        results[f"exact {fmt}"] = exact.rounded(fmt)
    results["error"] = mpgemm.exact_gemm(wide, b).error_of(np.zeros((33, 34)))
    results["report"] = np.array([mpgemm.errors(results["cube"], a, b).relative_frobenius])
    for method in ("ootomo", "ozaki_int8", "markidis"):
        results[method] = mpgemm.recovered_gemm(a, b, method=method)
    return {key: bits(np.asarray(value)) for key, value in results.items()}


@pytest.fixture(scope="module")
def expected():
    return everything()


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_foreign_state_changes_nothing_and_comes_back(library, mode, expected):
    assert not library.is_foreign()
    library.foreign(mode)
    try:
        found, still = everything(), library.is_foreign()
    finally:
        library.foreign(0)
    assert still, "the caller's state was not restored"
    assert [key for key in expected if found[key] != expected[key]] == []


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
@pytest.mark.parametrize("mode", [2, 4])
def test_every_kernel_in_a_foreign_state(library, mode, isa):
    a, b = operands(3, 8, 32, 64)
    engine = tcm.MatrixEngine(tcm.FusedDotRoundDownAdd(), a_format="bf16")
    x, y = tcm.encode(a, "bf16"), tcm.encode(b, "bf16")
    wanted = engine.gemm_bits(x, y)
    library.foreign(mode)
    try:
        set_isa(isa)
        found = [engine.gemm_bits(x, y)]
        set_kernel("generic")
        found.append(engine.gemm_bits(x, y))
    except ValueError as error:
        pytest.skip(str(error))
    finally:
        library.foreign(0)
        set_isa(None)
        set_kernel(None)
    for d in found:
        assert d.tolist() == wanted.tolist()


def test_library_built_with_fast_math(tmp_path):
    """-ffast-math links start-up code that sets flush-to-zero in the process that loads the library."""
    (tmp_path / "fast.c").write_text("int nothing(void) { return 0; }\n")
    built = subprocess.run(["cc", "-ffast-math", "-shared", "-fPIC", tmp_path / "fast.c", "-o", tmp_path / "fast.so"])
    if built.returncode:
        pytest.skip("cc does not take -ffast-math")
    code = f"""
import ctypes
ctypes.CDLL({str(tmp_path / "fast.so")!r})
import numpy as np, tensorcore_models as tcm, mpgemm
x = np.frombuffer(np.uint32([1, 0x7FFFFF, 0x80000003]).tobytes(), np.float32)
assert tcm.encode(x, "fp32").tolist() == [1, 0x7FFFFF, 0x80000003]
assert tcm.encode(x, "bf16").tolist() == [0, 0x80, 0x8000], tcm.encode(x, "bf16")
e = mpgemm.exact_gemm(x[None], np.ones((3, 1), np.float32)).rounded("fp32")
assert e.view(np.uint32).tolist() == [[0x7FFFFD]], e
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("mode", ["up", "flush to zero"])
def test_threads_that_another_openmp_library_used(tmp_path, mode):
    """All threads of the pool are in a foreign state; they still are afterwards, and no bit differs."""
    library, threads = polluter_library(tmp_path), 3
    tcm.set_num_threads(threads)
    try:
        wanted = shared_work()
        assert library.foreign_everywhere(MODES[mode], threads) == threads
        library.foreign(0)
        found = shared_work()
        assert library.foreign_threads(threads) == threads - 1, "a thread's state was not restored"
    finally:
        library.foreign_everywhere(0, threads)
        tcm.set_num_threads(None)
    assert [key for key in wanted if found[key] != wanted[key]] == []


def shared_work():
    """Products and conversions that are large enough to be shared among threads."""
    a, b = operands(5, 160, 96, 150)
    wide = a.astype(np.float64) * 2.0**-900
    half = tcm.split(a, "fp16", 1)[0], tcm.split(b, "fp16", 1)[0]
    results = {
        "encode": tcm.encode(np.tile(wide, (8, 8)), "bf16"),
        "split": tcm.split(np.tile(a, (8, 8)), "bf16", 3)[2],
        "fp16": tcm.get_instruction("hopper:mma.m16n8k16.f32.f16.f16.f32").gemm(*half),
        "cube": ascend.cube_gemm(a, b),
        "exact": mpgemm.exact_gemm(wide, b).rounded("fp64"),
        "sgemm": mpgemm.sgemm(a, b, method="bf16x6"),
    }
    accumulators = {
        "fma": (tcm.SequentialFMA(), "fp32"), "fma flushed": (tcm.SequentialFMA(flush_inputs=True, flush_outputs=True), "fp32"),
        "fda": (tcm.FusedDotAdd(8, 24), "bf16"), "fda generic": (tcm.FusedDotAdd(8, 40, output_rounding="rne"), "fp32"),
        "fdrda": (tcm.FusedDotRoundDownAdd(), "bf16"), "gps": (tcm.GroupPairwiseSum(), "bf16"),
        "gps kept": (tcm.GroupPairwiseSum(flush_results=False, flush_input="none"), "bf16"), "lanes": (tcm.LanedFMA(), "bf16"),
        "bfmmla": (tcm.PairRoundOddSum(), "bf16"), "parametric": (tcm.ParametricDotAdd(4, fraction_bits=None), "bf16"),
    }  # fmt: skip
    for name, (accumulator, fmt) in accumulators.items():
        engine = tcm.MatrixEngine(accumulator, a_format=fmt)
        results[name] = engine.gemm(a, b, input_rounding="rne")
    for method in ("ozaki_int8", "mixpert", "quantensor", "ootomo"):
        results[method] = mpgemm.recovered_gemm(a, b, method=method)
    return {key: bits(np.asarray(value)) for key, value in results.items()}
