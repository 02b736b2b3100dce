"""scaled_dot_product_attention under emulation: what the report says of the math path, and FlashAttention's program."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'mpgemm[torch]'")
F = torch.nn.functional

import tensorcore_models as tcm  # noqa: E402
from mpgemm.experiments.attention import attention_errors  # noqa: E402
from mpgemm.testing import assert_attention_close  # noqa: E402
from mpgemm.torch import emulate  # noqa: E402


def qkv(*shape, dtype=torch.bfloat16):
    torch.manual_seed(0)
    return [torch.randn(shape).to(dtype).requires_grad_() for _ in range(3)]


@pytest.mark.parametrize("causal", [False, True])
def test_flash_is_the_program_of_attention_errors(causal):
    q, k, v = qkv(2, 2, 48, 16)
    with emulate(["h100", "a100"], sdpa="flash:16") as run:
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    unit = tcm.default_instruction("h100", "bf16")
    for batch in range(2):
        for head in range(2):
            arrays = [x[batch, head].detach().float().numpy() for x in (q, k, v)]
            expected = attention_errors(*arrays, unit, tile=16, causal=causal).output
            assert np.array_equal(out[batch, head].detach().double().numpy(), expected)
    (row,) = run.report().rows
    assert (row.site.batch, row.site.m, row.site.k, row.site.n) == (4, 48, 48, 16)
    assert "tiles of 16 keys (predicted)" in row.site.orders[0] and not run.report().notes
    assert_attention_close(out, q, k, v, engine="h100", causal=causal)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_flash_are_near_torchs(causal):
    values = qkv(1, 2, 40, 16)
    with emulate("h100", sdpa="flash") as run:
        out = F.scaled_dot_product_attention(*values, is_causal=causal, scale=0.3)
        found = torch.autograd.grad(out.float().square().sum(), values)
    wide = [x.detach().double().requires_grad_() for x in values]
    right = F.scaled_dot_product_attention(*wide, is_causal=causal, scale=0.3)
    expected = torch.autograd.grad(right.square().sum(), wide)
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == torch.bfloat16 and (x - y).norm() < 0.01 * y.norm()
    assert [row.site.op for row in run.report().rows][1:] == [
        f"attention backward, {x}" for x in ("S", "dV", "dP", "dQ", "dK")
    ]


def test_heads_that_share_keys():
    q, k, v = (x.detach() for x in qkv(1, 4, 16, 16))
    with emulate("h100", sdpa="flash"):
        few = F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True)
        all_heads = F.scaled_dot_product_attention(q, *(x[:, :2].repeat_interleave(2, 1) for x in (k, v)))
    assert torch.equal(few, all_heads)


def test_the_report_says_what_the_math_path_computed():
    q, k, v = (x.detach() for x in qkv(1, 2, 16, 16))
    layer = torch.nn.MultiheadAttention(16, 2).half()
    x = torch.randn(4, 1, 16).half()
    with emulate("h100") as run:
        F.scaled_dot_product_attention(q, k, v)
        F.scaled_dot_product_attention(q, k, v)
        F.scaled_dot_product_attention(q.float(), k.float(), v.float())
        layer(x, x, x, need_weights=False)
    first, second = run.report().notes
    assert "bfloat16" in first and "all operations in FP32" in first and "sdpa='flash'" in first and "float16" in second
    assert first in str(run.report()) and run.report().to_dict()["notes"] == [first, second]
    with emulate("h100", sdpa="flash") as run:
        layer(x, x, x, need_weights=False)
    assert "scaled_dot_product_attention" in [row.site.op for row in run.report().rows]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"attn_mask": torch.zeros(16, 16, dtype=torch.bfloat16)}, "a mask"),
        ({"dropout_p": 0.1}, "dropout"),
        ({"key": torch.zeros(1, 1, 16, 16, dtype=torch.bfloat16)}, "numbers of heads"),
        ({"query": torch.zeros(1, 2, 8, 16, dtype=torch.bfloat16), "is_causal": True}, "is_causal"),
        ({"value": torch.zeros(1, 2, 16, 8, dtype=torch.bfloat16)}, "sizes"),
        ({"query": torch.zeros(1, 2, 16, 16)}, "types"),
    ],
)
def test_what_flash_does_not_take_is_refused(change, words):
    q, k, v = (x.detach() for x in qkv(1, 2, 16, 16))
    with pytest.raises(ValueError, match=words), emulate("h100", sdpa="flash"):
        F.scaled_dot_product_attention(**{"query": q, "key": k, "value": v, **change})


@pytest.mark.parametrize("sdpa", ["fast", "flash:0", "flash:x", "math:4", None])
def test_unknown_choices(sdpa):
    with pytest.raises(ValueError, match="expected 'auto', 'math', 'flash'"), emulate("h100", sdpa=sdpa):
        pass


def test_a_function_in_the_place_of_torchs_own_is_called(monkeypatch):
    """A program's own attention was bypassed in silence; what it asks of torch is still computed as the block says."""
    q, k, v = (torch.randn(1, 2, 16, 16).bfloat16() for _ in range(3))
    own, calls = F.scaled_dot_product_attention, []

    def patched(query, key, value, **options):
        calls.append(query.shape)
        return own(query * 2, key, value, **options)

    with emulate("h100", sdpa="flash:16"):
        right = own(q * 2, k, v)
    monkeypatch.setattr(F, "scaled_dot_product_attention", patched)
    with emulate("h100", sdpa="flash:16"):
        found = F.scaled_dot_product_attention(q, k, v)
    assert calls == [q.shape] and torch.equal(found, right)
    assert F.scaled_dot_product_attention is patched
    with emulate("h100", sdpa="flash:16"):
        monkeypatch.setattr(F, "scaled_dot_product_attention", own)
    assert F.scaled_dot_product_attention is own
