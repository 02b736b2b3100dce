"""Compares an emulated Triton kernel with its own PTX, run on the same units, as a gate for CI."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from mpgemm.frameworks.call_log import Report
from mpgemm.frameworks.triton_compiled import TARGETS, compile_kernel
from mpgemm.frameworks.triton_dots import emulate
from tensorcore_models import compiled
from tensorcore_models.catalogue.devices import DEVICES

#: Number of differing elements that a failure shows.
SHOWN = 3


def assert_triton_matches(
    kernel, arguments: Sequence, *, grid: Sequence[int], target: str, unpublished: str = "refuse", **options
) -> Report:
    """Check that an emulated kernel writes the same bits as its compiled code.

    The kernel runs twice on copies of the arguments: interpreted under :func:`emulate`, and as PTX that Triton compiles for the
    target and :mod:`tensorcore_models.compiled` runs. No GPU is needed.

    Parameters
    ----------
    kernel : triton.jit function
        Kernel that was defined with TRITON_INTERPRET=1.
    arguments : sequence
        Positional arguments of the kernel: contiguous tensors and numbers, which are not changed.
    grid : sequence of int
        Numbers of programs along x, y, z.
    target : str
        Device or architecture with PTX, such as "a100", "h100", "b200".
    unpublished : {"refuse", "nearest"}
        Argument of :meth:`tensorcore_models.compiled.PTXProgram.run`.
    **options
        Keyword arguments of the launch: the kernel's constants, num_warps, num_stages.

    Returns
    -------
    Report
        Report of the emulation.

    Raises
    ------
    AssertionError
        If elements of a tensor differ; the message names them with both encodings.
    NotCompiled, ValueError, TypeError
        If the kernel cannot be compiled or emulated for the target, or an argument is neither a contiguous tensor nor a number.
    """
    arch = DEVICES.get(target, (target,))[0]
    if arch not in TARGETS or TARGETS[arch][0] != "cuda":
        known = ", ".join(name for name, row in TARGETS.items() if row[0] == "cuda")
        raise ValueError(f"target is {target!r}, for which Triton compiles no PTX: give a device of {known}")
    given = [(_copied(x, i), _copied(x, i)) for i, x in enumerate(arguments)]
    emulated, run = zip(*given, strict=True) if given else ((), ())
    with emulate(target, compiler="ask") as emulation:
        kernel[tuple(grid)](*emulated, **options)
    found = compile_kernel(kernel, tuple(run), options, TARGETS[arch])
    named = dict(zip(kernel.arg_names, run, strict=False)) | options
    values = [_as_argument(named[name], name) for name in found.parameters]
    program = compiled.read(found.texts["ptx"])
    program.run(values, grid, unit=arch, unpublished=unpublished)
    faults = [line for i, (x, y) in enumerate(given) for line in _differences(kernel.arg_names[i], x, y)]
    if faults:
        orders = "; ".join(f"{row.site.site}: {row.site.orders[0]}" for row in emulation.report().rows)
        raise AssertionError("\n".join([f"emulation and {found.label} differ", *faults, f"emulated as {orders}"]))
    return emulation.report()


def _copied(argument: Any, index: int) -> Any:
    if isinstance(argument, torch.Tensor):
        if not argument.is_contiguous():
            raise ValueError(
                f"argument {index}, a tensor of shape {tuple(argument.shape)}, is not contiguous: pass the argument as "
                "x.contiguous()"
            )
        return argument.clone()
    return argument


def _bits(tensor: torch.Tensor) -> np.ndarray:
    """Return an array of the tensor's encodings, which shares its memory."""
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    array = tensor.reshape(-1).view(kinds[tensor.element_size()]).numpy()
    return array.view(f"u{array.itemsize}").reshape(tensor.shape)


def _as_argument(value: Any, name: str) -> Any:
    """Return an argument of a launch as a parameter of PTX."""
    if isinstance(value, torch.Tensor):
        return _bits(value)
    if isinstance(value, bool | int | float):
        return value
    raise TypeError(
        f"argument {name} is a {type(value).__name__}, expected a tensor or a number: pass tensors in place of descriptors"
    )


def _differences(name: str, emulated: Any, run: Any) -> list[str]:
    """Return lines that name elements of a tensor whose bits differ."""
    if not isinstance(emulated, torch.Tensor):
        return []
    left, right = _bits(emulated), _bits(run)
    apart = np.argwhere(left != right)
    if not len(apart):
        return []
    digits = 2 + 2 * left.itemsize
    shown = [tuple(map(int, index)) for index in apart[:SHOWN]]
    cells = ", ".join(f"{i}: {int(left[i]):#0{digits}x} and {int(right[i]):#0{digits}x}" for i in shown)
    return [f"{name}: {len(apart)} of {left.size} elements, as {cells}"]
