"""What `mpgemm evaluate` computes: methods, cases, resuming, verification, suitability."""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm import ExactResult, exact_gemm
from mpgemm.exact.errors import errors
from mpgemm.experiments import evaluate as evaluation
from mpgemm.experiments.cases import as_given, file_case, generated_cases, shipped_case
from mpgemm.experiments.journal import Journal
from mpgemm.experiments.methods import NAMED_METHODS, CubeOptions, GemmMethod, build_methods
from mpgemm.experiments.operand_ranges import matrix_range
from mpgemm.inputs.matrices import generate


# -- methods ----------------------------------------------------------------------------------------------------------
def test_every_family_gives_a_product_of_the_right_shape():
    a, b = generate("uniform_symmetric", 5, 33, 7)
    methods = build_methods()
    assert len({method.name for method in methods}) == len(methods) == len(NAMED_METHODS) - 1 + 8
    for method in methods:
        product = method.multiply(a, b)
        assert product.shape == (5, 7)
        assert errors(product, a, b).relative_frobenius < 0.05, method.name


@pytest.mark.parametrize("shape", [(0, 3, 2), (3, 0, 2), (3, 2, 0)])
def test_empty_dimensions_give_zeros(shape):
    m, k, n = shape
    for method in build_methods():
        product = method.multiply(np.ones((m, k), np.float32), np.ones((k, n), np.float32))
        assert product.shape == (m, n)
        assert not product.any()


def test_unknown_methods_list_the_known_ones():
    with pytest.raises(ValueError, match="unknown method 'x'; known: fp16, fp16_accumulate, fp32, fp32_numpy, "):
        build_methods(["x"])
    with pytest.raises(ValueError, match="unknown order 'x'; known: elementwise"):
        CubeOptions(orders=("x",))
    with pytest.raises(ValueError, match='an integer or "auto"'):
        CubeOptions(scale_exponents=("12",))


def test_an_engine_of_the_catalogue_is_a_method():
    (method,) = build_methods(["engine:h100:mma.m16n8k16.f32.f16.f16.f32"])
    assert method.name == "engine:hopper:mma.m16n8k16.f32.f16.f16.f32"
    a, b = generate("normal", 5, 40, 3)
    expected = tcm.get_instruction("hopper", "mma.m16n8k16.f32.f16.f16.f32").gemm(a, b, input_rounding="rne")
    np.testing.assert_array_equal(method.multiply(a, b), expected)


def test_options_stand_in_names_and_settings():
    methods = build_methods(["sgemm_cube"], CubeOptions(("termwise",), (12,), ("sequential", "exact"), (176, 64, 176)))
    assert [method.name for method in methods] == ["sgemm_cube_termwise_12", "sgemm_cube_termwise_12_exact"]
    assert methods[1].settings == {
        "name": "sgemm_cube_termwise_12_exact",
        "order": "termwise",
        "scale_exponent": 12,
        "step_order": "exact",
        "blocking": [176, 64, 176],
    }
    a, b = generate("uniform_symmetric", 3, 6000, 3)  # three k groups of 64 * 44
    one_chain = build_methods(["sgemm_cube"], CubeOptions(("termwise",), (12,)))[0].multiply(a, b)
    products = [method.multiply(a, b) for method in methods]
    assert not np.array_equal(products[0], one_chain)
    assert not np.array_equal(products[0], products[1])


def round_to_fp16(x: Fraction) -> Fraction:
    """Exact rounding to nearest even in fractions, fp16's range included."""
    return Fraction(float(tcm.decode(np.uint16(exact_fp16_bits(x)), "fp16")))


def exact_fp16_bits(x: Fraction) -> int:
    from tensorcore_models.formats.exact_rounding import round_to_bits

    shift = 200  # fp16 sums of products are multiples of 2^-48
    scaled = x * 2**shift
    assert scaled.denominator == 1
    return round_to_bits(scaled < 0, abs(scaled.numerator), -shift, tcm.get_format("fp16"))


