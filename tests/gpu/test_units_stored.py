"""Units in kernels that Triton compiled before, run here without Triton: bits, flags, changes of the text that are noticed."""

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models import compiled
from tensorcore_models.kernels import lowered
from tensorcore_models.kernels.generic import generic_bits
from tensorcore_models.probing.edge_operands import EDGES, draw

torch = pytest.importorskip("torch")

import unit_machine  # noqa: E402
from unit_machine import normal  # noqa: E402

from tensorcore_models.probing.random_operands import DrawnOperands  # noqa: E402

NAMES = (
    "hopper-fp16", "ampere-bf16", "ada-fp16", "ada-e4m3", "cdna3-fp8", "blackwell-mxfp8", "blackwell-mxfp4", "wormhole-hifi2",
    "gaudi2-tf32", "gaudi3-fp16", "riscv-bf16", "cdna1-fp32",
)  # fmt: skip
SHAPE = (13, 11, 72)


def engine_of(unit: str):
    return tcm.get_instruction(*unit.split(":", 1))


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.sweep(6)
@pytest.mark.parametrize("name", NAMES)
def test_bits_are_those_of_the_generic_kernel(name, edge):
    unit, machine = unit_machine.stored(name)
    engine = engine_of(unit)
    p = draw(np.random.default_rng((7, EDGES.index(edge))), lowered(engine), edge, 0, SHAPE)
    done, found = unit_machine.run(engine, machine, p)
    assert np.array_equal(found, generic_bits(lowered(engine), *p))
    assert len(done.again) <= done.tiles


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_one_scale_is_done_again(name):
    unit, machine = unit_machine.stored(name)
    engine = engine_of(unit)
    for spread, shape in ((3, SHAPE), (25, (16, 8, 128))):  # which needs filling up, and whole tiles and steps
        p = normal(lowered(engine), 3, shape, spread)
        done, found = unit_machine.run(engine, machine, p)
        assert done.again == () and done.by == ""
        assert np.array_equal(found, generic_bits(lowered(engine), *p))


def test_tiles_that_leave_the_domain_are_named():
    unit, machine = unit_machine.stored("hopper-fp16")
    engine = engine_of(unit)
    p = normal(lowered(engine), 4)
    p.a[9, 3] = 0x7C00  # infinity in the second tile of rows
    p.c[0, 10] = np.float32(2.0**60).view(np.uint32)  # far above the products, in the second tile of columns
    done, found = unit_machine.run(engine, machine, p)
    assert done.again == ((0, 0, 8), (0, 8, 0), (0, 8, 8)) and "CPU" in done.by
    assert np.array_equal(found, generic_bits(lowered(engine), *p))


