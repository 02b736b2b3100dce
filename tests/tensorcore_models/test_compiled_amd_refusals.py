"""AMDGCN kernels that are wrong, malformed or hostile: each ends in one line, within limits; waits and races are found."""

import re
import struct

import numpy as np
import pytest
from amd_cases import GEMM, text
from amd_text import LOAD, STORE, kernel

from tensorcore_models import compiled
from tensorcore_models.compiled.amdgcn import code_object


def runs(body, arguments=None, grid=1, **options):
    """Run a body of instructions on an array of 64 words."""
    arguments = [np.arange(64, dtype=np.uint32)] if arguments is None else arguments
    facts = {name: options.pop(name) for name in ("local", "threads") if name in options}
    compiled.read(kernel(body, len(arguments), **facts)).run(arguments, grid=grid, **options)
    return arguments[0]


def one_line(error, match):
    assert "\n" not in str(error.value) and match in str(error.value), str(error.value)


@pytest.mark.parametrize(("wrong", "match"), [
    (kernel("  s_branch nowhere"), "line 4: the text has no label nowhere"),
    (kernel("  v_mov_b32_e32 v0, v[1:0]"), "line 4: v[1:0] are not registers"),
    (kernel("  v_mov_b32_e32 v256, v1"), "line 4: v[256:256] are not registers"),
    (kernel("  v_mov_b32_e32 v0, }"), "line 4: '}' is not an operand"),
    (kernel("  s_branch 12"), "line 4: a branch needs one label"),
    (kernel("a:\na:"), "line 5: the label a is defined twice"),
    (kernel("").replace("k:\n", ""), "the text has no code for the kernel k"),
    (kernel("").replace(".end_amdhsa_kernel", ""), "ends within .amdhsa_kernel"),
    (kernel("").replace("gfx942", "gfx1100"), "unknown processor gfx1100"),
    (kernel("").replace(".offset: 0", ".offset: no"), "argument 0 of k has no offset and size in the metadata"),
    ("\n.amdgcn_target nothing", "no .amdgcn_target"),
])  # fmt: skip
def test_malformed_text(wrong, match):
    with pytest.raises(ValueError) as error:
        compiled.read(wrong + "\n")
    one_line(error, match)


@pytest.mark.full
def test_any_cut_of_a_real_kernel_ends_in_one_line():
    """Also with characters exchanged: only ValueError, never another exception."""
    whole, rng = text("fp16-16x16"), np.random.default_rng(0)
    for _ in range(40):
        at, mark = int(rng.integers(len(whole))), "[]:,v9s0x "[rng.integers(10)]
        for changed in (whole[:at], whole[:at] + mark + whole[at + 1 :]):
            try:
                program = compiled.read(changed + "\n")
                arguments = [*(np.zeros(1024, np.float16) for _ in "ab"), np.zeros(1024, np.float32), 32, 32, 32]
                program.run(arguments, limits=compiled.KernelLimits(steps=3000))
            except ValueError as error:
                assert "\n" not in str(error)


@pytest.mark.parametrize(("body", "match"), [
    ("  v_frobnicate_b32 v1, v0", "line 4: v_frobnicate_b32 is not modelled"),
    ("  v_mov_b32_e32 v1, 0\n  v_exp_f32_e32 v1, v1", "line 5: v_exp_f32_e32: the bits of its results are not published"),
    ("  v_mov_b32_e32 v1, 0\n  v_mul_f32_e64 v1, v1, v1 mul:2", "with mul is not modelled"),
    ("  v_mov_b32_e32 v1, 0x7f800000\n  v_sub_f32_e32 v1, v1, v1", "gives NaN, whose payload is not published"),
    ("  v_mov_b32_e32 v1, 0\n  v_add_u32_e32 v1, v[2:3], v1", "needs an operand of 1 vector register"),
    ("  s_waitcnt vmcnt(1099511627776)", "waits for 1099511627776 accesses"),
    ("  s_getreg_b32 s4, hwreg(HW_REG_HW_ID)", "uses a hardware register that is not modelled"),
    ("  v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10", "is not modelled"),
    ("  s_mov_b32 s6, 1\n  s_ashr_i64 s[4:5], 0xffffffff, s6", "whose other 32 bits are not modelled"),
    ("  s_getpc_b64 s[4:5]", "needs the addresses of a code object"),
    ("  s_mov_b32 s4, 0\n  s_mov_b32 s5, 0x80040000\n  s_mov_b32 s6, 0\n  s_mov_b32 s7, 0\n"
     "  buffer_load_dword v1, off, s[4:7], 0", "the descriptor swizzles"),
])  # fmt: skip
def test_what_is_not_known_is_refused_by_name(body, match):
    with pytest.raises(compiled.Refused) as error:
        runs(body)
    one_line(error, match)


