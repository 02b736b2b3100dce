"""Infinities and NaN in products on a GPU: decided on the device, 0 bits apart from the generic kernel; the rest is counted."""

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models.kernels import lowered
from tensorcore_models.kernels.common import generic_promoted
from tensorcore_models.kernels.generic import generic_bits

torch = pytest.importorskip("torch")

import unit_machine  # noqa: E402
from unit_machine import normal  # noqa: E402

from tensorcore_models.gpu import specials, tensors  # noqa: E402
from tensorcore_models.gpu.products import APART, ON_CPU  # noqa: E402

NAMES = (
    "hopper-fp16", "ampere-bf16", "ada-fp16", "ada-e4m3", "cdna3-fp8", "blackwell-mxfp8", "blackwell-mxfp4", "gaudi2-tf32",
    "gaudi3-fp16", "riscv-bf16",
)  # fmt: skip
SHAPE = (29, 23, 72)


def special_codes(fmt) -> np.ndarray:
    """Infinities and NaN of several payloads."""
    if fmt.bits > 16:
        return np.array([0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF], fmt.container)
    codes = range(1 << fmt.bits)
    return np.array([x for x in codes if fmt.decode_exact(x).kind != "finite"], fmt.container)


def with_specials(low, seed: int, each: int = 6):
    """Operands of one scale with `each` special values and some zeros in A, B and C, and a scale that is NaN."""
    p, rng = normal(low, seed, SHAPE), np.random.default_rng(seed)
    for x, fmt in zip(p[:3], low.floating, strict=False):
        x[tuple(rng.integers(0, size, 40) for size in x.shape)] = 0
        if (codes := special_codes(fmt)).size:
            x[tuple(rng.integers(0, size, each) for size in x.shape)] = rng.choice(codes, each)
    if p.scale_a is not None:
        p.scale_a[3, 1] = low.scale_format.nan_bits
    return p


def engine_and_machine(name):
    unit, machine = unit_machine.stored(name)
    return tcm.get_instruction(*unit.split(":", 1)), machine


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", NAMES)
def test_no_bit_differs_and_nothing_goes_to_the_cpu(name):
    engine, machine = engine_and_machine(name)
    low, classes = lowered(engine), set()
    for seed in (1, 2):
        p = with_specials(low, seed)
        done, found = unit_machine.run(engine, machine, p)
        assert np.array_equal(found, generic_bits(low, *p))
        assert done.again and done.on_cpu == () and done.by == APART
        values = found.view(np.float16 if found.itemsize == 2 else np.float32)
        classes |= {"nan"} if np.isnan(values).any() else set()
        classes |= {"finite"} if np.isfinite(values).any() else set()
    assert classes == {"nan", "finite"}


def test_infinities_keep_their_signs_and_meet():
    """+inf, -inf, both, and an infinity times zero, each in a row of its own, in the middle of the tiles and at their ends."""
    engine, machine = engine_and_machine("hopper-fp16")
    p = normal(lowered(engine), 5, SHAPE)
    p.b[:, :] = np.float16(1).view(np.uint16)
    p.b[5, 22] = 0
    inf, minus = 0x7C00, 0xFC00
    p.a[0, 3], p.a[9, 4], p.a[28, 5] = inf, minus, inf
    p.a[17, 1], p.a[17, 60] = inf, minus
    p.c[9, 7] = 0x7F800000
    done, found = unit_machine.run(engine, machine, p)
    assert np.array_equal(found, generic_bits(lowered(engine), *p))
    assert (found[0] == 0x7F800000).all() and (found[17] == 0x7FFFFFFF).all()
    assert found[9, 6] == 0xFF800000 and found[9, 7] == 0x7FFFFFFF and found[28, 22] == 0x7FFFFFFF
    assert done.on_cpu == ()


@pytest.mark.full  # some 4 s: stored texts add no chains outside, so the kernel is compiled
def test_chains_added_outside_have_the_quiet_nan():
    pytest.importorskip("triton")
    engine, machine = engine_and_machine("hopper-fp16")[0], unit_machine.compiling("sm_90")
    p = with_specials(lowered(engine), 3)
    done, found = unit_machine.run(engine, machine, p, every=16)
    assert np.array_equal(found, generic_promoted(lowered(engine), *p, 16))
    assert done.on_cpu == () and (found == 0x7FC00000).any()


