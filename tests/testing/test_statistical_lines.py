"""Statistical tolerances hold for whole fresh products: judged with numpy and ml_dtypes alone, on fresh pairs."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm import tolerance
from mpgemm.cli import main
from mpgemm.inputs.matrices import DISTRIBUTIONS, generate
from mpgemm.testing import Draws, kernel_of
from tensorcore_models.results import Interrupted

TYPES = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3fn": ml_dtypes.float8_e4m3fn,
         "e5m2": ml_dtypes.float8_e5m2}  # fmt: skip
#: (device, operands, output).
KERNELS = (
    ("h100", "fp16", "fp32"), ("h100", "fp16", "fp16"), ("h100", "fp16", "bf16"), ("h100", "fp16", "e5m2"),
    ("a100", "bf16", "bf16"), ("h100", "e4m3fn", "fp32"),
)  # fmt: skip
SHAPES = ((512, 4096, 512), (64, 2048, 64), (1, 4096, 4096))


def fresh(rng, shape, fmt):
    """Normal numbers as the unit takes them, from a generator of the test's own."""
    m, k, n = shape
    return (rng.standard_normal(s).astype(np.float32).astype(TYPES[fmt]) for s in ((m, k), (k, n)))


def right(device, fmt, out, a, b):
    """The kernel: the unit's own product, rounded once."""
    unit = tcm.default_instruction(device, fmt, path="wgmma" if (device, fmt) == ("h100", "e4m3fn") else None)
    return unit.gemm(a, b).astype(np.float32).astype(TYPES[out])


def passes(d, a, b, line) -> bool:
    """The judge: as numpy.testing.assert_allclose has it, the expected product in FP64."""
    expected = a.astype(np.float64) @ b.astype(np.float64)
    return bool((np.abs(d.astype(np.float64) - expected) <= line.atol + line.rtol * np.abs(expected)).all())


def failing(kernel, shape, seeds) -> tuple[int, int]:
    """(right products that fail their line, products with FP16's rounding of the result that pass it)."""
    device, fmt, out = kernel
    m, k, n = shape
    kernel = kernel_of(device, fmt=fmt, reference="rounded", out_format=None if out == "fp32" else out)
    line = tolerance(kernel, k, draws=Draws("normal", (m, n))).statistical
    failed, faulty = 0, 0
    for seed in seeds:
        a, b = fresh(np.random.default_rng([seed, 77]), shape, fmt)
        d = right(device, fmt, out, a, b)
        failed += not passes(d, a, b, line)
        half = k // 2
        lost = a[:, half : half + 32].astype(np.float32) @ b[half : half + 32].astype(np.float32)
        faulty += passes((d.astype(np.float32) - lost).astype(TYPES[out]), a, b, line)
    return failed, faulty


@pytest.mark.parametrize("kernel", KERNELS[1:5:3])
def test_right_products_pass_and_a_lost_block_fails(kernel):
    assert failing(kernel, (64, 512, 64), range(12)) == (0, 0)


def failing_of_a_distribution(name, shape, seeds, quantile=0.99) -> int:
    """Fresh right products that fail, expected from the operands as the test has them."""
    m, k, n = shape
    unit = tcm.default_instruction("a100", "tf32" if name in WIDE else "fp16")
    line = tolerance(unit, k, draws=Draws(name, (m, n)), quantile=quantile).statistical
    failed = 0
    for seed in seeds:
        a, b = generate(name, m, k, n, seed=10**6 + seed)
        failed += not passes(unit.gemm(a, b, input_rounding="rne"), a, b, line)
    return failed


#: Distributions beyond the range of FP16.
WIDE = {"log_uniform", "decades", *(name for name in DISTRIBUTIONS if name.startswith("ootomo"))}
#: Those whose elements depend on each other, in a shape of which few elements are drawn at a time.
DEPENDENT = ("conditioned", "cancelling")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", DEPENDENT)
@pytest.mark.parametrize("shape", [(8, 64, 8), (1, 64, 32)])
def test_fresh_products_of_elements_that_depend_on_each_other_pass(name, shape):
    """Of 60 at most 4 may fail at quantile 0.99 (5 with probability 0.0003); a third did when draws shared four pairs."""
    assert failing_of_a_distribution(name, shape, range(60)) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("shape", [(8, 256, 8), (1, 512, 64), (64, 512, 64), (256, 1024, 128)])
def test_at_most_the_stated_share_of_400_products_of_a_distribution_fails(name, shape):
    """A share of 0.01 may fail; 11 of 400 or more would with probability 0.003."""
    assert failing_of_a_distribution(name, shape, range(400)) <= 10


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_at_most_the_stated_share_of_100_products_fails(kernel, shape):
    """A share of 0.01 may fail; 5 of 100 or more would with probability 0.003."""
    failed, faulty = failing(kernel, shape, range(100))
    assert failed <= 4 and faulty == 0, (failed, faulty)


