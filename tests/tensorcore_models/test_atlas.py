"""The atlas: witnesses and pages of every row."""

import numpy as np
import pytest
from atlas_pages import architecture_page, index_page, instruction_page, neighbours, same_bits, write_atlas

import tensorcore_models as tcm
from tensorcore_models.atlas import catalogued, page_path, witness
from tensorcore_models.atlas.evidence import LINKS, links_of, open_questions

ROWS = tcm.list_instructions()
DISTINCT = list({(row.accumulator, row.k): row for row in ROWS}.values())


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
    assert all(links_of(row) for row in ROWS)
    assert all(address.startswith("https://") for _, address in LINKS.values())


def test_open_questions_say_what_is_not_settled():
    def questions(name):
        return " ".join(open_questions(tcm.get_instruction(name)))

    assert "reconstruction" in questions("ascend:cube.m16n16k16.f32.f16.f16.f32")
    assert "models only" in questions("turing:mma.m16n8k8.f32.f16.f16.f32")
    assert "no data" in questions("blackwell:mma.m16n8k16.f32.e4m3.e4m3.f32")
    assert not questions("hopper:mma.m16n8k16.f32.e4m3.e4m3.f32")  # compared on an H100
    assert questions("x86:tdpbssd.m16n16k64.s32.s8.s8.s32") == ""


def test_a_page_has_every_part():
    row = tcm.get_instruction("hopper:mma.m16n8k16.f32.f16.f16.f32")
    text = instruction_page(row)
    for heading in ("Arithmetic", "Order of the sum", "Neighbours", "Evidence", "Open questions", "Run it"):
        assert f"## {heading}\n" in text
    assert (
        "<svg" in text and "$$" in text and "0x33000000" in text and "(../volta/mma.m8n8k4.f32.f16.f16.f32.md)" in text
    )
    assert {str(other) for other in same_bits(row)} >= {"blackwell:mma.m16n8k16.f32.f16.f16.f32"}
    assert row.accumulator not in {other.accumulator for other in neighbours(row)}
    unknown = instruction_page(tcm.get_instruction("tpu:mxu.m128n128k128.f32.bf16.bf16.f32"))
    assert "The arithmetic is not public" in unknown and "<svg" not in unknown


def test_every_row_is_reachable_from_the_index():
    index = index_page()
    for arch in tcm.architectures():
        assert f"({arch}/index.md)" in index
        page = architecture_page(arch)
        assert all(f"({row.name}.md)" in page for row in tcm.list_instructions(arch))


def test_free_shapes_share_a_page():
    wide = tcm.get_instruction("h100:wgmma.m64n256k16.f32.f16.f16")
    assert page_path(catalogued(wide)) == "atlas/hopper/wgmma.m64n8k16.f32.f16.f16.html"
    with pytest.raises(ValueError, match="is not in the catalogue"):
        catalogued(wide.with_rules(zero_operand="minus126"))


def test_writing_again_changes_nothing_and_old_pages_go(tmp_path, monkeypatch):
    few = [("index.md", "one"), ("hopper/a.md", "two")]
    monkeypatch.setattr("atlas_pages.all_pages", lambda: iter(few))
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "gone.md").write_text("old")
    assert write_atlas(tmp_path) == 2
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.md")}
    assert write_atlas(tmp_path) == 2
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.md")} == before
    assert not (tmp_path / "old" / "gone.md").exists() and (tmp_path / "hopper" / "a.md").read_text() == "two"
