"""NVIDIA tensor-core instructions, Volta to RTX Blackwell.

Arithmetic: xie-mma-sim, table III and section IV (MMA-Sim); khattak-mikaitis, section IV and table II; valpey-smt, section 3.
Shapes and type combinations: PTX ISA, sections on mma, wmma, wgmma and tcgen05.mma. N and F of a row follow from its
architecture; what an instruction computes is not written anywhere but in these tables.
"""

from itertools import product

from ..accumulators import FusedDotAdd, GroupDotFusedSum, IntegerDotAdd, InterleavedDotAdd, SequentialFMA
from ..engines.instruction import Instruction

MMA_SIM = "xie-mma-sim, table III and section IV"
KHATTAK = "khattak-mikaitis, section IV"
VECTORS = "hardware: published vectors"
MODEL = "published model"
INFERRED = "inferred"

#: How PTX spells the formats.
SPELLING = {"fp64": "f64", "fp32": "f32", "fp16": "f16", "e4m3fn": "e4m3"}
FP8 = ("e5m2", "e4m3fn")
F8F6F4 = ("e5m2", "e4m3fn", "e3m2", "e2m3", "e2m1")

#: Fraction bits F of the fp16, bf16 and tf32 instructions.
FRACTION_BITS = {
    "volta": 23, "turing": 24, "ampere": 24, "ada": 24, "hopper": 25, "blackwell": 25, "rtx_blackwell": 25,
}  # fmt: skip

#: Products N that one fused operation takes, by architecture and operand format. A shorter k takes k.
TERMS = {
    "volta": {"fp16": 4},
    "turing": {"fp16": 8},
    "ampere": {"fp16": 8, "bf16": 8, "tf32": 4},
    "ada": {"fp16": 8, "bf16": 8, "tf32": 4},
    "hopper": {"fp16": 16, "bf16": 16, "tf32": 8},
    "blackwell": {"fp16": 16, "bf16": 16, "tf32": 8},
    "rtx_blackwell": {"fp16": 16, "bf16": 16, "tf32": 8},
}

#: mma.sync of fp16, bf16 and tf32: (architecture, shapes, a = b, (d, c) pairs).
SYNC_SHAPES = (
    ("volta", ((8, 8, 4),), "fp16", (("fp32", "fp32"), ("fp32", "fp16"), ("fp16", "fp16"))),
    ("turing", ((8, 8, 4),), "fp16", (("fp32", "fp32"), ("fp32", "fp16"), ("fp16", "fp16"))),
    ("turing", ((16, 8, 8),), "fp16", (("fp32", "fp32"), ("fp16", "fp16"))),
    *(
        row
        for arch in ("ampere", "ada", "hopper", "blackwell", "rtx_blackwell")
        for row in (
            (arch, ((16, 8, 16), (16, 8, 8)), "fp16", (("fp32", "fp32"), ("fp16", "fp16"))),
            (arch, ((16, 8, 16), (16, 8, 8)), "bf16", (("fp32", "fp32"),)),
            (arch, ((16, 8, 8), (16, 8, 4)), "tf32", (("fp32", "fp32"),)),
        )
    ),
)

#: Rows whose arithmetic the published hardware vectors pin (they have K = N products; tf32 on Hopper and later only N = 4).
PINNED = {
    ("volta", "fp16"), ("ampere", "fp16"), ("ampere", "bf16"), ("ampere", "tf32"), ("ada", "fp16"), ("ada", "bf16"),
    ("ada", "tf32"), ("hopper", "fp16"), ("hopper", "bf16"), ("blackwell", "fp16"), ("blackwell", "bf16"),
}  # fmt: skip

DMMA_SHAPES = {
    "ampere": ((8, 8, 4),),
    "ada": ((8, 8, 4),),
    "hopper": ((16, 8, 16), (16, 8, 8), (16, 8, 4), (8, 8, 4)),
    "blackwell": ((8, 8, 4),),
    "rtx_blackwell": ((8, 8, 4),),
}

#: WMMA: shapes of the 16-bit types; on each architecture it compiles to the steps of TERMS, tf32 to N = 4 everywhere.
WMMA_SHAPES = ((16, 16, 16), (32, 8, 16), (8, 32, 16))

