"""Compiled kernels that are wrong, malformed or hostile: each ends in one line, within limits."""

import numpy as np
import pytest
from ptx_cases import GEMM, text

from tensorcore_models import compiled

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"


def kernel(body, parameters=".param .u64 x", threads=32, head=HEAD, before=".shared .align 16 .b8 s[8192];"):
    """A program of one entry."""
    registers = ".reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .pred %p<4>;"
    return f"{head}{before}\n.visible .entry k({parameters}) .reqntid {threads}\n{{ {registers}\n{body}\n}}"


def runs(body, arguments=None, grid=1, program=None, **options):
    """Run a body of instructions on an array of 64 words."""
    arguments = [np.arange(64, dtype=np.uint32)] if arguments is None else arguments
    compiled.read(program or kernel(body)).run(arguments, grid=grid, **options)
    return arguments[0]


def one_line(error, match):
    assert "\n" not in str(error.value) and match in str(error.value), str(error.value)


@pytest.mark.parametrize(("wrong", "match"), [
    ("hello", "'hello' stands outside of an entry"),
    ("", "no .target"),
    (".version 8.0\n", "no .target"),
    (kernel("ret;").replace("ret;", "ret"), "'ret' does not end"),
    (kernel("mov.b32 %q1, 0;"), "line 7: the register %q1 is not declared"),
    (kernel("bra nowhere;"), "the entry has no label nowhere"),
    (kernel("add.s32 %r1, %r2 %r3;"), "line 7: '%r3' stands between operands"),
    (kernel("add.s32 %r1, [%r2, 1;"), "'' stands between operands"),
    (kernel("@%r1 ret;"), "has an undeclared predicate"),
    (kernel(".reg .b7 %x;"), "declares no registers"),
    (kernel("mov.b32 %r99, 0;"), "the register %r99 is not declared"),
    (HEAD + ".visible .entry k(.param .u64 x) { ret;", "the entry k is not closed"),
    (HEAD + ".visible .entry k() {ret;}\n.visible .entry k() {ret;}", "the entry k is defined twice"),
    (HEAD + ".visible .entry k() {ret;}\n.visible .entry j() {ret;}", "2 entries: k, j; name one with entry="),
    (HEAD.replace("sm_90a", "sm_20") + ".visible .entry k() {ret;}", "unknown .target sm_20"),
])  # fmt: skip
def test_malformed_text(wrong, match):
    with pytest.raises(ValueError) as error:
        compiled.read(wrong + "\n")
    one_line(error, match)


def test_any_cut_of_a_real_kernel_ends_in_one_line():
    """Also with characters exchanged: only ValueError, never another exception."""
    whole, rng = text("sm_80-fp16-masked"), np.random.default_rng(0)
    for _ in range(60):
        at, mark = int(rng.integers(len(whole))), "{}[];,%@.x0 "[rng.integers(12)]
        for changed in (whole[:at], whole[:at] + mark + whole[at + 1 :]):
            try:
                program = compiled.read(changed + "\n")
                arguments = [*(np.zeros(1024, np.float16) for _ in "ab"), np.zeros(1024, np.float32), 32, 32, 32]
                program.run(arguments, limits=compiled.KernelLimits(steps=5000))
            except ValueError as error:
                assert "\n" not in str(error)


PARTED = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 8; @%p1 bra skip; "
LOAD = "ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;"


