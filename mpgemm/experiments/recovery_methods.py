"""Makes recovery methods on engines, ``recovery:METHOD@ENGINE``, into methods of an experiment."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from mpgemm.bounds.method_bounds import method_bound
from mpgemm.bounds.norms import Lines
from mpgemm.bounds.watching import quick_run_bound
from mpgemm.experiments.cases import as_fp32
from mpgemm.experiments.gemm_method import GemmMethod, likely
from mpgemm.recovered import recovered_gemm
from mpgemm.recovery.engines import UnsuitableEngine, resolve_engine
from mpgemm.recovery.exact_sums import exact_sentence, padding
from mpgemm.recovery.framework_names import ROUNDED_BY_CUBLAS, framework_name
from mpgemm.recovery.methods import RecoveryMethod, get_method
from mpgemm.recovery.run import prepare
from mpgemm.recovery.word_run import WordStore
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats.tf32_roundings import tf32_rounding


class MethodOnEngine(NamedTuple):
    """`MethodOnEngine` is a method and an engine that takes its words, with the names by which they were asked for."""

    name: str
    row: RecoveryMethod
    engine: Engine
    requested: str = ""


def resolve_pairs(methods, engines) -> tuple[list[MethodOnEngine], list[tuple[str, str, str]]]:
    """Return the pairs of methods (or METHOD@ENGINE) and engines that fit, and (method, engine, reason) of the other pairs."""
    pairs, skipped = [], []
    if not methods:
        raise ValueError("got no methods to compare; name at least one of mpgemm.list_methods()")
    for method in methods:
        row = get_method(method.partition("@")[0] if isinstance(method, str) else method)
        name = method if isinstance(method, str) else row.name
        native = isinstance(method, str) and framework_name(method) and row.default_engine == "ieee"
        own = name.partition("@")[2]
        for engine in (None,) if native else (own,) if own else engines or (None,):
            try:
                found = resolve_engine(engine, row)
                asked = row.default_engine if engine is None else engine
                here, called = _rounded_by_the_library(name, row, asked)
                if row.scaled_input and isinstance(asked, str) and not {":", "/"} & set(asked):
                    asked = f"{asked}/{getattr(found, 'path', '')}"  # the device's name does not say the path
                pairs.append(MethodOnEngine(called, here, found, asked if isinstance(asked, str) else found.label))
            except UnsuitableEngine as error:
                skipped.append((name, getattr(engine, "label", str(engine)), str(error)))
    if not pairs:
        raise UnsuitableEngine(
            "no engine takes the words of any method: " + "; ".join(reason for *_, reason in skipped[:3])
        )
    return pairs, skipped


def _rounded_by_the_library(name: str, row: RecoveryMethod, engine: str | Engine) -> tuple[RecoveryMethod, str]:
    """Return a method's row and name; for TF32 by a library's name, with the library's rounding on the device if known."""
    base, _, options = name.partition("@")[0].partition(":")
    if base.lower().replace("-", "_") not in ROUNDED_BY_CUBLAS or "rounding" in options or not isinstance(engine, str):
        return row, name
    known = tf32_rounding("cublas", engine)
    if known is None or known.rounding == row.rounding:
        return row, name
    return row.with_options(
        rounding=known.rounding
    ), f"{base}:{','.join(filter(None, (options, f'rounding={known.rounding}')))}"


def pair_method(
    pair: MethodOnEngine,
    *,
    counts: bool = True,
    bounds: bool = False,
    label: str | None = None,
    store: WordStore | None = None,
    **options,
) -> GemmMethod:
    """Return the experiment's method of a recovery method on an engine.

    counts, bounds: whether its details hold range counts, and the deterministic bound.
    store: words that methods with the same splits share.
    """
    name = f"recovery:{pair.name}@{pair.engine.label}"
    # Results in the journal depend on the whole row and engine. A callable's address changes, so its results are never reused.
    settings = {"row": repr(replace(pair.row, options={})), "engine": repr(pair.engine), "bounds": bounds, **options}
    return GemmMethod(
        name,
        label or f"{pair.name}, {pair.engine.label}",
        partial(_product, pair, options, store),
        settings,
        details=partial(_details, pair, bounds, options) if counts else None,
        takes_addend=True,
        likely_bound=partial(likely, c=None, method=pair.row, engine=pair.engine),
        certain_bound=partial(_certain, pair),
        bound=partial(_bound, pair, options),
    )


