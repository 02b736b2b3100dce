"""Trees of sums: numpy, BLAS, engines, recipes; what they say, and inputs on which two of them differ."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorcore_models as tcm
from tensorcore_models import probing
from tensorcore_models.explanations.tree import Operation, Tree
from tensorcore_models.libraries.recipe import Recipe
from tensorcore_models.orders.order import Chain, Sum
from tensorcore_models.probing.tree_search import Inconsistent, TreeSearch


def chain(n: int) -> Tree:
    """One after the other."""
    return Tree(n, tuple(Operation((0, 1) if i == 1 else (n + i - 2, i)) for i in range(1, n)))


def evaluated(tree: Tree, x: np.ndarray) -> np.ndarray:
    """Sums of rows in float32, every operation exact and then rounded; aligned ones lose what is below 2^-24 of the largest."""
    values = [x[:, leaf].astype(np.float64) for leaf in range(tree.leaves)]
    for operation in tree.operations:
        addends = np.stack([values[a] for a in operation.addends])
        if operation.kind == "aligned":
            largest = np.abs(addends).max(axis=0)
            addends = np.where(np.abs(addends) < largest * 2.0**-40, 0, addends)
        values.append(addends.sum(axis=0).astype(np.float32).astype(np.float64))
    return values[-1]


@st.composite
def trees(draw):
    """Random trees of aligned operations."""
    leaves = draw(st.integers(2, 40))
    open_nodes, operations = list(range(leaves)), []
    while len(open_nodes) > 1:
        width = draw(st.integers(2, min(5, len(open_nodes))))
        picked = [open_nodes.pop(draw(st.integers(0, len(open_nodes) - 1))) for _ in range(width)]
        operations.append(Operation(tuple(picked)))
        open_nodes.append(leaves + len(operations) - 1)
    return Tree(leaves, tuple(operations))


@given(trees())
def test_random_trees_are_found(tree):
    found = probing.summation_tree(lambda x: evaluated(tree, x), tree.leaves, batched=True)
    assert found.same(tree) and found.difference(tree) is None


@given(trees(), trees())
def test_trees_that_differ_have_an_input_that_shows_it(one, other):
    if one.leaves != other.leaves:
        with pytest.raises(ValueError, match="no input fits both"):
            one.difference(other)
        return
    shown = one.difference(other)
    assert (shown is None) == one.same(other)
    if shown is not None:
        x = np.ones((1, one.leaves), np.float32)
        x[0, shown.i], x[0, shown.j] = 2.0**100, -(2.0**100)
        assert (evaluated(one, x)[0], evaluated(other, x)[0]) == shown.counts


def test_a_chain_takes_few_sums_and_numpy_s_cumsum_is_one():
    tree = probing.summation_tree(lambda x: np.cumsum(x, axis=1)[:, -1], 2000, batched=True)
    assert tree.same(chain(2000)) and tree.depth == 1999
    assert tree.calls < 5 * 2000
    assert "1999 of 2 addends" in tree.summary and "operations" in str(tree)


def test_numpy_s_sum_is_blocks_of_eight_lanes():
    """numpy's documented pairwise summation: eight lanes in blocks of 128, halves above (float64 on x86 and Arm)."""
    tree = probing.summation_tree(lambda x: x.sum(), 1024, dtype=np.float64)
    assert tree.calls < 12 * 1024
    root = tree.operations[-1]
    halves = [tree.sizes[addend - 1024] for addend in root.addends]
    assert halves == [512, 512]
    lanes = [o for o in tree.operations if set(o.addends) == {0, 8}]
    assert len(lanes) == 1


def test_float16_counts_beyond_its_integers():
    """2048 is the largest run of integers of float16: longer sums are counted in parts."""
    tree = probing.summation_tree(lambda x: np.cumsum(x.astype(np.float16))[-1], 2100, dtype=np.float16)
    assert tree.same(chain(2100))


def test_blas_on_thousands_of_terms():
    ones = np.ones(4096, np.float32)
    tree = probing.summation_tree(lambda x: np.dot(x, ones), 4096)
    assert tree.leaves == 4096 and tree.calls < 40 * 4096


