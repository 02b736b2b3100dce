"""Identification of black boxes: the catalogue blind, random units, recorded CPUs, strangers and misbehaving boxes."""

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest
from boxes import random_unit, recorded

import tensorcore_models as tcm
from tensorcore_models import probing, reference
from tensorcore_models.formats.rounding import decode, encode
from tensorcore_models.probing.identify import limits, run
from tensorcore_models.probing.identify.aimed import Aimed, _Pair
from tensorcore_models.probing.identify.box import as_box, model_answer
from tensorcore_models.probing.identify.challenge import unwrapped
from tensorcore_models.probing.identify.equalities import equal_because
from tensorcore_models.probing.identify.fields import Family, engine_of, families_for
from tensorcore_models.probing.identify.inputs import pool
from tensorcore_models.probing.identify.magnitudes import scaled, scaled_pool
from tensorcore_models.probing.identify.mutations import mutated
from tensorcore_models.probing.identify.search import Log, descend, results
from tensorcore_models.probing.interface import DotBatch, Interface

VECTORS = os.environ.get("MPGEMM_VECTORS")
MOST_QUERIES = 10_000

#: One instruction of each algorithm, and the forms that differ most.
INSTRUCTIONS = (
    "volta:mma.m8n8k4.f32.f16.f16.f32", "ampere:mma.m16n8k16.f32.bf16.bf16.f32", "ada:mma.m16n8k32.f32.e4m3.e4m3.f32",
    "hopper:mma.m16n8k16.f16.f16.f16.f16", "hopper:mma.m16n8k32.f32.e5m2.e5m2.f32", "hopper:mma.m8n8k4.f64.f64.f64.f64",
    "hopper:mma.m16n8k32.s32.s8.s8.s32", "rtx_blackwell:mma.m16n8k32.f32.e2m1.e2m1.f32", "cdna1:v_mfma_f32_32x32x4f16",
    "cdna2:v_mfma_f32_32x32x8f16", "cdna3:v_mfma_f32_32x32x8_f16", "cdna3:v_mfma_f32_16x16x32_fp8_fp8",
    "arm:bfmmla.m2n2k4.f32.bf16.bf16.f32", "x86:tdpfp16ps.m16n16k32.f32.fp16.fp16.f32",
    "ascend:cube.m16n16k16.f32.f16.f16.f32",
)  # fmt: skip


#: Of them, one for each way a search ends: at its first starts, informed, and with integers.
QUICK = (
    "volta:mma.m8n8k4.f32.f16.f16.f32", "hopper:mma.m16n8k32.s32.s8.s8.s32", "arm:bfmmla.m2n2k4.f32.bf16.bf16.f32",
)  # fmt: skip


def distinct() -> list[tcm.Instruction]:
    """An instruction for each arithmetic and formats of the catalogue."""
    found = {}
    for row in tcm.list_instructions():
        if row.published:
            formats = (row.a_format, row.b_format, row.c_format, row.d_format, row.scale_format, row.block_size)
            found.setdefault((row.accumulator, formats, row.k), row)
    return list(found.values())


