"""This module predicts values in a wrong format: operands rounded, clipped or misread, sums or results kept narrow.

A value that was stored in a narrow format is one of that format's numbers, so an FP32 result with FP16 numbers only
shows the format. The size of the errors tells whether the sums were kept in it, or only the result. A kernel's order of
additions is unknown, so errors of sums can be compared only with those of several orders.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from mpgemm.bounds.kernel_model import model_results
from mpgemm.testing.diagnosis.failure import GOOD, NO_FAULT, UNLIKELY, Failure, Finding, spread
from tensorcore_models.catalogue import get_instruction
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.scaling import Scaling
from tensorcore_models.formats import Format, get_float_format, get_format
from tensorcore_models.formats.operands import operand_bits
from tensorcore_models.formats.rounding import decode, round_to

#: Narrow formats that accumulators and results have by mistake.
NARROW = ("fp16", "bf16")
#: Numbers of products that are added exactly before each rounding of a narrow sum.
STEPS = (1, 4, 8, 16, 32, 64, 128)
#: Share of elements that must be finite, or not, in both of two results for their overflows to agree.
ALIKE = 0.95
#: Distance of quantiles, as a power of two, within which errors are those of narrow sums,
APART = 0.75
#: and by which they must be nearer than a right kernel's, because an output's rounding can hide the loss of sums.
NEARER = 0.25
#: Share of elements for which sums in order of k must give exactly the kernel's result, of all elements and of those with
#: another right sum, and least number of the latter.
SAME, TOLD = 0.9, 16
#: Least number of elements for a distribution.
FEWEST = 64


def on_grid(values: np.ndarray, name: str) -> bool:
    """Return whether all values are numbers of a format."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool((values.astype(get_float_format(name).dtype).astype(np.float64) == values).all())


def _wider(f: Failure, name: str) -> bool:
    """Return whether the kernel's results have more bits than a narrow format."""
    out = get_float_format(f.case.out_format)
    return isinstance(out, Format) and out.fraction_bits > get_float_format(name).fraction_bits


def narrow_findings(f: Failure) -> list[Finding]:
    """Return certain findings: the result went through a narrow format, or sums in it, in order of k, give exactly this
    result.
    """
    found: list[Finding] = []
    every = f.anywhere()
    if not every.rows.size:
        return found
    for name in NARROW if f.case.scaling is None else ():
        if not _wider(f, name) or not on_grid(every.got, name):
            continue
        unit = get_float_format(name).unit_roundoff
        reach = unit * np.abs(f.true) * (1 + 2.0**-6) + 4 * f.usual
        if (np.abs(f.got - f.true) <= reach).all():
            found.append(_certain(f"the output rounded twice: every result is a number of {name}"))
    if found:
        return found[-1:]  # numbers of bf16 are often numbers of fp16, too
    if f.place.structured:
        return []  # sums are narrow in all elements, or in none
    right = every.case.rounded(_of_model(every))
    if (text := _output_cut(every) or _rounded_between(every)) is not None:
        return [_certain(text)]
    products = _unscaled(every)
    steps = [step for step in STEPS if step < max(products.shape[1], 2)]
    seeds = (True,) if f.case.c is None else (True, False)
    made = [
        (_summed(every, products, name, step, seed), _accumulation(name))
        for name in NARROW
        for step in steps
        for seed in seeds
    ]
    made += [(_of_engine(every, engine), text) for text, engine in _hopper(every)]
    share, text = max(
        ((_same(every, every.case.rounded(values), right), text) for values, text in made), default=(0, "")
    )
    if share < SAME or every.got.size < FEWEST:
        return []
    return [_certain(text)]


def _certain(text: str) -> Finding:
    return Finding(0.0, 0.0, text, 1.0, -math.inf)


