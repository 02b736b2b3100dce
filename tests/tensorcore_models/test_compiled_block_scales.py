"""Block-scaled products of Blackwell: Triton's kernels beside the catalogue's rows, and the selectors of mma.sync."""

import numpy as np
import pytest
from ptx_cases import text

import tensorcore_models as tcm
from tensorcore_models import compiled

M, N, K = 128, 16, 128
#: File's end: (format of A and B, products of a scale, format of scales, k of an instruction).
KINDS = {"mxfp8": ("e4m3", 32, "ue8m0", 32), "mxfp4": ("e2m1", 32, "ue8m0", 64), "nvfp4": ("e2m1", 16, "ue4m3", 64)}
ROWS = {"sm_100": ("blackwell:tcgen05.mma.m128n8k", ""), "sm_120": ("rtx_blackwell:mma.m16n8k", ".f32")}


def operands(kind, seed=1):
    """(A, B by columns, scales of A, scales of B by columns) as encodings of finite numbers."""
    fmt, block, scale, _ = KINDS[kind]
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(0, 256 if fmt == "e4m3" else 16, (size, K)).astype(np.uint8) for size in (M, N))
    if fmt == "e4m3":
        a[a & 127 == 127] = b[b & 127 == 127] = 0
    low, high = (118, 137) if scale == "ue8m0" else (1, 0x7F)
    return a, b, *(rng.integers(low, high, (size, K // block)).astype(np.uint8) for size in (M, N))


def packed(x, kind):
    """Numbers of 4 bits two to a byte, the first in the low half."""
    return x if kind == "mxfp8" else x[:, ::2] | x[:, 1::2] << 4


@pytest.mark.parametrize("target", ROWS)
@pytest.mark.parametrize("kind", KINDS)
def test_triton_s_kernels_are_the_unit_s_rows(target, kind):
    fmt, block, scale, k = KINDS[kind]
    head, addend = ROWS[target]
    row = tcm.get_instruction(f"{head}{k}.block{block}.f32.{fmt}.{fmt}{addend}.{scale}")
    a, b, left, right = operands(kind)
    c = np.zeros((M, N), np.float32)
    given = [np.ascontiguousarray(packed(x, kind)) for x in (a, b)] + [left, right, c]
    program = compiled.read(text(f"{target}-{kind}"))
    program.run(given, grid=1)
    want = row.gemm_bits(a, b.T.copy(), np.zeros((M, N), np.uint32), scale_a=left, scale_b=right.T.copy())
    assert np.array_equal(c.view(np.uint32), want)
    assert len(np.unique(want)) > 1000  # the operands do not cancel to a few values
    with pytest.raises(compiled.Refused, match="which a recipe cannot hold"):
        program.recipe(given, grid=1)


#: All lanes load their registers; the scales' words are drawn, so that another byte or thread gives other bits.
SELECTED = """.version 9.1
.target sm_120a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 s, .param .u64 d) .reqntid 32
{ .reg .b32 %a<4>; .reg .b32 %b<2>; .reg .b32 %d<4>; .reg .b32 %s<2>; .reg .b32 %t, %z; .reg .b64 %p<4>;
mov.u32 %t, %tid.x; mov.b32 %z, 0;
ld.param.u64 %p0, [a]; mad.wide.u32 %p0, %t, 24, %p0; ld.param.u64 %p1, [s]; mad.wide.u32 %p1, %t, 8, %p1;
ld.param.u64 %p2, [d]; mad.wide.u32 %p2, %t, 16, %p2;
ld.global.v2.b32 {%a0, %a1}, [%p0]; ld.global.v2.b32 {%a2, %a3}, [%p0+8]; ld.global.v2.b32 {%b0, %b1}, [%p0+16];
ld.global.v2.b32 {%s0, %s1}, [%p1];
mma.sync.aligned.MODE {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%z, %z, %z, %z}, %s0, {BA, TA}, %s1, {BB, TB};
st.global.v2.b32 [%p2], {%d0, %d1}; st.global.v2.b32 [%p2+8], {%d2, %d3}; ret; }
"""
MODES = {
    1: ("m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0",
        "mma.m16n8k32.block32.f32.e4m3.e4m3.f32.ue8m0"),
    2: ("m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "mma.m16n8k64.block32.f32.e2m1.e2m1.f32.ue8m0"),
    4: ("m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
        "mma.m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"),
}  # fmt: skip


def selected(count, selector):
    opcode = SELECTED.replace("MODE", MODES[count][0])
    for name, value in zip(("BA", "TA", "BB", "TB"), selector, strict=True):
        opcode = opcode.replace(name, str(value))
    return compiled.read(opcode)


@pytest.mark.parametrize(("count", "selector"), [
    (1, (0, 0, 0, 0)), (1, (3, 1, 2, 3)), (1, (1, 0, 3, 2)), (2, (2, 1, 0, 1)), (2, (0, 0, 2, 3)), (4, (0, 1, 0, 2)),
])  # fmt: skip
def test_selectors_name_byte_and_thread(count, selector):
    """Of each four threads g: rows g and g + 8 of A in two threads, column g of B in one (PTX ISA 9.1, 9.7.15.3)."""
    row = tcm.get_instruction(f"rtx_blackwell:{MODES[count][1]}")
    rng = np.random.default_rng(count)
    registers = rng.integers(0, 1 << 32, (32, 6), dtype=np.uint32)
    if count == 1:
        raw = registers.view(np.uint8)
        raw[raw & 127 == 127] = 0
    scales = rng.integers(1, 127, (32, 8)).astype(np.uint8)
    out = np.zeros((32, 4), np.uint32)
    selected(count, selector).run([registers, scales.view(np.uint32), out.view(np.float32)], grid=1)
    per = 32 // (8 if count == 1 else 4)  # numbers in a register

    def numbers(words):
        flat = words.view(np.uint8)
        return flat if count == 1 else np.stack([flat & 15, flat >> 4], -1).reshape(-1)

    a, b = np.zeros((16, row.k), np.uint8), np.zeros((row.k, 8), np.uint8)
    left, right = np.zeros((16, count), np.uint8), np.zeros((count, 8), np.uint8)
    byte_a, thread_a, byte_b, thread_b = selector
    for lane in range(32):
        group, place = divmod(lane, 4)
        for r in range(4):
            first = per * place + (row.k // 2) * (r // 2)
            a[group + 8 * (r % 2), first : first + per] = numbers(registers[lane, r : r + 1].copy())
        for r in range(2):
            first = per * place + (row.k // 2) * r
            b[first : first + per, group] = numbers(registers[lane, 4 + r : 5 + r].copy())
        word_a, word_b = scales[lane, :4], scales[lane, 4:]
        if place // 2 == thread_a:
            left[group + 8 * (place % 2)] = word_a[byte_a : byte_a + count]
        if place == thread_b:
            right[:, group] = word_b[byte_b : byte_b + count]
    want = tcm.reference.mma_bits(row, a, b, np.zeros((16, 8), np.uint32), scale_a=left, scale_b=right)
    for lane in range(32):
        group, place = divmod(lane, 4)
        found = [int(want[group + 8 * (i // 2), 2 * place + i % 2]) for i in range(4)]
        assert out[lane].tolist() == found, lane


@pytest.mark.parametrize(
    ("count", "selector"), [(2, (1, 0, 0, 0)), (4, (0, 2, 0, 0)), (1, (4, 0, 0, 0)), (1, (0, 0, 0, 4))]
)
def test_selectors_that_name_nothing_are_refused(count, selector):
    program = selected(count, selector)
    assert [name for name in program.unknown if name.startswith("mma")]
    given = [np.zeros((32, 6), np.uint32), np.zeros((32, 2), np.uint32), np.zeros((32, 4), np.float32)]
    with pytest.raises(compiled.Refused, match="which holds none"):
        program.run(given, grid=1)
