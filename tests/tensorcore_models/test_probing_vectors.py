"""Probe vectors: they hold on every floating-point row, and fail on units with one parameter changed.

The vectors' results come from formulas, so that a row and a model that share a wrong parameter are found out.
"""

import dataclasses
import itertools

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models.accumulators import FidelityPhases
from tensorcore_models.aspects.values import Unreachable, factors
from tensorcore_models.formats import IntegerFormat
from tensorcore_models.formats.exact_rounding import ROUNDINGS
from tensorcore_models.probing import probe_set, probe_vectors
from tensorcore_models.reference import dot_bits


def without_vectors(spec):
    """Families that leave probe vectors out, and fused sums to which c is added."""
    late = isinstance(spec, tcm.ParametricDotAdd) and spec.c_position != "early"
    return late or bool(getattr(spec, "significand_parts", ())) or "probe vectors" in type(spec).left_out


FLOATING = [
    row
    for row in tcm.list_instructions()
    if row.published
    and not isinstance(tcm.get_format(row.d_format), IntegerFormat)
    and not without_vectors(row.accumulator)
]
#: One row for each arithmetic: rows that differ in name or in m and n only have the same vectors.
DISTINCT = list({(r.accumulator, r.k, r.formats, r.scale_format, r.block_size): r for r in FLOATING}.values())
DETERMINISTIC = [name for name in ROUNDINGS if name != "sr"]
SCALE_OF_ONE = {"ue8m0": 127, "ue4m3": 0x38}


