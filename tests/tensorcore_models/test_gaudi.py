"""Gaudi, Gaudi 2 and Gaudi 3 against the vectors of their vendor's functional model, bit for bit."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models import arithmetic, kernels, reference
from tensorcore_models.accumulators import ConvertedDotAdd, FusedDotAdd
from tensorcore_models.engines.rollup import Rollup
from tensorcore_models.families.converted import integers
from tensorcore_models.libraries.gaudi import convert_results
from tensorcore_models.probing.random_operands import KINDS, operands

sys.path.append(str(Path(__file__).parents[1] / "support"))
from gaudi_vectors import computed, read

FILES = (
    "gaudi_bf16", "gaudi_fp16", "gaudi_fp32", "gaudi2_bf16", "gaudi2_fp16", "gaudi2_fp32", "gaudi2_fp32ieee", "gaudi2_fp8_143",
    "gaudi2_fp8_152", "gaudi2_tf32", "gaudi3_bf16", "gaudi3_fp16", "gaudi3_fp32", "gaudi3_fp8_143", "gaudi3_fp8_143_152",
    "gaudi3_fp8_152", "gaudi3_tf32", "gaudi3_ufp16_fp16",
)  # fmt: skip
BF16, ONE = 0x3F80, 0x3F800000


@pytest.fixture
def kernel():
    yield kernels.set_kernel
    kernels.set_kernel(None)


@pytest.mark.parametrize("name", FILES)
def test_the_model_s_bits(shared, name):
    for rows in read(shared / "model_vectors" / "gaudi" / f"{name}.npz", every=7):
        assert np.array_equal(computed(rows), rows.d), rows.label


@pytest.mark.full
@pytest.mark.parametrize("layer", ["auto", "generic"])
@pytest.mark.parametrize("name", FILES)
def test_all_of_the_model_s_bits(shared, name, layer, kernel):
    kernel(layer)
    for rows in read(shared / "model_vectors" / "gaudi" / f"{name}.npz"):
        assert np.array_equal(computed(rows), rows.d), rows.label


@pytest.mark.parametrize("name", FILES)
def test_plain_integers_give_them_too(shared, name, kernel):
    kernel("reference")
    for rows in read(shared / "model_vectors" / "gaudi" / f"{name}.npz", every=400):
        if rows.c is not None:
            assert np.array_equal(computed(rows), rows.d), rows.label


#: name, products as raw bits, c, results of gaudi, gaudi2 and gaudi3 (facts of the model: what tells the chips apart).
WITNESSES = (
    ("the product is rounded or truncated", [(0x39C0, 0x3980)], ONE, (ONE + 1, ONE + 1, ONE)),
    ("a small term is dropped", [(0xB900, 0x3900)], ONE, (ONE, ONE, ONE)),
    # on Gaudi two of them are lost in the accumulator that holds c, the others meet in the three other ones
    ("eight small terms", [(0x3980, 0x3900)] * 8, ONE, (ONE + 1, ONE + 2, ONE)),
    ("what cancels leaves 46 or 24 bits", [(0x4700, 0x4700), (0xC700, 0x4700), (0x3B80, 0x3C00)], 0,
     (0x38000000, 0x38000000, 0)),
    ("a subnormal c", [], 1, (0, 0, 1)),
    ("a subnormal result", [(0x1F00, 0x1F00)], 0, (0, 0, 0x80000)),
    ("a subnormal operand", [(0x0008, 0x4980)], 0, (0, 0, 0x8800000)),
    ("infinity times a subnormal operand", [(0x7F80, 0x0001)], 0, (0x7FFFFFFF, 0x7FFFFFFF, 0x7F800000)),
    ("a result below the normal numbers", [(0x9A00, 0x1A00)], 0x800000, (0, 0x800000, 0x7FFFFF)),
    ("overflow", [(0x7300, BF16)], 0x7F7FFFFF, (0x7F800000, 0x7F800000, 0x7F7FFFFF)),
    ("the lowest alignment", [(0x1A80, 0x1A00), (0x9780, 0x1900)], 0, (0, 0, 1)),
)  # fmt: skip


@pytest.mark.parametrize(("products", "c", "expected"), [w[1:] for w in WITNESSES], ids=[w[0] for w in WITNESSES])
def test_what_tells_the_chips_apart(products, c, expected):
    for arch, d in zip(("gaudi", "gaudi2", "gaudi3"), expected, strict=True):
        row = tcm.default_instruction(arch, "bf16")
        a, b = (np.zeros((1, 8), np.uint16) for _ in "ab")
        for k, (x, y) in enumerate(products):
            a[0, k], b[0, k] = x, y
        found = row.gemm_bits(a, b.T, np.array([[c]], np.uint32))[0, 0]
        assert found == d, (arch, hex(found))


def test_fast_path_and_circuit_of_gaudi2():
    row = tcm.get_instruction("gaudi2", "mme.k8.f32.bf16.bf16.f32")
    a = np.array([[0x3FC0, 0xBFC0, 0x3400, 0, 0, 0, 0, 0]], np.uint16)
    b = np.array([[0x3FC0, 0x3FC0, 0x3400, 0, 0, 0, 0, 0]], np.uint16).T
    assert row.gemm_bits(a, b)[0, 0] == 0
    assert row.with_rules(normalised_products=False, zero_sign="ieee").gemm_bits(a, b)[0, 0] == 0x28800000


def test_conversions_of_results(shared):
    modes = {0: "rne", 1: "rz", 2: "ru", 3: "rd", 4: "sr", 6: "rna"}
    names = {"bf16": "bf16", "fp16": "fp16", "fp8_143": "e4m3", "fp8_152": "e5m2"}
    with np.load(shared / "model_vectors" / "gaudi" / "convert.npz") as file:
        settings = json.loads(bytes(file["meta"]))
        x, d, draws, which = file["x"], file["d"], file["lfsr"], file["cfg"]
    assert len(settings) == 180
    for number, s in enumerate(settings):
        rows = which == number
        found = convert_results(
            x[rows], names[s["type"]], rounding=modes[s["rm"]], bias=s["bias"], specials=("ieee", "finite", "fn")[s["infnan"]],
            random=draws[rows] if s["rm"] == 4 else None, clip=bool(s["clip"]), clip_infinities=bool(s["clipinf"]),
            flush=bool(s["ftz"]),
        )  # fmt: skip
        assert np.array_equal(found, d[rows]), s


def test_conversions_say_what_there_is():
    x = np.zeros(1, np.uint32)
    for wrong, message in (
        ({"target": "fp32"}, "target is fp32, expected a format of Gaudi's conversions: bf16, fp16, e4m3, e5m2"),
        ({"target": "bf16", "bias": 3}, "bias is 3, expected 127, the only bias of bf16"),
        ({"target": "fp16", "specials": "fn"}, "expected 'ieee', 'finite' for fp16"),
        ({"target": "e4m3", "rounding": "ro"}, "expected one of Gaudi's: rne"),
        ({"target": "e4m3", "rounding": "sr"}, "got rounding 'sr' and no random numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            convert_results(x, **wrong)


@pytest.mark.parametrize(
    ("arch", "name", "rules", "message"),
    [
        ("gaudi2", "mme.k16.f32.e4m3.e4m3.f32", {"bias_a": 8}, "bias_a is 8, the unit has 3, 7, 11, 15"),
        ("gaudi2", "mme.k16.f32.e5m2.e5m2.f32", {"bias_b": 14}, "bias_b is 14, the unit has 15"),
        ("gaudi3", "mme.k8.f32.e4m3.e4m3.f32", {"bias_a": 63}, "bias_a is 63, the unit has 0 to 62"),
        ("gaudi3", "mme.k2.f32.f16.f16.f32", {"specials_a": "fn"}, "the unit has 'own', 'ieee', 'finite'"),
        ("gaudi3", "mme.k8.f32.e4m3.e4m3.f32", {"bias": 3}, "has no edge rule 'bias'; it has bias_a, bias_b"),
        ("gaudi", "mme.k1.f32.bf16.bf16.f32", {"flush_adds": 1}, "expected True or False"),
    ],
)
def test_rules_that_a_chip_lacks(arch, name, rules, message):
    with pytest.raises((ValueError, TypeError), match=message):
        tcm.get_instruction(arch, name).with_rules(**rules)


def test_operand_types_that_a_chip_lacks():
    with pytest.raises(
        ValueError,
        match="gaudi has no instruction for e4m3 x e4m3 to fp32: choose one of bf16 to fp32, fp16 to fp32, fp32 to fp32",
    ):
        tcm.default_instruction("gaudi", tcm.get_format("e4m3"))


def test_values_are_read_with_the_bias():
    row = tcm.get_instruction("gaudi3", "mme.k8.f32.e4m3.e4m3.f32")
    values = np.array([[1.5, 0.25, -2.0, 0.375, 1.0, 0.5, 3.0, -0.75]])
    plain, moved = row.gemm(values, values.T), row.with_rules(bias_a=11, bias_b=3).gemm(values, values.T)
    assert plain == moved == (values**2).sum()


def test_a_gemm_of_gaudi_takes_turns():
    """1 and four small terms: they meet in three other accumulators only; fma by fma each would be lost but the first's."""
    row = tcm.get_instruction("gaudi", "mme.k1.f32.f32.f32.f32")
    a = np.float32([[1, 2.0**-25, 2.0**-25, 2.0**-25, 0, 2.0**-25, 2.0**-25, 2.0**-25]])
    b = np.ones((8, 1), np.float32)
    assert row.gemm(a, b)[0, 0] == np.float32(1 + 2.0**-23)
    assert tcm.MatrixEngine(row.accumulator, a_format="fp32").gemm(a, b)[0, 0] == 1
    with pytest.raises(ValueError, match="accumulators is 3, expected a power of two"):
        Rollup(3)