N_BY_8 = tuple(range(8, 257, 8))
N_BY_16 = tuple(range(16, 257, 16))
#: Free shapes (PTX ISA, wgmma and tcgen05.mma; m = 256 takes two CTAs).
WGMMA_SHAPES = ((64, N_BY_8),)
TCGEN05_SHAPES = ((64, N_BY_8), (128, N_BY_16), (256, N_BY_16))
#: The integer kind has fewer n (PTX ISA 9.1, 9.7.16.2.1).
TCGEN05_INTEGER_SHAPES = ((64, tuple(sorted((8, 24, *N_BY_16)))), (128, N_BY_16), (256, tuple(range(32, 257, 32))))
TCGEN05_SCALED_SHAPES = ((128, N_BY_8), (256, N_BY_16))


def output(d_format: str, fraction_bits: int | None = None) -> dict:
    """Rounding of the result: RNE to fp16, RZ to fp32 (to fewer fraction bits on the 13-bit units)."""
    if d_format == "fp16":
        return {"output_rounding": "rne"}
    return {"output_rounding": "rz", "output_fraction_bits": fraction_bits}


def _spell(*formats: str) -> str:
    return ".".join(SPELLING.get(f, f) for f in formats)


def _sync(arch, shape, a, b, c, d, accumulator, *, name=None, prefix="mma", **facts) -> Instruction:
    m, n, k = shape
    return Instruction(
        accumulator,
        arch=arch,
        name=name or f"{prefix}.m{m}n{n}k{k}.{_spell(d, a, b, c)}",
        m=m,
        n=n,
        k=k,
        a_format=a,
        b_format=b,
        c_format=c,
        d_format=d,
        blocks=4 if arch in ("volta", "turing") and name is None and shape == (8, 8, 4) else 1,
        **{"path": prefix, "source": MMA_SIM, "evidence": MODEL, **facts},
    )


def _fused(arch: str, fmt: str, k: int, d: str, terms: int | None = None) -> FusedDotAdd:
    terms = min(k, terms or TERMS[arch][fmt])
    return FusedDotAdd(terms, FRACTION_BITS[arch], **output(d))


def _sync_rows():
    for arch, shapes, fmt, results in SYNC_SHAPES:
        for shape, (d, c) in product(shapes, results):
            pinned = (arch, fmt) in PINNED and shape[2] >= TERMS[arch][fmt] and c == d
            yield _sync(
                arch, shape, fmt, fmt, c, d, _fused(arch, fmt, shape[2], d), evidence=VECTORS if pinned else MODEL
            )
    yield _sync(
        "ampere",
        (8, 8, 4),
        "fp16",
        "fp16",
        "fp32",
        "fp32",
        SequentialFMA(),
        source="valpey-smt, section 3.1",
        note="not run on tensor cores: compiled to a chain of FP32 fused multiply-adds",
    )


def _double_rows():
    for arch, shapes in DMMA_SHAPES.items():
        for shape in shapes:
            yield _sync(arch, shape, "fp64", "fp64", "fp64", "fp64", SequentialFMA(), note="NaN payloads unknown")


def _wmma_rows():
    for arch, terms in TERMS.items():
        for fmt in ("fp16", "bf16"):
            results = (("fp32", "fp32"), ("fp16", "fp16"), ("fp32", "fp16"), ("fp16", "fp32"))
            for shape, (d, c) in product(WMMA_SHAPES, results if fmt == "fp16" else results[:1]):
                if fmt in terms:
                    yield _sync(
                        arch,
                        shape,
                        fmt,
                        fmt,
                        c,
                        d,
                        _fused(arch, fmt, 16, d),
                        prefix="wmma",
                        source=f"{KHATTAK}; {MMA_SIM}",
                        evidence=VECTORS if (arch, fmt) in PINNED and c == d else INFERRED,
                    )
        if "tf32" in terms:
            pinned = arch in ("ampere", "ada", "hopper", "blackwell")
            yield _sync(
                arch,
                (16, 16, 8),
                "tf32",
                "tf32",
                "fp32",
                "fp32",
                _fused(arch, "tf32", 8, "fp32", terms=4),
                prefix="wmma",
                source=KHATTAK,
                evidence=VECTORS if pinned else INFERRED,
                note="two chained N = 4 steps",
            )


