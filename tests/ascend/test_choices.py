"""What a choice costs and means: bits, the front, operands, tiling fields and their rules."""

import numpy as np
import pytest

import ascend
import tensorcore_models as tcm
from ascend.operands import cube_instruction, rounded_to_hf32
from ascend.pipes.build import build_program
from ascend.planner.accuracy import data_error, error_bound, sampled_error
from ascend.planner.pareto import LEAST_GAIN, mark_front
from ascend.reports.tiling import SNIPPETS, ascendc_snippet, catlass_snippet, notes
from ascend.schedule import build_schedule, variant
from ascend.tiling.fields import broken_rules, broken_rules_of, described, tiling_fields

A, B3, P3 = (ascend.get_chip(name) for name in ("910A", "910B3", "310P3"))
BLOCK = ascend.Blocking(64, 64, 64)
SHAPES = (
    (1, 4096, 4096), (4096, 4096, 1), (32, 4096, 11008), (32, 11008, 4096), (128, 7168, 2048), (1000, 333, 777),
    (4096, 4096, 4096), (5632, 2816, 5632), (64, 64, 16384), (16384, 64, 64), (8192, 128, 8192),
)  # fmt: skip


# ---------------------------------------------------------------- bits


@pytest.mark.parametrize("distribution", ["normal", "uniform", "positive"])
def test_a_sample_has_the_error_of_the_whole(distribution):
    """Relative Frobenius errors of 144 elements and of 10,000: within a third, and ordered alike."""
    rng = np.random.default_rng(8)
    draw = {"normal": rng.standard_normal, "uniform": lambda s: 2 * rng.random(s) - 1, "positive": rng.random}[
        distribution
    ]
    a, b = draw((100, 2000)).astype("f4"), draw((2000, 100)).astype("f4")
    whole, sampled = data_error(a, b), sampled_error(distribution)
    errors = []
    for n_fused in (1, 8, 32):
        s = build_schedule(100, 2000, 100, A, BLOCK, kernel="grid", n_fused=n_fused)
        errors.append((whole(s), sampled(s)))
        assert sampled(s) == pytest.approx(whole(s), rel=0.33)
        assert sampled_error(distribution)(s) == sampled(s)  # the seed decides
    assert np.argsort([x for x, _ in errors]).tolist() == np.argsort([y for _, y in errors]).tolist()


@pytest.mark.parametrize(
    ("chip", "options"),
    [
        (A, {}), (A, {"terms": 4}), (A, {"mode": "elementwise"}), (A, {"mode": "termwise_inplace", "n_fused": 2}),
        (A, {"terms": 1}), (A, {"split": 3}), (B3, {"terms": 1, "operand": "bf16"}), (B3, {"terms": 1, "operand": "hf32"}),
        (B3, {"terms": 1, "operand": "fp32"}), (A, {"terms": 1, "operand": "fp32", "kernel": "vector"}),
        (B3, {"terms": 1, "operand": "int8"}),
    ],
)  # fmt: skip
def test_no_element_leaves_the_bound(chip, options):
    rng = np.random.default_rng(9)
    m, k, n = 3, 700, 20
    shapes = ((m, k), (k, n))
    if options.get("operand") == "int8":
        a, b = (rng.integers(-128, 128, s).astype("f4") for s in shapes)
    else:
        a, b = (np.float32(rng.choice([-1, 1], s) * 2.0 ** rng.uniform(-3, 3, s)) for s in shapes)
    block = ascend.Blocking(16, 64, 64) if options.get("kernel") == "vector" else BLOCK
    s = build_schedule(m, k, n, chip, block, **({"kernel": "grid"} | options))
    a64, b64 = a.astype(float), b.astype(float)
    wrong = np.abs(s.product(a, b) - a64 @ b64) / (np.abs(a64) @ np.abs(b64))
    # FP64 sums of the reference are wrong by at most k 2^-53.
    assert wrong.max() <= error_bound(s) + 700 * 2.0**-53
    if options.get("operand") != "int8":
        assert wrong.max() > error_bound(s) / 10**4  # the bound is not empty