@pytest.mark.parametrize("exponent", [-12, -6, 0, 5])
def test_fp16_accumulation_is_a_chain_of_fused_multiply_adds(exponent):
    a, b = generate("log_uniform", 6, 40, 6, seed=exponent + 20, low=exponent - 6, high=exponent)
    a16, b16 = (tcm.round_to(x, "fp16").astype(float) for x in (a, b))
    expected = np.zeros((6, 6), np.float16)
    for i in range(6):
        for j in range(6):
            chain = Fraction(0)
            for q in range(40):
                chain = round_to_fp16(chain + Fraction(a16[i, q]) * Fraction(b16[q, j]))
            expected[i, j] = float(chain)
    (method,) = build_methods(["fp16_accumulate"])
    np.testing.assert_array_equal(method.multiply(a, b), expected)


def test_fp16_with_fp32_accumulation_is_a_sequential_chain():
    a, b = generate("uniform_symmetric", 4, 50, 5, seed=1)
    a16, b16 = tcm.round_to(a, "fp16").astype(np.float32), tcm.round_to(b, "fp16").astype(np.float32)
    chain = np.zeros((4, 5), np.float32)
    for q in range(50):  # products of fp16 numbers are exact in fp32
        chain = chain + np.outer(a16[:, q], b16[q])
    (method,) = build_methods(["fp16"])
    np.testing.assert_array_equal(method.multiply(a, b), chain)


def test_fp16_saturates_as_the_910a():
    (method,) = build_methods(["fp16"])
    assert method.multiply(np.float32([[1e6]]), np.float32([[1.0]])) == 65504


# -- cases ------------------------------------------------------------------------------------------------------------
def test_files_keep_their_precision_and_it_is_said(tmp_path):
    a = np.array([[1.0, 1 + 2.0**-40], [np.nan, 2.0**-200]])
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", np.eye(2, dtype=np.float16))
    case = file_case(tmp_path / "a.npy", tmp_path / "b.npy")
    assert case.note == "FP32 cannot hold 2 of 4 elements of A; methods on FP32 or narrower operands round them"
    loaded, other = case.load()
    assert (loaded.dtype, other.dtype) == (np.float64, np.float32)
    np.testing.assert_array_equal(loaded, a)
    np.save(tmp_path / "c.npy", np.ones((3, 2)))
    with pytest.raises(ValueError, match="expected a B with 2 rows, one for each column of A"):
        file_case(tmp_path / "a.npy", tmp_path / "c.npy")


@pytest.mark.parametrize("dtype", ["i8", "u1", "f2", ">f8"])
def test_any_real_type_becomes_the_narrowest_that_has_its_values(dtype):
    x = np.array([[1, 2], [3, 2**24 + 1 if dtype == "i8" else 4]], dtype=dtype)
    given, beyond = as_given(x, "x")
    assert given.dtype == (np.float64 if dtype == "i8" else np.float32) and (given == x).all()
    assert beyond == (dtype == "i8")


