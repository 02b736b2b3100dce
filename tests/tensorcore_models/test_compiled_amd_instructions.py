"""Each AMDGCN instruction against plain Python, on random and special operands."""

import inspect
from fractions import Fraction

import numpy as np
import pytest
from amd_text import kernel
from scalar_amd import FLOATS, INTEGERS, NUMBERS, SCALARS, rounded, value

from tensorcore_models import compiled

_EDGES = [0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x0C080400, 0x00100004]
WORDS = {"f16": np.uint32, "f32": np.uint32, "f64": np.uint64, "u32": np.uint32}


def arity(function):
    kinds = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    return 3 if kinds[0].kind is inspect.Parameter.VAR_POSITIONAL else len(kinds)


def lanes_of(body, inputs, result, block=64, **facts):
    """What each of 64 lanes computes from its operands: arrays of one word each, wide ones in register pairs."""
    wide = [x.dtype.itemsize == 8 for x in inputs]
    lines = [f"  s_load_dwordx2 s[{8 + 2 * i}:{9 + 2 * i}], s[0:1], {8 * i:#x}" for i in range(len(inputs) + 1)]
    lines += ["  s_waitcnt lgkmcnt(0)", "  v_lshlrev_b32_e32 v1, 2, v0", "  v_lshlrev_b32_e32 v2, 3, v0"]
    for i, big in enumerate(wide):
        where, target = ("v2", f"v[{10 + 2 * i}:{11 + 2 * i}]") if big else ("v1", f"v{10 + 2 * i}")
        lines.append(f"  global_load_dword{'x2' if big else ''} {target}, {where}, s[{8 + 2 * i}:{9 + 2 * i}]")
    last = 8 + 2 * len(inputs)
    lines += ["  s_waitcnt vmcnt(0)", body]
    if result.itemsize == 8:
        lines.append(f"  global_store_dwordx2 v2, v[20:21], s[{last}:{last + 1}]")
    else:
        lines.append(f"  global_store_dword v1, v20, s[{last}:{last + 1}]")
    out = np.zeros(block, result)
    compiled.read(kernel("\n".join(lines), len(inputs) + 1, threads=block, **facts)).run([*inputs, out])
    return out


def drawn(count, seed):
    rng = np.random.default_rng(seed)
    found = [rng.integers(0, 1 << 32, 64, dtype=np.uint32) for _ in range(count)]
    for turn, array in enumerate(found):
        array[: len(_EDGES)] = np.roll(_EDGES, 3 * turn)
        array[len(_EDGES) : 24] &= np.uint32(63)
        array[24:28] = [0, 5, 0x80000000, 0xFFFFFFFF]  # the same in all operands
    return found


def register(i, wide=False):
    return f"v[{10 + 2 * i}:{11 + 2 * i}]" if wide else f"v{10 + 2 * i}"


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name):
    function = INTEGERS[name]
    count = 2 if function in (min, max) else arity(function)
    inputs = drawn(count, len(name))
    got = lanes_of(f"  {name} v20, {', '.join(map(register, range(count)))}", inputs, np.dtype(np.uint32))
    want = [function(*(int(x[lane]) for x in inputs)) & 0xFFFFFFFF for lane in range(64)]
    assert got.tolist() == want


def numbers(kind, seed):
    """Finite numbers of a type, near enough to each other that sums and products round."""
    rng = np.random.default_rng(seed)
    precision, exponent_bits, width = FLOATS[kind]
    bias = (1 << (exponent_bits - 1)) - 1
    fields = rng.integers(bias - 4, bias + 4, 64)
    fields[:6] = [0, 0, 1, 1, bias, bias]
    fraction = rng.integers(0, 1 << (precision - 1), 64, dtype=np.uint64)
    fraction[[0, 4]] = 0
    bits = fraction | fields.astype(np.uint64) << np.uint64(precision - 1)
    bits |= rng.integers(0, 2, 64, dtype=np.uint64) << np.uint64(width - 1)
    return bits.astype(WORDS[kind])


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name):
    source, result, function = NUMBERS[name]
    count = arity(function)
    inputs = [numbers(source, 7 * i + len(name)) for i in range(count)]
    wide = source == "f64"
    target = "v[20:21]" if result == "f64" else "v20"
    body = f"  v_mov_b32_e32 v20, 0\n  {name} {target}, {', '.join(register(i, wide) for i in range(count))}"
    got = lanes_of(body, inputs, np.dtype(WORDS[result]))
    assert got.tolist() == [function(*(int(x[lane]) for x in inputs)) for lane in range(64)]