@pytest.mark.parametrize(("body", "match"), [
    ("frobnicate.b32 %r1, %r2;", "line 7: frobnicate.b32 is not modelled"),
    ("mov.b32 %r1, 0; mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1,%r1,%r1,%r1}, {%r1,%r1}, {%r1,%r1},"
     "{%r1,%r1,%r1,%r1};",
     "has [4, 2, 2, 4] registers for D, A, B and C, expected [4, 4, 2, 4]"),
    ("mov.b32 %r1, 0; mov.b64 %rd1, 0; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
     " [%r1], [%rd1], 16, [%r1], 1;", "multicast::cluster is not modelled"),
    ("tcgen05.mma.cta_group::2.kind::f16 [%r1], %rd1, %rd1, %r1, %p1;", "tcgen05.mma.cta_group::2.kind::f16 is not modelled"),
    ("mov.u64 %rd1, %clock64;", "%clock64 depends on the hardware"),
    ("mov.b32 %r1, 0; cos.approx.f32 %r1, %r1;", "are not published"),
    ("mov.u32 name, 1;", "writes to an operand that is no register"),
    ("mov.b32 %r1, 1; add.u32 r2, %r1, 1;", "writes to an operand that is no register"),
    ("mov.b32 %r1, 1; setp.lt.u32 7, %r1, 2;", "writes to an operand that is no register"),
    ("mov.b64 %rd1, 1; mov.b64 {%r1, 7}, %rd1;", "writes to an operand that is no register"),
    ("setp.lt.u32 %p1;", "compares 0 operands, expected 2"),
    ("cp.async.wait_group 999999999999999999999;", "waits for a number of groups that is no constant"),
    ("vprintf %r1;", "vprintf is not modelled"),
    ("mov.b32 %r1, 0; tcgen05.mma.cta_group::2.kind::f16 [%r1], %rd1, %rd2, %r1, %p1;", "is not modelled"),
])  # fmt: skip
def test_what_is_not_known_is_refused_by_name(body, match):
    with pytest.raises(compiled.Refused) as error:
        runs(body)
    one_line(error, match)


def test_an_unknown_instruction_that_is_not_reached_refuses_nothing():
    body = "mov.b32 %r1, 1; setp.eq.b32 %p1, %r1, 2; @%p1 frobnicate.b32 %r1, %r2; ret;"
    program = compiled.read(kernel(body))
    assert program.unknown == {"frobnicate.b32": 7}
    program.run([np.zeros(1)])


@pytest.mark.parametrize(("body", "match"), [
    (LOAD + "ld.global.u32 %r2, [%rd2+240];", "thread (4, 0, 0) of block (0, 0, 0) reads 4 bytes of global memory at bytes"
     " 256 and on of argument 0 (x), which has 256"),
    (LOAD + "st.global.u32 [%rd2+8192], %r1;", "writes 4 bytes of global memory at address"),
    (LOAD + "ld.global.u32 %r2, [%rd2+2];", "which is no multiple of 4"),
    ("mov.b64 %rd1, 64; ld.global.u32 %r2, [%rd1];", "in none of the arguments"),
    ("mov.b64 %rd1, 64; ld.u32 %r2, [%rd1];", "which is in no memory"),
    ("mov.u32 %r1, %tid.x; mov.b32 %r2, 300000; st.shared.u32 [%r2], %r1;", "of shared memory, which has"),
    (LOAD + "st.global.u32 [%rd2], %r2;", "reads register %r2 before it is written"),
    (LOAD + "add.s32 %r3, %r2, 1; st.global.u32 [%rd2], %r3;",
     "uses register %r3, whose value depends on an unwritten register"),
    ("setp.eq.s32 %p1, %r2, 1; @%p1 ret;", "uses register %p1, whose value depends on an unwritten register"),
    ("shfl.sync.idx.b32 %r2, %r1, 0, 31, -1; st.shared.u32 [%r2], %r2;", "register %r2, whose value depends on an unwritten"),
    ("T: .branchtargets one, two; mov.u32 %r1, 2; brx.idx %r1, T; one: ret; two: ret;", "the kernel stops itself by trap"),
    ("mov.b32 %r1, 0; div.s32 %r2, %r1, %r1;", "divides an integer by zero"),
    ("trap;", "the kernel stops itself by trap"),
    ("again: bra again;", "more than 3000 steps"),
    (PARTED + "bar.sync 0, 64; skip: ret;", "24 threads wait for ever at line 7"),
    (PARTED + "shfl.sync.idx.b32 %r2, %r1, 0, 31, -1; skip: ret;", "wait for ever"),
    ("mov.b32 %r1, 1024; mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;", "not initialised"),
    ("mov.b32 %r1, 1; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];", "not allocated"),
])  # fmt: skip
def test_what_a_kernel_does_wrong_is_named_with_its_line(body, match):
    with pytest.raises(compiled.KernelFault) as error:
        runs(body, limits=compiled.KernelLimits(steps=3000))
    one_line(error, match)
    assert error.value.line == 7


