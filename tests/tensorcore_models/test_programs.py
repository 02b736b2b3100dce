"""Programs: recorded passes on plain integers and on the machine of lanes, bit for bit beside the reference."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from random_encodings import STYLES, encodings
from twins import Unit, assert_same, operands

import tensorcore_models as tcm
from tensorcore_models import kernels, reference
from tensorcore_models.accumulators import (
    Accumulator,
    AlignedSum,
    ConvertedDotAdd,
    FidelityPhases,
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupDotFusedSum,
    GroupFusedDotRoundDownAdd,
    InterleavedDotAdd,
    LanedFMA,
    PairRoundOddSum,
    ParametricDotAdd,
    SequentialFMA,
    WidenedDotAdd,
)
from tensorcore_models.arithmetic import operations, program
from tensorcore_models.arithmetic.program import program_of
from tensorcore_models.arithmetic.recorder import Unrecordable
from tensorcore_models.formats import get_format
from tensorcore_models.formats.exact_rounding import ROUNDINGS
from tensorcore_models.kernels import recorded
from tensorcore_models.kernels.programs import TooWide
from tensorcore_models.kernels.recorded import RecordedKernel
from tensorcore_models.machine import instruction_sets as isa
from tensorcore_models.reference.matrix import dot_bits

DETERMINISTIC = [rounding for rounding in ROUNDINGS if rounding != "sr"]
HALF = {"c_format": "fp16", "d_format": "fp16"}


# -- on plain integers ---------------------------------------------------------------------------------------------------
def published() -> list:
    """One row of the catalogue for every accumulator of floating-point numbers whose arithmetic is public."""
    rows = {row.accumulator: row for row in reversed(tcm.list_instructions()) if row.published}
    return [row for spec, row in rows.items() if not spec.takes_integers and row.formats[0].has_fields]


PUBLISHED = published()
SHORT = list({type(row.accumulator): row for row in PUBLISHED if row.accumulator.terms_per_step <= 8}.values())


@pytest.fixture(autouse=True)
def ranges_hold(monkeypatch):
    """Every value on plain integers is within the range that the recording says."""

    def checked(line, inputs):
        values = run(line, inputs)
        for x, value in zip(line, values, strict=True):
            assert x.low <= value <= x.high, (x, value)
        return values

    run = program.run
    monkeypatch.setattr(program, "run", checked)


def assert_program(row, seed: int) -> None:
    """The Programs of a pass and its integers agree; a regular one says what it leaves out."""
    spec, formats, count = row.accumulator, row.formats, row.accumulator.terms_per_step
    scale = get_format(row.scale_format) if row.scale_format else None
    whole, regular = (program_of(spec, formats, count, scale, 0, regular=regular) for regular in (False, True))
    rng, regularly = np.random.default_rng(seed), 0
    for style in STYLES:
        a, b = ([int(x) for x in encodings(rng, fmt, (count,), style)] for fmt in formats[:2])
        c = int(encodings(rng, formats[2], (1,), style)[0])
        coded, scales = {}, ((), ())
        if scale is not None:
            given = [rng.integers(0, 1 << scale.bits, -(-count // row.block_size)).tolist() for _ in "ab"]
            coded = {"scale_a": given[0], "scale_b": given[1], "scale_format": scale, "block_size": row.block_size}
            scales = tuple([side[k // row.block_size] for k in range(count)] for side in given)
        expected = dot_bits(spec, a, b, c, formats, **coded)
        assert whole.run(a, b, c, scales) == expected, (row.name, style, a, b, c)
        assert regular.run(a, b, c, scales) in (None, expected), (row.name, style, a, b, c)
        regularly += regular.run(a, b, c, scales) is not None
    assert regularly >= 3


@pytest.mark.parametrize("row", SHORT, ids=lambda row: f"{row.arch} {row.name}")
def test_programs_of_published_units(row):
    assert_program(row, 1)


@pytest.mark.full
@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row.arch} {row.name}")
def test_programs_of_all_published_units(row):
    for seed in range(4):
        assert_program(row, seed)


@dataclass(frozen=True)
class Elsewhere(AlignedSum):
    """Aligns to an even exponent, that of products alone whose operands have a bit in their last two places; or of `all`."""

    terms: int = 2
    all: bool = False

    left_out: ClassVar = {"kernels": "made up for a test"}
    step_field: ClassVar = "terms"

    def pass_bits(self, p):
        z, fmt = p.arithmetic, p.formats[3]
        x, y = p.x, p.y
        if not self.all:
            x, y = ([n._replace(part=z.no(z.same(n.significand & 3, 0))) for n in side] for side in (x, y))
        numbers = [p.addend, *(z.multiply(u, v) for u, v in zip(x, y, strict=True))]

        def finite():
            largest = z.largest_exponent(numbers)
            even = largest + (largest & 1)
            return z.finish(*z.summed([z.cut(n, even, 20, "rz") for n in numbers], even, 20), fmt, self, "rz")

        return z.unless_special(numbers, finite, fmt, self)


@pytest.mark.parametrize("spec", [Elsewhere(), Elsewhere(all=True)])
def test_numbers_that_take_no_part_are_added_all_the_same(spec):
    unit, rng = Unit(spec, "fp16", "fp16"), np.random.default_rng(6)
    formats, whole = unit.formats, [program_of(spec, unit.formats, 2, regular=regular) for regular in (False, True)]
    for style in STYLES * 4:
        a, b = ([int(x) for x in encodings(rng, fmt, (2,), style)] for fmt in formats[:2])
        c = int(encodings(rng, formats[2], (1,), style)[0])
        expected = dot_bits(spec, a, b, c, formats)
        assert whole[0].run(a, b, c) == expected and whole[1].run(a, b, c) in (None, expected), (style, a, b, c)
    assert_machine(unit, rng, ((2, 9), (1, 1)))


def test_equal_arithmetic_is_one_program():
    formats = tuple(map(get_format, ("fp16", "fp16", "fp32", "fp32")))
    one = program_of(FusedDotAdd(4, 23), formats, 4)
    same = program_of(FusedDotAdd(4, 23).parametric(), formats, 4)
    assert one == same and hash(one) == hash(same)
    for other in (FusedDotAdd(4, 24), FusedDotAdd(4, 23, nan="quiet"), FusedDotAdd(4, 23, output_rounding="rne")):
        assert program_of(other, formats, 4, regular=False) != program_of(FusedDotAdd(4, 23), formats, 4, regular=False)
    # FP16 has no exponents below a floor of -40, products included: the field changes nothing.
    with_floor = FusedDotAdd(4, 23, exponent_floor=-150)
    assert program_of(with_floor, formats, 4) == program_of(FusedDotAdd(4, 23), formats, 4)


# -- what cannot be recorded ---------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Asking(Accumulator):
    """Asks what no Program can answer."""

    what: str = "if"

    left_out: ClassVar = {"kernels": "made up for a test"}

    def pass_bits(self, p):
        z = p.arithmetic
        sign = z.natural(p.a[0]) >> 15
        if self.what == "if":
            return 1 if sign else 0
        if self.what == "==":
            return int(sign == 1)
        if self.what == "index":
            return p.index % 2
        return z.natural(p.c) + p.element


@pytest.mark.parametrize(
    ("what", "reason"),
    [("if", "use select"), ("==", "use same"), ("index", "its number in the chain"), ("element", "the result element")],
)
def test_what_depends_on_data_otherwise_is_refused(what, reason):
    unit = Unit(Asking(what), "fp16", "fp16")
    with pytest.raises(Unrecordable, match=reason):
        program_of(unit.accumulator, unit.formats, 1)
    assert kernels.kernel_name(unit).startswith("reference (Asking has no lowering; Asking.pass_bits is not recorded: ")
    rng = np.random.default_rng(1)
    a, b, c = (
        encodings(rng, unit.formats[0], (96, 1), "bits"),
        np.zeros((1, 96), np.uint16),
        np.zeros((96, 96), np.uint32),
    )
    assert np.array_equal(kernels.matrix_bits(unit, a, b, c), reference.mma_bits(unit, a, b, c))


@pytest.mark.parametrize(
    ("unit", "error", "reason"),
    [
        (Unit(FusedDotAdd(4, 20, output_rounding="sr"), "fp16", "fp16"), Unrecordable, "draws for each element"),
        (Unit(ParametricDotAdd(4, alignment="pairwise"), "fp16", "fp16"), Unrecordable, "products that take part"),
        (Unit(ParametricDotAdd(4, None), "bf16", "bf16"), TooWide, "expected at most 62"),
        (Unit(FusedDotAdd(4, 20), "fp16", "fp16", "fp64", "fp64"), TooWide, "numbers have 6"),
        (Unit(LanedFMA(terms=512), "bf16", "bf16"), Unrecordable, "passes have 512 products"),
    ],
)
def test_what_the_machine_does_not_hold(unit, error, reason):
    with pytest.raises(error, match=reason):
        RecordedKernel(kernels.lowered(unit))


# -- on the machine ------------------------------------------------------------------------------------------------------
UNITS = {
    "fused": Unit(FusedDotAdd(4, 23), "fp16", "fp16"),
    "fused, fp16": Unit(FusedDotAdd(8, 24, output_rounding="rne"), "fp16", "fp16", **HALF),
    "fused, fp8": Unit(FusedDotAdd(32, 13, output_fraction_bits=13), "e4m3fn", "e5m2"),
    "fused, c of another format": Unit(
        FusedDotAdd(5, 25, nan="quiet", zero_operand="minus126", zero_c="minus126"), "fp16", "bf16", "fp16"
    ),
    "fused, floor": Unit(FusedDotAdd(6, 12, exponent_floor=2, negative_underflow="negative"), "fp16", "fp16"),
    "block-scaled": Unit(FusedDotAdd(32, 25), "e4m3fn", "e2m1", scale_format="ue8m0", block_size=32),
    "scales with zero": Unit(FusedDotAdd(16, 25), "e5m2", "e2m1", scale_format="ue4m3", block_size=5),
    "products normalised": Unit(FusedDotAdd(7, 25, normalised_products=True), "bf16", "bf16"),
    "parts of significands": Unit(ParametricDotAdd(2, 26, significand_parts=(8, 8, 8)), "fp32", "fp32"),
    "odd and even": Unit(ParametricDotAdd(5, 24, alignment="odd_even", alignment_rounding="rna"), "fp16", "fp16"),
    "one after the other": Unit(ParametricDotAdd(4, 20, normalise_each_add=True, sticky=True), "fp16", "fp16"),
    "late c, wrapped": Unit(ParametricDotAdd(4, 24, c_position="late", integer_bits=2), "fp16", "fp16"),
    "signs of zeros": Unit(ParametricDotAdd(4, 24, zero_sign="majority", padding=1, flush_inputs=True), "fp16", "fp16"),
    "products overflow": Unit(ParametricDotAdd(3, 24, product_overflow_exponent=12), "fp16", "fp16"),
    "rounding down": Unit(FusedDotRoundDownAdd(8), "fp16", "bf16"),
    "groups rounding down": Unit(GroupFusedDotRoundDownAdd(16), "e4m3fnuz", "e5m2fnuz"),
    "groups with scales": Unit(GroupDotFusedSum(), "e2m1", "e2m1", scale_format="ue4m3", block_size=16),
    "interleaved": Unit(InterleavedDotAdd(FusedDotAdd(16, 25)), "e4m3fn", "e4m3fn"),
    "widened": Unit(WidenedDotAdd(FusedDotAdd(8, 24)), "fp16", "fp16", **HALF),
    "converted": Unit(ConvertedDotAdd(FusedDotAdd(4, 25), "bf16", flush=True), "fp16", "fp32"),
    "multiply-adds": Unit(SequentialFMA("rz"), "fp16", "fp16", **HALF),
    "multiply-adds, flushed": Unit(SequentialFMA(flush_inputs=True, flush_outputs=True, nan="x86"), "bf16", "bf16"),
    "lanes": Unit(LanedFMA(2, terms=4), "bf16", "bf16"),
    "pairs to odd": Unit(PairRoundOddSum(), "bf16", "bf16"),
    "phases": Unit(FidelityPhases((0, 2), 16), "bf16", "bf16"),
}  # fmt: skip


def assert_machine(unit, rng: np.random.Generator, shapes, styles=STYLES) -> None:
    """Compare the machine of every instruction set with the reference."""
    kernel, step = RecordedKernel(kernels.lowered(unit)), unit.accumulator.terms_per_step
    for style in styles:
        m, n = shapes[int(rng.integers(len(shapes)))]
        args = operands(rng, unit, m, int(rng.choice([1, step, 2 * step + 1])), n, style)
        expected = reference.mma_bits(unit, *args)
        for level in isa.available_isas():
            isa.set_isa(level)
            try:
                assert_same(unit, kernel.run(*args), expected, args, f"{style} on {level}")
            finally:
                isa.set_isa(None)


@pytest.mark.parametrize("name", UNITS)
def test_units_on_the_machine(name):
    assert_machine(UNITS[name], np.random.default_rng(2), ((1, 1), (2, 3), (1, 9)), STYLES[::2])


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", UNITS)
def test_units_on_the_machine_at_length(name, seed):
    assert_machine(UNITS[name], np.random.default_rng(seed), ((1, 1), (9, 3), (2, 17), (1, 65)))


@pytest.mark.parametrize("rounding", DETERMINISTIC)
def test_alignments_and_results_are_rounded(rounding):
    spec = FusedDotAdd(3, 12, alignment_rounding=rounding, output_rounding=rounding)
    assert_machine(Unit(spec, "fp16", "bf16"), np.random.default_rng(3), ((2, 9),))


@dataclass(frozen=True)
class Shifting(Accumulator):
    """Shifts a number that a makes by b places, rounded, with the sign of c: the machine's edges without an alignment."""

    rounding: str = "rz"
    left: int = 45

    left_out: ClassVar = {"kernels": "made up for a test"}

    def pass_bits(self, p):
        z = p.arithmetic
        a, places = z.natural(p.a[0]), z.natural(p.b[0])
        negative = z.same(z.natural(p.c) & 1, 1)
        return operations.shifted_right((a << self.left) + a, places, self.rounding, negative) & 0xFFFFFFFF


