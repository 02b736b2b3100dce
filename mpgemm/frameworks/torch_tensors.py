"""Converts torch tensors to NumPy arrays and back without copies, and reads torch's types and precision flags."""

from typing import Any

import ml_dtypes
import numpy as np
import torch

from tensorcore_models.formats import get_format
from tensorcore_models.formats.interop import as_array

#: Formats of torch's types.
FORMATS = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "e4m3fn",
    torch.float8_e5m2: "e5m2",
    torch.float8_e4m3fnuz: "e4m3fnuz",
    torch.float8_e5m2fnuz: "e5m2fnuz",
}
_TYPES = {get_format(name).dtype: dtype for dtype, name in FORMATS.items()}


def format_of(dtype: torch.dtype, name: str) -> str:
    """Return the format of a torch type. Raises TypeError if no matrix unit multiplies it."""
    if dtype not in FORMATS:
        raise TypeError(
            f"{name} is {dtype}, expected one of {', '.join(str(t) for t in FORMATS)}: convert {name} with .to()"
        )
    return FORMATS[dtype]


def to_array(tensor: torch.Tensor, name: str) -> np.ndarray:
    """Return a dense CPU tensor's memory as a NumPy array of equal strides. Raises TypeError for other tensors."""
    format_of(tensor.dtype, name)
    return as_array(tensor, name)


def to_tensor(array: np.ndarray) -> torch.Tensor:
    """Return an array's memory as a tensor of equal strides."""
    if array.dtype.type.__module__ == ml_dtypes.__name__:
        carrier = np.int16 if array.dtype.itemsize == 2 else np.uint8
        return torch.from_numpy(array.view(carrier)).view(_TYPES[array.dtype])
    return torch.from_numpy(array)


def same_bits(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return a mask of the elements with equal encodings."""
    carrier = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    return x.contiguous().view(carrier) == y.contiguous().view(carrier)


def allows_tf32(kind: str) -> bool:
    """Return whether torch's flags let CUDA form FP32 products of this kind in TF32.

    kind ({"matmul", "convolution"}): Flags to read: ``torch.backends.cuda.matmul`` or ``torch.backends.cudnn.conv``, each with
        ``fp32_precision`` (torch 2.9 or newer) or ``allow_tf32``; ``torch.set_float32_matmul_precision`` sets those of
        "matmul".
    """
    flags: Any
    if kind == "matmul":
        flags, conv = torch.backends.cuda.matmul, None
    else:
        flags = torch.backends.cudnn
        conv = getattr(flags, "conv", None)
    precision = getattr(conv or flags, "fp32_precision", None)
    return flags.allow_tf32 if precision is None else precision == "tf32"


def adds_in_fp16() -> bool:
    """Return whether torch's flag lets CUDA add FP16 products in FP16
    (``torch.backends.cuda.matmul.allow_fp16_accumulation``)."""
    return bool(getattr(torch.backends.cuda.matmul, "allow_fp16_accumulation", False))
