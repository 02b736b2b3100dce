"""This module reads arrays of other libraries as numpy arrays of their natural type (ml_dtypes for bf16, fp8, fp6, fp4).

It accepts numpy and ml_dtypes arrays, scalars and nested lists of numbers, torch CPU tensors (bfloat16 and float8 types
included), objects with ``__array__``, and DLPack objects on the CPU.
"""

import sys
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from .rows import FORMATS, Format

#: torch types that torch's numpy() refuses; ml_dtypes has types of the same names and encodings.
_TORCH_ONLY = (
    "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip


@cache
def _formats_by_dtype() -> dict[np.dtype, Format]:
    return {row.dtype: row for row in FORMATS.values() if row.dtype is not None and not row.padding_bits}


def format_of_dtype(dtype: Any) -> Format | None:
    """Return the format of a numpy or ml_dtypes type, None if it has none; float32 is fp32, never tf32 or hf32."""
    return _formats_by_dtype().get(np.dtype(dtype).newbyteorder("="))


def is_ml_integer(dtype: np.dtype) -> bool:
    """Return whether `dtype` is one of ml_dtypes' small integer types (int4, uint4, int2, uint2)."""
    return dtype.kind == "V" and dtype.name in ("int4", "uint4", "int2", "uint2")


def is_ml_float(dtype: np.dtype) -> bool:
    """Return whether `dtype` is one of ml_dtypes' floating-point types."""
    if dtype.fields is not None or dtype.name.startswith("void"):
        return False
    try:
        ml_dtypes.finfo(dtype)
    except (ValueError, TypeError):
        return False
    return dtype.type.__module__ == "ml_dtypes"


def _from_torch(tensor: Any) -> np.ndarray:
    if tensor.device.type != "cpu":
        raise TypeError(
            f"expected a torch tensor on the CPU, got a tensor on {tensor.device}: move the tensor with .cpu() first"
        )
    if tensor.is_sparse or tensor.layout is not sys.modules["torch"].strided:
        raise TypeError(
            f"expected a dense torch tensor, got layout {tensor.layout}: convert the tensor with .to_dense() first"
        )
    tensor = tensor.detach().resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in _TORCH_ONLY:
        return tensor.numpy()
    torch = sys.modules["torch"]
    carrier = torch.int16 if tensor.element_size() == 2 else torch.uint8
    return tensor.view(carrier).numpy().view(getattr(ml_dtypes, name))


def _is_torch_tensor(x: Any) -> bool:
    torch = sys.modules.get("torch")  # an object cannot be a tensor before torch has been imported
    return torch is not None and isinstance(x, torch.Tensor)


def as_array(x: Any, name: str = "x") -> np.ndarray:
    """Return `x` as a numpy array of real numbers in its natural numpy or ml_dtypes type, as a view where possible.

    Parameters
    ----------
    x : array_like
        Numpy or ml_dtypes array, scalar, nested list of numbers, torch tensor on the CPU, object with ``__array__``, or DLPack
        object on the CPU, of any shape, strides and byte order; it is never modified.
    name : str
        Name of the argument in messages.

    Raises
    ------
    TypeError
        If `x` is not an array of real numbers (object, complex, string, boolean, structured), or is stored on a device.
    """
    if isinstance(x, np.ndarray):
        array = x
    elif _is_torch_tensor(x):
        array = _from_torch(x)
    elif hasattr(x, "__array__") or not hasattr(x, "__dlpack__"):
        try:
            array = np.asarray(x)
        except ValueError as error:
            raise TypeError(f"{name} is not a rectangular array of numbers: {error}") from None
    else:
        try:
            array = np.from_dlpack(x)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise TypeError(
                f"{name}: numpy cannot read this DLPack object ({error}): copy the object to the CPU first"
            ) from None
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, whose masked elements have no defined value: fill them first with .filled(value)"
        )
    dtype = array.dtype
    if dtype.kind in "iuf" or is_ml_float(dtype) or is_ml_integer(dtype):
        return np.asarray(array)
    raise TypeError(f"{name} must hold real numbers (floating-point or integer type), got dtype {dtype}")
