"""Lists every way to compute a product that this package models.

These are instructions in several orders of k, recovery methods, recipes of libraries, and CPUs.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np

import tensorcore_models as tcm
from mpgemm.exact.product import exact_gemm
from mpgemm.experiments.cpu_orders import cpu_orders
from mpgemm.experiments.library_orders import library_orders
from mpgemm.recovery.engines import NamedEngine, UnsuitableEngine, ieee_engine, resolve_engine
from mpgemm.recovery.methods import RecoveryMethod, list_methods
from mpgemm.recovery.run import prepare
from mpgemm.recovery.word_run import WordStore
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.instruction import Instruction
from tensorcore_models.engines.matrix_engine import MatrixEngine
from tensorcore_models.engines.scaled import scaled_sums
from tensorcore_models.engines.scaling import Scaling
from tensorcore_models.formats import Format, IntegerFormat, get_float_format
from tensorcore_models.formats.interop import format_of_dtype
from tensorcore_models.formats.operands import operand_bits, values_of_bits
from tensorcore_models.formats.rounding import encode
from tensorcore_models.formats.sums import add_rounded
from tensorcore_models.libraries import Recipe
from tensorcore_models.libraries.compare import summary
from tensorcore_models.orders.order import Chain, Order, OrderUnit, Sum, evaluate, order_of

#: Numbers of parts of split-k and sliced-k, and intervals of promotion, that are tried.
SPLITS = (2, 3, 4, 5, 6, 8, 12, 16, 32)
SLICES = (2, 4, 8)
INTERVALS = tuple(2**e for e in range(4, 13))
#: Number of values of a matrix that are tested for a format before all values are.
SAMPLE = 4096
#: Roundings of operands that are not in the format: conversion instructions round to nearest, tensor cores truncate to tf32.
ROUNDINGS = {"tf32": ("rne", "rna", "rz")}
#: Values of the options of recovery methods that are tried besides the defaults.
OPTIONS: dict[str, tuple] = {
    "rounding": ("rne", "rz"),
    "terms": (3, 4),
    "accumulate_outside": ("k_step", "c_only"),
    "accumulation": ("termwise", "elementwise"),
    "order": ("step", "term"),
}

#: Paths of GPUs' matrix units, and the architecture whose libraries were recorded.
GPU_PATHS, RECORDED_ARCH = ("mma", "wmma", "wgmma", "tcgen05", "mfma"), "hopper"

#: Names of arithmetics that round after every operation.
_FUSED, _UNFUSED = "fused multiply-adds in {}", "products rounded, then added in {}"

AnyFormat = Format | IntegerFormat


class GivenProduct:
    """`GivenProduct` holds A, B and C0 of one product, and the encodings, words and chain sums that candidates share."""

    def __init__(self, a: np.ndarray, b: np.ndarray, c: np.ndarray | None, scaling: Scaling | None = None):
        self.a, self.b, self.c, self.scaling = a, b, c, scaling
        self.words = WordStore(8)
        self._bits: dict[tuple, np.ndarray] = {}
        self._chains: dict[tuple, np.ndarray] = {}

    def bits(self, name: str, fmt: AnyFormat, rounding: str | None) -> np.ndarray:
        """Return the encodings of the operand "a", "b" or "c" in a format."""
        key = name, fmt.name, rounding
        if key not in self._bits:
            self._bits[key] = operand_bits(getattr(self, name), fmt, rounding, name)
        return self._bits[key]

    def addend(self, fmt: AnyFormat) -> np.ndarray | None:
        """Return the encodings of C0, None if there is no C0."""
        return None if self.c is None else self.bits("c", fmt, None)

    def sum_bits(self, engine: MatrixEngine, order: Order) -> np.ndarray:
        """Return A B in an order of k on an engine whose formats hold the operands; chains are computed once for all orders."""
        a, b = (self.bits(name, fmt, None) for name, fmt in zip("ab", engine.formats, strict=False))
        result = engine.formats[3]

        def chain(pieces, joined) -> np.ndarray:
            key = engine.accumulator, engine.formats, Chain(tuple(pieces), joined)
            if key not in self._chains:
                self._chains[key] = engine.sum_bits(a, b, key[-1])
            return self._chains[key]

        def zeros() -> np.ndarray:
            return np.zeros((a.shape[0], b.shape[1]), result.container)

        bits = evaluate(order, OrderUnit(result, engine.k, chain, lambda *_: None, zeros))
        c = self.addend(engine.formats[2])
        return bits if c is None else add_rounded(bits, c, engine.formats[3])


#: Function from a product to the encodings of its sums, before rounding to the result's format, and their format.
Compute = Callable[[GivenProduct], tuple[np.ndarray, AnyFormat]]


@dataclass(frozen=True)
class Candidate:
    """`Candidate` is one way to compute a product."""

    who: str  #: Name of the instruction, method or recipe.
    how: str  #: Order of k and roundings of operands and result, in words.
    #: Functions that compute the sums; if there are several, each tile of the result comes from one of them.
    computes: tuple[Compute, ...]
    result: AnyFormat  #: Format to which the sums are rounded.
    same: tuple[str, ...] = ()  #: Other instructions that give the same results.
    #: Turn in which it is tried: 0 first; 1 (rounded operands) and 2 (recovery methods) only if no earlier candidate fits.
    turn: int = 0
    whole: bool = (
        False  #: Whether the result depends on the whole matrices, so that single elements cannot be computed.
    )
    #: Descriptions that candidates may share, by "arithmetic", "order", "operands" and "result".
    traits: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Return the name of the candidate in tables."""
        return f"{self.who}, {self.how}"

    def sums(self, product: GivenProduct) -> list[tuple[np.ndarray, AnyFormat]]:
        """Return the sums before the last rounding, one array for each kind of tile."""
        return [compute(product) for compute in self.computes]

    def finished(self, sums: list[tuple[np.ndarray, AnyFormat]]) -> np.ndarray:
        """Return the encodings of the result, shape (kinds of tiles, m, n)."""
        return np.stack([_finished(bits, unit, self.result) for bits, unit in sums])


