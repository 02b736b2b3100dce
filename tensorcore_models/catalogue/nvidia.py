"""Lists NVIDIA's tensor-core instructions from Volta to RTX Blackwell.

The sources are:

- arithmetic: xie-mma-sim, table III and section IV (MMA-Sim); khattak-mikaitis, section IV and table II; valpey-smt, section 3
- zeros and alignment floors: recordings of an RTX 4060 (distributed with mmaemu 0.1.0), the newest models of MMA-Sim's authors
  (mmasim 2.1.1), MATLAB-tensor-core, and floors measured by Hawkeye (badasherez/gpu-simulator, MLSys 2026)
- shapes and type combinations: PTX ISA, sections on mma, wmma, wgmma and tcgen05.mma

Each architecture is one row of :data:`ARCHITECTURES`, which states its shapes, N, F, floors and the published outputs that it
reproduces. The functions below turn rows into instructions, and treat no architecture specially.
"""

from dataclasses import replace
from itertools import product

from ..accumulators import (
    Accumulator,
    FusedDotAdd,
    GroupDotFusedSum,
    IntegerDotAdd,
    InterleavedDotAdd,
    SequentialFMA,
    WidenedDotAdd,
)
from ..engines.instruction import Instruction
from .tensor_cores import (
    F8F6F4,
    INFERRED,
    KHATTAK,
    MMA_SIM,
    MODEL,
    VECTORS,
    Architecture,
    Group,
    Narrow,
    Outputs,
    Scaled,
    floor_note,
)

_FOUR_AND_EIGHT = {"fp16": 8, "bf16": 8, "tf32": 4}
_SIXTEEN = {"fp16": 16, "bf16": 16, "tf32": 8}
_BOTH = (("fp32", "fp32"), ("fp16", "fp16"))
_FIRST_SHAPE = (((8, 8, 4),), "fp16", (("fp32", "fp32"), ("fp32", "fp16"), ("fp16", "fp16")))
#: Shapes and formats of mma.sync since Ampere.
_SYNC = (
    (((16, 8, 16), (16, 8, 8)), "fp16", _BOTH),
    (((16, 8, 16), (16, 8, 8)), "bf16", (("fp32", "fp32"),)),
    (((16, 8, 8), (16, 8, 4)), "tf32", (("fp32", "fp32"),)),
)
_BYTES = (((16, 8, 32), (16, 8, 16), (8, 8, 16)), ("s8", "u8"))
_NIBBLES = (((16, 8, 64), (16, 8, 32), (8, 8, 32)), ("s4", "u4"))

N_BY_8 = tuple(range(8, 257, 8))
N_BY_16 = tuple(range(16, 257, 16))
#: Legal (m, all n) of instructions with free shapes (PTX ISA, wgmma and tcgen05.mma); m = 256 takes two CTAs.
WGMMA_SHAPES = ((64, N_BY_8),)
TCGEN05_SHAPES = ((64, N_BY_8), (128, N_BY_16), (256, N_BY_16))
#: Legal shapes of tcgen05.mma with integers, which has fewer n (PTX ISA 9.1, 9.7.16.2.1).
TCGEN05_INTEGER_SHAPES = ((64, tuple(sorted((8, 24, *N_BY_16)))), (128, N_BY_16), (256, tuple(range(32, 257, 32))))
TCGEN05_SCALED_SHAPES = ((128, N_BY_8), (256, N_BY_16))

