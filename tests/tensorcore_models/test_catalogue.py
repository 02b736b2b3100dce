"""The catalogue against the published rows, its lookups, and its own rules."""

import itertools
import json
import re

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models.accumulators import WidenedDotAdd
from tensorcore_models.atlas.evidence import level_of, open_questions
from tensorcore_models.engines.instruction import EVIDENCE

#: How the published tables spell formats and algorithms.
SPELLING = {
    "f16": "fp16", "f32": "fp32", "f64": "fp64", "xf32": "tf32", "e4m3": "e4m3fn", "fp8": "e4m3fnuz", "bf8": "e5m2fnuz",
}  # fmt: skip
ALGORITHMS = {
    "FDA": tcm.FusedDotAdd,
    "SFMA": tcm.SequentialFMA,
    "GPS": tcm.GroupPairwiseSum,
    "GDFS": tcm.GroupDotFusedSum,
    "FDRDA": tcm.FusedDotRoundDownAdd,
    "GFDRDA": tcm.GroupFusedDotRoundDownAdd,
}
ROWS = tcm.list_instructions()
#: A published row that PTX does not have; its authors now call it invalid.
INVALID = ("rtx_blackwell", "mma.m16n8k64.block32.f32.e2m1.e2m1.f32.ue4m3")


@pytest.fixture(scope="module")
def published(shared):
    lines = (shared / "facts" / "instructions.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_every_published_row_is_there_with_its_shape_and_formats(published):
    assert len(published) == 223
    assert INVALID[1] not in {row.name for row in tcm.list_instructions(INVALID[0])}
    for row in published:
        if (row["arch"], row["name"]) == INVALID:
            continue
        ins = tcm.get_instruction(row["arch"], row["name"])
        assert (ins.m, ins.n, ins.k) == (row["m"], row["n"], row["k"])
        formats = tuple(SPELLING.get(row[x], row[x]) for x in "abcd")
        assert (ins.a_format, ins.b_format, ins.c_format, ins.d_format) == formats
        assert (ins.scale_format, ins.block_size) == (row.get("scale"), row.get("block_size"))


def test_every_published_row_has_its_arithmetic(published):
    for row in published:
        if (row["arch"], row["name"]) == INVALID:
            continue
        spec = tcm.get_instruction(row["arch"], row["name"]).accumulator
        algorithm = row["algorithm"].removeprefix("Co")
        if row["arch"] == "cdna1" and algorithm == "GPS":  # revised: the exact sum of as many products, rounded once
            assert (type(spec), spec.terms, spec.fraction_bits) == (tcm.ParametricDotAdd, row["group"], None), row[
                "name"
            ]
            continue
        if row["arch"] == "turing" and row["name"].startswith("mma.m8n8k4"):  # revised: Volta's unit
            volta = tcm.get_instruction("volta", row["name"]).accumulator
            assert spec == volta and (spec.terms, spec.fraction_bits) == (4, 23)
            continue
        assert type(spec) is ALGORITHMS[algorithm], row["name"]
        if algorithm == "FDA":
            rounding, digits, _ = row["final"].split()
            kept = spec.output_fraction_bits or (23 if rounding == "RZ" else 10)
            assert (spec.terms, spec.fraction_bits) == (row["group"], row["F"])
            assert spec.output_rounding == rounding.lower()
            assert row["d"] == "f16" or kept == int(digits)
        elif algorithm in ("GPS", "GDFS"):
            assert spec.group == row["group"]
        elif algorithm != "SFMA":
            assert (spec.terms, spec.fraction_bits) == (row["group"], row["F"])
            assert (spec.dot_fraction_bits, spec.c_fraction_bits) == (row["F_dot"], row["F_c"])
        if row.get("flush_subnormals") is not None and algorithm == "GPS":
            assert spec.flush_results == row["flush_subnormals"]


@pytest.mark.parametrize(
    ("arch", "name"),
    [
        ("hopper", "mma.m16n8k32.f32.e5m2.e4m3.f32"),
        ("blackwell", "mma.m16n8k16.f16.e4m3.e4m3.f16"),
        ("rtx_blackwell", "mma.m16n8k32.f32.e3m2.e2m3.f32"),
        ("rtx_blackwell", "mma.m16n8k32.block32.f32.e2m3.e4m3.f32.ue8m0"),
        ("blackwell", "tcgen05.mma.m64n8k32.f16.e3m2.e2m1"),
        ("blackwell", "tcgen05.mma.m128n8k32.block32.f32.e2m3.e3m2.ue8m0"),
        ("hopper", "wmma.m16n16k8.f32.tf32.tf32.f32"),
        ("ampere", "wmma.m16n16k16.f32.bf16.bf16.f32"),
        ("ampere", "mma.m16n8k32.s32.s8.u8.s32.satfinite"),
        ("hopper", "wgmma.m64n8k32.s32.u8.s8"),
        ("cdna3", "v_mfma_i32_16x16x32_i8"),
        ("ascend", "cube.m16n16k32.s32.s8.s8.s32"),
        ("arm", "bfmmla.m2n2k4.f32.bf16.bf16.f32"),
        ("x86", "vdpbf16ps.k2.f32.bf16.bf16.f32"),
        ("x86", "tdpfp16ps.m16n16k32.f32.fp16.fp16.f32"),
        ("ampere", "mma.m8n8k4.f32.f16.f16.f32"),
    ],
)
def test_rows_beyond_the_published_model(arch, name):
    ins = tcm.get_instruction(arch, name)
    assert str(ins) == f"{arch}:{name}"
    assert tcm.get_instruction(f"{arch}:{name}") == ins


@pytest.mark.sweep(105)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_rows_state_source_and_evidence(row):
    assert row.source
    assert level_of(row) in EVIDENCE


def test_rows_say_which_depend_on_vectors_that_exist():
    gpus = {
        "volta": "V100", "ampere": "A100 and A2", "ada": "RTX 1000 Ada|RTX 4060", "blackwell": "B200",
    }  # fmt: skip
    pinned = [row for row in ROWS if row.evidence == "hardware: published vectors"]
    assert {row.arch for row in pinned} == set(gpus)
    for row in pinned:
        assert re.search(f"outputs of ({gpus[row.arch]})", row.source), row
    recorded = {row.name for row in pinned if "RTX 4060" in row.source}
    fp8 = itertools.product((16, 32), ("e4m3", "e5m2"), ("e4m3", "e5m2"))
    assert recorded == {f"mma.m16n8k{k}.f32.{a}.{b}.f32" for k, a, b in fp8}


def test_rows_of_hopper_rest_on_an_own_run():
    """All rows, and no edge rule of theirs is open; those of the other architectures are as published."""
    rows = [row for row in ROWS if row.arch == "hopper"]
    own = "hardware: own run (NVIDIA H100 80GB HBM3, CUDA 13.0, driver 580.159.04, 2026-11-26)"
    assert len(rows) == 100 and {row.evidence for row in rows} == {own}
    assert not [
        row for row in rows if any("Published models give different answers" in text for text in open_questions(row))
    ]
    assert {row.accumulator.nan for row in rows if row.d_format == "fp64"} == {"dmma"}
    others = {
        row.accumulator.nan for row in ROWS if row.d_format == "fp64" and row.arch in ("ampere", "ada", "blackwell")
    }
    assert others == {"quiet"}


MEASURED_FLOORS = {
    ("ampere", "fp32"): "measured on an A100 (Hawkeye)", ("hopper", "fp32"): "measured on an H100 (Hawkeye)",
    ("hopper", "fp16"): "measured on an H100 (own run)",
}  # fmt: skip


def test_alignment_floors_by_architecture_and_result():
    """Measured on an A100 (fp32 results) and an H100; elsewhere stated by mmasim 2.1.1 and MATLAB-tensor-core."""
    floors = {
        "volta": (-131, -19), "turing": (-132, -20), "ampere": (-132, -20), "ada": (-132, -20), "hopper": (-133, -21),
        "blackwell": (-133, -21), "rtx_blackwell": (-133, -21),
    }  # fmt: skip
    for row in ROWS:
        spec = getattr(row.accumulator, "dot", row.accumulator)
        if row.arch not in floors or not isinstance(spec, tcm.FusedDotAdd | tcm.GroupDotFusedSum):
            continue
        arch = "volta" if row.arch == "turing" and row.name.startswith("mma.m8n8k4") else row.arch
        widened = isinstance(row.accumulator, WidenedDotAdd)  # whose sum is in FP32
        floor = -139 if isinstance(spec, tcm.GroupDotFusedSum) else floors[arch][row.d_format == "fp16" and not widened]
        assert spec.exponent_floor == floor, row
        d = "fp32" if widened else row.d_format
        measured = MEASURED_FLOORS.get((row.arch, d), "models only")
        if row.accumulator is not spec and not widened:
            continue  # fp8 through fp16: its products are multiples of 2^-32, which no floor cuts
        assert f"the alignment floor {floor} " in row.note
        assert measured in row.note or "models only" in row.note, row


MIXED = (("fp32", "fp16"), ("fp16", "fp32"))


@pytest.mark.parametrize("arch", ["turing", "ampere", "ada", "hopper", "blackwell", "rtx_blackwell"])
def test_wmma_of_two_formats_is_the_fp32_row_between_conversions(arch):
    rows = {r.name: r for r in ROWS if r.arch == arch and r.path == "wmma" and r.a_format == "fp16"}
    mixed = [r for r in rows.values() if (r.d_format, r.c_format) in MIXED]
    assert len(mixed) == 6 and len(rows) == 12
    for row in mixed:
        plain = rows[f"wmma.m{row.m}n{row.n}k16.f32.f16.f16.f32"]
        assert row.accumulator == WidenedDotAdd(plain.accumulator, 16), row
        rng = np.random.default_rng(1)
        a, b, c = (
            rng.integers(0, 1 << 16, s, np.uint16) for s in ((row.m, 16), (16, row.n), (row.m, row.n))
        )  # any bits, NaN among them
        x = c if row.c_format == "fp16" else (c.astype(np.uint32) << 16)
        wide = c.view(np.float16).astype(np.float32).view(np.uint32) if row.c_format == "fp16" else x
        d = plain.mma_bits(a, b, wide)
        with np.errstate(over="ignore"):
            half = np.where(
                np.isnan(d.view(np.float32)), np.uint16(0x7FFF), d.view(np.float32).astype(np.float16).view(np.uint16)
            )
        assert np.array_equal(row.mma_bits(a, b, x), d if row.d_format == "fp32" else half), row


def test_a_small_negative_wmma_result_is_negative_zero():
    """-2^-26 is exact in FP32 and below half of FP16's smallest number; Volta's rows, which nobody has seen, give +0."""
    a, b, c = np.zeros((16, 16), np.uint16), np.zeros((16, 16), np.uint16), np.zeros((16, 16), np.uint32)
    a[0, 0], b[0, 0] = 0x0400, 0x8C00  # 2^-14, -2^-12
    name = "wmma.m16n16k16.f16.f16.f16.f32"
    assert tcm.get_instruction("h100", name).mma_bits(a, b, c)[0, 0] == 0x8000
    volta = tcm.get_instruction("v100", name)
    assert volta.mma_bits(a, b, c)[0, 0] == 0 and "not seen" in volta.note


def test_free_shapes():
    for n in range(8, 257, 8):
        ins = tcm.get_instruction("h100", f"wgmma.m64n{n}k16.f32.f16.f16")
        assert (ins.m, ins.n, ins.k) == (64, n, 16)
        assert ins.accumulator == tcm.get_instruction("h100", "wgmma.m64n8k16.f32.f16.f16").accumulator
    assert tcm.get_instruction("b200", "tcgen05.mma.m128n256k32.f32.e4m3.e4m3").n == 256
    with pytest.raises(ValueError, match="expected m 64, n 8 to 256 in steps of 8"):
        tcm.get_instruction("h100", "wgmma.m64n12k16.f32.f16.f16")
    with pytest.raises(ValueError, match="m 128, n 16 to 256 in steps of 16"):
        tcm.get_instruction("b200", "tcgen05.mma.m128n24k16.f32.f16.f16")


def test_wmma_tf32_is_two_steps_of_four_on_hopper():
    assert tcm.get_instruction("hopper", "wmma.m16n16k8.f32.tf32.tf32.f32").accumulator.terms == 4
    assert tcm.get_instruction("hopper", "mma.m16n8k8.f32.tf32.tf32.f32").accumulator.terms == 8


def test_devices_are_aliases():
    assert tcm.get_instruction("h200", "mma.m16n8k16.f32.f16.f16.f32").arch == "hopper"
    assert tcm.list_instructions("gh200") == tcm.list_instructions("hopper")
    assert "fp64" in {row.a_format for row in tcm.list_instructions("a100")}
    for device in ("a2", "a30"):
        assert "fp64" not in {row.a_format for row in tcm.list_instructions(device)}
        with pytest.raises(ValueError, match="no fp64 matrix unit"):
            tcm.get_instruction(device, "mma.m8n8k4.f64.f64.f64.f64")


def test_unknown_names_list_the_near_ones():
    with pytest.raises(ValueError, match="did you mean hopper"):
        tcm.list_instructions("hoper")
    with pytest.raises(ValueError, match=r"nearest: .*mma\.m16n8k16\.f32\.f16\.f16\.f32"):
        tcm.get_instruction("hopper", "mma.m16n8k16.f32.f16.f16")
    with pytest.raises(ValueError, match="is not on volta; it is on hopper"):
        tcm.get_instruction("volta", "wgmma.m64n8k16.f32.f16.f16")
    with pytest.raises(ValueError, match="'arch:name'"):
        tcm.get_instruction("mma.m16n8k16.f32.f16.f16.f32")
    with pytest.raises(TypeError):
        tcm.list_instructions(3)


def test_default_instruction():
    assert tcm.default_instruction("h100", a_format="fp16").name == "mma.m16n8k16.f32.f16.f16.f32"
    assert tcm.default_instruction("a100", "fp16", "fp16").name == "mma.m16n8k16.f16.f16.f16.f16"
    assert tcm.default_instruction("mi300x", "bf16").name == "v_mfma_f32_16x16x16_bf16"
    with pytest.raises(ValueError, match=r"path='mma'.*path='wgmma'"):
        tcm.default_instruction("h100", "e4m3fn")
    assert tcm.default_instruction("h100", "e4m3fn", path="wgmma").accumulator.fraction_bits == 13
    with pytest.raises(ValueError, match="v100 has no instruction for bf16"):
        tcm.default_instruction("v100", "bf16")
    assert tcm.default_instruction("v100", "half", "f32") == tcm.default_instruction("v100", "fp16")
    with pytest.raises(ValueError, match="unknown format"):
        tcm.default_instruction("v100", "hulf")


def test_unpublished_arithmetic_says_so():
    row = tcm.get_instruction("tpu", "mxu.m128n128k128.f32.bf16.bf16.f32")
    assert row.evidence == "arithmetic not public"
    zeros = np.zeros((128, 128), np.uint16)
    with pytest.raises(ValueError, match="not public"):
        row.mma_bits(zeros, zeros, np.zeros((128, 128), np.uint32))
    with pytest.raises(ValueError, match="not public"):
        row.gemm(np.zeros((2, 2), np.float32), np.zeros((2, 2), np.float32), input_rounding="rne")


def test_edge_rules_by_name():
    ins = tcm.get_instruction("turing", "mma.m16n8k8.f32.f16.f16.f32")
    assert ins.accumulator.zero_operand == "skip"
    assert ins.with_rules(zero_operand="minus126").accumulator.zero_operand == "minus126"
    assert ins.with_rules(terms=4).accumulator.terms == 4
    assert ins.accumulator.terms == 8
    with pytest.raises(ValueError, match="no edge rule 'zero'; it has"):
        ins.with_rules(zero="skip")
    with pytest.raises(ValueError, match="expected one of 'skip', 'minus126', 'format_minimum'"):
        ins.with_rules(zero_operand="never")


def test_the_generated_page_is_current():
    from pathlib import Path

    from instructions_page import page

    written = Path(__file__).resolve().parents[2] / "docs" / "instructions.md"
    assert written.read_text() == page(), "run: python docs/_ext/instructions_page.py > docs/instructions.md"


def test_every_architecture_has_a_vendor_and_the_page_of_units_is_current():
    from importlib import util
    from pathlib import Path

    from tensorcore_models.catalogue import architectures
    from tensorcore_models.catalogue.vendors import UNITS

    docs = Path(__file__).resolve().parents[2] / "docs"
    place = docs / "_ext" / "units_page.py"
    spec = util.spec_from_file_location("units_page", place)
    made = util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert set(UNITS) == set(architectures())
    assert made.page() == (docs / "units.md").read_text(), "run: python docs/_ext/units_page.py > docs/units.md"
