"""A made-up GPU architecture is one row of one table: its instructions, devices and compilation target follow."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tensorcore_models
from tensorcore_models.catalogue import nvidia
from tensorcore_models.catalogue.tensor_cores import Group, Narrow, Outputs, Scaled

ROW = nvidia.Architecture(
    fraction_bits=27, terms={"fp16": 32}, floors={"fp32": -140, "fp16": -24},
    sync=((((16, 8, 32), (16, 8, 64)), "fp16", (("fp32", "fp32"),)),),
    capability=(13, 0), target="sm_130a", devices={"x100": ()},
)  # fmt: skip


def test_a_row_brings_its_instructions_device_and_target(monkeypatch):
    before = nvidia.rows()
    monkeypatch.setitem(nvidia.ARCHITECTURES, "madeup", ROW)
    new = [row for row in nvidia.rows() if row.arch == "madeup"]
    assert [row for row in nvidia.rows() if row.arch != "madeup"] == before
    names = {row.name for row in new if row.path == "mma"}
    assert names == {"mma.m16n8k32.f32.f16.f16.f32", "mma.m16n8k64.f32.f16.f16.f32"}
    for row in new:
        if row.path == "mma":
            spec = row.accumulator
            assert (spec.fraction_bits, spec.terms, spec.exponent_floor) == (27, 32, -140)
    a = np.ones((16, 32), np.float16)
    assert new[0].gemm(a, a.T)[0, 0] == 32
    assert replace(ROW, fraction_bits=28) != ROW


def test_devices_and_targets_come_from_the_same_rows():
    from tensorcore_models.catalogue.devices import DEVICES
    from tensorcore_models.hardware.cuda.targets import TARGETS

    for arch, row in nvidia.ARCHITECTURES.items():
        assert TARGETS[arch] == (row.capability, row.target)
        assert all(DEVICES[device] == (arch, lacks) for device, lacks in row.devices.items())


RICH = replace(
    ROW,
    narrow=(Narrow(ks=(64,), terms=32), Narrow(formats=("e2m1",), ks=(128,), fraction_bits=14)),
    narrow_kind="f8", scaled=Scaled(m=16, n=8),
    group=Group(
        prefix="wgmma", shapes=((64, (8, 16)),), integer_shapes=((64, (8,)),),
        narrow=(Narrow(fraction_bits=15, outputs=(Outputs("outputs of X100", ("fp32",)),)),),
    ),
)  # fmt: skip


def test_a_row_says_what_an_architecture_has(monkeypatch):
    """FP8, block scales and wgmma of a new architecture, without a line of code."""
    monkeypatch.setitem(nvidia.ARCHITECTURES, "madeup", RICH)
    new = {row.name: row for row in nvidia.rows() if row.arch == "madeup"}
    assert {path: sum(row.path == path for row in new.values()) for path in ("mma", "wmma", "wgmma")} == {
        "mma": 2 + 8 + 2 + 25 + 3, "wmma": 12, "wgmma": 4 + 8 + 8,
    }  # fmt: skip
    eight = new["mma.m16n8k64.f32.e4m3.e5m2.f32"]
    assert (eight.accumulator.terms, eight.accumulator.fraction_bits) == (32, 27)
    four = new["mma.m16n8k128.f32.e2m1.e2m1.f32"].accumulator
    assert (four.terms, four.fraction_bits, four.output_fraction_bits) == (128, 14, 14)
    alike, unlike = (new[f"wgmma.m64n8k32.f32.e4m3.{b}"] for b in ("e4m3", "e5m2"))
    assert (alike.accumulator.fraction_bits, alike.evidence) == (15, "hardware: published vectors")
    assert "outputs of X100" in alike.source and unlike.evidence == "published model"
    assert alike.legal_shapes == ((64, (8, 16)),)
    assert new["mma.m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"].scale_format == "ue4m3"


FILES = sorted(
    path
    for folder in ("catalogue", "hardware")
    for path in (Path(tensorcore_models.__file__).parent / folder).rglob("*.py")
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_code_names_an_architecture(path):
    """Tables may; a function that does knows something that belongs into a row."""
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    names = {
        node.value
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert not names & set(nvidia.ARCHITECTURES)
