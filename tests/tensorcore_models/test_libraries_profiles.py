"""Products of an H100's libraries from their profiles: recorded matrices, every part of a rule, and what is refused.

The operands of a recorded row follow from its seed. Eight small rows ship in `vectors/h100_products.json`; the others need
`MPGEMM_SHARED`.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models import libraries
from tensorcore_models.libraries.recorded_products import digest, is_product, load_rows, operands
from tensorcore_models.orders.order import Chain, Sum, leaves

SHIPPED = Path(__file__).parents[1] / "vectors" / "h100_products.json"
#: Multiplications of a row that `make test` computes whole, and of one that is left to `slow`.
QUICK, LONG = 1 << 21, 1 << 31


def recorded(shared):
    path = shared / "hardware_vectors" / "h100" / "libraries" / "products.json"
    if not path.is_file():
        pytest.skip(f"recordings of an H100's libraries not found: no {path}")
    return [row for row in load_rows(path) if is_product(row)]


def wrong(rows):
    """Names of the rows whose whole matrix is another."""
    found = []
    for row in rows:
        a, b, scales = operands(row)
        if digest(libraries.from_profile(row).product(a, b, **scales)) != row["sha256"]:
            found.append(row["name"])
    return found


def work(row):
    return row["m"] * row["n"] * row["k"]


@pytest.mark.parametrize("row", load_rows(SHIPPED), ids=lambda row: row["name"])
def test_shipped_rows(row):
    assert not wrong([row])


def test_small_recorded_rows(shared):
    rows = [row for row in recorded(shared) if work(row) <= QUICK]
    assert len(rows) == 74
    assert not wrong(rows)


@pytest.mark.full  # 100 seconds: matrices of up to 2**31 products each
def test_recorded_rows(shared):
    rows = [row for row in recorded(shared) if QUICK < work(row) < LONG]
    assert len(rows) == 212
    assert not wrong(rows)


@pytest.mark.slow  # minutes: sums of 8 to 69 billion products
def test_largest_recorded_rows(shared):
    rows = [row for row in recorded(shared) if work(row) >= LONG]
    assert len(rows) == 26
    assert not wrong(rows)


def product_of(kernels, algo="", **row):
    """A profile's recipe; sizes and formats of tf32 by default."""
    row = {"m": 17, "n": 20, "k": 1000, "operands": "tf32", "dtype": "torch.float32", "layout": "nn", **row}
    return libraries.from_profile({**row, "kernels": kernels, "configuration": algo})


TF32 = "cutlass_80_tensorop_s1688gemm_64x64_16x6_{}_align4"
JOIN = "void cublasLt::splitKreduce_kernel<32, 16, int, {}, float, float, float, false, float>(cublasLt::Params)"
DMMA = (
    "sm90_xmma_gemm_f64f64_f64f64_f64_nt_n_tilesize32x64x32_stage3_warpsize2x2x1_tensor16x8x8_execute_kernel__5x_cublas"
)
FFMA = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute_split_k_kernel"
XMMA = "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x128x32_warpgroupsize1x1x1_execute_segment_k_off_kernel"
INT8 = {"operands": "s8", "dtype": "torch.int32", "k": 1 << 17}
VECTOR = "internal::gemvx::kernel<int, int, {0}, {0}, {0}, {0}, false, true, {1}, false, {2}, false, cublasGemvParams<{0}>>(x)"
SPLIT = "algoId=21 numSplitsK={} reductionScheme=REDUCTION_SCHEME_COMPUTE_TYPE"


def spans(chain):
    return [(piece.start, piece.stop) for piece in chain.pieces]


def test_slices_follow_the_bytes_of_the_contiguous_operands():
    """k = 1000: no multiple of 32 FP32 values, so slices are multiples of 4; 1024 is, unless k is contiguous in neither."""
    for kernel_layout, k, length in (
        ("nn", 1000, 252),
        ("nn", 1024, 256),
        ("nt", 1024, 256),
        ("nt", 1028, 260),
        ("tn", 1056, 288),
    ):
        order = product_of([TF32.format(kernel_layout), JOIN.format("float")], SPLIT.format(4), k=k).order
        assert spans(order.parts[0])[-1][1] == length, (kernel_layout, k)
    residue = product_of([TF32.format("nn"), JOIN.format("float")], SPLIT.format(4), k=1000).order.parts[0]
    assert spans(residue) == [(0, 12), (12, 252)]


def test_slices_dealt_in_turn_and_their_joins():
    order = product_of([FFMA], "numSplitsK=3", operands="fp32", k=50).order
    assert [spans(c) for c in order.parts] == [[(0, 8), (24, 32), (48, 50)], [(8, 16), (32, 40)], [(16, 24), (40, 48)]]
    fp64 = {"operands": "fp64", "dtype": "fp64", "k": 96}
    order = product_of(["Memset (Device)", DMMA], "numSplitsK=3", **fp64).order
    assert order == product_of([DMMA], "numSplitsK=3 customOption=1", **fp64).order
    last, first, second = order.parts  # of three: p2 + (p0 + nothing: p0 + p2 would take the last) + p1
    assert [spans(x) for x in (last, first, second)] == [[(64, 96)], [(0, 32)], [(32, 64)]]


