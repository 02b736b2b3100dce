"""NVIDIA tensor-core instructions, Volta to RTX Blackwell.

Arithmetic: xie-mma-sim, table III and section IV (MMA-Sim); khattak-mikaitis, section IV and table II; valpey-smt, section 3.
Zeros and alignment floors: recordings of an RTX 4060 (distributed with mmaemu 0.1.0), the models of MMA-Sim's authors in their
newest version (mmasim 2.1.1), MATLAB-tensor-core; floors measured by Hawkeye (badasherez/gpu-simulator, MLSys 2026).
Shapes and type combinations: PTX ISA, sections on mma, wmma, wgmma and tcgen05.mma. N, F and the floors of a row follow from
its architecture; what an instruction computes is not written anywhere but in these tables.
"""

from dataclasses import dataclass, field
from itertools import product

from ..accumulators import FusedDotAdd, GroupDotFusedSum, IntegerDotAdd, InterleavedDotAdd, SequentialFMA
from ..engines.instruction import Instruction

MMA_SIM = "xie-mma-sim, table III and section IV; mmasim 2.1.1"
KHATTAK = "khattak-mikaitis, section IV"
VECTORS = "hardware: published vectors"
MODEL = "published model"
INFERRED = "inferred"

FP8 = ("e5m2", "e4m3fn")
F8F6F4 = ("e5m2", "e4m3fn", "e3m2", "e2m3", "e2m1")


Shape = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """One architecture: what its tensor cores share, which shapes they have, what a compiler and a user call it.

    Attributes
    ----------
    fraction_bits : int
        F of the fp16, bf16 and tf32 instructions.
    terms : dict of str to int
        N, products that one fused operation takes, by operand format. A shorter k takes k.
    floors : dict of str to int
        Below which the alignment exponent never goes, by result format.
    sync : tuple of (shapes, a = b, (d, c) pairs)
        mma.sync of fp16, bf16 and tf32.
    double : tuple of shapes
        mma.sync of fp64.
    integer : tuple of (shapes, operand formats)
        mma.sync into s32.
    capability : (int, int)
        Compute capability.
    target : str
        Compilation target.
    devices : dict of str to tuple of str
        GPUs, and operand formats that their tensor cores lack although the architecture has them.
    measured_floor : str
        GPU on which the floor of fp32 results has been measured (Hawkeye); empty where models alone state it.
    vectors : str
        GPUs whose published outputs the rows with these operands reproduce (MATLAB-tensor-core).
    pinned : tuple of str
        Operand formats whose arithmetic those outputs pin (they have K = N products; tf32 on Hopper and later only N = 4).
    """

    fraction_bits: int
    terms: dict[str, int]
    floors: dict[str, int]
    sync: tuple[tuple[tuple[Shape, ...], str, tuple[tuple[str, str], ...]], ...] = ()
    double: tuple[Shape, ...] = ()
    integer: tuple[tuple[tuple[Shape, ...], tuple[str, ...]], ...] = ()
    capability: tuple[int, int] = (0, 0)
    target: str = ""
    devices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    measured_floor: str = ""
    vectors: str = ""
    pinned: tuple[str, ...] = ()

    def floor_note(self, d_format: str) -> str:
        """What the alignment floor of a result format rests on."""
        measured = self.measured_floor if d_format == "fp32" else ""
        known = f"measured on an {measured} (Hawkeye)" if measured else "models only"
        return f"alignment floor {self.floors[d_format]}: {known}"


_FOUR_AND_EIGHT = {"fp16": 8, "bf16": 8, "tf32": 4}
_SIXTEEN = {"fp16": 16, "bf16": 16, "tf32": 8}
_BOTH = (("fp32", "fp32"), ("fp16", "fp16"))
_FIRST_SHAPE = (((8, 8, 4),), "fp16", (("fp32", "fp32"), ("fp32", "fp16"), ("fp16", "fp16")))
#: What mma.sync has had since Ampere.
_SYNC = (
    (((16, 8, 16), (16, 8, 8)), "fp16", _BOTH),
    (((16, 8, 16), (16, 8, 8)), "bf16", (("fp32", "fp32"),)),
    (((16, 8, 8), (16, 8, 4)), "tf32", (("fp32", "fp32"),)),
)
_BYTES = (((16, 8, 32), (16, 8, 16), (8, 8, 16)), ("s8", "u8"))
_NIBBLES = (((16, 8, 64), (16, 8, 32), (8, 8, 32)), ("s4", "u4"))

