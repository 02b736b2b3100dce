"""The catalogue's Hopper rows against what an H100 gave, bit for bit: a part that ships, and the whole recording.

NaN payloads of FP64 count.
"""

import dataclasses
import json
import shutil
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models import kernels, reference
from tensorcore_models.accumulators import WidenedDotAdd
from tensorcore_models.hardware.campaign.recording import recorded

COMPACT = Path(__file__).resolve().parent.parent / "vectors" / "hopper"
KINDS = {
    "random_bits", "normals", "clustered", "cancellation", "zeros", "subnormals", "underflow", "smallest_normal", "edges",
}  # fmt: skip
#: Experiments of the campaign with their instructions.
EXPERIMENTS = 121
#: An entry of FP64.
EDGES = "hopper:mma.m16n8k16.f64.f64.f64.f64/edges"


def wrong(entries, model=lambda row: row) -> Counter:
    """Results that differ, by instruction and kind; every bit counts."""
    found = Counter()
    for row, kind, inputs, d in entries:
        if (other := model(row)) is not None:
            found[f"{row}/{kind}"] += int((other.mma_bits(*inputs) != d).sum())
    return +found


@pytest.fixture(scope="module")
def shipped():
    return list(recorded(COMPACT))


@pytest.fixture(params=["auto", "generic"])
def kernel(request):
    kernels.set_kernel(None if request.param == "auto" else request.param)
    yield request.param
    kernels.set_kernel(None)


def test_every_row_and_kind_is_there(shipped):
    rows = {row.name for row in tcm.list_instructions("hopper")}
    assert {(row.name, kind) for row, kind, _, _ in shipped} == {(row, kind) for row in rows for kind in KINDS}
    assert len(rows) == 100 and sum(d.size for *_, d in shipped) == 195_840
    assert sum(path.stat().st_size for path in COMPACT.iterdir()) < 3.2e6
    facts = json.loads((COMPACT / "index.json").read_text())
    assert (facts["gpu"], facts["date"]) == ("NVIDIA H100 80GB HBM3", "2026-11-26")


def test_no_bit_of_the_part_that_ships_differs(shipped, kernel):
    assert wrong(shipped) == {}


def test_the_reference_gives_them_too(shipped):
    """One row and two columns of each entry."""
    for row, kind, inputs, d in shipped:
        found = reference.mma_bits(row, inputs.a[0, :1], inputs.b[0, :, :2], inputs.c[0, :1, :2])
        assert np.array_equal(found, d[0, :1, :2]), (str(row), kind)


@pytest.mark.parametrize("rule", [
    {"zero_operand": "minus126"}, {"zero_c": "format_minimum"}, {"subnormal_c": "normalised"},
    {"negative_underflow": "negative"}, {"nan": "quiet"}, {"group_order": (1, 0)}, {"exponent_floor": -20},
], ids=str)  # fmt: skip
def test_other_rules_are_seen(shipped, rule):
    """Each other setting of an edge rule, wherever a row has it, contradicts results."""

    def changed(row):
        (name,) = rule
        widened = isinstance(row.accumulator, WidenedDotAdd) and name != "group_order"
        return row.with_rules(**rule) if name in row.accumulator.edge_rules or widened else None

    assert sum(wrong(shipped, changed).values()) > 0


def test_the_rows_of_two_formats_are_not_one_fused_sum(shipped):
    """What stood in the catalogue before the run: a sum whose addend and result have formats of their own."""

    def fused(row):
        if not isinstance(row.accumulator, WidenedDotAdd):
            return None
        rounding, floor = ("rne", -21) if row.d_format == "fp16" else ("rz", -133)
        spec = dataclasses.replace(row.accumulator.dot, output_rounding=rounding, exponent_floor=floor)
        return dataclasses.replace(row, accumulator=spec)

    found = wrong(shipped, fused)
    assert len({name.split("/")[0] for name in found}) == 6 and sum(found.values()) > 100


def experiments():
    """The decisive experiments that ran: element 0 of an instruction, all other operands are +0."""
    return json.loads((COMPACT / "experiments.json").read_text())


def answered(experiment, **rules) -> bool:
    """Whether a row gives the result of an experiment."""
    row = tcm.get_instruction(f"hopper:{experiment['instruction']}")
    row = row.with_rules(**rules) if rules else row
    a, b, c = (
        np.zeros(shape, fmt.container)
        for shape, fmt in zip(((row.m, row.k), (row.k, row.n), (row.m, row.n)), row.formats, strict=False)
    )
    left, right = ([int(x, 16) for x in experiment[name]] for name in ("a", "b"))
    a[0, : len(left)], b[: len(right), 0], c[0, 0] = left, right, int(experiment["c"], 16)
    return int(row.mma_bits(a, b, c)[0, 0]) == int(experiment["result"], 16)


