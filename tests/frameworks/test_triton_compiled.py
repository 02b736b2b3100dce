"""Emulated Triton kernels are what Triton compiles: folded additions, words, instructions, orders of k, against their PTX."""

import os

import numpy as np
import pytest

os.environ["TRITON_INTERPRET"] = "1"  # read when kernels are defined
torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'mpgemm[triton]'")
triton = pytest.importorskip("triton", reason="triton is not installed: pip install 'mpgemm[triton]'")
import triton.language as tl  # noqa: E402

from mpgemm.frameworks import triton_compiled, triton_gate  # noqa: E402
from mpgemm.frameworks.triton_code import interleaved  # noqa: E402
from mpgemm.triton import NotCompiled, assert_triton_matches, emulate  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


@triton.jit
def product(x, y, P: tl.constexpr, ACC: tl.constexpr):
    return tl.dot(x, y, input_precision=P, max_num_imprecise_acc=ACC)


@triton.jit
def sums(
    a, b, c, k, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, HOW: tl.constexpr, P: tl.constexpr, ACC: tl.constexpr
):  # fmt: skip
    """C = A B, the products of tiles of k added in a way that HOW names."""
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * k + inner[None, :])
        y = tl.load(b + inner[:, None] * N + columns[None, :])
        if HOW == "added":
            total += tl.dot(x, y, input_precision=P, max_num_imprecise_acc=ACC)
        elif HOW == "reversed":
            total = tl.dot(x, y, input_precision=P, max_num_imprecise_acc=ACC) + total
        elif HOW == "called":
            total = total + tl.dot(x, y, input_precision=P, max_num_imprecise_acc=ACC) + product(x, y, P, ACC)
        elif HOW == "doubled":
            total += tl.dot(x, y, input_precision=P) + tl.dot(x, y, input_precision=P)
        elif HOW == "pairs":
            total += (
                tl.dot(x, y, input_precision=P) + tl.dot(y.to(x.dtype).trans(), x.trans(), input_precision=P).trans()
            )
        elif HOW == "later":
            part = tl.dot(x, y, input_precision=P, max_num_imprecise_acc=ACC)
            total = (
                part
                + total
            )  # fmt: skip
        elif HOW == "used twice":
            part = tl.dot(x, y, input_precision=P, max_num_imprecise_acc=ACC)
            total = total + part
            total = total * 0.5 + part
        elif HOW == "fma":
            total = tl.fma(tl.dot(x, y, input_precision=P, max_num_imprecise_acc=ACC), 1.0, total)
        else:
            total = tl.dot(x, y, total, input_precision=P, max_num_imprecise_acc=ACC)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


HOWS = ("added", "reversed", "called", "doubled", "pairs", "later", "used twice", "fma", "chain")


def operands(dtype, m=64, k=128, n=32):
    g = torch.Generator().manual_seed(0)
    a, b = (torch.randn(*s, generator=g) * 2.0 ** torch.randint(-6, 6, s, generator=g) for s in ((m, k), (k, n)))
    return a.to(dtype), b.to(dtype), torch.zeros(m, n)


def checked(target, how, dtype, precision="tf32", imprecise=None, bk=32, **sizes):
    """The report of a kernel that passed the gate."""
    a, b, c = operands(dtype, **sizes)
    constants = {"M": a.shape[0], "N": b.shape[1], "BK": bk, "HOW": how, "P": precision, "ACC": imprecise}
    report = assert_triton_matches(sums, (a, b, c, a.shape[1]), grid=(1,), target=target, **constants)
    assert not c.any()
    return report


@pytest.mark.parametrize("target", ["a100", "h100", "b200", "l40s", "rtx_pro_6000"])
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.sweep(6)
def test_additions_are_where_the_compiler_put_them(how, target):
    report = checked(target, how, torch.bfloat16)
    told = {row.site.orders[0] for row in report.rows}
    assert all(f"[compiled: Triton {triton.__version__}, sm_" in order for order in told)
    folded = any("as its accumulator" in order for order in told)
    assert folded == (how not in ("fma", "chain", "used twice"))


@pytest.mark.parametrize("target", ["a100", "h100", "b200"])
@pytest.mark.parametrize("how", ["added", "chain"])
@pytest.mark.parametrize("precision", ["tf32", "tf32x3", "bf16x3", "bf16x6", "ieee"])
@pytest.mark.sweep(4)
def test_precisions_of_fp32(precision, how, target):
    report = checked(target, how, torch.float32, precision, n=64)
    assert all(row.site.orders[0].startswith(precision) == ("x" in precision) for row in report.rows)


