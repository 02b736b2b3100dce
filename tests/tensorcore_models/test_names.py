"""Other spellings of instructions, devices and formats; instructions explained."""

from pathlib import Path

import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm import get_method
from tensorcore_models.catalogue import architectures, canonical_device, find_instructions
from tensorcore_models.catalogue.names import instruction_query
from tensorcore_models.catalogue.not_modelled import NOT_MODELLED
from tensorcore_models.catalogue.nvidia import PTX_NAMES
from tensorcore_models.formats import FORMATS, INTEGER_FORMATS, format_family, get_format, operand_format

ROWS = tcm.list_instructions()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("HMMA.16816.F32 sm_90", ["hopper:mma.m16n8k16.f32.f16.f16.f32"]),
        ("a100:hmma.16816.f32.bf16", ["ampere:mma.m16n8k16.f32.bf16.bf16.f32"]),
        ("A100 HMMA.1688.F32.TF32", ["ampere:mma.m16n8k8.f32.tf32.tf32.f32"]),
        ("T4 HMMA.16816.F16", []),
        ("V100 HMMA.884.F32.F32.STEP0", ["volta:mma.m8n8k4.f32.f16.f16.f32"]),
        ("h100 DMMA.16816.RZ", ["hopper:mma.m16n8k16.f64.f64.f64.f64.rz"]),
        ("h100 DMMA.16816", ["hopper:mma.m16n8k16.f64.f64.f64.f64"]),
        ("L40S QMMA.16832.F32.E4M3.E5M2", ["ada:mma.m16n8k32.f32.e4m3.e5m2.f32"]),
        ("QGMMA.64x16x32.F32.E4M3.E4M3", ["hopper:wgmma.m64n16k32.f32.e4m3.e4m3"]),
        ("h100 HGMMA.64x128x16.F32.BF16", ["hopper:wgmma.m64n128k16.f32.bf16.bf16"]),
        ("a100 IMMA.16832.S8.U8.SAT", ["ampere:mma.m16n8k32.s32.s8.u8.s32.satfinite"]),
        ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 RTX 4090", ["ada:mma.m16n8k16.f16.f16.f16.f16"]),
        ("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", ["hopper:wgmma.m64n128k16.f32.f16.f16"]),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32 v100", ["volta:wmma.m16n16k16.f16.f16.f16.f32"]),
        (
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
            ["rtx_blackwell:mma.m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"],
        ),
        (
            "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X",
            ["blackwell:tcgen05.mma.m128n8k64.block32.f32.e2m1.e2m1.ue8m0"],
        ),
        ("gfx942 v_mfma_f32_16x16x16f16", ["cdna3:v_mfma_f32_16x16x16_f16"]),
        ("__builtin_amdgcn_mfma_f32_16x16x16f16 MI250X", ["cdna2:v_mfma_f32_16x16x16f16"]),
        ("_tile_dpbf16ps", ["x86:tdpbf16ps.m16n16k32.f32.bf16.bf16.f32"]),
        ("_mm512_dpbf16_ps", ["x86:vdpbf16ps.k2.f32.bf16.bf16.f32"]),
    ],
)  # fmt: skip
def test_spellings(text, names):
    if not names:
        with pytest.raises(ValueError, match="no instruction matches all of"):
            find_instructions(text)
        return
    assert [str(row) for row in find_instructions(text)] == names
    assert [str(row) for row in find_instructions(text.swapcase())] == names


@pytest.mark.sweep(56)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_row_is_found_by_its_name_in_any_case(row):
    assert row in find_instructions(str(row).upper())
    assert tcm.get_instruction(row.arch.upper(), row.name.upper()) == row


def test_every_ptx_row_is_found_by_its_ptx_spelling():
    ptx = {name: PTX_NAMES.get(name, name) for row in ROWS for name in (row.a_format, row.d_format, row.b_format)}
    for row in ROWS:
        if row.path == "wgmma":
            full = row.name.replace("wgmma.", "wgmma.mma_async.sync.aligned.")
        elif row.path == "mma" and row.scale_format is None:
            rounding = f"{row.name[-2:]}." if row.name[-3:] in (".rz", ".rm", ".rp") else ""
            full = f"mma.sync.aligned.m{row.m}n{row.n}k{row.k}.row.col.{rounding}" + ".".join(
                ptx.get(f, f) for f in (row.d_format, row.a_format, row.b_format, PTX_NAMES.get(row.c_format, row.c_format))
            ) + (".satfinite" if row.name.endswith("satfinite") else "")  # fmt: skip
        else:
            continue
        assert tcm.get_instruction(row.arch, full) == row, full


@pytest.mark.parametrize(
    ("name", "known"),
    [("H100", "h100"), ("NVIDIA H100 PCIe", "h100"), ("A100-SXM4-80GB", "a100"), ("sm_90a", "hopper"), ("sm86", "ampere"),
     ("compute_100", "blackwell"), ("gfx90a", "cdna2"), ("RTX 4060", "rtx4060"), ("AMD Instinct MI300X", "mi300x"),
     ("Rtx-A6000", "rtx_a6000"), ("Ascend 910B3", "910b3")],
)  # fmt: skip
def test_devices(name, known):
    assert canonical_device(name) == known


@pytest.mark.parametrize("name", ["RTX 6000 Ada", "h1000", "", "nvidia", "sm_21", "RTX 4060 Ti Super"])
def test_devices_that_are_not_known_are_not_guessed(name):
    with pytest.raises(ValueError, match="unknown architecture|not modelled"):
        canonical_device(name)