ARCHITECTURES = {
    "volta": Architecture(
        fraction_bits=23, terms={"fp16": 4}, floors={"fp32": -131, "fp16": -19},
        sync=(_FIRST_SHAPE,),
        capability=(7, 0), target="sm_70", devices={"v100": (), "titan_v": ()},
        vectors="V100", pinned=("fp16",),
    ),
    "turing": Architecture(
        fraction_bits=24, terms={"fp16": 8}, floors={"fp32": -132, "fp16": -20},
        sync=(_FIRST_SHAPE, (((16, 8, 8),), "fp16", _BOTH)),
        integer=((((8, 8, 16),), ("s8", "u8")), (((8, 8, 32),), ("s4", "u4"))),
        capability=(7, 5), target="sm_75", devices={"t4": (), "rtx2080ti": ()},
    ),
    # A2 and A30 lack FP64 tensor cores (khattak-mikaitis, section IV-A3).
    "ampere": Architecture(
        fraction_bits=24, terms=_FOUR_AND_EIGHT, floors={"fp32": -132, "fp16": -20},
        sync=_SYNC, double=((8, 8, 4),), integer=(_BYTES, _NIBBLES),
        capability=(8, 0), target="sm_80",
        devices={"a100": (), "a2": ("fp64",), "a30": ("fp64",), "a40": (), "rtx3090": (), "rtx_a6000": ()},
        measured_floor="A100", vectors="A100 and A2", pinned=("fp16", "bf16", "tf32"),
    ),
    "ada": Architecture(
        fraction_bits=24, terms=_FOUR_AND_EIGHT, floors={"fp32": -132, "fp16": -20},
        sync=_SYNC, double=((8, 8, 4),), integer=(_BYTES, _NIBBLES),
        capability=(8, 9), target="sm_89", devices={"rtx1000_ada": (), "rtx4060": (), "rtx4090": (), "l40s": ()},
        vectors="RTX 1000 Ada and L40S", pinned=("fp16", "bf16", "tf32"),
    ),
    "hopper": Architecture(
        fraction_bits=25, terms=_SIXTEEN, floors={"fp32": -133, "fp16": -21},
        sync=_SYNC, double=((16, 8, 16), (16, 8, 8), (16, 8, 4), (8, 8, 4)), integer=(_BYTES,),
        capability=(9, 0), target="sm_90a", devices={"h100": (), "h200": (), "gh200": ()},
        measured_floor="H100", vectors="H100 and H200", pinned=("fp16", "bf16"),
    ),
    "blackwell": Architecture(
        fraction_bits=25, terms=_SIXTEEN, floors={"fp32": -133, "fp16": -21},
        sync=_SYNC, double=((8, 8, 4),), integer=(_BYTES,),
        capability=(10, 0), target="sm_100a", devices={"b200": (), "gb200": (), "b300": (), "gb300": ()},
        vectors="B200", pinned=("fp16", "bf16"),
    ),
    "rtx_blackwell": Architecture(
        fraction_bits=25, terms=_SIXTEEN, floors={"fp32": -133, "fp16": -21},
        sync=_SYNC, double=((8, 8, 4),), integer=(_BYTES,),
        capability=(12, 0), target="sm_120a", devices={"rtx_pro_6000": ()},
    ),
}  # fmt: skip
#: Floor of GDFS, whose groups have exponents of their scales only.
GROUPED_FLOOR = -139

#: Shapes that run on the unit of another architecture (mmasim 2.1.1).
UNITS = {("turing", (8, 8, 4)): "volta"}

#: WMMA: shapes of the 16-bit types; on each architecture it compiles to its N, tf32 to N = 4 everywhere.
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


#: How PTX spells the formats.
PTX_NAMES = {"fp64": "f64", "fp32": "f32", "fp16": "f16", "e4m3fn": "e4m3"}


def ptx_name(fmt: str) -> str:
    """PTX's spelling of a format."""
    return PTX_NAMES.get(fmt, fmt)


def _spell(*formats: str) -> str:
    return ".".join(map(ptx_name, formats))


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


def _fda(arch: str, terms: int, d: str, fraction_bits: int | None = None) -> FusedDotAdd:
    """FDA with the floors and, unless `fraction_bits` are given, the F of an architecture.

    A unit with its own F, that of fp8, keeps only as many bits of fp32 results.
    """
    unit = ARCHITECTURES[arch]
    kept = output(d, fraction_bits)
    return FusedDotAdd(terms, fraction_bits or unit.fraction_bits, **kept, exponent_floor=unit.floors[d])


def _fused(arch: str, fmt: str, k: int, d: str, terms: int | None = None) -> FusedDotAdd:
    return _fda(arch, min(k, terms or ARCHITECTURES[arch].terms[fmt]), d)


