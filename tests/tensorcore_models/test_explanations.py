"""Words, formulas and trees of every accumulator, and pictures of trees."""

import dataclasses
import json
import re
import xml.etree.ElementTree as ET

import pytest

import tensorcore_models as tcm
from tensorcore_models import libraries, probing
from tensorcore_models.accumulators import Accumulator, Unpublished
from tensorcore_models.engines.description import words_of_engine
from tensorcore_models.explanations.descriptions import plain
from tensorcore_models.explanations.tree import Tree
from tensorcore_models.families import FAMILIES
from tensorcore_models.orders.trees import tree_of, tree_of_order

DISTINCT = list({(row.accumulator, row.k): row for row in tcm.list_instructions()}.values())
PUBLISHED = [row for row in DISTINCT if row.published]
ALGORITHMS = [family for family in FAMILIES if family is not Unpublished]
PARAMETRIC = [
    tcm.ParametricDotAdd(4, alignment=alignment, c_position=c_position, fraction_bits=bits)
    for alignment in ("global", "pairwise", "odd_even")
    for c_position in ("early", "late")
    for bits in (None, 23)
]


def terms(tree):
    """The addends of each operation, results in brackets."""
    return [[f"[{x - tree.leaves}]" if x >= tree.leaves else tree.name(x) for x in o.addends] for o in tree.operations]


# -- words -------------------------------------------------------------------------------------------------------------
def test_every_class_has_words_and_an_order():
    assert len(ALGORITHMS) > 10
    for algorithm in ALGORITHMS:
        assert algorithm.words is not Accumulator.words, f"{algorithm.__name__} has no words"
        spec = next((row.accumulator for row in PUBLISHED if type(row.accumulator) is algorithm), PARAMETRIC[0])
        assert tree_of(spec, 16).leaves == 17


@pytest.mark.parametrize("row", DISTINCT, ids=str)
def test_the_words_give_the_parameters(row):
    words = words_of_engine(row)
    text = f"{words.title} {' '.join(words.steps)} {words.formula}"
    for name in ("fraction_bits", "exponent_floor", "output_fraction_bits", "dot_fraction_bits", "group", "lanes"):
        value = getattr(row.accumulator, name, None)
        assert value is None or re.search(rf"(?<![\d-]){re.escape(str(value))}(?!\d)", text), (name, value, text)
    assert bool(words.formula) == row.published and words.title and words.steps and words.brief
    assert json.loads(json.dumps(words.to_dict()))["formula"] == list(map(plain, words.equations))


@pytest.mark.parametrize("spec", [*PARAMETRIC, *(row.accumulator for row in PUBLISHED)], ids=repr)
def test_formulas_are_plain_text_too(spec):
    text = " ".join(map(plain, spec.words("fp32").equations))
    assert not set("\\{}") & set(text) and text.count("(") == text.count(")"), text


def test_words_of_a_step_of_two():
    words = words_of_engine(tcm.get_instruction("a100", "mma.m16n8k16.f32.f16.f16.f32"))
    assert list(map(plain, words.equations)) == [
        "e = max(-132, e_c, e_(a_i) + e_(b_i))",
        "d = RZ(T(c) + sum(i=1..8) T(a_i b_i))",
        "T(x) = 2^(e-24) RZ(x 2^(24-e))",
    ]
    assert "a chain of 2 such steps" in words.steps[-1] and words.window[1].endswith(f"1.{'x' * 24}|")


def test_a_class_of_ones_own_is_named():
    @dataclasses.dataclass(frozen=True)
    class Own(Accumulator):
        pass

    assert Own().words("fp32").brief == "computes by Own" and not Own().words("fp32").formula
    assert tree_of(Own(), 4) is None


