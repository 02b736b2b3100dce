"""Which arithmetic made a result: every kind of maker is found, and what nobody made is said to be nobody's."""

import json

import numpy as np
import pytest

import mpgemm
import tensorcore_models as tcm
from mpgemm.cli import main
from mpgemm.experiments.candidates import candidates
from mpgemm.experiments.whodunit import whodunit
from mpgemm.inputs.matrices import generate
from mpgemm.recovery.methods import get_method
from tensorcore_models.orders.order import Chain, Sum

A, B = generate("normal", 8, 256, 8)
FP32 = tcm.get_format("fp32")


def asked(a, b, d, result=FP32, **options):
    return whodunit(a, b, np.ascontiguousarray(d).view(result.container), result, methods=[], **options)


MAKERS = (
    ("h100", "fp16", {}, "hopper:", "one chain over k"),
    ("a100", "fp16", {}, "ampere:", "one chain over k"),
    ("v100", "fp16", {"k_order": "split_k:3"}, "volta:", "split-k in 3 parts"),
    ("a100", "bf16", {"k_order": "sliced_k:2"}, "ampere:", "sliced-k in 2 chains"),
    ("h100/wgmma", "e4m3fn", {"promote_every": 64}, "hopper:wgmma", "added outside every 64 products"),
    ("mi300x", "bf16", {}, "cdna3:", "one chain over k"),
    ("mi250", "fp16", {}, "cdna2:", "one chain over k"),
)  # fmt: skip


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("device", "fmt", "order", "who", "how"), MAKERS)
def test_the_maker_is_found(device, fmt, order, who, how):
    engine = tcm.default_instruction(device.partition("/")[0], fmt, path=device.partition("/")[2] or None)
    a, b = (tcm.round_to(x, fmt) for x in (A, B))
    dtype = tcm.get_format(fmt).dtype
    a, b = a.astype(dtype), b.astype(dtype)
    answer = asked(a, b, engine.gemm(a, b, **order))
    assert [s for s in answer.exact if how in s.how and any(n.startswith(who) for n in (s.who, *s.same))], answer
    assert engine.label in {n for s in answer.exact for n in (s.who, *s.same)}
    for near in answer.nearest:
        assert near.agree < near.of and near.first.found != near.first.candidate


def test_a_result_rounded_at_the_end():
    a, b = A.astype(np.float16), B.astype(np.float16)
    d = tcm.default_instruction("h100", "fp16").gemm(a, b).astype(np.float16)
    answer = asked(a, b, d, tcm.get_format("fp16"))
    assert any(s.who.startswith("hopper") and "result rounded to fp16" in s.how for s in answer.exact)


@pytest.mark.full
def test_a_result_that_a_unit_rounds_itself():
    a, b = A.astype(np.float16), B.astype(np.float16)
    d = tcm.get_instruction("h100:mma.m16n8k16.f16.f16.f16.f16").gemm(a, b)
    assert asked(a, b, d, tcm.get_format("fp16")).exact[0].who == "hopper:mma.m16n8k16.f16.f16.f16.f16"


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    ("method", "engine"),
    [
        ("ootomo", "a100"),
        ("markidis:rounding=rne", "h100"),
        ("sgemm_cube", None),
        ("bf16x6", "b200"),
        ("ozaki_int8", "a100"),
    ],
)
def test_recovery_methods(method, engine):
    d = mpgemm.recovered_gemm(A, B, method=method, engine=engine)
    row = get_method(method.partition(":")[0])
    answer = whodunit(A, B, d.view(np.uint32), FP32, methods=[row])
    assert any(s.who.startswith(method) for s in answer.exact), answer


@pytest.mark.full
def test_operands_rounded_on_the_way():
    d = tcm.default_instruction("a100", "tf32").gemm(A, B, input_rounding="rz")
    answer = asked(A, B, d)
    assert any("operands rounded (rz)" in s.how and "tf32" in s.who for s in answer.exact)


def test_nobody():
    a, b = A.astype(np.float16), B.astype(np.float16)
    d = tcm.default_instruction("h100", "fp16").gemm(a, b)
    d[3, 5] = np.nextafter(d[3, 5], np.float32(np.inf))
    answer = asked(a, b, d)
    assert not answer.exact and "None of" in answer.verdict
    assert answer.nearest[0].agree == 63 and answer.nearest[0].who.startswith("hopper")
    assert (answer.nearest[0].first.row, answer.nearest[0].first.column) == (3, 5)


def test_an_addend_and_a_gemv():
    c = generate("normal", 1, 1, 8)[1]
    engine = tcm.default_instruction("h100", "fp16")
    a, b = A[:1].astype(np.float16), B.astype(np.float16)
    answer = asked(a, b, engine.gemm(a, b, c), addend=c)
    assert any(s.who.startswith("hopper") and s.how == "one chain over k" for s in answer.exact)


@pytest.mark.full
def test_what_this_result_does_not_tell_apart():
    a, b = np.ones((4, 64), np.float16), np.ones((64, 4), np.float16)
    answer = asked(a, b, np.full((4, 4), 64, np.float32))
    assert len(answer.by_who()) > 5 and "does not show which of them made it" in answer.verdict


@pytest.mark.full
def test_candidates_are_different():
    a, b = A.astype(np.float16), B.astype(np.float16)
    labels = [c.label for c in candidates(a, b, FP32)]
    assert len(labels) == len(set(labels)) > 300
    assert not any("method" in c.how for c in candidates(a, b, FP32))
    assert any(c.whole for c in candidates(A, B, FP32))


