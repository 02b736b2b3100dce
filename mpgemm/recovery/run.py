"""Binds a recovery method to an engine and operands, which :func:`mpgemm.recovered_gemm` then runs."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mpgemm.inputs.sizes import check_shapes
from mpgemm.recovery.engines import ieee_engine, resolve_engine
from mpgemm.recovery.method import RecoveryMethod, products_below
from mpgemm.recovery.methods import get_method
from mpgemm.recovery.parts import parts_of
from mpgemm.recovery.word_run import CubeRun, WordRun, WordStore
from tensorcore_models.formats.rounding import source_array

if TYPE_CHECKING:
    from mpgemm.recovery.integer_run import IntegerRun
    from mpgemm.recovery.own_run import OwnRun


def _on_cube(row: RecoveryMethod) -> bool:
    """Return whether :func:`ascend.cube_gemm` computes the products of a row in its order."""
    return row.products in (products_below(2, 1), products_below(2)) and row.accumulation in ("termwise", "elementwise")


def prepare(
    a,
    b,
    c,
    method,
    engine,
    overflow: str | None = None,
    options: Mapping | None = None,
    store: WordStore | None = None,
) -> "WordRun | IntegerRun | OwnRun":
    """Return a method bound to an engine and operands, after checking all of them; `store` keeps the words."""
    row = get_method(method, **(options or {}))
    engine = resolve_engine(engine, row)
    overflow = row.overflow if overflow is None else overflow
    if overflow is None:
        overflow = "saturate" if getattr(getattr(engine, "accumulator", None), "saturate", False) else "inf"
    if overflow not in ("inf", "saturate"):
        raise ValueError(f"overflow is {overflow!r}, expected 'inf' or 'saturate'")
    a, b, c = check_operands(a, b, c)
    if row.parts == "auto":
        row = dataclasses.replace(row, parts=parts_of(b.shape[1], b.shape[0], row))
    count = None
    if row.count is not None:
        from mpgemm.recovery.counts import choose, result_format

        count = choose(row, a, b)
        if count.count is None:
            native = result_format(row, a, b)
            return WordRun(get_method(native), ieee_engine(native), a, b, c, overflow, None, count)
        row = row.with_count(count.count)
    if row.kind == "own":
        from mpgemm.recovery.own_run import OwnRun

        return OwnRun(row, engine, a, b, c)
    if row.kind != "words":
        from mpgemm.recovery.integer_run import IntegerRun

        return IntegerRun(row, engine, a, b, c, count)
    if row.name == "sgemm_cube" and getattr(engine, "path", None) == "cube" and _on_cube(row):
        return CubeRun(row, engine, a, b, c, overflow)
    return WordRun(row, engine, a, b, c, overflow, store)


def check_operands(a, b, c) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the operands as float32 or float64 arrays of matching shapes; c may be None. Raises ValueError or TypeError."""
    a, b, c = source_array(a, "a"), source_array(b, "b"), None if c is None else source_array(c, "c")
    check_shapes(a, b, c)
    return a, b, c