def _sync_fp8_rows():
    for k, d, a, b in product((32, 16), ("fp32", "fp16"), FP8, FP8):
        ada = FusedDotAdd(16, 13, **output(d, 13))
        pinned = k == 32 and a == b
        yield _sync("ada", (16, 8, k), a, b, d, d, ada, evidence=VECTORS if pinned else MODEL)
        for arch in ("hopper", "blackwell"):
            # Converted to fp16 and run as chained FP16 operations; c is added last.
            inner = FusedDotAdd(k // 2, 25, **output(d))
            known = pinned and (d == "fp16" or arch == "blackwell")
            yield _sync(
                arch,
                (16, 8, k),
                a,
                b,
                d,
                d,
                InterleavedDotAdd(inner),
                source=KHATTAK,
                evidence=VECTORS if known else INFERRED,
                note="fp8 to fp16 conversion, two chained FP16 operations over interleaved k, c added last"
                + ("" if k == 32 else "; groups of 8: no data"),
            )
    for d, (a, b) in product(("fp32", "fp16"), product(F8F6F4, F8F6F4)):
        published = not {a, b} & {"e3m2", "e2m3"}
        yield _sync(
            "rtx_blackwell",
            (16, 8, 32),
            a,
            b,
            d,
            d,
            FusedDotAdd(32, 25, **output(d)),
            evidence=MODEL if published else INFERRED,
        )
    for d, a, b in product(("fp32", "fp16"), FP8, FP8):
        yield _sync("rtx_blackwell", (16, 8, 16), a, b, d, d, FusedDotAdd(16, 25, **output(d)))


#: What PTX says of block scales of mma.sync that not every compiler takes, by (products, scale format).
SYNC_SCALE_NOTES = {
    (32, "ue4m3"): "not in PTX (PTX ISA 9.1, 9.7.14.3: ue4m3 for 16 products only); in published reference code",
    (16, "ue8m0"): "in PTX since PTX ISA 9.1 (mxf4nvf4 with scale_vec::4X; 13.1); nvcc 13.0 (9.0) rejects it",
}


def _block_scaled(arch, shape, a, b, scale, block, accumulator, *, tcgen: bool, evidence: str) -> Instruction:
    m, n, k = shape
    types = _spell("fp32", a, b) if tcgen else _spell("fp32", a, b, "fp32")
    prefix = "tcgen05.mma" if tcgen else "mma"
    return _sync(
        arch,
        shape,
        a,
        b,
        "fp32",
        "fp32",
        accumulator,
        name=f"{prefix}.m{m}n{n}k{k}.block{block}.{types}.{scale}",
        scale_format=scale,
        block_size=block,
        path="tcgen05" if tcgen else "mma",
        evidence=evidence,
        legal_shapes=TCGEN05_SCALED_SHAPES if tcgen else (),
        note="" if tcgen else SYNC_SCALE_NOTES.get((block, scale), ""),
    )


def _block_scaled_rows():
    for a, b in product(F8F6F4, F8F6F4):
        evidence = INFERRED if {a, b} & {"e3m2", "e2m3"} else MODEL
        fused = FusedDotAdd(32, 25)
        yield _block_scaled("rtx_blackwell", (16, 8, 32), a, b, "ue8m0", 32, fused, tcgen=False, evidence=evidence)
        yield _block_scaled("blackwell", (128, 8, 32), a, b, "ue8m0", 32, fused, tcgen=True, evidence=evidence)
    for arch, shape, tcgen in (("rtx_blackwell", (16, 8, 64), False), ("blackwell", (128, 8, 64), True)):
        for block, scale in ((32, "ue8m0"), (16, "ue8m0"), (32, "ue4m3"), (16, "ue4m3")):
            if (block, scale) == (32, "ue4m3") and tcgen:
                continue
            evidence = INFERRED if (block, scale) == (32, "ue4m3") else MODEL
            yield _block_scaled(
                arch, shape, "e2m1", "e2m1", scale, block, GroupDotFusedSum(), tcgen=tcgen, evidence=evidence
            )


def _group_rows():
    """wgmma (Hopper) and tcgen05 (Blackwell): one row for every type combination, m and n free."""
    kinds = [("tf32", "tf32", 8, ("fp32",)), ("fp16", "fp16", 16, ("fp32", "fp16")), ("bf16", "bf16", 16, ("fp32",))]
    for a, b, k, results in kinds:
        for d in results:
            yield _group("hopper", "wgmma", k, a, b, d, FusedDotAdd(k, 25, **output(d)), MODEL)
            yield _group("blackwell", "tcgen05.mma", k, a, b, d, FusedDotAdd(k, 25, **output(d)), MODEL)
    for a, b in (("fp16", "bf16"), ("bf16", "fp16")):
        yield _group("blackwell", "tcgen05.mma", 16, a, b, "fp32", FusedDotAdd(16, 25), INFERRED)
    for d, a, b in product(("fp32", "fp16"), FP8, FP8):
        pinned = VECTORS if a == b and d == "fp32" else MODEL
        yield _group("hopper", "wgmma", 32, a, b, d, FusedDotAdd(32, 13, **output(d, 13)), pinned)
    for d, a, b in product(("fp32", "fp16"), F8F6F4, F8F6F4):
        evidence = INFERRED if {a, b} & {"e3m2", "e2m3"} else MODEL
        yield _group("blackwell", "tcgen05.mma", 32, a, b, d, FusedDotAdd(32, 25, **output(d)), evidence)


def _group(arch, prefix, k, a, b, d, accumulator, evidence, suffix="") -> Instruction:
    tcgen05 = TCGEN05_INTEGER_SHAPES if d == "s32" else TCGEN05_SHAPES
    return _sync(
        arch,
        (64, 8, k),
        a,
        b,
        d,
        d,
        accumulator,
        name=f"{prefix}.m64n8k{k}.{_spell(d, a, b)}{suffix}",
        prefix=prefix.split(".")[0],
        evidence=evidence,
        legal_shapes=WGMMA_SHAPES if prefix == "wgmma" else tcgen05,
        **({} if isinstance(accumulator, FusedDotAdd) else {"source": "PTX ISA"}),
    )


#: Integer mma.sync: (architectures, shapes, operand formats).
INTEGER_SHAPES = (
    (("turing",), ((8, 8, 16),), ("s8", "u8")),
    (("ampere", "ada", "hopper", "blackwell", "rtx_blackwell"), ((16, 8, 32), (16, 8, 16), (8, 8, 16)), ("s8", "u8")),
    (("turing",), ((8, 8, 32),), ("s4", "u4")),
    (("ampere", "ada"), ((16, 8, 64), (16, 8, 32), (8, 8, 32)), ("s4", "u4")),
)
INTEGER_SOURCE = "PTX ISA, mma and wgmma with .s32 accumulators: exact, wrapping, clamped with .satfinite"


def _integer_rows():
    for archs, shapes, formats in INTEGER_SHAPES:
        for arch, shape, a, b, saturate in product(archs, shapes, formats, formats, (False, True)):
            m, n, k = shape
            yield _sync(
                arch,
                shape,
                a,
                b,
                "s32",
                "s32",
                IntegerDotAdd(saturate, terms=k),
                name=f"mma.m{m}n{n}k{k}.s32.{a}.{b}.s32" + (".satfinite" if saturate else ""),
                source=INTEGER_SOURCE,
                evidence="vendor document",
            )
    for a, b, saturate in product(("s8", "u8"), ("s8", "u8"), (False, True)):
        suffix = ".satfinite" if saturate else ""
        for arch, prefix in (("hopper", "wgmma"), ("blackwell", "tcgen05.mma")):
            yield _group(arch, prefix, 32, a, b, "s32", IntegerDotAdd(saturate, terms=32), "vendor document", suffix)


def rows() -> list[Instruction]:
    """All NVIDIA rows."""
    parts = (
        _sync_rows(), _double_rows(), _wmma_rows(), _sync_fp8_rows(), _block_scaled_rows(), _group_rows(), _integer_rows(),
    )  # fmt: skip
    return [row for part in parts for row in part]
