"""This module is a Triton driver that launches nothing, so that the host's cost of a call can be measured without a GPU.

Triton's own launcher for CUDA runs up to the C call that passes the arguments; memory is the CPU's.
"""

from types import SimpleNamespace

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.backends.nvidia import driver as nvidia

from tensorcore_models.gpu.targets import get_target


class NoDevice(DriverBase):
    """`NoDevice` answers Triton's questions to a driver, for a target without a device.

    Parameters
    ----------
    target : KernelTarget
    number : int
        Number of the device.
    """

    def __init__(self, target, number: int = 0):
        self.target, self.number = target, number

    @classmethod
    def is_active(cls):
        return False

    def map_python_to_cpp_type(self, ty):
        raise NotImplementedError("this driver launches nothing, so no launcher in C is made")

    def get_active_torch_device(self):
        return torch.device("cpu")

    def get_benchmarker(self):
        raise NotImplementedError("this driver has no device, so nothing can be timed on it")

    def get_current_target(self):
        return GPUTarget(self.target.backend, self.target.arch, self.target.warp)

    def get_current_device(self):
        return self.number

    def get_current_stream(self, device):
        return 0

    def get_device_properties(self, device):
        return {"max_shared_mem": self.target.shared}


class StubDriver(NoDevice):
    """`StubDriver` replaces the driver of an H100."""

    def __init__(self):
        super().__init__(get_target("sm_90"))
        self.launcher_cls, self.launched = nvidia.CudaLauncher, 0
        self.utils = SimpleNamespace(
            launch=self._launch, load_binary=self._load, unload_module=lambda module: None,
            fill_tma_descriptor_tiled=lambda *fields: fields, build_signature_metadata=lambda signature: b"",
            get_device_properties=self.get_device_properties,
        )  # fmt: skip
        nvidia.PyKernelArg = lambda **fields: fields  # a class of Triton's driver in C, which is not compiled here

    def _launch(self, *arguments):
        self.launched += 1

    @staticmethod
    def _load(name, binary, shared, device):
        return object(), 0, 255, 0, 1024

    def install(self) -> "StubDriver":
        """Make tensors of the CPU count as an H100's from now on."""
        import triton

        from mpgemm.kernels import devices, plans

        kept: dict[int, dict] = {}

        def rooms(plan, device):
            """Return memory as quickly as torch's caching allocator, because large tensors of the CPU are mapped anew each
            time.
            """
            found = kept.setdefault(id(plan), {})
            for name in plan.workspace.keys() - found.keys():
                shape, kind = plan.workspace[name]
                found[name] = torch.empty(shape, dtype=kind)
            return {name: x.detach() for name, x in found.items()}

        plans.ProductPlan.rooms = rooms
        triton.runtime.driver.set_active(self)
        devices.device_target = lambda device: self.target
        return self