_884 = (8, 8, 4)
_MATLAB = "outputs of {} (MATLAB-tensor-core)"
_ADA_FP8 = Narrow(
    ks=(32, 16), terms=16, fraction_bits=13,
    outputs=(
        Outputs(_MATLAB.format("RTX 1000 Ada"), ("fp16",)),
        Outputs(_MATLAB.format("RTX 1000 Ada and L40S"), ("fp32",)),
        Outputs(
            "outputs of RTX 4060 (mmaemu 0.1.0), which include zeros and subnormal numbers", ("fp32",), (32, 16), alike=False
        ),
    ),
)  # fmt: skip
_INTERLEAVED = Narrow(ks=(32, 16), interleaved=True, source=KHATTAK, evidence=INFERRED)
_WGMMA = Group(
    prefix="wgmma", shapes=WGMMA_SHAPES, integer_shapes=WGMMA_SHAPES,
    narrow=(Narrow(fraction_bits=13, outputs=(Outputs(_MATLAB.format("H100 and H200"), ("fp32",)),)),),
)  # fmt: skip
_TCGEN05 = Group(
    prefix="tcgen05.mma", shapes=TCGEN05_SHAPES, integer_shapes=TCGEN05_INTEGER_SHAPES,
    narrow=(Narrow(formats=F8F6F4),), mixed=(("fp16", "bf16"), ("bf16", "fp16")), input_scale=15,
)  # fmt: skip

ARCHITECTURES = {
    "volta": Architecture(
        fraction_bits=23, terms={"fp16": 4}, floors={"fp32": -131, "fp16": -19},
        sync=(_FIRST_SHAPE,), blocks={_884: 4},
        capability=(7, 0), variants=((7, 2),), target="sm_70", devices={"v100": (), "titan_v": ()},
        vectors="V100", pinned=("fp16",),
    ),
    "turing": Architecture(
        fraction_bits=24, terms={"fp16": 8}, floors={"fp32": -132, "fp16": -20},
        sync=(_FIRST_SHAPE, (((16, 8, 8),), "fp16", _BOTH)), units={_884: "volta"}, blocks={_884: 4},
        integer=((((8, 8, 16),), ("s8", "u8")), (((8, 8, 32),), ("s4", "u4"))),
        widens=True, capability=(7, 5), target="sm_75", devices={"t4": (), "rtx2080ti": ()},
    ),
    # A2 and A30 lack FP64 tensor cores (khattak-mikaitis, section IV-A3).
    "ampere": Architecture(
        fraction_bits=24, terms=_FOUR_AND_EIGHT, floors={"fp32": -132, "fp16": -20},
        sync=_SYNC, double=((8, 8, 4),), integer=(_BYTES, _NIBBLES),
        emulated=(((_884,), "fp16", (("fp32", "fp32"),)),),
        widens=True, capability=(8, 0), whole_major=True, target="sm_80",
        devices={"a100": (), "a2": ("fp64",), "a30": ("fp64",), "a40": (), "rtx3090": (), "rtx_a6000": ()},
        measured_floors={"fp32": "an A100 (Hawkeye)"}, vectors="A100 and A2", pinned=("fp16", "bf16", "tf32"),
    ),
    "ada": Architecture(
        fraction_bits=24, terms=_FOUR_AND_EIGHT, floors={"fp32": -132, "fp16": -20},
        sync=_SYNC, double=((8, 8, 4),), integer=(_BYTES, _NIBBLES), narrow=(_ADA_FP8,), widens=True,
        capability=(8, 9), target="sm_89", devices={"rtx1000_ada": (), "rtx4060": (), "rtx4090": (), "l40s": ()},
        vectors="RTX 1000 Ada and L40S", pinned=("fp16", "bf16", "tf32"),
    ),
    "hopper": Architecture(
        fraction_bits=25, terms=_SIXTEEN, floors={"fp32": -133, "fp16": -21},
        sync=_SYNC, double=((16, 8, 16), (16, 8, 8), (16, 8, 4), (8, 8, 4)), integer=(_BYTES,),
        narrow=(
            replace(
                _INTERLEAVED,
                outputs=(
                    Outputs(_MATLAB.format("H100 and H200"), ("fp16",)),
                    Outputs("outputs of an H100 (own run)", ("fp32", "fp16"), (32, 16), alike=False),
                ),
            ),
        ),
        group=_WGMMA,
        double_nan="a NaN result is the first NaN of b, the sum and a, made quiet, as are all 813 recorded NaN results, 7 of "
        "them with two NaN operands",
        widens=True, capability=(9, 0), target="sm_90a", devices={"h100": (), "h200": (), "gh200": ()},
        measured_floors={"fp32": "an H100 (Hawkeye)", "fp16": "an H100 (own run)"},
        vectors="H100 and H200", pinned=("fp16", "bf16"),
    ),
    "blackwell": Architecture(
        fraction_bits=25, terms=_SIXTEEN, floors={"fp32": -133, "fp16": -21},
        sync=_SYNC, double=((8, 8, 4),), integer=(_BYTES,),
        narrow=(replace(_INTERLEAVED, outputs=(Outputs(_MATLAB.format("B200"), ("fp32", "fp16")),)),),
        scaled=Scaled(m=128, n=8, free=TCGEN05_SCALED_SHAPES, group=_TCGEN05), group=_TCGEN05, widens=True,
        capability=(10, 0), whole_major=True, target="sm_100a", devices={"b200": (), "gb200": (), "b300": (), "gb300": ()},
        vectors="B200", pinned=("fp16", "bf16"),
    ),
    "rtx_blackwell": Architecture(
        fraction_bits=25, terms=_SIXTEEN, floors={"fp32": -133, "fp16": -21},
        sync=_SYNC, double=((8, 8, 4),), integer=(_BYTES,),
        narrow=(Narrow(formats=F8F6F4), Narrow(ks=(16,))), narrow_kind="f8f6f4", scaled=Scaled(m=16, n=8),
        widens=True, capability=(12, 0), whole_major=True, target="sm_120a", devices={"rtx_pro_6000": ()},
    ),
}  # fmt: skip
#: Alignment floor of GroupDotFusedSum.
GROUPED_FLOOR = -139