def test_widths_of_lanes_are_in_bytes():
    for kind, wide in (("float", 64), ("double", 32)):
        fmt = {"float": "fp32", "double": "fp64"}[kind]
        order = product_of([VECTOR.format(kind, "false", 9)], m=1, n=8, k=4096, operands=fmt, dtype=fmt).order
        chains = list(leaves(order))
        assert len(chains) == 16
        assert spans(chains[0])[0] == (0, wide)
    tf32 = product_of([VECTOR.format("float", "true", 9)], m=1, n=8, k=64, operands="tf32")
    assert tf32.profile.formats == ("fp32", "fp32")  # TF32 is not used for one row
    assert [c.pieces[0] for c in leaves(tf32.order)][1] == range(8, 57, 16)


@pytest.mark.parametrize(
    ("value", "nearest"), ((1024.5, 1024), (2049, 2048), (2050, 2050), (2051, 2052), (4098, 4096), (6147, 6148))
)
def test_tf32_rounds_operands_to_nearest_even(value, nearest):
    product = product_of([TF32.format("nn")], m=1, n=1, k=8)
    a, b = np.zeros((1, 8), np.float32), np.ones((8, 1), np.float32)
    a[0, 0] = value
    assert product.product(a, b)[0, 0] == nearest
    assert product.product(a.view(np.uint32), b.view(np.uint32))[0, 0] == nearest


def test_rows_are_scaled_by_b_first():
    kernel = "nvjet_sm90_qqsss_64x64_128x6_1x1_h_bz_ovscale_TNT"
    product = product_of([kernel], m=30, n=40, k=32, operands="e4e4")
    a, b = (tcm.encode(np.full(shape, 1.5), "e4m3fn") for shape in ((30, 32), (32, 40)))
    rng = np.random.default_rng(0)
    row, column = rng.uniform(1, 2, (30, 1)).astype(np.float32), rng.uniform(1, 2, (1, 40)).astype(np.float32)
    got, sums = product.product(a, b, row, column), np.full((30, 40), 72, np.float32)
    assert (got == (sums * column) * row).all()
    assert (got != (sums * row) * column).any()
    single = [product.product(a[i : i + 1], b[:, :1], row[i : i + 1], column[:, :1]).item() for i in range(30)]
    assert (single == got[:, 0]).all()  # one factor each is not folded


def test_an_addend_is_added_before_the_output_is_rounded():
    product = product_of([FFMA.replace("split_k_", "")], operands="fp32", m=1, n=1, k=1)
    one = np.ones((1, 1), np.float32)
    tiny = np.full((1, 1), 2.0**-24, np.float32)
    assert product.product(one, one, c=tiny)[0, 0] == 1
    assert product.product(one, one, c=3 * tiny)[0, 0] == np.float32(1 + 2.0**-22)


def test_what_cublaslt_logs_may_stand_as_text_or_as_fields():
    texts = (
        "algoId=20 tile=MATMUL_TILE_64x64 stages=MATMUL_STAGES_8x5 reductionScheme=REDUCTION_SCHEME_COMPUTE_TYPE numSplitsK=7",
        "[cublasLt][Api][cublasLtSSSMatmul] A=0x7f computeDesc=[computeType=COMPUTE_32F transb=OP_T] "
        "algo=[algoId=20 stages=MATMUL_STAGES_8x5 reductionScheme=REDUCTION_SCHEME_COMPUTE_TYPE numSplitsK=7]",
        {"ALGO_ID": 20, "STAGES_ID": 28, "REDUCTION_SCHEME": 2, "SPLITK_NUM": 7},
        {"algoId": 20, "stages": "8x5", "reductionScheme": "COMPUTE_TYPE", "numSplitsK": 7},
    )
    orders = [product_of(None, text, operands="fp32").order for text in texts]
    assert isinstance(orders[0], Sum)
    assert orders.count(orders[0]) == len(texts)


def test_slices_are_rounded_where_the_joining_kernel_reads_16_bits():
    kernel = "cutlass_80_tensorop_bf16_s16816gemm_bf16_64x64_32x6_nt_align2"
    row = {"operands": "bf16", "dtype": "torch.bfloat16"}
    narrow = product_of([kernel, JOIN.format("__nv_bfloat16")], SPLIT.format(8), **row).order
    wide = product_of([kernel, JOIN.format("float")], SPLIT.format(8), **row).order
    assert (narrow.partials, wide.partials) == ("bf16", None)
    assert isinstance(narrow.parts[0], Chain)