def same(unit: tcm.MatrixEngine, found: tcm.MatrixEngine, count: int, seed: int = 99) -> bool:
    """Whether two engines agree on fresh inputs of all kinds."""
    rng = np.random.default_rng(seed)
    one, other, interface = model_answer(unit), model_answer(found), Interface.of(unit)
    for _ in range(max(1, count // 20_000)):
        batch = pool(interface, min(count, 20_000), rng)
        if not np.array_equal(one(batch), other(batch)):
            return False
    return True


@pytest.fixture(scope="module")
def identified() -> probing.Identification:
    """A unit of four products, identified once."""
    return probing.identify(tcm.MatrixEngine(tcm.FusedDotAdd(4, 24)), vectors=1000)


def check(unit: tcm.MatrixEngine, vectors: int, fresh: int) -> probing.Identification:
    """It is identified, within the budget, and right."""
    result = probing.identify(unit, vectors=vectors)
    assert result.engine is not None, str(result)
    assert result.queries_before_random < MOST_QUERIES
    assert same(unit, result.engine, fresh), str(result)
    return result


@pytest.mark.parametrize("name", [pytest.param(x, marks=() if x in QUICK else pytest.mark.full) for x in INSTRUCTIONS])
def test_instructions_are_identified_blind(name):
    row = tcm.get_instruction(name)
    result = check(row, 5000, 5000)
    assert isinstance(result.specification, type(row.accumulator))
    assert not any(q.field in ("output_rounding", "lanes", "group") for q in result.open_questions)
    assert all(e.excluded for e in result.evidence)


@pytest.mark.full
def test_block_scales_and_group_sums():
    row = next(r for r in tcm.list_instructions("rtx_blackwell") if r.scale_format == "ue4m3")
    result = check(row, 5000, 5000)
    assert result.specification.fraction_bits == 35 and result.specification.group == 16
    scaled = next(
        r for r in tcm.list_instructions("rtx_blackwell") if r.scale_format == "ue8m0" and r.a_format == "e4m3fn"
    )
    assert check(scaled, 5000, 5000).specification.fraction_bits == 25
    lowest = tcm.get_instruction("rtx_blackwell:mma.m16n8k32.block32.f32.e5m2.e4m3.f32.ue8m0")
    assert check(lowest, 5000, 5000).specification.exponent_floor == -133  # shows only below the smallest bare products


@pytest.mark.slow
@pytest.mark.parametrize("row", distinct(), ids=str)
def test_every_instruction_of_the_catalogue(row):
    check(row, 100_000, 1_000_000)


#: Units of the suite; all 500 are in the campaign. A search that follows few starting points calls 11, 26 and 100 outside of
#: the families, one that crosses no specifications 75.
SAMPLE = (3, 7, 10, 11, 12, 26, 65, 75, 100)


@pytest.mark.full
@pytest.mark.parametrize("seed", [pytest.param(x, marks=() if x == 7 else pytest.mark.full) for x in SAMPLE])
def test_random_units(seed):
    check(random_unit(seed), 5000, 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(500))
def test_five_hundred_random_units(seed):
    check(random_unit(seed), 1_000_000, 1_000_000)


@pytest.mark.full
@pytest.mark.parametrize(
    ("folder", "name", "expected"),
    [
        (
            "vdpbf16ps", "x86:vdpbf16ps.k2.f32.bf16.bf16.f32",
            tcm.SequentialFMA(flush_inputs=True, flush_outputs=True, pair_order="odd_first", nan="x86"),
        ),
        ("tdpbf16ps", "x86:tdpbf16ps.m16n16k32.f32.bf16.bf16.f32", tcm.LanedFMA()),
    ],
)  # fmt: skip
def test_recorded_answers_of_a_cpu_are_enough(folder, name, expected):
    """Nothing but what an Intel Xeon answered on the day of the recording can be asked."""
    if not VECTORS:
        pytest.skip("MPGEMM_VECTORS names no folder with recorded vectors")
    result = probing.identify(recorded(Path(VECTORS) / "amx" / folder, tcm.get_instruction(name)), vectors=200_000)
    assert result.specification == expected and not result.open_questions
    assert result.vectors > 100_000


def test_a_conversion_that_changes_nothing_is_left_out():
    """The plainer of two specifications that do the same is told: subnormal operands become zero in the chain or before it."""
    chain = tcm.SequentialFMA(flush_inputs=True, flush_outputs=True)
    box = as_box(tcm.MatrixEngine(chain, a_format="bf16", k=2))
    rng = np.random.default_rng(0)
    batch = pool(box.interface, 500, rng)
    log = Log(box.interface, batch, box.ask(batch))
    converted = tcm.accumulators.ConvertedDotAdd(chain, "bf16", True)
    assert unwrapped(box, log, converted, rng) == chain == unwrapped(box, log, chain, rng)
    needed = dataclasses.replace(converted, dot=tcm.SequentialFMA())
    assert unwrapped(box, log, needed, rng) == needed


def multiply_then_add(a, b, c):
    """Products and sums rounded to float32 one by one."""
    total = c.copy()
    for k in range(a.shape[1]):
        total = total + a[:, k : k + 1] * b[k : k + 1]
    return total


@pytest.mark.full
def test_a_users_function():
    """Products rounded, then added one by one: pairwise sums with groups of one."""
    result = probing.identify(multiply_then_add, a_format="fp32", d_format="fp32", k=2, vectors=3000)
    assert isinstance(result.specification, tcm.accumulators.GroupPairwiseSum) and result.specification.group == 1
    assert result.any_nan and [q.field for q in result.open_questions] == ["nan"]  # numpy keeps payloads


def biased(a, b, c):
    """An FDA unit of which some results have another last bit."""
    d = BIASED.gemm_bits(a, b, c)
    return np.where(d & 0xFF == 0x5A, d ^ 1, d).astype(np.uint32)


BIASED = tcm.MatrixEngine(tcm.FusedDotAdd(2, 24))
TWO = {"a_format": "fp16", "c_format": "fp32", "d_format": "fp32", "k": 2, "raw": True}


@pytest.fixture(scope="module")
def outside():
    """One search that ends outside (5 s), for all that is asked of its report."""
    return probing.identify(biased, **TWO, vectors=2000, effort="quick")


def test_a_box_outside_of_the_families_is_said_to_be_one(outside):
    assert outside.engine is None and "outside" in outside.verdict
    assert outside.nearest.specification.fraction_bits == 24 and outside.nearest.specification.terms == 2
    shown = outside.counterexample
    assert shown.answer == shown.nearest ^ 1 and shown.nearest & 0xFF == 0x5A
    assert outside.evidence == () and "counter-example" in str(outside)
    with pytest.raises(ValueError, match="nothing was identified"):
        outside.catalogue_row()


def test_the_nearest_is_nearest_by_its_own_count(outside):
    """No other that is told, and no change of one of its fields, misses fewer of the same answers."""
    near = outside.nearest
    assert all(near.wrong <= other.wrong and near.of == other.of for other in outside.others)
    interface = outside.interface
    first = pool(interface, run.FIRST_POOL, np.random.default_rng([0, 1]))
    answers = model_answer(BIASED)(first)
    answers = np.where(answers & 0xFF == 0x5A, answers ^ 1, answers)
    log = Log(interface, first, answers)
    spec = near.specification.parametric()
    assert log.wrong(spec) == near.wrong
    (family,) = (f for f in families_for(interface) if f.name == "fused sums")
    assert all(log.wrong(other) >= near.wrong for _, _, other in family.variants(interface, spec, sparse=True))


@pytest.mark.full
def test_a_normal_effort_for_a_box_outside_is_bounded():
    """In products evaluated for comparisons, which no clock disturbs: the crossings of :data:`.limits.EFFORTS`."""
    spent = []

    def counted(*args, **options):
        found = original(*args, **options)
        spent.append(args[1].effort.spent)
        return found

    original, run.evolve = run.evolve, counted
    try:
        assert probing.identify(biased, **TWO, vectors=2000).engine is None
    finally:
        run.evolve = original
    allowed = limits.EFFORTS["normal"]
    assert spent[-1] - spent[0] < allowed.renewed * allowed.refit + 2 * allowed.crossing


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda a, b, c: np.full(c.shape, 0x3FC00000, np.uint32), "answers are 0x3fc00000"),
        (lambda a, b, c: c.copy(), "answers are c"),
    ],
)
def test_a_box_that_multiplies_nothing_is_said_to_be_one(function, said):
    result = probing.identify(function, **TWO)
    assert result.engine is None and "no product" in result.verdict and said in result.verdict
    assert result.queries < 3000 and result.vectors < 1000


