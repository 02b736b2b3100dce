"""Engines on tensors of a GPU: the whole call, with the machine of stored PTX in the place of the device."""

from dataclasses import replace

import numpy as np
import pytest

import tensorcore_models as tcm

torch = pytest.importorskip("torch")

import unit_machine  # noqa: E402

from tensorcore_models.gpu import compiling, tensors, tiles  # noqa: E402
from tensorcore_models.gpu.launches import view_of  # noqa: E402
from tensorcore_models.gpu.modes import plan_of  # noqa: E402
from tensorcore_models.gpu.targets import get_target  # noqa: E402
from tensorcore_models.kernels import lowered  # noqa: E402

SHAPE = (21, 13, 40)
F16 = "hopper:mma.m16n8k16.f32.f16.f16.f32"


@pytest.fixture
def engine(monkeypatch):
    """Hopper's fp16, whose tensors on the CPU count as a GPU's; chains of the host are long enough for it, too."""
    unit, machine = unit_machine.stored("hopper-fp16")

    def launch(what):  # the stored text reads a c always
        if what.arguments.get("c", 0) is None:
            what = replace(what, arguments={**what.arguments, "c": view_of(torch.zeros(1))})
        machine(what)

    gpu = tensors.GPU(machine.target, launch, unit_machine.WARPS, unit_machine.EACH)
    monkeypatch.setattr(tensors, "gpu_of", lambda tensor: gpu)
    monkeypatch.setattr(tensors, "on_gpu", lambda *operands: tensors.is_tensor(operands[0]))
    monkeypatch.setattr(tensors, "WORTH_DEVICE", 0)
    return tcm.get_instruction(*unit.split(":", 1))


def operands(seed=0, lead=()):
    (m, n, k), rng = SHAPE, np.random.default_rng(seed)
    a, b = (rng.standard_normal((*lead, *s)).astype(np.float16) for s in ((m, k), (k, n)))
    return a, b, rng.standard_normal((*lead, m, n)).astype(np.float32)


def same(found, expected: np.ndarray) -> bool:
    """Whether a tensor is an array: type, shape, bits."""
    assert isinstance(found, torch.Tensor)
    array = found.numpy()
    return array.dtype == expected.dtype and array.shape == expected.shape and array.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 1.7, "beta": 0.3},
        {"k_order": "split_k:2"},
        {"promote_every": 16, "promote_rounding": "rz"},
        {"scale_a": np.float32(3), "scale_b": np.float32(0.5)},
    ],
    ids=str,
)
def test_values_are_those_of_arrays(engine, options):
    a, b, c = operands()
    found = engine.gemm(*map(torch.from_numpy, (a, b, c)), **options)
    assert same(found, engine.gemm(a, b, c, **options))


def test_encodings_and_strides(engine):
    a, b, c = (x.view(f"u{x.itemsize}") for x in operands(1))
    turned = torch.from_numpy(np.ascontiguousarray(a.T)).T, torch.from_numpy(np.ascontiguousarray(b.T)).T
    assert same(engine.gemm_bits(*turned, torch.from_numpy(c)), engine.gemm_bits(a, b, c))


def test_a_batch_is_its_products(engine):
    a, b, c = operands(2, (3,))
    found = engine.gemm(*map(torch.from_numpy, (a, b, c)))
    assert same(found, np.stack([engine.gemm(*each) for each in zip(a, b, c, strict=True)]))


def test_an_instruction_takes_its_tiles(engine):
    rng = np.random.default_rng(3)
    a, b, c = (rng.standard_normal((2, *s)).astype(np.float16) for s in ((16, 16), (16, 8), (16, 8)))
    c = c.astype(np.float32)
    assert same(engine.mma(*map(torch.from_numpy, (a, b, c))), engine.mma(a, b, c))
    codes = [x.view(f"u{x.itemsize}") for x in (a, b, c)]
    assert same(engine.mma_bits(*map(torch.from_numpy, codes)), engine.mma_bits(*codes))
    with pytest.raises(ValueError, match="expected"):
        engine.mma(torch.from_numpy(a[:, :8]), torch.from_numpy(b), torch.from_numpy(c))