@pytest.mark.parametrize("name", SCALARS)
def test_scalars(name):
    x, y = drawn(2, len(name))
    body = "\n".join(
        f"""  v_readlane_b32 s20, v10, {lane}
  v_readlane_b32 s21, v12, {lane}
  s_cmp_eq_u32 s20, s20
  {name} s22, s20, s21
  s_cselect_b32 s23, 1, 0
  v_writelane_b32 v20, s22, {lane}
  v_writelane_b32 v21, s23, {lane}"""
        for lane in range(64)
    )
    got = lanes_of("  v_mov_b32_e32 v20, 0\n  v_mov_b32_e32 v21, 0\n" + body, [x, y], np.dtype(np.uint64))
    for lane, bits in enumerate(got.tolist()):
        found, scc = SCALARS[name](int(x[lane]), int(y[lane]))
        assert (bits & 0xFFFFFFFF, bits >> 32) == (found & 0xFFFFFFFF, 1 if scc is None else int(scc)), (name, lane)


@pytest.mark.parametrize(("name", "held"), [
    ("v_cmp_lt_i32", lambda x, y: x - (x >> 31 << 32) < y - (y >> 31 << 32)), ("v_cmp_ge_u32", lambda x, y: x >= y),
    ("v_cmp_ne_u32", lambda x, y: x != y), ("v_cmp_eq_u16", lambda x, y: x & 0xFFFF == y & 0xFFFF),
])  # fmt: skip
def test_comparisons_and_selections(name, held):
    x, y = drawn(2, 5)
    got = lanes_of(f"  {name}_e64 s[20:21], v10, v12\n  v_cndmask_b32_e64 v20, v10, v12, s[20:21]", [x, y], x.dtype)
    assert got.tolist() == [b if held(a, b) else a for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def test_comparisons_of_numbers_with_nan():
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0], np.float32)
    x, y = (v.reshape(-1).copy() for v in np.meshgrid(special, special))
    want = {
        "lt": x < y, "eq": x == y, "nlt": ~(x < y), "lg": (x < y) | (x > y), "o": ~(np.isnan(x) | np.isnan(y)),
        "neq": ~(x == y), "nlg": ~((x < y) | (x > y)), "u": np.isnan(x) | np.isnan(y), "ge": x >= y,
    }  # fmt: skip
    for name, held in want.items():
        body = f"  v_cmp_{name}_f32_e32 vcc, v10, v12\n  v_cndmask_b32_e64 v20, 0, 1, vcc"
        got = lanes_of(body, [x.view(np.uint32), y.view(np.uint32)], np.dtype(np.uint32))
        assert np.array_equal(got != 0, held), name


@pytest.mark.parametrize(("name", "bits", "signed"), [
    (f"v_{name}_{kind}", int(kind[1:]), kind[0] == "i") for name in ("add", "sub") for kind in ("u32", "i32", "u16", "i16")
])  # fmt: skip
def test_clamped_sums_end_at_the_range_of_their_type(name, bits, signed):
    x, y = drawn(2, 5)
    got = lanes_of(f"  {name} v20, v10, v12 clamp", [x, y], x.dtype)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    def number(word):
        word &= (1 << bits) - 1
        return word - (1 << bits) if word > high else word

    ends = 0
    for lane, found in enumerate(got.tolist()):
        a, b = number(int(x[lane])), number(int(y[lane]))
        exact = a + b if "add" in name else a - b
        ends += not low <= exact <= high
        assert number(found) == min(max(exact, low), high), lane
    assert ends


