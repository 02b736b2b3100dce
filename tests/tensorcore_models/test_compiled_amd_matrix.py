"""Which lane and register hold which element of an MFMA of CDNA3, stated a second time in plain Python."""

import numpy as np
import pytest
from amd_text import kernel

import tensorcore_models as tcm
from tensorcore_models import compiled
from tensorcore_models.formats import get_format

ROWS = {row.name: row for row in tcm.list_instructions("cdna3")}
WAVE = 64


def operand_place(lane, slot, size, k, blocks):
    """(block, place along m or n, place along k) of A or B."""
    held = k * size * blocks // WAVE
    group = lane // size
    return group % blocks, lane % size, group // blocks * held + slot


def result_place(lane, slot, m, n, blocks, wide):
    """(block, row, column) of C and D."""
    if wide:  # f64: 16 x 16, or four of 4 x 4
        return (lane // n % blocks, lane // (n * blocks) + 4 * slot, lane % n)
    if m == 4:
        return lane // 4, slot, lane % 4
    if m == 16:
        return slot // 4, 4 * (lane // 16) + slot % 4, lane % 16
    return slot // 16, 8 * (slot % 16 // 4) + 4 * (lane // 32) + slot % 4, lane % 32


def encodings(fmt, shape, seed):
    rng = np.random.default_rng(seed)
    if fmt.name.startswith(("s", "u")):
        return rng.integers(0, 256, shape).astype(get_format(fmt.name).container)
    return tcm.encode(rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 3, shape), fmt, "rz")


def words(places, matrices, fmt):
    """Registers of the lanes, shape (64, words), that hold matrices of shape (blocks, rows, cols)."""
    slots = np.array([[matrices[place] for place in lane] for lane in places], matrices.dtype)
    if fmt.name == "tf32":
        slots = slots.astype(np.uint32)
    return np.ascontiguousarray(slots).view(np.uint32)


def loads(first, count, base, pair):
    """Loads of so many words of a lane to registers from `first` on."""
    text = f"  v_mul_u32_u24_e32 v255, {4 * count}, v0\n"
    for i in range(count):
        text += f"  global_load_dword v{first + i}, v255, s[{pair}:{pair + 1}] offset:{4 * i}\n"
    return text


@pytest.mark.parametrize("name", ROWS)
def test_elements_lie_where_the_document_says(name):
    row = ROWS[name]
    m, n, k, blocks = row.m, row.n, row.k, row.blocks
    a, b, c = (
        encodings(f, (blocks, *s), i)
        for i, (f, s) in enumerate(zip(row.formats, ((m, k), (k, n), (m, n)), strict=False))
    )
    left = [[operand_place(lane, slot, m, k, blocks) for slot in range(m * k * blocks // WAVE)] for lane in range(WAVE)]
    right = [
        [operand_place(lane, slot, n, k, blocks) for slot in range(k * n * blocks // WAVE)] for lane in range(WAVE)
    ]
    right = [[(block, inner, along) for block, along, inner in lane] for lane in right]
    wide = c.dtype.itemsize == 8
    out = [
        [result_place(lane, slot, m, n, blocks, wide) for slot in range(m * n * blocks // WAVE)] for lane in range(WAVE)
    ]
    given = [words(p, x, f) for p, x, f in zip((left, right, out), (a, b, c), row.formats, strict=False)]
    counts = [x.shape[1] for x in given]
    starts = [0, 2 + counts[0], 2 + counts[0] + counts[1]]
    starts = [10 + 2 * (s // 2) for s in starts]
    d = np.zeros_like(given[2])
    body = "  s_load_dwordx8 s[8:15], s[0:1], 0x0\n  s_waitcnt lgkmcnt(0)\n"
    body += "".join(loads(s, count, 0, 8 + 2 * i) for i, (s, count) in enumerate(zip(starts, counts, strict=True)))
    spans = [f"v[{s}:{s + count - 1}]" for s, count in zip(starts, counts, strict=True)]
    body += f"  s_waitcnt vmcnt(0)\n  {name} {spans[2]}, {', '.join(spans)}\n"
    body += f"  v_mul_u32_u24_e32 v255, {4 * counts[2]}, v0\n"
    for i in range(counts[2]):
        body += f"  global_store_dword v255, v{starts[2] + i}, s[14:15] offset:{4 * i}\n"
    compiled.read(kernel(body, 4)).run([*given, d])
    want = words(out, row.mma_bits(a, b, c), row.formats[2])
    assert np.array_equal(d, want)
