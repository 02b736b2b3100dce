"""A stand-in for torch (and torch_npu) on numpy: what the adapters use of it, and a record of what they asked for."""

import types

import ml_dtypes
import numpy as np

DTYPES = {
    "float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2, "uint8": np.uint8, "int16": np.int16,
    "int32": np.int32, "int64": np.int64,
}  # fmt: skip


class FakeTensor:
    def __init__(self, array, device="cpu"):
        self.array, self.device = array, device

    @property
    def dtype(self):
        return np.dtype(self.array.dtype).type

    def view(self, dtype):
        return FakeTensor(self.array.view(dtype), self.device)

    def to(self, device):
        return FakeTensor(self.array, device)

    def t(self):
        return FakeTensor(self.array.T, self.device)

    def contiguous(self):
        return FakeTensor(np.ascontiguousarray(self.array), self.device)

    def cpu(self):
        return FakeTensor(self.array)

    def numpy(self):
        return self.array

    def __add__(self, other):
        return FakeTensor(self.array + other.array, self.device)


def fake_torch(*, cuda=True, npu=False):
    """A module like torch; `.calls` lists the products that were asked for."""
    torch = types.ModuleType("torch")
    torch.calls = []
    for name, dtype in DTYPES.items():
        setattr(torch, name, dtype)
    torch.from_numpy = lambda array: FakeTensor(array)
    torch.ones = lambda shape, dtype, device: FakeTensor(np.ones(shape, dtype), device)
    torch.cuda = types.SimpleNamespace(is_available=lambda: cuda)
    torch.npu = types.SimpleNamespace(is_available=lambda: npu)
    matmul = types.SimpleNamespace(allow_tf32=False)
    torch.backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=matmul))

    def product(name, a, b, dtype):
        torch.calls.append((name, a.device, matmul.allow_tf32))
        return FakeTensor((a.array.astype(np.float64) @ b.array.astype(np.float64)).astype(dtype), a.device)

    torch.matmul = lambda a, b: product("matmul", a, b, a.dtype)
    torch.mm = lambda a, b, out_dtype: product("mm", a, b, out_dtype)
    torch.addmm = lambda c, a, b, **options: product("addmm", a, b, options.get("out_dtype", a.dtype)) + c
    torch._scaled_mm = lambda a, b, scale_a, scale_b, out_dtype, use_fast_accum: product("_scaled_mm", a, b, out_dtype)
    return torch