def test_integers(tmp_path, capsys):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, shape).astype(np.int8) for shape in ((4, 64), (64, 4)))
    names = [str(tmp_path / f"{name}.npy") for name in "abc"]
    for name, x in zip(names, (a, b, a.astype(np.int32) @ b), strict=True):
        np.save(name, x)
    assert main(["whodunit", *names]) == 0
    text = capsys.readouterr().out
    assert "mma.m16n8k32.s32.s8.s8.s32" in text


def test_the_command(tmp_path, capsys, monkeypatch):  # 3 s: three whole searches, one for each kind of question
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "70")
    e = tcm.get_instruction("h100", "wgmma.m64n8k32.f32.e4m3.e4m3")
    x, y = tcm.encode(A, "e4m3fn"), tcm.encode(B, "e4m3fn")
    for name, array in (("x", x), ("y", y), ("d", e.gemm_bits(x, y).view(np.float32)), ("a", A), ("b", B)):
        np.save(f"{name}.npy", array)
    assert main(["whodunit", "x.npy", "y.npy", "d.npy", "--operands", "e4m3"]) == 0
    text = capsys.readouterr().out
    assert "exact: hopper:wgmma" in text and "elements on which other candidates differ" in text
    assert max(map(len, text.splitlines())) <= 70
    assert main(["whodunit", "a.npy", "b.npy", "d.npy", "--methods", "ootomo", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["exact"] == [] and len(found["nearest"]) > 1
    recipe = ["--gpu", "rtx4060", "--library", "scaled_mm", "--config", "fast_accumulation=true"]
    assert main(["whodunit", "x.npy", "y.npy", "d.npy", "--operands", "e4m3fn", *recipe]) == 0
    capsys.readouterr()
    for arguments, message in (
        (["x.npy", "y.npy", "a.npy", "--operands", "e4m3fn"], "expected (m, k), (k, n) and (m, n)"),
        (["x.npy", "y.npy", "d.npy"], "name the format with --operands"),
        (["x.npy", "y.npy", "d.npy", "--operands", "fp8"], "stands for several formats: give one of e4m3fn, e5m2"),
        (["a.npy", "b.npy", "d.npy", "--library", "scaled_mm"], "--library goes with --gpu"),
        (["a.npy", "b.npy", "d.npy", "--methods", "nothing"], "unknown method"),
        (["a.npy", "b.npy", "missing.npy"], "missing.npy"),
    ):
        assert main(["whodunit", *arguments]) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1, error


CPU_ORDERS = {
    "one chain over k": lambda p: np.add.accumulate(p, axis=1)[:, -1],
    "one chain, k in blocks of 64": lambda p: np.add.accumulate(
        np.stack([np.add.accumulate(p[:, s : s + 64], axis=1)[:, -1] for s in range(0, 256, 64)]), axis=0
    )[-1],
    "4 interleaved chains, joined in order": lambda p: np.add.accumulate(
        np.stack([np.add.accumulate(p[:, s::4], axis=1)[:, -1] for s in range(4)]), axis=0
    )[-1],
    "pairwise, blocks of up to 128 in 8 lanes": lambda p: np.ascontiguousarray(p.transpose(0, 2, 1)).sum(axis=-1),
}


@pytest.mark.full
@pytest.mark.parametrize("how", CPU_ORDERS)
def test_orders_of_cpus(how):
    """Products rounded to FP32 and added by NumPy in an order of its own."""
    answer = asked(A, B, CPU_ORDERS[how](A[:, :, None] * B[None]))
    assert how in [s.how for s in answer.exact if s.who.startswith("cpu: products rounded")]
    assert len(answer.exact) <= 8 and answer.chance < 0.05  # units that round each product to FP32 are beside it


@pytest.mark.sweep(1)
@pytest.mark.parametrize("d", (mpgemm.exact_gemm(A, B).rounded("fp32"), (A.astype(float) @ B).astype(np.float32)))
def test_sums_in_fp64_and_the_exact_sum(d):
    assert "cpu: the exact sum" in {s.who for s in asked(A, B, d).exact}


@pytest.mark.full
def test_the_device_asked_about_comes_first_by_its_name():
    a, b = A.astype(np.float16), B.astype(np.float16)
    d = tcm.default_instruction("a100", "fp16").gemm(a, b)
    assert asked(a, b, d).exact[0].who.startswith("turing:")
    answer = asked(a, b, d, device="a100")
    assert answer.exact[0].who.startswith("ampere:") and "only ampere:" in answer.verdict
    assert any(name.startswith("turing:") for name in answer.exact[0].same)


@pytest.mark.full
def test_tiles_of_two_orders():
    """OpenBLAS's kernel for Haswell adds even and odd k apart in most tiles, and all of k in one chain in the others."""
    engine = mpgemm.ieee_engine("fp32")
    bits = [x.view(np.uint32) for x in (A, B)]
    odd = engine.sum_bits(*bits, Sum(tuple(Chain((range(s, 256, 2),)) for s in range(2))))
    d = np.where(np.arange(8) < 5, odd, engine.gemm_bits(*bits))
    answer = asked(A, B, d.view(np.float32))
    assert [s.how for s in answer.exact] == ["tiles of one chain or two (even and odd k)"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_integer_results_of_float_operands_are_nobodys(dtype):
    with pytest.raises(ValueError, match="no modelled unit takes .* and gives s32"):
        whodunit(A.astype(dtype), B.astype(dtype), np.zeros((len(A), B.shape[1]), np.int32))


def test_what_is_known_when_it_is_interrupted():
    def stop(done, total, label):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="5 of [0-9]+ candidates were tried on a few elements"):
        asked(A.astype(np.float16), B.astype(np.float16), A[:, :8], progress=stop)
