"""Finds the target of a torch device, and launches kernels on it with Triton."""

from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from typing import Any

import torch

from mpgemm.kernels.compiling import kernel_function
from tensorcore_models.gpu.launches import DescribedArray, TritonLaunch, View
from tensorcore_models.gpu.targets import TARGETS, KernelTarget


def device_target(device: torch.device) -> KernelTarget | None:
    """Return the target of a device, or None for a CPU, on which the simulation runs.

    Raises
    ------
    ValueError
        If no target describes the device; the message lists the targets.
    """
    if device.type == "cpu":
        return None
    if device.type == "cuda":
        if torch.version.hip:
            name = torch.cuda.get_device_properties(device).gcnArchName.partition(":")[0]
        else:
            name = "sm_{}{}".format(*torch.cuda.get_device_capability(device))
        if name in TARGETS:
            return TARGETS[name]
        raise ValueError(
            f"{device} is {name}, expected one of the checked targets {', '.join(TARGETS)}: move the tensors"
        )
    raise ValueError(f"got the device {device}, expected a cuda device, or the CPU for a simulation: move the tensors")


def execute(launch: TritonLaunch, device: torch.device) -> None:
    """Run a launch on a device with Triton."""
    function = kernel_function(launch.function)
    arguments = {name: _passed(x, getattr(x, "data", x)) for name, x in launch.arguments.items()}
    with torch.cuda.device(device):
        function[(launch.grid,)](
            **arguments, **launch.constants, **launch.options, num_warps=launch.warps, num_stages=launch.stages
        )


_NOTHING = nullcontext()


def current(device: torch.device):
    """Return a context in which a device is the current one; it does nothing if the device is current already."""
    if device.type == "cuda" and torch.cuda.current_device() != device.index:
        return torch.cuda.device(device)
    return _NOTHING


@cache
def _triton() -> tuple[Any, Any, Any]:
    """Return Triton's drivers, hooks and descriptors, which are imported when a kernel is planned."""
    from triton import knobs
    from triton.runtime import driver
    from triton.tools.tensor_descriptor import TensorDescriptor

    return driver, knobs.runtime, TensorDescriptor


def current_stream() -> int:
    """Return the current stream of the current device."""
    active = _triton()[0].active
    return active.get_current_stream(active.get_current_device())


def _passed(x: Any, data: Any) -> Any:
    """Return an argument as Triton takes it: a tensor, or a tensor descriptor."""
    return _triton()[2](data, x.shape, (x.shape[1], 1), x.box) if type(x) is DescribedArray else data


class PlannedLaunch:
    """`PlannedLaunch` is a launch of a plan, compiled for the current device, so that a call only passes addresses.

    Parameters
    ----------
    launch : TritonLaunch
        Launch whose views and boxes hold names in place of tensors.
    workspace : container of str
        Names of the workspace's tensors, which are bound before a call.
    """

    def __init__(self, launch: TritonLaunch, workspace: Collection[str] = ()):
        self.launch, self._function = launch, kernel_function(launch.function)
        values = {**launch.arguments, **launch.constants}
        self._fixed = [values[name] for name in self._function.arg_names]
        self._named = [(i, x) for i, x in enumerate(self._fixed) if isinstance(x, View | DescribedArray)]
        self._open = [(i, x) for i, x in self._named if x.data not in workspace]
        self._options = {**launch.options, "num_warps": launch.warps, "num_stages": launch.stages}
        stand_ins = {kind: torch.empty(64, dtype=TENSOR_TYPES[kind]) for kind in {x.type for _, x in self._named}}
        sample = self._fixed.copy()
        for i, x in self._named:
            sample[i] = _passed(x, stand_ins[x.type])
        self._kernel = self._function.run(*sample, grid=(launch.grid,), warmup=True, **self._options)
        self._run = self._kernel.run  # loads the kernel now, because that is impossible while a graph is captured

    def bound(self, tensors: dict[str, torch.Tensor]) -> list[Any]:
        """Return the arguments in order with the given tensors in place of their names; other names stay."""
        arguments = self._fixed.copy()
        for i, x in self._named:
            if x.data in tensors:
                arguments[i] = _passed(x, tensors[x.data])
        return arguments

    def filled(self, arguments: list[Any], tensors: dict[str, torch.Tensor]) -> list[Any]:
        """Return the arguments with tensors in place of the remaining names."""
        arguments = arguments.copy()
        for i, x in self._open:
            arguments[i] = _passed(x, tensors[x.data])
        return arguments

    def with_arguments(self, arguments: list[Any]) -> TritonLaunch:
        """Return the launch with these arguments in place of its own."""
        given = dict(zip(self._function.arg_names, arguments, strict=True))
        values = {
            name: replace(x, data=given[name]) if isinstance(x, View) else given[name]
            for name, x in self.launch.arguments.items()
        }
        return replace(self.launch, arguments=values)

    def __call__(self, arguments: list[Any], stream: int, aligned: bool) -> None:
        """Launch the kernel; if not all addresses are multiples of 16 bytes, Triton specialises it anew."""
        if not aligned:
            self._function.run(*arguments, grid=(self.launch.grid,), warmup=False, **self._options)
            return
        kernel, grid, hooks = self._kernel, self.launch.grid, _triton()[1]
        enter, leave, about = hooks.launch_enter_hook, hooks.launch_exit_hook, None
        if enter.calls or leave.calls:  # a profiler watches
            about = kernel.launch_metadata((grid,), stream, *arguments)
        else:
            enter = leave = None
        self._run(
            grid, 1, 1, stream, kernel.function, kernel.packed_metadata, about, enter, leave, *arguments,
        )  # fmt: skip


TENSOR_TYPES = {
    "fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "s32": torch.int32, "fp64": torch.float64,
    "s8": torch.int8,
}  # fmt: skip