@pytest.mark.full
@pytest.mark.parametrize("zero", ["skip", "minus126"])
def test_units_that_flush_operands_before_they_align_them(zero):
    """A unit that takes subnormal operands for zeros and aligns them like zeros, which are left out with "skip"."""
    spec = tcm.ParametricDotAdd(4, 24, flush_inputs=True, flushed="as_zero", zero_operand=zero, zero_c="skip")
    result = check(tcm.MatrixEngine(spec), 2000, 5000)
    found = result.specification  # the flush may be said of the sum, or of a conversion before it
    if isinstance(found, tcm.accumulators.ParametricDotAdd):
        assert found.flush_inputs and found.flushed == "as_zero"
    else:
        assert found.flush


def test_an_unknown_effort_names_the_known_ones():
    with pytest.raises(ValueError, match="known: quick, normal, thorough"):
        probing.identify(BIASED, effort="some")


class TestFaults:
    """Boxes that are refused before anybody looks at their arithmetic."""

    unit = tcm.MatrixEngine(tcm.FusedDotAdd(4, 24))
    formats = {"a_format": "fp16", "c_format": "fp32", "d_format": "fp32", "k": 4}

    def identify(self, function):
        result = probing.identify(function, **self.formats, raw=True)
        assert result.engine is None and result.verdict.startswith("the box cannot be identified")
        return result

    def test_raises(self):
        def picky(a, b, c):
            if (c & 0x7FFFFFFF > 0x7F800000).any():
                raise OverflowError("no NaN, please")
            return self.unit.gemm_bits(a, b, c)

        result = self.identify(picky)
        assert "raises: OverflowError: no NaN, please" in result.fault
        assert result.counterexample.c & 0x7FFFFFFF > 0x7F800000

    def test_wrong_type(self):
        assert "type: " in self.identify(lambda a, b, c: np.zeros((1, 1))).fault

    def test_wrong_shape(self):
        assert "shape: " in self.identify(lambda a, b, c: self.unit.gemm_bits(a, b, c)[:1, :1].repeat(2, 1)).fault

    def test_not_deterministic(self):
        rng = np.random.default_rng(0)

        def noisy(a, b, c):
            d = self.unit.gemm_bits(a, b, c)
            return d ^ rng.integers(0, 2, d.shape).astype(np.uint32)

        assert "not deterministic" in self.identify(noisy).fault

    def test_depends_on_the_position(self):
        def slanted(a, b, c):
            d = self.unit.gemm_bits(a, b, c)
            d[:, 2:] ^= 1
            return d

        assert "depends on the position" in self.identify(slanted).fault

    def test_other_results_in_matrices(self):
        """Products of matrices end with +0, dot products do not. Takes 2 s: a search, and matrices until one has a -0."""
        unit = tcm.MatrixEngine(tcm.ParametricDotAdd(2, None, output_rounding="rne", zero_sign="ieee"), a_format="fp16")
        box = as_box(unit)

        def matrix(a, b, c, *scales):
            d = unit.gemm_bits(a, b, c)
            return np.where(d == 0x80000000, 0, d).astype(d.dtype)

        box.matrix = matrix
        assert "other results in matrices" in probing.identify(box, vectors=50_000).fault

    def test_a_unit_that_ends_a_gemm_with_a_zero_is_asked_for_its_steps(self):
        """Gaudi 2: the last +0 is the GEMM's, not the step's."""
        row = tcm.get_instruction("gaudi2", "mme.k8.f32.bf16.bf16.f32")
        a, c = np.zeros((1, 8), np.uint16), np.full((1, 1), 0x80000000, np.uint32)
        assert row.gemm_bits(a | 0x8000, a.T, c) == 0 and as_box(row).ask_matrices(a | 0x8000, a.T, c) == 0x80000000