# -- trees -------------------------------------------------------------------------------------------------------------
@pytest.mark.sweep(46)
@pytest.mark.parametrize("row", PUBLISHED, ids=str)
def test_the_tree_is_the_one_that_is_observed(row):
    """Where sums show it; not with 4-bit operands."""
    tree = tree_of(row.accumulator, row.k)
    assert (tree.leaves, tree.names) == (row.k + 1, ((row.k, "c"),))
    if not row.accumulator.shows_order(row.formats) or row.a_format == "e2m1" or row.k == 1:
        return
    assert tree.same(probing.summation_tree(row, row.k))


def test_trees_have_the_shape_of_the_algorithm():
    assert terms(tree_of(tcm.FusedDotAdd(4, 23), 8)) == [["c", "0", "1", "2", "3"], ["[0]", "4", "5", "6", "7"]]
    assert tree_of(tcm.FusedDotAdd(4, 23), 8).outline() == ["[0] = 0..3 + c (F=23)", "[1] = [0] + 4..7 (F=23)"]
    assert terms(tree_of(tcm.GroupPairwiseSum(4), 4)) == [["0", "1"], ["2", "3"], ["[0]", "[1]"], ["c", "[2]"]]
    assert terms(tree_of(tcm.SequentialFMA(pair_order="odd_first"), 4)) == [
        ["c", "1"], ["[0]", "0"], ["[1]", "3"], ["[2]", "2"],
    ]  # fmt: skip
    assert terms(tree_of(tcm.LanedFMA(terms=4), 4)) == [["0", "2"], ["1", "3"], ["[0]", "[1]"], ["c", "[2]"]]
    assert terms(tree_of(tcm.ParametricDotAdd(4, alignment="odd_even"), 4)) == [
        ["0", "2"], ["1", "3"], ["c", "[0]", "[1]"],
    ]  # fmt: skip
    assert terms(tree_of(tcm.ParametricDotAdd(4, c_position="late"), 4))[-1] == ["c", "[0]"]
    assert tree_of(Unpublished(), 4) is None


@pytest.mark.parametrize("spec", PARAMETRIC, ids=repr)
def test_parametric_trees_take_every_addend_once(spec):
    tree = tree_of(spec, 8)
    assert tree.leaves == 9 and Tree.from_dict(json.loads(tree.to_json())) == tree


def test_a_recipe_is_drawn_with_its_slices():
    config = {"ALGO_ID": 66, "STAGES_ID": 35, "SPLITK_NUM": 8, "REDUCTION_SCHEME": 2, "CUSTOM_OPTION": 0}
    recipe = libraries.cublaslt("h100", "13.1", m=64, k=4096, n=64, format="fp16", config=config)
    tree = tree_of_order(recipe.order)
    assert terms(tree) == [[f"k {start}:{start + 512}" for start in range(0, 4096, 512)]]
    texts = [t.text for t in ET.fromstring(tree.svg(shown=4)).iter("{http://www.w3.org/2000/svg}text")]
    assert {"k 0:512", "k 1536:2048", "3 more", "k 3584:4096"} <= set(texts) and "k 2048:2560" not in texts
    assert "8 parts, left to right" in tree.outline()[0] and tree.outline()[0] in str(recipe)


# -- pictures ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("row", PUBLISHED, ids=str)
def test_boxes_of_a_drawing_do_not_overlap_and_lie_inside(row):
    root = ET.fromstring(tree_of(row.accumulator, row.k).svg('a "title" & more'))
    width, height = float(root.get("width")), float(root.get("height"))
    boxes = [
        {k: float(b.get(k)) for k in ("x", "y", "width", "height")}
        for b in root.iter("{http://www.w3.org/2000/svg}rect")
    ]
    assert all(b["x"] >= 0 and b["x"] + b["width"] <= width and b["y"] + b["height"] <= height for b in boxes)
    by_level = {}
    for box in boxes:
        by_level.setdefault(box["y"], []).append(box)
    for level in by_level.values():
        level.sort(key=lambda box: box["x"])
        assert all(x["x"] + x["width"] <= y["x"] + 0.05 for x, y in zip(level, level[1:], strict=False))
