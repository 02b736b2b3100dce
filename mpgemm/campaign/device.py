"""The device of a campaign: what its parts ask of a GPU, so that something else can stand in for one."""

import importlib.metadata
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mpgemm.reporting.provenance import package_version
from tensorcore_models.gpu.targets import TARGETS, KernelTarget
from tensorcore_models.hardware.cuda.device import Device, default_device

#: Distributions whose versions belong to a result.
_VERSIONS = ("torch", "triton", "numpy")
#: Calls before a time is taken, and calls whose median is kept; fewer where one takes longer than that many seconds.
_WARM, _REPEATS = 2, 9
_LONG, _FEW = 0.1, 3
#: Cycles for which the GPU is kept busy while the host enqueues a call: some 10 ms.
_BUSY = 20_000_000


@dataclass(frozen=True)
class CampaignDevice:
    """The device that the parts of a campaign run on.

    Attributes
    ----------
    facts : dict
        Name, driver, architecture and versions: those of one folder are equal.
    units : Device
        Runs single instructions.
    tensors : object
        torch's device.
    target : KernelTarget
        What kernels are compiled for.
    timer : callable
        A call -> its times (:func:`gpu_times`).
    kernels : callable
        A call -> [name, microseconds] of the kernels that it runs.
    """

    facts: dict[str, str]
    units: Device
    tensors: Any
    target: KernelTarget
    timer: Callable[[Callable[[], object]], dict[str, float]]
    kernels: Callable[[Callable[[], object]], list[list[Any]]]

    @property
    def arch(self) -> str:
        """The architecture of the catalogue."""
        return self.units.arch


def facts_of(units: Device) -> dict[str, str]:
    """Name, driver, architecture and versions."""
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
        Without a GPU or its driver.
    ValueError
        If no target of kernels describes it, or torch does not see it; the message lists the targets.
    """
    units = default_device()
    name = "sm_{}{}".format(*units.capability)
    if name not in TARGETS:
        raise ValueError(
            f"{units.name} is {name}, for which no kernel has been checked; known targets: {', '.join(TARGETS)}"
        )
    try:
        import torch
    except ImportError:
        raise ValueError("a campaign needs torch and Triton: pip install 'mpgemm[kernels]'") from None
    if not torch.cuda.is_available():
        raise ValueError(
            f"torch {torch.__version__} finds no GPU, but the driver reports {units.name}: install torch with CUDA"
        )
    return CampaignDevice(facts_of(units), units, torch.device("cuda"), TARGETS[name], gpu_times, gpu_kernels)


def gpu_times(run: Callable[[], object]) -> dict[str, float]:
    """Return seconds of a call on the GPU, medians: as it comes, of the device alone, and of the host alone.

    ``seconds`` is between events around the call, waiting for the host included; ``device_seconds`` the same behind work that
    keeps the GPU busy until the host has enqueued everything; ``host_seconds`` what the host takes until the call returns. A
    call that waits for the GPU itself has the wait in all three.
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
    """[name, microseconds] of the kernels that a call runs, by torch's profiler."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as found:
        run()
        torch.cuda.synchronize()
    events = found.events() or []
    return [[event.name, event.device_time] for event in events if str(event.device_type).endswith("CUDA")]
