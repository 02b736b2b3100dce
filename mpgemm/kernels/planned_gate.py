"""Runs the launches of a plan in the gate: words of both operands, their product, the sum of parts, the repair."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from mpgemm.kernels.configurations import Configuration
from mpgemm.kernels.forms import kernel_form
from mpgemm.kernels.gate import GateRun, matrix_view
from mpgemm.kernels.plans import PlannedProduct, ProductPlan
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.parts import PART_UNIT
from tensorcore_models.gpu.launchers import TextMachine
from tensorcore_models.gpu.launches import DescribedArray, TritonLaunch, View
from tensorcore_models.gpu.targets import KernelTarget

_ARRAYS = {torch.float32: np.float32, torch.float16: np.uint16, torch.bfloat16: np.uint16, torch.int32: np.int32}


@dataclass(frozen=True)
class PlannedCase(GateRun):
    """`PlannedCase` is a plan whose words are written to memory before the product, for the gate.

    Attributes
    ----------
    row : RecoveryMethod
        Row that :func:`mpgemm.kernels.recipes.recipe` returns.
    target : KernelTarget
        Target of the kernels' text.
    configuration : Configuration
        Tile, warps and stages.
    layout : {"nn", "tt", "nt", "tn"}
        Storage of A and B: "n" by rows, "t" by columns.
    """

    row: RecoveryMethod
    target: KernelTarget
    configuration: Configuration
    layout: str = "nn"

    @property
    def name(self) -> str:
        """Name of the method, with scaling, parts and layout of its plan."""
        scaled = ", scaled" if self.row.equilibrate == "rows" else ""
        parts = f", {self.row.parts} parts" if self.row.parts != 1 else ""
        return f"{self.row.name} from words in memory{scaled}{parts}, {self.layout}"

    @property
    def types(self) -> tuple[str, str]:  # type: ignore[override]
        """Types of the elements: BF16 for operands of one word."""
        a, b = ("bf16" if words == 1 else "fp32" for words in kernel_form(self.row).words)
        return a, b

    def shapes(self) -> list[tuple[int, int, int]]:
        """Return the shapes at which the case is compared; if k is split, they are long enough for the parts."""
        found = super().shapes()
        if self.row.parts == 1:
            return found
        (m, n, _), (rows, columns, _) = found
        parts = int(self.row.parts)
        return [(m, n, (parts - 1) * PART_UNIT + 73), (rows, columns, parts * PART_UNIT)]

    def run(self, machine: TextMachine, a, b, c) -> np.ndarray:
        """Run the launches and return their result; all memory is filled with NaN and -1 before."""
        (m, k), n = a.shape, b.shape[1]
        left, right = (
            matrix_view(x, kind, stored == "t") for x, kind, stored in zip((a, b), self.types, self.layout, strict=True)
        )
        product = PlannedProduct(
            self.row, (1, m, n, k), self.types, (left.strides, right.strides), (m * n, n, 1),
            tile=self.configuration, first=True,
        )  # fmt: skip
        plan = ProductPlan(product, self.target)
        arrays = {"a": left.data, "b": right.data, "out": np.full((m, n), np.nan, np.float32)}
        for name, (shape, kind) in plan.workspace.items():
            arrays[name] = np.full(shape, -1, np.int32) if kind == torch.int32 else _without_values(shape, kind)
        for launch in plan.launches:
            machine(_of_arrays(launch, arrays))
        return arrays["out"]


def _without_values(shape: tuple[int, ...], kind: torch.dtype) -> np.ndarray:
    """Return an array with all bits set, which is NaN for floats and -1 for integers."""
    found = np.empty(shape, _ARRAYS[kind])
    found.view(np.uint8).fill(255)
    return found


def _of_arrays(launch: TritonLaunch, arrays: Mapping[str, np.ndarray]) -> TritonLaunch:
    """Return a plan's launch with arrays in place of names."""

    def given(x: Any) -> Any:
        return replace(x, data=arrays[x.data]) if isinstance(x, View | DescribedArray) else x

    return replace(launch, arguments={name: given(x) for name, x in launch.arguments.items()})