def test_special_operands_are_done_again(engine):
    a, b, c = operands(4)
    a[3, 4], a[17, 0] = np.inf, np.nan
    codes = [torch.from_numpy(x.view(f"i{x.itemsize}"))[None] for x in (a, b, c)]
    done = tensors.run_bits(engine, *codes)
    assert done.tiles == 6 and {row for _, row, _ in done.again} == {0, 16}
    assert same(done.bits[0], engine.gemm_bits(*(x.view(f"u{x.itemsize}") for x in (a, b, c))).view(np.int32))


#: Instructions of the catalogue that have a mode, by target: docs/units_on_gpus.md states them.
WITH_MODE = {"sm_80": 918, "sm_86": 918, "sm_89": 918, "sm_90": 918, "sm_100": 918, "sm_120": 918, "gfx942": 888}


def test_how_many_instructions_have_a_mode():
    found = dict.fromkeys(WITH_MODE, 0)
    for row in tcm.list_instructions():
        for target in found:
            try:
                plan_of(lowered(row), target)
            except ValueError:
                continue
            found[target] += 1
    assert found == WITH_MODE


def test_a_unit_without_a_mode_says_what_runs_it(engine):
    a, b, _ = map(torch.from_numpy, operands())
    keyed = tcm.MatrixEngine(tcm.SequentialFMA("sr", seed=1), a_format="fp16")  # draws of an element know its place
    with pytest.raises(ValueError, match=r"has no GPU kernel for sm_90\. The CPU kernel "):
        keyed.gemm(a, b)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda a, b, c: (a, b[:5], c), ValueError, "as many columns of a as rows of b"),
        (lambda a, b, c: (a, b, c[:2]), ValueError, "expected"),
        (lambda a, b, c: (a.float() + 1e-7, b, c), ValueError, "fp16"),
    ],
)
def test_bad_operands_are_refused(engine, change, error, message):
    a, b, c = map(torch.from_numpy, operands())
    with pytest.raises(error, match=message):
        engine.gemm(*change(a, b, c))


def test_encodings_are_integers(engine):
    a, b, c = map(torch.from_numpy, operands())
    with pytest.raises(TypeError, match="uint16 or int16, got torch.float16"):
        engine.gemm_bits(a, b, c)


def test_flash_attention_runs_its_products_there(engine, monkeypatch):
    """Forward and backward with the bits of the CPU; the host's products have stored text for them, too."""
    from mpgemm.frameworks import torch_attention, torch_mode
    from mpgemm.torch import emulate

    rng, found = np.random.default_rng(5), []
    arrays = [rng.standard_normal((1, 1, 6, 8)).astype(np.float16) for _ in range(4)]
    for there in (False, True):
        q, k, v, grad = (torch.from_numpy(x) for x in arrays)
        q, k, v = (x.clone().requires_grad_() for x in (q, k, v))
        ran = []
        run_bits = tensors.run_bits
        monkeypatch.setattr(tensors, "run_bits", lambda *a, run=run_bits, **o: ran.append(1) or run(*a, **o))  # noqa: B023
        for module in (torch_attention, torch_mode):
            monkeypatch.setattr(module, "on_gpu", lambda *operands, there=there: there)
        monkeypatch.setattr(tensors, "on_gpu", lambda *operands, there=there: there and tensors.is_tensor(operands[0]))
        with emulate("h100", sdpa="flash:4"):
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            forward = len(ran)
            out.backward(grad)
        assert (forward > 0, len(ran) > forward) == (there, there)
        found.append([x.detach().view(torch.int16) for x in (out, q.grad, k.grad, v.grad)])
    assert all(map(torch.equal, *found))


