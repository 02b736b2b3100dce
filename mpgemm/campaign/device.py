"""This module defines the device of a campaign: the interface to a GPU, which a stand-in can implement."""

import importlib.metadata
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mpgemm.reporting.provenance import package_version
from tensorcore_models.gpu.targets import TARGETS, KernelTarget
from tensorcore_models.hardware.cuda.device import Device, default_device

#: Distributions (packages) whose versions belong to a result.
_VERSIONS = ("torch", "triton", "numpy")
#: Calls before a time is taken, calls whose median is kept, and seconds of a call above which fewer are made.
_WARM, _REPEATS = 2, 9
_LONG, _FEW = 0.1, 3
#: Cycles for which the GPU is kept busy while the host enqueues a call: some 10 ms.
_BUSY = 20_000_000


@dataclass(frozen=True)
class CampaignDevice:
    """`CampaignDevice` is the device on which the parts of a campaign run.

    Attributes
    ----------
    facts : dict
        Name, driver, architecture and versions, which must be equal in one folder.
    units : Device
        Device that runs single instructions.
    tensors : object
        Device of torch.
    target : KernelTarget
        Target for which kernels are compiled.
    timer : callable
        Function that returns the times of a call (:func:`gpu_times`).
    kernels : callable
        Function that returns [name, microseconds] of the kernels that a call runs.
    """

    facts: dict[str, str]
    units: Device
    tensors: Any
    target: KernelTarget
    timer: Callable[[Callable[[], object]], dict[str, float]]
    kernels: Callable[[Callable[[], object]], list[list[Any]]]

    @property
    def arch(self) -> str:
        """Return the architecture in the catalogue."""
        return self.units.arch


def facts_of(units: Device) -> dict[str, str]:
    """Return the name, driver, architecture and versions."""
    found = {"gpu": units.name, "driver": units.driver, "arch": units.arch, "mpgemm": package_version()}
    for name in _VERSIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def this_gpu() -> CampaignDevice:
    """Return the first GPU of this machine.

    Raises
    ------
    OSError, RuntimeError
        If there is no GPU, or no driver.
    ValueError
        If no target of kernels describes the GPU (the message lists the targets), or torch does not find it.
    """
    units = default_device()
    name = "sm_{}{}".format(*units.capability)
    if name not in TARGETS:
        raise ValueError(
            f"the GPU {units.name} is {name}, expected one of the targets for which kernels have been checked, "
            f"{', '.join(TARGETS)}: run on such a GPU"
        )
    try:
        import torch
    except ImportError:
        raise ValueError(
            "torch is not installed, but a campaign needs torch and Triton: pip install 'mpgemm[kernels]'"
        ) from None
    if not torch.cuda.is_available():
        raise ValueError(
            f"torch {torch.__version__} finds no GPU, but the driver reports {units.name}: install torch with CUDA"
        )
    return CampaignDevice(facts_of(units), units, torch.device("cuda"), TARGETS[name], gpu_times, gpu_kernels)


def gpu_times(run: Callable[[], object]) -> dict[str, float]:
    """Return the median seconds of a call on the GPU: as it comes, of the device alone, and of the host alone.

    ``seconds`` is the time between events around the call, including waits for the host. ``device_seconds`` is that
    time behind other work that keeps the GPU busy until the host has enqueued everything. ``host_seconds`` is the time
    until the call returns on the host. A call that itself waits for the GPU includes the wait in all three.
    """
    import statistics

    import torch

    for _ in range(_WARM):
        begun = time.perf_counter()
        run()
        torch.cuda.synchronize()
    repeats = _REPEATS if time.perf_counter() - begun < _LONG else _FEW
    found: dict[str, list[float]] = {"seconds": [], "device_seconds": [], "host_seconds": []}
    for busy in (0, _BUSY):
        for _ in range(repeats):
            torch.cuda.synchronize()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            if busy:
                torch.cuda._sleep(busy)
            begun = time.perf_counter()
            start.record()
            run()
            end.record()
            host = time.perf_counter() - begun
            end.synchronize()
            found["device_seconds" if busy else "seconds"].append(start.elapsed_time(end) / 1000)
            if not busy:
                found["host_seconds"].append(host)
    return {name: statistics.median(times) for name, times in found.items()}


def gpu_kernels(run: Callable[[], object]) -> list[list[Any]]:
    """Return [name, microseconds] of the kernels that a call runs, by torch's profiler."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as found:
        run()
        torch.cuda.synchronize()
    events = found.events() or []
    return [[event.name, event.device_time] for event in events if str(event.device_type).endswith("CUDA")]
