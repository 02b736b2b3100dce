"""tcgen05.mma kernels: staging and scales executed in Python, descriptors against the manual's tables, CTA pairs."""

import re

import numpy as np
import pytest
from generated_code import python_of, run_staging
from shared_memory import core_matrix_offset

import tensorcore_models as tcm
from tensorcore_models.hardware.cuda import layouts
from tensorcore_models.hardware.cuda.device import BLOCKS_PER_MULTIPROCESSOR, blocks_of, kernel
from tensorcore_models.hardware.cuda.group_source import stage_both
from tensorcore_models.hardware.cuda.tcgen05_source import instruction_descriptor, scale_lines, tcgen05_kind

ROWS = [row for row in tcm.list_instructions("blackwell") if row.path == "tcgen05"]
SCALED = [row for row in ROWS if row.scale_format is not None]
SYNC_SCALED = [
    row
    for row in tcm.list_instructions("rtx_blackwell")
    if row.scale_format is not None and (row.block_size, row.scale_format) != (32, "ue4m3")
]
SHAPES = ((128, 8), (128, 40), (128, 256), (256, 16), (256, 256))


def distinct(rows, key):
    """One row for each key."""
    found = {}
    for row in rows:
        found.setdefault(key(row), row)
    return list(found.values())


SCALE_KINDS = distinct(SCALED, lambda row: (row.k, row.block_size, row.scale_format))


# -- operands in shared memory -----------------------------------------------------------------------------------------------
def manual_bit(row, fmt, e):
    """Bit of element e along k within its row's 32 bytes: packed, or fp4 and fp6 in groups of 16 padded to 16 bytes."""
    bits = tcm.get_format(fmt).bits
    if bits >= 8 or row.k == 64:
        return e * bits
    return e // 16 * 128 + e % 16 * bits


@pytest.mark.parametrize(
    "row",
    distinct(
        [*ROWS, *(r for r in tcm.list_instructions("hopper") if r.path == "wgmma")],
        lambda r: (r.path, r.k, *(tcm.get_format(f).bits for f in r.formats[:2])),
    ),
    ids=str,
)
def test_staged_operands_stand_where_the_manual_says(row):
    rows, cols, (a_format, b_format) = 24, 16, row.formats[:2]
    rng = np.random.default_rng(0)
    a = rng.integers(0, 1 << a_format.bits, (rows, row.k), dtype=np.uint64)
    b = rng.integers(0, 1 << b_format.bits, (row.k, cols), dtype=np.uint64)
    shared: dict[int, int] = {}
    scope = {"pa": a.ravel().tolist(), "pb": b.ravel().tolist(), "g_lda": row.k, "g_ldb": cols, "shared": shared}
    start = {"a": 0, "b": 1 << 20}
    for thread in range(layouts.WARPGROUP):
        run_staging(
            stage_both(row, rows, cols), scope | {"thread": thread, "shared_a": start["a"], "shared_b": start["b"]}
        )
    for letter, matrix, fmt in (("a", a, row.a_format), ("b", b.T, row.b_format)):
        bits = tcm.get_format(fmt).bits
        for (r, e), value in np.ndenumerate(matrix):
            byte, shift = divmod(manual_bit(row, fmt, e), 8)
            place = start[letter] + core_matrix_offset(r, byte)
            if bits >= 8:
                assert shared[place] == value and shift == 0
                continue
            word = shared[place] & 255
            if shift + bits > 8:
                word |= (shared[place + 1] & 255) << 8
            assert word >> shift & (1 << bits) - 1 == value


# -- block scales ------------------------------------------------------------------------------------------------------------
def python_expression(text):
    return python_of(text.replace("threadIdx.x", "thread").replace("g.", "g_"))


def tensor_memory_after(row, scale_a, scale_b):
    """Tensor memory of one CTA, {(lane, column): word} for A and for B, as the generated lines of all threads leave it."""
    memory = {"a": {}, "b": {}}
    scope = {
        "psa": scale_a.ravel().tolist(), "psb": scale_b.ravel().tolist(), "g_lds_a": scale_a.shape[1],
        "g_lds_b": scale_b.shape[1], "scales_a": {}, "scales_b": {},
    }  # fmt: skip
    code = compile("\n".join(python_expression(line) for line in scale_lines(row)), "scales", "exec")
    for thread in range(layouts.WARPGROUP):
        exec(code, scope | {"thread": thread})
        for letter in "ab":
            for column, word in scope[f"scales_{letter}"].items():
                memory[letter][thread, column] = word
    return memory