@pytest.mark.parametrize(
    ("field", "kernels", "algo", "row"),
    (
        ("gpu", [TF32.format("nn")], "", {"gpu": "NVIDIA A100-SXM4-80GB"}),
        ("cublas", [TF32.format("nn")], "", {"cuda": "12.8"}),
        ("kernels", ["ampere_sgemm_32x32_sliced1x4_nn"], "", {}),
        ("kernels", ["nvjet_sm90_hsh_8x64_64x16_4x1_v_bz_newthing_TNN"], "", {"operands": "fp16", "dtype": "torch.float16"}),
        ("kernels", [VECTOR.format("float", "true", 9)], "", {"operands": "fp32"}),
        ("numSplitsK", [TF32.format("nn"), JOIN.format("float")], "", {}),
        ("numSplitsK", [XMMA], "numSplitsK=2", {}),
        ("customOption", [DMMA], "numSplitsK=8", {"operands": "fp64", "dtype": "torch.float64"}),
        ("customOption", [VECTOR.format("float", "true", 9)], "algoId=13 customOption=42", {"operands": "fp32", "m": 1}),
        ("algoId", None, "algoId=99", {}),
        ("layout", None, "algoId=20 stages=8x5 numSplitsK=2", {"operands": "fp32", "layout": None}),
        ("dtype", [TF32.format("nn")], "", {"dtype": "torch.float64"}),
        ("k", ["cutlass_80_tensorop_i16832gemm_s8_128x128_64x3_tn_align16"], "", INT8),
    ),
)  # fmt: skip
def test_what_was_not_recorded_names_its_field(field, kernels, algo, row):
    with pytest.raises(libraries.Unknown) as caught:
        product_of(kernels, algo, **row)
    assert caught.value.field == field


def test_another_version_is_predicted_where_it_is_assumed():
    row = json.loads(SHIPPED.read_text())["rows"][0] | {"gpu": "NVIDIA H200", "cuda": "12.8"}
    product = libraries.from_profile(row, assume="h100")
    assert "NVIDIA H200" in product.assumed and "cuBLAS 12.8" in str(product)
    assert libraries.from_profile(row, gpu="h200", assume="h100").order == product.order
    with pytest.raises(libraries.Unknown, match="assume is 'b200'"):
        libraries.from_profile(row, assume="b200")


@pytest.mark.parametrize(
    ("message", "change"),
    (
        ("lacks k", {"k": None}),
        ("expected a positive integer", {"m": 0}),
        ("kernel multiplies", {"operands": "fp16"}),
        ("neither kernels nor an algoId", {"kernels": [], "configuration": None}),
        ("layout is 'xy'", {"layout": "xy", "kernels": None, "configuration": "algoId=21 stages=16x6"}),
        ("does not state its output format", {"dtype": None}),
        ("expected an integer", {"configuration": "numSplitsK=many"}),
        ("call failed", {"failed": "out of memory"}),
    ),
)
def test_contradictions_are_refused(message, change):
    row = {"m": 17, "n": 20, "k": 1000, "operands": "tf32", "dtype": "torch.float32", "kernels": [TF32.format("nn")]}
    row = {
        name: value
        for name, value in (row | change).items()
        if value is not None or name in ("kernels", "configuration")
    }
    with pytest.raises(ValueError, match=message):
        libraries.from_profile(row)


def test_scales_where_a_kernel_takes_none():
    product = product_of([TF32.format("nn")], m=1, n=1, k=8)
    one = np.ones((1, 8), np.float32)
    with pytest.raises(libraries.Unknown, match="takes no scales"):
        product.product(one, one.T, 1.0, 1.0)
    with pytest.raises(ValueError, match="expected k = 8 as in the profile"):
        product.product(one[:, :4], one.T[:4])


@pytest.mark.parametrize("k", (40, 1000, 1003, 1160, 4096))
@pytest.mark.parametrize("parts", (1, 2, 3, 8))
def test_16_bit_rules_of_13_0_are_the_published_ones_of_13_1(k, parts):
    """Two independent sources: a recording of 13.0, and cublas_match's tables of 13.1, which do not say the layout."""
    nvjet, tile_64, no_stages = (
        {"ALGO_ID": 66, "STAGES_ID": 35},
        {"ALGO_ID": 23, "STAGES_ID": 14},
        {"ALGO_ID": 24, "STAGES_ID": 0},
    )
    for config in (nvjet, tile_64, no_stages):
        config = {**config, "SPLITK_NUM": parts, "REDUCTION_SCHEME": 2}
        size = {"m": 8, "k": k, "n": 8, "format": "bf16", "config": config}
        try:
            published = libraries.cublaslt("h100", "13.1", **size)
        except libraries.Unknown:
            assert config["ALGO_ID"] == 66  # slices that are not inside of k
            continue
        size["config"] = {**config, "layout": "nn"}
        recipe = libraries.configured("h100", "13.0", **size, out_format="bf16")
        assert recipe.order == published.order
        assert recipe.engine.k == published.engine.k


def test_kernels_without_stages_have_tiles_of_32():
    kernel = "cutlass_75_tensorop_s1688gemm_bf16_64x64_nt_align1"
    order = product_of([kernel], k=1003, operands="bf16", dtype="bf16").order
    assert spans(order) == [(0, 11), (11, 1003)]
