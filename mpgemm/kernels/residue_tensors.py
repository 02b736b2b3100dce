"""FP64 products of torch tensors from int8 units: Ozaki's scheme II as two splittings and one launch."""

import numpy as np
import torch

from mpgemm.frameworks.torch_tensors import to_array
from mpgemm.kernels import devices
from mpgemm.kernels.configurations import Configuration
from mpgemm.kernels.gate import simulated
from mpgemm.kernels.products import say_simulated, view
from mpgemm.kernels.residues import TILE, residue_products_launch, residues_launch
from mpgemm.kernels.targets import check_words
from mpgemm.recovery.integer_words import residue_bits
from mpgemm.recovery.method import RecoveryMethod
from tensorcore_models.gpu.launches import View


def residue_product(
    row: RecoveryMethod, a: torch.Tensor, b: torch.Tensor, unit: str, configuration: Configuration | None = None
) -> torch.Tensor:
    """A B in FP64 for a batch of matrices, shapes (batch, m, k) and (batch, k, n) of any strides.

    row: Of the kind "residues".
    unit: Whose simulation runs on the CPU.
    configuration: Tile.
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
    bits = residue_bits(row.moduli, k)
    left, rows = _residues(row, a, 0, bits)
    right, columns = _residues(row, b, 1, bits)
    launch = residue_products_launch(
        row.moduli, (batch, m, n, k), left, right, view(out), (rows, columns), configuration or TILE
    )
    devices.execute(launch, a.device)
    out.masked_fill_(~torch.isfinite(a).all(2, keepdim=True), float("nan"))
    return out.masked_fill_(~torch.isfinite(b).all(1, keepdim=True), float("nan"))


def _residues(row: RecoveryMethod, x: torch.Tensor, side: int, bits: int) -> tuple[View, View]:
    """(planes of residues, powers of two of the units) of an operand; rows of A and columns of B share an exponent."""
    batch, rows, columns = x.shape
    magnitudes = torch.where(torch.isfinite(x), x.abs(), torch.zeros((), dtype=x.dtype, device=x.device))
    largest = magnitudes.amax(2 - side)
    exponents = torch.where(largest > 0, torch.frexp(largest)[1], 0).to(torch.int32) - bits
    planes = torch.empty((len(row.moduli), batch, rows, columns), dtype=torch.int8, device=x.device)
    out = View(planes, "s8", (rows * columns, columns, 1), batch * rows * columns)
    shifts = (-exponents).contiguous()
    strides = (shifts.shape[1], 0, 1) if side else (shifts.shape[1], 1, 0)
    launch = residues_launch(row.moduli, (batch, rows, columns), view(x), out, View(shifts, "s32", strides))
    devices.execute(launch, x.device)
    return out, View(exponents.contiguous(), "s32", strides)