@pytest.mark.parametrize("k", [1, 2, 8, 32])
def test_pools_ask_for_the_sign_of_a_sum_of_zeros(k):
    """All products and c -0 (only then a sum of IEEE additions is), and one product of them +0."""
    interface = as_box(tcm.MatrixEngine(tcm.ParametricDotAdd(k, None), a_format="e5m2", k=k)).interface
    batch = pool(interface, 2600, np.random.default_rng(0))
    zeros = ((batch.a & 0x7F) == 0).all(axis=1) & (batch.b == 0).all(axis=1) & (batch.c == 0x80000000)
    negative = np.count_nonzero(batch.a & 0x80, axis=1)
    assert {k - 1, k} <= set(negative[zeros])


def test_callables_must_say_what_they_multiply():
    with pytest.raises(ValueError, match="a_format, d_format and k"):
        probing.identify(multiply_then_add)
    with pytest.raises(TypeError, match="an engine or a callable"):
        probing.identify(3)
    with pytest.raises(ValueError, match="vectors is -1"):
        probing.identify(TestFaults.unit, vectors=-1)


def test_a_solver_is_one_more_source():
    """A source is asked for rivals that no pool separates, and its inputs are put to the box."""
    asked = []

    def source(interface, one, other):
        asked.append((one, other))
        return [DotBatch(np.zeros((1, 4), np.uint16), np.zeros((1, 4), np.uint16), np.array([0x80000000], np.uint32))]

    unit = tcm.MatrixEngine(tcm.FusedDotAdd(4, 20))
    result = probing.identify(unit, vectors=1000, sources=(source,))
    assert asked and result.specification == unit.accumulator
    assert {type(spec) for pair in asked for spec in pair} == {tcm.ParametricDotAdd}