def test_an_unknown_instruction_that_is_not_reached_refuses_nothing():
    program = compiled.read(kernel("  s_branch after\n  v_frobnicate_b32 v1\nafter:"))
    assert program.unknown == {"v_frobnicate_b32": 5}
    program.run([np.zeros(1)])


def test_matrix_instructions_of_the_next_processor_have_no_rules():
    source = kernel("  v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], 0").replace("gfx942", "gfx950")
    with pytest.raises(compiled.Refused, match="the catalogue has no matrix instructions of this processor"):
        compiled.read(source).run([np.zeros(1)])


WRITE = "  v_lshlrev_b32_e32 v6, 2, v0\n  ds_write_b32 v6, v0\n"
LATE = "  s_waitcnt lgkmcnt(0)\n  ds_write_b32 v6, v0 offset:512\n  s_barrier\n"  # no wait for the second one
OTHER = "  v_xor_b32_e32 v7, 0x100, v6\n  ds_read_b32 v8, v7\n  s_waitcnt lgkmcnt(0)\n"  # the other wave's word


@pytest.mark.parametrize(("body", "match"), [
    ("  s_load_dwordx2 s[4:5], s[0:1], 0x0\n  s_mov_b32 s6, s4", "line 5: wave 0 of block (0, 0, 0) uses s4 before a wait for"
     " scalar memory (lgkmcnt)"),
    (LOAD.replace("  s_waitcnt vmcnt(0)\n", "") + "  v_add_u32_e32 v1, 1, v1", "uses v1 before a wait for vector memory"),
    (LOAD.replace("vmcnt(0)", "vmcnt(1)") + "  v_add_u32_e32 v1, 1, v1", "uses v1 before a wait for vector memory"),
    (WRITE + "  ds_read_b32 v8, v6\n  v_mov_b32_e32 v9, v8", "uses v8 before a wait for local memory (lgkmcnt)"),
    (WRITE + "  s_waitcnt lgkmcnt(0)\n" + OTHER, "thread (0, 0, 0) of block (0, 0, 0) reads shared memory that wave 1 wrote,"
     " and nothing orders the two: a race"),
    (WRITE + "  s_barrier\n" + OTHER, "reads shared memory that wave 1 wrote"),
    (WRITE + LATE + OTHER.replace("v7\n", "v7 offset:512\n", 1),
     "reads shared memory that wave 1 wrote"),
    ("  v_mov_b32_e32 v6, 16\n  ds_read_b32 v8, v6", "of shared memory of which some were never written"),
    ("  v_mov_b32_e32 v6, 0x20000\n  ds_write_b32 v6, v0", "at 131072 of local (LDS) memory, which has 65536"),
    ("  v_add_u32_e32 v1, v9, v0", "thread (0, 0, 0) of block (0, 0, 0) reads register v9 before it is written"),
    ("  s_add_u32 s4, s9, 1", "wave 0 of block (0, 0, 0) reads register s9 before it is written"),
    ("  v_writelane_b32 v9, s9, 2\n  v_readlane_b32 s8, v9, 2\n  s_add_u32 s4, s8, 1",
     "uses register s8, whose value depends on an unwritten register"),
    ("  s_mov_b64 exec, 5\n  s_andn2_b64 s[4:5], s[6:7], exec\n  s_mov_b32 s8, s4", "uses register s4, whose value depends on"),
    ("  s_and_b64 s[4:5], s[6:7], exec\n  s_cbranch_scc1 out\nout:", "uses register scc, whose value depends on"),
    ("  v_mov_b32_e32 v4, 1\n  v_mad_u64_u32 v[6:7], s[4:5], v0, v0, v[4:5]\n  v_mov_b32_e32 v8, v7", "uses register v7"),
    ("  v_mov_b32_e32 v4, 1\n  v_mad_u64_u32 v[6:7], s[4:5], v0, v0, v[4:5]\n  s_mov_b32 s6, s5", "uses register s5"),
    ("  v_mov_b32_e32 v5, 1\n  v_mad_u64_u32 v[6:7], s[4:5], v0, v0, v[4:5]", "reads register v4 before it is written"),
    (LOAD + "  global_store_dword v[2:3], v1, off offset:512", "thread (0, 0, 0) of block (0, 0, 0) writes 4 bytes of global"
     " memory at bytes 512 and on of argument 0"),
    ("again:\n  s_branch again", "more than 3000 steps"),
    ("  v_readfirstlane_b32 s4, v0\n  s_cmp_eq_u32 s4, 0\n  s_cbranch_scc1 out\n  s_sleep 1\nloop:\n  s_branch loop\nout:\n"
     "  s_barrier", "more than 3000 steps"),
    ("  s_trap 2", "the kernel stops itself by s_trap"),
])  # fmt: skip
def test_what_a_kernel_does_wrong_is_named(body, match):
    with pytest.raises(compiled.KernelFault) as error:
        runs(body, [np.arange(128, dtype=np.uint32)], threads=128, limits=compiled.KernelLimits(steps=3000))
    one_line(error, match)


