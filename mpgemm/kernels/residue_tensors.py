"""Computes FP64 products of torch tensors on int8 units by Ozaki's scheme II in three launches."""

import numpy as np
import torch

from mpgemm.frameworks.torch_tensors import to_array
from mpgemm.kernels import devices
from mpgemm.kernels.configurations import DESCRIBED, Configuration
from mpgemm.kernels.gate import simulated
from mpgemm.kernels.products import say_simulated, view
from mpgemm.kernels.residues import ResiduePlanes, residue_launches, residue_tile
from mpgemm.kernels.targets import check_words
from mpgemm.recovery.method import RecoveryMethod


def residue_product(
    row: RecoveryMethod, a: torch.Tensor, b: torch.Tensor, unit: str, configuration: Configuration | None = None
) -> torch.Tensor:
    """Return A B in FP64 for a batch of matrices of shapes (batch, m, k) and (batch, k, n) and any strides.

    row: Row of the kind "residues".
    unit: Unit that is simulated for tensors on the CPU.
    configuration: Tile, warps and stages.
    Rows of A and columns of B with elements that are not finite are NaN.
    """
    (batch, m, k), n = a.shape, b.shape[2]
    out = torch.zeros((batch, m, n), dtype=torch.float64, device=a.device)
    target = devices.device_target(a.device)
    if out.numel() == 0 or k == 0:
        return out
    if target is None:
        say_simulated(unit)
        for index in range(batch):
            found = simulated(row, unit, to_array(a[index], "a"), to_array(b[index], "b"))
            out[index] = torch.from_numpy(np.ascontiguousarray(found))
        return out
    check_words(target, "s8", row.name)
    planes = ResiduePlanes(row.moduli, (batch, m, n, k))
    room = {
        name: torch.empty(shape, dtype=devices.TENSOR_TYPES[kind], device=a.device)
        for name, (shape, kind) in planes.workspace().items()
    }
    tile = configuration or residue_tile(target)
    for launch in residue_launches(planes, view(a), view(b), view(out), room, tile, target.unit in DESCRIBED):
        devices.execute(launch, a.device)
    return out
