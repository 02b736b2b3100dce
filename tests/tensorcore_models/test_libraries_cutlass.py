"""CUTLASS's orders: hand-written boundaries, and equality with the recipes cuBLASLt has for its CUTLASS kernels."""

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models.libraries import Unknown, cublaslt, cutlass


def pieces(recipe):
    return [[(p.start, p.stop) for p in chain.pieces] for chain in recipe.chains]


def test_where_the_residue_tile_comes():
    assert pieces(cutlass("a100", k=100, tile_k=32)) == [[(0, 4), (4, 100)]]
    assert pieces(cutlass("a100", k=96, tile_k=32)) == [[(0, 96)]]
    assert pieces(cutlass("a100", k=20, tile_k=32)) == [[(0, 20)]]
    assert pieces(cutlass("a100", k=100, tile_k=32, residue="last")) == [[(0, 100)]]


def test_splits():
    assert pieces(cutlass("a100", k=256, tile_k=32, split_k=3)) == [[(0, 128)], [(128, 256)]]  # grain 64
    assert pieces(cutlass("a100", k=200, tile_k=32, split_k=3)) == [
        [(0, 8), (8, 72)],
        [(72, 80), (80, 144)],
        [(144, 168), (168, 200)],
    ]
    serial = cutlass("a100", k=256, split_k=2, split_mode="serial")
    assert serial.order.carry == "output" and cutlass("a100", k=256, split_k=2).order.carry is None
    assert cutlass("a100", k=64, split_k=2, split_mode="serial").epilogue.scales
    streams = cutlass("a100", k=160, stream_k=[(0, 64), (64, 160)])
    assert pieces(streams) == [[(0, 64)], [(64, 160)]]
    warps = cutlass("a100", k=72, tile_k=32, sliced_k=2)
    assert pieces(warps) == [[(0, 8), (8, 24), (40, 56)], [(24, 40), (56, 72)]]


@pytest.mark.parametrize(
    ("fmt", "k", "parts", "length"),
    [
        ("fp16", 576, 4, 192),  # 128 bytes: 64 values
        ("fp16", 584, 4, 152),  # 16 bytes: 8 values
        ("e4m3fn", 1024, 3, 384),  # 128 values
        ("e4m3fn", 1040, 3, 352),  # 16 values
        ("tf32", 320, 3, 128),  # 32 values
        ("tf32", 324, 3, 108),  # 4 values
    ],
)
def test_slices_are_whole_cache_lines_of_the_format(fmt, k, parts, length):
    """params_universal_base.h: ceil(k / parts) rounded up to 128 bytes where they divide k, else to 16 bytes."""
    chains = cutlass("h100" if fmt == "e4m3fn" else "a100", k=k, format=fmt, split_k=parts).chains
    assert [(chain.pieces[0].start, chain.pieces[-1].stop) for chain in chains] == [
        (start, min(start + length, k)) for start in range(0, k, length)
    ]


def test_the_grain_of_older_kernels_is_their_tile():
    """gemm.h: ceil of the tiles over the slices, in tiles."""
    assert pieces(cutlass("a100", k=320, tile_k=32, split_k=3, grain=32)) == [[(0, 128)], [(128, 256)], [(256, 320)]]
    with pytest.raises(ValueError, match="grain is 0"):
        cutlass("a100", k=320, split_k=3, grain=0)


def test_serial_split_k_rounds_between_slices():
    k = 128
    a, b = np.full((1, k), 1.0, np.float16), np.full((k, 1), 1.0, np.float16)
    a[:, :64] = 32.0  # 2048, where fp16 has steps of 2
    a[0, 64:], a[0, 64] = 0.0, 1.0
    bits = [x.view(np.uint16) for x in (a, b)]
    parallel, serial = (
        cutlass("a100", k=k, split_k=2, split_mode=mode).gemm_bits(*bits, out_format="fp16").view(np.float16)
        for mode in ("parallel", "serial")
    )
    assert parallel == serial == 2048
    a[0, 65], a[0, 64] = 0.0, 3.0
    assert cutlass("a100", k=k, split_k=2).gemm_bits(*bits, out_format="fp32").view(np.float32) == 2051
    three = np.concatenate([a, np.zeros((1, 64), np.float16)], axis=1)
    three[0, 64], three[0, 128] = 1.0, 1.0
    operands = three.view(np.uint16), np.full((192, 1), 0x3C00, np.uint16)
    got = [
        cutlass("a100", k=192, split_k=3, split_mode=mode)
        .gemm_bits(*operands, out_format="fp16")
        .view(np.float16)[0, 0]
        for mode in ("parallel", "serial")
    ]
    assert got == [2050, 2048]  # 2048 + 1 + 1 in fp32; in fp16 each 1 is lost to the even neighbour


@pytest.mark.parametrize(("scheme", "mode"), ((2, "parallel"), (0, "serial")))
def test_cublaslt_runs_the_same_kernels(scheme, mode):
    k, rng = 1000, np.random.default_rng(0)
    config = {"ALGO_ID": 24, "STAGES_ID": 14, "SPLITK_NUM": 3, "REDUCTION_SCHEME": scheme}
    library = cublaslt("h100", "13.1", m=20, k=k, n=12, format="bf16", config=config)
    own = cutlass("h100", k=k, format="bf16", tile_k=64, split_k=3, split_mode=mode)
    assert own.order == library.order and own.engine == library.engine
    a, b = tcm.encode(rng.standard_normal((20, k)), "bf16"), tcm.encode(rng.standard_normal((k, 12)), "bf16")
    np.testing.assert_array_equal(own.gemm_bits(a, b, out_format="bf16"), library.gemm_bits(a, b, out_format="bf16"))


def test_bad_input():
    for options, message in (
        ({"tile_k": 24}, "multiple of 16"),
        ({"tile_k": 32, "sliced_k": 4}, "multiple of 64"),
        ({"split_k": 0}, "split_k is 0"),
        ({"split_mode": "atomic"}, "expected one of parallel, serial"),
        ({"residue": "none"}, "expected one of first, last"),
        ({"stream_k": [(0, 32)]}, "0 to k = 64"),
        ({"stream_k": [(0, 16), (16, 64)]}, "multiples of tile_k 32"),
        ({"stream_k": [(0, 64)], "split_k": 2}, "exclude each other"),
    ):
        with pytest.raises(ValueError, match=message):
            cutlass("a100", k=64, **options)
    with pytest.raises(Unknown, match="scale of 2"):
        zeros = np.zeros((1, 128), np.uint16), np.zeros((128, 1), np.uint16)
        cutlass("a100", k=128, split_k=2, split_mode="serial").gemm_bits(*zeros, scale=2.0)