@pytest.mark.parametrize("row", SCALE_KINDS, ids=str)
@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_scales_packed_into_tensor_memory_unpack_again(row, m, n):
    """PTX ISA 9.1, 9.7.16.10.7: byte `block` of a word, one copy for each warp; rows 32 apart in the next column."""
    row = row.with_shape(m, n)
    count, rng = row.k // row.block_size, np.random.default_rng(1)
    rows = 128  # a CTA of a pair holds its own half of A's rows, and all columns of B
    scale_a, scale_b = (rng.integers(0, 256, shape, dtype=np.uint64) for shape in ((rows, count), (count, n)))
    memory = tensor_memory_after(row, scale_a, scale_b)
    for letter, matrix in (("a", scale_a), ("b", scale_b.T)):
        assert len(memory[letter]) == layouts.WARPGROUP * layouts.scale_columns(len(matrix))
        assert all(word >> 8 * count == 0 for word in memory[letter].values())
        for copy in range(4):
            back = np.zeros_like(matrix)
            for r, block in np.ndindex(*matrix.shape):
                column, lane = divmod(r, layouts.SCALE_LANES)  # PTX ISA 9.1, 9.7.16.10.7; byte b is block b of k
                back[r, block] = memory[letter][32 * copy + lane, column] >> 8 * block & 255
            np.testing.assert_array_equal(back, matrix)


@pytest.mark.parametrize("row", distinct(SYNC_SCALED, lambda r: (r.k, r.block_size, r.scale_format)), ids=str)
def test_scales_packed_into_registers_unpack_again(row):
    """PTX ISA 9.1, 9.7.14.3, selectors 0: rows g and g + 8 of A from threads 4g and 4g + 1, column g of B from thread 4g."""
    source = kernel(row).source
    count, rng = row.k // row.block_size, np.random.default_rng(2)
    scale_a, scale_b = (rng.integers(0, 256, shape, dtype=np.uint64) for shape in ((16, count), (count, 8)))
    start = {x: re.search(rf"const u8\* ps{x} = .* \+ (\(.*\).*);", source)[1] for x in "ab"}
    word = {x: re.search(rf"const u32 scales_{x} = (.*);", source)[1] for x in "ab"}
    back_a, back_b = np.zeros_like(scale_a), np.zeros_like(scale_b)
    for lane in range(layouts.WARP):
        scope = {"lane": lane, "g_lds_a": count, "g_lds_b": 8}
        for letter, matrix in (("a", scale_a), ("b", scale_b)):
            first = eval(python_expression(start[letter]), scope)
            scope[f"ps{letter}"] = matrix.ravel().tolist()[first:]
            packed = eval(python_expression(word[letter]), scope)
            assert packed >> 8 * count == 0
            if letter == "a" and lane % 4 < 2:
                back_a[lane // 4 + 8 * (lane % 4)] = [packed >> 8 * i & 255 for i in range(count)]
            if letter == "b" and lane % 4 == 0:
                back_b[:, lane // 4] = [packed >> 8 * i & 255 for i in range(count)]
    np.testing.assert_array_equal(back_a, scale_a)
    np.testing.assert_array_equal(back_b, scale_b)


# -- instruction -------------------------------------------------------------------------------------------------------------
def fields(row, *places):
    return [instruction_descriptor(row) >> low & (1 << width) - 1 for low, width in places]


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("m128n16k32.block32.f32.e5m2.e2m1.ue8m0", "mxf8f6f4.block_scale.block32", [0, 0, 0, 1, 5, 0, 2, 1, 0, 1, 0, 0]),
        ("m256n32k32.block32.f32.e3m2.e2m3.ue8m0", "mxf8f6f4.block_scale.block32", [0, 0, 0, 4, 3, 0, 4, 1, 0, 2, 0, 0]),
        ("m128n8k64.block32.f32.e2m1.e2m1.ue8m0", "mxf4.block_scale.block32", [0, 0, 0, 1, 1, 0, 1, 1, 0, 1, 0, 0]),
        ("m128n8k64.block16.f32.e2m1.e2m1.ue8m0", "mxf4nvf4.block_scale.block16", [0, 0, 0, 1, 1, 0, 1, 1, 0, 1, 0, 0]),
        ("m256n256k64.block16.f32.e2m1.e2m1.ue4m3", "mxf4nvf4.block_scale.block16", [0, 0, 0, 1, 1, 0, 32, 0, 0, 2, 0, 0]),
    ],
)  # fmt: skip
def test_descriptors_of_block_scaled_kinds(name, kind, expected):
    """PTX ISA 9.1, 9.7.16.4.2: sparsity and reserved, SFB ID, reserved, A, B, negate and transpose, N, scale type,
    reserved, M, SFA ID, K or reserved."""
    row = tcm.get_instruction("blackwell", f"tcgen05.mma.{name}")
    places = (0, 4), (4, 2), (6, 1), (7, 3), (10, 3), (13, 4), (17, 6), (23, 1), (24, 3), (27, 2), (29, 2), (31, 1)
    assert fields(row, *places) == expected and tcgen05_kind(row) == kind
    assert f"tcgen05.mma.cta_group::{row.m // 128}.kind::{kind} " in kernel(row).source


