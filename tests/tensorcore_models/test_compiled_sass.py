"""SASS beside PTX: counts, contraction by ptxas, and what counts cannot tell."""

import importlib.util
import subprocess
from pathlib import Path

import pytest
from ptx_cases import text

from tensorcore_models import compiled
from tensorcore_models.compiled.sass import beside_sass, disassembled

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
BODY = """.visible .entry k(.param .u64 x) .reqntid 32
{ .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f<6>;
  ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3]; ld.global.f32 %f2, [%rd3+128]; ld.global.f32 %f3, [%rd3+256];
  mul.f32 %f4, %f1, %f2; add.f32 %f5, %f4, %f3; st.global.f32 [%rd3], %f5; ret; }
"""


def sass(*opcodes, name="k"):
    """Lines as nvdisasm writes them."""
    lines = [f"        /*{16 * i:04x}*/                   {opcode} R1, R2, R3 ;" for i, opcode in enumerate(opcodes)]
    return "\n".join([f'\t.section\t.text.{name},"ax",@progbits', *lines])


@pytest.mark.parametrize(("opcodes", "verdict", "reason"), [
    (("FMUL", "FADD.FTZ"), "agree", "kept every"),
    (("FFMA",), "contracted", "1 of 1 FADD and 1 FMUL became FFMA"),
    (("@P0 FMUL", "@!P1 FADD", "FMUL", "FADD"), "repeated", "2 times"),
    (("FMUL",), "unknown", "no contraction explains"),
])  # fmt: skip
def test_counts(opcodes, verdict, reason):
    found = beside_sass(compiled.read(HEAD + BODY), sass(*opcodes, "MOV"))
    assert found.verdict == verdict and reason in found.reason
    assert found.counts["FMUL"][0] == 1 == found.counts["FADD"][0]


def test_what_is_written_out_says_nothing():
    body = BODY.replace("add.f32 %f5", "div.rn.f32 %f5")
    found = beside_sass(compiled.read(HEAD + body), sass("FMUL", "FFMA", "FFMA"))
    assert found.verdict == "unknown" and "div.rn.f32" in found.reason


def test_the_function_of_the_entry_is_counted():
    both = sass("FMUL", "FADD", "HFMA2.MMA", name="k") + "\n" + sass("FFMA", "HMMA.16816.F32", name="k_other")
    assert beside_sass(compiled.read(HEAD + BODY), both).verdict == "agree"
    with pytest.raises(ValueError, match="no instructions of k"):
        beside_sass(compiled.read(HEAD + BODY), sass("FMUL", name="other"))


def test_matrix_instructions_are_counted_by_kind():
    for name, opcode in (
        ("sm_80-bf16-folded", "HMMA.16816.F32.BF16"), ("sm_90-tf32", "HGMMA.64x16x8.F32.TF32"), ("sm_100-fp8", "UTCQMMA")
    ):  # fmt: skip
        program = compiled.read(text(name))
        ((ptx, made),) = beside_sass(program, sass(*[opcode] * 4, name="gemm")).counts.values()
        assert ptx == made == 4


def test_a_text_needs_no_tool(tmp_path):
    (tmp_path / "k.sass").write_text(sass("FMUL", "FADD"))
    assert "FMUL" in disassembled(tmp_path / "k.sass")
    (tmp_path / "k.cubin").write_bytes(b"\x7fELF and no more")
    with pytest.raises(ValueError, match="nvdisasm"):
        disassembled(tmp_path / "k.cubin")


@pytest.mark.parametrize(("options", "verdict"), [((), "contracted"), (("--fmad=false",), "agree")])
def test_ptxas_contracts_unless_told_otherwise(options, verdict, tmp_path):
    """Triton's ptxas and nvdisasm on a product and an addition without roundings."""
    found = importlib.util.find_spec("triton")
    if found is None:
        pytest.skip("triton, which ships ptxas and nvdisasm, is not installed: pip install 'mpgemm[triton]'")
    ptxas = Path(found.submodule_search_locations[0]) / "backends" / "nvidia" / "bin" / "ptxas"
    (tmp_path / "k.ptx").write_text(HEAD + BODY)
    cubin = tmp_path / "k.cubin"
    subprocess.run([ptxas, "-arch=sm_80", *options, tmp_path / "k.ptx", "-o", cubin], check=True)
    assert beside_sass(compiled.read(HEAD + BODY), disassembled(cubin)).verdict == verdict
