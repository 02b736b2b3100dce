"""Fragment layouts: bijections, the PTX manual's index formulas written out by hand, and the generated packing code itself."""

import numpy as np
import pytest
from generated_code import python_of
from shared_memory import core_matrix_offset

import tensorcore_models as tcm
from tensorcore_models.hardware.cuda import layouts
from tensorcore_models.hardware.cuda.source import load_fragment, store_fragment, thread_coordinate
from tensorcore_models.hardware.cuda.targets import TARGETS

SYNC_ROWS = [row for arch in TARGETS for row in tcm.list_instructions(arch) if row.path == "mma"]


def layout_of(row):
    return layouts.mma_layout(
        (row.m, row.n, row.k), row.a_format, row.b_format, row.c_format, row.d_format, row.scale_format is not None
    )


LAYOUTS = {}
for _row in SYNC_ROWS:
    LAYOUTS.setdefault(layout_of(_row), _row)
FRAGMENTS = {
    fragment: f"{row} {name}" for layout, row in LAYOUTS.items() for name, fragment in layout._asdict().items()
}
FRAGMENTS |= {
    layouts.warpgroup_accumulator(n, bits): f"wgmma n {n} {bits}" for n in (8, 24, 64, 256) for bits in (16, 32)
}
FRAGMENTS |= {layouts.tensor_memory_accumulator(m, n): f"tcgen05 {m} {n}" for m in (64, 128) for n in (8, 24, 256)}


def places(fragment):
    return [
        (thread, slot, fragment.place(thread, slot))
        for thread in range(fragment.thread_count)
        for slot in range(fragment.slot_count)
    ]


@pytest.mark.sweep(17)
@pytest.mark.parametrize("fragment", FRAGMENTS, ids=FRAGMENTS.values())
def test_every_element_is_held_exactly_once(fragment):
    blocks, rows, cols = fragment.shape
    held = sorted(place for _, _, place in places(fragment))
    assert held == [(b, r, c) for b in range(blocks) for r in range(rows) for c in range(cols)]


def test_a_layout_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="threads and slots hold 32 elements, expected 64"):
        layouts.Fragment((layouts.Mode("row", 1, 32),), (), 32, (1, 8, 8))
    with pytest.raises(ValueError, match="reach 32 places of axis row"):
        layouts.Fragment((layouts.Mode("row", 1, 32),), (layouts.Mode("col", 1),), 32, (1, 64, 1))
    with pytest.raises(ValueError, match="m16n8k"):
        layouts.mma_layout((16, 16, 16), "fp16", "fp16", "fp32", "fp32")