@pytest.mark.parametrize("shape", [(96, 512, 96), pytest.param((512, 2048, 512), marks=pytest.mark.slow)])
def test_the_line_of_given_operands_holds_for_the_whole_product_and_other_orders(shape):
    for seed in range(2 if shape[0] < 512 else 20):
        rng = np.random.default_rng([seed, 78])
        a, b = fresh(rng, shape, "fp16")
        line = tolerance("h100", data=(a, b)).statistical
        assert passes(right("h100", "fp16", "fp32", a, b), a, b, line)
        for _ in range(3):
            order = rng.permutation(shape[1])
            assert passes(right("h100", "fp16", "fp32", a[:, order].copy(), b[order].copy()), a, b, line)


def test_rows_of_very_different_sizes():
    """A few rows hold all of the large errors: no small part of the product shows them."""
    rng = np.random.default_rng(9)
    a, b = rng.standard_normal((256, 256)), rng.standard_normal((256, 64)).astype(np.float16)
    a[[37, 201]] *= 256
    a = a.astype(np.float16)
    line = tolerance("h100", data=(a, b)).statistical
    assert passes(right("h100", "fp16", "fp32", a, b), a, b, line)


def narrow_sums(a, b, dtype):
    """Sums kept in a narrow type, one product after the other."""
    total = np.zeros((a.shape[0], b.shape[1]), dtype)
    for column, row in zip(a.T.astype(np.float64), b.astype(np.float64), strict=True):
        total = (total.astype(np.float64) + np.outer(column, row)).astype(dtype)
    return total.astype(np.float32)


CHECKS = (((0, 1e-3), "fp32"), ((0, 0.15), "fp32"), ((0.02, 0.05), "bf16"), ((0.5, 1), "fp16"))


@pytest.mark.parametrize(("check", "out"), CHECKS)
def test_what_is_said_of_narrow_sums_is_so(check, out):
    """Each share of products in which a fault is seen, against twelve products made with numpy alone."""
    shape = (24, 256, 24)
    kernel = kernel_of("h100", reference="rounded", out_format=None if out == "fp32" else out)
    found = tolerance(kernel, 256, draws=Draws("normal", (24, 24)), check=check)
    line = found.checked.line
    pairs = [tuple(fresh(np.random.default_rng([seed, 79]), shape, "fp16")) for seed in range(12)]
    kernels = {
        "FP16 accumulation": lambda a, b: narrow_sums(a, b, np.float16),
        "BF16 accumulation": lambda a, b: narrow_sums(a, b, ml_dtypes.bfloat16),
        "zeros": lambda a, b: np.zeros((24, 24), np.float32),
        "output rounded twice": lambda a, b: right("h100", "fp16", "fp16" if out == "bf16" else "bf16", a, b),
    }
    for fault, kernel in kernels.items():
        share = found.faults["given"][fault]
        seen = np.mean([not passes(kernel(a, b).astype(np.float32).astype(TYPES[out]), a, b, line) for a, b in pairs])
        assert abs(seen - share) <= 0.45, (fault, seen, share)  # twelve products, and the tail's error
        assert (fault in found.misses("given")) == (share < 0.99)
    failed = np.mean([not passes(right("h100", "fp16", out, a, b), a, b, line) for a, b in pairs])
    assert abs(failed - found.checked.failing) <= 0.45


def test_what_is_certified_comes_first_and_an_interruption_keeps_what_is_known():
    shown = []

    def stop_at(count):
        def progress(done, total, label):
            if done == count:
                raise KeyboardInterrupt

        return progress

    for count, known in ((2, False), (24, True)):
        with pytest.raises(Interrupted) as caught:
            tolerance("h100", 64, draws="normal", first=shown.append, progress=stop_at(count))
        assert shown[-1].statistical is None and shown[-1].certified == caught.value.known.certified
        assert (caught.value.known.statistical is not None) == known


def test_an_interrupted_command_prints_what_is_known(monkeypatch, capsys):
    def interrupted(*args, **options):
        raise Interrupted(tolerance("h100", 16, draws=Draws("normal", (4, 4))))

    monkeypatch.setattr("mpgemm.testing.tolerances.tolerance", interrupted)
    assert main(["tolerance", "--k", "16"]) == 130
    shown = capsys.readouterr()
    assert shown.out.count("certified (no kernel") == 1 and "statistical (0.99 of right 4 x 16 x 4" in shown.out
    assert "interrupted" in shown.err


def test_k_and_shape_are_one_question(capsys):
    quick = ["--shape", "4", "16", "4", "--quiet"]
    assert main(["tolerance", *quick, "--k", "16"]) == 0
    both = capsys.readouterr().out
    assert main(["tolerance", *quick]) == 0
    assert capsys.readouterr().out == both
