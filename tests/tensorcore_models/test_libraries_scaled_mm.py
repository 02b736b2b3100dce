"""`torch._scaled_mm`: every recorded result of an RTX 4060, bit for bit; and what declines."""

import json
from collections import Counter

import numpy as np
import pytest

from tensorcore_models import libraries
from tensorcore_models.libraries import Unknown, scaled_mm, scaled_mm_recipe

FORMATS = {"e4m3": "e4m3fn", "e5m2": "e5m2"}
OUTPUTS = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "float8_e4m3fn": "e4m3fn", "float8_e5m2": "e5m2"}


def scalar(parameters, name):
    bits = parameters.get(name)
    return None if bits is None else np.uint32(bits).view(np.float32)


@pytest.mark.full
def test_every_recorded_result(hardware_vectors):
    """All 385 cases of kind gemm are in scope: none is left out (3 s)."""
    folder = hardware_vectors / "rtx4060"
    if not folder.is_dir():
        pytest.skip("recordings of the RTX 4060 not found: MPGEMM_VECTORS has no folder rtx4060")
    cases = [case for case in json.loads((folder / "index.json").read_text())["cases"] if case["kind"] == "gemm"]
    shards = {name: np.load(folder / name) for name in {case["inputs"]["a"][0] for case in cases}}
    met: Counter = Counter()
    for case in cases:
        a, b = (shards[shard][key] for shard, key in (case["inputs"]["a"], case["inputs"]["b"]))
        for output in case["outputs"]:
            p = {**case["params"], **output["params"]}
            got = scaled_mm(
                a, b.T, scalar(p, "scale_a_bits"), scalar(p, "scale_b_bits"), device="rtx4060",
                a_format=FORMATS[p["fmt_a"]], b_format=FORMATS[p["fmt_b"]], out_format=OUTPUTS[p["out_dtype"]],
                fast_accumulation=p["fast"], split_k=p["splitk"]["S"], scheme=p["splitk"]["scheme"],
                scale_result=scalar(p, "scale_result_bits"),
            )  # fmt: skip
            shard, key = output["expect"]["bits"]
            np.testing.assert_array_equal(got, shards[shard][key], err_msg=f"{case['id']} {output['name']}")
            met[p["out_dtype"], p["fast"], p["splitk"]["scheme"]] += 1
    assert sum(met.values()) == 2539
    assert {out for out, _, _ in met} == set(OUTPUTS)
    assert {(fast, scheme) for _, fast, scheme in met} == {
        (True, "none"), (False, "none"), (True, "serial"), (False, "serial"), (True, "pairwise"), (False, "pairwise"),
    }  # fmt: skip


def pieces(recipe):
    return [[(p.start, p.stop) for p in chain.pieces] for chain in recipe.chains]


def test_orders_as_published():
    assert pieces(scaled_mm_recipe(400, fast_accumulation=True)) == [[(0, 400)]]
    assert pieces(scaled_mm_recipe(400)) == [[(0, 128)], [(128, 256)], [(256, 384)], [(384, 400)]]
    split = scaled_mm_recipe(400, split_k=2, scheme="serial")
    assert pieces(split) == [[(0, 64), (128, 192)], [(256, 320), (384, 400)], [(64, 128), (192, 256)], [(320, 384)]]
    three = scaled_mm_recipe(192, split_k=3, scheme="pairwise", fast_accumulation=True)
    assert pieces(three) == [[(128, 192)], [(0, 64)], [(64, 128)]]  # (p2 + p0) + p1
    hopper = scaled_mm_recipe(800, device="h100", split_k=3)
    assert pieces(hopper) == [
        [(0, 128)],
        [(128, 256)],
        [(256, 384)],
        [(384, 512)],
        [(512, 640)],
        [(640, 768)],
        [(768, 800)],
    ]
    assert [len(part.parts) for part in hopper.order.parts] == [3, 3, 1]
    assert pieces(scaled_mm_recipe(256, device="h100", split_k=4, fast_accumulation=True))[2:] == [
        [],
        [],
    ]  # empty parts are +0


def test_h100_restarts_in_fp32():
    """13 fraction bits lose small products beside a large one; a restart every 128 keeps those of other blocks."""
    k = 256
    a, b = np.full((16, k), 0x38, np.uint8), np.full((k, 16), 0x38, np.uint8)  # 1.0
    a[:, 0] = b[0] = 0x7E  # 448 * 448
    slow = scaled_mm(a, b, device="h100", out_format="fp32").view(np.float32)
    fast = scaled_mm(a, b, device="h100", out_format="fp32", fast_accumulation=True).view(np.float32)
    assert slow[0, 0] == scaled_mm(a[:, :128], b[:128], device="h100", out_format="fp32").view(np.float32)[0, 0] + 128
    assert fast[0, 0] < slow[0, 0]


DECLINES = {
    "device": {"device": "h200"},
    "b_format": {"a_format": "e5m2", "b_format": "e5m2"},
    "a_format": {"a_format": "fp16"},
    "scheme": {"split_k": 2, "scheme": "tree"},
    "out_format": {"out_format": "tf32"},
    "scale_a": {"scale_a": np.ones(4, np.float32)},
}


@pytest.mark.parametrize("field", DECLINES)
def test_unknown_cases_decline(field):
    a, b = np.zeros((4, 32), np.uint8), np.zeros((32, 4), np.uint8)
    with pytest.raises(Unknown) as info:
        scaled_mm(a, b, **DECLINES[field])
    assert info.value.field == field and info.value.known and isinstance(info.value, libraries.Unknown | ValueError)


def test_bad_input():
    a, b = np.zeros((4, 24), np.uint8), np.zeros((24, 4), np.uint8)
    with pytest.raises(ValueError, match="multiples of 16"):
        scaled_mm(a, b)
    with pytest.raises(ValueError, match="split_k is 0"):
        scaled_mm_recipe(32, split_k=0)