def _certain(pair: MethodOnEngine, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return method_bound(a, b, None, pair.row, pair.engine).total


def recovery_method(text: str) -> GemmMethod:
    """Return the method of the text after "recovery:", which is METHOD or METHOD@ENGINE."""
    return pair_method(only_pair(text)._replace(name=text.partition("@")[0]))


def only_pair(method: str, engine: str | None = None) -> MethodOnEngine:
    """Return one method on one engine, by default the method's own; raise errors like :func:`resolve_pairs`."""
    (pair,), _ = resolve_pairs([method], [engine])
    return pair


def labelled_methods(rows: Sequence[tuple[str, str | None, str]]) -> list[GemmMethod]:
    """Return methods from (method, engine, label), without range counts."""
    return [pair_method(only_pair(method, engine), label=label, counts=False) for method, engine, label in rows]


def _product(
    pair: MethodOnEngine,
    options: dict,
    store: WordStore | None,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None = None,
) -> np.ndarray:
    operands = a, b, _addend(pair.row, pair.engine, c), pair.row, pair.engine
    return recovered_gemm(*operands, **options) if store is None else prepare(*operands, store=store).product()


def _bound(pair: MethodOnEngine, options: dict, a: Lines, b: Lines, c=None) -> np.ndarray | None:
    """Return the certified bound of the product."""
    added = _addend(pair.row, pair.engine, c)
    run = prepare(a.values, b.values, added, pair.row, pair.engine, options.get("overflow"))
    bound = quick_run_bound(run, (a, b))
    if bound is None or c is None or added is None:
        return bound
    with np.errstate(over="ignore", invalid="ignore"):
        total = bound + np.abs(np.asarray(c, np.float64) - added)
    return np.where(np.isnan(total), np.inf, total)


def _addend(row: RecoveryMethod, engine: Engine, c: np.ndarray | None) -> np.ndarray | None:
    """Return C as the method adds it, rounded to FP32 if the sums outside of the core are FP32."""
    return c if c is None or row.kind != "words" or engine.formats[3].name == "fp64" else as_fp32(c)


def _details(
    pair: MethodOnEngine, bounds: bool, options: dict, a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None
) -> dict:
    """Return the passes, range counts and bound as JSON-compatible values."""
    run = prepare(a, b, None, pair.row, pair.engine, options.get("overflow"))
    bound = relative_bound(a, b, c, pair.row, pair.engine) if bounds else None
    chosen = "" if run.count is None else run.count.reason
    return {
        "passes": run.row.passes,
        **{f"{what}_{side}": getattr(of, what) for what in ("overflow", "underflow")
           for side, of in zip("ab", run.counts(), strict=True)},
        "bound": "inf" if bound == np.inf else bound,
        "operands": run.word_format.name,
        "count": chosen,
        "padding": padding(run.row, run.engine),
        "sums": exact_sentence(run.row, run.engine),
    }  # fmt: skip


def relative_bound(a, b, c, row, engine) -> float | None:
    """Return the largest deterministic bound over S = |A||B| + |C|, None if no bound is known for the core."""
    added = _addend(row, engine, c)
    try:
        bound = method_bound(a, b, added, row, engine).total
    except ValueError:
        return None
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        bound = bound if c is None or added is None else bound + np.abs(np.asarray(c, np.float64) - added)
        size = np.abs(np.asarray(a, np.float64)) @ np.abs(np.asarray(b, np.float64))
        size = size + (0 if c is None else np.abs(np.asarray(c, np.float64)))
        ratio = np.where(size > 0, bound / size, np.where(bound > 0, np.inf, 0.0))
    return float(np.max(ratio, initial=0.0))
