"""Records on a GPU which kernels computed the products of a torch program."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from mpgemm.frameworks.model_products import product_rows, write_rows
from mpgemm.frameworks.torch_tensors import FORMATS, allows_tf32

aten = torch.ops.aten
#: Operations, and the positions of their operands.
_PRODUCTS = {aten.mm: 0, aten.bmm: 0, aten.addmm: 1, aten.baddbmm: 1}


class ProductList(TorchDispatchMode):
    """`ProductList` lists products as torch dispatches them."""

    def __init__(self):
        super().__init__()
        self.products: list[dict] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        at = _PRODUCTS.get(func.overloadpacket)
        if at is not None:
            self.products.append(_row(args[at], args[at + 1], found))
        return found


def _row(a: torch.Tensor, b: torch.Tensor, found: torch.Tensor) -> dict:
    fmt = FORMATS[a.dtype]
    layout = "".join("n" if x.stride(-1) == 1 else "t" for x in (a, b))
    return {
        "m": a.shape[-2], "n": b.shape[-1], "k": a.shape[-1], "layout": layout, "dtype": str(found.dtype),
        "operands": "tf32" if fmt == "fp32" and allows_tf32("matmul") else fmt,
    }  # fmt: skip


@contextmanager
def record_kernels(path: str | Path) -> Iterator[ProductList]:
    """Record which kernels compute a program's products on a GPU.

    Parameters
    ----------
    path : path
        File for the rows, which :func:`mpgemm.frameworks.model_products.profiled_products` reads.

    Yields
    ------
    ProductList
        List whose `products` are the products so far.

    Raises
    ------
    ValueError
        If there is no GPU, or the numbers of kernels and products differ; a warm-up run before avoids kernels that set things
        up.
    """
    if not torch.cuda.is_available():
        raise ValueError("record_kernels needs a GPU, but torch finds none: record on the machine where the model runs")
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as events, ProductList() as listed:
        yield listed
        torch.cuda.synchronize()
    ran = sorted((e for e in events.events() if str(e.device_type).endswith("CUDA")), key=lambda e: e.time_range.start)
    rows = product_rows(listed.products, [e.name for e in ran])
    shared = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": str(torch.version.cuda)}
    write_rows(rows, path, **shared)