@pytest.mark.sweep(64)
@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.parametrize("m", (64, 128, 256))
def test_kernels_of_every_shape(row, m):
    """Pairs are clusters of two blocks, cta_group is the same throughout, and tensor memory holds everything apart."""
    legal = dict(row.legal_shapes)
    if m not in legal:
        assert m == 64 and row.scale_format is not None
        return
    for n in {legal[m][0], legal[m][-2], legal[m][-1]}:
        made = kernel(row.with_shape(m, n))
        pair = m == 256
        assert set(re.findall(r"cta_group::(\d)", made.source)) == {"2" if pair else "1"}
        assert made.cluster == (2 if pair else 1) and ("__cluster_dims__(2, 1, 1)" in made.source) == pair
        assert ("barrier.cluster" in made.source) == pair == ("multicast::cluster" in made.source)
        columns = int(re.search(r"tcgen05.alloc.*?\], (\d+);", made.source)[1])
        assert columns in (32, 64, 128, 256, 512)
        written = [int(x) for x in re.findall(r'"r"\(own \+ (\d+)u\)', made.source)]
        assert len(set(written)) == len(written) and all(n <= column < columns for column in written)
        if row.scale_format is not None:
            starts = [int(x) for x in re.findall(r'"r"\(base \+ (\d+)u\)', made.source)]
            expected = [start + c for start, size in zip(starts, (4, -(-n // 32)), strict=True) for c in range(size)]
            assert written == expected
        halves = made.source.count("rank * 128u * "), made.source.count(f"pb += rank * {n // 2}u;")
        assert halves == ((3 + (row.scale_format is not None), 1) if pair else (0, 0))


def test_shapes_that_ptx_does_not_have_are_refused():
    integer = next(row for row in ROWS if row.a_format == "s8")
    assert integer.with_shape(64, 24).n == 24 and integer.with_shape(256, 32).n == 32
    for m, n in ((64, 40), (256, 16), (128, 24)):
        with pytest.raises(ValueError, match="expected m "):
            integer.with_shape(m, n)
    for row in SCALED:
        with pytest.raises(ValueError, match="expected m "):
            row.with_shape(64, 8)


def test_a_launch_takes_whole_clusters():
    one, pair = (kernel(tcm.get_instruction("blackwell", f"tcgen05.mma.m{m}n16k16.f32.f16.f16")) for m in (128, 256))
    assert [blocks_of(one, tiles, 10) for tiles in (0, 1, 5, 10**6)] == [1, 1, 5, 10 * BLOCKS_PER_MULTIPROCESSOR]
    assert [blocks_of(pair, tiles, 10) for tiles in (0, 1, 5, 10**6)] == [2, 2, 10, 10 * BLOCKS_PER_MULTIPROCESSOR]
    assert blocks_of(pair, 10**6, 1) % 2 == 0