@pytest.mark.parametrize(
    ("alias", "formats"),
    [("half", ("fp16",)), ("Half", ("fp16",)), ("E4M3", ("e4m3fn", "e4m3fnuz")), ("torch.float8_e4m3fn", ("e4m3fn",)),
     ("float8_e5m2", ("e5m2",)), ("bfloat16", ("bf16",)), ("fp8_e4m3", ("e4m3fn",)), ("fp9", ()), ("e4m3fnuz", ("e4m3fnuz",))],
)  # fmt: skip
def test_aliases_of_formats(alias, formats):
    assert format_family(alias) == formats


def test_every_format_is_known_by_its_own_names():
    for row in (*FORMATS.values(), *INTEGER_FORMATS.values()):
        assert get_format(row.name) is row and get_format(row.name.upper()) is row
        assert row.name == "e4m3" or operand_format(row.name) is row
    for row in FORMATS.values():
        if row.dtype_name and not row.padding_bits:
            for reading in (get_format, operand_format):
                assert reading(f"ml_dtypes.{row.dtype_name}") is row
            assert get_format(row.dtype_name) is row


@pytest.mark.parametrize("name", ["fp8", "FP6"])
def test_a_family_is_no_encoding(name):
    with pytest.raises(ValueError, match=f"'{name}' stands for several formats: give one of e"):
        get_format(name)


@pytest.mark.parametrize("name", ["e4m3", "E4M3", "float8_e4m3", "torch.float8_e4m3fn", "f8e4m3"])
def test_e4m3_is_what_machine_learning_calls_so_where_operands_are_named(name):
    assert operand_format(name) is FORMATS["e4m3fn"]
    assert tcm.default_instruction("ada", name).a_format == "e4m3fn"
    assert get_method(f"fp8:format={name}").formats[0] == "e4m3fn"


def test_e4m3_among_the_formats_has_infinities():
    assert get_format("e4m3") is get_format("e4m3_ieee") is operand_format("e4m3_ieee") and get_format("e4m3").has_inf
    assert np.isinf(tcm.decode(tcm.encode(np.float32(448), "e4m3"), "e4m3"))
    assert tcm.MatrixEngine(tcm.FusedDotAdd(4, 24), a_format="e4m3").formats[0].has_inf


def test_a_device_and_a_format():
    rows = find_instructions("H100 fp8")
    assert {row.arch for row in rows} == {"hopper"} and {row.a_format for row in rows} == {"e4m3fn", "e5m2"}
    assert find_instructions("fp8 H100") == rows


def test_unknown_names_suggest():
    with pytest.raises(ValueError, match="unknown name 'fp9'; did you mean fp8"):
        find_instructions("fp9")
    with pytest.raises(ValueError, match="did you mean .*h100"):
        find_instructions("h10")
    with pytest.raises(ValueError, match="no instruction matches all of 'a100 fp8'"):
        find_instructions("a100 fp8")
    with pytest.raises(ValueError, match="choose one of mma.m16n8k16.f32"):
        tcm.get_instruction("h100", "hmma")
    assert instruction_query("...") is None and instruction_query("mma.sync.nonsense") is None


@pytest.mark.parametrize(
    ("text", "arch"),
    [("RTX 5090", "rtx_blackwell"), ("NVIDIA GeForce RTX 4080", "ada"), ("rtx3060", "ampere"), ("L4", "ada"), ("H20", "hopper"),
     ("NVIDIA A800-SXM4-80GB", "ampere"), ("MI308X", "cdna3"), ("AMD Instinct MI325X", "cdna3"), ("V100S", "volta"),
     ("Jetson Orin", "ampere"), ("NVIDIA Jetson AGX Orin", "ampere")],
)  # fmt: skip
def test_devices_that_people_type(text, arch):
    assert {row.arch for row in tcm.list_instructions(text)} == {arch}


@pytest.mark.parametrize(
    ("text", "unit", "nearest"),
    [("Jetson Thor", "Jetson Thor", "blackwell"), ("rubin", "Rubin", "blackwell"), ("NVIDIA Vera Rubin", "Rubin", "blackwell"),
     ("310P3", "Ascend 310P", "ascend"),
     ("rdna4", "RDNA 4", None), ("gfx1201", "RDNA 4", None), ("RX 9070 XT", "RDNA 4", None), ("m5", "Apple GPUs", "apple_amx"),
     ("l20", "Ada", "ada"), ("NVIDIA L20", "Ada", "ada"), ("RTX 4070 Ti", "Ada", "ada"), ("mi355x", "CDNA4", "cdna3"),
     ("Tesla P100", "before Volta", None), ("910C", "910C", "ascend910b")],
)  # fmt: skip
def test_a_unit_that_is_not_modelled_says_what_is_near_and_what_is_missing(text, unit, nearest):
    near = "no architecture is near" if nearest is None else f"the nearest architecture is {nearest}"
    for look_up in (tcm.list_instructions, find_instructions):
        with pytest.raises(ValueError, match="not modelled") as refused:
            look_up(text)
        said = str(refused.value)
        assert unit in said and near in said and "a model needs " in said and "did you mean" not in said


def test_the_page_of_hardware_names_every_unit_that_is_not_modelled():
    page = (Path(__file__).resolve().parents[2] / "docs" / "hardware.md").read_text()
    for row in NOT_MODELLED:
        assert row.nearest is None or row.nearest in architectures(), row
        words = row.unit.replace("other ", "").replace(" GPUs", "").split(", ")
        assert all(word in page for word in words), row.unit