def test_every_plan_carries_its_error():
    plans = ascend.plan(100, 3000, 200, A, top=3, simulated=3)
    assert all(p.error_source == "sample of normal elements" and 15 < p.bits < 24 for p in plans)
    rng = np.random.default_rng(10)
    a, b = (rng.random(s, dtype=np.float32) for s in ((100, 3000), (3000, 200)))
    best = ascend.plan(100, 3000, 200, A, top=1, simulated=1, data=(a, b))[0]
    exact = a.astype(float) @ b.astype(float)
    computed = best.schedule.product(a, b)
    assert best.error == pytest.approx(np.linalg.norm(computed - exact) / np.linalg.norm(exact), rel=1e-9)
    assert best.error_source == "data"
    assert ascend.plan(100, 3000, 200, A, top=1, simulated=1, distribution="positive")[0].error != best.error


@pytest.mark.full
def test_the_front_is_what_no_other_point_beats():
    points = ascend.pareto(32, 512, 32, B3)
    front = [p for p in points if p.on_front]
    assert len(front) >= 4 and front[0].seconds_per_bit is None
    assert [p.plan.seconds for p in front] == sorted(p.plan.seconds for p in front)
    for p in points:
        faster = [q for q in points if q.plan.seconds <= p.plan.seconds and q is not p]
        beaten = any(q.bits > p.bits - LEAST_GAIN and q.on_front for q in faster)
        assert p.on_front or beaten
    for here, there in zip(front, front[1:], strict=False):
        gain = there.bits - here.bits
        assert gain >= LEAST_GAIN
        assert there.seconds_per_bit == pytest.approx((there.plan.seconds - here.plan.seconds) / gain)
    labels = " ".join(p.label() for p in points)
    for word in ("hf32", "fp32, 1 term", "elementwise", "split", "4 terms", "s_b = 0"):
        assert word in labels
    again = mark_front(list(reversed(points)))
    assert [p.plan.seconds for p in again if p.on_front] == [p.plan.seconds for p in front]


# ---------------------------------------------------------------- operands


@pytest.mark.parametrize("operand", ["fp16", "bf16", "hf32", "fp32", "int8"])
def test_operand_products_are_chains_of_the_catalogue(operand):
    """Groups of k are instruction chains from 0, added in FP32 in order; slices likewise."""
    rng = np.random.default_rng(11)
    m, k, n = 5, 200, 7
    if operand == "int8":
        a, b = (rng.integers(-128, 128, s).astype("f4") for s in ((m, k), (k, n)))
    else:
        a, b = (rng.normal(size=s).astype("f4") for s in ((m, k), (k, n)))
    s = build_schedule(
        m, k, n, B3, ascend.Blocking(16, 32, 16), kernel="grid", terms=1, operand=operand, split=2, n_fused=2
    )
    ins = cube_instruction(operand)
    total = None
    for k_slice in s.k_slices:
        part = None
        for k0, k1 in s.groups_of(k_slice):
            if operand == "int8":
                own = a[:, k0:k1].astype(np.int32) @ b[k0:k1].astype(np.int32)
            else:
                x, y = tcm.encode(a[:, k0:k1], ins.a_format), tcm.encode(b[k0:k1], ins.a_format)
                own = ins.gemm_bits(x, y).view(np.float32)
            part = own if part is None else part + own
        total = part if total is None else total + part
    got = s.product(a, b)
    if operand == "fp16":  # saturates, as the 910A, where nothing overflows here
        assert np.array_equal(got, total)
    else:
        assert got.dtype == total.dtype and np.array_equal(got, total)


def test_hf32_has_eleven_fraction_bits():
    x = np.float32([[1 + 2.0**-11, 1 + 2.0**-12, 1 + 3 * 2.0**-12]])  # kept, a tie to even, a tie to even
    assert tcm.round_to(x, "hf32").tolist() == [[1 + 2.0**-11, 1.0, 1 + 2.0**-10]]
    s = build_schedule(1, 3, 3, B3, ascend.Blocking(16, 16, 16), kernel="grid", terms=1, operand="hf32")
    assert s.product(x, np.eye(3, dtype="f4")).tolist() == [[1 + 2.0**-11, 1.0, 1 + 2.0**-10]]


@pytest.mark.parametrize(
    ("chip", "size", "options"),
    [
        ("910A", (40, 100, 60), {}), ("910A", (1, 300, 64), {}), ("910A", (40, 100, 60), {"mode": "elementwise"}),
        ("910A", (40, 100, 60), {"terms": 4}), ("910A", (40, 100, 60), {"terms": 1}),
        ("910A", (40, 100, 60), {"terms": 1, "operand": "int8"}), ("910B3", (40, 100, 60), {"terms": 1, "operand": "fp32"}),
        ("910B3", (40, 100, 60), {"terms": 1, "operand": "hf32"}), ("910B3", (40, 300, 60), {"split": 2}),
        ("910A", (40, 100, 60), {"kernel": "paper"}),
    ],
)  # fmt: skip
def test_cube_gemm_runs_every_plan(chip, size, options):
    """Integers of four bits: every operand format and order has the exact product."""
    rng = np.random.default_rng(13)
    m, k, n = size
    a, b = (rng.integers(-9, 10, shape).astype("f4") for shape in ((m, k), (k, n)))
    for p in ascend.plan(m, k, n, chip, top=3, **options):
        assert np.array_equal(ascend.cube_gemm(a, b, schedule=p.schedule), a @ b)


