"""This module makes matrix engines of torch.matmul (cuBLAS, or an Ascend NPU through torch_npu) and cupy.matmul.

These engines have k = 1, because operands are neither padded nor chained here; the library chooses the instructions and the
order of k. With c, torch engines call ``addmm``.
"""

import abc
import importlib
from types import ModuleType
from typing import Any

import numpy as np

from ...engines.engine import Engine
from ...formats import FORMATS, get_format

#: Names of torch types by format. tf32 operands are float32 tensors that are multiplied with TF32 allowed.
TORCH_TYPES = {name: FORMATS[name].dtype_name for name in ("fp64", "fp32", "tf32", "fp16", "bf16", "e4m3fn", "e5m2")}
#: Integer type through which encodings of each width in bytes pass (torch has few operations on unsigned integers).
_CARRIERS = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}


def _import(name: str, needed_for: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise RuntimeError(
            f"{needed_for} needs the package {name.split('.')[0]}, which cannot be imported ({error}): install it"
        ) from error


class _LibraryEngine(Engine):
    """`_LibraryEngine` is the base of library engines: it checks formats and passes whole products to the library."""

    k = 1
    a_format: str
    d_format: str

    def __init__(self, a_format: str, d_format: str | None, known: dict[str, str] | set[str], library: str):
        fmt = get_format(a_format).name
        if fmt not in known:
            raise ValueError(f"{library} does not multiply {a_format!r}, expected one of {', '.join(sorted(known))}")
        eight_bits = get_format(fmt).bits == 8
        default = "fp32" if fmt == "tf32" or eight_bits else fmt
        self.a_format = self.b_format = fmt
        self.c_format = self.d_format = get_format(d_format or default).name

    @abc.abstractmethod
    def require(self) -> None:
        """Raise RuntimeError if the library or its device is missing."""

    @abc.abstractmethod
    def _product(self, a, b, c) -> np.ndarray:
        """Return the library's product; c may be None."""

    def _gemm_checked(self, a, b, c, scale_a, scale_b, k_order, promote_every, promote_rounding):
        if k_order != "sequential" or promote_every is not None:
            raise ValueError(f"{self.label}: the library chooses the order of k: leave k_order and promote_every out")
        if a.shape[1] == 0 or 0 in c.shape:
            return self._c_as_result(c)
        return self._product(a, b, c if c.any() else None)

    def _chain_bits(self, a, b, c, scale_a, scale_b):
        return self._product(a, b, c)


class TorchMatmulEngine(_LibraryEngine):
    """`TorchMatmulEngine` runs ``torch.matmul`` (or ``addmm``; ``_scaled_mm`` for fp8) on a device.

    Parameters
    ----------
    a_format : str
        Operand format: fp64, fp32, tf32 (float32 with TF32 allowed), fp16, bf16, e4m3fn or e5m2.
    d_format : str, optional
        Format of the result; by default the operands' format, but fp32 for tf32 and fp8.
    device : str
        Device of torch: "cuda", "cpu", or "npu" (Ascend; imports torch_npu).

    Raises
    ------
    ValueError
        If torch does not multiply the format.
    RuntimeError
        At the first use, if torch (torch_npu) or the device is missing.
    """

    def __init__(self, a_format: str, d_format: str | None = None, device: str = "cuda"):
        super().__init__(a_format, d_format, TORCH_TYPES, "torch")
        self.device = device
        self._loaded: Any = None

    @property
    def label(self) -> str:
        kind = "npu" if self.device.startswith("npu") else "torch"
        return f"{kind}:{self.a_format}.{self.d_format}" + ("" if self.device in ("cuda", "npu") else f"@{self.device}")

    @property
    def torch(self) -> Any:
        """Return the module torch; raise RuntimeError if torch or the device is missing."""
        if self._loaded is None:
            torch = _import("torch", self.label)
            if self.device.startswith("npu"):
                _import("torch_npu", self.label)
                available = torch.npu.is_available()
            else:
                available = not self.device.startswith("cuda") or torch.cuda.is_available()
            if not available:
                raise RuntimeError(
                    f"{self.label}: torch finds no device {self.device!r} on this machine: use another device"
                )
            self._loaded = torch
        return self._loaded

    def require(self) -> None:
        _ = self.torch

    def tensor(self, bits: np.ndarray, fmt: str) -> Any:
        """Return the values of encodings as a tensor on the device."""
        carrier = np.ascontiguousarray(bits).view(_CARRIERS[bits.dtype.itemsize])
        return self.torch.from_numpy(carrier.copy()).view(getattr(self.torch, TORCH_TYPES[fmt])).to(self.device)

    def bits(self, tensor: Any) -> np.ndarray:
        """Return the encodings of a result tensor, whose format is `d_format`."""
        container = get_format(self.d_format).container
        names = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}
        integers = tensor.contiguous().view(getattr(self.torch, names[container.itemsize]))
        return integers.cpu().numpy().view(container)

    def multiply(self, a: Any, b: Any, c: Any = None) -> Any:
        """Return the library's product of two tensors; FP32 tensors are multiplied as TF32 if `a_format` is tf32."""
        torch = self.torch
        if self.device.startswith("npu") or self.a_format not in ("tf32", "fp32"):
            return self._call(a, b, c)
        allowed = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = self.a_format == "tf32"
        try:
            return self._call(a, b, c)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = allowed

    def _call(self, a: Any, b: Any, c: Any) -> Any:
        torch = self.torch
        result = getattr(torch, TORCH_TYPES[self.d_format])
        if get_format(self.a_format).bits == 8:
            one = torch.ones((), dtype=torch.float32, device=self.device)
            column_major = b.t().contiguous().t()
            d = torch._scaled_mm(a, column_major, scale_a=one, scale_b=one, out_dtype=result, use_fast_accum=True)
            return d if c is None else d + c
        options = {} if self.d_format in (self.a_format, "fp32") and a.dtype == result else {"out_dtype": result}
        if c is None:
            return torch.mm(a, b, **options) if options else torch.matmul(a, b)
        return torch.addmm(c, a, b, **options)

    def _product(self, a, b, c):
        tensors = [self.tensor(a, self.a_format), self.tensor(b, self.b_format)]
        if c is not None:
            tensors.append(self.tensor(c, self.c_format))
        return self.bits(self.multiply(*tensors))


#: Formats that cupy multiplies through cuBLAS.
CUPY_FORMATS = {"fp64", "fp32", "fp16"}


class CupyMatmulEngine(_LibraryEngine):
    """`CupyMatmulEngine` runs ``cupy.matmul``, which calls cuBLAS on fp16, fp32 or fp64 arrays.

    Raises
    ------
    ValueError
        If cupy does not multiply the format.
    RuntimeError
        At the first use, if cupy is missing.
    """

    def __init__(self, a_format: str):
        super().__init__(a_format, None, CUPY_FORMATS, "cupy")

    @property
    def label(self) -> str:
        return f"cupy:{self.a_format}"

    def require(self) -> None:
        _import("cupy", self.label)

    def _product(self, a, b, c):
        cupy = _import("cupy", self.label)
        dtype = get_format(self.a_format).dtype
        x, y = (cupy.asarray(np.ascontiguousarray(m).view(dtype)) for m in (a, b))
        d = cupy.matmul(x, y)
        if c is not None:
            d = d + cupy.asarray(np.ascontiguousarray(c).view(dtype))
        return cupy.asnumpy(d).view(get_format(self.d_format).container)