def scales_of(row):
    """Block scales of 1 for one dot product."""
    if row.scale_format is None:
        return {}
    ones = [SCALE_OF_ONE[row.scale_format]] * (row.k // row.block_size)
    fmt = tcm.get_format(row.scale_format)
    return {"scale_a": ones, "scale_b": ones, "scale_format": fmt, "block_size": row.block_size}


def failing(row, spec):
    """Names of the vectors that a unit with the accumulator `spec` gets wrong."""
    scales = scales_of(row)
    return [
        v.name
        for v in probe_vectors(row)
        if dot_bits(spec, list(v.a), list(v.b), v.c, row.formats, **scales) != v.expected
    ]


@pytest.mark.full
def test_every_floating_point_row_has_vectors():
    assert len(FLOATING) > 450 and len(DISTINCT) > 190
    for row in DISTINCT:
        # Parts of operands: one vector follows by hand where their leading bits meet.
        least = 8 if not isinstance(row.accumulator, FidelityPhases) else int(not row.accumulator.partial)
        assert len(probe_vectors(row)) >= least, row
    assert sum(shows(row, "alignment floor") for row in DISTINCT) > 10
    assert sum(shows(row, "2, a tie") for row in DISTINCT) > 4


@pytest.mark.sweep(42)
@pytest.mark.parametrize("row", DISTINCT, ids=str)
def test_vectors_hold_on_the_reference(row):
    assert failing(row, row.accumulator) == []


@pytest.mark.sweep(49)
@pytest.mark.parametrize("row", DISTINCT, ids=str)
def test_vectors_hold_on_the_kernels(row):
    """All vectors of a row as one batch through `mma_bits`, at several places of the tile."""
    vectors = probe_vectors(row)
    formats = row.formats
    a = np.array([v.a for v in vectors], formats[0].container)
    b = np.array([v.b for v in vectors], formats[1].container)
    c = np.array([v.c for v in vectors], formats[2].container)
    rows, cols = np.arange(len(vectors)) % row.m, np.arange(len(vectors)) % row.n
    batch = np.arange(len(vectors))
    x = np.zeros((len(vectors), row.m, row.k), a.dtype)
    y = np.zeros((len(vectors), row.k, row.n), b.dtype)
    z = np.zeros((len(vectors), row.m, row.n), c.dtype)
    x[batch, rows], y[batch, :, cols], z[batch, rows, cols] = a, b, c
    scales = []
    if row.scale_format is not None:
        blocks = row.k // row.block_size
        one = np.uint8(SCALE_OF_ONE[row.scale_format])
        scales = [np.full((len(vectors), row.m, blocks), one), np.full((len(vectors), blocks, row.n), one)]
    d = row.mma_bits(x, y, z, *scales)[batch, rows, cols]
    wrong = [v.name for v, got in zip(vectors, d, strict=True) if int(got) != v.expected]
    assert wrong == []


def changed(spec, **changes):
    try:
        return dataclasses.replace(spec, **changes)
    except ValueError:
        return None


def shows(row, start):
    """Whether the row's formats have vectors of that name."""
    return any(v.name.startswith(start) for v in probe_vectors(row))


def mutants(row):
    """Units with one parameter changed: widths by one, terms and groups halved and doubled, every rounding, every place."""
    spec = row.accumulator
    fields = {field.name for field in dataclasses.fields(spec)}
    changes = []
    exact = isinstance(spec, tcm.ParametricDotAdd)  # no alignment, so that nothing about it can be told
    if exact:
        fields -= {"fraction_bits", "alignment_rounding", "normalised_products", "exponent_floor"}
        changes += [{"fraction_bits": 24}, {"fraction_bits": 40}, {"c_position": "late"}]
    for name in {"fraction_bits", "dot_fraction_bits", "c_fraction_bits"} & fields:
        changes += [{name: getattr(spec, name) + step} for step in (-1, 1)]
    if "sum_fraction_bits" in fields and shows(row, "2, a tie"):
        changes += [{"sum_fraction_bits": spec.sum_fraction_bits - 1}, {"sum_fraction_bits": None}]
    if "exponent_floor" in fields and shows(row, "alignment floor"):
        changes += [{"exponent_floor": spec.exponent_floor + step} for step in (-1, 1)] + [{"exponent_floor": None}]
    if isinstance(spec, tcm.GroupPairwiseSum):
        fields -= {"terms"}  # decides signs of zeros only
    for name in {"terms", "group", "run", "lanes"} & fields:
        changes += [{name: getattr(spec, name) * 2}, {name: getattr(spec, name) // 2}]
    for name in {"output_rounding", "alignment_rounding", "add_rounding", "final_rounding", "rounding"} & fields:
        changes += [{name: rounding} for rounding in DETERMINISTIC if rounding != getattr(spec, name)]
    if "normalised_products" in fields:
        changes.append({"normalised_products": True})
    if "group_order" in fields:
        changes.append({"group_order": spec.group_order[::-1]})
    if "pair_order" in fields:
        changes.append({"pair_order": "odd_first" if spec.pair_order == "ascending" else "ascending"})
    if "flush_results" in fields:
        flushes = spec.flush_input != "none"
        changes.append({"flush_results": not flushes, "flush_input": "none" if flushes else "format"})
    found = {str(change): changed(spec, **change) for change in changes}
    if isinstance(spec, tcm.FusedDotAdd):
        general = tcm.as_parametric(spec)
        for change in (
            {"c_position": "late"}, {"sticky": True}, {"normalise_each_add": True}, {"integer_bits": 2}, {"alignment":
            "pairwise"},
        ):  # fmt: skip
            found[str(change)] = changed(general, **change)
    if isinstance(spec, tcm.InterleavedDotAdd):
        inner = dataclasses.replace(row, accumulator=spec.dot, k=spec.dot.terms)
        for name, dot in mutants(inner):
            if isinstance(dot, tcm.FusedDotAdd) and dot.terms == spec.dot.terms:
                found[f"dot {name}"] = changed(spec, dot=dot)
    return [(name, unit) for name, unit in found.items() if unit is not None and row.k % unit.terms_per_step == 0]


#: Narrow operands with fp16 results: neither products nor c reach far enough below the largest product to show a tree.
NOT_TOLD_APART = {"{'alignment': 'pairwise'}"}


def survivors(row, every=1):
    return [
        name
        for number, (name, unit) in enumerate(mutants(row))
        if (number + DISTINCT.index(row)) % every == 0 and not failing(row, unit)
    ]


def narrow(row):
    return row.d_format == "fp16" and tcm.get_format(row.a_format).bits <= 8


@pytest.mark.sweep(10)
@pytest.mark.parametrize("row", DISTINCT, ids=str)
def test_changed_units_are_found_out(row):
    """A third of the changes of each row, another third on the next one; all of them in the slow twin below."""
    assert set(survivors(row, 3)) <= (NOT_TOLD_APART if narrow(row) else set())


@pytest.mark.slow
@pytest.mark.parametrize("row", DISTINCT, ids=str)
def test_all_changed_units_are_found_out(row):
    assert set(survivors(row)) <= (NOT_TOLD_APART if narrow(row) else set())


@pytest.mark.sweep(14)
@pytest.mark.parametrize("row", DISTINCT, ids=lambda row: row.label)
def test_what_the_formats_cannot_express_is_named(row):
    assert set(probe_set(row).unreachable).isdisjoint(v.name for v in probe_vectors(row))


def test_rows_without_vectors_say_why():
    for name in ("ampere:mma.m16n8k32.s32.s8.u8.s32", "tpu:mxu.m128n128k128.f32.bf16.bf16.f32"):
        with pytest.raises(ValueError, match="only for published floating-point arithmetic"):
            probe_vectors(tcm.get_instruction(name))


@pytest.mark.parametrize(("a", "b"), list(itertools.product(("fp16", "e4m3fn", "e2m1"), ("fp16", "e5m2", "e2m1"))))
def test_factors_multiply_to_the_value(a, b):
    from fractions import Fraction

    a_format, b_format = tcm.get_format(a), tcm.get_format(b)
    for exponent in range(-60, 40):
        for significand in (1, 3):
            value = significand * Fraction(2) ** exponent
            try:
                x, y = factors(value, a_format, b_format)
            except Unreachable:
                continue
            product = Fraction(float(tcm.decode(np.array(x, a_format.container), a))) * Fraction(
                float(tcm.decode(np.array(y, b_format.container), b))
            )
            assert product == value