def test_partial_writes_are_partial():
    body = LOAD + "setp.lt.u32 %p1, %r1, 8; @%p1 mov.b32 %r2, 7; st.global.u32 [%rd2], %r2;"
    with pytest.raises(
        compiled.KernelFault, match=r"thread \(8, 0, 0\) of block \(0, 0, 0\) reads register %r2 before"
    ):
        runs(body)
    assert runs(body, checks=False)[:10].tolist() == [7] * 8 + [0, 0]


def test_limits():
    source = kernel("ret;")
    for limits, match in (
        (compiled.KernelLimits(threads=32), "64 threads"),
        (compiled.KernelLimits(memory=100), "arrays have .* above the limit"),
    ):
        with pytest.raises(ValueError, match=match):
            runs("", program=source, grid=2, limits=limits)
    with pytest.raises(ValueError, match="characters, above the limit of 10"):
        compiled.read(source, limits=compiled.KernelLimits(text=10))
    with pytest.raises(ValueError, match="must be positive"):
        compiled.KernelLimits(steps=0)
    huge = kernel("ret;", before=".shared .align 16 .b8 big[1099511627776];")
    with pytest.raises(ValueError, match=r"above the limit|shared memory"):
        runs("", program=huge)


@pytest.mark.parametrize(("arguments", "match"), [
    ([np.zeros((4, 4))[:, ::2]], "argument 0 is not contiguous"),
    ([np.zeros(4), 1], "k has 1 parameters, got 2 arguments"),
    ([1 << 70], "cannot hold"),
    (["text"], "must be an integer"),
])  # fmt: skip
def test_wrong_arguments(arguments, match):
    with pytest.raises((ValueError, TypeError)) as error:
        runs("ret;", arguments)
    one_line(error, match)


def test_the_caller_s_arrays_survive_a_fault():
    body = LOAD + "st.global.u32 [%rd2], 5; st.global.u32 [%rd2+256], 5;"
    x = np.arange(64, dtype=np.uint32)
    with pytest.raises(compiled.KernelFault):
        runs(body, [x])
    assert np.array_equal(x, np.arange(64))
    x.setflags(write=False)
    with pytest.raises(ValueError, match="writes to argument 0"):
        runs(LOAD + "st.global.u32 [%rd2], 5;", [x])


def test_blocks_and_grids():
    program = compiled.read(kernel("ret;").replace(".reqntid 32", ""))
    with pytest.raises(ValueError, match="pass block="):
        program.run([np.zeros(1)])
    program.run([np.zeros(1)], block=7)
    with pytest.raises(ValueError, match="at most 1024 threads"):
        program.run([np.zeros(1)], block=(64, 64))
    with pytest.raises(ValueError, match="requires blocks"):
        compiled.read(kernel("ret;")).run([np.zeros(1)], block=64)


def test_lanes_that_part_meet_again():
    body = (
        LOAD
        + """and.b32 %r3, %r1, 3; mov.b32 %r4, 0;
    loop: setp.ge.u32 %p1, %r4, %r3; @%p1 bra out; add.s32 %r4, %r4, 1; bra loop;
    out: shfl.sync.idx.b32 %r5, %r4, 3, 31, -1; mad.lo.s32 %r6, %r5, 10, %r4; st.global.u32 [%rd2], %r6;"""
    )
    assert runs(body)[:8].tolist() == [30, 31, 32, 33, 30, 31, 32, 33]


