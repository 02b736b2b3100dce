"""Where kernels run: the target of a torch device, and a launch on it by Triton."""

import torch

from mpgemm.kernels.compiling import kernel_function
from tensorcore_models.gpu.launches import TritonLaunch, View
from tensorcore_models.gpu.targets import TARGETS, KernelTarget


def device_target(device: torch.device) -> KernelTarget | None:
    """The target of a device; None for a CPU, on which the simulation runs.

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
    arguments = {name: x.data if isinstance(x, View) else x for name, x in launch.arguments.items()}
    with torch.cuda.device(device):
        function[(launch.grid,)](
            **arguments, **launch.constants, **launch.options, num_warps=launch.warps, num_stages=launch.stages
        )
