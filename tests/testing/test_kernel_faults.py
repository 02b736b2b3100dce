"""Faults of kernels, made with numpy alone, are caught and called by their names: on several shapes, formats and seeds."""

import collections
import itertools
import re

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.testing import assert_gemm_close

TYPES = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "fp32": np.float32}
DEVICES = {"fp16": "h100", "bf16": "a100"}
SHAPES = ((64, 192, 48), (96, 1024, 64), (256, 2048, 1))


def operands(shape, fmt, seed, positive):
    rng = np.random.default_rng([seed, 31])
    m, k, n = shape
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    a, b = (abs(a), abs(b)) if positive else (a, b)
    return a.astype(TYPES[fmt]), b.astype(TYPES[fmt])


def unit(fmt):
    if fmt == "e4m3":
        return tcm.default_instruction("b200", "e4m3fn", path="tcgen05")
    return tcm.default_instruction(DEVICES[fmt], fmt)


def kernel(a, b, fmt):
    if fmt == "fp32":
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    return unit(fmt).gemm(a, b).astype(np.float32)


def narrow(dtype, step):
    """Sums kept in a narrow type, rounded after every `step` products."""

    def fault(a, b, fmt):
        total = np.zeros((a.shape[0], b.shape[1]), dtype)
        a, b = a.astype(np.float64), b.astype(np.float64)
        for k in range(0, a.shape[1], step):
            total = (total.astype(np.float64) + a[:, k : k + step] @ b[k : k + step]).astype(dtype)
        return total.astype(np.float32)

    return fault


def dropped(choose):
    def fault(a, b, fmt):
        kept = np.ones(a.shape[1], bool)
        kept[choose(a.shape[1])] = False
        return kernel(np.ascontiguousarray(a[:, kept]), np.ascontiguousarray(b[kept]), fmt)

    return fault


def transposed(a, b, fmt):
    d = kernel(a, b, fmt)
    d[16:32, 16:32] = d[16:32, 16:32].T.copy()
    return d


def stale(a, b, fmt):
    d = kernel(a, b, fmt)
    out = d.copy()
    out[32:48, 16:32] += d[16:32, 16:32]
    return out


def zero_tile(a, b, fmt):
    d = kernel(a, b, fmt)
    d[16:32] = 0
    return d


def tf32(x):
    bits = x.view(np.uint32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & 0xFFFFE000).view(np.float32)


def spread_out(k):
    return np.random.default_rng(k).choice(k, 8, replace=False)


#: fault: (how it is made, what the diagnosis must say).
FAULTS = {
    "FP16 accumulation": (narrow(np.float16, 1), "fp16 accumulation"),
    "FP16 accumulation, 16 at a time": (narrow(np.float16, 16), "fp16 accumulation"),
    "BF16 accumulation": (narrow(ml_dtypes.bfloat16, 1), "bf16 accumulation"),
    "BF16 accumulation, 16 at a time": (narrow(ml_dtypes.bfloat16, 16), "bf16 accumulation"),
    "rounded to BF16 first": (lambda a, b, f: kernel(a, b, f).astype(TYPES["bf16"]).astype(np.float32),
                              "output rounded twice.*bf16"),
    "rounded to FP16 first": (lambda a, b, f: kernel(a, b, f).astype(np.float16).astype(np.float32),
                              "output rounded twice.*fp16"),
    "TF32 operands": (lambda a, b, f: kernel(tf32(a), tf32(b), f), "operands were rounded to tf32"),
    "transposed tile": (transposed, "blocks of 16 x 16 are transposed"),
    "stale accumulator": (stale, "stale accumulator"),
    "zeros in a tile": (zero_tile, "0 in all wrong elements"),
    "dropped block": (dropped(lambda k: slice(64, 96)), "k 64:96 is missing"),
    "dropped block, not aligned": (dropped(lambda k: slice(71, 87)), "k 71:87 is missing"),
    "one dropped k": (dropped(lambda k: 77), "k = 77 is missing"),
    "eight dropped k": (dropped(spread_out), "k = .* are missing"),
    "half the result": (lambda a, b, f: kernel(a, b, f) / 2, "wrong scale.*0.5"),
}  # fmt: skip


def said(name, shape, fmt, seed, positive, out=np.float32):
    """What the check says of a fault: None where it passes, "" where there is no such fault here."""
    if ("tile" in name or "stale" in name) and shape[2] < 32 and name != "zeros in a tile":
        return ""
    a, b = operands(shape, fmt, seed, positive)
    with np.errstate(over="ignore", invalid="ignore"):
        d = FAULTS[name][0](a, b, fmt).astype(out)
    try:
        assert_gemm_close(d, a, b, engine="ieee" if fmt == "fp32" else unit(fmt))
    except AssertionError as error:
        text = str(error)
        return "vacuous" if "vacuous" in text else "; ".join(
            line.split("looks like ")[1] for line in text.splitlines() if "looks like" in line
        )  # fmt: skip
    return None


@pytest.mark.sweep(4)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught_and_named(name, positive):
    fmt = "fp32" if name == "TF32 operands" else "fp16"
    assert re.search(FAULTS[name][1], said(name, SHAPES[0], fmt, 3, positive))


def table(seeds):
    """{fault: Counter of right, wrong, passes, vacuous}, and what was said wrongly; every other seed has positive operands."""
    found, wrong = collections.defaultdict(collections.Counter), collections.Counter()
    for name in FAULTS:
        for shape, fmt, seed in itertools.product(SHAPES, ("fp16", "bf16", "e4m3", "fp32"), seeds):
            text = said(name, shape, fmt, seed, bool(seed % 2)) if (fmt == "fp32") == (name == "TF32 operands") else ""
            if text == "":
                continue
            kind = "passes" if text is None else "vacuous" if text == "vacuous" else "wrong"
            if kind == "wrong" and re.search(FAULTS[name][1], text):
                kind = "right"
            found[name][kind] += 1
            wrong[name, fmt, shape, seed % 2, text[:90] if text else ""] += kind == "wrong"
    return found, +wrong


@pytest.mark.slow
def test_the_table_of_faults():
    """Of what is caught at least nine in ten are named rightly, and at least half of every fault is caught."""
    found, wrong = table(range(5))
    right = sum(counts["right"] for counts in found.values())
    assert right >= 0.9 * (right + wrong.total()), wrong.most_common(20)
    assert all(counts["passes"] <= 0.5 * counts.total() for counts in found.values()), found


if __name__ == "__main__":
    names, mistaken = table(range(5))
    for fault, numbers in names.items():
        print(f"{fault:34}", dict(numbers))
    for case, count in mistaken.most_common(60):
        print(count, case)