def _output_cut(f: Failure) -> str | None:
    """Yield results in a format narrower than the sums' that are rounded in another direction than to nearest."""
    fmt, sums = get_format(f.case.out_format), _of_model(f)
    if f.case.epilogue is not None or not isinstance(fmt, Format) or fmt.fraction_bits >= 23:
        return None
    right = f.case.rounded(sums)
    for how, text in (("rz", "cut"), ("ru", "rounded up"), ("rd", "rounded down")):
        if _same(f, round_to(sums, fmt, how, saturate=False), right) >= SAME:
            return f"results are {text} to {f.case.out_format}, not rounded to nearest"
    return None


def _rounded_between(f: Failure) -> str | None:
    """Yield results of parts whose sums outside of the unit are rounded to, or kept in, a narrow format."""
    if f.case.scaling is not None and f.case.scaling.applied != "block":
        return None
    right = f.case.rounded(_of_model(f))
    for name in NARROW:
        for values, text in _between(f, get_float_format(name)):
            with np.errstate(all="ignore"):
                values = f.case.rounded(values)
                # the output's own rounding hides these differences from the size of errors, not from the bits
                if f.case.out_format == name and _same(f, values, right) >= SAME:
                    return text.format(name)
                told, same = np.abs(values - f.true) > UNLIKELY * f.usual, np.abs(values - f.got) <= GOOD * f.usual
            if np.count_nonzero(told) >= TOLD and min(np.mean(same), np.mean(same[told])) >= SAME:
                return text.format(name)
    return None


