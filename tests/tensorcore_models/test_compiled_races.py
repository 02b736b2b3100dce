"""Races that are planted in compiled kernels are found, each at the access that comes too early; compiled ones have none."""

import re

import numpy as np
import pytest
from ptx_cases import GEMM, text

from tensorcore_models import compiled

#: What is left out or loosened, and what is put in its place.
FAULTS = {
    "barrier": (r"bar\.sync\s+0;", lambda m: ""),
    "copies": (r"cp\.async\.wait_group\s+(\d+);", lambda m: f"cp.async.wait_group {int(m[1]) + 1};"),
    "products": (r"wgmma\.wait_group\.sync\.aligned \d+;", lambda m: ""),
    "fence": (r"wgmma\.fence\.sync\.aligned;", lambda m: ""),
    "stores": (r"tcgen05\.wait::st\.sync\.aligned;", lambda m: ""),
    "mbarrier": (r"mbarrier\.try_wait[^;]*;\s*@!complete[^;]*;", lambda m: ""),
}


def outcome(name, source):
    """The message of the fault, '' if the kernel runs."""
    case = GEMM[name]
    m, n, k = (64, 32, 192) if case.masked else (*case.tile[:2], 6 * case.tile[2])
    a, b = case.operands(m, n, k)
    c = np.zeros((m, n), np.float32)
    try:
        compiled.read(source).run([a, b, c, m, n, k], grid=case.grid(m, n))
    except compiled.KernelFault as fault:
        return str(fault)
    return ""


#: File, fault, which one in the text, what is found.
PLANTED = [
    ("sm_80-fp16-masked", "barrier", 0, "reads shared memory that a copy of warp 1 wrote"),
    ("sm_80-fp16-masked", "barrier", 2, "writes shared memory that warp 0 read"),
    ("sm_80-fp16-masked", "barrier", 5, "reads shared memory that warp 2 wrote"),
    ("sm_80-fp16-masked", "copies", 0, "reads shared memory that a copy of warp 0 wrote"),
    ("sm_90-fp16-masked", "barrier", 0, "reads shared memory that a copy of warp 1 wrote"),
    ("sm_90-fp16-masked", "barrier", 1, "writes shared memory that a wgmma of warp 0 read"),
    ("sm_90-fp16-masked", "copies", 0, "reads shared memory that a copy of warp 0 wrote"),
    ("sm_90-fp16-masked", "products", 0, "writes shared memory that a wgmma of warp 0 read"),
    ("sm_90-fp16-masked", "fence", 0, "in a wgmma without wgmma.fence after its last write"),
    ("sm_90-fp8", "barrier", 1, "reads shared memory that warp 1 wrote"),
    ("sm_100-fp16-masked", "barrier", 0, "reads shared memory that warp 0 wrote"),
    ("sm_100-fp16-masked", "copies", 1, "reads shared memory that a copy of warp 0 wrote"),
    ("sm_100-fp16-masked", "stores", 0, "writes tensor memory that a tcgen05.st of warp 0 wrote"),
    ("sm_100-fp16-masked", "mbarrier", 0, "writes shared memory that a product of tcgen05 read"),
    ("sm_100-fp16-masked", "mbarrier", 1, "reads tensor memory that a product of tcgen05 wrote"),
]


@pytest.mark.parametrize(("name", "fault", "which", "found"), PLANTED)
def test_a_planted_race_is_found(name, fault, which, found):
    source = text(name)
    pattern, change = FAULTS[fault]
    place = list(re.finditer(pattern, source))[which]
    message = outcome(name, source[: place.start()] + change(place) + source[place.end() :])
    assert found in message and re.match(r"line \d+: thread \(", message) and "\n" not in message


@pytest.mark.sweep(6)
@pytest.mark.parametrize("name", GEMM)
def test_kernels_as_compiled_have_none(name):
    assert outcome(name, text(name)) == ""


@pytest.mark.parametrize(
    ("name", "left_out", "found"),
    [
        ("sm_90-fp8-promoted", "", "C7517"),
        ("sm_90-fp8", "", ""),
        ("sm_100-fp8", "", ""),
        ("sm_100-fp8", "tcgen05.wait::ld.sync.aligned;", "scoreboard"),
    ],
)
def test_a_wait_that_ptxas_adds_is_an_assumption(name, left_out, found):
    """Triton's max_num_imprecise_acc adds results of a wgmma before any wait, CUTLASS converts what tcgen05.ld loads."""
    case = GEMM[name]
    m, n, k = (*case.tile[:2], 2 * case.tile[2])
    a, b = case.operands(m, n, k)
    source = text(name)
    assert left_out in source
    run = compiled.read(source.replace(left_out, "")).run(
        [a, b, np.zeros((m, n), np.float32), m, n, k], case.grid(m, n)
    )
    assert found in "".join(run.assumptions) and len(run.assumptions) == bool(found)


