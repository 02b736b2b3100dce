"""Published suites: their verdicts equal the specification where they are valid, and where they are not is shown."""

import dataclasses
import json

import pytest

import tensorcore_models as tcm
from tensorcore_models.accumulators import FusedDotAdd
from tensorcore_models.probing import suites
from tensorcore_models.probing.suites.table import NOT_EXPRESSIBLE, truth_of


def arithmetics() -> list[tcm.Instruction]:
    """The catalogue's floating-point instructions, one for each arithmetic and formats."""
    found = {}
    for row in tcm.list_instructions():
        if row.published and row.a_format not in tcm.formats.INTEGER_FORMATS:
            key = row.accumulator, row.a_format, row.b_format, row.c_format, row.d_format, row.scale_format, row.k
            found.setdefault(key, row)
    return list(found.values())


def units() -> list[tcm.Instruction]:
    """Those of them that are fused units with one alignment."""
    return [row for row in arithmetics() if truth_of(row.accumulator, row.formats[3].precision)]


def checked(row, name: str) -> int:
    """Valid verdicts of a suite on a unit, each the one that the specification deserves."""
    valid = [x for x in suites.judged(name, row) if x.valid and x.row.verdict != NOT_EXPRESSIBLE]
    assert not [x for x in valid if x.wrong], row
    return len(valid)


@pytest.mark.full
@pytest.mark.parametrize("name", suites.SUITES)
def test_verdicts_on_the_catalogue(name):
    assert sum(checked(row, name) for row in units()[::12]) > 12


@pytest.mark.slow
def test_verdicts_on_the_whole_catalogue():
    assert sum(checked(row, name) for row in units() for name in suites.SUITES) > 3500


@pytest.mark.slow
def test_every_suite_reads_every_instruction():
    """Units of other algorithms have no verdicts to compare with, but a table."""
    others = [row for row in arithmetics() if row not in units()]
    assert len(others) > 50
    for row in others:
        for name, tests in suites.SUITES.items():
            assert len(suites.run(name, row).rows) == len(tests)


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
        assert table["Ootomo-Yokota worse than Markidis"].verdict == "as the table has it"
        assert table["Ootomo-Yokota worse than Markidis, as printed"].verdict == "neither"


VOLTA, TURING, AMPERE, HOPPER = (unit(*facts, "rz") for facts in ((0, 4), (1, 4), (1, 8), (2, 16)))


@pytest.mark.parametrize("engine", [VOLTA, TURING, AMPERE, HOPPER])
def test_valpey_s_inputs_on_its_units(engine):
    """What the page reports of Volta, Turing and Ampere, and so on Hopper."""
    table = suites.run("valpey", engine)
    assert [table[f"sum {i}"].verdict for i in range(1, 6)] == ["rne", "rne", "rne", "rz", "rne"]
    assert table["all sums"].verdict == "none of IEEE 754's"
    assert table["normalisation"].verdict == "at the end" and table["carry bits"].verdict == "three"
    assert table["exact product"].verdict == table["exact sum"].verdict == "exact"


def test_valpey_s_order_and_last_sum_depend_on_extra_bits():
    """The products join c alone on Volta only; the last sum, said to be rounded to zero, is so from two extra bits on."""
    rows = [suites.run("valpey", engine) for engine in (VOLTA, AMPERE, HOPPER)]
    assert [t["accumulation order"].verdict for t in rows] == ["c first", "products first", "products first"]
    assert [t["sum 6"].verdict for t in rows] == ["neither", "rd", "rz"]


def test_valpey_s_misprints_decide_nothing():
    """2^-4 for 2^14 gives another sum; hidden bits of subnormal numbers give none in fp16, and other sums in tf32.

    One of those other sums is what the page says of a unit that normalises each partial sum.
    """
    assert suites.run("valpey", VOLTA)["sum 1, as printed"].verdict == "neither"
    misprinted = ("exact product", "sum 4", "normalisation")
    for name in misprinted:
        assert suites.run("valpey", VOLTA)[f"{name}, as printed"].verdict == NOT_EXPRESSIBLE
        assert suites.run("valpey", VOLTA)[name].verdict != "neither"
    tf32 = tcm.MatrixEngine(FusedDotAdd(8, 25), a_format="tf32", b_format="tf32")
    read = [suites.run("valpey", tf32)[f"{name}, as printed"].verdict for name in misprinted]
    assert read == ["neither", "neither", "each time"]


def test_valpey_s_fp16_results():
    """The third is the same rounded to nearest and to zero."""
    spec = FusedDotAdd(8, 24, "rz")
    for rounding, expected in (("rne", ["rne", "rne", "rne"]), ("rz", ["ru", "rz", "rne"])):
        engine = tcm.MatrixEngine(dataclasses.replace(spec, output_rounding=rounding), c_format="fp16", d_format="fp16")
        table = suites.run("valpey", engine)
        assert [table[f"fp16 result {i}"].verdict for i in (1, 2, 3)] == expected
        assert table["exact sum, fp16"].verdict == "exact"


