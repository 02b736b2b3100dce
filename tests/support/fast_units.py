"""Units that fast kernels cover, by path, and how one path runs whatever the size."""

import functools
from types import SimpleNamespace

from twins import Unit

from tensorcore_models import kernels
from tensorcore_models.accumulators import (
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupFusedDotRoundDownAdd,
    GroupPairwiseSum,
    InterleavedDotAdd,
    LanedFMA,
    ParametricDotAdd,
    SequentialFMA,
)
from tensorcore_models.kernels import pairwise

HALF = {"c_format": "fp16", "d_format": "fp16"}
RNE = {"output_rounding": "rne"}
NARROW = (
    Unit(FusedDotAdd(4, 23), "fp16", "fp16"),
    Unit(FusedDotAdd(8, 24), "fp16", "fp16"),
    Unit(FusedDotAdd(16, 25), "fp16", "fp16"),
    Unit(FusedDotAdd(16, 25), "fp16", "fp16", c_format="fp16"),
    Unit(FusedDotAdd(4, 23, **RNE), "fp16", "fp16", **HALF),
    Unit(FusedDotAdd(8, 24, **RNE), "fp16", "fp16", **HALF),
    Unit(FusedDotAdd(16, 25, **RNE), "fp16", "fp16", **HALF),
    Unit(FusedDotAdd(16, 25, subnormal_c="normalised", exponent_floor=-21, **RNE), "fp16", "fp16", **HALF),
    Unit(FusedDotAdd(16, 13, output_fraction_bits=13), "e4m3fn", "e5m2"),
    Unit(FusedDotAdd(16, 13, **RNE), "e4m3fn", "e5m2", **HALF),
    Unit(FusedDotAdd(16, 25), "e4m3fn", "e4m3fn"),
    Unit(FusedDotAdd(16, 24, exponent_floor=-132), "fp16", "fp16"),
    Unit(FusedDotAdd(7, 6, exponent_floor=-3), "e2m1", "e4m3fnuz"),
    Unit(FusedDotAdd(5, 25, nan="quiet"), "e5m2fnuz", "e3m2"),
    Unit(ParametricDotAdd(terms=8, fraction_bits=24), "fp16", "fp16"),
    Unit(FusedDotAdd(32, 13, output_fraction_bits=13), "e5m2", "e4m3fn"),
    Unit(FusedDotAdd(32, 13, **RNE), "e4m3fn", "e4m3fn", **HALF),
    Unit(InterleavedDotAdd(), "e4m3fn", "e5m2"),
    Unit(InterleavedDotAdd(FusedDotAdd(**RNE)), "e4m3fn", "e5m2", **HALF),
    Unit(InterleavedDotAdd(FusedDotAdd(8, 25), group_order=(1, 0)), "e5m2", "e4m3fn"),
)
WIDE = (
    Unit(FusedDotAdd(8, 24), "bf16", "bf16"),
    Unit(FusedDotAdd(16, 25), "bf16", "bf16"),
    Unit(FusedDotAdd(4, 24), "tf32", "tf32"),
    Unit(FusedDotAdd(8, 25), "tf32", "tf32"),
    Unit(FusedDotAdd(8, 25, subnormal_c="normalised", negative_underflow="negative"), "bf16", "fp16"),
    Unit(FusedDotAdd(9, 28, exponent_floor=-100), "fp32", "bf16"),
    Unit(FusedDotAdd(32, 25), "e4m3fn", "e5m2"),
    Unit(FusedDotAdd(32, 25, **RNE), "e5m2", "e5m2", **HALF),
    Unit(FusedDotAdd(32, 25), "e4m3fn", "e5m2", scale_format="ue8m0", block_size=32),
    Unit(FusedDotAdd(32, 25, exponent_floor=-133), "e2m1", "e3m2", scale_format="ue8m0", block_size=16),
    Unit(FusedDotRoundDownAdd(8), "fp16", "fp16"),
    Unit(FusedDotRoundDownAdd(8), "bf16", "bf16"),
    Unit(FusedDotRoundDownAdd(4, nan="all_ones"), "tf32", "tf32"),
    Unit(
        FusedDotRoundDownAdd(8, c_inf_with_overflow="c", negative_underflow="positive", sum_fraction_bits=None),
        "bf16",
        "bf16",
    ),
    Unit(GroupFusedDotRoundDownAdd(16), "e4m3fnuz", "e5m2fnuz"),
    Unit(GroupFusedDotRoundDownAdd(6, c_zero_below=24), "bf16", "bf16"),
    Unit(FusedDotAdd(16, 24, alignment_rounding="rne"), "fp16", "fp16"),
    Unit(FusedDotAdd(8, 9, alignment_rounding="rne"), "bf16", "bf16"),  # ties are frequent
    Unit(ParametricDotAdd(9, 28, alignment_rounding="rne", exponent_floor=-100), "fp32", "tf32", c_format="fp16"),
    Unit(
        FusedDotAdd(32, 12, alignment_rounding="rne", subnormal_c="normalised"),
        "e4m3fn",
        "e5m2",
        scale_format="ue8m0",
        block_size=32,
    ),
)
PAIRWISE = (
    Unit(GroupPairwiseSum(4), "fp16", "fp16"),
    Unit(GroupPairwiseSum(4), "bf16", "bf16"),
    Unit(GroupPairwiseSum(2), "bf16", "bf16"),
    Unit(GroupPairwiseSum(4, flush_input="fp32"), "fp16", "bf16"),
    Unit(GroupPairwiseSum(4, terms=16), "bf16", "bf16"),
    Unit(GroupPairwiseSum(2, nan="all_ones", terms=4), "bf16", "bf16"),
)
AMD = {"output_rounding": "rne", "nan": "quiet", "negative_underflow": "negative"}
EXACT = (
    Unit(ParametricDotAdd(4, fraction_bits=None, **AMD), "fp16", "fp16"),
    Unit(ParametricDotAdd(2, fraction_bits=None, **AMD), "bf16", "bf16"),
    Unit(ParametricDotAdd(4, fraction_bits=None, **AMD), "bf16", "fp16"),
)
CHAINS = (
    Unit(SequentialFMA(), "fp32", "fp32"),
    Unit(SequentialFMA(saturate=True), "fp16", "fp16"),
    Unit(SequentialFMA(saturate=True), "fp32", "bf16"),
    Unit(SequentialFMA(nan="all_ones"), "e4m3fn", "e5m2"),
    Unit(SequentialFMA(), "fp64", "fp64", "fp64", "fp64"),
    Unit(SequentialFMA(nan="all_ones"), "fp16", "fp32", "fp64", "fp64"),
    Unit(SequentialFMA(saturate=True), "fp64", "e5m2", "fp64", "fp64"),
    Unit(SequentialFMA(pair_order="odd_first"), "fp16", "bf16"),
)
FLUSHING = (
    Unit(SequentialFMA("rne", True, True, "odd_first", nan="x86"), "bf16", "bf16"),
    Unit(SequentialFMA("rne", True, True, nan="all_ones"), "fp32", "bf16"),
    Unit(SequentialFMA("rne", True, True, saturate=True), "bf16", "fp32"),
    Unit(SequentialFMA("rne", True, True, nan="x86"), "fp64", "fp64", "fp64", "fp64"),
    Unit(LanedFMA(), "bf16", "bf16"),
    Unit(LanedFMA(nan="quiet"), "bf16", "fp32"),
    Unit(LanedFMA(flush_inputs=False), "fp16", "fp16"),
    Unit(LanedFMA(3, 12), "bf16", "bf16"),
)
PATHS = [
    *(("pairwise sums", u) for u in PAIRWISE),
    *(("exact sums of few products", u) for u in EXACT),
    *(("chains of multiply-adds", u) for u in CHAINS + FLUSHING),
    *(("lanes of 32 bits", u) for u in NARROW),
    *(("lanes of 64 bits", u) for u in WIDE),
]
# One row, one column, less than a lane group, more than a panel, k not a multiple of a step, k over several blocks.
SHAPES = ((1, 1, 33), (3, 70, 37), (20, 5, 32), (5, 17, 130), (9, 3, 7))
OF_EACH_PATH = [
    ("pairwise sums", PAIRWISE[0]),
    ("exact sums of few products", EXACT[0]),
    ("chains of multiply-adds", CHAINS[0]),
    ("chains of multiply-adds", FLUSHING[0]),
    ("chains of multiply-adds", FLUSHING[4]),
    ("lanes of 32 bits", NARROW[2]),
    ("lanes of 64 bits", WIDE[12]),
    ("lanes of 64 bits", WIDE[16]),
]


def path_named(name):
    return next(path for path in kernels.FAST_PATHS if path.name == name)


def run(name, unit, args):
    low, path = kernels.lowered(unit), path_named(name)
    kernel = path.of(low)
    assert kernel is not None, f"{name} does not cover {unit}"
    return kernel.run(low, *args)


def pairwise_slices(monkeypatch, length):
    """Has pairwise sums pack that many products at a time."""
    short = functools.partial(pairwise.pairwise.pairwise, length=length)
    monkeypatch.setattr(pairwise, "pairwise", SimpleNamespace(pairwise=short))
