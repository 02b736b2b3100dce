"""Recorded products: rows that say what a library ran and what it returned, and the operands that a row's seed means.

`python -m mpgemm.traces.record_products` writes such rows on a GPU. Operands come from NumPy's generator, so that a recording
needs no matrices: of `default_rng([seed, i])` stream 0 is A and 1 is B (standard normal numbers; B of scaled products as
(n, k), transposed), 2 and 3 are factors of rows and columns, 4 and 5 those of blocks of 1 x 128 and 128 x 128, 6 and 7 int8
operands.
"""

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ..formats.rounding import encode
from .profiles import operands_of_row

#: What a row's product is: torch.mm, with a wider output, torch._scaled_mm by its scales, torch._int_mm.
OPERATIONS = ("mm", "mm out fp32", "scaled_mm", "rowwise", "block 1x128 128x128", "int_mm")
#: What a row of a call has that gave no result, here and in a campaign.
FAILURES = ("failed", "refused")
#: Factors of `torch._scaled_mm` with one for each matrix.
TENSOR_SCALES = (0.5, 3.0)
#: What a file says of all its rows.
_SHARED = ("gpu", "torch", "cuda", "cublas")


def load_rows(path: str | os.PathLike) -> list[dict[str, Any]]:
    """Return rows of a file: JSON with one row, a list or {"rows": [...]} beside what holds for all, or a row on each line.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it holds no rows.
    """
    text = Path(path).read_text(encoding="utf-8")
    try:
        found = json.loads(text)
    except ValueError:
        try:
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise ValueError(f"{path}: neither JSON nor a JSON row on each line ({error})") from None
    shared = {}
    if isinstance(found, dict):
        shared = {name: found[name] for name in _SHARED if found.get(name)} if "rows" in found else {}
        found = found.get("rows", [found])
    if not isinstance(found, list) or not found or not all(isinstance(row, dict) for row in found):
        raise ValueError(f"{path}: expected rows of products, each an object with m, n, k, kernels and configuration")
    return [shared | row for row in found]


def is_product(row: Mapping) -> bool:
    """Return whether a recorded row is a product that ran."""
    return row.get("op") in OPERATIONS and not set(FAILURES) & set(row)


def operands(row: Mapping) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray | float]]:
    """Return A (m, k), B (k, n) and the factors of a recorded row: as :meth:`ProfiledProduct.product` takes them.

    16 and 8 bit floating-point operands are encodings, others numbers.

    Raises
    ------
    ValueError
        If the row has no seed, or its operation is another.
    """
    op, (m, n, k) = row.get("op"), (int(row[name]) for name in "mnk")
    if op not in OPERATIONS or not row.get("seed"):
        raise ValueError(
            f"op {op!r} with seed {row.get('seed')!r}: known operations with a seed are {', '.join(OPERATIONS)}"
        )
    seed = int(row["seed"][0])

    def stream(index: int) -> np.random.Generator:
        return np.random.default_rng([seed, index])

    def factors(index: int, *shape: int) -> np.ndarray:
        return np.exp2(stream(index).uniform(-2, 2, shape)).astype(np.float32)

    if op == "int_mm":
        return stream(6).integers(-128, 128, (m, k), np.int8), stream(7).integers(-128, 128, (k, n), np.int8), {}
    scaled = op not in ("mm", "mm out fp32")
    a = stream(0).standard_normal((m, k)).astype(np.float32)
    b = stream(1).standard_normal((n, k) if scaled else (k, n)).astype(np.float32)
    of_a, of_b = operands_of_row(row) or ("e4m3fn", "e4m3fn")
    if scaled:
        scale_a: np.ndarray | float
        scale_b: np.ndarray | float
        if op == "scaled_mm":
            scale_a, scale_b = TENSOR_SCALES
        elif op == "rowwise":
            scale_a, scale_b = factors(2, m, 1), factors(3, 1, n)
        else:
            scale_a, scale_b = factors(4, m, k // 128), factors(5, k // 128, n // 128)
        bits = np.ascontiguousarray(encode(b, of_b, "rne").T)
        return encode(a, of_a, "rne"), bits, {"scale_a": scale_a, "scale_b": scale_b}
    if of_a == "fp64":
        return a.astype(np.float64), b.astype(np.float64), {}
    return (a, b, {}) if of_a in ("fp32", "tf32") else (encode(a, of_a, "rne"), encode(b, of_b, "rne"), {})


def digest(result: np.ndarray) -> str:
    """Return SHA-256 of a result's bytes, rows first."""
    return sha256(np.ascontiguousarray(result).tobytes()).hexdigest()