#: WMMA's shapes of 16-bit types. WMMA has the N of each architecture; with tf32 it has N = 4 on all.
WMMA_SHAPES = ((16, 16, 16), (32, 8, 16), (8, 32, 16))


def output(d_format: str, fraction_bits: int | None = None) -> dict:
    """Return the fields of the last rounding: RNE to fp16, RZ to fp32 (to fewer fraction bits on the 13-bit units)."""
    if d_format == "fp16":
        return {"output_rounding": "rne"}
    return {"output_rounding": "rz", "output_fraction_bits": fraction_bits}


#: How PTX spells the formats.
PTX_NAMES = {"fp64": "f64", "fp32": "f32", "fp16": "f16", "e4m3fn": "e4m3"}


def ptx_name(fmt: str) -> str:
    """Return PTX's spelling of a format."""
    return PTX_NAMES.get(fmt, fmt)


def _spell(*formats: str) -> str:
    return ".".join(map(ptx_name, formats))


def _shape(shape: tuple[int, int, int]) -> str:
    return "m{}n{}k{}".format(*shape)


def _sync(arch, shape, a, b, c, d, accumulator, *, name=None, prefix="mma", **facts) -> Instruction:
    m, n, k = shape
    return Instruction(
        accumulator, arch=arch, name=name or f"{prefix}.{_shape(shape)}.{_spell(d, a, b, c)}", m=m, n=n, k=k,
        a_format=a, b_format=b, c_format=c, d_format=d, **{"path": prefix, "source": MMA_SIM, "evidence": MODEL, **facts},
    )  # fmt: skip


def _fda(arch: str, terms: int, d: str, fraction_bits: int | None = None) -> FusedDotAdd:
    """Return FDA with the floors of an architecture and its F, unless `fraction_bits` gives another F.

    A unit with another F, such as that of fp8, also keeps only that many fraction bits of fp32 results.
    """
    unit = ARCHITECTURES[arch]
    kept = output(d, fraction_bits)
    return FusedDotAdd(terms, fraction_bits or unit.fraction_bits, **kept, exponent_floor=unit.floors[d])