@pytest.mark.parametrize("name", ["e2m1", "e3m2", "e4m3", "e5m2", "e4m3fn", "fp16", "ufp16", "bf16", "tf32", "fp32"])
@pytest.mark.parametrize("via", ["fp16", "bf16", "tf32", "fp32"])
def test_arrays_convert_as_numbers_do(name, via):
    fmt, target = tcm.get_format(name), tcm.get_format(via)
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 1 << fmt.bits, 400, dtype=np.uint64).astype(fmt.container)
    codes[:40] = np.arange(40) % (1 << fmt.bits)
    if fmt.bits == 32:
        codes[40:80] = np.arange(0x7F7FFFF0, 0x7F7FFFF0 + 40)
        codes[80:120] = np.arange(0x7FFFF0, 0x7FFFF0 + 40)
    if not integers.converts(fmt, target):
        with pytest.raises(ValueError, match="cannot take all numbers of"):
            tcm.MatrixEngine(ConvertedDotAdd(FusedDotAdd(), via), a_format=name)
        return
    for flush in (False, True):
        given = [arithmetic.converted(integers.full_width(fmt), int(x), target, FusedDotAdd()) for x in codes]
        given = [arithmetic.without_subnormals(x, target) for x in given] if flush else given
        found = integers.convert_array(codes, fmt, target, flush)
        nan = np.isnan(tcm.decode(codes, fmt))
        assert np.array_equal(found[~nan], np.array(given, found.dtype)[~nan])
        assert np.isnan(tcm.decode(found[nan], target)).all()


