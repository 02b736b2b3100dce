"""This module records torch's products on a GPU: hashes and bits of results, kernels, and cuBLASLt's configuration.

Small products are also searched for among the models' chains under the orders over k that kernels use.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mpgemm.campaign.device import CampaignDevice
from mpgemm.campaign.folder import keep_arrays
from mpgemm.campaign.library_cases import LibraryCase, cases
from mpgemm.campaign.tasks import Task
from mpgemm.campaign.work import Work
from mpgemm.traces.library_log import LibraryLog, configuration
from tensorcore_models.hardware.libraries.engines import TorchMatmulEngine
from tensorcore_models.hardware.libraries.orders import SHAPES, candidates, reproduce

#: Formats whose products are searched for among the models' chains.
ORDERED = ("fp16", "bf16", "tf32", "e4m3fn")
_SIGNED = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def bits(x: torch.Tensor) -> np.ndarray:
    """Return a tensor's encodings as integers."""
    return x.contiguous().view(_SIGNED[x.element_size()]).cpu().numpy()


def recorded(device: CampaignDevice, folder: Path, part: str, case: LibraryCase, log: LibraryLog) -> dict[str, Any]:
    """Return the record of a call and of a second call for its kernels; `refused` if this torch does not multiply such
    operands.
    """
    with torch.no_grad():
        log.since()
        try:
            call = case.make(device.tensors)
            first, again = call(), call()
        except (RuntimeError, ValueError, NotImplementedError) as error:
            torch.zeros(1, device=device.tensors).cpu()  # raises if the device is at fault
            return {"refused": f"{type(error).__name__}: {error}"[:300]}
        found = bits(first)
        rows = found.reshape(-1, found.shape[-1])
        picked = list(range(0, len(rows), max(1, len(rows) // case.rows)))[: case.rows]
        row: dict[str, Any] = {
            "rows": picked, "shape": list(first.shape), "dtype": str(first.dtype),
            "sha256": hashlib.sha256(found.tobytes()).hexdigest(), "deterministic": bool(np.array_equal(found, bits(again))),
        }  # fmt: skip
        configured = configuration(log.since())
        row["kernels"] = device.kernels(call)
    keep_arrays(folder, part, case.name, {case.name: rows[picked]})
    return row if configured is None else {**row, "configuration": configured}


def ordered(device: torch.device, arch: str, fmt: str, shape: tuple[int, int, int]) -> dict[str, Any]:
    """Return the models' chains, each with its order over k, that give every bit of a product."""
    found = reproduce(TorchMatmulEngine(fmt, device=str(device)), candidates(arch, fmt), shape)
    return {"reproduced": found["reproduced"], "best": max(found["agreement"].values(), default=0.0)}


def tasks(
    device: CampaignDevice, folder: Path, part: str, recorded_cases: Callable[[], Iterator[LibraryCase]] = cases
) -> Iterator[Task]:
    """Yield the recording of each case, then the orders of small products."""
    log = LibraryLog()
    for case in recorded_cases():
        yield {"name": case.name, **case.facts}, partial(recorded, device, folder, part, case, log)
    for shape in SHAPES:
        for fmt in ORDERED:
            facts = {"name": f"order/{fmt}/{'x'.join(map(str, shape))}", "op": "order", "operands": fmt}
            yield facts, partial(ordered, device.tensors, device.arch, fmt, shape)


def run(work: Work) -> None:
    """Run the share."""
    work.carry_out(tasks(work.device, work.folder, work.part))
