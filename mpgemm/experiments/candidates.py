"""Every way to compute a product that this package models: instructions in several orders of k, recovery methods, recipes."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

import tensorcore_models as tcm
from mpgemm.recovery.engines import UnsuitableEngine, ieee_engine, resolve_engine
from mpgemm.recovery.methods import RecoveryMethod, list_methods
from mpgemm.recovery.run import recovered_gemm
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.instruction import Instruction
from tensorcore_models.engines.matrix_engine import MatrixEngine
from tensorcore_models.engines.order import Sum, order_of
from tensorcore_models.formats import Format, IntegerFormat
from tensorcore_models.formats.interop import format_of_dtype
from tensorcore_models.formats.operands import operand_bits, values_of_bits
from tensorcore_models.formats.rounding import encode
from tensorcore_models.libraries import Recipe

#: Parts of split-k and sliced-k, and intervals of promotion, that are tried.
SPLITS = (2, 3, 4, 5, 6, 8, 12, 16, 32)
SLICES = (2, 4, 8)
INTERVALS = tuple(2**e for e in range(4, 13))
#: Roundings of operands that a format lacks: conversion instructions round to nearest, tensor cores read tf32 cut off.
ROUNDINGS = {"tf32": ("rne", "rna", "rz")}
#: Values of the options of recovery methods that are tried, beside the defaults.
OPTIONS: dict[str, tuple] = {
    "rounding": ("rne", "rz"),
    "terms": (3, 4),
    "accumulate_outside": ("k_step", "c_only"),
    "accumulation": ("termwise", "elementwise"),
    "order": ("step", "term"),
}

Multiply = Callable[[np.ndarray, np.ndarray, np.ndarray | None], np.ndarray]


@dataclass(frozen=True)
class Candidate:
    """One way to compute.

    Parameters
    ----------
    who : str
        Instruction, method or recipe.
    how : str
        Order of k and what is rounded.
    multiply : callable
        (A, B, C0 or None) -> encodings of the result.
    same : tuple of str
        Other instructions that compute the same.
    whole : bool
        The result depends on the whole matrices: rows and columns cannot be computed alone.
    """

    who: str
    how: str
    multiply: Multiply
    same: tuple[str, ...] = ()
    whole: bool = False

    @property
    def label(self) -> str:
        """For tables."""
        return f"{self.who}, {self.how}"


def candidates(
    a: np.ndarray, b: np.ndarray, result: Format | IntegerFormat, *, methods: Sequence[RecoveryMethod] | None = None,
    recipes: Iterable[Recipe] = (),
) -> Iterator[Candidate]:  # fmt: skip
    """Every candidate whose formats fit.

    Parameters
    ----------
    a, b : ndarray, shapes (m, k) and (k, n)
        Values in the natural types of their formats. Formats that lack some of them are tried with rounding.
    result : Format or IntegerFormat
        Of the result; floating-point sums in FP32 are rounded to it.
    methods : sequence of RecoveryMethod, optional
        All by default, for operands of FP32 or FP64.
    recipes : iterable of Recipe
        Of libraries, tried as well.
    """
    for recipe in recipes:
        yield Candidate(recipe.name, f"recipe on {recipe.engine.label}", partial(_recipe, recipe, result))
    holds: dict[str, bool] = {}
    for family in _distinct(_units(result), lambda e: (e.accumulator, *e.formats)):
        for rounding in _roundings(family[0], a, b, holds):
            yield _candidate(family, "one chain over k", {}, rounding, result)
            for how, order, engines in _orders(family, a.shape[1], result):
                yield _candidate(engines, how, order, rounding, result)
    if any(x.dtype in (np.float32, np.float64) for x in (a, b)):
        yield from _methods(list_methods() if methods is None else methods, result)


def _units(result: Format | IntegerFormat) -> Iterator[MatrixEngine]:
    """Instructions and IEEE chains whose results can become `result`."""
    for row in tcm.list_instructions():
        plain = row.published and row.scale_format is None and row.c_format == row.d_format
        if plain and _becomes(row.formats[3], result):
            yield row
    for fmt in ("fp32", "fp16", "bf16", "fp64"):
        for wide in dict.fromkeys((fmt, "fp64" if fmt == "fp64" else "fp32")):
            engine = ieee_engine(fmt, wide)
            if _becomes(engine.formats[3], result):
                yield engine


def _becomes(unit: Format | IntegerFormat, result: Format | IntegerFormat) -> bool:
    if unit == result:
        return True
    return isinstance(result, Format) and unit == tcm.get_format("fp32") and result.bits < 32


def _distinct(engines: Iterable[MatrixEngine], key) -> list[list[MatrixEngine]]:
    groups: dict = {}
    for engine in engines:
        groups.setdefault(key(engine), []).append(engine)
    return list(groups.values())


def _roundings(engine: Engine, a: np.ndarray, b: np.ndarray, holds: dict[str, bool]) -> tuple[str | None, ...]:
    """How operands get into the engine's formats: None where they are there already; empty where they do not fit."""
    for x, fmt, name in ((a, engine.formats[0], "a"), (b, engine.formats[1], "b")):
        if isinstance(fmt, IntegerFormat) != (x.dtype.kind in "iu"):
            return ()
        key = f"{name} {fmt.name}"
        if key not in holds:
            holds[key] = _held(x, fmt)
    if all(holds[f"{name} {fmt.name}"] for name, fmt in zip("ab", engine.formats, strict=False)):
        return (None,)
    wide = all(x.dtype in (np.float32, np.float64) for x in (a, b))
    if not wide or isinstance(engine.formats[0], IntegerFormat) or engine.formats[0].bits <= 8:
        return ()
    return ROUNDINGS.get(engine.formats[0].name, ("rne",))


