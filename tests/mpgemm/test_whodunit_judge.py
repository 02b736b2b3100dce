"""Whodunit judged from outside: products of known origin, and a reader of its sentence that shares no code with it."""

import re

import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.experiments.whodunit import whodunit

DEVICES = ("v100", "t4", "a100", "rtx4060", "h100", "b200", "mi100", "mi250", "mi300x")


def origin(seed):
    """(A, B, C, names of what made C or None for NumPy, words of its order)."""
    rng = np.random.default_rng([20261122, seed])
    m, n = (int(x) for x in rng.integers(8, 40, 2))
    k = int(rng.choice([128, 256, 320, 512, 768, 1000]))
    scale = rng.choice([0.0, 1.0, 3.0])
    a, b = (rng.standard_normal(s) * np.exp2(rng.normal(0, scale, s)) for s in ((m, k), (k, n)))
    rounded = bool(rng.integers(2))
    if seed % 4 == 0:
        dtype = rng.choice([np.float16, np.float32])
        a, b = (np.clip(x, -60, 60).astype(dtype).astype(np.float32) for x in (a, b))
        c = a @ b
        return a.astype(dtype), b.astype(dtype), c.astype(np.float16) if rounded else c, None, ""
    device = str(rng.choice(DEVICES))
    fmt = str(rng.choice(["fp16", "bf16"] if device not in ("v100", "t4") else ["fp16"]))
    a, b = (np.clip(x, -60, 60).astype(tcm.get_format(fmt).dtype) for x in (a, b))
    engine = tcm.default_instruction(device, fmt)
    order, words = [
        ({}, "one chain over k"), ({"k_order": "split_k:2"}, "split-k in 2 parts"),
        ({"k_order": "split_k:4"}, "split-k in 4 parts"), ({"promote_every": 128}, "added outside every 128 products"),
    ][int(rng.integers(4))]  # fmt: skip
    if order.get("promote_every", 1) >= k:
        order, words = {}, "one chain over k"
    c = engine.gemm(a, b, **order)
    return a, b, c.astype(a.dtype) if rounded else c, engine.label, words


def judge(a, b, c, maker, words, answer):
    """Everything that the sentence and the lists say, checked against the product."""
    text = answer.verdict
    exact = {name for s in answer.exact for name in (s.who, *s.same)}
    if maker is None:  # NumPy: only what a CPU does can be right, and nothing may be named alone by chance
        if answer.settled:
            assert any(s.who.startswith("cpu: ") for s in answer.exact), text
    else:
        assert maker in exact, text
        assert any(words in s.how and maker in (s.who, *s.same) for s in answer.exact), text
    counts = [int(x) for x in re.findall(r"all (\d+) elements", text)]
    assert counts == [c.size] and all(s.agree == s.of == c.size for s in answer.exact)
    assert all(s.agree < s.of for s in answer.nearest)
    named = re.search(r"candidates only (.*?) (?:\(|gives?|in \d)", text)
    assert (named is not None) == answer.settled
    if answer.settled and maker is not None:
        assert maker in {n for s in answer.exact for n in (s.who, *s.same)}
    told = re.search(r"By chance (about|fewer than) ([0-9.e+]+) of them", text)
    if answer.exact:
        assert told and (told[1] == "fewer than") == (answer.chance < 0.05)
    for near in answer.nearest:
        i, j = near.first.row, near.first.column
        assert float(c[i, j]) == near.first.found != near.first.candidate


def judged(seed):
    a, b, c, maker, words = origin(seed)
    answer = whodunit(a, b, np.ascontiguousarray(c), methods=[])
    judge(a, b, c, maker, words, answer)
    return answer


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_the_truth_leads_and_the_sentence_holds(seed):
    judged(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 44))
def test_forty_products_of_random_known_origin(seed):
    judged(seed)


@pytest.mark.full
def test_numpy_rounded_to_fp16_is_nobodys_by_chance():
    """The result that was told "ampere:mma.m8n8k4 in 5 parts": whoever gives all of it, no arithmetic is named alone."""
    rng = np.random.default_rng(20)
    a, b = rng.standard_normal((32, 512)).astype(np.float16), rng.standard_normal((512, 24)).astype(np.float16)
    c = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
    answer = whodunit(a, b, c)
    assert not answer.settled or any(s.who.startswith("cpu: ") for s in answer.exact)
    assert answer.chance > 0.05
