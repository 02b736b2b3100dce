"""Elements 2^31 and more places apart: launches on storages that are reserved and hardly touched."""

import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="kernels take torch tensors: pip install 'mpgemm[kernels]'")
pytest.importorskip("triton", reason="kernels are compiled by Triton: pip install 'mpgemm[kernels]'")

import mpgemm  # noqa: E402
from mpgemm import kernels  # noqa: E402
from mpgemm.kernels import launches  # noqa: E402
from mpgemm.kernels.forms import kernel_form  # noqa: E402
from mpgemm.kernels.gate import same_bits  # noqa: E402
from mpgemm.kernels.plans import ProductPlan  # noqa: E402
from mpgemm.kernels.products import TensorProduct, view  # noqa: E402
from mpgemm.kernels.residues import ResiduePlanes, residue_constants, residue_launches  # noqa: E402
from mpgemm.kernels.word_launches import WordPlanes, split_operands_launch  # noqa: E402
from mpgemm.recovery.methods import get_method  # noqa: E402
from tensorcore_models.compiled import memory  # noqa: E402
from tensorcore_models.compiled.ptx import program  # noqa: E402
from tensorcore_models.gpu.launches import View  # noqa: E402

FAR = 1 << 31
SMALL = kernels.Configuration(16, 32, 64, 2, 2)


