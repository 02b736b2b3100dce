"""Defines one launch of a Triton kernel: arguments by name, constants, grid. Devices and machines of text run the same
launches."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class View:
    """`View` is an operand or result in memory.

    Attributes
    ----------
    data : Tensor, ndarray or None
        Memory whose first element is that of the view; None if the launch is only compiled.
    type : str
        Type of an element: "fp32", "fp16", "bf16", "fp64", "s8", "s16", "s32" or "s64".
    strides : (int, int, int)
        Strides of batch, row and column, in elements.
    plane : int or None
        Number of elements from one word to the next, if the view holds planes of words.
    """

    data: Any
    type: str
    strides: tuple[int, int, int]
    plane: int | None = None


@dataclass(frozen=True)
class DescribedArray:
    """`DescribedArray` is an array in rows, of which a kernel copies boxes to shared memory by a TMA descriptor made on the
    host.

    Attributes
    ----------
    data : Tensor, ndarray or None
        Whole array, shape `shape`, without gaps; None if the launch is only compiled.
    type : str
        Type of an element, as in :class:`View`.
    shape : (int, int)
        Rows and columns; zeros are copied where a box extends beyond them.
    box : (int, int)
        Rows and columns of a box.
    """

    data: Any
    type: str
    shape: tuple[int, int]
    box: tuple[int, int]


#: Most programs of a one-dimensional grid: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
MOST_PROGRAMS = (1 << 31) - 1


@dataclass(frozen=True)
class TritonLaunch:
    """`TritonLaunch` is a launch of a Triton kernel.

    Attributes
    ----------
    function : str
        Name of the kernel in its module.
    arguments : mapping
        Views, integers, floats and None by name.
    constants : mapping
        Triton's constants by name.
    grid : int
        Number of programs.
    warps, stages : int

    Raises
    ------
    ValueError
        If there are more programs than a grid can have.
    """

    function: str
    arguments: Mapping[str, Any]
    constants: Mapping[str, Any]
    grid: int
    warps: int = 4
    stages: int = 1
    options: Mapping[str, Any] = field(default_factory=lambda: {"enable_fp_fusion": False})

    def __post_init__(self):
        if self.grid > MOST_PROGRAMS:
            raise ValueError(
                f"a launch of {self.function} has a grid of {self.grid} programs, expected at most {MOST_PROGRAMS}: pass fewer "
                "rows, columns or batches at a time"
            )


_FLOATS = {"torch.float64": "fp64", "torch.float32": "fp32"}
_INTEGERS = {1: "s8", 2: "s16", 4: "s32", 8: "s64"}


def view_of(tensor, fmt: str | None = None) -> View:
    """Return a tensor as a view; with `fmt`, its bits are read in that format."""
    if fmt is not None:
        import torch

        tensor = tensor.view({"fp64": torch.float64, "fp32": torch.float32, "fp16": torch.float16}[fmt])
        return View(tensor, fmt, (0, 0, 0))
    kind = _FLOATS.get(str(tensor.dtype)) or _INTEGERS[tensor.element_size()]
    return View(tensor, kind, (0, 0, 0))