def _basis(arch: str, d: str, pinned: bool, source: str = MMA_SIM, otherwise: str = MODEL) -> dict[str, str]:
    """Source, evidence and note of a row: `pinned` ones reproduce outputs of the architecture's GPUs."""
    unit = ARCHITECTURES[arch]
    outputs = f"; outputs of {unit.vectors} (MATLAB-tensor-core)" if pinned else ""
    return {"source": source + outputs, "evidence": VECTORS if pinned else otherwise, "note": unit.floor_note(d)}


def _sync_rows():
    kinds = ((arch, row, *kind) for arch, row in ARCHITECTURES.items() for kind in row.sync)
    for arch, row, shapes, fmt, results in kinds:
        for shape, (d, c) in product(shapes, results):
            unit = UNITS.get((arch, shape), arch)
            pinned = fmt in row.pinned and shape[2] >= row.terms[fmt] and c == d
            facts = _basis(unit, d, pinned)
            if unit != arch:
                facts["note"] = f"runs on {unit}'s unit; {facts['note']}"
            yield _sync(arch, shape, fmt, fmt, c, d, _fused(unit, fmt, shape[2], d), **facts)
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
    for arch, row in ARCHITECTURES.items():
        for shape in row.double:
            yield _sync(arch, shape, "fp64", "fp64", "fp64", "fp64", SequentialFMA(), note="NaN payloads unknown")


def _wmma_rows():
    for arch, unit in ARCHITECTURES.items():
        for fmt in ("fp16", "bf16"):
            results = (("fp32", "fp32"), ("fp16", "fp16"), ("fp32", "fp16"), ("fp16", "fp32"))
            for shape, (d, c) in product(WMMA_SHAPES, results if fmt == "fp16" else results[:1]):
                if fmt in unit.terms:
                    facts = _basis(arch, d, fmt in unit.pinned and c == d, f"{KHATTAK}; {MMA_SIM}", INFERRED)
                    yield _sync(arch, shape, fmt, fmt, c, d, _fused(arch, fmt, 16, d), prefix="wmma", **facts)
        if "tf32" in unit.terms:
            facts = _basis(arch, "fp32", bool(unit.vectors), KHATTAK, INFERRED)
            facts["note"] = f"two chained N = 4 steps; {facts['note']}"
            spec = _fused(arch, "tf32", 8, "fp32", terms=4)
            yield _sync(arch, (16, 16, 8), "tf32", "tf32", "fp32", "fp32", spec, prefix="wmma", **facts)