def candidates(
    a: np.ndarray, b: np.ndarray, result: AnyFormat, *, methods: Sequence[RecoveryMethod] | None = None,
    recipes: Iterable[Recipe] = (), device: str | None = None, scaling: Scaling | None = None,
) -> Iterator[Candidate]:  # fmt: skip
    """Yield every candidate whose formats fit.

    a, b: operands, shapes (m, k) and (k, n), in the numpy types of their formats; engines whose formats do not hold all values
        are tried with rounding.
    result: format of the result; floating-point sums in FP32 are rounded to it.
    methods: recovery methods for FP32 or FP64 operands, by default all.
    recipes: recipes of libraries to try as well.
    device: device whose instructions come first and give candidates their names.
    scaling: scales of the operands; with scales only instructions and recipes are tried, which apply them by their rules.
    """
    for recipe in recipes:
        unit = recipe.engine
        words = _arithmetic_words(unit) if isinstance(unit, MatrixEngine) else unit.label
        traits = {"arithmetic": words, "order": summary(recipe.order, unit.formats[3].name), "result": result.name}
        how = f"recipe on {recipe.engine.label}"
        yield Candidate(recipe.name, how, (partial(_recipe, recipe, result),), result, traits=traits)
    cores = _cores(device)
    asked = set() if device is None else {row.label for row in (*tcm.list_instructions(device), *cores)}
    (m, k), n = a.shape, b.shape[1]
    own: list[Candidate] = []
    others: list[Candidate] = []
    short = all(_short(x) for x in (a, b))
    for family, rounding in _families(a, b, result, asked, scaling, cores):
        line = own if family[0].label in asked else others
        line.append(_candidate(family, "one chain over k", {}, "one chain", rounding, result))
        for how, order, words, engines in _orders(family, k, result):
            if order == {"promote_every": 1} and short:
                continue  # products are exact, so this equals one chain
            line.append(_candidate(engines, how, order, words, rounding, result))
        line.extend(_in_library_orders(family, (m, k, n), rounding, result) if scaling is None else ())
    yield from own
    yield from others
    if scaling is not None:
        return
    if a.dtype.kind not in "iu" and b.dtype.kind not in "iu" and isinstance(result, Format):
        yield from _cpu(a, b, result)
    if any(x.dtype in (np.float32, np.float64) for x in (a, b)) and isinstance(result, Format):
        yield from _methods(list_methods() if methods is None else methods, result, asked)