def test_what_was_never_written_moves_and_is_cleared():
    """A pair kept in lanes with its upper half unwritten, a mask merged into nothing, 32 bits of a sum of 64."""
    x, y = drawn(2, 6)
    body = """  s_mov_b32 s20, 77
  v_writelane_b32 v30, s20, 3
  v_writelane_b32 v30, s21, 4
  v_readlane_b32 s22, v30, 3
  v_readlane_b32 s23, v30, 4
  s_andn2_b64 s[24:25], s[26:27], exec
  s_or_b32 s22, s22, s24
  v_mov_b32_e32 v32, s22
  v_mad_u64_u32 v[20:21], s[28:29], v10, v12, v[32:33]"""
    got = lanes_of(body, [x, y], x.dtype)
    assert got.tolist() == [(int(a) * int(b) + 77) & 0xFFFFFFFF for a, b in zip(x, y, strict=True)]


def test_a_half_that_was_never_written_stays_so_beside_one_that_was():
    """v_fma_mixlo_f16 keeps the upper half of its register: the lower one may be read, multiplied and packed."""
    x, y = (np.arange(64, dtype=np.float32).view(np.uint32) for _ in "ab")
    low = "  v_fma_mixlo_f16 v30, v10, 1.0, neg(0)\n"
    got = lanes_of(f"{low}  v_fma_mix_f32 v20, v30, 1.0, v12 op_sel_hi:[1,0,0]", [x, y], x.dtype)
    assert got.view(np.float32).tolist() == [2.0 * lane for lane in range(64)]
    got = lanes_of(f"{low}  v_pack_b32_f16 v20, v30, v30", [x, y], x.dtype)
    assert got.view(np.float16).tolist() == [float(lane // 2) for lane in range(128)]
    for whole in ("v_mov_b32_e32 v20, v30", "v_fma_mix_f32 v20, v30, 1.0, v12 op_sel:[1,0,0] op_sel_hi:[1,0,0]"):
        with pytest.raises(compiled.KernelFault, match="v30, whose value depends on an unwritten register"):
            lanes_of(f"{low}  {whole}", [x, y], x.dtype)
    upper = "  v_mov_b32_e32 v31, 0\n  v_fma_mixhi_f16 v31, v10, 1.0, neg(0)\n"
    got = lanes_of(f"{low}{upper}  v_bfi_b32 v20, 0xffff, v12, v31", [x, y], x.dtype)
    assert (got >> 16).astype(np.uint16).view(np.float16).tolist() == list(range(64))


def test_a_pair_of_which_a_half_was_never_written_may_be_spilled():
    """The upper register of an address whose lower one is used: it comes back as unwritten as it went."""
    x = np.arange(64, dtype=np.uint32)
    spill = "  v_mov_b32_e32 v30, v10\n  scratch_store_dwordx2 off, v[30:31], off\n  s_waitcnt vmcnt(0)\n"
    reload = f"{spill}  scratch_load_dwordx2 v[20:21], off, off\n  s_waitcnt vmcnt(0)"
    assert lanes_of(reload, [x], x.dtype, private_segment_fixed_size=16).tolist() == list(range(64))
    with pytest.raises(compiled.KernelFault, match="v21, whose value depends on an unwritten register"):
        lanes_of(f"{reload}\n  v_mov_b32_e32 v20, v21", [x], x.dtype, private_segment_fixed_size=16)
    with pytest.raises(compiled.KernelFault, match="some were never written"):
        lanes_of(reload.replace("off, off", "off, off offset:8"), [x], x.dtype, private_segment_fixed_size=16)


@pytest.mark.parametrize(("kind", "wide"), [("f32", False), ("f64", True)])
def test_powers_of_two_are_rounded_once(kind, wide):
    """Also into and below the subnormal numbers, and over the end."""
    x, rng = numbers(kind, 4), np.random.default_rng(7)
    by = rng.integers(*((-1090, 1030) if wide else (-160, 130)), 64).astype(np.int32)
    by[:8] = -1070 if wide else -147
    target = "v[20:21]" if wide else "v20"
    got = lanes_of(f"  v_ldexp_{kind} {target}, {register(0, wide)}, v12", [x, by], x.dtype)
    for lane, bits in enumerate(got.tolist()):
        number = value(int(x[lane]), kind)
        zero = number == "-0"
        exact = Fraction(0) if zero else number * Fraction(2) ** int(by[lane])
        want = rounded(exact, kind, negative_zero=zero or int(x[lane]) >> (63 if wide else 31) == 1)
        assert bits == want, lane


def test_a_literal_of_32_bits_is_64_with_zeros_above():
    body = "  s_mov_b64 s[20:21], 0xf716f100\n  v_mov_b32_e32 v20, s20\n  v_mov_b32_e32 v21, s21"
    assert lanes_of(body, [], np.dtype(np.uint64)).tolist() == [0xF716F100] * 64


@pytest.mark.parametrize("place", ["buffer", "global"])
def test_lanes_that_add_by_compare_and_swap_all_come_through(place):
    """The loop of kernels whose sums have no atomic addition: read, add, swap if nobody came between, or again."""
    swap = {
        "buffer": "buffer_atomic_cmpswap v[24:25], off, s[4:7], 0 sc0",
        "global": "global_atomic_cmpswap v24, v26, v[24:25], s[4:5] sc0",
    }[place]
    body = f"""  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_mov_b32 s6, 256
  s_mov_b32 s7, 0x20000
  v_mov_b32_e32 v26, 0
  s_waitcnt lgkmcnt(0)
  global_load_dword v25, v26, s[4:5]
  s_waitcnt vmcnt(0)
again:
  v_add_u32_e32 v24, v25, v10
  v_mov_b32_e32 v27, v25
  {swap}
  s_waitcnt vmcnt(0)
  v_cmp_ne_u32_e32 vcc, v24, v27
  v_mov_b32_e32 v25, v24
  s_and_b64 exec, exec, vcc
  s_cbranch_execnz again
  s_mov_b64 exec, -1
  v_mov_b32_e32 v20, v24"""
    x = np.arange(64, dtype=np.uint32) + 5
    before = x.copy()
    seen = lanes_of(body, [x], x.dtype)
    assert x[0] == before[0] + before.sum() and (x[1:] == before[1:]).all()
    assert seen.tolist() == (before[0] + np.cumsum(before) - before).tolist()  # lanes come one after the other


def test_carries():
    x, y = drawn(2, 9)
    body = "  v_add_co_u32_e32 v20, vcc, v10, v12\n  v_addc_co_u32_e32 v21, vcc, v10, v12, vcc"
    got = lanes_of(body, [x, y], np.dtype(np.uint64))
    for lane, bits in enumerate(got.tolist()):
        a, b = int(x[lane]), int(y[lane])
        assert bits == (a + b & 0xFFFFFFFF) | (a + b + (a + b >> 32) & 0xFFFFFFFF) << 32


def test_products_of_64_bits():
    x, y = drawn(2, 11)
    got = lanes_of("  v_mad_u64_u32 v[20:21], vcc, v10, v12, 7", [x, y], np.dtype(np.uint64))
    assert got.tolist() == [int(a) * int(b) + 7 & (1 << 64) - 1 for a, b in zip(x, y, strict=True)]


@pytest.mark.parametrize(("word", "source"), [
    ("row_shr:1", lambda i: i - 1 if i % 16 else None), ("row_shl:3", lambda i: i + 3 if i % 16 < 13 else None),
    ("row_ror:5", lambda i: i - i % 16 + (i - 5) % 16), ("quad_perm:[3,0,2,1]", lambda i: i - i % 4 + (3, 0, 2, 1)[i % 4]),
    ("row_mirror", lambda i: i - i % 16 + 15 - i % 16), ("row_half_mirror", lambda i: i - i % 8 + 7 - i % 8),
    ("row_bcast:15", lambda i: i - i % 16 - 1 if i > 15 else None), ("row_bcast:31", lambda i: 31 if i > 31 else None),
    ("wave_shr:1", lambda i: i - 1 if i else None),
])  # fmt: skip
def test_lanes_move(word, source):
    x = np.arange(100, 164, dtype=np.uint32)
    for bound in ("", " bound_ctrl:1"):
        body = f"  v_mov_b32_e32 v20, -1\n  v_mov_b32_dpp v20, v10 {word} row_mask:0xf bank_mask:0xf{bound}"
        got = lanes_of(body, [x], x.dtype)
        missing = 0 if bound else 0xFFFFFFFF
        assert got.tolist() == [missing if source(i) is None else 100 + source(i) for i in range(64)]


def test_masks_of_rows_and_banks():
    x = np.arange(64, dtype=np.uint32)
    got = lanes_of(
        "  v_mov_b32_e32 v20, -1\n  v_mov_b32_dpp v20, v10 row_mirror row_mask:0xa bank_mask:0x3", [x], x.dtype
    )
    written = [i // 16 in (1, 3) and i % 16 < 8 for i in range(64)]
    assert [v != 0xFFFFFFFF for v in got.tolist()] == written


def test_parts_of_registers():
    x, y = drawn(2, 13)
    body = "  v_add_u32_sdwa v20, v10, v12 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:BYTE_2"
    assert lanes_of(body, [x, y], x.dtype).tolist() == ((x >> 16) + (y >> 16 & 255)).tolist()
    body = "  v_mov_b32_e32 v20, v12\n  v_or_b32_sdwa v20, v10, 0 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_3"
    body = body.replace(", 0 dst", ", v10 dst") + " src1_sel:BYTE_3"
    assert lanes_of(body, [x, y], x.dtype).tolist() == ((y & 0xFFFF00FF) | (x >> 24 << 8)).tolist()


def test_packed_numbers_choose_their_halves():
    x, y = (np.random.default_rng(i).standard_normal(128).astype(np.float32) for i in (1, 2))
    wide = [v.view(np.uint64) for v in (x, y)]
    body = "  v_pk_add_f32 v[20:21], v[10:11], v[12:13] op_sel:[1,0] op_sel_hi:[0,1] neg_lo:[0,1] neg_hi:[1,0]"
    got = lanes_of(body, wide, np.dtype(np.uint64)).view(np.float32).reshape(-1, 2)
    a, b = x.reshape(-1, 2), y.reshape(-1, 2)
    assert np.array_equal(got, np.stack([a[:, 1] - b[:, 0], -a[:, 0] + b[:, 1]], 1))


def test_rounding_and_flushing_are_the_mode_register_s():
    tiny = np.full(64, 3, np.uint32)  # a subnormal number
    add = "  v_add_f32_e32 v20, v10, v10"
    assert lanes_of(add, [tiny], tiny.dtype)[0] == 6
    assert lanes_of(add, [tiny], tiny.dtype, float_denorm_mode_32=0)[0] == 0
    one, small = np.full(64, 1.0, np.float32).view(np.uint32), np.full(64, 2.0**-30, np.float32).view(np.uint32)
    for mode, want in enumerate((0x3F800000, 0x3F800001, 0x3F800000, 0x3F800000)):
        got = lanes_of("  v_add_f32_e32 v20, v10, v12", [one, small], one.dtype, float_round_mode_32=mode)
        assert got[0] == want
    body = "  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 1\n  v_add_f32_e32 v20, v10, v12"
    assert lanes_of(body, [one, small], one.dtype)[0] == 0x3F800001


def test_division_is_correctly_rounded():
    """The steps that compilers write for x / y."""
    rng = np.random.default_rng(4)
    x, y = ((rng.standard_normal(64) * 2.0 ** rng.integers(-60, 60, 64)).astype(np.float32) for _ in "xy")
    x[:6], y[:6] = [0, 1, 1, np.inf, -0.0, 1e-38], [3, 0, np.inf, 2, 5, 7]
    body = """  v_div_scale_f32 v30, s[20:21], v12, v12, v10
  v_rcp_f32_e32 v31, v30
  v_div_scale_f32 v32, vcc, v10, v12, v10
  v_fma_f32 v33, -v30, v31, 1.0
  v_fmac_f32_e32 v31, v33, v31
  v_mul_f32_e32 v33, v32, v31
  v_fma_f32 v34, -v30, v33, v32
  v_fmac_f32_e32 v33, v34, v31
  v_fma_f32 v30, -v30, v33, v32
  v_div_fmas_f32 v30, v30, v31, v33
  v_div_fixup_f32 v20, v30, v12, v10"""
    inputs = [v.view(np.uint32) for v in (x, y)]
    keep = (np.abs(x) < 1e38) & (np.abs(y) < 1e38) & (x != 0) & (y != 0)
    inputs = [np.where(keep, v, np.float32(1).view(np.uint32)) for v in inputs]
    out = np.zeros(64, np.uint32)
    compiled.read(kernel_of(body)).run([*inputs, out], unpublished="nearest")
    with np.errstate(all="ignore"):
        want = inputs[0].view(np.float32) / inputs[1].view(np.float32)
    assert np.array_equal(out, want.view(np.uint32))


def kernel_of(body):
    return kernel(
        f"""  s_load_dwordx4 s[8:11], s[0:1], 0x0
  s_load_dwordx2 s[12:13], s[0:1], 0x10
  v_lshlrev_b32_e32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_dword v10, v1, s[8:9]
  global_load_dword v12, v1, s[10:11]
  s_waitcnt vmcnt(0)
{body}
  global_store_dword v1, v20, s[12:13]""",
        3,
    )


def test_every_lane_can_be_read_through_local_memory():
    x = np.arange(64, dtype=np.uint32) * 3
    body = "  v_xor_b32_e32 v11, 63, v0\n  v_lshlrev_b32_e32 v11, 2, v11\n  ds_bpermute_b32 v20, v11, v10\n"
    body += "  s_waitcnt lgkmcnt(0)"
    assert lanes_of(body, [x], x.dtype).tolist() == x[::-1].tolist()
    swizzle = "  ds_swizzle_b32 v20, v10 offset:0x401f\n  s_waitcnt lgkmcnt(0)"  # lane ^ 16 within 32
    assert lanes_of(swizzle, [x], x.dtype).tolist() == [3 * (i ^ 16) for i in range(64)]


@pytest.mark.parametrize(("name", "fmt"), [("fp8", "e4m3fnuz"), ("bf8", "e5m2fnuz")])
def test_fp8_of_this_processor_is_fnuz(name, fmt):
    import tensorcore_models as tcm

    x = (np.random.default_rng(2).standard_normal(64) * 8).astype(np.float32)
    body = f"  v_mov_b32_e32 v20, 0\n  v_cvt_pk_{name}_f32 v20, v10, v10 op_sel:[0,0,1]"
    got = lanes_of(body, [x.view(np.uint32)], np.dtype(np.uint32))
    bits = tcm.encode(x, fmt).astype(np.uint32)
    assert got.tolist() == (bits * 0x101 << 16).tolist()
    back = lanes_of(f"  v_cvt_f32_{name}_sdwa v20, v10 src0_sel:BYTE_3", [got], got.dtype).view(np.float32)
    assert np.array_equal(back, tcm.decode(bits.astype(np.uint8), fmt))
