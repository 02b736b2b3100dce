"""Attention and rows as an H100's torch returned them: SHA-256 of whole outputs, the choice of kernels, what is refused.

Inputs follow from seeds (`vectors/h100_operations.json` says which).
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from tensorcore_models import libraries
from tensorcore_models.formats.rounding import decode, encode
from tensorcore_models.libraries import Unknown, row_operations
from tensorcore_models.libraries.attention_rules import flash_parts, plan

RECORDED = {
    row["name"]: row
    for row in json.loads((Path(__file__).parents[1] / "vectors" / "h100_operations.json").read_text())["rows"]
}
ATTENTION = [name for name in RECORDED if name.startswith("sdpa")]
#: What `make test` computes; the others take seconds each.
QUICK = [name for name in ATTENTION if "1024" not in name]


def digest(x):
    return hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()


def recorded_heads(name):
    """(kernel, format, Q, K and V, causal) of a recorded row."""
    _, dtype, backend, _, _ = name.split("/")
    row, fmt = RECORDED[name], {"float16": "fp16", "bfloat16": "bf16"}[dtype]
    shape = row["shape_qkv"]
    drawn = [np.random.default_rng([*shape[2:], i]).standard_normal(shape).astype(np.float32) for i in range(3)]
    return backend.lower().removesuffix("_attention"), fmt, [encode(x, fmt, "rne") for x in drawn], row["causal"]


def attended(name):
    kernel, fmt, heads, causal = recorded_heads(name)
    return libraries.attention(kernel, fmt).product(*heads, causal=causal)


@pytest.mark.parametrize("name", QUICK)
def test_whole_outputs(name):
    assert digest(attended(name)) == RECORDED[name]["sha256"]


@pytest.mark.full  # 50 seconds
@pytest.mark.parametrize("name", [name for name in ATTENTION if name not in QUICK])
def test_longer_outputs(name):
    assert digest(attended(name)) == RECORDED[name]["sha256"]


@pytest.mark.parametrize("kernel", ["cudnn", "flash", "efficient", "math"])
def test_heads_and_rows_are_computed_alone(kernel):
    """Later keys do not change a causal row, nor do other heads where the number of parts does not change."""
    rng = np.random.default_rng(4)
    q, k, v = (encode(rng.standard_normal((3, 70, 64)), "bf16", "rne") for _ in range(3))
    recipe = libraries.attention(kernel, "bf16")
    whole = recipe.product(q, k, v, causal=True)
    assert (recipe.product(q[1:2], k[1:2], v[1:2], causal=True) == whole[1:2]).all()
    first = recipe.product(q[:, :20], k[:, :20], v[:, :20], causal=True)
    assert (first == whole[:, :20]).all()
    assert (recipe.product(q[None], k[None], v[None], causal=True) == whole[None]).all()
    assert not (recipe.product(q, k, v, causal=True, scale=0.3) == whole).all()


def test_flash_parts():
    """FlashAttention's own choice, on 132 multiprocessors: what was recorded, and its bounds."""
    assert [flash_parts(2 * 2, 132, 1), flash_parts(8, 132, 2), flash_parts(10, 132, 2), flash_parts(64, 132, 8)] == [
        1, 2, 2, 4
    ]  # fmt: skip
    assert flash_parts(212, 132, 8) == 1 and flash_parts(1, 132, 300) == 100
    assert plan("flash", "h100", 2, 128, 128, 64).tile == 128 and plan("flash", "h100", 2, 300, 300, 64).tile == 256
    assert plan("flash", "h100", 64, 1024, 1024, 128).tile == 64


def test_what_is_inferred():
    recipe = libraries.attention("cudnn", "bf16")
    assert recipe.inferred(4, 64, 64, 64) == ""
    assert "size 96" in recipe.inferred(4, 64, 64, 96) and "queries" in recipe.inferred(4, 1, 64, 64)
    assert "cudnn" in str(recipe) and "torch 2.11" in str(recipe)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [(("xformers", "bf16"), "kernel"), (("cudnn", "fp32"), "fmt"), (("cudnn", "bf16", "a100"), "gpu")],
)
def test_unknown_attention(arguments, field):
    with pytest.raises(Unknown) as caught:
        libraries.attention(*arguments)
    assert caught.value.field == field and caught.value.known


def test_refused_operands():
    recipe, x = libraries.attention("cudnn", "bf16"), np.zeros((2, 8, 64), np.uint16)
    with pytest.raises(Unknown, match="heads of size 256"):
        recipe.product(*[np.zeros((1, 8, 256), np.uint16)] * 3)
    with pytest.raises(Unknown, match="causal attention of 4 queries and 8 keys"):
        recipe.product(x[:, :4], x, x, causal=True)
    with pytest.raises(ValueError, match="repeat the keys"):
        recipe.product(x, x[:1], x[:1])
    with pytest.raises(TypeError):
        recipe.product(x.astype(np.float32), x, x)


# -- rows ----------------------------------------------------------------------------------------------------------------
ROWS = {"softmax": row_operations.softmax, "layernorm": row_operations.layer_norm, "rmsnorm": row_operations.rms_norm}


@pytest.mark.parametrize("name", [n for n in RECORDED if n.startswith("pointwise") and n.split("/")[1] in ROWS])
def test_recorded_rows(name):
    _, operation, dtype = name.split("/")
    x = np.random.default_rng([512, 9]).standard_normal((16, 512)).astype(np.float32)
    if dtype == "bfloat16":
        x = decode(encode(x, "bf16", "rne"), "bf16", np.float32)
    found = ROWS[operation](x)
    assert digest(encode(found, "bf16", "rne") if dtype == "bfloat16" else found) == RECORDED[name]["sha256"]


@pytest.mark.parametrize("length", [1, 4, 60, 96, 128, 132, 300, 1000])
def test_rows_are_near_the_truth(length):
    """All paths of lengths: a wrong element or a lost one is far outside of the rounding."""
    x = np.random.default_rng(length).standard_normal((5, length)).astype(np.float32)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(row_operations.softmax(x).sum(-1), 1, rtol=1e-6)
    assert (np.abs(row_operations.sums(x) - wide.sum(-1)) <= 2.0**-24 * length * np.abs(wide).sum(-1)).all()
    if length % 4 == 0:
        root = np.sqrt(np.square(wide).mean(-1, keepdims=True) + 1e-6)
        np.testing.assert_allclose(row_operations.rms_norm(x, eps=1e-6), wide / root, rtol=3e-6)
        normal = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
        weight, bias = np.random.default_rng(1).standard_normal((2, length)).astype(np.float32)
        np.testing.assert_allclose(row_operations.layer_norm(x), normal, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(
            row_operations.layer_norm(x, weight, bias), weight * normal + bias, rtol=1e-4, atol=1e-4
        )


def test_unknown_rows():
    with pytest.raises(Unknown, match="rows of 1025"):
        row_operations.softmax(np.zeros((2, 1025), np.float32))
    with pytest.raises(Unknown, match="rows of 130"):
        row_operations.sums(np.zeros((2, 130), np.float32))
    with pytest.raises(Unknown, match="rows of 8192"):
        row_operations.sums(np.zeros((16, 8192), np.float32))
    with pytest.raises(Unknown, match="rows of 6"):
        row_operations.layer_norm(np.zeros((2, 6), np.float32))
    with pytest.raises(TypeError, match="float64"):
        row_operations.means(np.zeros((2, 8)))