class TestSolver:
    """Solvers separate what no pool does, and prove what is equal."""

    four = Interface.of(TestFaults.unit)

    @pytest.mark.full
    def test_a_witness_is_an_input_that_tells_two_apart(self):
        pytest.importorskip("bitwuzla")
        one, other = tcm.FusedDotAdd(4, 24), tcm.FusedDotAdd(4, 23)
        (batch,) = probing.Solver(timeout=300)(self.four, one, other)
        wanted, found = (results(spec, self.four, batch) for spec in (one, other))
        assert batch.size == 1 and wanted[0] != found[0]

    def test_what_is_proved_is_said(self):
        pytest.importorskip("bitwuzla")
        solver = probing.Solver(timeout=300, backends=["bitwuzla"])
        one, other = tcm.FusedDotAdd(4, 24), tcm.FusedDotAdd(4, 24, negative_underflow="negative")
        assert solver(self.four, one, other) == []
        assert solver.statement(one, other).startswith("proved equal")

    def test_an_open_question_says_what_was_proved(self):
        class Prover:
            def __call__(self, interface, one, other):
                return []

            def statement(self, one, other):
                return "proved equal (for the test)" if one.zero_c != other.zero_c else "no end in time"

        result = probing.identify(tcm.MatrixEngine(tcm.FusedDotAdd(4, 20)), vectors=1000, sources=(Prover(),))
        proved = [q for q in result.open_questions if q.reason.startswith("proved equal")]
        assert [q.field for q in proved] == ["zero_c"]
        others = [q.reason for q in result.open_questions if q not in proved]
        assert others and all("equal on" in reason and "no end in time" in reason for reason in others)

    def test_no_time_left_is_no_answer(self):
        pytest.importorskip("bitwuzla")
        solver = probing.Solver(timeout=1e-3, total=1e-3)
        one, other = tcm.FusedDotAdd(4, 24), tcm.FusedDotAdd(4, 24, subnormal_c="normalised")
        assert solver(self.four, one, other) == [] and "no end in time" in solver.statement(one, other)
        assert solver(self.four, one, tcm.FusedDotAdd(4, 22)) == []  # the total is spent

    def test_bad_limits_and_missing_solvers(self, monkeypatch):
        with pytest.raises(ValueError, match="seconds above 0"):
            probing.Solver(timeout=0)
        monkeypatch.setattr("tensorcore_models.probing.formal.solvers.find_spec", lambda name: None)
        with pytest.raises(ImportError, match=r"mpgemm\[smt\]"):
            probing.Solver()


def rival_is_separated(unit, size: int, **change) -> bool:
    """Whether one pool holds an input that separates a unit from the one with a field changed."""
    interface = Interface.of(unit)
    batch = pool(interface, size, np.random.default_rng(3))
    other = dataclasses.replace(unit.accumulator, **change)
    return bool((results(unit.accumulator, interface, batch) != results(other, interface, batch)).any())


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("hopper:wmma.m16n16k16.f16.f16.f16.f32", {"exponent_floor": None}),
        ("turing:mma.m16n8k8.f16.f16.f16.f16", {"exponent_floor": -19}),
        ("turing:mma.m16n8k8.f16.f16.f16.f16", {"exponent_floor": -24}),
        ("rtx_blackwell:mma.m16n8k32.block32.f32.e5m2.e4m3.f32.ue8m0", {"exponent_floor": None}),
        ("rtx_blackwell:mma.m16n8k64.block16.f32.e2m1.e2m1.f32.ue8m0", {"exponent_floor": None}),
        ("cdna3:v_mfma_f32_32x32x4_2b_bf16", {"sum_fraction_bits": None}),
        ("cdna3:v_mfma_f32_32x32x4_2b_f16", {"dot_fraction_bits": 30}),
    ],
)  # fmt: skip
def test_corners_that_only_inputs_made_for_them_reach(name, change):
    """Tails below a tie of the smallest numbers, blocks of far scales, bits that a carry shifts out."""
    assert rival_is_separated(tcm.get_instruction(name), 9000, **change)


