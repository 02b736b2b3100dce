"""The catalogue against what others recorded: an RTX 4060, and the newest published models, bit for bit.

The files do not ship with the project (`MPGEMM_VECTORS`, `MPGEMM_SHARED`).
"""

import json
import shutil
from collections import Counter

import numpy as np
import pytest
from recordings import Tiles, model_vectors, rtx4060

import tensorcore_models as tcm
from tensorcore_models import kernels, reference

#: One recorded dot product of e4m3 operands without a product other than zero: rows of A and B, c and d.
WITNESS_A = bytes.fromhex("005a008aac3380808000008000808080")
WITNESS_B = bytes.fromhex("80008000800000800080800080000000")
WITNESS_C, WITNESS_D = 0x802A4A35, 0x802A4800


@pytest.fixture(scope="module")
def rtx4060_folder(hardware_vectors):
    folder = hardware_vectors / "rtx4060"
    if not (folder / "index.json").is_file():
        pytest.skip(f"recordings of an RTX 4060 not found: no {folder / 'index.json'}")
    return folder


@pytest.fixture(scope="module")
def recordings(rtx4060_folder):
    return list(rtx4060(rtx4060_folder))


@pytest.fixture(scope="module")
def vectors_path(shared):
    path = shared / "model_vectors" / "mmasim2.npz"
    if not path.is_file():
        pytest.skip(f"expected bits of mmasim 2 not found: no {path}")
    return path


@pytest.fixture(params=["auto", "generic"])
def kernel(request):
    kernels.set_kernel(None if request.param == "auto" else request.param)
    yield request.param
    kernels.set_kernel(None)


def ada(tiles: Tiles) -> tcm.Instruction:
    """The instruction of a recording; longer k are chains of it."""
    k = min(32, tiles.a.shape[2])
    return tcm.get_instruction("rtx4060", f"mma.m16n8k{k}.f32.{tiles.a_format[:4]}.{tiles.b_format[:4]}.f32")


def unit_of(name: str) -> tcm.MatrixEngine:
    """The row of that name; the authors' file has one that PTX lacks: nvfp4 scales for 32 products."""
    if name != "rtx_blackwell:mma.m16n8k64.block32.f32.e2m1.e2m1.f32.ue4m3":
        return tcm.get_instruction(name)
    nvfp4 = tcm.get_instruction("rtx_blackwell:mma.m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3")
    formats = {"a_format": "e2m1", "b_format": "e2m1", "c_format": "fp32", "d_format": "fp32"}
    return tcm.MatrixEngine(nvfp4.accumulator, **formats, scale_format="ue4m3", block_size=32)


def mismatches(unit, tiles: Tiles, *, any_nan: bool = False) -> int:
    d = kernels.batch_bits(unit, *tiles[1:4], tiles.scale_a, tiles.scale_b)
    wrong = d != tiles.d
    if any_nan:
        floats = tiles.d.dtype.str.replace("u", "f")
        wrong &= ~(np.isnan(d.view(floats)) & np.isnan(tiles.d.view(floats)))
    return int(wrong.sum())


def test_every_recorded_output_of_an_rtx4060(recordings, kernel):
    counts, wrong = Counter(), Counter()
    for tiles in recordings:
        counts[tiles.a.shape[2]] += tiles.d.size
        wrong[tiles.name] += mismatches(ada(tiles), tiles)
    assert counts == {16: 566_272, 32: 41_242, 256: 5_120, 2048: 512}
    assert +wrong == {}


@pytest.mark.parametrize(
    "rules",
    [
        {"zero_operand": "minus126", "zero_c": "minus126"},
        {"zero_operand": "minus126"},
        {"zero_operand": "format_minimum"},
    ],
    ids=str,
)
def test_the_recordings_refute_the_other_rules_of_zeros(recordings, rules):
    """All but a floor that others than c = 0 never meet, and the exponent of c = 0 itself: the recordings do not tell those."""
    assert sum(mismatches(ada(tiles).with_rules(**rules), tiles) for tiles in recordings) > 70_000


