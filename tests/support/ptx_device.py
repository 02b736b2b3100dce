"""A device that is none: launches on CPU tensors by the machine of a target's PTX, in the place of a GPU."""

import numpy as np
import torch

from mpgemm.kernels import devices
from mpgemm.kernels.gate import text_machine
from tensorcore_models.gpu.launches import TritonLaunch, View
from tensorcore_models.gpu.targets import get_target

_RAW = {
    torch.float32: np.float32,
    torch.int32: np.int32,
    torch.float64: np.float64,
    torch.int8: np.int8,
    torch.int64: np.int64,
}


class PTXDevice:
    """What `devices.execute` does, without a GPU; `launches` has what ran.

    Kernels are compiled for each launch as Triton's own launches specialise them, once for each kind.
    """

    def __init__(self, target: str):
        self.target, self.launches, self._machines = get_target(target), [], {}

    def use(self, monkeypatch) -> "PTXDevice":
        """Take the CPU's place until the test ends."""
        monkeypatch.setattr(devices, "device_target", lambda device: self.target)
        monkeypatch.setattr(devices, "execute", self.execute)
        return self

    def execute(self, launch: TritonLaunch, device) -> None:
        """Run a launch; views become arrays from their first element to the end of their storage."""
        self.launches.append(launch)
        arrays: dict = {}
        arguments = {name: _array(x, arrays) if isinstance(x, View) else x for name, x in launch.arguments.items()}
        key = (
            launch.function,
            str(sorted(launch.constants.items())),
            launch.warps,
            launch.stages,
            tuple(
                name if x is None or (isinstance(x, int) and x == 1) else getattr(x, "type", "")
                for name, x in arguments.items()
            ),
        )
        found = TritonLaunch(launch.function, arguments, launch.constants, launch.grid, launch.warps, launch.stages)
        self._machines.setdefault(key, text_machine(self.target))(found)


def _array(view: View, arrays: dict) -> View:
    x = view.data
    place = x.data_ptr()
    if place not in arrays:
        start, size = x.storage_offset(), x.untyped_storage().nbytes() // x.element_size()
        flat = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage(), start, (size - start,), (1,))
        arrays[place] = (flat if x.dtype in _RAW else flat.view(torch.int16)).numpy()
    return View(arrays[place], view.type, view.strides, view.plane)