#: (kernel's file, what stands in its text, what takes its place): each is seen in bits of ordinary operands.
CHANGES = {
    "products to nearest": ("hopper-fp16", "fma.rz.f64", "fma.rn.f64"),
    "c to nearest": ("hopper-fp16", "add.rz.f64", "add.rn.f64"),
    "results to nearest": ("hopper-fp16", "cvt.rz.f32.f64", "cvt.rn.f32.f64"),
    "the smallest exponent": ("hopper-fp16", "max.u16x2", "min.u16x2"),
    "no inexact negatives": ("hopper-fp16", "dp4a.u32.s32", "dp4a.s32.s32"),
    "CDNA3's smaller exponent": ("cdna3-fp8", "max.u16x2", "min.u16x2"),
    "the smaller FP16 exponent": ("ampere-bf16", "max.f16x2", "min.f16x2"),
    "the second window to nearest": ("ada-fp16", "add.rz.f32", "add.rn.f32"),
    "a window to nearest": ("ada-e4m3", "fma.rz.f32", "fma.rn.f32"),
    "sums of groups to nearest": ("blackwell-mxfp4", "cvt.rz.f32.f64", "cvt.rn.f32.f64"),
    "unsigned bytes": ("blackwell-mxfp4", "dp4a.s32.s32", "dp4a.u32.s32"),
    "parts to nearest": ("gaudi3-fp16", "fma.rz.f64", "fma.rn.f64"),
    "Gaudi 3's c to nearest": ("gaudi3-fp16", "add.rz.f64", "add.rn.f64"),
    "the sum down": ("riscv-bf16", "cvt.rp.f32.f64", "cvt.rm.f32.f64"),
    "the late addition down": ("riscv-bf16", "fma.rp.f32", "fma.rm.f32"),
    "dot product and c to nearest": ("cdna3-fp8", "add.rz.f64", "add.rn.f64"),
    "the smaller exponent of a group": ("wormhole-hifi2", "max.s32", "min.s32"),
    "parts of no sign": ("wormhole-hifi2", "shr.s32", "shr.u32"),
    "a chain toward zero": ("cdna1-fp32", "fma.rn.f32", "fma.rz.f32"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_of_the_text_change_bits(change):
    name, old, new = CHANGES[change]
    texts = []

    def mutated(function, text):
        texts.append(old in text)
        return text.replace(old, new) if function != "pack" else text

    unit, machine = unit_machine.stored(name, mutated)
    engine = engine_of(unit)
    p = normal(lowered(engine), 5, spread=25)
    done, found = unit_machine.run(engine, machine, p)
    assert any(texts)
    assert done.again != () or not np.array_equal(found, generic_bits(lowered(engine), *p))


@pytest.mark.parametrize("rounding", ["rm", "rn", "rz"])
def test_the_last_cut_of_cdna3_is_down(rounding):
    """c = 2^32 - 2^8 and 1023 from the products carry, so that a bit below 31 is lost, beside which the rest is half a unit."""
    unit, machine = unit_machine.stored("cdna3-fp8", lambda _, text: text.replace("add.rm.f64", f"add.{rounding}.f64"))
    engine = engine_of(unit)
    a, b, c = np.zeros((2, 16), np.float32), np.zeros((16, 1), np.float32), np.array([[1], [-1]], np.float32)
    a[:, 0], a[:, 1], b[0], b[1] = (32, -32), (-1, 1), 32, 1
    x, y = (tcm.encode(v, "e4m3fnuz") for v in (a, b))
    p = DrawnOperands(x, y, (c * np.float32(2**32 - 2**8)).view(np.uint32), None, None)
    expected = generic_bits(lowered(engine), *p)
    assert expected[:, 0].view(np.float32).tolist() == [2**32 + 2**9, -(2**32) - 2**10]
    found = unit_machine.run(engine, machine, p)[1]
    same = {"rm": [True, True], "rn": [False, True], "rz": [True, False]}[rounding]
    assert (found == expected)[:, 0].tolist() == same


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("count", ["dp4a.u32.s32", "dp4a.s32.s32"])
def test_a_small_negative_product_of_cdna3_is_cut_to_zero(count, first):
    """Beside 240 240, of which the same is taken away: in even and in odd k, which are summed apart."""
    unit, machine = unit_machine.stored("cdna3-fp8", lambda _, text: text.replace("dp4a.u32.s32", count))
    engine = engine_of(unit)
    a, b, c = np.zeros((1, 16), np.float32), np.zeros((16, 1), np.float32), np.zeros((1, 1), np.uint32)
    a[0, first : first + 6 : 2], b[first : first + 6 : 2, 0] = (240, 240, 2.0**-10), (240, -240, -(2.0**-10))
    p = DrawnOperands(*(tcm.encode(v, "e4m3fnuz") for v in (a, b)), c, None, None)
    expected = generic_bits(lowered(engine), *p)
    assert expected.view(np.float32)[0, 0] == 0
    found = unit_machine.run(engine, machine, p)[1]
    assert np.array_equal(found, expected) == (count == "dp4a.u32.s32")


def test_groups_of_zeros_have_no_exponent_and_those_that_cancel_do():
    """A c of 1 beside scales of 2^60, of which F = 35 leaves nothing; it stays where all products are zero, or a scale is."""
    unit, machine = unit_machine.stored("blackwell-mxfp4")
    engine = engine_of(unit)
    a, b = np.zeros((3, 64), np.uint8), np.zeros((64, 1), np.uint8)
    a[1, 40:42], a[2, 40:42], b[40:42, 0], b[8, 0] = (2, 10), (2, 2), 2, 2  # 1, -1; 1, 1; 1
    scales = [np.full((3, 2), 127, np.uint8), np.full((2, 1), 187, np.uint8)]
    p = DrawnOperands(a, b, np.full((3, 1), np.float32(1)).view(np.uint32), *scales)
    done, found = unit_machine.run(engine, machine, p)
    assert done.again == () and np.array_equal(found, generic_bits(lowered(engine), *p))
    assert found[:, 0].view(np.float32).tolist() == [1, 0, 2.0**61]


@pytest.mark.parametrize("rounding", ["rz", "rn"])
def test_sums_of_groups_are_cut_toward_zero(rounding):
    """1 and -1 of two groups leave the third, 1.5 units of 2^-35, of which one unit is kept."""
    unit, machine = unit_machine.stored("blackwell-mxfp4", lambda _, text: text.replace("fma.rz", f"fma.{rounding}"))
    a, b = np.zeros((2, 64), np.uint8), np.zeros((64, 1), np.uint8)
    a[:, (0, 16, 32, 33)], b[(0, 16, 32, 33), 0] = ((2, 10, 7, 7), (10, 2, 15, 15)), (2, 2, 7, 4)
    scales = [np.array([[127, 87]] * 2, np.uint8), np.full((2, 1), 127, np.uint8)]
    p = DrawnOperands(a, b, np.zeros((2, 1), np.uint32), *scales)
    found = unit_machine.run(engine_of(unit), machine, p)[1]
    assert np.array_equal(found, generic_bits(lowered(engine_of(unit)), *p)) == (rounding == "rz")
    assert found.view(np.float32)[:, 0].tolist() == [x * 2.0**-35 for x in {"rz": (1, -1), "rn": (2, -2)}[rounding]]


@pytest.mark.parametrize("sign", [1, -1])
def test_gaudi_rounds_tf32_flushes_it_and_counts_signs_of_zeros(sign):
    """1 + 2^-11 is a tie, 1 + 3 2^-11 another; a subnormal operand is a zero of its sign; most of 8 products negative: -0."""
    unit, machine = unit_machine.stored("gaudi2-tf32")
    a, b = np.zeros((4, 4), np.float32), np.ones((4, 1), np.float32)
    a[0, 0], a[1, 0], a[2, 0], a[3] = 1 + 2.0**-11, 1 + 3 * 2.0**-11, 2.0**-127, -0.0
    c = np.zeros((4, 1), np.float32)
    c[2] = -(2.0**-126)
    p = DrawnOperands(*(x.view(np.uint32) for x in (np.float32(sign) * a, b, c)), None, None)
    done, found = unit_machine.run(engine_of(unit), machine, p)
    assert done.again == () and np.array_equal(found, generic_bits(lowered(engine_of(unit)), *p))
    rounded = [sign * 1.0, sign * (1 + 2.0**-9), -(2.0**-126), 0.0]
    assert found[:, 0].view(np.float32).tolist() == rounded


@pytest.mark.parametrize("rounding", ["rp", "rm"])
@pytest.mark.parametrize(
    ("name", "small", "c", "found"),
    [("gaudi2-tf32", (2.0**-24, 2.0**-70), 1.0, 1 + 2.0**-23), ("riscv-bf16", (1.0, 2.0**-27), 0.0, 1 + 2.0**-23)],
)
def test_what_is_cut_off_leaves_an_odd_bit(name, small, c, found, rounding):
    """Beside half a unit of c's last bit; of products F = 26 below the largest."""
    unit, machine = unit_machine.stored(name, lambda _, text: text.replace("fma.rp.f64", f"fma.{rounding}.f64"))
    low = lowered(engine_of(unit))
    a, b = np.array([small], np.float32), np.ones((2, 1), np.float32)
    x, y = (tcm.encode(v, low.a_format.name) for v in (a, b))
    p = DrawnOperands(x, y, np.full((1, 1), np.float32(c)).view(np.uint32), None, None)
    result = unit_machine.run(engine_of(unit), machine, p)[1]
    assert generic_bits(low, *p).view(np.float32)[0, 0] == found
    assert result.view(np.float32)[0, 0] == (found if rounding == "rp" else 1.0)


def test_a_product_far_below_both_windows_is_cut_to_zero():
    """c = 2^38 beside products of either sign down to 2^-48, of which FP32 keeps no bit of what the first window leaves."""
    unit, machine = unit_machine.stored("ada-fp16")
    rng = np.random.default_rng(9)
    a, b = (rng.integers(0, 2, s) << 15 | rng.integers(1, 1 << 12, s) for s in ((9, 24), (24, 8)))
    c = (np.float32(2.0**38) * rng.choice([-1, 1], (9, 8)) * rng.uniform(1, 2, (9, 8))).astype(np.float32)
    p = DrawnOperands(a.astype(np.uint16), b.astype(np.uint16), c.view(np.uint32), None, None)
    done, found = unit_machine.run(engine_of(unit), machine, p)
    assert done.again == () and np.array_equal(found, c.view(np.uint32))


@pytest.mark.parametrize("name", ["hopper-fp16", "ada-e4m3"])
def test_a_step_that_is_not_waited_for_is_a_race(name):
    """Operands of a step are copied ahead: a loop that waits for one group less reads what is still on its way."""
    unit, machine = unit_machine.stored(name, lambda _, text: text.replace("wait_group \t1;", "wait_group \t2;"))
    with pytest.raises(compiled.KernelFault, match="race"):
        unit_machine.run(engine_of(unit), machine, normal(lowered(engine_of(unit)), 3, SHAPE))