@pytest.mark.parametrize("rounding", DETERMINISTIC)
def test_shifts_by_every_number_of_places(rounding):
    a = np.array([[0], [1], [2], [3], [0x4000], [0x7FFF], [0x8000], [0x8001], [0xFFFF]], np.uint16)
    b = np.arange(256, dtype=np.uint8)[None]
    c = np.arange(a.size * b.size, dtype=np.uint32).reshape(a.size, b.size)
    for left in (16, 45):
        unit = Unit(Shifting(rounding, left), "fp16", "e4m3fn")
        kernel = RecordedKernel(kernels.lowered(unit))
        expected = reference.mma_bits(unit, a, b, c)
        for level in isa.available_isas():
            isa.set_isa(level)
            try:
                assert np.array_equal(kernel.run(a, b, c), expected), (rounding, left, level)
            finally:
                isa.set_isa(None)


def test_sums_that_become_infinite_on_the_way():
    """The regular Program is left in the middle of a chain, in some lanes, and goes on with what it had."""
    unit = UNITS["fused"]
    a = np.full((10, 12), 0x7BFF, np.uint16)  # the largest FP16 number
    a[::2, 4:] = 0xFBFF
    b = np.full((12, 70), 0x7BFF, np.uint16)
    b[:, ::3] = 0x3C00
    c = np.zeros((10, 70), np.uint32)
    c[3:5, 5:9] = 0x7F7FFFFF
    c[4, 7], c[9, 69] = 0xFF800000, 0x7FC00001
    expected = reference.mma_bits(unit, a, b, c)
    assert np.array_equal(RecordedKernel(kernels.lowered(unit)).run(a, b, c), expected)


