"""Recipes: one interpreter against plain loops over single steps, against probing, and its checks."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_recipes import add, slow_sum

import tensorcore_models as tcm
from tensorcore_models import libraries
from tensorcore_models.formats import get_format
from tensorcore_models.libraries import recipe as rules
from tensorcore_models.orders.order import Chain, Sum, order_of, uncovered

WGMMA = tcm.get_instruction("h100", "wgmma.m64n8k16.f32.f16.f16")
FP8 = tcm.get_instruction("h100", "wgmma.m64n8k32.f32.e4m3.e4m3")
ADA = tcm.get_instruction("rtx4060", "mma.m16n8k32.f32.e4m3.e4m3.f32")
MMA8 = tcm.get_instruction("h100", "mma.m16n8k8.f32.bf16.bf16.f32")
HALF = tcm.get_instruction("a100", "mma.m16n8k16.f16.f16.f16.f16")
FMA = tcm.MatrixEngine(tcm.SequentialFMA(), a_format="fp16")
ENGINES = (WGMMA, FP8, ADA, MMA8, HALF, FMA)


@st.composite
def orders(draw, k: int, depth: int = 3):
    """An order over a random cut of 0 to k: neighbours, strided lanes or equal blocks, nested sums, each kind of rounding."""
    cuts = sorted(draw(st.sets(st.integers(1, k - 1), max_size=4)) | {0, k})
    spans = [range(x, y) for x, y in zip(cuts, cuts[1:], strict=False)]
    kind = draw(st.sampled_from(("pieces", "lanes", "blocks", "nested")))
    if kind == "lanes":
        step = draw(st.integers(1, 5))
        parts = [Chain((range(i, k, step),)) if i < k else Chain(()) for i in range(step)]
    elif kind == "blocks":
        length = draw(st.sampled_from((8, 16, 32, 64, 7)))
        parts = [Chain((p,)) for p in rules.contiguous(0, k, length)]
    else:
        parts = [Chain((span,)) for span in draw(st.permutations(spans))]
        if kind == "pieces":
            return Chain(tuple(span for part in parts for span in part.pieces))
        while len(parts) > 2 and draw(st.booleans()):
            parts[:2] = [Sum(tuple(parts[:2]), start=draw(st.sampled_from(("first", "zero"))))]
    rounding = draw(st.sampled_from(({}, {"partials": "output"}, {"carry": "output"}, {"partials": "bf16"})))
    return Sum(tuple(parts), start=draw(st.sampled_from(("first", "zero"))), **rounding)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(ENGINES), st.sampled_from((40, 64, 70)), st.sampled_from(("fp16", "bf16", "fp32")))
def test_any_order_on_any_engine_equals_plain_loops(data, engine, k, out):
    order = data.draw(orders(k))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    scale = 2.0 ** rng.integers(-3, 4, (2, 2, k))
    values = rng.standard_normal((2, 2, k)) * scale
    fmt = get_format(engine.a_format)
    a, b = tcm.encode(values[0], fmt), tcm.encode(values[1], fmt)
    got = libraries.Recipe(engine, k, order).sum_bits(a, b.T.copy(), out_format=out)
    for i in range(2):
        for j in range(2):
            assert int(got[i, j]) == slow_sum(engine, order, a[i], b[j], out), (order, i, j)


@pytest.mark.parametrize("engine", (WGMMA, FP8, ADA, FMA), ids=lambda e: e.label)
@pytest.mark.parametrize("start", ("first", "zero"))
def test_restarts_in_one_kernel_call_equal_chains_one_by_one(engine, start):
    """Large enough for the fast kernels, which add restarted chains themselves."""
    k, every = 1000, 128
    rng = np.random.default_rng(5)
    a = tcm.encode(rng.standard_normal((96, k)), engine.a_format)
    b = tcm.encode(rng.standard_normal((k, 96)), engine.a_format)
    order = rules.restarted(0, k, every, begin=start)
    got = libraries.Recipe(engine, k, order).sum_bits(a, b)
    total = np.zeros((96, 96), np.float32) if start == "zero" else None
    for first in range(0, k, every):
        part = engine.gemm_bits(a[:, first : first + every], b[first : first + every]).view(np.float32)
        total = part if total is None else total + part
    np.testing.assert_array_equal(got, total.view(np.uint32))


def test_signed_zeros_follow_where_a_sum_starts():
    """A unit that gives -0 for a product of -0 and a c of +0 does not exist here; a sum of parts shows the rule."""
    fp32 = get_format("fp32")
    assert add(0x80000000, 0x80000000, fp32) == 0x80000000
    assert add(0, 0x80000000, fp32) == 0
    minus = tcm.as_engine(lambda a, b, c: np.full(c.shape, -0.0, np.float32), a_format="fp16", d_format="fp32", k=1)
    a, b = np.zeros((1, 2), np.uint16), np.zeros((2, 1), np.uint16)
    parts = (Chain((range(1),)), Chain((range(1, 2),)))
    assert minus.sum_bits(a, b, Sum(parts))[0, 0] == 0x80000000
    assert minus.sum_bits(a, b, Sum(parts, start="zero"))[0, 0] == 0


@pytest.mark.parametrize("k_order", ("split_k:3", "sliced_k:3", [(0, 32), (32, 96), (96, 100)]))
def test_k_order_is_a_special_case(k_order):
    from tensorcore_models.orders.order import order_of

    rng = np.random.default_rng(1)
    a, b = tcm.encode(rng.standard_normal((2, 20, 100)), "fp16")
    order = order_of(100, WGMMA.k, k_order)
    want = WGMMA.gemm_bits(a, b.T.copy(), k_order=k_order)
    np.testing.assert_array_equal(WGMMA.gemm_bits(a, b.T.copy(), k_order=order), want)
    np.testing.assert_array_equal(libraries.Recipe(WGMMA, 100, order).gemm_bits(a, b.T.copy()), want)


# -- what probing sees ---------------------------------------------------------------------------------------------------------
def joins(order, engine, k: int) -> np.ndarray:
    """How many products have joined when products i and j meet, by the recipe's own picture: operations of the engine are
    leaves."""
    table = np.zeros((k, k), int)

    def meet(groups, fused: bool) -> list[int]:
        done: list[int] = []
        for group in groups:
            for i in group:
                for j in [*done, *group] if fused else done:
                    table[i, j] = table[j, i] = len(done) + len(group)
            done += group
        return done

    def walk(node) -> list[int]:
        if isinstance(node, Sum):
            return meet([walk(part) for part in node.parts], fused=False)
        terms = getattr(engine.accumulator, "terms", 1)
        values = [list(piece) for piece in node.pieces]
        return meet([piece[x : x + terms] for piece in values for x in range(0, len(piece), terms)], fused=True)

    walk(order)
    return table


CONFIG = {"SPLITK_NUM": 1, "REDUCTION_SCHEME": 2, "CUSTOM_OPTION": 0, "STAGES_ID": 0}
PROBED = {
    "nvjet split": ("fp16", 8, 192, 8, {"ALGO_ID": 66, "STAGES_ID": 35, "SPLITK_NUM": 3}),
    "nvjet tail": ("fp16", 8, 200, 8, {"ALGO_ID": 66, "STAGES_ID": 35, "SPLITK_NUM": 2}),
    "cutlass": ("fp16", 8, 83, 8, {"ALGO_ID": 24, "STAGES_ID": 13, "SPLITK_NUM": 2}),
    "cutlass k8": ("bf16", 8, 43, 8, {"ALGO_ID": 23, "STAGES_ID": 0}),
    "magma": ("fp16", 8, 37, 8, {"ALGO_ID": 16}),
    "gemmSN": ("fp16", 8, 41, 8, {"ALGO_ID": 11, "CUSTOM_OPTION": 1}),
    "butterfly": ("fp16", 1, 100, 4, {"ALGO_ID": 13, "CUSTOM_OPTION": 42}),
    "lanes": ("fp16", 1, 150, 4, {"ALGO_ID": 13, "CUSTOM_OPTION": 14, "SPLITK_NUM": 2}),
    "slices": ("fp16", 1, 70, 4, {"ALGO_ID": 13, "CUSTOM_OPTION": 5}),
    "dot": ("fp16", 4, 300, 1, {"ALGO_ID": 14, "SPLITK_NUM": 2}),
}


@pytest.mark.parametrize("name", PROBED)
def test_masks_reveal_the_order_of_the_picture(name):
    """FPRev: with X at i, -X at j and small ones elsewhere, those survive that join after X and -X have met.

    2^15 * 2^15 = 2^30 swallows sums of ones below 2^5 in 24 or 25 bits, so that fused operations lose theirs: ones that
    share a chain's operation with X count as met.
    """
    fmt, m, k, n, fields = PROBED[name]
    recipe = libraries.cublaslt("h100", "13.1", m=m, k=k, n=n, format=fmt, config={**CONFIG, **fields})
    small, large = 2.0**-6, 2.0**15
    table = joins(recipe.order, recipe.engine, k)
    rng = np.random.default_rng(3)
    for i, j in rng.choice(k, (25, 2)):
        if i == j:
            continue
        a, b = np.full((m, k), small, np.float32), np.full((k, n), small, np.float32)
        a[:, [i, j]], b[i], b[j] = large, large, -large
        out = recipe.gemm_bits(tcm.encode(a, fmt), tcm.encode(b, fmt), out_format="fp32").view(np.float32)
        assert (out == (k - table[i, j]) * small * small).all(), (i, j, out[0, 0] / small**2, k - table[i, j])


def test_picture_names_every_chain_of_a_small_recipe():
    recipe = libraries.cublaslt(
        "h100", "13.1", m=8, k=256, n=8, format="fp16", config={**CONFIG, **PROBED["nvjet split"][4]}
    )
    text = str(recipe)
    for chain in recipe.chains:
        assert f"k {chain.pieces[0].start}:{chain.pieces[0].stop}" in text
    assert "hopper:wgmma.m64n8k16.f32.f16.f16" in text and "cublas_match" in text


# -- epilogue and bad input --------------------------------------------------------------------------------------------
def test_epilogues_keep_or_lose_the_sign_of_zero_and_saturate():
    fp32 = get_format("fp32")
    total = np.array([[0x80000000, 0x7F7FFFFF, 0x7FC00000, 0x00000001]], np.uint32)
    plain, fused = rules.Epilogue(), rules.Epilogue(adds_zero=True, saturates=True, formats=("e4m3fn", "fp16", "fp32"))
    assert rules.finish(total, fp32, plain, fp32, 1.0).tolist() == [[0x80000000, 0x7F7FFFFF, 0x7FFFFFFF, 1]]
    assert rules.finish(total, fp32, fused, fp32, 1.0).tolist() == [[0, 0x7F7FFFFF, 0x7FFFFFFF, 1]]
    assert rules.finish(total, fp32, fused, fp32, -0.25)[0, 3] == 0x80000000  # underflows: the sign stays
    assert rules.finish(total, fp32, plain, get_format("fp16"), 1.0)[0].tolist() == [0x8000, 0x7C00, 0x7FFF, 0]
    assert rules.finish(total, fp32, fused, get_format("e4m3fn"), 1.0)[0].tolist() == [0, 0x7E, 0x7F, 0]


def test_bad_recipes_and_operands_say_what_is_wrong():
    with pytest.raises(ValueError, match="more than once"):
        libraries.Recipe(WGMMA, 32, Sum((Chain((range(16),)), Chain((range(8, 32),)))))
    with pytest.raises(ValueError, match="beyond|up to 31"):
        libraries.Recipe(WGMMA, 16, Chain((range(32),)))
    with pytest.raises(ValueError, match="ascends"):
        Chain((range(5, 1),))
    with pytest.raises(ValueError, match="a sum without parts"):
        Sum(())
    with pytest.raises(ValueError, match="leaves out 16 values"):
        WGMMA.gemm_bits(np.zeros((1, 32), np.uint16), np.zeros((32, 1), np.uint16), k_order=Chain((range(16),)))
    recipe = libraries.Recipe(WGMMA, 32, Chain((range(32),)), shape=(1, 1))
    a, b = np.zeros((1, 32), np.uint16), np.zeros((32, 1), np.uint16)
    with pytest.raises(ValueError, match="k = 32"):
        recipe.gemm_bits(a[:, :16], b[:16])
    with pytest.raises(ValueError, match=r"m, n = \(1, 1\)"):
        recipe.gemm_bits(np.zeros((2, 32), np.uint16), b)
    with pytest.raises(libraries.Unknown, match="known: fp32, fp16, bf16") as info:
        recipe.gemm_bits(a, b, out_format="e4m3fn")
    assert info.value.field == "out_format"
    assert uncovered(Chain((range(4, 8),)), 8).tolist() == [0, 1, 2, 3]


MANY = 2_000_000_000
BEYOND_K = {
    "split_k": lambda s: libraries.cutlass("h100", k=96, split_k=s),
    "sliced_k": lambda s: libraries.cutlass("h100", k=96, tile_k=16 * s, sliced_k=s),
    "scaled_mm serial": lambda s: libraries.scaled_mm_recipe(96, device="h100", split_k=s),
    "scaled_mm pairwise": lambda s: libraries.scaled_mm_recipe(96, device="rtx4060", split_k=s, scheme="pairwise"),
    "gemv": lambda s: vector_recipe({"ALGO_ID": 13, "CUSTOM_OPTION": 43, "SPLITK_NUM": s}),
    "dot": lambda s: vector_recipe({"ALGO_ID": 14, "SPLITK_NUM": s}),
}


def vector_recipe(config):
    return libraries.cublaslt("h100", "13.1", m=1, k=96, n=2, format="fp16", config=config)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", BEYOND_K)
def test_splits_beyond_k_end_and_keep_their_bits(name):
    """At most k parts hold data; the others add +0, which changes a sum of -0 once and for all."""
    many, some = BEYOND_K[name](MANY), BEYOND_K[name](1024 if name == "dot" else 200)
    assert len(many.chains) <= 100_000
    engine = many.engine
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.standard_normal((1, 96)), np.full((1, 96), -0.0)])[:, :, None]
    b = tcm.encode(np.abs(rng.standard_normal((96, 2))), engine.formats[1])
    for row in values:
        a = tcm.encode(row.T, engine.formats[0])
        bits = [dataclasses.replace(recipe, shape=None).sum_bits(a, b) for recipe in (many, some)]
        np.testing.assert_array_equal(*bits)
    assert not bits[0].any()  # +0 is left


def test_sliced_k_beyond_k_ends():
    assert order_of(96, 16, f"sliced_k:{MANY}") == order_of(96, 16, "sliced_k:6")


def test_the_first_part_is_rounded_as_a_partial_and_as_a_running_sum():
    engine = tcm.default_instruction("h100", "fp16")
    third = tcm.encode(np.full((1, 16), 1 / 3), "fp16")
    one = Sum((Chain((range(16),)),), partials="fp32", carry="bf16")
    total = engine.sum_bits(third, np.full((16, 1), 0x3C00, np.uint16), one).view(np.float32)
    assert total == total.astype(tcm.get_format("bf16").dtype).astype(np.float32)
    both = dataclasses.replace(one, partials="fp16")
    x = engine.sum_bits(third, np.full((16, 1), 0x3C00, np.uint16), Chain((range(16),))).view(np.float32)
    want = x.astype(np.float16).astype(tcm.get_format("bf16").dtype).astype(np.float32)
    assert engine.sum_bits(third, np.full((16, 1), 0x3C00, np.uint16), both).view(np.float32) == want
