"""A device for campaigns that is none: models in the place of instructions, compiled text run on its machine, torch on the CPU.

As a script it is a campaign's worker on that device: ``python campaign_stand_in.py --out DIR --part PART ...``.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
sys.path.insert(0, str(Path(__file__).parent))

import unit_machine
from fake_gpu import FakeGpu
from ptx_device import PTXDevice

import tensorcore_models as tcm
from mpgemm.campaign import device as campaign_device
from mpgemm.campaign import emulation, functions, libraries, library_cases, recovery, times, units
from mpgemm.kernels import plans
from mpgemm.kernels.configurations import Configuration
from mpgemm.kernels.forms import TILES
from tensorcore_models.gpu import tensors
from tensorcore_models.gpu.tiles import UnitTile
from tensorcore_models.hardware.campaign import run as unit_campaign
from tensorcore_models.hardware.libraries.engines import TorchMatmulEngine

TARGET = "sm_90"
#: The unit whose bits the stand-in's own products have, by format.
OWN = {"fp16": "hopper:wgmma.m64n128k16.f32.f16.f16", "bf16": "hopper:wgmma.m64n128k16.f32.bf16.bf16"}


def own_product(self, a, b, c=None):
    """What :meth:`TorchMatmulEngine.multiply` gives on the stand-in: one chain of a unit."""
    row = tcm.get_instruction(OWN[self.a_format])
    bits = [x.view(torch.int16).numpy().view(np.uint16) for x in (a, b)]
    d = row.gemm_bits(*bits)
    return torch.from_numpy(d.view(np.float32))


def stand_in(
    patch: pytest.MonkeyPatch, name: str = "no GPU", model_of=lambda row: row
) -> campaign_device.CampaignDevice:
    """The device; modules are patched until the test ends."""
    pipe = PTXDevice(TARGET).use(patch)
    machine = unit_machine.compiling(TARGET)
    gpu = tensors.GPU(machine.target, machine, unit_machine.WARPS, unit_machine.EACH)
    patch.setattr(tensors, "gpu_of", lambda tensor: gpu)
    patch.setattr(tensors, "on_gpu", lambda *operands: tensors.is_tensor(operands[0]))
    for chooser in ("choose", "word_configuration"):
        patch.setattr(plans, chooser, lambda form, *args: Configuration(16, 32, TILES[form.format], 2, 2))
    patch.setattr(TorchMatmulEngine, "multiply", own_product)
    fake = FakeGpu("hopper", model_of)
    fake.name = name

    def timed(run):
        run()
        return {"seconds": 2e-3, "device_seconds": 1e-3, "host_seconds": 5e-4}

    def kernels(run):
        return [["gemm", 1.5], ["pack", 0.5]]

    facts = campaign_device.facts_of(fake)
    return campaign_device.CampaignDevice(facts, fake, torch.device("cpu"), pipe.target, timed, kernels)


def small(patch: pytest.MonkeyPatch) -> None:
    """Parts of a few seconds."""
    rows = ("mma.m16n8k16.f32.f16.f16.f32", "mma.m8n8k4.f64.f64.f64.f64")
    patch.setattr(units, "rows_of", lambda arch: [tcm.get_instruction(arch, row) for row in rows])
    patch.setattr(units, "TARGET", 3000)
    patch.setattr(unit_campaign, "FIRST_ROUND", 128)
    patch.setattr(recovery, "SHAPES", ((5, 9, 41),))
    patch.setattr(recovery, "methods_of", lambda target: ["ootomo_tf32"])
    patch.setattr(times, "methods_of", lambda target: ["ootomo_tf32"])
    patch.setattr(times, "SHAPES", ((17, 17, 17),))
    patch.setattr(times, "SIDES", (16,))
    patch.setattr(times, "CANDIDATES", (UnitTile((1, 1), (2, 1)),))
    patch.setattr(times, "UNITS", ("hopper:wgmma.m64n128k16.f32.f16.f16",))
    patch.setattr(emulation, "UNITS", ("hopper:wgmma.m64n128k16.f32.f16.f16",))
    patch.setattr(emulation, "ROUNDS", 1)
    patch.setattr(emulation, "MOST", (12, 12, 40))
    patch.setattr(emulation, "OWN_SHAPES", ((20, 18, 40),))
    patch.setattr(emulation, "OWN_FORMATS", ("fp16",))
    patch.setattr(
        functions,
        "FUNCTIONS",
        tuple(f for f in functions.FUNCTIONS if f.name in ("cvt.rna.tf32.f32", "tanh.approx.f32")),
    )
    patch.setattr(functions, "BLOCKS", 2)
    patch.setattr(library_cases, "SHAPES", ((16, 16, 64),))
    patch.setattr(library_cases, "NARROW_SHAPES", ((32, 16, 32),))
    patch.setattr(libraries, "SHAPES", ((16, 16, 64),))
    patch.setattr(libraries, "ORDERED", ("fp16",))


def main() -> int:
    """A worker; what MPGEMM_STAND_IN asks of it is done first: "abort:PART-SHARE" ends that share by a signal."""
    from mpgemm.campaign import worker

    part, share = (sys.argv[sys.argv.index(word) + 1] for word in ("--part", "--share"))
    if os.environ.get("MPGEMM_STAND_IN") == f"abort:{part}-{share}":
        os.abort()
    patch = pytest.MonkeyPatch()
    small(patch)
    return worker.main(device_of=lambda: stand_in(patch))


if __name__ == "__main__":
    raise SystemExit(main())