def _cores(device: str | None) -> tuple[MatrixEngine, ...]:
    """Return the FP32 and FP64 cores of a GPU, which compute fused multiply-adds; those of any GPU if no device is given."""
    if device is not None and all(row.path not in GPU_PATHS for row in tcm.list_instructions(device)):
        return ()
    arch = "gpu" if device is None else tcm.list_instructions(device)[0].label.partition(":")[0]
    return tuple(
        NamedEngine(
            tcm.SequentialFMA(), a_format=fmt, c_format=wide, d_format=wide, name=f"{arch}:{wide.upper()} cores"
        )
        for fmt, wide in (("fp32", "fp32"), ("fp16", "fp32"), ("bf16", "fp32"), ("fp64", "fp64"))
    )


def _in_library_orders(family, shape, rounding, result) -> Iterator[Candidate]:
    """Yield candidates of a family in the orders of an H100's libraries, if one of its engines is an H100's."""
    unit = next((engine for engine in family if _runs_there(engine)), None)
    if unit is None or rounding not in (None, "rne") or unit.formats[3].name not in ("fp32", "fp64"):
        return
    engines = [unit, *(engine for engine in family if engine is not unit and engine.k == unit.k)]
    for how, order, words in library_orders(unit, shape):
        yield _candidate(engines, how, {"k_order": order}, words, rounding, result)


def _runs_there(engine: MatrixEngine) -> bool:
    """Return whether an H100's libraries multiply with the engine, one of its matrix units or its FP32 or FP64 cores."""
    arch, _, name = engine.label.partition(":")
    return name.endswith(" cores") or (arch == RECORDED_ARCH and engine.formats[0].bits > 8)


def _families(
    a: np.ndarray,
    b: np.ndarray,
    result: AnyFormat,
    asked: set[str],
    scaling: Scaling | None = None,
    cores: Sequence[MatrixEngine] = (),
) -> Iterator[tuple[list[MatrixEngine], str | None]]:
    """Yield lists of engines with equal results, and the rounding of operands to their formats; `asked` engines come first."""
    holds: dict[str, bool] = {}
    found: dict[tuple, list[MatrixEngine]] = {}
    units = (*(core for core in cores if _becomes(core.formats[3], result)), *_units(result, scaling))
    for engine in sorted(units, key=lambda e: e.label not in asked):
        for rounding in _roundings(engine, a, b, holds):
            found.setdefault((*_arithmetic(engine, rounding), rounding), []).append(engine)
    for key, family in found.items():
        yield family, key[-1]


def _arithmetic(engine: MatrixEngine, rounding: str | None) -> tuple:
    """Return a key of an engine's arithmetic; fused multiply-adds do not depend on the formats of the operands."""
    if rounding is None and engine.accumulator == tcm.SequentialFMA():
        return engine.accumulator, *engine.formats[2:]
    return engine.accumulator, *engine.formats