def test_options_of_words_are_refused_where_there_are_none():
    a = np.ones((32, 32), "f4")
    s = build_schedule(32, 32, 32, B3, ascend.Blocking(32, 32, 32), terms=1, operand="fp32", kernel="grid")
    with pytest.raises(ValueError, match="got scale_exponent, but the schedule has terms=1, so its fp32 operands"):
        ascend.cube_gemm(a, a, schedule=s, scale_exponent=4)
    with pytest.raises(ValueError, match="order, low_low"):
        ascend.cube_gemm(a, a, schedule=s, order="elementwise", low_low=True)
    with pytest.raises(ValueError, match="does not give order"):
        ascend.cube_gemm(a, a, schedule=variant(s, terms=3, operand="fp16"), order="elementwise")


def test_overflow_follows_the_chip():
    """1e5 is no FP16 number: the first generation takes the largest, 65504, the second infinity."""
    a = np.full((16, 16), 1e5, "f4")
    block = ascend.Blocking(16, 16, 16)
    for chip, finite in ((A, True), (B3, False)):
        s = build_schedule(16, 16, 16, chip, block, kernel="grid", terms=1)
        for got in (
            ascend.cube_gemm(a, a, schedule=s), ascend.cube_gemm(a, a, chip=chip),
            ascend.cube_hgemm(a, a, blocking=block, chip=chip), s.product(a, a),
        ):  # fmt: skip
            assert np.isfinite(got).all() == finite
    assert np.isfinite(ascend.cube_gemm(a, a, schedule=s, overflow="saturate")).all()


def test_both_readings_of_the_hf32_rounding():
    """Ties, and numbers beside them: 12 bits are dropped."""
    ties = np.float32([1 + 2.0**-12, 1 + 3 * 2.0**-12, 1 + 2.0**-12 + 2.0**-23, -(1 + 2.0**-12), np.inf])
    above = {"rne": [0, 2, 1, 0], "rna": [1, 2, 1, 1], "rnz": [0, 1, 1, 0], "rz": [0, 1, 0, 0]}
    eye = np.eye(5, dtype="f4")
    eye[4, 4] = 0
    for rounding, expected in above.items():
        chip = B3.replace(hf32_rounding=rounding)
        s = build_schedule(1, 5, 5, chip, ascend.Blocking(16, 16, 16), terms=1, operand="hf32", kernel="grid")
        got = ascend.cube_gemm(np.where(np.isinf(ties), 0, ties)[None], eye, schedule=s)[0, :4]
        assert (np.abs(got) - 1).tolist() == [2.0**-11 * x for x in expected]
        assert np.isinf(rounded_to_hf32(ties, rounding)[4])
    with pytest.raises(ValueError, match="hf32_rounding must be one of rne, rna, rnz, rz"):
        B3.replace(hf32_rounding="up")


def test_operands_that_a_chip_lacks():
    with pytest.raises(ValueError, match="multiplies fp16, int8, got bf16"):
        ascend.plan(64, 64, 64, A, terms=1, operand="bf16")
    with pytest.raises(ValueError, match="must hold integers from -128 to 127"):
        s = build_schedule(2, 2, 2, B3, ascend.Blocking(16, 16, 16), kernel="grid", terms=1, operand="int8")
        s.product(np.full((2, 2), 0.5), np.eye(2))
    assert ascend.get_chip("310P") is P3
    with pytest.raises(ValueError, match="did you mean 910B"):
        ascend.get_chip("910B5")


# ---------------------------------------------------------------- advice, batches, targets


