"""A made-up GPU architecture is one row of one table: its instructions, devices and compilation target follow."""

from dataclasses import replace

import numpy as np

from tensorcore_models.catalogue import nvidia

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