def _units(result: AnyFormat, scaling: Scaling | None = None) -> Iterator[MatrixEngine]:
    """Yield instructions and IEEE chains whose results can become `result`."""
    blocks: tuple[str | None, int | None] = (None, None)
    if scaling is not None and scaling.applied == "product":
        blocks = scaling.rule_a.format, scaling.rule_a.along
    for row in tcm.list_instructions():
        plain = (
            row.published
            and not row.accumulator.partial
            and (row.scale_format, row.block_size) == blocks
            and row.c_format == row.d_format
        )
        scaled = scaling is not None and isinstance(row.formats[3], IntegerFormat) and isinstance(result, Format)
        if plain and (_becomes(row.formats[3], result) or scaled):
            yield row
    if blocks != (None, None):
        return
    for fmt in ("fp32", "fp16", "bf16", "fp64"):
        for wide in dict.fromkeys((fmt, "fp64" if fmt == "fp64" else "fp32")):
            engine = ieee_engine(fmt, wide)
            if _becomes(engine.formats[3], result):
                yield engine


def _becomes(unit: AnyFormat, result: AnyFormat) -> bool:
    if unit == result:
        return True
    return isinstance(result, Format) and unit == tcm.get_format("fp32") and result.bits < 32


def _distinct(engines: Iterable[MatrixEngine], key) -> list[list[MatrixEngine]]:
    groups: dict = {}
    for engine in engines:
        groups.setdefault(key(engine), []).append(engine)
    return list(groups.values())


def _roundings(engine: Engine, a: np.ndarray, b: np.ndarray, holds: dict[str, bool]) -> tuple[str | None, ...]:
    """Return the roundings of operands to the engine's formats: (None,) if the formats hold them, () if they do not fit."""
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
    """Return whether a format holds all values of a matrix; the first values are tested first, which rules out most formats."""
    try:
        for part in (x[:1, :SAMPLE], x):
            operand_bits(part, fmt, None, "x")
    except (ValueError, TypeError):
        return False
    return True


def _candidate(engines: list[MatrixEngine], how: str, order: dict, words: str, rounding, result) -> Candidate:
    """Return the candidate of the first of several engines with equal results, in an order of k."""
    engine, *others = engines
    how += "" if rounding is None else f", operands rounded ({rounding})"
    how += "" if engine.formats[3] == result else f", result rounded to {result.name}"
    traits = {"arithmetic": _arithmetic_words(engine), "order": words}
    if order == {"promote_every": 1}:
        traits = {"arithmetic": _UNFUSED.format(engine.formats[3].name), "order": "one chain"}
    traits |= {} if rounding is None else {"operands": f"operands rounded to {engine.formats[0].name} ({rounding})"}
    traits |= {} if engine.formats[3] == result else {"result": f"result rounded to {result.name}"}
    compute = partial(_engine, engine, rounding, order)
    same = tuple(other.label for other in others)
    return Candidate(engine.label, how, (compute,), result, same, int(rounding is not None), traits=traits)


def _arithmetic_words(engine: MatrixEngine) -> str:
    """Return a short description of an accumulator's arithmetic."""
    spec, d = engine.accumulator, engine.formats[3].name
    if spec == tcm.SequentialFMA():
        return _FUSED.format(d)
    names = (("terms", "products at once"), ("group", "products in a group"), ("fraction_bits", "fraction bits"))
    facts = [f"{getattr(spec, name)} {text}" for name, text in names if getattr(spec, name, None) is not None]
    return f"sums of {', '.join(facts)} into {d}" if facts else f"{type(spec).__name__} into {d}"


def _orders(family: list[MatrixEngine], k: int, result) -> list[tuple[str, dict, str, list[MatrixEngine]]]:
    """Return the orders of several chains: name, arguments of `gemm_bits`, description, and the engines with equal results.

    Engines of one arithmetic with different k steps give equal results if they divide k at the same places.
    """
    found: dict = {}
    for engine in () if isinstance(result, IntegerFormat) else family:
        for how, arguments, words, order in _joined(engine, k):
            found.setdefault(order, (how, arguments, words, []))[3].append(engine)
    return list(found.values())