def _between(f: Failure, fmt: Format) -> Iterator[tuple[np.ndarray, str]]:
    """Yield (elements, description) of exact sums over parts of k that are rounded before or after they are added."""
    order, scaling, k = f.case.order, f.case.scaling, f.k
    products = _unscaled(f)
    every = order.block or f.case.promote_every
    lengths = [every] if every else [-(-k // parts) for parts in range(2, order.splits + 1)]
    lengths += [k] if f.case.c is not None else []
    for length in (x for x in lengths if 0 < x <= k):
        starts = list(range(0, k, length))
        sums = np.add.reduceat(products, starts, 1)
        factors = 1.0 if scaling is None else np.stack([_factors(f, scaling, start) for start in starts], 1)
        parts = round_to(sums, fmt, saturate=False) * factors
        what = "the sum is rounded to {} before C is added"
        if len(starts) > 1:
            what = f"sums over {length} values of k are rounded to {{}} before they are added"
        yield parts.sum(1) + f.added, what
        if len(starts) > 1:
            total = np.zeros(len(sums))
            for part in (sums * factors).T:
                total = round_to(total + part, fmt, saturate=False)
            yield total + f.added, f"the sum outside of the unit is kept in {{}}, rounded every {length} values of k"


def _same(f: Failure, values: np.ndarray, right: np.ndarray) -> float:
    """Return the share of elements with these values: of all, or of those that differ from right ones, whichever is less."""
    told, same = values != right, values == f.got
    return min(float(np.mean(same)), float(np.mean(same[told]))) if np.count_nonzero(told) >= TOLD else 0.0


def _accumulation(name: str) -> str:
    return f"{name} accumulation: sums are kept in {name}"


def _summed(f: Failure, products: np.ndarray, name: str, step: int, seeded: bool = True) -> np.ndarray:
    """Return the elements with sums in a narrow format, rounded after every `step` products; C is the start, or is added."""
    dtype = get_float_format(name).dtype
    block = products.shape[1] if f.case.order.block is None else f.case.order.block
    scaling, c = f.case.scaling, f.case.c
    outside = scaling is not None and scaling.roundings > 0
    seeded = seeded and c is not None and not outside
    total = np.zeros(len(products)) + (f.added if seeded else 0.0)
    if outside and scaling is not None:
        for start in range(0, products.shape[1], block):
            found = _narrow_chain(products[:, start : start + block], dtype, step, np.zeros(len(products)))
            with np.errstate(over="ignore", invalid="ignore"):
                total = total + found * _factors(f, scaling, start)
    else:
        total = _narrow_chain(products, dtype, step, total)
    total = total if seeded else total + f.added
    with np.errstate(over="ignore", invalid="ignore"):
        return total.astype(get_float_format(f.case.out_format).dtype).astype(np.float64)


def _narrow_chain(products: np.ndarray, dtype, step: int, total: np.ndarray) -> np.ndarray:
    """Return sums of products that are rounded to a type after every `step` products."""
    whole = products.shape[1] // step * step
    parts = products[:, :whole].reshape(len(products), -1, step).sum(2)
    if whole < products.shape[1]:
        parts = np.concatenate([parts, products[:, whole:].sum(1, keepdims=True)], 1)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in np.ascontiguousarray(parts.T):
            total = (total + part).astype(dtype).astype(np.float64)
    return total


def _unscaled(f: Failure) -> np.ndarray:
    """Return the products that the unit forms, without scales that are applied outside."""
    scaling = f.case.scaling
    if scaling is None or not scaling.roundings or scaling.applied == "product":
        return f.products
    return f.stored[0] * f.stored[1]


def _factors(f: Failure, scaling: Scaling, start: int) -> np.ndarray:
    """Return the factors of a chain from `start` of k, for each element."""
    if scaling.applied == "product":
        return np.ones(len(f.rows))  # the products contain it
    factors = f.unscaled[1]
    return factors[:, start] if isinstance(factors, np.ndarray) else np.full(len(f.rows), factors)


def narrow_errors(f: Failure) -> str | None:
    """Return findings of a narrower accumulator whose errors have the size and distribution of the kernel's, in all elements.

    Other faults make errors of that size, too, so it is named only if all results are also numbers of the format.
    """
    if not isinstance(f.case.engine.formats[3], Format) or f.place.structured:
        return None
    f = f.anywhere()
    if not np.isfinite(f.got).all() or f.got.size < FEWEST:
        return None
    error = np.abs(f.got - f.true)
    products = _unscaled(f)
    apart: dict[str, float] = {}
    used = {fmt.name for fmt in f.case.engine.formats[:2]} | {f.case.out_format}
    # kernels of bf16 have no sums in fp16, and the other way round
    for name in [x for x in NARROW if x in used] or NARROW:
        if f.case.scaling is None and _wider(f, name) and not on_grid(f.got, name):
            continue  # a sum that is kept in this format ends in it
        made = [np.abs(_summed(f, products, name, step) - f.true) for step in STEPS if step < max(products.shape[1], 2)]
        apart[_accumulation(name)] = _apart(error, made)
    for text, engine in _hopper(f):
        apart[text] = _apart(error, [np.abs(f.case.rounded(_of_engine(f, engine)) - f.true)])
    right = _apart(error, [np.abs(f.case.rounded(_of_model(f)) - f.true)])
    apart = {text: x for text, x in apart.items() if x <= min(APART, right - NEARER)}
    own = _accumulation(f.case.out_format)
    best = min(apart, key=lambda text: (apart[text], text != own), default=None)
    if best is None:
        return None
    alike = [text.partition(":")[0] for text in apart if text != best]
    told = f.case.scaling is None and any(_wider(f, name) and on_grid(f.got, name) for name in NARROW)
    if told:
        return (
            f"{' or '.join([*alike, best])} (everywhere, errors have the size that this format makes on these operands)"
        )
    names = " or ".join([*alike, best.partition(":")[0]])
    return f"{NO_FAULT}, but errors everywhere have the size of those of {names}"


def _apart(error: np.ndarray, made: list[np.ndarray]) -> float:
    """Return the distance of the distribution of errors from those of several orders, as a power of two.

    It is the worst distance of a few quantiles from the range of the orders.
    """
    made = [x for x in made if np.isfinite(x).all() and x.any()]
    if not made or not error.any():
        return math.inf
    worst = 0.0
    for quantile in (0.5, 0.75, 0.9, 1.0):
        own = float(np.quantile(error, quantile))
        others = [float(np.quantile(x, quantile)) for x in made]
        others = [x for x in others if x > 0]
        if own <= 0 or not others:
            return math.inf
        logs = [math.log2(own / x) for x in others]
        worst = max(worst, min(logs), -max(logs))
    return worst


def overflowing_sums(f: Failure) -> str | None:
    """Yield results or sums in a narrow format that overflow where the kernel's results are not finite."""
    rows, columns = spread(np.isfinite(f.exact))
    f = f.moved(rows, columns)
    got, products = np.isfinite(f.got), _unscaled(f)
    for name in NARROW:
        fmt = get_float_format(name)
        fits = np.isfinite(round_to(f.true, fmt, saturate=False))
        reach = fmt.unit_roundoff * np.abs(f.true) * (1 + 2.0**-6) + 4 * f.usual
        if not fits.all() and (fits == got).all() and (np.abs(f.got - f.true) <= reach)[got].all():
            if not got.any():  # both formats overflow here
                return f"{_accumulation(name)}, or results go through it, which overflow where these results are not finite"
            return f"results that go through {name}, where those beyond {fmt.max_finite:g} are infinite"
    for name in NARROW:
        for step in (step for step in STEPS if step < max(products.shape[1], 2)):
            with np.errstate(over="ignore", invalid="ignore"):
                summed = np.isfinite(_summed(f, products, name, step))
            if not summed.all() and np.mean(summed == got) >= ALIKE:
                return f"{_accumulation(name)}, which overflow where these results are not finite"
    return None


def _hopper(f: Failure) -> list[tuple[str, Engine]]:
    """Yield results of Hopper's FP8 units without promotion, if the test names another unit or sums outside."""
    own = f.case.engine
    spelled = [{"e4m3fn": "e4m3", "e5m2": "e5m2"}.get(fmt.name) for fmt in own.formats[:2]]
    if None in spelled or own.scale_format is not None or f.case.order.block is not None:
        return []
    unit = get_instruction("hopper", f"wgmma.m64n8k32.f32.{spelled[0]}.{spelled[1]}")
    if own.label == unit.label and f.case.promote_every is None:
        return []
    return [("sums with 13 fraction bits, as Hopper's FP8 units have (no promotion to FP32)", unit)]


def _of_model(f: Failure) -> np.ndarray:
    """Return the elements of a right kernel."""
    return _elements(f, f.case.model)


def _of_engine(f: Failure, engine: Engine) -> np.ndarray:
    """Return the elements as another engine computes them in one chain."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _elements(f, lambda rows, columns: model_results(engine, *f.case.part(rows, columns), {}))


def _elements(f: Failure, model: Callable[[np.ndarray, np.ndarray], list[np.ndarray]]) -> np.ndarray:
    """Return the elements from a model's result for their rows and columns."""
    rows, at_row = np.unique(f.rows, return_inverse=True)
    columns, at_column = np.unique(f.columns, return_inverse=True)
    return model(rows, columns)[-1][at_row, at_column]


#: Formats of 8 bits and FP16, whose conversions saturate.
LIMITS = (6.0, 240.0, 448.0, 57344.0, 65504.0)
#: Formats of the same width for which operands may be mistaken.
MISTAKEN = {
    "e4m3fn": ("e5m2", "e4m3fnuz", "e5m2fnuz"), "e5m2": ("e4m3fn", "e5m2fnuz", "e4m3fnuz"),
    "e4m3fnuz": ("e4m3fn", "e5m2", "e5m2fnuz"), "e5m2fnuz": ("e5m2", "e4m3fn", "e4m3fnuz"),
    "fp16": ("bf16",), "bf16": ("fp16",), "e2m3": ("e3m2",), "e3m2": ("e2m3",),
}  # fmt: skip


def operands_rounded(f: Failure) -> Iterator[Finding]:
    """Yield the product of operands in a narrower format."""
    fmt = f.case.engine.formats[0]
    if not isinstance(fmt, Format):
        return
    least = fmt.min_normal
    yield from _with_operands(f, lambda x: x, "{} multiplied as given, not rounded first")
    yield from _with_operands(f, lambda x: np.where(np.abs(x) < least, 0.0, x), "{} taken with 0 for subnormal numbers")
    for name in ("tf32", "bf16", "fp16", "e4m3fn", "e5m2"):
        narrow = get_float_format(name)
        own = narrow.name == fmt.name
        if narrow.fraction_bits > fmt.fraction_bits or (own and not _rounded_at_all(f)):
            continue
        for rounding, how in _ROUNDINGS if own else _ROUNDINGS[:3]:
            if not own and narrow.fraction_bits == fmt.fraction_bits and _rounds_alike(f, narrow, fmt, rounding):
                continue  # the statement of the unit's own format covers this one
            yield from _with_operands(
                f, lambda x, narrow=narrow, rounding=rounding: round_to(x, narrow, rounding, saturate=True),
                f"{{}} {how.format(name)} first",
            )  # fmt: skip


def _rounds_alike(f: Failure, narrow: Format, fmt: Format, rounding: str) -> bool:
    """Return whether the operands of the elements are the same numbers in two formats."""
    pairs = ([round_to(x, each, rounding, saturate=True) for each in (narrow, fmt)] for x in f.given)
    return all(np.array_equal(x, y) for x, y in pairs)


def _rounded_at_all(f: Failure) -> bool:
    """Return whether the operands were given with more bits than the unit takes."""
    return any(not np.array_equal(x, y) for x, y in zip(f.given, f.stored, strict=True))


#: Roundings of operands in kernels, in words.
_ROUNDINGS = (
    ("rne", "rounded to {}"), ("rna", "rounded to {} with ties away from zero"), ("rz", "truncated to {}"),
    ("ru", "rounded up to {}"), ("rd", "rounded down to {}"),
)  # fmt: skip


def operands_clipped(f: Failure) -> Iterator[Finding]:
    """Yield the product of operands clipped at a limit, as by a saturating quantizer."""
    for limit in LIMITS:
        yield from _with_operands(f, lambda x, limit=limit: np.clip(x, -limit, limit), f"{{}} clipped at {limit:g}")


def _with_operands(f: Failure, change, text: str) -> Iterator[Finding]:
    """Yield the product with both given operands changed, or one of them and the other as the unit takes it."""
    if f.case.engine.scale_format is not None:
        return
    right, factors = f.stored, f.factors
    changed = [change(x) for x in f.given]
    if all(np.array_equal(x, y) for x, y in zip(changed, right, strict=True)):
        return
    for sides, words in (((0, 1), "the operands were"), ((0,), "A was"), ((1,), "B was")):
        used = [changed[side] if side in sides else right[side] for side in (0, 1)]
        if any(np.array_equal(used[side], right[side]) for side in sides):
            continue
        prediction = np.einsum("ik,ik->i", used[0] * factors[0], used[1] * factors[1]) + f.added
        yield f.finding(prediction, text.format(words), 1 + 2.0**-6, 3.0)


def mistaken_formats(f: Failure) -> Iterator[Finding]:
    """Yield products of operands whose encodings were read as another format of the same width."""
    for prediction, text in misreadings(f):
        yield f.finding(prediction, text, 4.0, 2.0)


def misreadings(f: Failure) -> Iterator[tuple[np.ndarray, str]]:
    """Yield (sums, description) of operands whose encodings are read as another format."""
    formats = f.case.engine.formats[:2]
    for sides, words in (((0, 1), "A and B were"), ((0,), "A was"), ((1,), "B was")):
        first = formats[sides[0]]
        for name in MISTAKEN.get(first.name, ()):
            if len(sides) == 2 and formats[0] != formats[1]:
                continue
            operands = list(f.sides)
            for side in sides:
                operands[side] = _read_as(f, side, formats[side], name)
            with np.errstate(all="ignore"):
                sums = np.einsum("ik,ik->i", *operands) + f.added
            yield sums, f"{words} read as {name} in place of {first.name}"


def _read_as(f: Failure, side: int, fmt: Format, name: str) -> np.ndarray:
    """Return rows of A, or columns of B, of the elements in another format, with their scales."""
    given = f.case.operands[side]
    taken = given[f.rows] if side == 0 else given[:, f.columns].T
    return decode(operand_bits(taken, fmt, None, "a"), get_float_format(name)) * f.factors[side]