def test_every_decisive_experiment_is_answered():
    found = experiments()
    assert len(found) == EXPERIMENTS and not [x for x in found if not answered(x)]
    tf32 = [x for x in found if "tf32" in x["instruction"]]
    assert [x["id"] for x in tf32 if not answered(x, tf32_nan="kept")]  # a payload in the low 13 bits


@pytest.mark.full
def test_the_whole_recording(shared):
    """518,400 results; every group of instructions is a recording of its own."""
    folder = shared / "hardware_vectors" / "h100" / "units"
    if not folder.is_dir():
        pytest.skip(f"the whole recording of an H100 was not found: no {folder}")
    entries = [x for group in sorted(folder.glob("*/index.json")) for x in recorded(group.parent)]
    assert sum(d.size for *_, d in entries) == 518_400 and len({str(row) for row, *_ in entries}) == 100
    assert wrong(entries) == {}
    doubles = [x for x in entries if x[0].d_format == "fp64"]
    missed = {
        rule: sum(wrong(doubles, lambda row, rule=rule: row.with_rules(nan=rule)).values()) for rule in ("x86", "quiet")
    }
    assert missed["x86"] == 1 and missed["quiet"] > 500  # a NaN in b, and a later one in a


@pytest.mark.parametrize(("a", "b", "c", "result"), [
    ({6: 0xFFFFFFFFFFFFFFFF}, {1: 0xFFF0000000000001}, 0, 0xFFF8000000000001),  # recorded: b at k = 1 before a at k = 6
    ({5: 0x7FF0000000000001}, {9: 0x7FF8000000000000}, 0, 0x7FF8000000000000),  # recorded: a later b
    ({}, {2: 0xFFF8000000000000}, 0x7FF0000000000001, 0xFFF8000000000000),  # recorded: b before c
    ({3: 0x7FF4000000000123}, {}, 0x7FF0000000000001, 0x7FF8000000000001),  # c before a
    ({0: 0x7FF0000000000000, 3: 0x7FF4000000000123}, {0: 0}, 0, 0xFFF8000000000000),  # an invalid operation before a
], ids=str)  # fmt: skip
@pytest.mark.parametrize("m", [1, 16])
def test_which_nan_of_fp64_comes_out(a, b, c, result, m, kernel):
    row = tcm.get_instruction("hopper:mma.m16n8k16.f64.f64.f64.f64")
    x, y = (np.full(16, 0x3FF0000000000000, np.uint64) for _ in range(2))
    for codes, given in ((x, a), (y, b)):
        for k, code in given.items():
            codes[k] = code
    d = row.gemm_bits(np.tile(x, (m, 1)), np.tile(y[:, None], (1, 8)), np.full((m, 8), c, np.uint64))
    assert (d == result).all()
    formats = row.formats
    assert reference.dot_bits(row.accumulator, x.tolist(), y.tolist(), c, formats) == result


# -- files that are not what they should be ----------------------------------------------------------------------------------
@pytest.mark.full
def test_a_damaged_recording_is_named(tmp_path):
    """Which file, which array, and what is wrong with it."""
    for path in COMPACT.iterdir():
        shutil.copy(path, tmp_path / path.name)
    vectors = tmp_path / "vectors.npz"
    name = f"{EDGES}/d.npy"
    with zipfile.ZipFile(vectors) as archive:
        place = archive.getinfo(name)
    content = bytearray(vectors.read_bytes())
    content[place.header_offset + len(name) + 60] ^= 0xFF
    vectors.write_bytes(content)
    with pytest.raises(ValueError, match=r"vectors\.npz is damaged .*m16n8k16\.f64\.f64\.f64\.f64/edges/d\.npy"):
        list(recorded(tmp_path))
    vectors.write_bytes(content[:5000])
    with pytest.raises(ValueError, match=r"vectors\.npz is damaged .*not a zip file"):
        list(recorded(tmp_path))
    index = json.loads((tmp_path / "index.json").read_text())
    shutil.copy(COMPACT / "vectors.npz", vectors)
    index["vectors"][EDGES] += 1
    (tmp_path / "index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match=r"edges has 128 results, but index\.json lists 129"):
        list(recorded(tmp_path))
    (tmp_path / "index.json").write_text("{")
    with pytest.raises(ValueError, match=r"index\.json is not an index of recorded vectors"):
        list(recorded(tmp_path))