def test_the_campaign_compares_and_times(engine, monkeypatch):
    """The parts of a campaign that emulate, with the machine in the place of a GPU, and a clock of one second."""
    pytest.importorskip("triton")
    from mpgemm.campaign import emulation, times

    cpu, target = torch.device("cpu"), tensors.gpu_of(None).target
    for module, changes in (
        (emulation, {"UNITS": (engine.label,), "ROUNDS": 1, "MOST": (12, 12, 40), "OWN_SHAPES": (SHAPE,)}),
        (times, {"UNITS": (engine.label,), "SIDES": (16,)}),
    ):
        for name, value in changes.items():
            monkeypatch.setattr(module, name, value)
    rows = [task() for _, task in emulation.edges(cpu)]
    assert len(rows) == 9 and all(row["differ"] == 0 and row["tiles"] >= row["again"] >= row["on_cpu"] for row in rows)

    def own(library, a, b):  # what the GPU computes itself: the unit's chain, and one element of another
        found = engine.gemm(a.numpy(), b.numpy())
        found.view(np.uint32)[3, 5] ^= 1
        return torch.from_numpy(found)

    monkeypatch.setattr(emulation.TorchMatmulEngine, "multiply", own)
    monkeypatch.setattr(emulation, "candidates", lambda arch, fmt: [engine] if fmt == "fp16" else [])
    found = {facts["data"]: task() for facts, task in emulation.own(cpu, "hopper")}
    assert found == dict.fromkeys(emulation.OWN_DATA, {"elements": SHAPE[0] * SHAPE[1], "apart": 1})

    def clock(run):
        run()
        return {"seconds": 1.0, "device_seconds": 0.5, "host_seconds": 0.1}

    [(facts, task)] = times.emulated(target, cpu, clock)
    row, operations = task(), 2 * 16**3 / 1e12
    assert facts == {"name": f"emulated {engine.label}", "m": 16, "n": 16, "k": 16}
    assert row["tflops"] == operations and row["device_tflops"] == 2 * operations and row["host_seconds"] == 0.1
    # two operations a product: multiprocessors x GHz x threads that issue in a cycle / counted instructions for a product
    assert row["predicted_tflops"] == pytest.approx(2 * 132 * 1.83e-3 * 128 / 4.461, rel=1e-3)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 13, 40), (21, 1, 40), (0, 13, 40), (21, 13, 0), (1, 1, 1)])
def test_vectors_and_nothing(engine, m, n, k):
    rng = np.random.default_rng(6)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
    c = rng.standard_normal((m, n)).astype(np.float32)
    assert same(engine.gemm(*map(torch.from_numpy, (a, b, c))), engine.gemm(a, b, c))
    assert same(engine.gemm(*map(torch.from_numpy, (a, b))), engine.gemm(a, b))


def test_tensors_with_gaps(engine):
    """Every second row and column of operands, a c that is turned, one matrix for a whole batch."""
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((3, 42, 80), (80, 26)))
    c = rng.standard_normal((13, 21)).astype(np.float32)
    x, y, z = torch.from_numpy(a)[:, ::2, 1::2], torch.from_numpy(b)[::2, ::2], torch.from_numpy(c).T.expand(3, 21, 13)
    expected = [engine.gemm(each[::2, 1::2], b[::2, ::2], c.T) for each in a]
    assert same(engine.gemm(x, y, z), np.stack(expected))


def test_an_old_triton_is_refused(monkeypatch):
    triton = pytest.importorskip("triton")
    monkeypatch.setattr(triton, "__version__", "3.2.0")
    with pytest.raises(ImportError, match="3.2.0, but units on a GPU need 3.9"):
        compiling.unit_kernel("pack")


def test_a_tile_that_was_the_fastest_is_taken_and_another_can_be_asked_for(monkeypatch):
    """Of a table that a campaign fills; a GPU that states its own keeps it."""
    rows = [
        {"unit": F16, "target": "sm_90", "warps": [2, 2], "each": [4, 4], "device_seconds": 3.0},
        {"unit": F16, "target": "sm_90", "warps": [1, 2], "each": [2, 4], "device_seconds": 2.0},
        {"unit": F16, "target": "sm_90", "warps": [4, 4], "each": [4, 4], "failed": "shared memory"},
        {"unit": "torch FP32", "device_seconds": 1.0},
    ]
    known = tiles.fastest_tiles(rows)
    assert known == {(F16, "sm_90"): tiles.UnitTile((1, 2), (2, 4))}
    monkeypatch.setattr(tensors, "FASTEST", known)
    target = get_target("sm_90")
    assert tensors.GPU(target, None).tile(F16) == {"warps": (1, 2), "each": (2, 4)}
    assert tensors.GPU(target, None, (1, 1), (2, 1)).tile(F16) == {"warps": (1, 1), "each": (2, 1)}
    assert tensors.GPU(target, None).tile("another") == tensors.GPU(get_target("sm_80"), None).tile(F16) == {}
