"""Where kernels run: the target of a torch device, and a launch on it by Triton."""

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
    """Return the target of a device; None for a CPU, on which the simulation runs.

    Raises
    ------
    ValueError
        For a device that no target describes; the message lists the targets.
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
        raise ValueError(f"{device} is {name}, for which no kernel has been checked; targets: {', '.join(TARGETS)}")
    raise ValueError(f"kernels run on cuda devices and, simulated, on the CPU; got {device}")


def execute(launch: TritonLaunch, device: torch.device) -> None:
    """Run a launch on a device."""
    function = kernel_function(launch.function)
    arguments = {name: _passed(x, getattr(x, "data", x)) for name, x in launch.arguments.items()}
    with torch.cuda.device(device):
        function[(launch.grid,)](
            **arguments, **launch.constants, **launch.options, num_warps=launch.warps, num_stages=launch.stages
        )


_NOTHING = nullcontext()


def current(device: torch.device):
    """Return a context in which a device is the current one; nothing to do where it is already."""
    if device.type == "cuda" and torch.cuda.current_device() != device.index:
        return torch.cuda.device(device)
    return _NOTHING


@cache
def _triton() -> tuple[Any, Any, Any]:
    """Return (drivers, hooks, descriptors) of Triton, imported when a kernel is planned."""
    from triton import knobs
    from triton.runtime import driver
    from triton.tools.tensor_descriptor import TensorDescriptor

    return driver, knobs.runtime, TensorDescriptor


def current_stream() -> int:
    """Return the stream that the current device's launches go to."""
    active = _triton()[0].active
    return active.get_current_stream(active.get_current_device())


def _passed(x: Any, data: Any) -> Any:
    """Return an argument as Triton takes it: a tensor, or the descriptor of one."""
    return _triton()[2](data, x.shape, (x.shape[1], 1), x.box) if type(x) is DescribedArray else data


class PlannedLaunch:
    """A launch of a plan, compiled for the current device: later a call passes addresses.

    Parameters
    ----------
    launch : TritonLaunch
        The data of its views and boxes are names of tensors.
    workspace : container of str
        Names of tensors that are bound before a call.
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
        self._run = self._kernel.run  # loads the kernel, which cannot be done while a graph is captured

    def bound(self, tensors: dict[str, torch.Tensor]) -> list[Any]:
        """Return arguments in order with these tensors; what names others stays open."""
        arguments = self._fixed.copy()
        for i, x in self._named:
            if x.data in tensors:
                arguments[i] = _passed(x, tensors[x.data])
        return arguments

    def filled(self, arguments: list[Any], tensors: dict[str, torch.Tensor]) -> list[Any]:
        """Return the arguments with the open ones taken from `tensors`."""
        arguments = arguments.copy()
        for i, x in self._open:
            arguments[i] = _passed(x, tensors[x.data])
        return arguments

    def with_arguments(self, arguments: list[Any]) -> TritonLaunch:
        """Return the launch with tensors in place of names."""
        given = dict(zip(self._function.arg_names, arguments, strict=True))
        values = {
            name: replace(x, data=given[name]) if isinstance(x, View) else given[name]
            for name, x in self.launch.arguments.items()
        }
        return replace(self.launch, arguments=values)

    def __call__(self, arguments: list[Any], stream: int, aligned: bool) -> None:
        """Launch; where not all addresses are multiples of 16 bytes Triton specialises anew."""
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
