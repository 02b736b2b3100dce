"""Published suites: their verdicts equal the specification where they are valid, and where they are not is shown."""

import json

import pytest

import tensorcore_models as tcm
from tensorcore_models.accumulators import FusedDotAdd
from tensorcore_models.probing import suites
from tensorcore_models.probing.suites.model import Setting
from tensorcore_models.probing.suites.table import NOT_EXPRESSIBLE, truth_of


def units() -> list[tcm.Instruction]:
    """The fused units with one alignment of the catalogue, one for each arithmetic and formats."""
    found = {}
    for row in tcm.list_instructions():
        if row.published and row.a_format not in tcm.formats.INTEGER_FORMATS:
            key = row.accumulator, row.a_format, row.b_format, row.c_format, row.d_format, row.scale_format, row.k
            if truth_of(row.accumulator, row.formats[3].precision):
                found.setdefault(key, row)
    return list(found.values())


def checked(row, name: str) -> int:
    """Valid verdicts of a suite on a unit, each the one that the specification deserves."""
    a, b, _, d = row.formats
    setting = Setting(d.precision, min(a.precision, b.precision), 2 * row.k, d.name, {})
    truth, count = truth_of(row.accumulator, d.precision), 0
    for test, outcome in zip(suites.SUITES[name], suites.run(name, row).rows, strict=True):
        if outcome.verdict != NOT_EXPRESSIBLE and test.valid(setting, truth):
            assert outcome.verdict == test.expected(setting, truth), f"{row} {name}: {outcome}"
            count += 1
    return count


@pytest.mark.parametrize("name", suites.SUITES)
def test_verdicts_on_the_catalogue(name):
    assert sum(checked(row, name) for row in units()[::6]) > 12


@pytest.mark.slow
def test_verdicts_on_the_whole_catalogue():
    assert sum(checked(row, name) for row in units() for name in suites.SUITES) > 1300


def unit(extra: int, terms: int, rounding: str, alignment: str = "rz") -> tcm.MatrixEngine:
    """fp16 operands, fp32 results, neab extra bits."""
    return tcm.MatrixEngine(FusedDotAdd(terms, 23 + extra, rounding, alignment_rounding=alignment))


def test_fttn_misreads_units_without_extra_bits():
    """khattak-mikaitis, V-A: neab 0, N 8, round to nearest: extra bits right, size 1 and round to zero wrong."""
    table = suites.run("fttn", unit(0, 8, "rne"))
    assert table["one extra bit"].verdict == "none"
    assert table["accumulation width"].verdict == "1" and table["final rounding"].verdict == "rz"
    wrong = {row.name: truth for row, truth in suites.misread("fttn", unit(0, 8, "rne"))}
    assert wrong["accumulation width"] == "8" and wrong["final rounding"] == "nearest"


def test_fttn_misreads_the_size_of_units_that_round_up():
    """khattak-mikaitis, V-A: neab 1, N 8, round up: extra bit and rounding right, size said to be 16 or more."""
    table = suites.run("fttn", unit(1, 8, "ru"))
    assert table["one extra bit"].verdict == "at least one"
    assert table["accumulation width"].verdict == ">=16"


@pytest.mark.parametrize("extra", [0, 1])
def test_fasi_s_final_rounding_needs_two_extra_bits(extra):
    """With fewer bits the alignment cuts off what the rounding should see: round to nearest is read as round to zero."""
    assert suites.run("fasi", unit(extra, 8, "rne"))["final rounding"].verdict == "rz"
    assert suites.run("fasi", unit(2, 8, "rne"))["final rounding"].verdict == "nearest"


@pytest.mark.parametrize(
    ("engine", "read"), [(unit(2, 8, "rne"), "3"), (unit(1, 8, "ru"), "3"), (unit(1, 8, "rz", "ru"), "2")]
)
def test_gnft_s_ladder_misreads_roundings(engine, read):
    """F = 25 rounded to nearest, F = 24 rounded up, F = 24 aligned with rounding up."""
    assert suites.run("gnft", engine)["extra bits"].verdict == read


def test_fasi_s_order_test_takes_extra_bits_for_partial_sums():
    assert suites.run("fasi", unit(1, 8, "rz"))["largest first"].verdict == "partial sums or more bits"


def test_sticky_bits_and_normalised_products_are_seen():
    sticky = tcm.MatrixEngine(tcm.ParametricDotAdd(8, 25, sticky=True))
    assert suites.run("valpey", sticky)["truncation"].verdict == "round to zero"
    normalised = tcm.MatrixEngine(tcm.ParametricDotAdd(16, 24, normalised_products=True))
    assert suites.run("gnft", normalised)["unnormalised products"].verdict == "normalised"
    each = tcm.MatrixEngine(tcm.ParametricDotAdd(8, 23, normalise_each_add=True))
    assert suites.run("fasi", each)["normalisation in addition"].verdict == "each time"


def test_valpey_table_5_needs_the_corrected_operand():
    """b_1 = 1.998046875 * 2^7; with the printed 2^-7 nothing of the table follows."""
    for extra, terms in ((0, 4), (1, 8), (2, 16)):
        table = suites.run("valpey", unit(extra, terms, "rz"))
        assert table["Ootomo-Yokota worse than Markidis"].verdict == "as printed"
    a = [1.0009765625 * 2**-8, 1.326171875 * 2**-14, 2**-12, 2**-12]
    b = [1.998046875 * 2**-7, 1.4443359375 * 2**-7, 2**-12, 2**-12]
    engine = unit(0, 4, "rz")
    printed = engine.gemm([a], [[x] for x in b], [[2.0**-24]], input_rounding="rne")
    assert printed[0, 0] != 1 + 2.0**-23


def test_tables_print_and_are_data():
    table = suites.run("gnft", tcm.get_instruction("volta:mma.m8n8k4.f32.f16.f16.f32"))
    assert table["FMA size"].verdict == "4" and "FMA size" in str(table)
    assert json.loads(json.dumps(table.to_dict()))["suite"] == "gnft"
    with pytest.raises(KeyError, match="no test 'x'"):
        table["x"]


def test_what_has_no_verdict_is_refused():
    with pytest.raises(ValueError, match="no suite 'x'"):
        suites.run("x", unit(0, 4, "rz"))
    with pytest.raises(ValueError, match="integers"):
        suites.run("fasi", tcm.get_instruction("hopper:mma.m16n8k32.s32.s8.s8.s32"))
    with pytest.raises(ValueError, match="no fused unit"):
        suites.misread("fasi", tcm.get_instruction("cdna2:v_mfma_f32_32x32x8f16"))
