"""Every public function gives the bits of the default floating-point state in a foreign one, and leaves that as it was."""

import dataclasses
import functools

import numpy as np
import pytest
from foreign_state import MODES, needs_compiler, setter_library

import ascend
import mpgemm
import tensorcore_models as tcm
from mpgemm import inputs
from tensorcore_models import libraries, probing, reference

pytestmark = needs_compiler

CHIP = ascend.get_chip("910A")
B = ascend.Blocking(64, 64, 64)
RNG = np.random.default_rng(17)
#: Numbers of all sizes, subnormal ones among them.
A32, B32 = ((RNG.standard_normal(s) * 2.0 ** RNG.integers(-140, 3, s)).astype(np.float32) for s in ((9, 24), (24, 10)))
PLAIN = RNG.standard_normal((9, 24)).astype(np.float32), RNG.standard_normal((24, 10)).astype(np.float32)
TINY = np.float64([5e-324, 3e-310, 1 / 3, -(2.0**-1030), 1e-40])
HOPPER = "hopper:mma.m16n8k16.f32.f16.f16.f32"
MMA = [tcm.encode(RNG.standard_normal(s), f) for s, f in (((16, 16), "fp16"), ((16, 8), "fp16"), ((16, 8), "fp32"))]
THIRDS = [tcm.encode(x, "fp16") for x in (np.ones((9, 32)) / 3, np.ones((32, 8)) / 5)]
FP8 = [tcm.encode(x, "e4m3fn") for x in (np.ones((16, 32)) / 3, np.ones((32, 16)) / 5)]
FEW = [np.ascontiguousarray(x).view(np.uint32) for x in (A32[:2], B32[:, :2], A32[:2, :2])]
DRAWN = (("normal", {"deviation": 1e-39}), ("log_uniform", {}), ("ootomo_type2", {}), ("conditioned", {}))
CUSTOM = tcm.MatrixEngine(tcm.SequentialFMA(), a_format="fp32")
USER = tcm.as_engine(
    lambda a, b, c: (a.astype(np.float64) @ b + c).astype(np.float32), a_format="fp32", d_format="fp32", k=8
)
COMPUTED = tcm.round_to(PLAIN[0].astype(float) @ PLAIN[1], "fp32").astype(np.float32)


@functools.cache
def schedule():
    return ascend.build_schedule(300, 400, 500, CHIP, B)


@functools.cache
def planned():
    return ascend.plan(64, 96, 80, CHIP, rank="analytic", top=1)[0]


