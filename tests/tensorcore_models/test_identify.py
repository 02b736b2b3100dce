"""Identification of black boxes: the catalogue blind, random units, recorded CPUs, strangers."""

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest
from boxes import EVERY_ROUNDING, FOUR, MOST_QUERIES, random_unit, recorded, same

import tensorcore_models as tcm
from tensorcore_models import probing
from tensorcore_models.probing.identify import limits, run
from tensorcore_models.probing.identify.box import as_box, model_answer
from tensorcore_models.probing.identify.challenge import unwrapped
from tensorcore_models.probing.identify.fields import families_for
from tensorcore_models.probing.identify.inputs import pool
from tensorcore_models.probing.identify.search import Log

VECTORS = os.environ.get("MPGEMM_VECTORS")


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


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_random_units_with_every_rounding(seed):
    check(random_unit(seed, EVERY_ROUNDING), 5000, 20_000)


@pytest.mark.parametrize(
    "rounding", ["rno", *(pytest.param(x, marks=pytest.mark.full) for x in ("ra", "rnu", "rnd", "rnz"))]
)
@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (tcm.FusedDotAdd(4, 24), "output_rounding"),
        pytest.param(tcm.SequentialFMA(), "rounding", marks=pytest.mark.full),
        pytest.param(tcm.ParametricDotAdd(4, 20, c_position="late"), "alignment_rounding", marks=pytest.mark.full),
        pytest.param(tcm.ParametricDotAdd(4, 24, c_position="late"), "late_rounding", marks=pytest.mark.full),
    ],
)
def test_roundings_of_the_tables_of_mma_sim(spec, field, rounding):
    """The modes of tables I and II; stochastic sums are in test_stochastic_sums.py."""
    unit = tcm.MatrixEngine(dataclasses.replace(spec, **{field: rounding}), k=4)
    assert getattr(check(unit, 3000, 5000).specification, field) == rounding


#: Rows of later units: readings of AMX-FP8, the 950's operands.
LATER = (
    ("x86:tdphf8ps.m16n16k64.f32.e4m3.e4m3.f32", {"pairs": "two_lanes"}), ("ascend950:cube.m16n16k8.f32.hf32.hf32.f32", {}),
    ("ascend950:cube.m16n16k32.f32.hif8.hif8.f32", {}), ("ampere:mma.m8n8k4.f64.f64.f64.f64.rm", {}),
)  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize(("name", "rules"), LATER, ids=str)
def test_later_rows_are_identified_blind(name, rules):
    row = tcm.get_instruction(name)
    row = row.with_rules(**rules) if rules else row
    assert check(row, 3000, 5000).specification.simplest() == row.accumulator.simplest()


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


@pytest.mark.full
def test_a_box_outside_of_the_families_is_said_to_be_one(outside):
    assert outside.engine is None and "outside" in outside.verdict
    assert outside.nearest.specification.fraction_bits == 24 and outside.nearest.specification.terms == 2
    shown = outside.counterexample
    assert shown.answer == shown.nearest ^ 1 and shown.nearest & 0xFF == 0x5A
    assert outside.evidence == () and "counter-example" in str(outside)
    with pytest.raises(ValueError, match="no specification was identified"):
        outside.catalogue_row()


@pytest.mark.full
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


def test_callables_must_say_what_they_multiply():
    with pytest.raises(ValueError, match="a_format, d_format and k"):
        probing.identify(multiply_then_add)
    with pytest.raises(TypeError, match="an engine or a callable"):
        probing.identify(3)
    with pytest.raises(ValueError, match="vectors is -1"):
        probing.identify(FOUR, vectors=-1)


@pytest.mark.full
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
