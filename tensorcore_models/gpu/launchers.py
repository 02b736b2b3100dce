"""Who runs a launch: the machine of its compiled text, for arrays, or a device, for tensors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import compiled
from .compiling import compile_function, specialised, unspecialised
from .launches import TritonLaunch, View
from .targets import KernelTarget


class TextMachine:
    """Launches run on the machine of a target's text: what a device does, for arrays.

    Parameters
    ----------
    target : KernelTarget
        What a launch is compiled for, specialised as Triton's own launches are, once for each kind.
    find : callable
        Name of a function -> the kernel.
    texts : mapping, optional
        Function, or function and SHAPE of its constants: (assembly, names of its parameters in order), compiled before; they
        run in the place of every launch.
    unpublished : {"refuse", "nearest"}, optional
        What becomes of results that no document gives, as payloads of NaN; by default NVIDIA's are refused.
    """

    def __init__(
        self,
        target: KernelTarget,
        find: Callable[[str], Any],
        texts: Mapping[Any, tuple[str, Sequence[str]]] | None = None,
        unpublished: str | None = None,
    ):
        self.target, self.find = target, find
        # AMD publishes no payloads of NaN; here every NaN is one.
        self.unpublished = unpublished or ("refuse" if target.backend == "cuda" else "nearest")
        self._programs: dict[Any, tuple[Any, tuple[str, ...]]] = {}
        self._given = {name: (compiled.read(text), tuple(names)) for name, (text, names) in (texts or {}).items()}

    def program(self, launch: TritonLaunch):
        """(program, names of its parameters) of a launch."""
        given = self._given.get(launch.function) or self._given.get((launch.function, launch.constants.get("SHAPE")))
        if given is not None:
            return given
        function = self.find(launch.function)
        kinds = specialised(launch, function.arg_names, True, unspecialised(function))
        key = launch.function, str(kinds), launch.warps, launch.stages
        if key not in self._programs:
            kernel = compile_function(function, launch, self.target, aligned=True)
            self._programs[key] = compiled.read(kernel.assembly), kernel.parameters
        return self._programs[key]

    def __call__(self, launch: TritonLaunch) -> None:
        """Run a launch; arrays of its views are written in place."""
        program, names = self.program(launch)
        values = [launch.arguments[name] for name in names]
        arrays = [_array(x.data) if isinstance(x, View) else x for x in values]
        program.run(arrays, grid=(launch.grid,), unpublished=self.unpublished)


def _array(data: Any) -> np.ndarray:
    """The memory of an array or of a tensor on the CPU from its first element on, flat."""
    if isinstance(data, np.ndarray):
        return data
    start = data.storage_offset()
    return data.as_strided((data.untyped_storage().nbytes() // data.element_size() - start,), (1,), start).numpy()