#: A unit of eight bf16 products whose results keep three bits, without a floor, and a unit of the catalogue.
EIGHT = dataclasses.replace(
    random_unit(8), accumulator=dataclasses.replace(random_unit(8).accumulator, exponent_floor=None)
)
HIDDEN = [
    *((EIGHT, {"exponent_floor": floor}) for floor in (-126, -129, -130, -131, -132)),
    (EIGHT, {"subnormal_c": "raw"}),
    (tcm.get_instruction("cdna3:v_mfma_f32_32x32x16_fp8_fp8"), {"dot_fraction_bits": 32}),
    (tcm.get_instruction("hopper:mma.m16n8k16.f32.f16.f16.f32"), {"zero_operand": "minus126"}),
    (tcm.get_instruction("rtx_blackwell:mma.m16n8k32.block32.f32.e2m3.e2m1.f32.ue8m0"), {"exponent_floor": None}),
    (random_unit(46), {"exponent_floor": None}),  # results are flushed
    (random_unit(267), {"negative_underflow": "positive"}),  # the sums are alike
    (random_unit(470), {"normalised_products": False}),  # shows where the sum nearly cancels
]


class TestAimed:
    """Inputs made for two specifications part them where no pool does."""

    @pytest.mark.full
    @pytest.mark.parametrize(("unit", "change"), HIDDEN, ids=[f"{str(u)[:12]} {x}" for u, x in HIDDEN])
    def test_rivals_that_no_pool_separates(self, unit, change):
        assert not rival_is_separated(unit, 9000, **change)
        interface = Interface.of(unit)
        other = dataclasses.replace(unit.accumulator, **change)
        (batch,) = Aimed()(interface, unit.accumulator, other)
        assert (results(unit.accumulator, interface, batch) != results(other, interface, batch)).all()
        scales = () if batch.scales is None else (batch.scales[0][:, None], batch.scales[1][:, :, None])
        matrices = batch.a[:, None], batch.b[:, :, None], batch.c[:, None, None], *scales
        stated = reference.mma_bits(engine_of(other, interface), *matrices)[:, 0, 0]
        assert np.array_equal(stated, results(other, interface, batch))  # as the algorithm states it, too

    def test_breeding_finds_what_its_first_inputs_do_not_show(self):
        interface = Interface.of(EIGHT)
        other = dataclasses.replace(EIGHT.accumulator, exponent_floor=-130)
        assert Aimed(generations=0)(interface, EIGHT.accumulator, other) == []
        assert Aimed()(interface, EIGHT.accumulator, other)

    def test_a_search_ends_at_its_limits(self):
        """One product, and a result that keeps fewer of its bits than any of the rivals: the sums differ, no result does."""
        one = tcm.ParametricDotAdd(1, 15, c_position="late", flush_inputs=True)
        interface = Interface.of(tcm.MatrixEngine(one, a_format="fp16", c_format="fp16", d_format="fp16"))
        rivals = [dataclasses.replace(one, fraction_bits=bits) for bits in (14, 13, 12)]
        aimed = Aimed(generations=10, herds=1, total=15)
        for rival, left in zip(rivals, (5, 0, 0), strict=True):
            assert aimed(interface, one, rival) == [] and aimed.total == left
        assert "found none" in aimed.statement(one, rivals[0]) and aimed.statement(one, rivals[2]) == ""

    def test_equal_specifications_are_not_searched(self):
        aimed = Aimed()
        other = dataclasses.replace(EIGHT.accumulator, exponent_floor=-140)  # its zeros lie above that
        assert aimed(Interface.of(EIGHT), EIGHT.accumulator, other) == [] and aimed.total == Aimed().total

    def test_the_point_of_the_parametric_space_that_has_a_class_has_a_wide_view(self):
        unit = tcm.get_instruction("hopper:mma.m16n8k8.f32.tf32.tf32.f32")
        other = dataclasses.replace(unit.accumulator, fraction_bits=24)
        assert _Pair(Interface.of(unit), unit.accumulator, other).wide is not None

    def test_an_algorithm_without_a_wide_view_gets_pools_only(self):
        unit = tcm.get_instruction("cdna2:v_mfma_f32_32x32x8f16")
        aimed = Aimed(total=100)
        assert aimed(Interface.of(unit), unit.accumulator, dataclasses.replace(unit.accumulator, terms=4)) == []
        assert aimed.total == 100

    @pytest.mark.parametrize("fmt", ["fp16", "tf32", "e4m3fnuz", "fp64"])
    def test_scaling_multiplies_by_powers_of_two(self, fmt):
        interface = Interface(tuple(map(tcm.get_format, (fmt, fmt, "fp64", "fp64"))), 1)
        ones = encode(np.array([[1.5], [-1.25], [0.0]]), fmt)
        batch = DotBatch(ones, ones, encode(np.array([3.0, -3.0, 0.0]), "fp64"))
        moved = scaled(interface, batch, np.array([4, -6, 3]))
        values = [decode(x, fmt)[:, 0] for x in (moved.a, moved.b)]
        assert (values[0] * values[1]).tolist() == [2.25 * 16, 1.5625 / 64, 0.0]
        assert decode(moved.c, "fp64").tolist() == [48.0, -3.0 / 64, 0.0]

    @pytest.mark.parametrize("scale", ["ue8m0", "ue4m3"])
    def test_scaling_moves_block_scales_where_there_are_some(self, scale):
        formats = tuple(map(tcm.get_format, ("e2m1", "e2m1", "fp32", "fp32")))
        interface = Interface(formats, 4, tcm.get_format(scale), 2)
        operands, c = np.arange(8, dtype=np.uint8).reshape(2, 4), encode(np.array([3.0, 5.0]), "fp32")
        scales = encode(np.array([[1.0, 2.0], [0.5, 4.0]]), scale), encode(np.array([[2.0, 1.0], [1.0, 0.25]]), scale)
        moved = scaled(interface, DotBatch(operands, operands, c, *scales), np.array([5, -3]))
        assert np.array_equal(moved.a, operands) and np.array_equal(moved.b, operands)
        products = decode(moved.scale_a, scale) * decode(moved.scale_b, scale)
        assert products.tolist() == [[64.0, 64.0], [0.0625, 0.125]]
        assert decode(moved.c, "fp32").tolist() == [96.0, 0.625]