class Reserved:
    """Address space whose pages exist once they are written."""

    def __init__(self, size: int):
        self.bytes, self.used = np.zeros(size, np.uint8), 0

    def empty(self, dtype: torch.dtype, shape, strides) -> torch.Tensor:
        """A tensor of any strides in bytes that no other tensor has."""
        elements = 1 + sum((s - 1) * t for s, t in zip(shape, strides, strict=True))
        size = -(-elements * dtype.itemsize // 4096) * 4096
        storage = torch.from_numpy(self.bytes[self.used : self.used + size]).view(dtype)
        self.used += size + 4096
        return storage.as_strided(shape, strides)


@pytest.fixture
def reserved(monkeypatch):
    """Address space that is a launch's global memory itself: nothing is copied."""
    space = Reserved(18 << 30)

    class Whole(memory.GlobalMemory):
        def __init__(self, arrays, names, *, traced=False, own=0):
            super().__init__([], [], traced=traced)
            self.arrays, self.names, self.given = list(arrays), list(names), len(arrays)
            self.starts = [x.ctypes.data - space.bytes.ctypes.data for x in arrays]
            assert self.starts == sorted(self.starts)  # in the order of arguments
            self.stops = [start + x.nbytes for start, x in zip(self.starts, arrays, strict=True)]
            self.stored = [False] * len(arrays)
            self.space.data = space.bytes

        def copy_back(self):
            pass

    monkeypatch.setattr(program, "GlobalMemory", Whole)
    monkeypatch.setattr(program, "checked_size", lambda arrays, limits: None)
    return space


@pytest.fixture
def device(monkeypatch):
    """An A100 that is none."""
    from ptx_device import PTXDevice

    return PTXDevice("sm_80").use(monkeypatch)


def filled(x: torch.Tensor, seed: int) -> torch.Tensor:
    values = np.random.default_rng(seed).standard_normal(tuple(x.shape))
    return x.copy_(torch.from_numpy(values.astype(np.float32)))


def test_rows_of_every_operand_are_far_apart(reserved, device, monkeypatch):
    row, n, k = kernels.recipe("bf16x3"), 7, 40
    step = FAR // 2 + 16  # row 2 lies beyond 2^31 elements
    a = filled(reserved.empty(torch.float16, (1, 3, k), (0, step, 1)), 0)
    b = filled(reserved.empty(torch.float16, (1, k, n), (0, FAR // 32, 1)), 1)
    out = reserved.empty(torch.float32, (1, 3, n), (0, 16, 1))
    a[0, 2, 3] = float("inf")  # the repair reads them again
    monkeypatch.setattr(
        ProductPlan,
        "rooms",
        lambda plan, where: {"flags": reserved.empty(torch.int32, *plan.workspace["flags"][:1], (1,))},
    )
    TensorProduct(row, a, b, configuration=SMALL).into(out)
    wanted = mpgemm.recovered_gemm(a[0].float().numpy(), b[0].float().numpy(), method=row, engine="ampere")
    assert same_bits(out[0].numpy(), wanted).all()
    assert {name for name, _ in device.runs} == {"gemm", "repair"}


def test_results_and_batches_are_far_apart(reserved, device):
    row, k = kernels.recipe("bf16x3", repair=False), 40
    a = filled(reserved.empty(torch.float16, (3, 2, k), (FAR // 2, k, 1)), 0)
    b = filled(reserved.empty(torch.float32, (3, k, 6), (k * 6, 6, 1)), 1)
    out = reserved.empty(torch.float32, (3, 2, 6), (FAR // 2, 8, 1))
    TensorProduct(row, a, b, configuration=SMALL).into(out)
    for i in range(3):
        wanted = mpgemm.recovered_gemm(a[i].float().numpy(), b[i].numpy(), method=row, engine="ampere")
        assert same_bits(out[i].numpy(), wanted).all()


class FarPlanes(WordPlanes):
    """Planes of 2^30 elements, most of which nobody uses."""

    pitch = property(lambda self: self.lines)
    plane = property(lambda self: FAR // 2)


def test_planes_of_words_are_far_apart(reserved, device):
    """Three planes of 2^30 elements each: strides and planes fit 32 bits, their products do not."""
    row, k, n, plane = kernels.recipe("bf16x6", repair=False), 40, 6, FAR // 2
    form = kernel_form(row)
    x = filled(reserved.empty(torch.float32, (1, k, n), (k * n, n, 1)), 0)
    words = reserved.empty(torch.bfloat16, (3, 1, k, n), (plane, k * n, n, 1))
    planes = FarPlanes("bf16", 3, 1, n, k, "lines")
    launch = split_operands_launch(form, (1, n, k), (None, view(x)), (None, planes), (None, words))
    kernels.products.devices.execute(launch, x.device)
    rest = x[0]
    for word in words[:, 0]:
        assert torch.equal(word.float(), rest.bfloat16().float())
        rest = rest - word.float()
    reserved.used = 0
    a = filled(torch.zeros(1, 3, k), 1)
    left = reserved.empty(torch.float32, (1, 3, k), (3 * k, k, 1)).copy_(a)
    again = reserved.empty(torch.bfloat16, (3, 1, k, n), (plane, k * n, n, 1))
    rest = torch.from_numpy(np.random.default_rng(0).standard_normal((k, n)).astype(np.float32))
    weights = rest.clone()
    for word in again[:, 0]:
        word.copy_(rest)
        rest = rest - word.float()
    result = reserved.empty(torch.float32, (1, 3, n), (3 * n, n, 1))
    right = View(again, "bf16", (k * n, n, 1), plane)
    product = launches.gemm_launch(form, SMALL, (1, 3, n, k), view(left), right, view(result))
    kernels.products.devices.execute(product, x.device)
    wanted = mpgemm.recovered_gemm(a[0].numpy(), weights.numpy(), method=row, engine="ampere")
    assert same_bits(result[0].numpy(), wanted).all()


def test_planes_of_residues_are_far_apart(reserved, device):
    """Five planes of 2^29 elements: what makes residues, and what joins remainders."""
    planes, plane = ResiduePlanes(get_method("ozaki2_int8:moduli=5").moduli, (1, 3, 6, 40)), FAR // 4
    rng = np.random.default_rng(0)
    wholes = rng.integers(-(2**15), 2**15, (3, 40)), rng.integers(-(2**15), 2**15, (40, 6))
    wholes[0][:, 0] = wholes[1][0] = 2**15 - 1
    a, b = (reserved.empty(torch.float64, (1, *x.shape), (x.size, x.shape[1], 1)) for x in wholes)
    a[0], b[0] = (torch.from_numpy(x.astype(np.float64)) for x in wholes)
    room = {name: torch.zeros(0, dtype=torch.int8) for name in planes.workspace()}
    for side, name in enumerate(("a_residues", "b_residues")):
        room[name] = reserved.empty(torch.int8, (5, planes.lines(side), planes.pitch), (plane, planes.pitch, 1))
    for side, name in enumerate(("row_exponents", "column_exponents")):
        room[name] = reserved.empty(torch.int32, (planes.lines(side),), (1,))
    made = residue_launches(planes, view(a), view(b), view(a), room, SMALL)[0]
    far = {**made.arguments, "a_plane": plane, "b_plane": plane}
    kernels.products.devices.execute(dataclasses.replace(made, arguments=far), a.device)
    scale = 2 ** (planes.bits - 15)
    for name, x in (("a_residues", wholes[0]), ("b_residues", wholes[1].T)):
        for p, found in zip(planes.moduli, room[name].numpy(), strict=True):
            assert not ((found[:, :40].astype(np.int64) - x * scale) % p).any() and not found[:, 40:].any()
    assert room["row_exponents"].tolist() == [15] * 3

    reserved.used = 0
    exact = wholes[0] @ wholes[1]
    room["remainders"] = reserved.empty(torch.int8, (5, 3, 6), (plane, 6, 1))
    for p, factor, each in zip(
        planes.moduli, residue_constants(planes.moduli)["FACTORS"], room["remainders"], strict=True
    ):
        each.copy_(torch.from_numpy((exact * scale % p * scale * factor + p // 2) % p - p // 2))
    out = reserved.empty(torch.float64, (1, 3, 6), (18, 6, 1))
    for side, name in enumerate(("row_exponents", "column_exponents")):
        room[name] = reserved.empty(torch.int32, (planes.lines(side),), (1,)).fill_(15)
    join = residue_launches(planes, view(out), view(out), view(out), room, SMALL)[2]
    kernels.products.devices.execute(dataclasses.replace(join, arguments={**join.arguments, "plane": plane}), a.device)
    assert np.array_equal(out[0].numpy(), exact)