@pytest.mark.parametrize("target", ["l40s", "h100", "b200", "rtx_pro_6000"])
@pytest.mark.parametrize("how", ["added", "chain"])
@pytest.mark.parametrize("imprecise", [None, 0, 32, 64])
@pytest.mark.sweep(4)
def test_fp8(imprecise, how, target):
    report = checked(target, how, torch.float8_e4m3fn, imprecise=imprecise, bk=64)
    orders = [row.site.orders[0] for row in report.rows]
    if target == "h100":
        assert any("interleaved in pairs" in order for order in orders) == (imprecise == 0)
        assert any("promoted every" in order for order in orders) == (imprecise in (32, 64))
        assert not any("as its accumulator" in order for order in orders) or imprecise == 0


def test_fp8_without_an_fp8_unit_is_widened_and_interleaves_k():
    (row,) = checked("a100", "chain", torch.float8_e5m2, bk=64).rows
    assert "widened to fp16, k interleaved in pairs" in row.site.orders[0]
    assert row.site.engines == ("ampere:mma.m16n8k16.f32.f16.f16.f32",)


@pytest.mark.parametrize("precision", ["tf32x3", "bf16x6"])
def test_words_in_tensor_memory_of_128_lanes(precision):
    checked("b200", "chain", torch.float32, precision, m=128, n=64)


def test_interleaving_takes_what_a_register_holds_of_every_thread():
    assert interleaved(32, 4, 2, 16) == [
        x + y for turn in (0, 2) for x in range(0, 32, 4) for y in (turn, turn + 1)
    ]  # fmt: skip
    assert interleaved(32, 2, 2, 16) is None
    assert sorted(interleaved(64, 8, 2, 16)) == list(range(64))


def run(emulation, how, dtype=torch.bfloat16):
    a, b, c = operands(dtype)
    with emulation as found:
        sums[(1,)](a, b, c, 128, M=64, N=32, BK=32, HOW=how, P="tf32", ACC=None)
    return c.numpy().view(np.uint32), found.report()


def test_the_instruction_is_the_compiled_one():
    _, report = run(emulate("h100"), "chain")
    assert report.rows[0].site.engines == ("hopper:wgmma.m64n8k16.f32.bf16.bf16",)
    _, report = run(emulate("h100/mma"), "chain")
    assert report.rows[0].site.engines == ("hopper:mma.m16n8k16.f32.bf16.bf16.f32",)


@pytest.mark.parametrize("how", ["added", "later", "fma", "chain"])
def test_the_rules_say_the_same_and_name_themselves(how):
    compiled, _ = run(emulate("a100", compiler="ask"), how)
    ruled, report = run(emulate("a100", compiler="rules"), how)
    assert np.array_equal(compiled, ruled)
    assert all("[rules of Triton 3.9; the compiler: not asked]" in row.site.orders[0] for row in report.rows)


def test_folded_and_kept_additions_differ():
    """What the gate is for: the same source, its addition inside and outside of the unit."""
    assert not np.array_equal(run(emulate("a100"), "added")[0], run(emulate("a100"), "fma")[0])


def test_amd_targets_are_asked_too():
    bits, report = run(emulate("mi300x"), "added", torch.float16)
    chained, _ = run(emulate("mi300x"), "chain", torch.float16)
    assert np.array_equal(bits, chained)
    assert any("as its accumulator [compiled: Triton" in row.site.orders[0] for row in report.rows)


def test_the_gate_shows_what_differs(monkeypatch):
    monkeypatch.setattr(
        triton_gate, "emulate", lambda target, compiler: emulate(target, compiler=compiler, promote_every=32)
    )
    with pytest.raises(
        AssertionError, match=r"c: \d+ of 2048 elements, as \(\d+, \d+\): 0x[0-9a-f]{8} and 0x.*"
    ) as told:
        checked("a100", "chain", torch.bfloat16)
    assert "emulated as sums, line" in str(told.value)


def test_a_compiler_that_does_not_answer_is_told(monkeypatch):
    monkeypatch.setattr(triton_compiled, "_asked", lambda job: "the compiler refused it: no such thing")
    monkeypatch.setattr(triton_compiled, "_KNOWN", {})
    _, report = run(emulate("a100"), "chain")
    assert "the compiler: the compiler refused it: no such thing]" in report.rows[0].site.orders[0]
    with pytest.raises(NotCompiled, match="no such thing"):
        run(emulate("a100", compiler="ask"), "chain")
    _, report = run(emulate("910b1"), "chain", torch.float16)
    assert "Triton has no target for 910b1" in report.rows[0].site.orders[0]


def test_bad_questions():
    with (
        pytest.raises(ValueError, match="compiler is 'maybe', expected one of auto, ask, rules"),
        emulate("a100", compiler="maybe"),
    ):
        pass
    with pytest.raises(ValueError, match="Triton compiles no PTX"):
        assert_triton_matches(sums, (), grid=(1,), target="mi300x")
    with pytest.raises(ValueError, match="not contiguous"):
        assert_triton_matches(sums, (torch.zeros(4, 4).T,), grid=(1,), target="a100")
