"""Runs launches: on the machine of their compiled text, for arrays, or on a device, for tensors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import compiled
from .compiling import compile_function, specialised, unspecialised
from .launches import DescribedArray, TritonLaunch, View
from .targets import KernelTarget


@dataclass(frozen=True)
class CompiledText:
    """`CompiledText` is a launch's text, compiled earlier.

    Attributes
    ----------
    function, assembly : str
    parameters : sequence of str
        Names of the arguments that are passed, in order; the other arguments are 1 or left out.
    constants : mapping
        Constants by which texts of one function differ.
    """

    function: str
    assembly: str
    parameters: Sequence[str]
    constants: Mapping[str, Any] = field(default_factory=dict)

    def fits(self, launch: TritonLaunch) -> bool:
        """Return whether the text passes every argument of a launch that is neither 1 nor left out, and has its constants."""
        passed = {name for name, x in launch.arguments.items() if x is not None and not (isinstance(x, int) and x == 1)}
        same = all(launch.constants.get(name) == value for name, value in self.constants.items())
        return same and launch.function == self.function and passed.issubset(self.parameters)


class TextMachine:
    """`TextMachine` runs launches on the machine of a target's text, which does for arrays what a device does for tensors.

    Parameters
    ----------
    target : KernelTarget
        Target for which launches are compiled, specialised as Triton's own launches are, once for each kind.
    find : callable
        Function from the name of a kernel to the kernel.
    texts : sequence of CompiledText, optional
        Texts that were compiled earlier; each runs in place of every launch that it fits.
    unpublished : {"refuse", "nearest"}, optional
        Rule for results that no document gives, such as payloads of NaN; by default, such results of NVIDIA's are refused.
    """

    def __init__(
        self,
        target: KernelTarget,
        find: Callable[[str], Any],
        texts: Sequence[CompiledText] = (),
        unpublished: str | None = None,
    ):
        self.target, self.find = target, find
        # AMD publishes no payloads of NaN; here every NaN has one encoding.
        self.unpublished = unpublished or ("refuse" if target.backend == "cuda" else "nearest")
        self._programs: dict[Any, tuple[Any, tuple[str, ...], tuple]] = {}
        self._given = [(text, compiled.read(text.assembly)) for text in texts]

    def program(self, launch: TritonLaunch):
        """Return the program of a launch, the names of its parameters, and the form of its descriptors."""
        given = [pair for pair in self._given if pair[0].function == launch.function]
        if given:
            return self._fitting(given, launch)
        function = self.find(launch.function)
        kinds = specialised(launch, function.arg_names, True, unspecialised(function))
        key = launch.function, str(kinds), launch.warps, launch.stages
        if key not in self._programs:
            kernel = compile_function(function, launch, self.target, aligned=True)
            if kernel.shared > self.target.shared:
                raise compiled.Refused(
                    f"{launch.function} takes {kernel.shared} bytes of shared memory, but a block on {self.target.name} has "
                    f"{self.target.shared}: take fewer stages or a smaller tile"
                )
            self._programs[key] = compiled.read(kernel.assembly), kernel.parameters, kernel.boxes
        return self._programs[key]

    @staticmethod
    def _fitting(given, launch: TritonLaunch):
        """Return the first text that fits a launch; raise ValueError if no text does."""
        for text, program in given:
            if text.fits(launch):
                return program, tuple(text.parameters), ()
        raise ValueError(
            f"no compiled text of {launch.function} fits this launch: compile the function with {', '.join(launch.arguments)}"
        )

    def __call__(self, launch: TritonLaunch) -> None:
        """Run a launch; arrays of its views are written in place."""
        program, names, boxes = self.program(launch)
        left = iter(boxes)
        arrays: list[Any] = []
        for x in (launch.arguments[name] for name in names):
            if isinstance(x, DescribedArray):
                arrays += box_parameters(x.data, next(left))
            else:
                arrays.append(_array(x.data) if isinstance(x, View) else x)
        program.run(arrays, grid=(launch.grid,), unpublished=self.unpublished)


def box_parameters(data: np.ndarray, wanted: Mapping[str, Any]) -> list[Any]:
    """Return a text's five parameters for a descriptor: the map of an array in rows, its shape and its strides."""
    swizzle = ("none", "32B", "64B", "128B")[wanted["swizzle"]]
    rows, columns = data.shape
    return [
        compiled.TensorMap(data, wanted["block_size"], swizzle), rows, columns, data.strides[0] // data.itemsize, 1,
    ]  # fmt: skip


def _array(data: Any) -> np.ndarray:
    """Return the memory of an array, or of a tensor on the CPU, from its first element on, flat."""
    if isinstance(data, np.ndarray):
        return data
    start = data.storage_offset()
    return data.as_strided((data.untyped_storage().nbytes() // data.element_size() - start,), (1,), start).numpy()
