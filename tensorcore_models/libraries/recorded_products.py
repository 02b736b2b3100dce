"""This module reads recorded products, rows of a library's calls and results, and makes the operands from a row's seed.

`python -m mpgemm.traces.record_products` writes such rows on a GPU. Operands come from NumPy's `default_rng([seed, i])`, so
that a recording needs no matrices. Streams i = 0 and 1 are A and B as standard normal numbers (B of scaled products is drawn
as (n, k) and transposed). Streams 2 and 3 are factors of rows and columns, 4 and 5 factors of blocks of 1 x 128 and 128 x 128,
6 and 7 int8 operands.
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

#: Operations of rows: torch.mm, torch.mm with a wider output, torch._scaled_mm by its kind of scales, torch._int_mm.
OPERATIONS = ("mm", "mm out fp32", "scaled_mm", "rowwise", "block 1x128 128x128", "int_mm")
#: Fields of rows whose call gave no result, in recordings and in campaigns.
FAILURES = ("failed", "refused")
#: Factors of `torch._scaled_mm` with one factor for each matrix.
TENSOR_SCALES = (0.5, 3.0)
#: Fields of a file that hold for all its rows.
_SHARED = ("gpu", "torch", "cuda", "cublas")


def load_rows(path: str | os.PathLike) -> list[dict[str, Any]]:
    """Return the rows of a file: JSON with one row, a list, or {"rows": [...]} with common fields, or JSON lines.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If the file holds no rows.
    """
    text = Path(path).read_text(encoding="utf-8")
    try:
        found = json.loads(text)
    except ValueError:
        try:
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise ValueError(f"{path} is neither JSON nor has JSON on each line: {error}") from None
    shared = {}
    if isinstance(found, dict):
        shared = {name: found[name] for name in _SHARED if found.get(name)} if "rows" in found else {}
        found = found.get("rows", [found])
    if not isinstance(found, list) or not found or not all(isinstance(row, dict) for row in found):
        what = type(found).__name__ if not isinstance(found, list) or not found else "a list with other entries"
        raise ValueError(
            f"{path}: expected a list of objects with m, n, k, kernels and configuration, one for each product, got "
            f"{'an empty list' if found == [] else what}"
        )
    return [shared | row for row in found]


def is_product(row: Mapping) -> bool:
    """Return whether a recorded row is a product that ran."""
    return row.get("op") in OPERATIONS and not set(FAILURES) & set(row)


def operands(row: Mapping) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray | float]]:
    """Return A (m, k), B (k, n) and the factors of a recorded row, in the form of :meth:`ProfiledProduct.product`.

    Floating-point operands of 16 and 8 bits are encodings, other operands are numbers.

    Raises
    ------
    ValueError
        If the row has no seed, or its operation is not in :data:`OPERATIONS`.
    """
    op, (m, n, k) = row.get("op"), (int(row[name]) for name in "mnk")
    if op not in OPERATIONS or not row.get("seed"):
        raise ValueError(
            f"op is {op!r} and seed {row.get('seed')!r}, expected a seed and an operation of {', '.join(OPERATIONS)}"
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
    """Return the SHA-256 of a result's bytes in row-major order."""
    return sha256(np.ascontiguousarray(result).tobytes()).hexdigest()
