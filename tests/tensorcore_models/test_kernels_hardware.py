"""The generic kernel against all published outputs of real GPUs: 48 sets of 2,500 rows, no mismatch."""

import dataclasses
import json

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models import kernels
from tensorcore_models.atlas.evidence import level_of

FORMATS = {"E4M3": "e4m3fn", "E5M2": "e5m2"}
ARCHITECTURES = {
    "V100": "volta",
    "A100": "ampere",
    "A2": "ampere",
    "Ada": "ada",
    "L40S": "ada",
    "H100": "hopper",
    "H200": "hopper",
    "B200": "blackwell",
}


def accumulator(device: str, a_format: str, d_format: str) -> tcm.FusedDotAdd | tcm.InterleavedDotAdd:
    """The algorithm of the instruction that produced a set (facts: xie-mma-sim, section IV; khattak-mikaitis, section IV)."""
    out = {"output_rounding": "rz" if d_format == "fp32" else "rne"}
    arch, tf32, fp8 = ARCHITECTURES[device], a_format == "tf32", a_format.startswith("e")
    if arch == "volta":
        return tcm.FusedDotAdd(4, 23, **out)
    if fp8 and arch == "ada":
        return tcm.FusedDotAdd(16, 13, output_fraction_bits=13, **out)
    if fp8 and arch == "hopper" and d_format == "fp32":
        return tcm.FusedDotAdd(32, 13, output_fraction_bits=13, **out)
    if fp8:
        return tcm.InterleavedDotAdd(tcm.FusedDotAdd(16, 25, **out))
    if arch in ("ampere", "ada"):
        return tcm.FusedDotAdd(4 if tf32 else 8, 24, **out)
    return tcm.FusedDotAdd(4 if tf32 else 16, 25, **out)


def test_every_row_of_every_set(hardware_vectors):
    index = json.loads((hardware_vectors / "index.json").read_text())
    assert len(index) == 48
    kernels.set_kernel("generic")
    assert kernels.kernel_name(custom_unit(index["H100_fp16_fp32"])).startswith("generic ")
    try:
        wrong = {name: mismatches(hardware_vectors / f"{name}.npz", row) for name, row in index.items()}
    finally:
        kernels.set_kernel(None)
    assert wrong == dict.fromkeys(index, 0)


@pytest.mark.parametrize("kernel", ["auto", "generic"])
def test_the_catalogue_s_instructions_give_every_row(hardware_vectors, kernel):
    index = json.loads((hardware_vectors / "index.json").read_text())
    kernels.set_kernel(None if kernel == "auto" else kernel)
    try:
        wrong = {
            name: mismatches(hardware_vectors / f"{name}.npz", row, instruction(row)) for name, row in index.items()
        }
    finally:
        kernels.set_kernel(None)
    assert wrong == dict.fromkeys(index, 0)


def instruction(row) -> tcm.Instruction:
    """The row of the catalogue for a set. tf32 sets have K = 4, which is what WMMA takes at a time."""
    a_format, d_format = FORMATS.get(row["a_format"], row["a_format"]), row["d_format"]
    arch = ARCHITECTURES[row["device"]]
    wide = arch == "hopper" and a_format.startswith("e") and d_format == "fp32"
    path = "wmma" if a_format == "tf32" else "wgmma" if wide else "mma"
    found = tcm.default_instruction(arch, a_format, d_format, path)
    assert level_of(found) == ("hardware: own run" if arch == "hopper" else "hardware: published vectors")
    return found


def custom_unit(row) -> tcm.MatrixEngine:
    a_format = FORMATS.get(row["a_format"], row["a_format"])
    return tcm.MatrixEngine(
        accumulator(row["device"], a_format, row["d_format"]),
        a_format=a_format,
        c_format=row["c_format"],
        d_format=row["d_format"],
    )


def mismatches(path, row, unit=None) -> int:
    unit = custom_unit(row) if unit is None else unit
    data = np.load(path)
    containers = [f.container for f in unit.formats]
    a, b, c = (data[name].astype(t) for name, t in zip("abc", containers, strict=False))
    assert len(a) == 2500
    d = kernels.batch_bits(unit, a[:, None, :], b[:, :, None], c[:, None, None])
    return int((d[:, 0, 0] != data["d"]).sum())


@pytest.mark.parametrize("change", [{"fraction_bits": 23}, {"terms": 4}, {"output_rounding": "rne"}])
def test_the_rows_notice_a_wrong_model(hardware_vectors, change):
    """Hopper fp16 to fp32 with one parameter off."""
    path = hardware_vectors / "H100_fp16_fp32.npz"
    data = np.load(path)
    right = tcm.FusedDotAdd(16, 25)
    for spec, expected in ((right, True), (dataclasses.replace(right, **change), False)):
        unit = tcm.MatrixEngine(spec)
        d = kernels.batch_bits(unit, data["a"][:, None, :], data["b"][:, :, None], data["c"][:, None, None])
        assert bool((d[:, 0, 0] == data["d"]).all()) is expected