def _fused(arch: str, fmt: str, k: int, d: str, terms: int | None = None) -> FusedDotAdd:
    return _fda(arch, min(k, terms or ARCHITECTURES[arch].terms[fmt]), d)


def _basis(arch: str, d: str, pinned: bool, source: str = MMA_SIM, otherwise: str = MODEL) -> dict[str, str]:
    """Return source, evidence and note of a row; a `pinned` row reproduces outputs of the architecture's GPUs."""
    unit = ARCHITECTURES[arch]
    outputs = f"; outputs of {unit.vectors} (MATLAB-tensor-core)" if pinned else ""
    return {"source": source + outputs, "evidence": VECTORS if pinned else otherwise, "note": unit.floor_note(d)}


def _sync_rows():
    for arch, row in ARCHITECTURES.items():
        for shapes, fmt, results in row.sync:
            for shape, (d, c) in product(shapes, results):
                unit = row.units.get(shape, arch)
                pinned = fmt in row.pinned and shape[2] >= row.terms[fmt] and c == d
                facts = _basis(unit, d, pinned)
                if unit != arch:
                    facts["source"] = "mmasim 2.1.1 (table III of xie-mma-sim prints F = 24 for it)"
                    facts["note"] = f"this shape runs on the unit of {unit}; {facts['note']}"
                spec = _fused(unit, fmt, shape[2], d)
                yield _sync(arch, shape, fmt, fmt, c, d, spec, blocks=row.blocks.get(shape, 1), **facts)
    for arch, row in ARCHITECTURES.items():
        for shapes, fmt, results in row.emulated:
            for shape, (d, c) in product(shapes, results):
                yield _sync(
                    arch, shape, fmt, fmt, c, d, SequentialFMA(), source="valpey-smt, section 3.1",
                    note="this shape is compiled to a chain of FP32 fused multiply-adds, which does not use tensor cores",
                )  # fmt: skip


#: Rounding of PTX's modifiers of .f64; .rn and no modifier round to nearest even.
PTX_ROUNDINGS = {"rz": "rz", "rm": "rd", "rp": "ru"}


def _double_rows():
    formats = ("fp64",) * 4
    for arch, row in ARCHITECTURES.items():
        for shape in row.double:
            yield _sync(arch, shape, *formats, SequentialFMA(), note=row.double_nan)
        for shape, (modifier, rounding) in product(row.double, PTX_ROUNDINGS.items()):
            yield _sync(
                arch, shape, *formats, SequentialFMA(rounding), name=f"mma.{_shape(shape)}.{_spell(*formats)}.{modifier}",
                source=f"{KHATTAK}; ptxas, which compiles .{modifier} to DMMA.{modifier.upper()}", evidence=INFERRED,
                note=f"the modifier .{modifier} rounds every multiply-add; {row.double_nan}",
            )  # fmt: skip


def _wmma(arch: str, fmt: str, c: str, d: str) -> tuple[Accumulator, dict[str, str]]:
    """Return the accumulator of WMMA of 16-bit operands, and its evidence."""
    unit = ARCHITECTURES[arch]
    facts = _basis(arch, d, fmt in unit.pinned and c == d, f"{KHATTAK}; {MMA_SIM}", INFERRED)
    if c == d:
        return _fused(arch, fmt, 16, d), facts
    if unit.widens:
        facts = _basis(arch, "fp32", False, f"SASS of {unit.target.removesuffix('a')} (nvcc 13.0); {MMA_SIM}", INFERRED)
        facts["note"] = f"the instruction converts c to fp32, sums in fp32, and rounds the result to d; {facts['note']}"
        return WidenedDotAdd(_fused(arch, fmt, 16, "fp32"), 16), facts
    facts["note"] = f"SASS and outputs for c and d of different formats were not seen; {facts['note']}"
    return _fused(arch, fmt, 16, d), facts


