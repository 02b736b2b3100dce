"""A device that is none: Triton's own launches of CPU tensors, on the machine of compiled text in the place of a driver.

What is replaced is Triton's driver alone: `kernel[grid](...)` specialises its arguments (multiples of 16, ones, 32 or 64 bits),
compiles, assembles and checks resources as on a device; then the text runs here.
"""

import math
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
import triton
from stub_driver import NoDevice
from triton.tools.tensor_descriptor import TensorDescriptor

from mpgemm.kernels import devices, multiply, products
from tensorcore_models import compiled
from tensorcore_models.gpu.launchers import box_parameters
from tensorcore_models.gpu.targets import TARGETS, get_target

_BITS = {1: (torch.int8, np.int8), 2: (torch.int16, np.int16), 4: (torch.int32, np.int32), 8: (torch.int64, np.int64)}


class PTXDevice(NoDevice):
    """A driver of Triton for a target.

    Attributes
    ----------
    launches : list of TritonLaunch
        What `devices.execute` was asked for.
    runs : list of (str, dict)
        What Triton launched: the function, and each argument's type and what is known of it ("D": a multiple of 16).
    """

    def __init__(self, target: str):
        super().__init__(get_target(target), 1000 + list(TARGETS).index(target))
        self.launches, self.runs = [], []
        self.utils, self._key, self._programs = self, None, {}

    def use(self, monkeypatch) -> "PTXDevice":
        """Take the CPU's place until the test ends."""
        execute = devices.execute

        def noted(launch, device):
            self.launches.append(launch)
            execute(launch, device)

        multiply._KNOWN.clear()
        products._plan_of.cache_clear()  # plans hold the kernels of an earlier test's driver
        planned = devices.PlannedLaunch.__call__

        def noted_plan(launch, arguments, stream, aligned):
            self.launches.append(launch.with_arguments(arguments))
            planned(launch, arguments, stream, aligned)

        monkeypatch.setattr(devices.PlannedLaunch, "__call__", noted_plan)
        monkeypatch.setattr(devices, "device_target", lambda device: self.target)
        monkeypatch.setattr(devices, "execute", noted)
        monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
        monkeypatch.setattr(triton.runtime.driver, "_active", self)
        monkeypatch.setattr(triton.knobs.runtime.kernel_load_start_hook, "calls", [self._loading])
        return self

    # -- what Triton asks its driver ---------------------------------------------------------------------------------------
    def _loading(self, module, function, name, files, key):
        suffix, self._key = ".ptx" if self.target.backend == "cuda" else ".amdgcn", key
        if key not in self._programs:
            text = Path(next(path for file, path in files.items() if file.endswith(suffix))).read_text()
            self._programs[key] = compiled.read(text)

    def load_binary(self, name, binary, shared, device):
        """(module, function, registers, spills, threads): without a module nothing is left to unload after the test."""
        return None, self._programs[self._key], 255, 0, 1024

    def launcher_cls(self, source, metadata):
        """What runs a kernel: arguments that Triton made constants are not passed."""
        passed = [kind != "constexpr" for kind in source.signature.values()]
        facts = {
            name: kind + ("D" if source.attrs.get((i,)) else "")
            for i, (name, kind) in enumerate(source.signature.items())
        }

        def run(x, y, z, stream, program, packed, launch, enter, leave, *arguments):
            self.runs.append((source.fn.fn.__name__, facts))
            memory, boxes, kept = _Memory(), iter(metadata.tensordesc_meta or ()), []
            for argument, is_passed in zip(arguments, passed, strict=True):
                if isinstance(argument, TensorDescriptor):
                    whole = memory.array(argument.base)[: math.prod(argument.shape)].reshape(tuple(argument.shape))
                    kept += box_parameters(whole, next(boxes))
                elif is_passed:
                    kept.append(memory.array(argument))
            # AMD publishes no payloads of NaN; here every NaN is one.
            rule = "refuse" if self.target.backend == "cuda" else "nearest"
            program.run(kept, grid=(x, y, z), unpublished=rule)

        return run


class _Memory:
    """Storages of tensors as arrays from a tensor's first element on; one array for tensors that begin at one place."""

    def __init__(self):
        self._arrays = {}

    def array(self, x):
        if not isinstance(x, torch.Tensor):
            return x
        place = x.data_ptr()
        if place not in self._arrays:
            start, size = x.storage_offset(), x.untyped_storage().nbytes() // x.element_size()
            flat = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage(), start, (size - start,), (1,))
            raw, kind = _BITS[x.element_size()]
            found = flat.view(raw).numpy().view(kind)
            if any(np.shares_memory(found, other) for other in self._arrays.values()):
                found = found.copy()  # read through another tensor's storage; results have storages of their own
            self._arrays[place] = found
        return self._arrays[place]