def test_slices_and_threads_change_no_bits(monkeypatch):
    unit, rng = UNITS["fused, c of another format"], np.random.default_rng(4)
    args = operands(rng, unit, 11, 43, 130, "bits")
    kernel = RecordedKernel(kernels.lowered(unit))
    whole = kernel.run(*args)
    assert np.array_equal(
        whole[3:5, 60:70], reference.mma_bits(unit, args[0][3:5], args[1][:, 60:70], args[2][3:5, 60:70])
    )
    for m, n in ((0, 3), (3, 0), (0, 0)):
        empty = kernel.run(args[0][:m], args[1][:, :n], args[2][:m, :n])
        assert empty.shape == (m, n) and empty.dtype == whole.dtype
    monkeypatch.setattr(recorded, "_SLICE", 64 * 141 * 5 * 2)
    monkeypatch.setattr(recorded, "threads_for", lambda size: 3)
    assert np.array_equal(kernel.run(*args), whole)


# -- where it is chosen --------------------------------------------------------------------------------------------------
SIGNED_ZEROS = Unit(ParametricDotAdd(16, 25, zero_sign="ieee"), "e4m3fn", "e2m1", scale_format="ue8m0", block_size=16)


def test_accumulators_without_a_plan_run_as_programs():
    unit = SIGNED_ZEROS
    assert (
        kernels.kernel_name(unit, 4, 4, 4) == "reference (the zero_sign of block-scaled sums; fewer than 8192 products)"
    )
    assert kernels.kernel_name(unit) == "program (the zero_sign of block-scaled sums)"
    rng = np.random.default_rng(5)
    for style in ("specials", "clustered", "cancelling"):
        a, b, c, scale_a, scale_b = operands(rng, unit, 12, 40, 33, style)
        d = kernels.matrix_bits(unit, a, b, c, scale_a, scale_b)
        assert np.array_equal(d[:2], reference.mma_bits(unit, a[:2], b, c[:2], scale_a[:2], scale_b))
    both = [np.stack([x, x]) for x in (a, b, c, scale_a, scale_b)]
    assert np.array_equal(kernels.batch_bits(unit, *both), [d, d])


def test_a_unit_that_is_asked_for_the_reference_gets_it():
    try:
        kernels.set_kernel("reference")
        assert kernels.kernel_name(replace(UNITS["fused"])) == "reference"
    finally:
        kernels.set_kernel(None)
