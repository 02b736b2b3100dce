"""The recorded Llama in NumPy, without torch: every module and every logit as an H100 gave them, eager and sdpa (cuDNN)."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models import libraries
from tensorcore_models.formats.rounding import encode
from tensorcore_models.libraries import fp32_lanes, row_operations

BF16, HEADS, GROUPS, SIZE, WORDS = ml_dtypes.bfloat16, 4, 2, 64, 64
UNIT = tcm.get_instruction("hopper", "wgmma.m64n8k16.f32.bf16.bf16")


def product(x, y):
    """x y of bf16 arrays, one chain over k."""
    bits = UNIT.gemm_bits(np.ascontiguousarray(x).view(np.uint16), np.ascontiguousarray(y).view(np.uint16))
    return encode(bits.view(np.float32), "bf16", "rne").view(BF16)


def wide(x):
    return x.astype(np.float32)


def narrow(x):
    return encode(x, "bf16", "rne").view(BF16)


def normal(x, weight):
    """Hugging Face's LlamaRMSNorm."""
    h = wide(x)
    r = fp32_lanes.apply("rsqrtf", row_operations.means(h * h) + np.float32(1e-6))
    return narrow(wide(weight) * wide(narrow(h * r[..., None])))


def rotations():
    """Cosines and sines of positions: frequencies are kept in bf16, angles are FP32 products."""
    steps = np.arange(0, SIZE, 2, dtype=np.float32) / np.float32(SIZE)
    frequencies = wide(narrow(np.float32(1) / np.power(np.float32(10000), steps)))
    angles = np.arange(WORDS, dtype=np.float32)[:, None] * frequencies
    angles = np.concatenate([angles, angles], 1)
    return narrow(fp32_lanes.apply("cosf", angles)), narrow(fp32_lanes.apply("sinf", angles))


def rotated(x, cos, sin):
    turned = np.concatenate([-x[..., SIZE // 2 :], x[..., : SIZE // 2]], -1)
    return narrow(wide(narrow(wide(x) * wide(cos))) + wide(narrow(wide(turned) * wide(sin))))


def eager(q, k, v):
    """Scores in bf16, a mask of bf16's largest negative number, softmax in FP32, weights in bf16."""
    mask = np.triu(np.full((WORDS, WORDS), ml_dtypes.finfo(BF16).min, BF16), 1)
    out = []
    for a, b, c in zip(q, k, v, strict=True):
        scores = narrow(wide(product(a, b.T)) * np.float32(0.125))
        scores = narrow(wide(scores) + wide(mask))
        out.append(product(narrow(row_operations.softmax(wide(scores))), c))
    return np.stack(out)


def fused(q, k, v):
    heads = [np.ascontiguousarray(x).view(np.uint16) for x in (q, k, v)]
    return libraries.attention("cudnn", "bf16").product(*heads, causal=True).view(BF16)


def forward(tokens, weights, attend, keep):
    """All modules, by Hugging Face's names; `keep` takes each output."""
    x = weights["model.embed_tokens"][tokens]
    cos, sin = rotations()
    keep("model.embed_tokens", x)
    keep("model.rotary_emb", cos)
    for layer in range(2):
        at = f"model.layers.{layer}."

        def linear(name, values, at=at):
            return keep(at + name, product(values, weights[at + name].T))

        h = keep(f"{at}input_layernorm", normal(x, weights[f"{at}input_layernorm"]))
        q, k, v = (linear(f"self_attn.{c}_proj", h).reshape(WORDS, -1, SIZE).swapaxes(0, 1) for c in "qkv")
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        k, v = (np.repeat(y, HEADS // GROUPS, 0) for y in (k, v))
        out = linear("self_attn.o_proj", attend(q, k, v).swapaxes(0, 1).reshape(WORDS, -1))
        x = narrow(wide(x) + wide(keep(f"{at}self_attn", out)))
        h = keep(f"{at}post_attention_layernorm", normal(x, weights[f"{at}post_attention_layernorm"]))
        gate = narrow(fp32_lanes.apply("torch.silu", wide(linear("mlp.gate_proj", h))))
        up = linear("mlp.up_proj", h)
        keep(f"{at}mlp.act_fn", gate)
        out = keep(f"{at}mlp", linear("mlp.down_proj", narrow(wide(gate) * wide(up))))
        x = keep(at[:-1], narrow(wide(x) + wide(out)))
    logits = product(keep("model.norm", normal(x, weights["model.norm"])), weights["lm_head"].T)
    keep("lm_head", logits)
    return logits


@pytest.mark.parametrize(("name", "attend"), [("eager", eager), ("sdpa", fused)])
def test_every_module(shared, name, attend):
    with np.load(shared / "hardware_vectors" / "h100" / "libraries" / "products.npz") as arrays:
        given = {
            key: arrays[key]
            for key in arrays.files
            if key.startswith(("llama/weights", f"llama/{name}", "llama/tokens"))
        }
    head = "llama/weights/"
    weights = {
        key.removeprefix(head).removesuffix(".weight"): x.view(BF16) for key, x in given.items() if key.startswith(head)
    }
    different, seen = [], set()

    def keep(module, values):
        seen.add(module)
        if (values.view(np.int16) != given[f"llama/{name}/{module}"][0]).any():
            different.append(module)
        return values

    logits = forward(given["llama/tokens"][0], weights, attend, keep)
    assert different == [] and len(seen) == 30
    assert (logits.view(np.int16) == given[f"llama/{name}/logits"][0]).all()