def _sync_fp8_rows():
    for k, d, a, b in product((32, 16), ("fp32", "fp16"), FP8, FP8):
        yield _sync("ada", (16, 8, k), a, b, d, d, _fda("ada", 16, d, 13), **_ada_fp8_basis(k, d, a == b))
        for arch in ("hopper", "blackwell"):
            # Converted to fp16 and run as chained FP16 operations; c is added last.
            known = k == 32 and a == b and (d == "fp16" or arch == "blackwell")
            facts = _basis(arch, d, known, KHATTAK, INFERRED)
            # No note on the floor: products are multiples of 2^-32, which it never cuts.
            facts["note"] = "fp8 to fp16 conversion, two chained FP16 operations over interleaved k, c added last"
            facts["note"] += "" if k == 32 else "; groups of 8: no data"
            yield _sync(arch, (16, 8, k), a, b, d, d, InterleavedDotAdd(_fda(arch, k // 2, d)), **facts)
    for d, (a, b) in product(("fp32", "fp16"), product(F8F6F4, F8F6F4)):
        facts = _basis("rtx_blackwell", d, False, otherwise=INFERRED if {a, b} & {"e3m2", "e2m3"} else MODEL)
        yield _sync("rtx_blackwell", (16, 8, 32), a, b, d, d, _fda("rtx_blackwell", 32, d), **facts)
    for d, a, b in product(("fp32", "fp16"), FP8, FP8):
        spec = _fda("rtx_blackwell", 16, d)
        yield _sync("rtx_blackwell", (16, 8, 16), a, b, d, d, spec, **_basis("rtx_blackwell", d, False))


def _ada_fp8_basis(k: int, d: str, alike: bool) -> dict[str, str]:
    """What Ada's fp8 rows rest on: an RTX 4060 was recorded with fp32 results, in all formats and both shapes."""
    facts = _basis("ada", d, False)
    outputs = []
    if alike and k == 32:
        gpus = "RTX 1000 Ada" if d == "fp16" else "RTX 1000 Ada and L40S"
        outputs.append(f"outputs of {gpus} (MATLAB-tensor-core)")
    if d == "fp32":
        outputs.append("outputs of RTX 4060 (mmaemu 0.1.0), zeros and subnormal numbers among them")
    facts["source"] = "; ".join([MMA_SIM, *outputs])
    facts["evidence"] = VECTORS if outputs else MODEL
    return facts


#: What PTX says of the block scales of one row.
SYNC_SCALE_NOTE = "in PTX since PTX ISA 9.1 (mxf4nvf4 with scale_vec::4X; 13.1); nvcc 13.0 (9.0) rejects it"


def _block_scaled(arch, shape, a, b, scale, block, accumulator, evidence: str = MODEL) -> Instruction:
    m, n, k = shape
    tcgen = arch == "blackwell"
    types = _spell("fp32", a, b) if tcgen else _spell("fp32", a, b, "fp32")
    prefix = "tcgen05.mma" if tcgen else "mma"
    note = f"alignment floor {accumulator.exponent_floor}: models only"
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
        note=note if tcgen or (block, scale) != (16, "ue8m0") else f"{SYNC_SCALE_NOTE}; {note}",
    )


def _block_scaled_rows():
    for a, b in product(F8F6F4, F8F6F4):
        evidence = INFERRED if {a, b} & {"e3m2", "e2m3"} else MODEL
        for arch, shape in (("rtx_blackwell", (16, 8, 32)), ("blackwell", (128, 8, 32))):
            yield _block_scaled(arch, shape, a, b, "ue8m0", 32, _fda(arch, 32, "fp32"), evidence)
    grouped = GroupDotFusedSum(exponent_floor=GROUPED_FLOOR)
    for arch, shape in (("rtx_blackwell", (16, 8, 64)), ("blackwell", (128, 8, 64))):
        for block, scale in ((32, "ue8m0"), (16, "ue8m0"), (16, "ue4m3")):
            yield _block_scaled(arch, shape, "e2m1", "e2m1", scale, block, grouped)


def _group_rows():
    """wgmma (Hopper) and tcgen05 (Blackwell): one row for every type combination, m and n free."""
    kinds = [("tf32", "tf32", 8, ("fp32",)), ("fp16", "fp16", 16, ("fp32", "fp16")), ("bf16", "bf16", 16, ("fp32",))]
    for a, b, k, results in kinds:
        for d, (arch, prefix) in product(results, (("hopper", "wgmma"), ("blackwell", "tcgen05.mma"))):
            yield _group(arch, prefix, k, a, b, d, _fda(arch, k, d), **_basis(arch, d, False))
    for a, b in (("fp16", "bf16"), ("bf16", "fp16")):
        facts = _basis("blackwell", "fp32", False, otherwise=INFERRED)
        yield _group("blackwell", "tcgen05.mma", 16, a, b, "fp32", _fda("blackwell", 16, "fp32"), **facts)
    for d, a, b in product(("fp32", "fp16"), FP8, FP8):
        facts = _basis("hopper", d, a == b and d == "fp32")
        facts["note"] = f"alignment floor {ARCHITECTURES['hopper'].floors[d]}: models only"
        yield _group("hopper", "wgmma", 32, a, b, d, _fda("hopper", 32, d, 13), **facts)
    for d, a, b in product(("fp32", "fp16"), F8F6F4, F8F6F4):
        facts = _basis("blackwell", d, False, otherwise=INFERRED if {a, b} & {"e3m2", "e2m3"} else MODEL)
        yield _group("blackwell", "tcgen05.mma", 32, a, b, d, _fda("blackwell", 32, d), **facts)


def _group(arch, prefix, k, a, b, d, accumulator, suffix="", **facts) -> Instruction:
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
        legal_shapes=WGMMA_SHAPES if prefix == "wgmma" else tcgen05,
        **facts,
    )


INTEGER_SOURCE = "PTX ISA, mma and wgmma with .s32 accumulators: exact, wrapping, clamped with .satfinite"


def _integer_rows():
    kinds = ((arch, *kind) for arch, row in ARCHITECTURES.items() for kind in row.integer)
    for arch, shapes, formats in kinds:
        for shape, a, b, saturate in product(shapes, formats, formats, (False, True)):
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
            spec = IntegerDotAdd(saturate, terms=32)
            yield _group(arch, prefix, 32, a, b, "s32", spec, suffix, source="PTX ISA", evidence="vendor document")


def rows() -> list[Instruction]:
    """All NVIDIA rows."""
    parts = (
        _sync_rows(), _double_rows(), _wmma_rows(), _sync_fp8_rows(), _block_scaled_rows(), _group_rows(), _integer_rows(),
    )  # fmt: skip
    return [row for part in parts for row in part]
