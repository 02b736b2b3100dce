"""Generated kernels: every NVIDIA row has one, and nvcc, where there is one, compiles them for their architecture."""

import dataclasses
import os
import re
import shutil

import pytest

import tensorcore_models as tcm
from tensorcore_models.hardware.cuda.compiler import compile_nvcc
from tensorcore_models.hardware.cuda.device import kernel
from tensorcore_models.hardware.cuda.source import KERNEL_NAME, PROLOGUE, mma_text
from tensorcore_models.hardware.cuda.targets import TARGETS, architecture_of, target_of
from tensorcore_models.hardware.cuda.tcgen05_source import instruction_descriptor

ROWS = [row for arch in TARGETS for row in tcm.list_instructions(arch)]

COUNTS = {
    "volta": 15, "turing": 33, "ampere": 77, "ada": 92, "hopper": 100, "blackwell": 160, "rtx_blackwell": 138,
}  # fmt: skip
#: nvcc 13.0 rejects ue8m0 scales for 16 products, and no longer knows sm_70.
NOT_COMPILED = re.compile(r"^volta:|rtx_blackwell:mma.m16n8k64.block16.*ue8m0")


@pytest.mark.sweep(84)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_row_has_a_kernel(row):
    made = kernel(row)
    assert made.source.count(KERNEL_NAME) == 1 and made.target == TARGETS[row.arch][1]
    assert f"m{row.m}n{row.n}k{row.k}" in made.source or row.path == "tcgen05"
    assert "#include" not in made.source


def test_rows_of_other_vendors_are_refused():
    with pytest.raises(ValueError, match="NVIDIA"):
        kernel(tcm.get_instruction("cdna3:v_mfma_i32_16x16x32_i8"))


def test_instruction_texts():
    text = mma_text(tcm.get_instruction("rtx_blackwell:mma.m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"))
    assert text == "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3"
    assert "mxf4.block_scale.scale_vec::2X" in mma_text(
        tcm.get_instruction("rtx_blackwell:mma.m16n8k64.block32.f32.e2m1.e2m1.f32.ue8m0")
    )
    saturating = tcm.get_instruction("ampere:mma.m16n8k32.s32.s8.u8.s32.satfinite")
    assert mma_text(saturating) == "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32"


def test_what_is_generated_and_what_is_refused():
    counts = {}
    for row in ROWS:
        assert kernel(row)
        counts[row.arch] = counts.get(row.arch, 0) + 1
    assert counts == COUNTS and sum(counts.values()) == len(ROWS)
    nvfp4 = tcm.get_instruction("rtx_blackwell:mma.m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3")
    with pytest.raises(
        ValueError, match="ue4m3 scales for 32 products, expected ue8m0 for 32 .*, or ue8m0 or ue4m3 for 16"
    ):
        kernel(dataclasses.replace(nvfp4, block_size=32))


def test_instruction_descriptor_fields():
    row = tcm.get_instruction("blackwell:tcgen05.mma.m128n16k32.f32.e5m2.e2m1")
    descriptor = instruction_descriptor(row)
    fields = [descriptor >> low & (1 << width) - 1 for low, width in ((4, 2), (7, 3), (10, 3), (17, 6), (24, 5))]
    assert fields == [1, 1, 5, 16 >> 3, 128 >> 4]


@pytest.mark.parametrize(
    ("capability", "arch"),
    [((7, 0), "volta"), ((7, 5), "turing"), ((8, 0), "ampere"), ((8, 6), "ampere"), ((8, 9), "ada"), ((9, 0), "hopper"),
     ((10, 0), "blackwell"), ((10, 3), "blackwell"), ((12, 0), "rtx_blackwell")],
)  # fmt: skip
def test_architectures_of_compute_capabilities(capability, arch):
    assert architecture_of(capability) == arch
    major, minor = capability
    assert target_of(arch, capability) == f"sm_{major}{minor}" + ("a" if major >= 9 else "")
    with pytest.raises(ValueError, match="compute capability 6.1"):
        architecture_of((6, 1))


def nvcc():
    path = shutil.which("nvcc")
    if path is None:
        pytest.skip("no nvcc on PATH: the generated kernels are not compiled here")
    return path


def compiled(rows, folder):
    """Compile kernels of one architecture as one file."""
    parts = [PROLOGUE]
    for number, row in enumerate(rows):
        made = kernel(row)
        parts.append(made.source.replace(PROLOGUE, "").replace(KERNEL_NAME, f"kernel_{number}"))
    return compile_nvcc("\n".join(parts), made.target, nvcc())


def compilable(arch):
    """The rows of an architecture that nvcc takes; those of tcgen05 on one CTA and on a pair."""
    rows = [row for row in tcm.list_instructions(arch) if not NOT_COMPILED.search(str(row))]
    return rows + [row.with_shape(256, 32) for row in rows if row.path == "tcgen05"]


def representatives(arch):
    """One row for each path, m and pair of operand widths."""
    found = {}
    for row in compilable(arch):
        widths = tuple(tcm.get_format(f).bits for f in (row.a_format, row.b_format))
        found.setdefault((row.path, row.m, widths, row.scale_format, row.block_size), row)
    return list(found.values())


@pytest.mark.sweep(1)
@pytest.mark.parametrize("arch", [arch for arch in TARGETS if arch != "volta"])
def test_nvcc_compiles_each_kind(arch, tmp_path):
    assert compiled(representatives(arch), tmp_path)[:4] == b"\x7fELF"


@pytest.mark.slow
@pytest.mark.parametrize("arch", [arch for arch in TARGETS if arch != "volta"])
def test_nvcc_compiles_every_row(arch, tmp_path):
    assert compiled(compilable(arch), tmp_path)[:4] == b"\x7fELF"


WIDE = {
    "hopper": ("wgmma.m64n24k16.f32.f16.f16", "wgmma.m64n256k16.f32.f16.f16"),
    "blackwell": (
        "tcgen05.mma.m64n256k16.f32.f16.f16", "tcgen05.mma.m256n256k16.f32.f16.f16",
        "tcgen05.mma.m128n40k32.block32.f32.e4m3.e4m3.ue8m0", "tcgen05.mma.m256n256k64.block16.f32.e2m1.e2m1.ue4m3",
    ),
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("arch", WIDE)
def test_nvcc_compiles_wide_shapes(arch, tmp_path):
    assert compiled([tcm.get_instruction(arch, name) for name in WIDE[arch]], tmp_path)[:4] == b"\x7fELF"


def test_a_rejected_kernel_says_why():
    with pytest.raises(RuntimeError, match="did not compile"):
        compile_nvcc("this is no CUDA", "sm_80", nvcc())


def test_without_a_compiler_the_message_says_what_is_missing(monkeypatch):
    from tensorcore_models.hardware.cuda import compiler

    monkeypatch.setattr(compiler, "_nvrtc", lambda: None)
    monkeypatch.setitem(os.environ, "PATH", "")
    with pytest.raises(OSError, match="libnvrtc"):
        compiler.compile_source.__wrapped__("", "sm_80")