def test_a_bulk_copy_is_waited_for():
    source = text("sm_90-described")
    wait = next(re.finditer(FAULTS["mbarrier"][0], source))
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((64, 128)).astype(np.float16) for _ in "ab")
    maps = [
        x
        for each in (a, b, np.zeros((64, 64), np.float16))
        for x in (compiled.TensorMap(each, (64, 64), "128B"), 0, 0, 0, 0)
    ]
    compiled.read(source).run([*maps, 64, 64, 128])
    with pytest.raises(compiled.KernelFault, match="reads shared memory that a bulk copy wrote"):
        compiled.read(source[: wait.start()] + source[wait.end() :]).run([*maps, 64, 64, 128])


def test_races_between_bytes_of_one_word():
    """Neighbouring bytes are different places, and a barrier of some warps orders these."""
    body = """mov.u32 %r1, %tid.x; add.s32 %r2, %r1, 1024; st.shared.b8 [%r2], %r1; BARRIER
    xor.b32 %r3, %r1, 32; add.s32 %r3, %r3, 1024; ld.shared.b8 %r4, [%r3]; ret;"""
    head = ".version 8.6\n.target sm_90a\n.shared .align 16 .b8 s[8192];\n.visible .entry k() .reqntid 96\n{ .reg .b32 %r<9>;"
    body = head + ".reg .pred %p<3>; mov.u32 %r7, %tid.x; setp.ge.u32 %p1, %r7, 64; @%p1 ret;" + body + "}"
    compiled.read(body.replace("BARRIER", "bar.sync 1, 64;")).run([])
    with pytest.raises(compiled.KernelFault, match=r"thread \(0, 0, 0\).*reads shared memory that warp 1 wrote"):
        compiled.read(body.replace("BARRIER", "")).run([])
    compiled.read(body.replace("BARRIER", "")).run([], checks=False)


def test_a_number_that_two_warps_store_is_no_race_and_two_numbers_are():
    """Warps that hold the same part of a reduction store it one after the other."""
    head = ".version 8.6\n.target sm_90a\n.shared .align 16 .b8 s[128];\n.visible .entry k() .reqntid 64\n{ .reg .b32 %r<5>;"
    body = """.reg .pred %p; mov.u32 %r1, %tid.x; setp.ge.u32 %p, %r1, 32; and.b32 %r2, %r1, 31; mov.u32 %r3, %r2;
    mad.lo.u32 %r4, %r2, 4, 1024; @%p bra second; st.shared.b32 [%r4], %r2; bra met;
    second: NUMBER st.shared.b32 [%r4], %r3; met: ret; }"""
    compiled.read(head + body.replace("NUMBER", "")).run([])
    with pytest.raises(compiled.KernelFault, match=r"writes shared memory that warp \d wrote"):
        compiled.read(head + body.replace("NUMBER", "add.u32 %r3, %r2, 1;")).run([])


BULK = """.version 8.0
.target sm_90
.address_size 64
.shared .align 128 .b8 s[1024];
.visible .entry k(.param .u64 x) .reqntid 64
{ .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 4, %r2; setp.ne.u32 %p1, %r1, 0;
  st.shared.u32 [%r3], %r1; fence.proxy.async.shared::cta; bar.sync 0;
  @%p1 bra later;
  cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 256;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
later: bar.sync 0; add.u32 %r4, %r1, 5; st.shared.u32 [%r3], %r4; ret; }
"""


def test_a_bulk_copy_reads_until_its_group_is_waited_for():
    """CUTLASS's epilogue on Hopper: shared memory is used again once the copy to global memory has read it."""
    x = np.zeros(64, np.uint32)
    compiled.read(BULK).run([x])
    assert np.array_equal(x, np.arange(64))
    for change in (("wait_group.read 0", "wait_group.read 1"), ("later: bar.sync 0;", "later:")):
        with pytest.raises(compiled.KernelFault, match="writes shared memory that a bulk copy of warp 0 read"):
            compiled.read(BULK.replace(*change)).run([np.zeros(64, np.uint32)])