def test_a_lane_that_spins_sees_what_it_waits_for():
    body = (
        LOAD
        + """setp.eq.s32 %p1, %r1, 0; @%p1 bra wait; st.global.u32 [%rd1+252], 9; bra done;
    wait: ld.volatile.global.u32 %r3, [%rd1+252]; setp.ne.s32 %p2, %r3, 9; @%p2 bra wait; st.global.u32 [%rd1], 4; done: ret;"""
    )
    assert runs(body)[0] == 4


def test_files_and_entries(tmp_path):
    path = tmp_path / "two.ptx"
    path.write_text(kernel("ret;") + "\n.visible .entry other() .reqntid 32 { ret; }")
    assert compiled.read(path, entry="other").name == "other" and "other" in repr(
        compiled.read(str(path), entry="other")
    )
    with pytest.raises(ValueError, match="unknown entry 'third'; the text has the entries k, other"):
        compiled.read(path, entry="third")
    with pytest.raises(OSError):
        compiled.read(tmp_path / "none.ptx")


def test_shared_memory_that_nobody_wrote():
    body = LOAD + "mov.b32 %r2, 2048; ld.shared.u32 %r3, [%r2]; st.global.u32 [%rd2], %r3;"
    with pytest.raises(compiled.KernelFault, match="shared memory of which some were never written"):
        runs(body)
    assert not runs(body, checks=False)[:32].any()


def test_a_mutant_of_a_kernel_gives_other_bits():
    """What the interpreter reads matters: an offset, a rounding, a stage of the pipeline."""
    case, whole = GEMM["sm_80-bf16-kept"], text("sm_80-bf16-kept")
    a, b = case.operands(32, 32, 96)
    out = []
    for changed in (whole, whole.replace("add.f32", "add.rz.f32"), whole.replace("m8n8.x4.trans", "m8n8.x4", 1)):
        c = np.zeros((32, 32), np.float32)
        compiled.read(changed).run([a, b, c, 32, 32, 96])
        out.append(c)
    assert np.array_equal(out[0].view(np.uint32), case.predicted(a, b))
    assert (out[1] != out[0]).any() and (out[2] != out[0]).any()


def test_what_nobody_needs_may_be_unwritten():
    """Half of a warp loads, all of it shuffles and adds, the first lane stores: what compilers make of reductions."""
    x = np.arange(64, dtype=np.uint32)
    body = (
        LOAD + "setp.lt.u32 %p1, %r1, 2; @%p1 ld.global.u32 %r2, [%rd2+4]; shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;"
        "add.u32 %r4, %r2, %r3; setp.eq.u32 %p2, %r1, 0; @%p2 st.global.u32 [%rd2], %r4;"
    )
    runs(body, [x])
    assert x[0] == 1 + 2
    with pytest.raises(compiled.KernelFault, match=r"thread \(2, 0, 0\) .* depends on an unwritten register"):
        runs(body.replace("eq.u32 %p2, %r1, 0", "ne.u32 %p2, %r1, 7"), [x])


def test_branches_by_a_table():
    x = np.zeros(64, np.uint32)
    body = (
        LOAD + "T: .branchtargets zero, one, two; rem.u32 %r2, %r1, 3; mov.u32 %r3, 0; brx.idx.uni %r2, T;"
        "zero: mov.u32 %r3, 10; bra done; one: mov.u32 %r3, 11; bra done; two: mov.u32 %r3, 12;"
        "done: st.global.u32 [%rd2], %r3;"
    )
    runs(body, [x])
    assert np.array_equal(x[:32], 10 + np.arange(32) % 3)
    with pytest.raises(ValueError, match="a table that .branchtargets declared before it"):
        compiled.read(kernel("mov.u32 %r1, 0; brx.idx %r1, T; T: .branchtargets a; a: ret;"))
