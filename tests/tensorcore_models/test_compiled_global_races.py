"""Races in global memory: between warps of a block and between blocks; what atomic operations, fences and barriers order."""

import re

import amd_cases
import numpy as np
import pytest
from amd_text import kernel
from ptx_cases import GEMM, text

from tensorcore_models import compiled

#: %r1 is the thread, %r2 the block, %x the array, %mine the address of word 64 block + thread.
HEAD = """.version 8.6
.target sm_90a
.visible .entry k(.param .u64 x) .reqntid 64
{ .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %mine; .reg .b64 %x; .reg .pred %p<4>;
ld.param.u64 %x, [x]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 64, %r1; mad.wide.u32 %mine, %r3, 4, %x;
mov.u32 %r4, 7; mov.u32 %r5, 8;
"""


def runs(body, grid=2):
    x = np.zeros(256, np.uint32)
    return compiled.read(f"{HEAD}{body}\nret; }}").run([x], grid=grid), x


@pytest.mark.parametrize(("body", "match"), [
    ("st.global.u32 [%x+1000], %r2;", r"writes global memory that block \(\d, 0, 0\) wrote"),
    ("setp.eq.u32 %p1, %r2, 1; @%p1 bra second; st.global.u32 [%x+1000], %r4; ret; second: st.global.u32 [%x+1000], %r5;",
     r"of block \(1, 0, 0\) writes global memory that block \(0, 0, 0\) wrote, and nothing orders the two: a race"),
    ("st.global.u32 [%mine], %r4; bar.sync 0; ld.global.u32 %r6, [%x];", r"block \(1, 0, 0\) reads global memory that block"),
    ("setp.lt.u32 %p1, %r1, 32; @%p1 st.global.u32 [%mine], %r1; @!%p1 ld.global.u32 %r6, [%mine+-128];",
     r"thread \(32, 0, 0\) of block \(0, 0, 0\) reads global memory that warp 0 wrote"),
    ("shr.u32 %r6, %r1, 5; mad.wide.u32 %x, %r2, 4, %x; st.global.u32 [%x], %r6;", r"writes global memory that warp \d wrote"),
    ("atom.global.add.u32 %r6, [%x+1020], 1; st.global.u32 [%mine], %r4; ld.global.u32 %r6, [%x];", "reads global memory that"),
])  # fmt: skip
def test_accesses_that_nothing_orders(body, match):
    with pytest.raises(compiled.KernelFault, match=match) as error:
        runs(body)
    assert "\n" not in str(error.value)


MEET = (
    "st.global.u32 [%mine], %r1; {} bar.sync 0; setp.eq.u32 %p1, %r1, 0; @%p1 atom.global.add.u32 %r6, [%x+1020], 1; "
)
WAIT = "again: ld.acquire.gpu.global.u32 %r7, [%x+1020]; setp.lt.u32 %p2, %r7, 2; @%p2 bra again; "


@pytest.mark.parametrize("body", [
    "st.global.u32 [%x+1000], %r4;",  # the same number
    "st.global.u32 [%mine], %r1; ld.global.u32 %r6, [%mine];",
    "st.global.u32 [%mine], %r1; bar.sync 0; xor.b32 %r6, %r3, 32; mad.wide.u32 %mine, %r6, 4, %x; ld.global.u32 %r6, [%mine];",
    "cvt.u16.u32 %h1, %r2; mad.wide.u32 %x, %r2, 2, %x; st.global.b16 [%x], %h1;",  # halves of one word
    "red.global.add.u32 [%x], %r1;", "st.volatile.global.u32 [%x], %r2; ld.volatile.global.u32 %r6, [%x];",
])  # fmt: skip
def test_accesses_that_are_ordered_or_change_nothing(body):
    assert not [each for each in runs(body)[0].assumptions if "met by" in each]


def test_blocks_that_meet_by_atomic_operations_are_taken_to_be_ordered():
    run, _ = runs(MEET.format("") + WAIT + "ld.global.u32 %r8, [%x]; ld.global.u32 %r8, [%x+256];")
    assert any("threads met by atomic operations or fences" in each for each in run.assumptions)
    with pytest.raises(compiled.KernelFault, match="reads global memory that block"):  # only one of the two meets
        runs("setp.eq.u32 %p1, %r2, 0; st.global.u32 [%mine], %r1; @%p1 membar.gl; ld.global.u32 %r8, [%x];")


def split_k(source):
    m, n, k = 48, 80, 208
    a, b = GEMM["sm_80-fp16-masked"].operands(m, n, k)
    compiled.read(source).run([a, b, np.zeros((m, n), np.float32), m, n, k], grid=(2, 3, 3))


def test_split_k_needs_its_atomic_additions():
    source = text("sm_80-split-k")
    split_k(source)
    plain, count = re.subn(r"atom\.global[\w.]*\.add\.f32 %\w+, (\[[^]]*\]), (%\w+);", r"st.global.b32 \1, \2;", source)
    assert count
    with pytest.raises(compiled.KernelFault, match=r"of block .* writes global memory that block .* wrote"):
        split_k(plain)


def test_amd_s_split_k_needs_them_too():
    m, n, k = 48, 80, 208
    a, b = amd_cases.GEMM["fp16-masked"].operands(m, n, k)
    source = amd_cases.text("split-k")
    plain = source.replace("global_atomic_add_f32", "global_store_dword")
    for each, match in ((source, None), (plain, r"of block .* writes global memory that block .* wrote")):
        program, c = compiled.read(each), np.zeros((m, n), np.float32)
        if match is None:
            program.run([a, b, c, m, n, k], grid=(2, 3, 3))
            continue
        with pytest.raises(compiled.KernelFault, match=match):
            program.run([a, b, c, m, n, k], grid=(2, 3, 3))


def test_words_may_lie_across_others_on_amd():
    """Rows of 3 halves: two blocks store a dword and a half each, one after the other, at addresses that 4 does not divide."""
    body = """  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_mul_i32 s6, s2, 6
  v_mov_b32_e32 v1, s6
  v_mov_b32_e32 v2, s2
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v2, s[4:5]
  global_store_short v1, v2, s[4:5] offset:{}
"""
    program, x = compiled.read(kernel(body.format(4))), np.full(64, 9, np.uint16)
    program.run([x], grid=3)
    assert x[:9].tolist() == [0, 0, 0, 1, 0, 1, 2, 0, 2]
    with pytest.raises(compiled.KernelFault, match=r"writes global memory that block \(\d, 0, 0\) wrote"):
        compiled.read(kernel(body.format(6))).run([x], grid=3)
