"""Lists Arm's BFMMLA, BFDOT and BFMOPA with and without the extended behaviour (EBF16), FP8 products, and SME's outer products.

The arithmetic is that of the Arm Architecture Reference Manual for A-profile, instruction pages and shared pseudocode
(BFDotAdd, FPDot, FPDotAdd_ZA, FP8DotAddFP, FP8MatMulAddFP). FPCR has its value after reset: results are rounded to nearest,
subnormal numbers are kept, and the widening forms return the default NaN. SME's shapes are those of the smallest vectors (128
bits); longer vectors have the same arithmetic.
"""

from collections.abc import Iterator
from itertools import product

from ..accumulators import Accumulator, PairRoundOddSum, ParametricDotAdd, SequentialFMA
from ..engines.instruction import Instruction
from ..families.scaled_dot import ScaledDotAdd

MANUAL = "Arm Architecture Reference Manual"
#: Accumulator that adds two products exactly, rounds the sum, and adds it to c (FPDot, FPAdd).
FUSED_PAIR = ParametricDotAdd(
    2, None, c_position="late", output_rounding="rne", late_rounding="rne", zero_sign="ieee", negative_underflow="negative",
    nan="quiet",
)  # fmt: skip
#: Notes on comparisons with QEMU's user-mode emulator, an independent implementation (cpu_units.qemu;
#: tests/cross/compare_arm.py).
CHECKED = "the command `make cross` gets the same bits from QEMU 7.2 (qemu-aarch64 -cpu max, no hardware), also for NaN"
UNCHECKED = "no independent implementation has checked this row"
EXTENDED = (
    f"{UNCHECKED}; QEMU 7.2 lacks FEAT_EBF16, and with QEMU 9.1 or newer the engine cpu-emulated: runs the instruction"
)
NEWER = f"{UNCHECKED}; QEMU 7.2 lacks SME2, which QEMU 10.1 and newer have"
FP8 = {"e5m2": "e5m2", "e4m3": "e4m3fn"}
#: Number of 32-bit elements in vectors of 128 to 2048 bits, which is the number of rows and columns of an outer product.
SIDES = (4, 8, 16, 32, 64)


def _row(
    spec: Accumulator, name: str, m: int, n: int, k: int, types: tuple[str, str, str], source: str, **others
) -> Instruction:
    d, a, b = types
    return Instruction(
        spec, arch="arm", name=name, m=m, n=n, k=k, a_format=a, b_format=b, c_format=d, d_format=d,
        path=name.split(".")[0], source=f"{MANUAL}, {source}", evidence="vendor document", **{"note": UNCHECKED, **others},
    )  # fmt: skip


def _square(times: int = 1) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Return the legal shapes of an outer product, which has as many rows as columns."""
    return tuple((times * side, (times * side,)) for side in SIDES)


def _bfloat16() -> Iterator[Instruction]:
    types = ("fp32", "bf16", "bf16")
    without, with_ = "with FPCR.EBF = 0", "with FPCR.EBF = 1 (FEAT_EBF16)"
    shapes = (("bfmmla.m2n2k4", 2, 2, 4, ()), ("bfdot.k2", 1, 1, 2, ()), ("bfmopa.m4n4k2", 4, 4, 2, _square()))
    for stem, m, n, k, legal in shapes:
        name, source = f"{stem}.f32.bf16.bf16.f32", stem.partition(".")[0].upper()
        yield _row(PairRoundOddSum(), name, m, n, k, types, f"{source} {without}", legal_shapes=legal, note=CHECKED)
        yield _row(FUSED_PAIR, f"{name}.ebf", m, n, k, types, f"{source} {with_}", legal_shapes=legal, note=EXTENDED)


def _sme() -> list[Instruction]:
    chain = SequentialFMA()
    return [
        _row(FUSED_PAIR, "fmopa.m4n4k2.f32.f16.f16.f32", 4, 4, 2, ("fp32", "fp16", "fp16"), "SME FMOPA (widening), FPDotAdd_ZA",
             legal_shapes=_square(), note=CHECKED),
        _row(chain, "fmopa.m4n4k1.f32.f32.f32.f32", 4, 4, 1, ("fp32",) * 3, "SME FMOPA (non-widening)", legal_shapes=_square(),
             note=CHECKED),
        _row(chain, "fmopa.m2n2k1.f64.f64.f64.f64", 2, 2, 1, ("fp64",) * 3, "SME FMOPA (non-widening), FEAT_SME_F64F64",
             note=CHECKED),
        _row(chain, "fmopa.m8n8k1.f16.f16.f16.f16", 8, 8, 1, ("fp16",) * 3, "SME2 FMOPA (non-widening), FEAT_SME_F16F16",
             legal_shapes=_square(2), note=NEWER),
        _row(chain, "bfmopa.m8n8k1.bf16.bf16.bf16.bf16", 8, 8, 1, ("bf16",) * 3, "SME2 BFMOPA (non-widening), FEAT_SME_B16B16",
             legal_shapes=_square(2), note=NEWER),
    ]  # fmt: skip


def _fp8() -> Iterator[Instruction]:
    rules = "the call with_rules(scale=...) sets LSCALE, and with_rules(saturate=True) sets OSM"
    note = f"{rules}; {UNCHECKED}; no known QEMU has FP8"
    kinds = (
        ("fdot", 1, 1, 2, "fp16", "FDOT (2-way), FEAT_FP8DOT2", ()),
        ("fdot", 1, 1, 4, "fp32", "FDOT (4-way), FEAT_FP8DOT4", ()),
        ("fmmla", 2, 2, 4, "fp16", "FMMLA, FEAT_F8F16MM", ()),
        ("fmmla", 2, 2, 8, "fp32", "FMMLA, FEAT_F8F32MM", ()),
        ("fmopa", 8, 8, 2, "fp16", "FMOPA (2-way), FEAT_SME_F8F16", _square(2)),
        ("fmopa", 4, 4, 4, "fp32", "FMOPA (4-way), FEAT_SME_F8F32", _square()),
    )
    for (stem, m, n, k, d, source, shapes), a, b in product(kinds, FP8, FP8):
        spelled = {"fp16": "f16", "fp32": "f32"}[d]
        shape = f"m{m}n{n}k{k}" if m > 1 else f"k{k}"
        name, types = f"{stem}.{shape}.{spelled}.{a}.{b}.{spelled}", (d, FP8[a], FP8[b])
        yield _row(ScaledDotAdd(k), name, m, n, k, types, source, legal_shapes=shapes, note=note)


def rows() -> list[Instruction]:
    """Return all rows."""
    return [*_bfloat16(), *_sme(), *_fp8()]
