"""Causes with a free number are fitted and named; "ruled out" is said of what certified bounds exclude, "tried" of the rest."""

import warnings

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.testing import check_gemm

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
UNIT, FP8 = (tcm.default_instruction("h100", fmt, path="wgmma") for fmt in ("fp16", "e4m3fn"))
TF32 = tcm.default_instruction("a100", "tf32")
rng = np.random.default_rng(59)
M, K, N = 256, 64, 512
A, B = rng.standard_normal((M, K)).astype(np.float16), rng.standard_normal((K, N)).astype(np.float16)
C = rng.standard_normal((M, N)).astype(np.float32)
RIGHT = UNIT.gemm(A, B).astype(np.float32)
DOWN, ACROSS = np.indices((M, N))


def found_of(out, c=None, a=A, b=B, engine=UNIT, **options):
    found = check_gemm(out, a, b, c, engine=engine, **options)
    assert not found.passes
    return found


def tiles_from(order):
    """The result with tiles of 64 x 64 from other places: order(i, j) of tiles."""
    i, j = order(DOWN // 64, ACROSS // 64)
    return RIGHT[i * 64 + DOWN % 64, j * 64 + ACROSS % 64]


SHUFFLED = rng.permutation(32)
CAUSES = {
    "offset": (RIGHT + np.float32(3.25), "one offset: every wrong result is 3.25 more than the exact one"),
    "scale": (RIGHT * np.float32(0.3), "a wrong scale: every result is 0.3 times the exact one"),
    "bias not said": (RIGHT + C[:1] * 8, "each column has an offset of its own: "),
    "scales not said": (RIGHT * np.exp(C[:, :1]), "each row has a factor of its own: "),
    "swizzle": (
        RIGHT[DOWN, ACROSS ^ (DOWN % 8 * 8)], "the result is swizzled (exclusive or) in chunks of 8 columns, by row mod 8",
    ),
    "turn": (
        RIGHT[DOWN, ACROSS // 16 * 16 + (ACROSS + 4 * (DOWN // 2 % 4)) % 16],
        "the result is turned in chunks of 4 columns, by (row // 2) mod 4",
    ),
    "tiles": (
        tiles_from(lambda i, j: np.divmod(SHUFFLED[i * 8 + j], 8)), "tiles of 64 x 64 hold another tile: the tile rows",
    ),
    "raster": (
        tiles_from(lambda i, j: (np.where(j < 4, j, i), np.where(j < 4, i, j))),
        "tiles of 64 x 64 hold the tile with the indices (down, across) exchanged: ",
    ),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", CAUSES)
def test_a_free_number_is_fitted_and_the_cause_named(name):
    out, text = CAUSES[name]
    found = found_of(out)
    assert all(text in said for said in found.suspects), found.suspects
    assert not any("one offset" in said for said in found.ruled_out) or name != "offset"
    assert not any("one factor" in said for said in found.ruled_out) or name != "scale"


def test_alpha_and_beta_are_fitted():
    found = found_of(np.float32(1.2) * RIGHT + np.float32(0.7) * C, C)
    assert found.suspects == (
        "wrong factors of product and C: 1.2 times the right product, 0.7 times the right addend",
    )


@pytest.mark.parametrize(
    ("rounding", "text"),
    [("rna", "with ties away from zero"), ("rz", "truncated to tf32"), ("ru", "rounded up to tf32")],
)
def test_another_rounding_of_the_operands_is_named(rounding, text):
    x = (rng.integers(-(2**12), 2**12, (64, 64)) + 0.5).astype(np.float32)  # every second of them is a tie
    y = rng.standard_normal((64, 32)).astype(np.float32)
    used = [np.asarray(tcm.round_to(v, "tf32", rounding), np.float32) for v in (x, y)]
    found = found_of(TF32.gemm(*used), a=x, b=y, engine=TF32, input_rounding="rne")
    assert any(text in said for said in found.suspects), found.suspects


@pytest.mark.parametrize("at", [7, 3])
def test_the_scale_of_one_block_for_all_is_named(at):
    a, b = rng.standard_normal((48, 1024)).astype(E4M3), rng.standard_normal((1024, 128)).astype(E4M3)
    scale_a, scale_b = (rng.uniform(0.5, 2, shape).astype(np.float32) for shape in ((48, 8), (8, 1)))
    out = FP8.gemm(a, b, scale_a=np.repeat(scale_a[:, at : at + 1], 8, 1), scale_b=scale_b)
    found = found_of(out, a=a, b=b, engine=FP8, scale_a=scale_a, scale_b=scale_b)
    which = "the last block of k" if at == 7 else "block 3 of k"
    assert found.suspects == (f"scale_a is that of {which} everywhere",)


@pytest.mark.full
def test_what_is_ruled_out_is_excluded_by_bounds_and_the_rest_is_tried():
    """Noise: no factor and no offset explains it; a swizzle that is none of those tried is not excluded."""
    noise = RIGHT + rng.standard_normal(RIGHT.shape).astype(np.float32)
    found = found_of(noise, C)
    assert {text.partition(",")[0] for text in found.ruled_out} == {
        "elements that were never written (0)", "one factor for all wrong results", "one offset for all wrong results",
        "C left out in all wrong elements", "C added twice in all wrong elements", "C subtracted in all wrong elements",
    }  # fmt: skip
    assert any("swizzled" in text for text in found.tried)
    assert "tried, each as the only fault, without explaining the result: " in str(found)
    # a true cause is never excluded, whatever is found
    for out in (RIGHT + C * 0, RIGHT + 2 * C, RIGHT - C):
        said = found_of(out, C)
        kind = {0: "left out", 1: "added twice", 2: "subtracted"}
        assert sum(word in " ".join(said.ruled_out) for word in kind.values()) == 2


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_results_without_a_number_tell_nothing(value):
    a, b = (rng.standard_normal(shape).astype(E4M3) for shape in ((16, 8192), (8192, 16)))
    found = found_of(np.full((16, 16), value, np.float32), a=a, b=b, engine=FP8, promote_every=128)
    assert found.suspects[0].startswith("every wrong result is ")
    assert found.ruled_out == found.tried == ()


def test_a_misread_minus_zero_is_still_named_where_others_are_finite():
    a, b = (rng.standard_normal(shape).astype(E4M3) for shape in ((64, 64), (64, 32)))
    a[::4, 5] = E4M3(-0.0)
    read = a.view(np.uint8)
    b_read = np.where(b == 0, E4M3(0), b)
    out = FP8.gemm(a, b_read) / 2
    out[(read == 0x80).any(1)] = np.nan
    found = found_of(out, a=a, b=b_read, engine=FP8)
    assert any("A was read as e4m3fnuz" in text for text in found.suspects), found.suspects


def test_zeros_beside_an_infinity_do_not_pass_and_nothing_warns():
    a, b = np.zeros((4, 16), np.float16), np.ones((16, 8), np.float16)
    a[1, 3] = np.inf
    right = np.zeros((4, 8), np.float32)
    right[1] = np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_gemm(right, a, b, engine=UNIT).passes
        found = found_of(np.zeros((4, 8), np.float32), a=a, b=b)
    assert "vacuous" not in found.summary and "8 of 32 elements" in found.summary