def test_waits_and_barriers_make_it_right():
    body = LOAD + WRITE + "  s_waitcnt lgkmcnt(0)\n  s_barrier\n" + OTHER + "  v_mov_b32_e32 v1, v8\n" + STORE
    x = np.arange(128, dtype=np.uint32)
    assert runs(body, [x], threads=128).tolist() == [i ^ 64 for i in range(128)]


def test_waves_that_end_do_not_hold_a_barrier():
    body = "  v_readfirstlane_b32 s4, v0\n  s_cmp_eq_u32 s4, 0\n  s_cbranch_scc1 out\n  s_barrier\nout:"
    runs(body, threads=256)


@pytest.mark.parametrize("name", ["fp16-16x16", "fp16-kpack2", "fp32"])
@pytest.mark.sweep(1)
def test_every_barrier_and_every_wait_of_a_kernel_counts(name):
    """Without one of them a race or a late register is found, but where nothing depends on it; never are bits wrong."""
    case, whole = GEMM[name], text(name)
    m, n, k = 64, 64, 96
    a, b = case.operands(m, n, k)
    lines = whole.splitlines()
    places = [i for i, line in enumerate(lines) if line.strip().startswith(("s_barrier", "s_waitcnt"))]
    found = 0
    for at in places:
        c = np.zeros((m, n), np.float32)
        changed = "\n".join(line for i, line in enumerate(lines) if i != at)
        try:
            compiled.read(changed + "\n").run([a, b, c, m, n, k], grid=case.grid(m, n))
        except compiled.KernelFault:
            found += 1
        else:
            assert np.array_equal(c.view(np.uint32), case.predicted(a, b))
    assert found > len(places) // 2, (found, len(places))


def test_buffers_are_bounded_by_their_descriptor():
    """Words at or beyond the end are 0 and are not written; the array itself is longer."""
    x = np.arange(1, 129, dtype=np.uint32)
    body = """  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_mov_b32 s6, 40
  s_mov_b32 s7, 0x20000
  v_lshlrev_b32_e32 v2, 3, v0
  s_waitcnt lgkmcnt(0)
  buffer_load_dwordx2 v[4:5], v2, s[4:7], 0 offen offset:4
  s_waitcnt vmcnt(0)
  s_mov_b32 s6, 512
  buffer_store_dwordx2 v[4:5], v2, s[4:7], 0 offen
"""
    runs(body, [x])
    want = [2 + i if 4 + 4 * i < 40 else 0 for i in range(128)]
    assert x.tolist() == want


def test_a_scalar_offset_beyond_the_records_puts_every_word_out_of_range():
    """The array has the words; Tensile's kernels ask for such ones in rows that they throw away."""
    body = """  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_mov_b32 s6, 40
  s_mov_b32 s7, 0x20000
  s_movk_i32 s8, 0x80
  v_lshlrev_b32_e32 v2, 2, v0
  s_waitcnt lgkmcnt(0)
  buffer_load_dword v4, v2, s[4:7], s8 offen
  s_waitcnt vmcnt(0)
  s_mov_b32 s6, 256
  buffer_store_dword v4, v2, s[4:7], 0 offen
"""
    x = np.arange(1, 129, dtype=np.uint32)
    run = compiled.read(kernel(body)).run([x])
    assert not x[:64].any() and (x[64:] != 0).all()
    assert any("makes every word out of range" in each for each in run.assumptions)


