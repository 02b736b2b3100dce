"""Attention on exact cores: stages add up, tiles of keys are FlashAttention's, the command says what it does not claim."""

import json

import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.cli import main
from mpgemm.experiments.attention import KERNELS, STAGES, AttentionProgram, attend, attention_errors, visible
from mpgemm.recovery.engines import ieee_engine


@pytest.fixture
def head():
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s).astype(np.float32) for s in ((24, 32), (80, 32), (80, 16))]


def engine(fmt="bf16", device="h100"):
    return tcm.default_instruction(device, fmt)


def softmax(s):
    p = np.exp(s - s.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


@pytest.mark.parametrize("tile", [None, 16, 33, 80])
def test_the_parts_add_up_and_the_exact_value_is_attention(head, tile):
    found = attention_errors(*head, engine(), tile=tile)
    q, k, v = (x.astype(np.float64) for x in head)
    assert np.allclose(found.exact, softmax(q @ k.T / np.sqrt(32)) @ v, rtol=1e-13, atol=1e-14)
    assert tuple(found.parts) == STAGES
    assert np.allclose(sum(found.parts.values()), found.output - found.exact, rtol=0, atol=1e-15)
    assert 1e-3 < found.total < 1e-2 and all(found.shares().values())


@pytest.mark.parametrize("tile", [16, 80])
def test_the_output_is_flash_attention_step_by_step(head, tile):
    unit = engine("fp16", "a100")
    q, k, v = (x.astype(np.float16) for x in head)
    factor = np.float32(32**-0.5 * np.log2(np.e))
    m, weight, o = np.full((24, 1), -np.inf, np.float32), np.zeros((24, 1), np.float32), np.zeros((24, 16), np.float32)
    for start in range(0, 80, tile):
        s = unit.gemm(q, k[start : start + tile].T)
        top = np.maximum(m, s.max(1, keepdims=True))

        def power(x, shift=top * factor):
            return np.exp2(
                (x.astype(np.float64) * factor - shift.astype(np.float64)).astype(np.float32), dtype=np.float64
            )

        p, shrink = power(s).astype(np.float32), power(m).astype(np.float32)
        o = unit.gemm(p.astype(np.float16), v[start : start + tile], o * shrink)
        total = np.zeros((24, 1), np.float32)
        for column in p.T:
            total += column[:, None]
        weight, m = weight * shrink + total, top
    expected = (o * (np.float32(1) / weight)).astype(np.float16)
    assert np.array_equal(attention_errors(*head, unit, tile=tile).output, expected.astype(np.float64))


def test_operands_that_the_format_holds_have_no_part_of_their_own(head):
    q, k, v = (x.astype(np.float16) for x in head)
    shares = attention_errors(q, k, v, engine("fp16")).shares()
    assert shares["inputs"] == 0 and shares["P rounded"] > 100 * shares["Q K^T"]


def test_fp32_units_lose_little(head):
    assert attention_errors(*head, ieee_engine("fp32")).total < 1e-6


def test_bad_input(head):
    q, k, v = head
    for wrong in ((q, k.T, v), (q, k, v[:4]), (q[0], k, v), (q[:0], k, v)):
        with pytest.raises(ValueError, match="expected \\(queries, d\\)"):
            attention_errors(*wrong, engine())
    with pytest.raises(ValueError, match="K holds infinities or NaN, expected finite values"):
        attention_errors(q, k * np.inf, v, engine())
    with pytest.raises(ValueError, match="FP32 sums"):
        attention_errors(q, k, v, tcm.default_instruction("h100", "fp16", "fp16"))
    with pytest.raises(ValueError, match="at least 1"):
        attention_errors(q, k, v, engine(), tile=0)


def test_the_command(head, tmp_path, capsys):
    files = [str(tmp_path / f"{name}.npy") for name in "qkv"]
    for path, x in zip(files, head, strict=True):
        np.save(path, x)
    assert main(["evaluate", "--attention", *files, "--engine", "h100", "--kv-tile", "16", "80"]) == 0
    text = capsys.readouterr().out
    assert "Q K^T" in text and "MUFU.EX2, which --functions computes" in text and "hopper:" in text
    assert main(["evaluate", "--attention", *files, "--json", "--out", str(tmp_path / "out")]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["kv_tile"] for row in data["attention"]] == [80, 64, 80, 64]
    assert (tmp_path / "out" / "attention.csv").exists()
    computed = ["--functions", "h100", "--attention-kernel", "triton"]
    assert main(["evaluate", "--attention", *files, "--engine", "h100", "--kv-tile", "16", *computed]) == 0
    assert "have the bits of h100's special-function unit; row sums are added in the order of Triton" in " ".join(
        capsys.readouterr().out.split()
    )
    for extra in (
        ["--kv-tile", "8"],
        ["--functions", "h100"],
        ["--attention-kernel", "triton"],
        ["--attention", *files, "--shipped", "digits"],
        ["--attention", *files[::-1]],
    ):
        assert main(["evaluate", *extra]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_the_unit_s_functions_are_computed_where_they_are_named():
    """2^x and 1 / x are MUFU's: the output is that of plain steps on them, and differs from the one rounded to nearest."""
    rng = np.random.default_rng(4)
    q, k, v = (tcm.round_to(rng.standard_normal((12, 16)), "fp16").astype(np.float32) for _ in range(3))
    unit = engine("fp16")
    found = attention_errors(q, k, v, unit, functions="h100", out_format="fp32")
    ex2, rcp = (tcm.get_function("hopper", f"{name}.approx.ftz.f32").values for name in ("ex2", "rcp"))
    scores = unit.gemm(q.astype(np.float16), k.T.astype(np.float16)).astype(np.float64)
    factor = np.float64(np.float32(0.25 * np.log2(np.e)))
    shift = (scores.max(1, keepdims=True) * factor).astype(np.float32)
    p = ex2((scores * factor - shift).astype(np.float32))
    sums = np.cumsum(p, 1, dtype=np.float32)[:, -1:]
    total = unit.gemm(p.astype(np.float16), v.astype(np.float16))
    assert np.array_equal(found.output, (total * rcp(sums)).astype(np.float64))
    nearest = attention_errors(q, k, v, unit, out_format="fp32")
    assert (found.output != nearest.output).any() and np.array_equal(found.exact, nearest.exact)


#: Recorded kernels of Triton in which a warp holds whole rows.
TRITON = ("2x128x64/False/64x64", "2x200x64/True/64x64", "1x256x128/False/128x64")


@pytest.mark.parametrize("name", TRITON)
def test_a_recorded_kernel_of_triton_to_the_bit(shared, name):
    """The whole program on the H100's unit, functions and row sums; the plain order differs from the recording somewhere."""
    shape, causal, blocks = name.split("/")
    heads, size, d = map(int, shape.split("x"))
    drawn = [np.random.default_rng([size, d, i]).standard_normal((heads, size, d)) for i in range(3)]
    drawn = [x.astype(np.float32).astype(np.float16).astype(np.float64) for x in drawn]
    with np.load(shared / "hardware_vectors" / "h100" / "kernels" / "triton.npz") as outputs:
        recorded = outputs[f"flash/float16/{name}"].view(np.uint16).reshape(heads, size, d)
    unit, tile = tcm.get_instruction("hopper", "wgmma.m64n8k16.f32.f16.f16"), int(blocks.split("x")[1])
    mask, found = visible(size, size, causal == "True"), dict.fromkeys(KERNELS, 0)
    for name, kernel in KERNELS.items():
        program = AttentionProgram(unit, tile, d**-0.5, tcm.get_format("fp16"), functions="h100", kernel=kernel)
        for head, wanted in enumerate(recorded):
            out = attend([x[head] for x in drawn], program, len(STAGES), mask)
            found[name] += int((out.astype(np.float16).view(np.uint16) != wanted).sum())
    assert found["triton"] == 0 and found["plain"] > 0, found


def test_an_unknown_kernel_is_refused(head):
    with pytest.raises(ValueError, match="unknown attention kernel 'flash'; known: plain, triton"):
        attention_errors(*head, engine(), kernel="flash")