def test_what_leaves_the_domain_otherwise_goes_to_the_cpu_and_is_counted():
    engine, machine = engine_and_machine("hopper-fp16")
    p = normal(lowered(engine), 6, SHAPE)
    p.a[0, 0] = 0x7E00
    p.c[0, 20], p.c[28, 2] = (
        np.float32(2.0**60).view(np.uint32),
    ) * 2  # far above the products; one of them beside a NaN
    done, found = unit_machine.run(engine, machine, p)
    assert np.array_equal(found, generic_bits(lowered(engine), *p))
    assert set(done.on_cpu) == {(0, 0, 16), (0, 24, 0)} and set(done.on_cpu) < set(done.again)
    assert done.by == f"{APART}; {ON_CPU}"


def test_tiles_are_done_in_parts_that_memory_holds(monkeypatch):
    from tensorcore_models.gpu import products

    engine, machine = engine_and_machine("hopper-fp16")
    p = with_specials(lowered(engine), 4, 20)
    whole, expected = unit_machine.run(engine, machine, p)
    monkeypatch.setattr(products, "PACKED_BYTES", 96 * 72 * 16 * 3)  # three tiles at a time
    done, found = unit_machine.run(engine, machine, p)
    assert np.array_equal(found, expected) and done.again == whole.again and len(done.again) > 3


def test_an_overflow_beside_an_infinity_is_left_to_the_cpu():
    """The sum of -inf and finite products that overflow first is NaN, and -inf where -inf comes first."""
    low = lowered(tcm.get_instruction("hopper:mma.m16n8k16.f32.f16.f16.f32"))
    rule = specials.special_rule(low, None)
    a, b = (torch.ones(s, dtype=torch.int16) * 0x3C00 for s in ((3, 2, 4), (3, 2, 4)))
    a[0, 1, 2], a[1, 0, 0] = -0x0400, 0x7E00  # -inf, NaN
    apart = specials.taken_apart(rule, a, b, None, (None, None))
    assert apart.any.tolist() == [True, True, False]
    d = torch.zeros((3, 2, 2), dtype=torch.int32)
    assert not apart.undecided(d).any()
    d[:] = 0x7F800000
    assert apart.undecided(d).tolist() == [True, False, False]


def test_payloads_and_saturation_have_no_rule_here():
    x86 = tcm.get_instruction("x86:tdpbf16ps.m16n16k32.f32.bf16.bf16.f32")
    assert specials.special_rule(lowered(x86), None) is None
    tf32 = tcm.get_instruction("hopper:mma.m16n8k8.f32.tf32.tf32.f32")
    assert specials.special_rule(lowered(tf32), None) is not None


def test_a_payload_in_the_padding_of_tf32_makes_no_nan():
    """Hopper cuts it off, so that it is an infinity; units that keep it see NaN."""
    codes = torch.from_numpy(np.array([0x7F800001, 0x7F802000, 0xFF800000, 1], np.uint32).view(np.int32))
    fmt = tcm.get_format("tf32")
    assert specials.kinds(fmt, codes).tolist()[2:] == [-np.inf, 0.0] and specials.kinds(fmt, codes)[0] == np.inf
    assert specials.kinds(fmt, codes, True)[0].isnan() and specials.kinds(fmt, codes)[1].isnan()


def test_it_is_said_once_for_a_unit(monkeypatch):
    engine, machine = engine_and_machine("hopper-fp16")
    gpu = tensors.GPU(machine.target, machine, unit_machine.WARPS, unit_machine.EACH)
    monkeypatch.setattr(tensors, "gpu_of", lambda tensor: gpu)
    monkeypatch.setattr(tensors, "_SAID", set())
    p = normal(lowered(engine), 7, SHAPE)
    p.c[0, 0] = np.float32(2.0**60).view(np.uint32)
    operands = [unit_machine.tensor_of(x) for x in p[:3]]
    with pytest.warns(tensors.ComputedOnCPU, match="1 of 12 tiles left the domain .* computed on the CPU"):
        done = tensors.run_bits(engine, *operands)
    assert len(done.on_cpu) == 1
    tensors.run_bits(engine, *operands)  # warnings are errors here