@pytest.mark.full
def test_the_plan_advises_what_is_fastest():
    """Few rows on a 910B: FP32 on the cube beats three terms unless the weights were split once. With all of k in chains of
    2048 neither has FP32's bits, which are those of chains of 256: in shorter chains both do."""
    found = ascend.advise(32, 4096, 11008, B3, simulated=2)
    way, best = found.best
    by_name = {str(way): p for way, p in found.plans}
    assert str(way) == "fp32" and by_name["3 terms of fp16"].seconds > 2.5 * best.seconds
    assert [p.seconds for _, p in found.plans] == sorted(p.seconds for _, p in found.plans)
    assert not found.reaches(by_name["hf32"]) and found.reaches(by_name["3 terms of fp16"])
    fastest = next(p for way, p in found.plans if str(way) == "fp32")
    assert not found.reaches(fastest) and fastest.schedule.chain == 2048 and best.schedule.chain <= 512
    assert (
        "fastest plan that reaches the 21.7 bits of FP32 in chains of 256 (within 0.75): fp32" in found.sentences()[0]
    )
    assert "2." in found.sentences()[1]
    assert not any("inplace" in name for name in by_name)  # FIXPIPE does not scale
    few = ascend.advise(32, 4096, 11008, B3, bits=12, simulated=2, best_only=True)
    assert str(few.best[0]) == "hf32" and few.best[1].bits >= 12
    many = ascend.advise(64, 512, 64, A, bits=40, simulated=1)
    assert many.best is None and "no plan reaches 40.0 bits" in many.sentences()[0]


def test_words_that_are_there_already_cost_nothing():
    plans = {x: ascend.plan(32, 4096, 11008, B3, top=1, simulated=2, presplit=x)[0] for x in ("", "a", "b", "ab")}
    assert plans["b"].seconds < 0.4 * plans[""].seconds < 0.4 * 1.01 * plans["a"].seconds / 0.98
    split = {x: build_program(p.schedule).totals.get("split read", (0, 0.0))[1] for x, p in plans.items()}
    assert split == {"": 4 * (32 * 4096 + 4096 * 11008), "a": 4 * 4096 * 11008, "b": 4 * 32 * 4096, "ab": 0}
    s = build_schedule(20, 300, 30, B3, BLOCK, kernel="grid")
    assert variant(s, presplit="b").sums == s.sums
    with pytest.raises(ValueError, match="one term does not split its operands"):
        ascend.plan(64, 64, 64, B3, terms=1, presplit="b")
    with pytest.raises(ValueError, match="presplit must be one of a, b, ab"):
        build_schedule(64, 64, 64, B3, BLOCK, presplit="c")


def test_a_batch_is_dealt_to_groups_of_cores():
    options = {"terms": 1, "error_of": lambda s: 0.0}
    best, *others = ascend.plan_batch([64] * 40, 64, 64, B3, **options)
    assert (best.groups, best.cores) == (20, 1) and all(best.seconds <= other.seconds for other in others)
    alone = next(other for other in (best, *others) if other.groups == 1)
    one = alone.plans[64]
    launch = one.schedule.launch_seconds
    assert alone.seconds == pytest.approx(40 * (one.seconds - launch) + launch)
    single = best.plans[64]
    launched = B3.launch_seconds(20 * single.schedule.used_cores, warm=False)
    assert best.seconds == pytest.approx(2 * (single.seconds - single.schedule.launch_seconds) + launched)
    mixed = ascend.plan_batch([7, 200, 33], 512, 256, B3, **options)[0]
    assert set(mixed.plans) == {7, 33, 200} and mixed.seconds > B3.launch_seconds(3, warm=False)
    with pytest.raises(ValueError, match="1 to 65536 products"):
        ascend.plan_batch([], 64, 64, B3)


@pytest.mark.parametrize("target", ["ascendc", "catlass", "pto"])
def test_what_is_pasted_is_what_is_timed(target):
    """A plan for a target is what its fields describe; another one is described with its own time."""
    own = ascend.plan(2048, 1024, 3000, B3, terms=1, top=1, simulated=6, target=target, error_of=lambda s: 0.0)[0]
    assert described(own.schedule, target) is None
    other = build_schedule(2048, 1024, 3000, B3, ascend.Blocking(128, 64, 256), terms=1, kernel="grid", resident="a")
    pasted = described(other, target)
    assert pasted.resident == "none" and pasted.deals_one_by_one == (target == "catlass")
    if target != "catlass":
        fields, again = tiling_fields(other), tiling_fields(pasted)
        for name in ("singleCoreM", "singleCoreN", "singleCoreK", "usedCoreNum"):
            assert fields[name] == again[name]
    assert str(other.blocking.bm) in SNIPPETS[target](other)