def _joined(engine: MatrixEngine, k: int) -> tuple[tuple[str, dict, str, object], ...]:
    """Return the different orders of several chains on an engine, each with a key that identifies it."""
    return _joined_steps(engine.k, str(engine.formats[3].name), k)


@lru_cache(maxsize=64)
def _joined_steps(step: int, d: str, k: int) -> tuple[tuple[str, dict, str, object], ...]:
    return tuple(_orders_of_steps(step, d, k))


def _orders_of_steps(step: int, d: str, k: int) -> Iterator[tuple[str, dict, str, object]]:
    """Yield the orders of several chains for a unit that takes `step` values of k at once and gives sums in the format `d`."""
    names = [(f"split-k in {s} parts", f"split_k:{s}") for s in SPLITS]
    names += [(f"sliced-k in {s} chains", f"sliced_k:{s}") for s in SLICES]
    seen = set()
    for how, name in names:
        order = order_of(k, step, name)
        if isinstance(order, Sum) and len(order.parts) > 1 and order not in seen:
            seen.add(order)
            yield how, {"k_order": order}, summary(order, d), order
    if d == "fp32":
        for every in dict.fromkeys((step, *INTERVALS)):
            if every % step == 0 and every < k:
                words = f"{-(-k // every)} parts of {every} k added in fp32, each one chain"
                yield f"added outside every {every} products", {"promote_every": every}, words, every


def _engine(engine: Engine, rounding, order: dict, product: GivenProduct) -> tuple[np.ndarray, AnyFormat]:
    formats = engine.formats
    x, y = product.bits("a", formats[0], rounding), product.bits("b", formats[1], rounding)
    if product.scaling is not None and product.scaling.roundings:
        sums = scaled_sums(engine, x, y, product.scaling, **order)
        sums = sums if product.c is None else sums + product.c.astype(np.float32)
        return sums.view(np.uint32), tcm.get_format("fp32")
    if product.scaling is not None:
        scales = product.scaling.bits_a, product.scaling.bits_b
        return engine.gemm_bits(x, y, product.addend(formats[2]), *scales, **order), formats[3]
    return engine.gemm_bits(x, y, product.addend(formats[2]), **order), formats[3]


def _cpu(a: np.ndarray, b: np.ndarray, result: Format) -> Iterator[Candidate]:
    """Yield candidates of CPUs: FP32 (FP64) arithmetic in the orders of their kernels, FP64 sums and exact sums rounded
    once."""
    wide = "fp64" if np.float64 in (a.dtype, b.dtype) else "fp32"
    unit = get_float_format(wide)
    rounded = "" if unit == result else f", result rounded to {result.name}"
    ending = {"result": f"result rounded to {result.name}"} if rounded else {}
    if _becomes(unit, result):
        engines: dict[str, MatrixEngine] = {_FUSED: ieee_engine(wide, wide)}
        if wide == "fp32" and not all(
            _short(x) for x in (a, b)
        ):  # otherwise products are exact, and fused and unfused sums are equal
            plain = tcm.GroupPairwiseSum(1, flush_input="none", flush_results=False)
            engines[_UNFUSED] = tcm.MatrixEngine(plain, a_format=wide)
        for words, engine in engines.items():
            for row in cpu_orders(a.shape[1]):
                order = summary(row.orders[0], wide) if len(row.orders) == 1 else row.how
                traits = {"arithmetic": words.format(wide), "order": order} | ending
                computes = tuple(partial(_in_order, engine, each) for each in row.orders)
                yield Candidate(f"cpu: {words.format(wide)}", row.how + rounded, computes, result, traits=traits)
    sums = {"the exact sum": _exact} | ({} if wide == "fp64" else {"sums in fp64": _double})
    for words, compute in sums.items():
        for by in dict.fromkeys((unit, result)):
            how = f"rounded to {by.name}" + (rounded if by == unit else "")
            traits = {"arithmetic": words, "order": how}
            if result.bits <= by.bits:
                yield Candidate(f"cpu: {words}", how, (partial(compute, by),), result, traits=traits)


