"""This module records torch's products on a GPU: `python -m mpgemm.traces.record_products --out products.jsonl`.

Each row is written at once as a line of JSON: the request, the kernels that torch's profiler lists, cuBLASLt's log, the
SHA-256 of the whole result and its first row. `tensorcore_models.libraries.from_profile` takes such rows; `mpgemm
predict --profile` reads such files. The log exists only if its variables are set before torch loads cuBLASLt; the
command sets them.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mpgemm.traces.library_log import CALLS, FILE, LEVEL, LibraryLog, configuration
from tensorcore_models.libraries.recorded_products import digest, operands

#: Sizes (m, n, k) recorded by default: squares, short and long sums, one row, one column, k that fills no tile.
SIZES = (
    (64, 64, 64), (16, 16, 256), (1, 4096, 4096), (4096, 1, 4096), (17, 512, 1000), (100, 300, 700), (128, 256, 512),
    (256, 256, 4096), (512, 512, 2048), (64, 64, 16384), (1024, 1024, 1024),
)  # fmt: skip
#: Operands: whether sums in 16 bits are allowed between slices, and the layouts.
FORMATS = {"fp16": (True, False), "bf16": (True, False), "tf32": (None,), "fp32": (None,), "fp64": (None,)}
LAYOUTS = ("nn", "nt", "tn")
FP8_PAIRS = ("e4e4", "e4e5", "e5e4")


def requests(
    sizes: Iterable[tuple[int, int, int]] = SIZES, formats: Iterable[str] = (*FORMATS, "fp8", "s8")
) -> Iterator[dict]:
    """Yield the requests: a row without results for each product.

    Parameters
    ----------
    sizes : iterable of (m, n, k)
    formats : iterable of str
        Formats, from "fp16", "bf16", "tf32", "fp32", "fp64", "fp8" and "s8".

    Raises
    ------
    ValueError
        If a format is unknown.
    """
    wanted = list(formats)
    for name in wanted:
        if name not in (*FORMATS, "fp8", "s8"):
            raise ValueError(f"format {name!r} is not recorded; take one of {', '.join((*FORMATS, 'fp8', 's8'))}")
    for m, n, k in sizes:
        size = {"m": m, "n": n, "k": k, "seed": [7 * m + 11 * n + k]}
        for name in wanted:
            for reduced in FORMATS.get(name, ()):
                for layout in LAYOUTS:
                    yield {"op": "mm", **size, "operands": name, "layout": layout, "reduced": reduced}
        if "s8" in wanted and m > 16:
            yield {"op": "int_mm", **size, "operands": "s8"}
        if "fp8" not in wanted or k % 16 or n % 16:
            continue
        for fast in (False, True):
            for pair in FP8_PAIRS:
                for out in ("torch.bfloat16", "torch.float32", "torch.float16"):
                    yield {"op": "scaled_mm", **size, "operands": pair, "fast": fast, "out": out}
            yield {"op": "rowwise", **size, "operands": "e4e4", "fast": fast}
        if k % 128 == 0 and n % 128 == 0:
            yield {"op": "block 1x128 128x128", **size, "operands": "e4e4"}


def record(rows: Iterable[Mapping], out: str | os.PathLike, device: str = "cuda") -> int:
    """Run products with torch and write their results.

    Parameters
    ----------
    rows : iterable of mapping
        Requests from :func:`requests`.
    out : path
        File to which each row is added as soon as it is known; a call that fails gives a row with `failed`.
    device : str
        torch's name of the device.

    Returns
    -------
    int
        Number of written rows.

    Raises
    ------
    ValueError
        If the file exists.
    """
    import torch

    path = Path(out)
    if path.exists():
        raise ValueError(f"{path} exists already; name another file")
    where = {"gpu": _device_name(device), "torch": torch.__version__, "cuda": torch.version.cuda}
    count = 0
    with path.open("x", encoding="utf-8") as stream:
        for row in rows:
            try:
                found = _recorded(row, device)
            except (RuntimeError, ValueError, NotImplementedError) as error:
                found = {"failed": f"{type(error).__name__}: {error}"[:300]}
            stream.write(json.dumps({**where, **row, **found}) + "\n")
            stream.flush()
            count += 1
    return count


def _device_name(device: str) -> str:
    import torch

    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def _recorded(row: Mapping, device: str) -> dict:
    """Run one product; return its result and the kernels that ran."""
    import torch

    call = product_call(row, device)
    with torch.no_grad():
        log = LibraryLog()
        result = call()
        logged = log.since()
        again, kernels = _profiled(call, device)
    bits, repeated = (_bits(x) for x in (result, again))
    return {
        "shape": list(bits.shape), "dtype": str(result.dtype), "kernels": kernels, "configuration": configuration(logged),
        "sha256": digest(bits), "deterministic": bool((bits == repeated).all()), "first": bits[0].tobytes().hex(),
    }  # fmt: skip


@contextmanager
def _settings(row: Mapping) -> Iterator[None]:
    """Set torch's switches for the row, and restore them."""
    import torch

    matmul = torch.backends.cuda.matmul
    wanted = {"allow_tf32": row.get("operands") == "tf32"}
    for name in ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"):
        if row.get("reduced") is not None:
            wanted[name] = row["reduced"]
    before = {name: getattr(matmul, name) for name in wanted}
    try:
        for name, value in wanted.items():
            setattr(matmul, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(matmul, name, value)


def product_call(row: Mapping, device: Any) -> Callable[[], Any]:
    """Return a call of a product whose operands lie on the device; torch's switches are the row's during a call.

    Parameters
    ----------
    row : mapping
        Request from :func:`requests`.
    device : str or torch.device

    Returns
    -------
    callable
        Function without arguments that returns the result, a torch tensor.

    Raises
    ------
    ValueError
        If the row's operation is no product, or it has no seed.
    """
    call = _call(row, device)

    def switched():
        with _settings(row):
            return call()

    return switched


def _call(row: Mapping, device: Any) -> Callable[[], Any]:
    """Return a call of the product under the current switches."""
    import torch

    a, b, scales = operands(row)
    if row["op"] == "int_mm":
        x, y = (torch.from_numpy(each).to(device) for each in (a, b))
        return lambda: torch._int_mm(x, y)
    if scales:
        types = {"e4": torch.float8_e4m3fn, "e5": torch.float8_e5m2}
        pair = row["operands"]
        x = torch.from_numpy(a).to(device).view(types[pair[:2]])
        y = torch.from_numpy(np.ascontiguousarray(b.T)).to(device).view(types[pair[2:]]).t()
        s, t = (
            torch.as_tensor(np.float32(each) if np.ndim(each) == 0 else each).to(device) for each in scales.values()
        )
        if row["op"].startswith("block"):
            s, t = s.t().contiguous().t(), t.t().contiguous().t()
        out = getattr(torch, str(row.get("out", "torch.bfloat16")).removeprefix("torch."))
        return lambda: torch._scaled_mm(
            x, y, scale_a=s, scale_b=t, out_dtype=out, use_fast_accum=bool(row.get("fast", False))
        )
    types = {"fp16": torch.float16, "bf16": torch.bfloat16}
    x, y = (torch.from_numpy(each).to(device) for each in (a, b))
    if row["operands"] in types:
        x, y = (each.view(types[row["operands"]]) for each in (x, y))
    layout = row.get("layout", "nn")
    x, y = (each.t().contiguous().t() if letter == "t" else each for each, letter in zip((x, y), layout, strict=True))
    if row["op"] == "mm out fp32":
        return lambda: torch.mm(x, y, out_dtype=torch.float32)
    return lambda: x @ y


def _bits(x) -> np.ndarray:
    """Return a tensor's encodings."""
    import torch

    x = x.contiguous()
    carrier = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    return x.view(carrier).cpu().numpy()


def _profiled(call, device: str) -> tuple:
    """Return the result of another call, and the names of the kernels that ran."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    if not device.startswith("cuda"):
        return call(), []
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as run:
        result = call()
        torch.cuda.synchronize(device)
    events = [event for event in run.events() if str(event.device_type).endswith("CUDA")]
    return result, [[event.name, event.device_time] for event in events]


def main(arguments: list[str] | None = None) -> int:
    """Record the products that the command's arguments name."""
    parser = argparse.ArgumentParser(
        prog="python -m mpgemm.traces.record_products", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--out", required=True, metavar="FILE.jsonl", help="file to write, one row a line")
    parser.add_argument("--sizes", nargs="+", metavar="MxNxK", help="sizes, as in 64x4096x4096 (default: eleven)")
    parser.add_argument(
        "--formats", nargs="+", default=[*FORMATS, "fp8", "s8"], help="formats of operands (default: all)"
    )
    parser.add_argument("--device", default="cuda", help="torch's name of the device (default cuda)")
    given = parser.parse_args(arguments)
    try:
        sizes = SIZES if given.sizes is None else [_size(text) for text in given.sizes]
        rows = list(requests(sizes, given.formats))
        with tempfile.TemporaryDirectory() as folder:
            os.environ.setdefault(LEVEL, CALLS)
            os.environ.setdefault(FILE, str(Path(folder) / "cublaslt.log"))
            count = record(rows, given.out, given.device)
    except (ValueError, ImportError, AssertionError, RuntimeError) as error:  # torch without CUDA raises the last two
        print(f"record_products: {error}", file=sys.stderr)
        return 2
    print(f"wrote {given.out}: {count} rows")
    return 0


def _size(text: str) -> tuple[int, int, int]:
    match = re.fullmatch(r"(\d+)x(\d+)x(\d+)", text)
    if not match:
        raise ValueError(f"--sizes {text!r}: expected MxNxK, such as 64x4096x4096")
    m, n, k = (int(part) for part in match.groups())
    return m, n, k


if __name__ == "__main__":
    sys.exit(main())
