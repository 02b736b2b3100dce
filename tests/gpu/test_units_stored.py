"""Units in kernels that Triton compiled before, run here without Triton: bits, flags, changes of the text that are noticed."""

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models.kernels import lowered
from tensorcore_models.kernels.generic import generic_bits
from tensorcore_models.probing.edges import EDGES, draw

torch = pytest.importorskip("torch")

import unit_machine  # noqa: E402
from unit_machine import normal  # noqa: E402

NAMES = ("hopper-fp16", "ampere-bf16", "ada-e4m3", "cdna3-fp8", "blackwell-mxfp8", "wormhole-hifi2", "cdna1-fp32")
SHAPE = (13, 11, 72)


def engine_of(unit: str):
    return tcm.get_instruction(*unit.split(":", 1))


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.sweep(9)
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
    p = normal(lowered(engine), 3)
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
    "no inexact negatives": ("hopper-fp16", "dp4a.u32.u32", "dp4a.s32.u32"),
    "the smaller FP16 exponent": ("ampere-bf16", "max.f16x2", "min.f16x2"),
    "a window to nearest": ("ada-e4m3", "fma.rz.f32", "fma.rn.f32"),
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
    p = normal(lowered(engine), 5)
    done, found = unit_machine.run(engine, machine, p)
    assert any(texts)
    assert done.again != () or not np.array_equal(found, generic_bits(lowered(engine), *p))