def _short(x: np.ndarray) -> bool:
    """Return whether the numbers have at most 16 bits, so that their products are exact in FP32."""
    return x.dtype.itemsize <= 2


def _in_order(engine: MatrixEngine, order: Order, product: GivenProduct) -> tuple[np.ndarray, AnyFormat]:
    return product.sum_bits(engine, order), engine.formats[3]


def _exact(by: Format, product: GivenProduct) -> tuple[np.ndarray, AnyFormat]:
    values = exact_gemm(product.a, product.b, product.c).rounded(by)
    return operand_bits(values, by, None, "exact"), by


def _double(by: Format, product: GivenProduct) -> tuple[np.ndarray, AnyFormat]:
    engine = ieee_engine("fp64")
    c = None if product.c is None else product.c.astype(np.float64)
    wide = GivenProduct(product.a.astype(np.float64), product.b.astype(np.float64), c)
    bits, unit = _engine(engine, None, {}, wide)
    return _finished(bits, unit, by), by


def _finished(bits: np.ndarray, unit, result) -> np.ndarray:
    return bits if unit == result else encode(values_of_bits(bits, unit), result, nan=None if result.has_nan else 0.0)


def _recipe(recipe: Recipe, result, product: GivenProduct) -> tuple[np.ndarray, AnyFormat]:
    if product.c is not None:
        raise ValueError("got c with recipes, which have no addend; leave c out")
    x, y = (product.bits(name, tcm.get_format(f), None) for name, f in zip("ab", recipe.operand_formats, strict=True))
    recipe = dataclasses.replace(recipe, shape=None)
    if product.scaling is not None:
        return recipe.scaled_bits(x, y, product.scaling, out_format=result.name), result
    return recipe.gemm_bits(x, y, out_format=result.name), result


def _methods(rows: Sequence[RecoveryMethod], result, asked: set[str]) -> Iterator[Candidate]:
    """Yield candidates of recovery methods, with their options, on every arithmetic that takes their words."""
    rows_of_products = (row for row in tcm.list_instructions() if row.published and not row.accumulator.partial)
    engines = [row for row in rows_of_products if row.scale_format is None]
    engines.sort(key=lambda row: row.label not in asked)
    for row in rows:
        if row.name in ("fp32", "fp64", "fp16", "bf16", "tf32", "fp8"):
            continue  # single passes are candidates of their own
        fits = _distinct(_suitable(row, engines), lambda e: (e.accumulator, *e.formats, e.k))
        for text, variant in _variants(row):  # the engines of a variant share its words
            for fit in fits:
                traits = {"arithmetic": f"{text} on {_arithmetic_words(fit[0])}", "order": "recovery method"}
                yield Candidate(
                    f"{text} on {fit[0].label}", "recovery method", (partial(_method, variant, fit[0]),), result,
                    tuple(other.label for other in fit[1:]), 2, variant.kind == "quantised", traits,
                )  # fmt: skip


def _suitable(row: RecoveryMethod, engines: Sequence[Instruction]) -> Iterator[Instruction]:
    for engine in engines:
        alike = engine.a_format == engine.b_format and engine.c_format == engine.d_format
        if not alike or engine.a_format not in row.formats or engine.d_format == "fp16" or engine.path == "wmma":
            continue
        try:
            resolve_engine(engine, row)
        except UnsuitableEngine:
            continue
        yield engine


def _variants(row: RecoveryMethod) -> Iterator[tuple[str, RecoveryMethod]]:
    """Yield the method, and the method with one option changed."""
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


def _method(row: RecoveryMethod, engine: Engine, product: GivenProduct) -> tuple[np.ndarray, AnyFormat]:
    values = prepare(product.a, product.b, product.c, row, engine, store=product.words).product()
    unit = format_of_dtype(values.dtype) or tcm.get_format("fp32")
    return np.ascontiguousarray(values).view(unit.container), unit