def test_fasi_s_subnormal_tests_see_flushing():
    """A unit that flushes its inputs flushes the c of the next operation, too: the result of the last."""
    engines = [
        tcm.MatrixEngine(tcm.ParametricDotAdd(8, 24, **flush), a_format="bf16", b_format="bf16")
        for flush in ({}, {"flush_inputs": True}, {"flush_outputs": True})
    ]
    names = ("subnormal operands", "subnormal addend", "subnormal result, product", "subnormal result, difference")
    verdicts = [[suites.run("fasi", engine)[name].verdict for name in names] for engine in engines]
    no, yes = "flushed", "supported"
    assert verdicts == [[yes] * 4, [no, no, no, "neither"], [no] * 4]


def test_fasi_s_subnormal_addend_is_lost_where_few_bits_are_kept():
    """c = 2^-149 is aligned at 2^-126: 13 fraction bits end before it, which is no flushing."""
    fp8 = tcm.get_instruction("hopper:wgmma.m64n8k32.f32.e4m3.e4m3")
    assert suites.run("fasi", fp8)["subnormal addend"].verdict == "flushed"


def test_fasi_s_test_of_hardware_sees_round_to_nearest():
    """3/4 unit: cut off by Volta, rounded up where a sum has two more bits and is rounded to nearest."""
    read = [suites.run("fasi", x)["subnormal numbers in hardware"].verdict for x in (VOLTA, unit(2, 8, "rne"))]
    assert read == ["in the unit", "rounded to nearest"]


def test_fasi_s_last_rounding_test_needs_no_extra_bits():
    """5 and 3/4 unit: carries make room for what 2 and 3/4 unit lose at the alignment."""
    for rounding, name in (("rz", "rz"), ("rne", "nearest"), ("ru", "ru"), ("rd", "rd")):
        assert suites.run("fasi", unit(0, 8, rounding))["rounding after carries"].verdict == name


def test_gnft_counts_one_carry_less_than_there_are():
    """It finds 3 for 8 products; products of full significands and c need 4 (khattak-mikaitis, IV-A2)."""
    assert suites.run("gnft", AMPERE)["carry bits"].verdict == "3"
    narrow = tcm.MatrixEngine(tcm.ParametricDotAdd(8, 24, integer_bits=3))
    assert suites.run("gnft", narrow)["carry bits"].verdict in ("1", "2")


def test_gnft_s_normalisation_test_takes_a_guarded_serial_adder_for_delayed():
    serial = [tcm.MatrixEngine(tcm.ParametricDotAdd(8, f, normalise_each_add=True)) for f in (23, 24)]
    assert [suites.run("gnft", engine)["normalisation"].verdict for engine in serial] == ["each time", "at the end"]


@pytest.mark.full
def test_khattak_s_tests_of_single_units():
    """fp8 on Ada keeps 13 bits and adds c first; Hopper's mma.sync interleaves; fp64 adds one by one."""
    ada = suites.run("gnft", tcm.get_instruction("ada:mma.m16n8k32.f32.e4m3.e4m3.f32"))
    assert ada["fraction bits"].verdict == "13" and ada["place of c"].verdict == "early"
    mates = [k for k in range(32) if k // 2 % 2 == 0]
    hopper = suites.run("gnft", tcm.get_instruction("hopper:mma.m16n8k32.f32.e4m3.e4m3.f32"))
    assert hopper["interleaving"].verdict == "products " + ", ".join(map(str, mates))
    double = suites.run("gnft", tcm.get_instruction("ampere:mma.m8n8k4.f64.f64.f64.f64"))
    assert double["order of the sum"].verdict == "one by one, c first"


def test_fttn_s_monotonicity_needs_one_extra_bit():
    verdicts = [suites.run("fttn", unit(extra, 8, "rz"))["monotonicity"].verdict for extra in (0, 1, 2)]
    assert verdicts == ["no violation seen", "not monotonic", "no violation seen"]


# -- Hawkeye -------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "group", "precision", "floor"),
    [("ampere:mma.m16n8k16.f32.bf16.bf16.f32", "8 products and c", "24", "-132"),
     ("hopper:mma.m16n8k16.f32.bf16.bf16.f32", "16 products and c", "25", "-133")],
)  # fmt: skip
def test_hawkeye_s_table_of_architectures(name, group, precision, floor):
    """Its README: groups of 9 and 17 with c, 24 and 25 bits; its header: smallest exponents -132 and -133."""
    table = suites.run("hawkeye", tcm.get_instruction(name))
    found = [table[row].verdict for row in ("accumulation group", "internal precision", "minimal max exponent")]
    assert found == [group, precision, floor]
    assert table["shift rounding"].verdict == table["final rounding"].verdict == "towards zero"
    assert table["extended range"].verdict == "supported" and table["normalization overflow"].verdict == "no"