def _held(x: np.ndarray, fmt: Format | IntegerFormat) -> bool:
    try:
        operand_bits(x, fmt, None, "x")
    except (ValueError, TypeError):
        return False
    return True


def _candidate(engines: list[MatrixEngine], how: str, order: dict, rounding, result) -> Candidate:
    """The first of engines that compute the same, in an order."""
    engine, *others = engines
    how += "" if rounding is None else f", operands rounded ({rounding})"
    how += "" if engine.formats[3] == result else f", result rounded to {result.name}"
    multiply = partial(_engine, engine, rounding, result, order)
    return Candidate(engine.label, how, multiply, tuple(other.label for other in others))


def _orders(family: list[MatrixEngine], k: int, result) -> list[tuple[str, dict, list[MatrixEngine]]]:
    """Orders of several chains: what they are, the arguments of `gemm_bits`, and the engines that add alike in them.

    Engines of one arithmetic whose k steps differ add alike where k is cut at the same places.
    """
    found: dict = {}
    for engine in () if isinstance(result, IntegerFormat) else family:
        for how, arguments, order in _joined(engine, k):
            found.setdefault(order, (how, arguments, []))[2].append(engine)
    return list(found.values())


def _joined(engine: MatrixEngine, k: int) -> Iterator[tuple[str, dict, object]]:
    """Different orders of several chains of one engine, each with what identifies it."""
    names = [(f"split-k in {s} parts", f"split_k:{s}") for s in SPLITS]
    names += [(f"sliced-k in {s} chains", f"sliced_k:{s}") for s in SLICES]
    seen = set()
    for how, name in names:
        order = order_of(k, engine.k, name)
        if isinstance(order, Sum) and len(order.parts) > 1 and order not in seen:
            seen.add(order)
            yield how, {"k_order": name}, order
    if engine.formats[3].name == "fp32":
        for every in dict.fromkeys((engine.k, *INTERVALS)):
            if every % engine.k == 0 and every < k:
                yield f"added outside every {every} products", {"promote_every": every}, every


def _engine(engine: Engine, rounding, result, order: dict, a, b, c) -> np.ndarray:
    formats = engine.formats
    x, y = operand_bits(a, formats[0], rounding, "a"), operand_bits(b, formats[1], rounding, "b")
    z = None if c is None else operand_bits(c, formats[2], None, "c")
    return _finished(engine.gemm_bits(x, y, z, **order), formats[3], result)


def _finished(bits: np.ndarray, unit, result) -> np.ndarray:
    return bits if unit == result else encode(values_of_bits(bits, unit), result, nan=None if result.has_nan else 0.0)


def _recipe(recipe: Recipe, result, a, b, c) -> np.ndarray:
    if c is not None:
        raise ValueError("recipes have no addend")
    formats = recipe.engine.formats
    x, y = operand_bits(a, formats[0], None, "a"), operand_bits(b, formats[1], None, "b")
    return dataclasses.replace(recipe, shape=None).gemm_bits(x, y, out_format=result.name)


def _methods(rows: Sequence[RecoveryMethod], result) -> Iterator[Candidate]:
    """Recovery methods with the options that are tried, on every arithmetic that takes their words."""
    engines = [row for row in tcm.list_instructions() if row.published and row.scale_format is None]
    for row in rows:
        if row.name in ("fp32", "fp64", "fp16", "bf16", "tf32", "fp8"):
            continue  # single passes are candidates of their own
        for fit in _distinct(_suitable(row, engines), lambda e: (e.accumulator, *e.formats, e.k)):
            same = tuple(other.label for other in fit[1:])
            for text, variant in _variants(row):
                whole = variant.kind == "quantised"
                multiply = partial(_method, variant, fit[0], result)
                yield Candidate(f"{text} on {fit[0].label}", "recovery method", multiply, same, whole)


def _suitable(row: RecoveryMethod, engines: Sequence[Instruction]) -> Iterator[Instruction]:
    for engine in engines:
        if engine.a_format not in row.formats or engine.c_format != engine.d_format:
            continue
        if engine.d_format in ("fp16",) or engine.path == "wmma":
            continue
        try:
            resolve_engine(engine, row)
        except UnsuitableEngine:
            continue
        yield engine


def _variants(row: RecoveryMethod) -> Iterator[tuple[str, RecoveryMethod]]:
    """The method, and with one option changed."""
    yield row.name, row
    seen = {dataclasses.replace(row, options={})}
    for name, values in OPTIONS.items():
        for value in values if name in row.options else ():
            try:
                variant = row.with_options(**{name: value})
            except ValueError:
                continue
            if dataclasses.replace(variant, options={}) not in seen:
                seen.add(dataclasses.replace(variant, options={}))
                yield f"{row.name}:{name}={value}", variant


def _method(row: RecoveryMethod, engine: Engine, result, a, b, c) -> np.ndarray:
    values = recovered_gemm(a, b, c, row, engine)
    unit = format_of_dtype(values.dtype) or tcm.get_format("fp32")
    bits = np.ascontiguousarray(values).view(unit.container)
    return _finished(bits, unit, result)