def test_the_witness():
    """c = 0x802a4a35 keeps F = 13 bits below 2^-126; beside 2^4 times a zero of exponent -126 it would lose four more."""
    unit = tcm.get_instruction("rtx4060", "mma.m16n8k16.f32.e4m3.e4m3.f32")
    a, b = (np.frombuffer(x, np.uint8) for x in (WITNESS_A, WITNESS_B))
    c = np.full((16, 8), WITNESS_C, np.uint32)
    tile = np.tile(a, (16, 1)), np.tile(b[:, None], (1, 8)), c
    assert reference.dot_bits(unit.accumulator, a.tolist(), b.tolist(), WITNESS_C, unit.formats) == WITNESS_D
    assert (unit.mma_bits(*tile) == WITNESS_D).all()
    assert (unit.with_rules(zero_operand="minus126").mma_bits(*tile) == 0x802A4000).all()


def test_every_expected_bit_of_the_newest_models(vectors_path, kernel):
    counts, wrong = Counter(), Counter()
    for kind, tiles in model_vectors(vectors_path):
        counts[kind] += tiles.d.size
        wrong[f"{tiles.name}, {kind}"] += mismatches(unit_of(tiles.name), tiles, any_nan=tiles.name.startswith("cdna"))
    assert counts == {"mmasim": 95_968, "mmasim_patched": 44_400, "mmasim_edge": 82_560, "mmasim_edge_patched": 17_920}
    assert +wrong == {}


def test_the_reference_gives_them_too(vectors_path):
    """One row and a few columns of each instruction's first tile."""
    seen = set()
    for kind, t in model_vectors(vectors_path):
        if not kind.startswith("mmasim_edge") and t.name.split(":")[0] not in ("cdna1", "cdna2"):
            continue
        unit = unit_of(t.name)
        scales = [] if t.scale_a is None else [t.scale_a[0, :1], t.scale_b[0, :, :3]]
        got = reference.mma_bits(unit, t.a[0, :1], t.b[0, :, :3], t.c[0, :1, :3], *scales)
        nan = np.zeros(got.shape, bool)
        if t.name.startswith("cdna"):
            nan = np.isnan(got.view(np.float32)) & np.isnan(np.ascontiguousarray(t.d[0, :1, :3]).view(np.float32))
        assert ((got == t.d[0, :1, :3]) | nan).all(), t.name
        seen.add(t.name.split(":")[0])
    assert {"cdna1", "cdna2", "cdna3", "volta", "ada", "hopper", "blackwell", "rtx_blackwell"} <= seen


# -- files that are not what they should be ----------------------------------------------------------------------------------
def test_damaged_recordings_are_named(rtx4060_folder, tmp_path):
    for path in rtx4060_folder.iterdir():
        shutil.copy(path, tmp_path / path.name)
    shard = tmp_path / "c3.npz"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    with pytest.raises(ValueError, match=r"c3\.npz is damaged"):
        list(rtx4060(tmp_path))
    shard.unlink()
    with pytest.raises(ValueError, match=r"c3\.npz is missing"):
        list(rtx4060(tmp_path))
    index = json.loads((tmp_path / "index.json").read_text())
    (tmp_path / "index.json").write_text(json.dumps({**index, "format": "mmaemu-hwmini/2"}))
    with pytest.raises(ValueError, match=r"index\.json is of another format: expected 'mmaemu-hwmini/1'"):
        list(rtx4060(tmp_path))
    (tmp_path / "index.json").write_text("{")
    with pytest.raises(ValueError, match=r"index\.json is damaged"):
        list(rtx4060(tmp_path))


def test_damaged_model_vectors_are_named(vectors_path, tmp_path):
    content = bytearray(vectors_path.read_bytes())
    damaged = tmp_path / "damaged.npz"
    content[len(content) // 2] ^= 0xFF
    damaged.write_bytes(content)
    with pytest.raises(ValueError, match=r"damaged\.npz is damaged"):
        list(model_vectors(damaged))
    damaged.write_bytes(content[:1000])
    with pytest.raises(ValueError, match=r"damaged\.npz is damaged"):
        list(model_vectors(damaged))
    other = tmp_path / "other.npz"
    np.savez(other, **{"ada:mma.m16n8k16.f32.f16.f16.f32|mmasim|A": np.zeros((1, 16, 16), np.uint16)})
    with pytest.raises(ValueError, match=r"other\.npz is of another format: .* has arrays A"):
        list(model_vectors(other))