def test_kernels_and_integers_agree_on_every_type(kernel):
    rng = np.random.default_rng(5)
    for row in (row for arch in ("gaudi", "gaudi2", "gaudi3") for row in tcm.list_instructions(arch)):
        k = 2 * row.k
        a, b = (
            rng.integers(0, 1 << fmt.bits, shape, dtype=np.uint64).astype(fmt.container)
            for fmt, shape in zip(row.formats[:2], ((2, k), (k, 3)), strict=True)
        )
        c = rng.integers(0, 1 << 32, (2, 3), dtype=np.uint64).astype(np.uint32)
        assert np.array_equal(kernels.matrix_bits(row, a, b, c), reference.mma_bits(row, a, b, c)), row


@pytest.mark.parametrize("rules", [{}, {"normalised_products": False, "zero_sign": "ieee"}])
@pytest.mark.parametrize("isa", tcm.available_isas())
def test_lanes_and_generic_kernel_agree(isa, rules, kernel):
    """Sums of bf16 with exponents that are near, at the end of 46 bits, far apart, subnormal and overflowing; with zeros."""
    engine = tcm.get_instruction("gaudi2", "mme.k8.f32.bf16.bf16.f32").with_rules(**rules)
    rng = np.random.default_rng(8)
    tcm.set_isa(isa)
    try:
        for low, high in ((120, 134), (105, 150), (60, 190), (0, 4), (240, 254)):
            a, b = (
                (rng.integers(0, 2, s) << 15 | rng.integers(low, high, s) << 7 | rng.integers(0, 128, s)).astype(
                    np.uint16
                )
                for s in ((20, 27), (27, 40))
            )
            a[rng.random(a.shape) < 0.1] &= 0x8000
            c = (rng.integers(0, 2, (20, 40)) << 31 | rng.integers(low, high, (20, 40)) << 23).astype(np.uint32)
            kernel("auto")
            assert kernels.kernel_name(engine, 20, 40, 27) == "lanes of 64 bits"
            fast = kernels.matrix_bits(engine, a, b, c)
            kernel("generic")
            assert np.array_equal(fast, kernels.matrix_bits(engine, a, b, c)), (low, high)
    finally:
        tcm.set_isa(None)


