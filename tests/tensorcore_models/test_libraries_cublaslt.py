"""cuBLASLt's recipes against the published plans, and the values that decline."""

import json

import pytest

from tensorcore_models import libraries
from tensorcore_models.libraries import Unknown, cublaslt, tail_loss
from tensorcore_models.libraries.cublaslt_tables import FIELDS, TARGETS
from tensorcore_models.orders.order import Chain, Sum, leaves

CONFIG = {"ALGO_ID": 66, "STAGES_ID": 35, "SPLITK_NUM": 1, "REDUCTION_SCHEME": 0, "CUSTOM_OPTION": 0}
SIZE = {"m": 64, "k": 4096, "n": 64, "format": "fp16"}


# -- the plans, read independently: boundaries of accumulators, as the plans' kernels state them -----------------------
def boundaries(plan, k: int, m: int, n: int):
    """(values of k of each accumulator in the order of joining, how they are joined) as plain nested lists."""
    mode = plan["mode"]
    if mode == "plain":
        return [list(range(k))]
    if mode in ("split", "split_blocks"):
        step = plan["k_chunk"] if mode == "split" else plan["block_k"]
        out = []
        for start in range(0, k, plan["k_chunk"]):
            stop = min(start + plan["k_chunk"], k)
            out += [list(range(x, min(x + step, stop))) for x in range(start, stop, step)]
        return out
    if mode == "k_per_dot":
        return [list(range(k))]
    if mode == "splitk_groups":
        return [list(range(x, min(x + plan["k_chunk"], k))) for x in range(0, k, plan["k_chunk"])]
    if mode == "gemmsn":
        parts, block = plan["simt"]
        length = -(-k // parts)
        out = []
        for t in range(parts):
            low, high = t * length, min((t + 1) * length, k)
            out += [list(range(x, min(x + (block or k), high))) for x in range(low, high, block or k)] or [[]]
        return out
    if mode == "gemv_cslice":
        lanes, chunk = plan["gemv"]
        length = -(-k // lanes)
        out = []
        for lane in range(lanes):
            own = [x for x in range(lane * length, (lane + 1) * length) if x < k]
            out += [own[x : x + chunk] for x in range(0, len(own), chunk)] or [[]]
        return out
    if mode == "gemv13":
        (width, lanes, chunk, _), parts = plan["gemv"]
        length = -(-k // parts)
        width = width if width > 0 else min(-width, -(-length // lanes))
        accumulators: dict = {}
        for x in range(k):
            part, inside = divmod(x, length)
            tile, place = divmod(inside, width * lanes)
            accumulators.setdefault((part, place // width, tile // chunk if chunk else 0), []).append(x)
        return list(accumulators.values())
    assert mode == "gemv14"
    blocks, width = plan["gemv"]
    accumulators = {}
    for x in range(k):
        tile, place = divmod(x, 128 * width)
        accumulators.setdefault((tile % blocks, place // width, place % width), []).append(x)
    return list(accumulators.values())


def roundings(plan, k: int) -> list[int]:
    """Where the accumulator of a CUTLASS plan is rounded: ends of groups inside of the whole k."""
    length = plan.get("k_chunk", k)
    ends = []
    for start in range(0, k, length):
        size = min(length, k - start)
        residue = plan["leading_group_k"] if "leading_group_k" in plan else size % plan["block_k"]
        step = plan["k_per_dot"]
        inside = [*range(step, residue, step), residue] if residue else []
        inside += range(residue + step, size + 1, step)
        ends += [start + x for x in inside]
    return ends


def depth(order) -> int:
    return 0 if isinstance(order, Chain) else 1 + max(map(depth, order.parts))


@pytest.mark.parametrize("every", (41, pytest.param(1, marks=pytest.mark.full)), ids=("one in 41", "all"))
@pytest.mark.parametrize(("device", "name"), (("h100", "plan_sm90_lt13_1"), ("gb200", "plan_sm100_lt13_1")))
def test_every_published_plan(shared, device, name, every):
    cases = json.loads((shared / "cublaslt" / f"{name}.json").read_text())["cases"][::every]
    met = declined = 0
    for case in cases:
        fmt = {"fp8": "e4m3fn"}.get(case["kind"], case["kind"])
        size = {"m": case["M"], "k": case["K"], "n": case["N"], "format": fmt}
        config, plan = case["config"], case["plan"]
        if plan is None:
            declined += 1
            if config is None:  # the heuristic gave nothing: there is no configuration to ask about
                with pytest.raises(TypeError, match="mapping"):
                    cublaslt(device, "13.1", **size, config=config)
            else:
                with pytest.raises(Unknown) as info:
                    cublaslt(device, "13.1", **size, config=dict(zip(FIELDS, config, strict=True)))
                assert info.value.field in (*FIELDS, "format") and info.value.advice, case
            continue
        met += 1
        recipe = cublaslt(device, "13.1", **size, config=dict(zip(FIELDS, config, strict=True)))
        k, mode = case["K"], plan["mode"]
        chains = [[x for piece in chain.pieces for x in piece] for chain in recipe.chains]
        want = boundaries(plan, k, case["M"], case["N"])
        if mode in ("gemv13", "gemv14"):  # lanes are joined as a tree: the chains as a set here, the tree below
            assert sorted(filter(None, chains)) == sorted(want), case
        else:
            assert chains == want, case
        if mode in ("k_per_dot", "splitk_groups"):
            step = recipe.engine.k
            assert step == plan["k_per_dot"]
            ends = [
                p[min(x + step, len(p)) - 1] + 1
                for c in recipe.chains
                for p in c.pieces
                for x in range(0, len(p), step)
            ]
            assert ends == roundings(plan, k), case
        if mode == "splitk_groups" and isinstance(recipe.order, Sum):
            carried = (recipe.order.partials, recipe.order.carry)
            assert carried == {0: (None, None), 2: ("output", None), 3: (None, "output")}[plan["merge_scheme"]], case
        if mode == "split_blocks":
            assert depth(recipe.order) <= 2
    assert met > 1000 // every and declined > 200 // every


def products(order) -> list[int]:
    return [x for chain in leaves(order) for piece in chain.pieces for x in piece]


def lanes_meet(order, first: int, second: int) -> int:
    """How many products have joined when those of two values of k meet."""
    if isinstance(order, Chain):
        return len(products(order))
    held = [{first, second} & set(products(part)) for part in order.parts]
    for part, inside in zip(order.parts, held, strict=True):
        if len(inside) == 2:
            return lanes_meet(part, first, second)
    last = max(index for index, inside in enumerate(held) if inside)
    return sum(len(products(part)) for part in order.parts[: last + 1])


def test_a_butterfly_joins_opposite_lanes_first_and_the_second_pass_folds_128_threads():
    recipe = cublaslt("h100", "13.1", m=1, k=8, n=4, format="fp16", config={"ALGO_ID": 13, "CUSTOM_OPTION": 43})
    assert [lanes_meet(recipe.order, 0, x) for x in range(1, 8)] == [8, 4, 8, 2, 8, 4, 8]
    # 64 blocks of ones: u0 = (p0 + p32) + (p4 + p36) + ..., not p0 + p4 + ... (cublas_match, kernels.py)
    dot = cublaslt("h100", "13.1", m=1, k=64 * 128, n=1, format="fp16", config={"ALGO_ID": 14, "SPLITK_NUM": 32})
    wide = cublaslt("h100", "13.1", m=1, k=64 * 128, n=2, format="fp16", config={"ALGO_ID": 14, "SPLITK_NUM": 64})
    assert lanes_meet(wide.order, 0, 32 * 128) == 256
    assert lanes_meet(wide.order, 0, 4 * 128) == 512
    assert lanes_meet(dot.order, 0, 1) == 2  # a thread's two chains, each of one product here


# -- the loss of the last k --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("device", "k", "parts", "summed"), (("h100", 11528, 9, 11520), ("b200", 8648, 9, 8640), ("gb300", 8648, 9, 8640))
)
def test_the_published_losses(device, k, parts, summed):
    """Products of ones: what comes back is the number of values of k that were summed (cublas_gemm_bug_reproduce.py)."""
    import numpy as np

    recipe = cublaslt(device, "13.1", m=1, k=k, n=8, format="fp16", config={**CONFIG, "SPLITK_NUM": parts})
    one = np.uint16(0x3C00)
    out = recipe.gemm_bits(np.full((1, k), one), np.full((k, 8), one), out_format="fp32").view(np.float32)
    assert (out == summed).all() and recipe.lost.tolist() == list(range(summed, k))
    assert f"left out: {k - summed} values" in str(recipe)


def test_losses_follow_all_parts_of_the_condition():
    assert tail_loss(11528, 9, 64) == 8 and tail_loss(57608, 45, 64) == 8
    assert (
        tail_loss(11520, 9, 64)
        == tail_loss(11528, 8, 64)
        == tail_loss(11528, 7, 64)
        == tail_loss(64 * 18 + 9, 9, 64)
        == 0
    )
    cutlass = {**CONFIG, "ALGO_ID": 23, "STAGES_ID": 14, "SPLITK_NUM": 9}
    assert not cublaslt("h100", "13.1", m=1, k=1160, n=2, format="fp16", config=cutlass).lost.size
    with pytest.raises(Unknown, match="which was not measured on") as info:
        cublaslt("b200", "12.8", m=1, k=8648, n=8, format="fp16", config={**CONFIG, "SPLITK_NUM": 9})
    assert info.value.field == "SPLITK_NUM"


# -- what is not known -------------------------------------------------------------------------------------------------
DECLINES = {
    "device": ("h200", "13.1", {}, {}),
    "version": ("h100", "12.8", {}, {}),
    "format": ("h100", "13.1", {"format": "e5m2"}, {}),
    "ALGO_ID": ("h100", "13.1", {}, {"ALGO_ID": 41}),
    "STAGES_ID": ("h100", "13.1", {}, {"STAGES_ID": 34}),
    "REDUCTION_SCHEME": ("h100", "13.1", {}, {"ALGO_ID": 23, "STAGES_ID": 14, "SPLITK_NUM": 2, "REDUCTION_SCHEME": 3}),
    "SPLITK_NUM": ("h100", "13.1", {"k": 32}, {"SPLITK_NUM": 2}),
    "CUSTOM_OPTION": ("h100", "13.1", {"m": 1, "n": 9000}, {"ALGO_ID": 13, "CUSTOM_OPTION": 10}),
}


@pytest.mark.parametrize("field", DECLINES)
def test_unknown_values_decline_and_name_the_field(field):
    device, version, size, config = DECLINES[field]
    with pytest.raises(Unknown) as info:
        cublaslt(device, version, **{**SIZE, **size}, config={**CONFIG, **config})
    assert info.value.field == field and info.value.known and info.value.advice
    assert all(str(value) in str(info.value) for value in info.value.known)


def test_bad_input():
    with pytest.raises(ValueError, match="'SPLIT', expected fields of ALGO_ID"):
        cublaslt("h100", "13.1", **SIZE, config={**CONFIG, "SPLIT": 1})
    with pytest.raises(ValueError, match="lacks ALGO_ID"):
        cublaslt("h100", "13.1", **SIZE, config={"STAGES_ID": 35})
    with pytest.raises(TypeError, match="STAGES_ID must be an integer, got '35'"):
        cublaslt("h100", "13.1", **SIZE, config={**CONFIG, "STAGES_ID": "35"})
    with pytest.raises(ValueError, match="k is 0"):
        cublaslt("h100", "13.1", **{**SIZE, "k": 0}, config=CONFIG)


@pytest.mark.parametrize("device", TARGETS)
@pytest.mark.parametrize("format", ("fp16", "bf16", "e4m3fn"))
def test_every_device_has_the_instruction(device, format):
    stage = 36 if format == "e4m3fn" else 35
    recipe = cublaslt(device, "13.1.1", **{**SIZE, "format": format}, config={**CONFIG, "STAGES_ID": stage})
    assert recipe.engine.path == ("wgmma" if device == "h100" else "tcgen05")
    # Only the fp8 kernels of sm_90 restart at each tile.
    assert len(recipe.chains) == (4096 // 128 if (device, format) == ("h100", "e4m3fn") else 1)
    assert isinstance(recipe, libraries.Recipe)