@pytest.mark.full
def test_hawkeye_on_hopper_s_fp8():
    """Its header for fp8: 33 addends, 14 bits of significand."""
    table = suites.run("hawkeye", tcm.get_instruction("hopper:wgmma.m64n8k32.f32.e4m3.e4m3"))
    names = ("accumulation group", "internal precision", "accumulator precision", "output precision")
    assert [table[name].verdict for name in names] == ["32 products and c", "13", "13", "14"]
    assert table["final rounding, two halves"].verdict == "towards zero"


@pytest.mark.full
@pytest.mark.parametrize(
    ("engine", "test", "read"),
    [
        (unit(0, 8, "rz"), "final rounding", "towards even"),
        (unit(1, 8, "rne"), "final rounding", "no candidate left"),
        (unit(1, 8, "ru"), "final rounding", "no candidate left"),
        (unit(1, 8, "rd"), "final rounding", "towards zero"),
        (unit(1, 8, "rz", "rna"), "shift rounding", "no candidate left"),
        (unit(1, 8, "rz", "ru"), "shift rounding", "no candidate left"),
        (unit(1, 8, "rz", "rd"), "shift rounding", "no candidate left"),
        (unit(2, 8, "rz"), "output precision", "25"),
    ],
)
def test_hawkeye_misreads(engine, test, read):
    assert suites.run("hawkeye", engine)[test].verdict == read
    assert test in {row.name for row, _ in suites.misread("hawkeye", engine)}


@pytest.mark.parametrize(("fraction_bits", "read"), [(24, "-125"), (25, "1")])
def test_hawkeye_s_floor_needs_results_rounded_to_zero(fraction_bits, read):
    """2^e less the alignment's unit is 2^e, rounded to nearest: always from F = R + 2 on, before that as a subnormal number."""
    spec = FusedDotAdd(8, fraction_bits, "rne", exponent_floor=-132)
    engine = tcm.MatrixEngine(spec, a_format="bf16", b_format="bf16")
    assert suites.run("hawkeye", engine)["minimal max exponent"].verdict == read


@pytest.mark.full
def test_hawkeye_s_runs_miss_interleaved_groups():
    """Every subset of few addends shows even and odd products apart; runs of many do not."""
    few = tcm.MatrixEngine(tcm.InterleavedDotAdd(FusedDotAdd(2, 24), run=1))
    assert suites.run("hawkeye", few)["accumulation group"].verdict == "2 products, c at the end"
    many = tcm.get_instruction("hopper:mma.m16n8k32.f32.e4m3.e4m3.f32")
    assert suites.run("hawkeye", many)["accumulation group"].verdict == "32 products, c at the end"


def test_tables_print_and_are_data():
    table = suites.run("gnft", tcm.get_instruction("volta:mma.m8n8k4.f32.f16.f16.f32"))
    assert table["FMA size"].verdict == "4" and "FMA size" in str(table)
    assert json.loads(json.dumps(table.to_dict()))["suite"] == "gnft"
    with pytest.raises(KeyError, match="no test 'x'"):
        table["x"]


def test_what_has_no_verdict_is_refused():
    with pytest.raises(ValueError, match="unknown suite 'x'"):
        suites.run("x", unit(0, 4, "rz"))
    with pytest.raises(ValueError, match="integers"):
        suites.run("fasi", tcm.get_instruction("hopper:mma.m16n8k32.s32.s8.s8.s32"))
    with pytest.raises(ValueError, match="not a fused unit"):
        suites.misread("fasi", tcm.get_instruction("cdna2:v_mfma_f32_32x32x8f16"))


def test_fasi_s_tests_misread_fp64_tensor_cores():
    """One IEEE multiply-add at a time, to nearest: tests of fused operations read a rounding to zero and carries."""
    wrong = {
        row.name: (row.verdict, truth) for row, truth in suites.misread("fasi", tcm.get_instruction("a100", "DMMA.884"))
    }
    assert wrong["rounding to the smallest number"] == ("rz", "nearest")
    assert wrong["third carry bit"] == ("three", "none: one product at a time")
    assert "final rounding" not in wrong and "rounding after carries" not in wrong
    down = suites.run("fasi", tcm.get_instruction("a100", "DMMA.884.RM"))
    assert down["rounding after carries"].verdict == "rd"


def test_finding_6_on_t4_and_a100():
    """A larger addend gives a smaller sum there, too; the paper's four products show it without extra bits only."""
    for name in ("turing:mma.m16n8k8.f32.f16.f16.f32", "ampere:mma.m16n8k16.f32.f16.f16.f32"):
        table = suites.run("fasi", tcm.get_instruction(name))
        assert table["monotonicity"].verdict == "no violation seen"
        assert table["monotonicity, one extra bit"].verdict == "not monotonic"
    assert (
        suites.run("fasi", tcm.get_instruction("volta:mma.m8n8k4.f32.f16.f16.f32"))["monotonicity"].verdict
        == "not monotonic"
    )