@pytest.mark.parametrize("isa", tcm.available_isas())
def test_fp8_of_gaudi3_needs_no_conversion(isa, kernel):
    """Every encoding of either type, under biases that lanes of 32 bits hold and others."""
    rng = np.random.default_rng(2)
    tcm.set_isa(isa)
    try:
        for types, rules, lanes in (
            (("e4m3", "e5m2"), {}, 32),
            (("e5m2", "e4m3"), {"specials_a": "finite"}, 64),
            (("e4m3", "e4m3"), {"bias_a": 9, "bias_b": 3}, 32),
            (("e5m2", "e5m2"), {"bias_a": 60}, 64),
        ):
            engine = tcm.get_instruction("gaudi3", f"mme.k8.f32.{types[0]}.{types[1]}.f32").with_rules(**rules)
            a, b = (rng.permuted(np.tile(np.arange(256, dtype=np.uint8), 4)).reshape(s) for s in ((32, 32), (32, 32)))
            a[:, ::2] &= 0x83 if types[0] == "e5m2" else 0x87  # subnormal numbers and zeros
            c = (rng.integers(90, 140, (32, 32)) << 23).astype(np.uint32)
            kernel("auto")
            assert kernels.kernel_name(engine, 32, 32, 32) == f"lanes of {lanes} bits", (types, rules)
            fast = kernels.matrix_bits(engine, a, b, c)
            kernel("generic")
            assert np.array_equal(fast, kernels.matrix_bits(engine, a, b, c)), (types, rules)
    finally:
        tcm.set_isa(None)


@pytest.mark.parametrize("layer", ["auto", "reference"])
@pytest.mark.parametrize(
    ("negative", "c", "fast", "circuit"),
    [(8, 1, 1, 1), (8, 0, 1, 0), (5, 0, 1, 0), (4, 1, 0, 0), (3, 1, 0, 0), (0, 1, 0, 0)],
)
def test_signs_of_zeros(negative, c, fast, circuit, layer, kernel):
    """Gaudi 2: most of eight zero products decide, a tie is +0; in the circuit all products and c do. A GEMM ends with + 0."""
    kernel(layer)
    row = tcm.get_instruction("gaudi2", "mme.k8.f32.bf16.bf16.f32")
    a = np.where(np.arange(8) < negative, 0x8000, 0).astype(np.uint16)[None]
    b, start = np.full((8, 1), 0x3F80, np.uint16), np.array([[c << 31]], np.uint32)
    assert row.mma_bits(a, b, start)[0, 0] == fast << 31
    assert row.with_rules(normalised_products=False, zero_sign="ieee").mma_bits(a, b, start)[0, 0] == circuit << 31
    assert row.gemm_bits(a, b, start)[0, 0] == 0


@pytest.mark.parametrize("pair", ["f16.ufp16", "ufp16.f16", "ufp16.ufp16"])
def test_operands_without_a_sign_are_drawn(pair, kernel):
    row = tcm.get_instruction("gaudi3", f"mme.k2.f32.{pair}.f32")
    for kind in KINDS:
        inputs = operands(row, kind, 20, np.random.default_rng(1))[:3]
        kernel("auto")
        fast = row.mma_bits(*inputs)
        kernel("reference")
        assert np.array_equal(fast, row.mma_bits(*inputs)), kind


def test_operands_are_not_converted_to_a_format_without_a_sign():
    """What identify tries with ufp16 operands beside fp16 ones."""
    with pytest.raises(ValueError, match="converts its operands to ufp16 first, which lacks numbers of b_format fp16"):
        tcm.MatrixEngine(tcm.accumulators.InterleavedDotAdd(via_format="ufp16"), a_format="ufp16", b_format="fp16")


@pytest.mark.sweep(1)
@pytest.mark.parametrize("isa", tcm.available_isas())
def test_sums_that_overflow_without_a_cut(isa, kernel):
    """One exact product in each step takes c beyond 2^128; the steps after it meet an infinite c."""
    engine = tcm.get_instruction("gaudi2", "mme.k8.f32.bf16.bf16.f32")
    a, b = np.zeros((8, 32), np.float32), np.zeros((32, 64), np.float32)
    a[:, ::8], b[::8] = 2.0**64, np.where(np.arange(64) % 2, 2.0**63, 2.0**-70)
    c = np.full((8, 64), 1.5 * 2.0**127, np.float32)
    c[::2] *= -1
    bits = (*(tcm.encode(x, "bf16") for x in (a, b)), c.view(np.uint32))
    tcm.set_isa(isa)
    try:
        kernel("auto")
        assert kernels.kernel_name(engine, 8, 64, 32) == "lanes of 64 bits"
        fast = kernels.matrix_bits(engine, *bits)
        kernel("reference")
        assert np.array_equal(fast, kernels.matrix_bits(engine, *bits))
        assert (fast[1::2, 1::2] == 0x7F800000).all()
    finally:
        tcm.set_isa(None)