class TestMutations:
    """Inputs that are like others."""

    @pytest.mark.parametrize(
        "name",
        ["hopper:mma.m16n8k8.f32.tf32.tf32.f32", "ada:mma.m16n8k32.f32.e4m3.e4m3.f32", "hopper:mma.m8n8k4.f64.f64.f64.f64",
         "rtx_blackwell:mma.m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"],
    )  # fmt: skip
    def test_most_inputs_are_alike_and_all_are_encodings(self, name):
        unit = tcm.get_instruction(name)
        interface = Interface.of(unit)
        batch = pool(interface, 2000, np.random.default_rng(1))
        before = DotBatch.joined([batch])
        changed = mutated(interface, batch, np.random.default_rng(2))
        again = mutated(interface, batch, np.random.default_rng(2))
        names = ("a", "b", "c") if batch.scales is None else ("a", "b", "c", "scale_a", "scale_b")
        alike = np.zeros(batch.size)
        for name in names:
            one, other, old = (getattr(x, name) for x in (changed, again, batch))
            assert np.array_equal(one, other) and np.array_equal(old, getattr(before, name))
            assert one.dtype == old.dtype
            alike += (one != old).reshape(batch.size, -1).sum(axis=1)
        # At most three rounds, each of 11/8 encodings in the mean; one in eight is scaled, 2k + 1 encodings: below 4 + k/3.
        assert 0.5 < np.mean(alike) < 4 + interface.k / 3 and np.mean(alike > 0) > 0.5
        model_answer(unit)(changed)  # encodings outside of a format are refused

    @pytest.mark.full
    def test_a_unit_is_found_by_likes_of_missed_answers_alone(self, monkeypatch):
        """A unit of which one answer of the first pool shows several fields, and a search without a last crossing."""
        unit = random_unit(164)
        short = dataclasses.replace(limits.EFFORTS["thorough"], crossing=0, nearly=0)
        monkeypatch.setitem(limits.EFFORTS, "thorough", short)
        found = probing.identify(unit, vectors=20_000, effort="thorough")
        assert same(unit, found.engine, 100_000) and found.queries < MOST_QUERIES

    def test_likes_of_missed_answers_are_missed_more_often_than_others(self):
        """Products aligned by their leading bits show in few answers, and in far more of the likes of these."""
        unit = tcm.MatrixEngine(tcm.ParametricDotAdd(4, 24))
        search = run._Run(as_box(unit), 0, 0, (), (), limits.EFFORTS["quick"], lambda text: None)
        other = dataclasses.replace(unit.accumulator, normalised_products=True)
        before, missed = search.log.size, search.log.wrong(other)
        assert search.ask_like_missed(other)
        added = search.log.size - before
        assert added == run.LIKE * run.GENERATIONS
        assert (search.log.wrong(other) - missed) / added > 3 * missed / before > 0


