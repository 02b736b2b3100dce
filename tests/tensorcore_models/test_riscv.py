"""RISC-V's vector dot products against the ISA simulator's functions, bit for bit."""

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models import kernels, reference
from tensorcore_models.catalogue.riscv import dot, vector_dot

KEYS = [f"bf16.bf16.n{n}" for n in (8, 16, 32)] + [
    f"{a}.{b}.n{n}" for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2") for n in (16, 32, 64)
]


@pytest.fixture(scope="module")
def vectors(shared):
    with np.load(shared / "model_vectors" / "riscv_zvbdota.npz") as file:
        return {name: file[name] for name in file.files}


def instruction(key):
    a, b, count = key.split(".")
    stem = "vfwbdot" if a == "bf16" else "vfqbdot"
    return tcm.get_instruction("riscv", f"{stem}.k{count[1:]}.f32.{a}.{b}.f32")


def rows_of(vectors, key, every=1):
    return [vectors[f"{key}.{name}"][::every] for name in "abcd"]


@pytest.mark.parametrize("key", KEYS)
def test_the_simulator_s_bits(vectors, key):
    assert set(KEYS) == {name[:-2] for name in vectors}
    a, b, c, d = rows_of(vectors, key)
    row = instruction(key)
    assert np.array_equal(row.mma_bits(a[:, None], b[..., None], c[:, None, None])[:, 0, 0], d)
    assert np.array_equal(row.gemm_bits(a[:1], b[:1].T, c[:1, None])[0], d[:1])


@pytest.mark.parametrize("key", KEYS)
def test_plain_integers_give_them_too(vectors, key):
    a, b, c, d = rows_of(vectors, key, every=50)
    row = instruction(key)
    found = reference.mma_bits(row, a[:, None], b[..., None], c[:, None, None])
    assert np.array_equal(found[:, 0, 0], d)


def test_overflow_is_infinity_although_everything_rounds_to_odd():
    row = tcm.get_instruction("riscv", "vfwbdot.k8.f32.bf16.bf16.f32")
    a = np.zeros((1, 8), np.uint16)
    a[0, 0] = 0x7F00  # 2^127
    one = np.full((8, 1), 0x3F80, np.uint16)
    assert row.gemm_bits(a, one, np.array([[0x7F000000]], np.uint32))[0, 0] == 0x7F800000


def test_fp32_products_are_rounded_first():
    row = tcm.get_instruction("riscv", "vfbdot.k1.f32.f32.f32.f32")
    x = np.float32([[1 + 2.0**-12]])
    assert row.gemm(x, x, -(x * x))[0, 0] == 0  # a fused multiply-add leaves 2^-24


@pytest.mark.parametrize("types", [("s8", "s8"), ("u8", "s8")])
def test_integers_are_exact(types):
    row = tcm.get_instruction("riscv", f"vqbdot.k16.s32.{'.'.join(types)}.s32")
    rng = np.random.default_rng(1)
    a, b = (
        rng.integers(-100 if t == "s8" else 0, 100, (4, 4)).astype(np.int8 if t == "s8" else np.uint8) for t in types
    )
    assert np.array_equal(row.gemm(a, b), a.astype(int) @ b.astype(int))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((129, "bf16"), "VLEN is 129, expected a power of two"),
        ((16, "bf16"), "VLEN is 16, expected a power of two, 32 or more"),
        ((128, "fp16"), "no dot product of fp16 and fp16: expected bf16 with bf16, or any pair of e4m3 and e5m2"),
        ((128, "bf16", "e4m3"), "no dot product of bf16 and e4m3"),
    ],
)
def test_bad_vectors(given, message):
    with pytest.raises(ValueError, match=message):
        vector_dot(*given)
    with pytest.raises(ValueError, match="VLMAX is 12 elements, expected a power of two"):
        dot(12)


def test_every_length_that_fits():
    assert vector_dot(1024, "e5m2", "e4m3").k == 128
    assert vector_dot(256, "bf16") == tcm.get_instruction("riscv", "vfwbdot.k16.f32.bf16.bf16.f32")


@pytest.mark.parametrize("elements", [8, 16, 32])
def test_lanes_and_generic_kernel_agree(elements):
    """Exponents around the place at which products are cut, and far apart."""
    rng = np.random.default_rng(elements)
    engine = tcm.MatrixEngine(dot(elements), a_format="bf16")
    for low, high in ((120, 134), (100, 150), (0, 4), (240, 254)):
        k = 3 * elements + 2
        a, b = (
            (rng.integers(0, 2, s) << 15 | rng.integers(low, high, s) << 7 | rng.integers(0, 128, s)).astype(np.uint16)
            for s in ((20, k), (k, 40))
        )
        c = (rng.integers(0, 2, (20, 40)) << 31 | rng.integers(low, high, (20, 40)) << 23).astype(np.uint32)
        kernels.set_kernel("auto")
        try:
            assert kernels.kernel_name(engine, 20, 40, k) == "lanes of 64 bits"
            fast = kernels.matrix_bits(engine, a, b, c)
            kernels.set_kernel("generic")
            assert np.array_equal(fast, kernels.matrix_bits(engine, a, b, c))
        finally:
            kernels.set_kernel(None)
