"""One launch of a kernel in Triton: arguments by name, constants, grid. Devices and machines of text run the same ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class View:
    """An operand or result in memory.

    Attributes
    ----------
    data : Tensor, ndarray or None
        Whose first element is that of the view; None: only compiled for.
    type : str
        "fp32", "fp16", "bf16", "fp64", or an integer's: "s8", "s16", "s32", "s64"
        Of an element.
    strides : (int, int, int)
        Of batch, row and column, in elements.
    plane : int or None
        Elements from one word to the next where it holds planes of words.
    """

    data: Any
    type: str
    strides: tuple[int, int, int]
    plane: int | None = None


@dataclass(frozen=True)
class DescribedArray:
    """An array in rows of which a kernel copies boxes to shared memory, by a TMA descriptor that the host makes.

    Attributes
    ----------
    data : Tensor, ndarray or None
        The whole array, shape `shape`, without gaps; None: only compiled for.
    type : str
        Of an element, as :class:`View` has it.
    shape : (int, int)
        Rows and columns: zeros are copied where a box leaves them.
    box : (int, int)
        Rows and columns of a box.
    """

    data: Any
    type: str
    shape: tuple[int, int]
    box: tuple[int, int]


#: Programs of a grid of one dimension: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
MOST_PROGRAMS = (1 << 31) - 1


@dataclass(frozen=True)
class TritonLaunch:
    """A launch of a Triton kernel.

    Attributes
    ----------
    function : str
        Name of the kernel in its module.
    arguments : mapping
        Views, integers, floats and None by name.
    constants : mapping
        Triton's constants by name.
    grid : int
        Programs.
    warps, stages : int

    Raises
    ------
    ValueError
        If there are more programs than a grid has.
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
                f"{self.function} takes {self.grid} programs, a grid has at most {MOST_PROGRAMS}: pass fewer rows, columns or "
                "batches at a time"
            )


_FLOATS = {"torch.float64": "fp64", "torch.float32": "fp32"}
_INTEGERS = {1: "s8", 2: "s16", 4: "s32", 8: "s64"}


def view_of(tensor, fmt: str | None = None) -> View:
    """Return a tensor in memory; `fmt`: its bits are that format's."""
    if fmt is not None:
        import torch

        tensor = tensor.view({"fp64": torch.float64, "fp32": torch.float32, "fp16": torch.float16}[fmt])
        return View(tensor, fmt, (0, 0, 0))
    kind = _FLOATS.get(str(tensor.dtype)) or _INTEGERS[tensor.element_size()]
    return View(tensor, kind, (0, 0, 0))