def test_rectangles_take_longer_than_tiles_dealt_one_by_one():
    """4096^3 on 20 cores: 512 tiles of 128 x 256 are 26 for each core, whole rectangles 28."""
    s = build_schedule(4096, 4096, 4096, B3, ascend.Blocking(128, 64, 256), terms=1, kernel="grid", balanced=False)
    assert s.waves == 26 and described(s).waves == 28
    assert ascend.simulate(described(s)).seconds > 1.05 * ascend.simulate(s).seconds


def test_fields_of_an_odd_depth_keep_the_rules():
    for depth in range(1, 9):
        s = build_schedule(500, 900, 700, A, BLOCK, terms=1, kernel="grid", depth=depth)
        assert not broken_rules_of(s)


def test_a_tiny_ub_is_one_clear_error():
    small = B3.replace(ub_bytes=512)
    s = build_schedule(100, 64, 64, small, ascend.Blocking(16, 16, 16), kernel="grid")
    with pytest.raises(ValueError, match="UB of 910B3 has 512 bytes, but the split pass needs"):
        ascend.simulate(s)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("chip", [A, B3, P3], ids=["910A", "910B3", "310P3"])
@pytest.mark.parametrize("kernel", ["grid", "paper"])
@pytest.mark.parametrize("shape", SHAPES, ids=["x".join(map(str, shape)) for shape in SHAPES])
def test_fields_of_every_plan_keep_the_published_rules(shape, kernel, chip):
    checked = 0
    for terms in (1, 3):
        for p in ascend.plan(*shape, chip, terms=terms, kernel=kernel, rank="analytic", top=8, error_of=lambda s: 0.0):
            assert p.schedule.kernel == "vector" or not broken_rules_of(p.schedule)
            checked += p.schedule.on_cube
    assert checked >= 8


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"usedCoreNum": 33}, "at most the 32 cores"), ({"usedCoreNum": 8}, "usedCoreNum = 8 must be ceil"),
        ({"singleCoreK": 64}, "K is not split"), ({"singleCoreM": 9999}, "singleCoreM = 9999 must be at most M"),
        ({"baseM": 24}, "baseM = 24 must be a multiple of 16"), ({"baseN": 9984}, "baseN = 9984 must be at most singleCoreN"),
        ({"depthA1": 3}, "depthA1 = 3 must be"), ({"baseK": 0}, "baseK must be above 0, got 0"),
        ({"dbL0A": 3}, "dbL0A must be 1 or 2"), ({"depthB1": 64}, "L1: "), ({"Kb": 5}, "must be equal"),
        ({"iterateOrder": 2}, "0 or 1"),
    ],
)  # fmt: skip
def test_the_validator_names_the_broken_rule(changes, rule):
    s = build_schedule(1024, 512, 1024, A, ascend.Blocking(128, 64, 128), kernel="grid", resident="none", terms=1)
    fields = tiling_fields(s)
    assert not broken_rules(fields, A)
    assert any(rule in text for text in broken_rules(fields | changes, A))


def test_fields_by_hand():
    """4 x 8 tiles of 128 x 128 for 32 cores: one tile each; with a split of 2 each half of k."""
    s = build_schedule(512, 1024, 1024, A, ascend.Blocking(128, 64, 128), kernel="grid", terms=1)
    fields = tiling_fields(s)
    assert [fields[x] for x in ("usedCoreNum", "singleCoreM", "singleCoreN", "singleCoreK")] == [32, 128, 128, 1024]
    assert [fields[x] for x in ("baseM", "baseN", "baseK", "depthA1", "stepKa", "dbL0A")] == [128, 128, 64, 8, 4, 2]
    halves = variant(s, grid=(1, 2, 1))
    assert (tiling_fields(halves)["usedCoreNum"], tiling_fields(halves)["singleCoreK"]) == (32, 512)
    assert not broken_rules(tiling_fields(halves), A, split_k=True)
    assert "EnableMultiCoreSplitK(true)" in ascendc_snippet(halves) and "tiling.set_baseK(64);" in ascendc_snippet(
        halves
    )
    text = catlass_snippet(s)
    assert "L1TileShape = GemmShape<128, 128, 256>" in text and "L0TileShape = GemmShape<128, 128, 64>" in text
    assert "GemmIdentityBlockSwizzle<3, 1>" in text
    assert any("no field" in note for note in notes(s)) and any("K is split 2 ways" in note for note in notes(halves))
    gemv = build_schedule(1, 64, 64, A, ascend.Blocking(16, 16, 64), kernel="vector", terms=1, operand="fp32")
    assert tiling_fields(gemv) == {} and "no Matmul" in notes(gemv)[0]
