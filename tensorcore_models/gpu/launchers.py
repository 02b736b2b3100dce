"""Who runs a launch: the machine of its compiled text, for arrays, or a device, for tensors."""

from collections.abc import Callable, Sequence
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
    texts : sequence of (str, str, sequence of str), optional
        (function, assembly, names of its parameters in order), compiled before; each runs in the place of every launch of the
        function whose other arguments are 1 or left out.
    unpublished : {"refuse", "nearest"}, optional
        What becomes of results that no document gives, as payloads of NaN; by default NVIDIA's are refused.
    """

    def __init__(
        self,
        target: KernelTarget,
        find: Callable[[str], Any],
        texts: Sequence[tuple[str, str, Sequence[str]]] = (),
        unpublished: str | None = None,
    ):
        self.target, self.find = target, find
        # AMD publishes no payloads of NaN; here every NaN is one.
        self.unpublished = unpublished or ("refuse" if target.backend == "cuda" else "nearest")
        self._programs: dict[Any, tuple[Any, tuple[str, ...]]] = {}
        self._given = [(function, compiled.read(text), tuple(names)) for function, text, names in texts]

    def program(self, launch: TritonLaunch):
        """(program, names of its parameters) of a launch."""
        given = [(program, names) for function, program, names in self._given if function == launch.function]
        if given:
            return self._fitting(given, launch)
        function = self.find(launch.function)
        kinds = specialised(launch, function.arg_names, True, unspecialised(function))
        key = launch.function, str(kinds), launch.warps, launch.stages
        if key not in self._programs:
            kernel = compile_function(function, launch, self.target, aligned=True)
            self._programs[key] = compiled.read(kernel.assembly), kernel.parameters
        return self._programs[key]

    @staticmethod
    def _fitting(given, launch: TritonLaunch):
        """The text that passes every argument of a launch which is not 1 or left out; ValueError if there is none."""
        passed = {name for name, x in launch.arguments.items() if x is not None and not (isinstance(x, int) and x == 1)}
        for program, names in given:
            if passed.issubset(names):
                return program, names
        raise ValueError(f"no text of {launch.function} passes {', '.join(sorted(passed))}: compile it for this launch")

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