def test_a_full_counter_lets_no_further_access_begin():
    """What was loaded is there 15 accesses later without a wait: the counter has four bits. 14 later it may not be."""

    def body(later):
        reads = [f"  ds_read_b32 v{10 + i}, v6" for i in range(later + 1)]
        return "\n".join(
            [WRITE, "  s_waitcnt lgkmcnt(0)", *reads, "  s_waitcnt lgkmcnt(15)", "  v_mov_b32_e32 v1, v10"]
        )

    run = compiled.read(kernel(body(15), local=256)).run([np.zeros(64, np.uint32)])
    assert any(each.startswith("a wave whose counter is full") for each in run.assumptions)
    with pytest.raises(compiled.KernelFault, match="uses v10 before a wait for local memory"):
        runs(body(14), local=256)


def test_wrong_arguments():
    for options, match in (
        ({"cluster": (2, 1, 1)}, "no clusters"),
        ({"block": 2048}, "at most 1024"),
        ({"shared": 1 << 20}, "65536 bytes"),
    ):
        with pytest.raises(ValueError, match=match):
            runs("", **options)
    huge = re.sub(r"(kernarg_segment_size:\s*|kernarg_size\s+)\d+", r"\g<1>1099511627776", kernel(""))
    assert huge != kernel("")
    with pytest.raises(ValueError, match="takes 1099511627776 bytes of arguments"):
        compiled.read(huge).run([np.zeros(1)])
    with pytest.raises(ValueError, match="k has 1 parameters, got 2 arguments"):
        compiled.read(kernel("")).run([np.zeros(1), 2])


def test_the_caller_s_arrays_survive_a_fault():
    body = LOAD + "  v_mov_b32_e32 v1, 7\n" + STORE + "  global_store_dword v[2:3], v1, off offset:256"
    x = np.arange(64, dtype=np.uint32)
    with pytest.raises(compiled.KernelFault):
        runs(body, [x])
    assert np.array_equal(x, np.arange(64))


# -- code objects ------------------------------------------------------------------------------------------------------------
def packed(value):
    """MessagePack of what metadata hold."""
    if isinstance(value, dict):
        return b"\xde" + struct.pack(">H", len(value)) + b"".join(packed(k) + packed(v) for k, v in value.items())
    if isinstance(value, list):
        return b"\xdc" + struct.pack(">H", len(value)) + b"".join(map(packed, value))
    return (
        b"\xda" + struct.pack(">H", len(value)) + value.encode()
        if isinstance(value, str)
        else b"\xce" + struct.pack(">I", value)
    )


def elf():
    """A code object with one kernel whose code starts at 0x1000, and whose descriptor asks for a mode."""
    names, strings = b"\0k.kd\0", b"\0"
    argument = {".offset": 0, ".size": 8, ".value_kind": "global_buffer", ".name": "x"}
    row = {".symbol": "k.kd", ".name": "k", ".max_flat_workgroup_size": 64, ".args": [argument]}
    note = packed({"amdhsa.kernels": [row]})
    note = struct.pack("<III", 7, len(note), 32) + b"AMDGPU\0\0" + note + bytes(-len(note) % 4)
    first = 3 << 12 | 1 << 18 | 1 << 23
    descriptor = (
        struct.pack("<III4xq", 64, 0, 8, 0x1000 - 0x400)
        + bytes(24)
        + struct.pack("<IIHH4x", first, 2 << 1 | 1 << 7, 8, 0)
    )
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0, 0, 4, 0x400, 64)
    parts = [(7, 0, note, 0), (3, 0, names, 0), (2, 0, symbols, 2), (1, 0x400, descriptor, 0), (3, 0, strings, 0)]
    data, headers = b"", struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    for kind, address, content, link in parts:
        headers += struct.pack("<IIQQQQIIQQ", 0, kind, 0, address, 64 + len(data), len(content), link, 0, 1, 0)
        data += content + bytes(-len(content) % 8)
    head = (
        b"\x7fELF\2\1"
        + bytes(10)
        + struct.pack("<HHIQQQIHHHHHH", 3, 224, 1, 0, 0, 64 + len(data), 0x54C, 64, 0, 0, 64, 6, 5)
    )
    return head + data + headers