def test_identity_changes_with_the_data(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    np.save(tmp_path / "b.npy", np.ones((2, 2)))
    first = file_case(tmp_path / "a.npy", tmp_path / "b.npy")
    np.save(tmp_path / "b.npy", 2 * np.ones((2, 2)))
    assert file_case(tmp_path / "a.npy", tmp_path / "b.npy").identity != first.identity


# -- evaluation and resuming ------------------------------------------------------------------------------------------
def counted(name, calls):
    def multiply(a, b):
        calls.append(name)
        return a @ b

    return GemmMethod(name, name, multiply)


@pytest.mark.parametrize("workers", [None, 2])
def test_an_interrupted_sweep_resumes(tmp_path, workers):
    cases = generated_cases("normal", (3, 4, 5), range(4))
    calls = []
    methods = [counted("one", calls), counted("two", calls)]

    class Stop(Exception):
        pass

    def stop_after(limit):
        def progress(done, total, label):
            if done >= limit:
                raise Stop

        return progress

    path = tmp_path / "journal.jsonl"
    with pytest.raises(Stop):
        evaluation.evaluate(cases, methods, Journal(path), stop_after(3))
    assert calls == ["one", "two", "one"]
    executor = ThreadPoolExecutor(workers) if workers else None
    try:
        records = evaluation.evaluate(cases, methods, Journal(path), executor=executor)
    finally:
        if executor:
            executor.shutdown()
    assert len(calls) == len(records) == 8
    assert sorted(calls) == ["one"] * 4 + ["two"] * 4
    again = evaluation.evaluate(cases, methods, Journal(path))
    assert again == records
    assert len(calls) == 8
    assert [r.case for r in records] == [case.label for case in cases for _ in methods]


def test_another_method_setting_is_another_result(tmp_path):
    cases = generated_cases("uniform_symmetric", (4, 16, 4), [0], {"exponent": -14})
    journal = Journal(tmp_path / "j.jsonl")
    first = evaluation.evaluate(cases, build_methods(["sgemm_cube"], CubeOptions(("termwise",), (0,))), journal)
    second = evaluation.evaluate(cases, build_methods(["sgemm_cube"], CubeOptions(("termwise",), (12,))), journal)
    assert len(journal) == 2
    assert second[0].errors.relative_frobenius < first[0].errors.relative_frobenius


def test_cases_and_methods_can_be_pickled():
    import pickle

    case, method = shipped_case("digits"), build_methods(["sgemm_cube"])[0]
    again = pickle.loads(pickle.dumps((case, method)))
    assert again == (case, method)
    np.testing.assert_array_equal(
        again[1].multiply(*generate("normal", 2, 3, 4)), method.multiply(*generate("normal", 2, 3, 4))
    )


def test_summaries_average_over_seeds():
    cases = generated_cases("normal", (6, 20, 6), range(3))
    records = evaluation.evaluate(cases, build_methods(["fp32"]))
    (summary,) = evaluation.summarise(records)
    assert summary.count == 3
    mean = np.mean([r.errors.relative_frobenius for r in records])
    assert summary.relative_frobenius == pytest.approx(mean, rel=1e-15)
    assert summary.max_ulp == max(r.errors.max_ulp for r in records)


def test_verification_compares_with_mpmath_and_can_fail(monkeypatch):
    (case,) = generated_cases("decades", (7, 30, 6), [0])
    assert evaluation.verify_entries(case, 5) == (5, 5)
    assert evaluation.verify_entries(case, 1000) == (42, 42)

    class Wrong:
        def rounded(self, fmt):
            a, b = case.load()
            return np.nextafter(ExactResult.rounded(exact_gemm(a, b), fmt), np.inf)

    monkeypatch.setattr(evaluation, "exact_gemm", lambda a, b, c=None: Wrong())
    assert evaluation.verify_entries(case, 5) == (5, 0)


def test_one_spelling_of_methods_and_engines():
    """What compare takes, evaluate takes, too: METHOD, METHOD@ENGINE, names of frameworks, devices."""
    plain, device, framework, engine = build_methods(["ootomo", "ootomo:terms=4@a100", "3xTF32@h100", "engine:a100"])
    assert plain.name.startswith("recovery:ootomo@")
    assert device.name == "recovery:ootomo:terms=4@ampere:mma.m16n8k16.f32.f16.f16.f32"
    assert framework.name.startswith("recovery:3xTF32@hopper:")
    assert engine.name == "engine:ampere:mma.m16n8k16.f32.f16.f16.f32"
    with pytest.raises(ValueError, match="METHOD@ENGINE"):
        build_methods(["nonsense@a100"])


# -- ranges of operands -----------------------------------------------------------------------------------------------
def test_counts_of_the_range_at_its_boundaries():
    a = np.float32([[65519, 65520, 2.0**-25, 2.0**-25 * (1 + 2.0**-20), 2.0**-14, 0, np.nan, -(2.0**-15)]])
    matrix = matrix_range("A", a)
    assert (matrix.overflow, matrix.vanishing, matrix.subnormal, matrix.zeros, matrix.nonfinite) == (1, 1, 2, 1, 1)
    assert matrix.smallest_exponent == -25
    assert matrix.largest_exponent == 15


def test_what_overflows_keeps_no_bits():
    inside = matrix_range("A", np.float32([[1 / 3, 1 / 3]])).choices[-1]
    half = matrix_range("A", np.float32([[1 / 3, 7e4]])).choices[-1]
    assert inside.fewest_bits >= 22 and inside.below_22_bits == 0
    assert half.fewest_bits == 0 and half.mean_bits == inside.mean_bits / 2 and half.below_22_bits == 1


def test_empty_and_zero_matrices_have_no_exponents():
    for x in (np.zeros((3, 0), np.float32), np.zeros((2, 2), np.float32)):
        matrix = matrix_range("A", x)
        assert matrix.smallest_exponent is None and matrix.choices[0].fewest_bits is None
