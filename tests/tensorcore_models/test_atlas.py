"""The atlas: trees, witnesses, words and pages of every row."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models import libraries
from tensorcore_models.accumulators import Unpublished
from tensorcore_models.atlas import catalogued, page_path, svg, tree_of, tree_of_order, witness, write_atlas
from tensorcore_models.atlas.arithmetic import arithmetic_of
from tensorcore_models.atlas.evidence import LINKS, links_of, open_questions
from tensorcore_models.atlas.pages import architecture_page, index_page, instruction_page, neighbours, same_bits

ROWS = tcm.list_instructions()
DISTINCT = list({(row.accumulator, row.k): row for row in ROWS}.values())


def leaves(node):
    return [node.label] if not node.children else [leaf for child in node.children for leaf in leaves(child)]


@pytest.mark.parametrize("row", [row for row in DISTINCT if row.published], ids=str)
def test_a_tree_takes_every_product_and_c_once(row):
    labels = leaves(tree_of(row.accumulator, row.k))
    products = [label for label in labels if label.isdigit()]
    assert sorted(map(int, products)) == list(range(row.k))
    assert labels.count("c") == 1


def test_trees_have_the_shape_of_the_algorithm():
    assert [child.label for child in tree_of(tcm.FusedDotAdd(4, 23), 8).children] == ["Σ F=23", "4", "5", "6", "7"]
    pairs = tree_of(tcm.GroupPairwiseSum(4), 4)
    assert leaves(pairs) == ["c", "0", "1", "2", "3"] and [len(n.children) for n in pairs.children[1].children] == [
        2,
        2,
    ]
    assert leaves(tree_of(tcm.SequentialFMA(pair_order="odd_first"), 4)) == ["c", "1", "0", "3", "2"]
    assert leaves(tree_of(tcm.LanedFMA(terms=4), 4)) == ["c", "+0", "0", "2", "+0", "1", "3"]
    assert leaves(tree_of(tcm.ParametricDotAdd(4, alignment="odd_even"), 4)) == ["c", "0", "2", "1", "3"]
    assert tree_of(tcm.ParametricDotAdd(4, c_position="late"), 4).children[-1].label == "c"
    assert tree_of(Unpublished(), 4) is None


def test_a_recipe_is_drawn_with_its_slices():
    config = {"ALGO_ID": 66, "STAGES_ID": 35, "SPLITK_NUM": 8, "REDUCTION_SCHEME": 2, "CUSTOM_OPTION": 0}
    recipe = libraries.cublaslt("h100", "13.1", m=64, k=4096, n=64, format="fp16", config=config)
    tree = tree_of_order(recipe.order)
    assert [child.label for child in tree.children] == [
        "k 0:512",
        "k 512:1024",
        "k 1024:1536",
        "k 1536:2048",
        "3 more",
        "k 3584:4096",
    ]
    ET.fromstring(svg(tree, "a recipe"))


def test_boxes_of_a_drawing_do_not_overlap_and_lie_inside():
    for row in DISTINCT:
        tree = tree_of(row.accumulator, row.k)
        if tree is None:
            continue
        root = ET.fromstring(svg(tree, 'a "title" & more'))
        width, height = float(root.get("width")), float(root.get("height"))
        boxes = [
            {k: float(b.get(k)) for k in ("x", "y", "width", "height")}
            for b in root.iter("{http://www.w3.org/2000/svg}rect")
        ]
        assert all(b["x"] >= 0 and b["x"] + b["width"] <= width and b["y"] + b["height"] <= height for b in boxes), row
        by_level = {}
        for box in boxes:
            by_level.setdefault(box["y"], []).append(box)
        for level in by_level.values():
            level.sort(key=lambda box: box["x"])
            assert all(x["x"] + x["width"] <= y["x"] + 0.05 for x, y in zip(level, level[1:], strict=False)), row


@pytest.mark.parametrize("row", DISTINCT, ids=str)
def test_every_accumulator_has_words_and_the_words_give_its_parameters(row):
    words = arithmetic_of(row.accumulator, row.d_format)
    text = f"{words.title} {' '.join(words.steps)} {words.formula}"
    for name in ("fraction_bits", "exponent_floor", "output_fraction_bits", "dot_fraction_bits", "group", "lanes"):
        value = getattr(row.accumulator, name, None)
        assert value is None or re.search(rf"(?<![\d-]){re.escape(str(value))}(?!\d)", text), (name, value, text)


def test_words_refuse_what_they_do_not_cover():
    with pytest.raises(TypeError, match="exact sums only"):
        arithmetic_of(tcm.ParametricDotAdd(), "fp32")


def run_dot(row, found):
    a = np.array([found.a], row.formats[0].container)
    b = np.array([found.b], row.formats[1].container).T
    return int(row.gemm_bits(a, b, np.array([[found.c]], row.formats[2].container))[0, 0])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("v100:mma.m8n8k4.f32.f16.f16.f32", "a100:mma.m16n8k16.f32.f16.f16.f32"),
        ("a100:mma.m16n8k16.f32.f16.f16.f32", "h100:mma.m16n8k16.f32.f16.f16.f32"),
        ("h100:wgmma.m64n8k32.f32.e4m3.e4m3", "b200:tcgen05.mma.m64n8k32.f32.e4m3.e4m3"),
        ("ascend:cube.m16n16k16.f32.f16.f16.f32", "ascend910b:cube.m16n16k16.f32.f16.f16.f32"),
        ("turing:mma.m8n8k16.s32.s8.s8.s32", "turing:mma.m8n8k16.s32.s8.s8.s32.satfinite"),
    ],
)
def test_a_witness_gives_different_bits(first, second):
    first, second = tcm.get_instruction(first), tcm.get_instruction(second)
    found = witness(first, second)
    assert found is not None
    assert (run_dot(first, found), run_dot(second, found)) == (found.here, found.there)
    assert found.here != found.there


def test_witnesses_refuse_what_cannot_be_compared():
    with pytest.raises(ValueError, match="different formats"):
        witness(ROWS[0], tcm.get_instruction("h100:mma.m16n8k16.f32.bf16.bf16.f32"))
    tpu = tcm.get_instruction("tpu:mxu.m128n128k128.f32.bf16.bf16.f32")
    with pytest.raises(ValueError, match="not public"):
        witness(tpu, tpu)


def test_sources_that_rows_name_have_links():
    assert all(links_of(row) for row in ROWS if row.arch not in ("ascend", "ascend910b"))
    assert all(address.startswith("https://") for _, address in LINKS.values())


def test_open_questions_say_what_is_not_settled():
    def questions(name):
        return " ".join(open_questions(tcm.get_instruction(name)))

    assert "reconstruction" in questions("ascend:cube.m16n16k16.f32.f16.f16.f32")
    assert "models only" in questions("turing:mma.m16n8k8.f32.f16.f16.f32")
    assert "no data" in questions("hopper:mma.m16n8k16.f32.e4m3.e4m3.f32")
    assert questions("x86:tdpbssd.m16n16k64.s32.s8.s8.s32") == ""


def test_a_page_has_every_part():
    row = tcm.get_instruction("hopper:mma.m16n8k16.f32.f16.f16.f32")
    text = instruction_page(row)
    for heading in ("Arithmetic", "Order of the sum", "Neighbours", "Evidence", "Open", "Run it"):
        assert f"## {heading}\n" in text
    assert (
        "<svg" in text and "$$" in text and "0x33000000" in text and "(../volta/mma.m8n8k4.f32.f16.f16.f32.md)" in text
    )
    assert {str(other) for other in same_bits(row)} >= {"blackwell:mma.m16n8k16.f32.f16.f16.f32"}
    assert row.accumulator not in {other.accumulator for other in neighbours(row)}
    unknown = instruction_page(tcm.get_instruction("tpu:mxu.m128n128k128.f32.bf16.bf16.f32"))
    assert "Not public" in unknown and "<svg" not in unknown


def test_every_row_is_reachable_from_the_index():
    index = index_page()
    for arch in tcm.architectures():
        assert f"({arch}/index.md)" in index
        page = architecture_page(arch)
        assert all(f"({row.name}.md)" in page for row in tcm.list_instructions(arch))


def test_free_shapes_share_a_page():
    wide = tcm.get_instruction("h100:wgmma.m64n256k16.f32.f16.f16")
    assert page_path(catalogued(wide)) == "atlas/hopper/wgmma.m64n8k16.f32.f16.f16.html"
    with pytest.raises(ValueError, match="no row"):
        catalogued(wide.with_rules(zero_operand="minus126"))


def test_writing_again_changes_nothing_and_old_pages_go(tmp_path, monkeypatch):
    few = [("index.md", "one"), ("hopper/a.md", "two")]
    monkeypatch.setattr("tensorcore_models.atlas.pages.all_pages", lambda: iter(few))
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "gone.md").write_text("old")
    assert write_atlas(tmp_path) == 2
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.md")}
    assert write_atlas(tmp_path) == 2
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.md")} == before
    assert not (tmp_path / "old" / "gone.md").exists() and (tmp_path / "hopper" / "a.md").read_text() == "two"