def manual_a(k, bits, thread, i):
    """Row and column of a_i: PTX ISA, "Matrix Fragments for mma.m16n8k*", one formula for each element width."""
    group, member = thread >> 2, thread % 4
    if bits == 64:
        return group + 8 * (i % 2), member + 4 * (i // 2)
    if bits == 32:  # .tf32
        return group + 8 * (i % 2), member + 4 * (i // 2)
    if bits == 16:
        row = group if i < 2 or 4 <= i < 6 else group + 8
        return row, member * 2 + (i & 1) + (8 if i >= 4 else 0)
    if bits == 8:
        row = group if i < 4 or 8 <= i < 12 else group + 8
        return row, member * 4 + (i & 3) + (16 if i >= 8 else 0)
    row = group if i < 8 or 16 <= i < 24 else group + 8
    return row, member * 8 + (i & 7) + (32 if i >= 16 else 0)


def manual_b(k, bits, thread, i):
    """Row and column of b_i."""
    group, member = thread >> 2, thread % 4
    per = max(1, 32 // bits)
    return member * per + i % per + 4 * per * (i // per), group


@pytest.mark.parametrize(
    "name",
    [
        "hopper:mma.m16n8k16.f64.f64.f64.f64", "hopper:mma.m16n8k8.f64.f64.f64.f64", "ampere:mma.m16n8k8.f32.tf32.tf32.f32",
        "ampere:mma.m16n8k16.f32.f16.f16.f32", "ampere:mma.m16n8k8.f32.bf16.bf16.f32", "ada:mma.m16n8k32.f32.e4m3.e5m2.f32",
        "ampere:mma.m16n8k16.s32.s8.u8.s32", "ampere:mma.m16n8k64.s32.s4.u4.s32",
        "rtx_blackwell:mma.m16n8k32.f32.e2m1.e3m2.f32", "rtx_blackwell:mma.m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3",
    ],
)  # fmt: skip
def test_m16n8_fragments_are_the_manuals(name):
    row = tcm.get_instruction(name)
    layout = layout_of(row)
    for thread, i, place in places(layout.a):
        assert (place.row, place.col) == manual_a(row.k, layout.a.bits, thread, i)
    for thread, i, place in places(layout.b):
        assert (place.row, place.col) == manual_b(row.k, layout.b.bits, thread, i)
    for thread, i, place in places(layout.d):
        assert (place.row, place.col) == ((thread >> 2) + 8 * (i >= 2), thread % 4 * 2 + (i & 1))


def test_m8n8k4_fragments_are_the_manuals():
    layout = layout_of(tcm.get_instruction("volta:mma.m8n8k4.f32.f16.f16.f16"))
    for thread, i, place in places(layout.a):
        assert place == (thread % 16 // 4, thread % 4 + (4 if thread >= 16 else 0), i)
    for thread, i, place in places(layout.b):
        assert place == (thread % 16 // 4, i, thread % 4 + (4 if thread >= 16 else 0))
    for thread, i, place in places(layout.c):  # .f16
        assert place == (thread % 16 // 4, thread % 4 + (4 if thread >= 16 else 0), i)
    for thread, i, place in places(layout.d):  # .f32
        row = (thread & 1) + (i & 2) + (4 if thread >= 16 else 0)
        assert place == (thread % 16 // 4, row, (i & 4) + (thread & 2) + (i & 1))


def test_wgmma_accumulator_is_the_manuals():
    """PTX ISA, "Register Fragments for wgmma": row = warp * 16 + lane / 4 (+ 8), column = 8 (i / 4) + 2 (lane % 4) + i % 2."""
    for thread, i, place in places(layouts.warpgroup_accumulator(40, 32)):
        warp, lane = divmod(thread, 32)
        assert (place.row, place.col) == (16 * warp + lane // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + lane % 4 * 2 + i % 2)


@pytest.mark.parametrize("layout", LAYOUTS, ids=[str(row) for row in LAYOUTS.values()])
def test_generated_packing_and_unpacking_are_inverse(layout):
    """Runs the generated lines for every thread: what is packed from a matrix and unpacked again is that matrix."""
    row = LAYOUTS[layout]
    rng = np.random.default_rng(0)
    for fragment, fmt in zip(layout, (row.a_format, row.b_format, row.c_format, row.d_format), strict=True):
        blocks, rows, cols = fragment.shape
        bits = tcm.get_format(fmt).bits
        matrix = rng.integers(0, 1 << bits, (blocks, rows, cols), dtype=np.uint64)
        back = np.full_like(matrix, 1 << 63)
        shift = layouts.FP4_BYTE_SHIFT if (bits, fragment.bits) == (4, 8) else 0
        for thread in range(32):
            scope = {"lane": thread}
            block, r, c = (
                eval(python_of(thread_coordinate(fragment.threads, axis, "lane")), scope) for axis in layouts.AXES
            )
            registers = [0] * fragment.registers
            source = {i * cols + j: int(matrix[block, i, j]) for i in range(rows) for j in range(cols)}
            pointer = {k - (r * cols + c): v for k, v in source.items()}
            scope |= {"reg": registers, "src": pointer, "stride": cols}
            for line in load_fragment("reg", "src", "stride", fragment, fmt):
                exec(python_of(line), scope)
            assert all(value >> fragment.register_bits == 0 for value in registers)
            target: dict[int, int] = {}
            scope |= {"dst": target}
            for line in store_fragment("reg", "dst", "stride", fragment, fmt):
                exec(python_of(line), scope)
            for offset, value in target.items():
                i, j = divmod(offset + r * cols + c, cols)
                assert back[block, i, j] == 1 << 63, "written twice"
                back[block, i, j] = (value & ((1 << fragment.bits) - 1)) >> shift & ((1 << bits) - 1)
        np.testing.assert_array_equal(back, matrix)


def test_core_matrices_cover_shared_memory():
    """K-major, no swizzle: 8 rows of 16 bytes are contiguous; 64 rows of 32 bytes fill 2 KiB without holes."""
    offsets = [core_matrix_offset(row, byte) for row in range(64) for byte in range(layouts.STEP_BYTES)]
    assert sorted(offsets) == list(range(64 * layouts.STEP_BYTES))
    assert [core_matrix_offset(r, 0) for r in range(8)] == list(range(0, 128, 16))
    descriptor = layouts.shared_descriptor()
    assert (descriptor >> 16 & 0x3FFF) << 4 == core_matrix_offset(0, 16)  # leading dimension: next along k
    assert (descriptor >> 32 & 0x3FFF) << 4 == core_matrix_offset(8, 0)  # stride dimension: next along m
    assert layouts.shared_descriptor(1) >> 46 & 7 == 1 and descriptor >> 46 == 0
