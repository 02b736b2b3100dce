"""How identification parts specifications that no pool separates, and says which are the same."""

import dataclasses

import numpy as np
import pytest
from boxes import FOUR, MOST_QUERIES, random_unit, same

import tensorcore_models as tcm
from tensorcore_models import probing, reference
from tensorcore_models.formats.rounding import decode, encode
from tensorcore_models.probing.identify import limits, run
from tensorcore_models.probing.identify.aimed import Aimed, _Pair
from tensorcore_models.probing.identify.box import as_box, model_answer
from tensorcore_models.probing.identify.equalities import equal_because
from tensorcore_models.probing.identify.fields import Family, engine_of, families_for
from tensorcore_models.probing.identify.inputs import pool
from tensorcore_models.probing.identify.magnitudes import scaled, scaled_pool
from tensorcore_models.probing.identify.mutations import mutated
from tensorcore_models.probing.identify.search import Log, descend, results
from tensorcore_models.probing.interface import DotBatch, Interface


@pytest.mark.full
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

    four = Interface.of(FOUR)

    @pytest.mark.full
    def test_a_witness_is_an_input_that_tells_two_apart(self):
        pytest.importorskip("bitwuzla")
        one, other = tcm.FusedDotAdd(4, 24), tcm.FusedDotAdd(4, 23)
        (batch,) = probing.Solver(timeout=300)(self.four, one, other)
        wanted, found = (results(spec, self.four, batch) for spec in (one, other))
        assert batch.size == 1 and wanted[0] != found[0]

    @pytest.mark.unsanitized
    def test_what_is_proved_is_said(self):
        pytest.importorskip("bitwuzla")
        solver = probing.Solver(timeout=300, backends=["bitwuzla"])
        one, other = tcm.FusedDotAdd(4, 24), tcm.FusedDotAdd(4, 24, negative_underflow="negative")
        assert solver(self.four, one, other) == []
        assert solver.statement(one, other).startswith("proved equal")

    @pytest.mark.full
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
        with pytest.raises(ValueError, match="must be above 0"):
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
        ("volta:wmma.m16n16k16.f16.f16.f16.f32", {"exponent_floor": None}),
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

    @pytest.mark.full
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
        assert "found no result" in aimed.statement(one, rivals[0]) and aimed.statement(one, rivals[2]) == ""

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