class TestTwoFields:
    """A width and a floor that make up for each other: each change alone is contradicted."""

    unit = random_unit(82)
    interface = Interface.of(unit)
    true = unit.accumulator
    near = dataclasses.replace(true, fraction_bits=true.fraction_bits + 1, exponent_floor=true.exponent_floor + 1)
    family = next(f for f in families_for(interface) if f.name == "fused sums")

    def test_both_are_changed_where_one_does_not_help(self, monkeypatch):
        batch = pool(self.interface, 9000, np.random.default_rng(1))
        log = Log(self.interface, batch, results(self.true, self.interface, batch))
        assert log.wrong(self.near)
        assert descend(self.family, log, self.near)[1] == 0
        monkeypatch.setattr(Family, "slides", lambda *args: iter(()))
        assert descend(self.family, log, self.near)[1] > 0


def test_a_count_that_stopped_goes_on_where_it_stopped(monkeypatch):
    """No answer is compared twice, and what is counted in parts is the count."""
    unit = tcm.MatrixEngine(tcm.ParametricDotAdd(4, 24))
    interface, other = Interface.of(unit), dataclasses.replace(unit.accumulator, fraction_bits=20)
    batch = pool(interface, 1000, np.random.default_rng(2))
    log = Log(interface, batch, results(unit.accumulator, interface, batch))
    compared = []
    differs = Log.differs
    monkeypatch.setattr(Log, "differs", lambda log, spec, part: compared.append(part) or differs(log, spec, part))
    counts = [log.wrong(other, limit) for limit in (1, 1, 3, None, None)]
    assert compared == [slice(0, 96), slice(96, 400), slice(400, log.size)]
    assert counts[0] == counts[1] >= 1
    assert counts[-1] == counts[-2] == np.count_nonzero(differs(log, other))
    assert sum(part.stop - part.start for part in compared) == log.size


class TestEqualities:
    """What certainly computes the same is no open question."""

    @pytest.mark.parametrize(
        "seed", [3, 8, 129, *(pytest.param(x, marks=pytest.mark.full) for x in (0, 1, 2, 4, 5, 6, 7, 9, 53, 83, 130))]
    )  # the last have trees, and a floor above their zeros
    def test_what_is_called_equal_is_equal(self, seed):
        unit = random_unit(seed)
        interface, spec = Interface.of(unit), unit.accumulator
        rng = np.random.default_rng(seed)
        batch = DotBatch.joined([pool(interface, 1500, rng), scaled_pool(interface, 1500, rng)])
        (family,) = (f for f in families_for(interface) if f.name == "fused sums")
        wanted, equal = results(spec, interface, batch), 0
        for _, _, other in family.variants(interface, spec):
            if equal_because(interface, spec, other):
                equal += 1
                assert np.array_equal(results(other, interface, batch), wanted), other
        assert equal or spec.fraction_bits is None or spec.exponent_floor is not None

    def test_what_shows_is_not_called_equal(self):
        interface = Interface.of(EIGHT)
        for change in ({"exponent_floor": -132}, {"zero_c": "skip"}, {"fraction_bits": 21}):
            assert not equal_because(interface, EIGHT.accumulator, dataclasses.replace(EIGHT.accumulator, **change))

    def test_the_report_says_why(self, identified):
        result = identified
        reasons = {q.reason for q in result.equal_values if q.field == "exponent_floor"}
        assert any("no addend" in reason for reason in reasons)
        assert "the same: exponent_floor" in str(result) and result.to_dict()["equal_values"]
        assert not any(q.field == "exponent_floor" and -126 in q.alternatives for q in result.open_questions)


def test_what_comes_out_is_plain_data_and_a_row_to_paste():
    row = tcm.get_instruction("turing:mma.m16n8k8.f16.f16.f16.f16")
    result = probing.identify(row, vectors=2000)
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["specification"]["fraction_bits"] == 24 and plain["queries"] == result.queries
    pasted = eval(
        result.catalogue_row("mine", "unit"), {"Instruction": tcm.Instruction, "FusedDotAdd": tcm.FusedDotAdd}
    )
    assert same(row, pasted, 5000) and pasted.arch == "mine"
    assert result.label in str(result) and "the same: " in str(result)


def test_the_same_seed_asks_the_same_questions():
    small = tcm.MatrixEngine(tcm.SequentialFMA(), a_format="fp16", k=1)  # found at its first start
    one, two = (probing.identify(small, vectors=1000, seed=5).to_dict() for _ in range(2))
    one.pop("seconds"), two.pop("seconds")
    assert one == two