FUNCTIONS = {
    "allowed_scale_exponents": lambda: tcm.allowed_scale_exponents(-14, 15),
    "automatic_scale_exponent": lambda: tcm.automatic_scale_exponent(A32),
    "bits_kept": lambda: tcm.bits_kept(A32, tcm.split(A32, "fp16", 2, scale_exponent=12), 12),
    "encode": lambda: [tcm.encode(x, f, r) for x in (A32, TINY) for f in ("fp32", "bf16", "e5m2") for r in ("rne", "rz")],
    "decode": lambda: tcm.decode(np.arange(1 << 16, dtype=np.uint16), "bf16"),
    "round_to": lambda: tcm.round_to(TINY, "fp32"),
    "split": lambda: tcm.split(A32, "bf16", 3),
    "split_fp16": lambda: tcm.split_fp16(A32, 12),
    "join": lambda: tcm.join(tcm.split(A32, "fp16", 2, scale_exponent=12), 12),
    "quantize_blocks": lambda: [q.bits for q in (tcm.quantize_blocks(A32, "mxfp8_e4m3", axis=1),)],
    "BlockScaled.values": lambda: tcm.quantize_blocks(A32, ("e4m3fn", "ue4m3", 16), axis=1).values(),
    "Instruction.mma_bits": lambda: tcm.get_instruction(HOPPER).mma_bits(*MMA),
    "Instruction.gemm": lambda: tcm.get_instruction(HOPPER).gemm(*PLAIN, input_rounding="rne"),
    "MatrixEngine.gemm": lambda: CUSTOM.gemm(A32, B32, alpha=1 / 3, c=COMPUTED, beta=0.7),
    "CallableEngine.gemm": lambda: USER.gemm(A32, B32),
    "reference.mma_bits": lambda: reference.mma_bits(CUSTOM, *FEW),
    "characterise": lambda: probing.characterise(tcm.get_instruction(HOPPER)).to_dict(),
    "cutlass": lambda: libraries.cutlass(HOPPER, k=32, tile_k=16, split_k=2).gemm_bits(*THIRDS),
    "scaled_mm": lambda: libraries.scaled_mm(*FP8, 0.3, 0.7),
    "folded_scale": lambda: libraries.folded_scale(0.3, 0.7),
    "tail_loss": lambda: libraries.tail_loss(1000, 2, 128),
    "cube_gemm": lambda: [ascend.cube_gemm(A32, B32, row_scaling=r) for r in (False, True)],
    "cube_hgemm": lambda: ascend.cube_hgemm(A32, B32),
    "reconstruct": lambda: ascend.reconstruct(A32, A32, A32, 12),
    "traffic": lambda: ascend.traffic(B, 301, 402, 503, CHIP),
    "roofline": lambda: ascend.roofline(B, 301, 402, 503, CHIP),
    "operational_intensity": lambda: ascend.operational_intensity(B, 301, 402, 503, CHIP),
    "optimal_bm": lambda: ascend.optimal_bm(CHIP, 0.7),
    "Blocking.fusion_efficiency": lambda: B.fusion_efficiency(CHIP),
    "byte_table": lambda: ascend.byte_table(schedule()),
    "simulate": lambda: (ascend.simulate(schedule()).seconds, ascend.simulate(schedule()).utilization),
    "waterfall": lambda: ascend.waterfall(schedule()),
    "sensitivities": lambda: ascend.sensitivities(schedule()),
    "tiling_fields": lambda: ascend.tiling_fields(schedule()),
    "plan": lambda: [p.to_dict() for p in ascend.plan(64, 96, 80, CHIP, rank="analytic", top=3, max_error=1e-4)],
    "plan_of": lambda: ascend.plan_of(schedule()).to_dict(),
    "explain": lambda: ascend.explain(schedule()),
    "pareto": lambda: [p.to_dict() for p in ascend.pareto(64, 32, 48, CHIP)],
    "generate": lambda: [inputs.generate(name, 5, 6, 7, **parameters) for name, parameters in DRAWN],
    "load_shipped": lambda: inputs.load_shipped("digits"),
    "exact_gemm": lambda: [mpgemm.exact_gemm(A32, B32).rounded(f) for f in ("fp32", "fp64", "bf16")],
    "ExactResult.error_of": lambda: mpgemm.exact_gemm(A32, B32).error_of(COMPUTED),
    "ExactResult.equals": lambda: mpgemm.exact_gemm(A32, B32).equals(COMPUTED),
    "ExactResult.magnitudes": lambda: mpgemm.exact_gemm(A32, B32).magnitudes().rounded("fp64"),
    "exact_dot_integers": lambda: mpgemm.exact_dot_integers(A32[0], B32[:, 0], 5e-324),
    "mp_gemm": lambda: str(mpgemm.mp_gemm(A32[:2], B32[:, :2])),
    "mp_gemm_entries": lambda: str(mpgemm.mp_gemm_entries(A32, B32, None, [(0, 0), (1, 2)])),
    "errors": lambda: [mpgemm.errors(COMPUTED, *x).to_dict() for x in (PLAIN, (A32, B32))],
    "errors mpmath": lambda: mpgemm.errors(COMPUTED[:2, :2], PLAIN[0][:2], PLAIN[1][:, :2], reference="mpmath").to_dict(),
    "ErrorMeter": lambda: mpgemm.ErrorMeter(A32, B32).measure(COMPUTED).to_dict(),
    "sgemm": lambda: mpgemm.sgemm(*PLAIN, method="bf16x6"),
    "recovered_gemm": lambda: [mpgemm.recovered_gemm(*PLAIN, method=m) for m in mpgemm.list_methods()],
    "recovered_gemm_report": lambda: str(mpgemm.recovered_gemm_report(*PLAIN, method="ootomo")),
    "gemm_bound": lambda: mpgemm.gemm_bound(CUSTOM, A32, B32),
    "method_bound": lambda: [mpgemm.method_bound(*PLAIN, method=m) for m in ("ootomo", "bf16x6")],
    "multiword_bound": lambda: mpgemm.multiword_bound(100, 2, tcm.get_format("fp16"), tcm.get_format("fp32"), 0.3),
    "block_fma_bounds": lambda: mpgemm.block_fma_bounds(1000, 4, 2.0**-11, 2.0**-24),
    "tolerance": lambda: [mpgemm.tolerance(tcm.get_instruction(HOPPER), 24, data) for data in (None, PLAIN)],
    "attribute": lambda: str(mpgemm.attribute("ootomo", PLAIN[0][0], PLAIN[1][:, 0])),
    "explain a method": lambda: str(mpgemm.explain("ootomo", PLAIN[0][0], PLAIN[1][:, 0])),
    "compare": lambda: mpgemm.compare(["ootomo", "bf16x3"], ["h100"], *PLAIN, bounds=True),
}  # fmt: skip


def frozen(x):
    """Results as bytes and exact numbers; the wall-clock time of a measurement is no result."""
    if isinstance(x, np.ndarray | np.generic):
        return np.ascontiguousarray(x).tobytes()
    if isinstance(x, float):
        return x.hex()
    if isinstance(x, dict):
        return {key: frozen(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [frozen(value) for value in x]
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return {f.name: frozen(getattr(x, f.name)) for f in dataclasses.fields(x) if f.name != "seconds"}
    return x if isinstance(x, int | str | bytes | bool) or x is None else repr(x)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return setter_library(tmp_path_factory.mktemp("foreign"))


@pytest.mark.sweep(28)
@pytest.mark.parametrize("mode", ["up", "flush to zero"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_function(library, name, mode):
    """The foreign state comes first, so that no cache holds a result of the default one."""
    library.foreign(MODES[mode])
    try:
        found, still = frozen(FUNCTIONS[name]()), library.is_foreign()
    finally:
        library.foreign(0)
    assert still, "the caller's state was not restored"
    assert found == frozen(FUNCTIONS[name]())