def test_tensor_cores_interleaving_and_exact_sums():
    hopper = probing.summation_tree(tcm.get_instruction("hopper:mma.m16n8k16.f32.f16.f16.f32"), 256)
    assert [len(o.addends) for o in hopper.operations] == [17] * 16 and hopper.name(256) == "c"
    assert set(hopper.operations[0].addends) == {*range(16), 256}
    fp8 = probing.summation_tree(tcm.get_instruction("hopper:mma.m16n8k32.f32.e4m3.e4m3.f32"), 32)
    assert set(fp8.operations[0].addends) == {k for k in range(32) if k // 2 % 2 == 0}
    assert 32 in fp8.operations[-1].addends  # c comes last
    exact = probing.summation_tree(tcm.get_instruction("cdna1:v_mfma_f32_32x32x4f16"), 16)
    assert [o.kind for o in exact.operations] == ["exact"] * 4 and "exact" in exact.summary
    groups = probing.summation_tree(tcm.get_instruction("cdna2:v_mfma_f32_32x32x8f16"), 8)
    assert {frozenset(o.addends) for o in groups.operations} >= {frozenset({0, 1}), frozenset({2, 3})}
    lanes = probing.summation_tree(tcm.get_instruction("x86:tdpbf16ps.m16n16k32.f32.bf16.bf16.f32"), 32)
    assert frozenset({0, 2}) in {frozenset(o.addends) for o in lanes.operations}


def test_recipes_of_libraries():
    engine = tcm.get_instruction("ampere:mma.m16n8k16.f32.f16.f16.f32")
    split = Recipe(engine, 64, Sum((Chain((range(0, 32),)), Chain((range(32, 64),)))))
    tree = probing.summation_tree(split, 64)
    assert [tree.sizes[a - 64] for a in tree.operations[-1].addends] == [32, 32]
    whole = probing.summation_tree(Recipe(engine, 64, Chain((range(64),))), 64)
    shown = tree.difference(whole)
    assert not tree.same(whole) and shown.counts[0] != shown.counts[1]


def test_engines_with_k_orders():
    engine = tcm.get_instruction("ampere:mma.m16n8k16.f32.f16.f16.f32")
    one = np.ones((96, 1), np.float16)

    def split(x):
        return engine.gemm(x[None].astype(np.float16), one, k_order="split_k:2")[0, 0]

    tree = probing.summation_tree(split, 96, dtype=np.float16)
    assert [tree.sizes[a - 96] for a in tree.operations[-1].addends] == [48, 48]


def test_a_function_may_round_its_addends_to_fp16():
    """2^126 is infinite there: X and y of fp16 are tried, too."""
    engine = tcm.get_instruction("ampere:mma.m16n8k16.f32.f16.f16.f32")
    one = np.ones((64, 1), np.float16)

    def narrow(x):
        with np.errstate(over="ignore"):
            return engine.gemm(x[None].astype(np.float16), one)[0, 0]

    tree = probing.summation_tree(narrow, 64)
    assert [len(o.addends) for o in tree.operations] == [8, *[9] * 7]


def test_json_text_and_picture(tmp_path):
    tree = probing.summation_tree(tcm.get_instruction("volta:mma.m8n8k4.f32.f16.f16.f32"), 8)
    again = Tree.from_dict(json.loads(tree.to_json()))
    assert again == tree
    assert "0..3 + c" in str(tree)
    tree.picture(str(tmp_path / "tree.svg"))
    assert (tmp_path / "tree.svg").read_text().count("<rect") == 9 + len(tree.operations)
    assert tree.picture(tmp_path / "tree.png") == ["tree.png"]
    assert (tmp_path / "tree.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"ends in \.png, \.pdf, \.svg"):
        tree.picture(tmp_path / "tree.gif")


def test_a_deep_tree_is_drawn_and_told():
    tree = chain(3000)
    assert tree.svg().count("<rect") == 5999
    assert len(tree.outline()) == 41 and "... 2959 operations" in tree.outline()


def test_progress_reaches_all_leaves():
    seen = []
    probing.summation_tree(lambda x: np.cumsum(x)[-1], 50, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (50, 50) and all(a < b for a, b in pairwise(seen))


@pytest.mark.parametrize(
    ("f", "n", "message"),
    [
        (lambda x: x.sum(), 1, "at least 2"),
        (lambda x: x.sum() * 0.3, 20, "no order explains the results"),
        (tcm.get_instruction("hopper:mma.m16n8k32.s32.s8.s8.s32"), 32, "multiplies integers"),
        (tcm.get_instruction("rtx_blackwell:mma.m16n8k32.f32.e2m1.e2m1.f32"), 32, "too few binades"),
    ],
)
def test_what_has_no_tree_is_refused(f, n, message):
    with pytest.raises(ValueError, match=message):
        probing.summation_tree(f, n)


def test_types_are_checked():
    with pytest.raises(TypeError, match="an engine, a recipe or a function"):
        probing.summation_tree(3, 4)
    with pytest.raises(ValueError, match="floating-point type"):
        probing.summation_tree(sum, 4, dtype=np.int32)
    with pytest.raises(ValueError, match="taken before"):
        Tree(3, (Operation((0, 1)), Operation((0, 3))))


def test_counts_that_contradict_the_tree_are_noticed():
    """Right against the first pivots, wrong later: the pairs that are tried at the end see it."""
    true = chain(30)
    asked = 0

    def counts(masks):
        nonlocal asked
        asked += len(masks)
        rows = []
        for row in masks:
            i, j = int(np.flatnonzero(row == 2)[0]), int(np.flatnonzero(row == 3)[0])
            kept = sum(1 for k in np.flatnonzero(row == 1) if k > max(i, j))
            rows.append(kept if asked < 95 else 0)
        return np.array(rows)

    with pytest.raises(Inconsistent):
        TreeSearch(counts, true.leaves, lambda done, total: None, 100).find()
