"""The models of x86's matrix instructions against results recorded on a CPU that has them, NaN payloads included."""

import json

import numpy as np
import pytest

from tensorcore_models import reference
from tensorcore_models.hardware.campaign.recording import recorded

SETS = ("vdpbf16ps", "tdpbf16ps", "int8")


@pytest.fixture(scope="module")
def recordings(hardware_vectors):
    folder = hardware_vectors / "amx"
    if not folder.is_dir():
        pytest.skip(f"no recorded x86 results: {folder} is missing")
    return folder


@pytest.mark.parametrize("name", SETS)
def test_every_result(recordings, name):
    for ins, kind, (a, b, c, *_), d in recorded(recordings / name):
        got = ins.mma_bits(a, b, c)
        wrong = np.argwhere(got != d)
        first = tuple(wrong[0]) if len(wrong) else ()
        assert not len(wrong), (
            f"{ins}/{kind}: {len(wrong)} of {d.size} differ, first {first}: model {got[first]:08x}, CPU {d[first]:08x}"
        )


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", SETS)
def test_a_part_by_the_reference(recordings, name):
    for ins, kind, (a, b, c, *_), d in recorded(recordings / name):
        some = slice(0, 120 if name == "vdpbf16ps" else 1)
        assert np.array_equal(reference.mma_bits(ins, a[some, :8], b[some], c[some, :8]), d[some, :8]), kind


@pytest.mark.parametrize("damage", ["truncated", "scrambled", "counts", "array", "index", "bomb"])
def test_damaged_files_are_named(tmp_path, damage):
    name = "x86:vdpbf16ps.k2.f32.bf16.bf16.f32/zeros"
    d = np.arange(1 << 12, dtype=np.uint32).reshape(-1, 1, 16)
    np.savez_compressed(tmp_path / "vectors.npz", **{f"{name}/{part}": d for part in "abcd"[damage == "array" :]})
    count = 4 if damage == "bomb" else d.size + (damage == "counts")
    (tmp_path / "index.json").write_text("[" if damage == "index" else json.dumps({"vectors": {name: count}}))
    whole = (tmp_path / "vectors.npz").read_bytes()
    if damage == "truncated":
        (tmp_path / "vectors.npz").write_bytes(whole[:100])
    if damage == "scrambled":
        (tmp_path / "vectors.npz").write_bytes(whole[:200] + bytes(100) + whole[300:])
    told = {"index": r"index\.json", "bomb": "has 16512 bytes, too many for 4 results"}.get(damage, r"vectors\.npz")
    with pytest.raises(ValueError, match=told):
        list(recorded(tmp_path))