DISASSEMBLY = """
k.co:	file format elf64-amdgpu

0000000000001000 <k>:
	s_load_dwordx2 s[4:5], s[0:1], 0x0                         // 000000001000: C0060100 00000000
	v_lshlrev_b32_e32 v1, 2, v0                                // 000000001008: 24020082
	s_branch 1                                                 // 00000000100C: BF820001 <k+0x14>
	s_trap 2                                                   // 000000001010: BF920002
	s_waitcnt lgkmcnt(0)                                       // 000000001014: BF8CC07F
	v_mov_b32_e32 v2, 9                                        // 000000001018: 7E040289
	global_store_dword v1, v2, s[4:5]                          // 00000000101C: DC708000 00040201
	s_endpgm                                                   // 000000001024: BF810000
"""


#: The branch by an address, as Tensile's kernels make it.
FAR = DISASSEMBLY.replace(
    """	s_branch 1                                                 // 00000000100C: BF820001 <k+0x14>
	s_trap 2                                                   // 000000001010: BF920002
	s_waitcnt lgkmcnt(0)                                       // 000000001014: BF8CC07F
""",
    """	s_getpc_b64 s[6:7]                                         // 00000000100C: BE861C00
	s_add_u32 s6, s6, 24                                       // 000000001010: 80069806
	s_addc_u32 s7, s7, 0                                       // 000000001014: 82078007
	s_setpc_b64 s[6:7]                                         // 000000001018: BE801D06
	s_trap 2                                                   // 00000000101C: BF920002
	s_trap 2                                                   // 000000001020: BF920002
	s_trap 2                                                   // 000000001024: BF920002
	s_waitcnt lgkmcnt(0)                                       // 000000001028: BF8CC07F
""",
)


def test_a_branch_by_an_address_stays_in_the_kernel(monkeypatch, tmp_path):
    monkeypatch.setattr(code_object, "disassembled", lambda data, target: FAR)
    path = tmp_path / "k.co"
    path.write_bytes(elf())
    program, x = compiled.read(path), np.zeros(64, np.uint32)
    program.run([x])
    assert (x == 9).all() and not program.unknown
    monkeypatch.setattr(code_object, "disassembled", lambda data, target: FAR.replace("s6, s6, 24", "s6, s6, 25"))
    with pytest.raises(compiled.KernelFault, match="jumps to the address 0x1029, where the kernel has no instruction"):
        compiled.read(path).run([x])


def test_a_code_object_is_taken_apart(monkeypatch, tmp_path):
    monkeypatch.setattr(code_object, "disassembled", lambda data, target: DISASSEMBLY)
    path = tmp_path / "k.co"
    path.write_bytes(elf())
    program = compiled.read(path)
    assert (program.name, program.target, [p.name for p in program.parameters]) == ("k", "gfx942", ["x"])
    facts = program.kernel.facts
    assert (facts["group_segment_fixed_size"], facts["float_round_mode_32"], facts["ieee_mode"]) == (64, 3, 1)
    x = np.zeros(64, np.uint32)
    program.run([x])
    assert (x == 9).all()


def test_code_objects_that_are_broken_end_in_one_line(monkeypatch):
    monkeypatch.setattr(code_object, "disassembled", lambda data, target: DISASSEMBLY)
    whole, rng = elf(), np.random.default_rng(1)
    for turn in range(300):
        at = int(rng.integers(len(whole)))
        broken = whole[:at] if turn % 2 else whole[:at] + bytes([int(rng.integers(256))]) + whole[at + 1 :]
        try:
            code_object.read_code_object(broken)
        except ValueError as error:
            assert "\n" not in str(error)


def test_without_a_disassembler_it_says_what_is_needed(monkeypatch, tmp_path):
    monkeypatch.setattr(code_object, "disassemblers", list)
    path = tmp_path / "k.co"
    path.write_bytes(elf())
    with pytest.raises(ValueError, match="needs an llvm-objdump of version 17 or later that knows gfx942"):
        compiled.read(path)