def _wmma_rows():
    results = (("fp32", "fp32"), ("fp16", "fp16"), ("fp32", "fp16"), ("fp16", "fp32"))
    for arch, unit in ARCHITECTURES.items():
        for fmt in (fmt for fmt in ("fp16", "bf16") if fmt in unit.terms):
            for shape, (d, c) in product(WMMA_SHAPES, results if fmt == "fp16" else results[:1]):
                spec, facts = _wmma(arch, fmt, c, d)
                yield _sync(arch, shape, fmt, fmt, c, d, spec, prefix="wmma", **facts)
        if "tf32" in unit.terms:
            facts = _basis(arch, "fp32", bool(unit.vectors), KHATTAK, INFERRED)
            facts["note"] = f"the unit runs two chained steps with N = 4; {facts['note']}"
            spec = _fused(arch, "tf32", 8, "fp32", terms=4)
            yield _sync(arch, (16, 16, 8), "tf32", "tf32", "fp32", "fp32", spec, prefix="wmma", **facts)


def _narrow(arch: str, kind: Narrow, k: int, a: str, b: str, d: str) -> tuple[Accumulator, dict[str, str]]:
    """Return the accumulator of an instruction with narrow operands, and the evidence for it."""
    unit = ARCHITECTURES[arch]
    outputs = [o.text for o in kind.outputs if d in o.results and k in o.ks and (a == b or not o.alike)]
    evidence = INFERRED if {a, b} & {"e3m2", "e2m3"} else kind.evidence
    note = unit.floor_note(d)
    if kind.fraction_bits is not None:
        note = floor_note(unit.floors[d])
    if kind.interleaved:  # no note on the floor, which never truncates products that are multiples of 2^-32
        note = "operands are converted from fp8 to fp16, two operations over interleaved k are chained, and c is added last"
        note += "" if any(k in o.ks for o in kind.outputs) else f"; there is no data about groups of {k // 2}"
    facts = {
        "source": "; ".join([kind.source, *outputs]), "evidence": VECTORS if outputs else evidence, "note": note
    }  # fmt: skip
    if kind.interleaved:
        return InterleavedDotAdd(_fda(arch, k // 2, d)), facts
    return _fda(arch, kind.terms or k, d, kind.fraction_bits), facts


def _narrow_rows():
    for arch, row in ARCHITECTURES.items():
        for kind in row.narrow:
            for k, d, a, b in product(kind.ks, ("fp32", "fp16"), kind.formats, kind.formats):
                spec, facts = _narrow(arch, kind, k, a, b, d)
                yield _sync(arch, (16, 8, k), a, b, d, d, spec, **facts)


#: Note on the mma.sync whose ue8m0 scales have blocks of 16.
SYNC_SCALE_NOTE = (
    "PTX has it since PTX ISA 9.1 of CUDA 13.1 (mxf4nvf4 with scale_vec::4X); nvcc 13.0 (PTX ISA 9.0) rejects it"
)


def _block_scaled(arch, scaled: Scaled, k, a, b, scale, block, accumulator, evidence: str = MODEL) -> Instruction:
    prefix, path, types = "mma", "mma", _spell("fp32", a, b, "fp32")
    if group := scaled.group:
        prefix, path, types = group.prefix, group.path, _spell("fp32", a, b)
    note = floor_note(accumulator.exponent_floor)
    if not scaled.group and (block, scale) == (16, "ue8m0"):
        note = f"{SYNC_SCALE_NOTE}; {note}"
    name = f"{prefix}.m{scaled.m}n{scaled.n}k{k}.block{block}.{types}.{scale}"
    return _sync(
        arch, (scaled.m, scaled.n, k), a, b, "fp32", "fp32", accumulator, name=name, scale_format=scale, block_size=block,
        path=path, evidence=evidence, legal_shapes=scaled.free, note=note,
    )  # fmt: skip


def _block_scaled_rows():
    grouped = GroupDotFusedSum(exponent_floor=GROUPED_FLOOR)
    for arch, scaled in ((arch, row.scaled) for arch, row in ARCHITECTURES.items() if row.scaled):
        for a, b in product(F8F6F4, F8F6F4):
            evidence = INFERRED if {a, b} & {"e3m2", "e2m3"} else MODEL
            yield _block_scaled(arch, scaled, 32, a, b, "ue8m0", 32, _fda(arch, 32, "fp32"), evidence)
        for block, scale in ((32, "ue8m0"), (16, "ue8m0"), (16, "ue4m3")):
            yield _block_scaled(arch, scaled, 64, "e2m1", "e2m1", scale, block, grouped)


def _group_rows():
    """Yield a row of wgmma or tcgen05 for each combination of types, with free m and n."""
    kinds = (("tf32", 8, ("fp32",)), ("fp16", 16, ("fp32", "fp16")), ("bf16", 16, ("fp32",)))
    for arch, group in ((arch, row.group) for arch, row in ARCHITECTURES.items() if row.group):
        for fmt, k, results in kinds:
            for d in results:
                facts = {"largest_input_scale": group.input_scale, **_basis(arch, d, False)}
                yield _group(arch, group, k, fmt, fmt, d, _fda(arch, k, d), **facts)
        for a, b in group.mixed:
            facts = {"largest_input_scale": group.input_scale, **_basis(arch, "fp32", False, otherwise=INFERRED)}
            yield _group(arch, group, 16, a, b, "fp32", _fda(arch, 16, "fp32"), **facts)
        for kind in group.narrow:
            for k, d, a, b in product(kind.ks, ("fp32", "fp16"), kind.formats, kind.formats):
                spec, facts = _narrow(arch, kind, k, a, b, d)
                yield _group(arch, group, k, a, b, d, spec, **facts)


def _group(arch, group: Group, k, a, b, d, accumulator, suffix="", **facts) -> Instruction:
    name = f"{group.prefix}.m64n8k{k}.{_spell(d, a, b)}{suffix}"
    shapes = group.integer_shapes if d == "s32" else group.shapes
    facts |= {"name": name, "prefix": group.path, "legal_shapes": shapes, "usual": True}
    return _sync(arch, (64, 8, k), a, b, d, d, accumulator, **facts)


INTEGER_SOURCE = "PTX ISA, mma and wgmma with .s32 accumulators (exact sums that wrap around, clamped with .satfinite)"


def _integer_rows():
    kinds = ((arch, *kind) for arch, row in ARCHITECTURES.items() for kind in row.integer)
    for arch, shapes, formats in kinds:
        for shape, a, b, saturate in product(shapes, formats, formats, (False, True)):
            m, n, k = shape
            name = f"mma.m{m}n{n}k{k}.s32.{a}.{b}.s32" + (".satfinite" if saturate else "")
            facts = {"name": name, "source": INTEGER_SOURCE, "evidence": "vendor document"}
            yield _sync(arch, shape, a, b, "s32", "s32", IntegerDotAdd(saturate, terms=k), **facts)
    for arch, group in ((arch, row.group) for arch, row in ARCHITECTURES.items() if row.group):
        for a, b, saturate in product(("s8", "u8"), ("s8", "u8"), (False, True)):
            suffix, spec = ".satfinite" if saturate else "", IntegerDotAdd(saturate, terms=32)
            yield _group(arch, group, 32, a, b, "s32", spec, suffix, source="PTX ISA", evidence="vendor document")


def rows() -> list[Instruction]:
    """Return all NVIDIA rows."""
    parts = (
        _sync_rows(), _double_rows(), _wmma_rows(), _narrow_rows(), _block_scaled_rows(), _group_rows(), _integer_rows(),
    )  # fmt: skip
    return [row for part in parts for row in part]
