"""Computes table 5 of Valpey et al.: inputs for which Ootomo and Yokota's method is less accurate than Markidis' method."""

from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

import tensorcore_models as tcm
from mpgemm.exact.product import exact_gemm
from mpgemm.experiments.outcome import Context, Outcome
from mpgemm.experiments.tasks import Task, results_of
from mpgemm.explanations.example import VALPEY_A, VALPEY_B, VALPEY_C
from mpgemm.recovered import recovered_gemm
from mpgemm.recovery.engines import resolve_engine
from mpgemm.recovery.methods import get_method
from mpgemm.reporting.report import Table
from tensorcore_models.engines.engine import Engine

#: Procedures of section 6: all sums in the core, and only c added outside, both with the low-low term.
MARKIDIS = get_method("markidis", rounding="rne")
OOTOMO = get_method("ootomo", accumulate_outside="c_only", terms=4)
DEVICES = ("v100", "t4", "a100", "h100")


@dataclass(frozen=True)
class TableRow:
    """`TableRow` holds the table's results on one engine."""

    engine: str
    exact: float
    rounded: float
    markidis: float
    ootomo: float

    to_dict = asdict


def table_row(engine: str | Engine) -> TableRow:
    """Return the results of both methods on the table's input."""
    engine = resolve_engine(engine, MARKIDIS)
    a, b, c = VALPEY_A[None], VALPEY_B[:, None], VALPEY_C.reshape(1, 1)
    exact = exact_gemm(a, b, c)
    results = (recovered_gemm(a, b, c, method, engine) for method in (MARKIDIS, OOTOMO))
    values = (exact.rounded("fp64"), exact.rounded("fp32"), *results)
    return TableRow(engine.label, *(float(x[0, 0]) for x in values))


# -- search --------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SearchResult:
    """`SearchResult` counts how often each method has the smaller error on random dot products."""

    #: engine, family: label of the engine, and family of elements: "fp16" for fp16 numbers, as in the table, so that only the
    #: sums differ; "fp32" for FP32 numbers.
    engine: str
    family: str
    #: k, trials: length of the sums, and number of dot products.
    k: int
    trials: int
    #: markidis_better, ootomo_better, equal: numbers of dot products, by the exact errors of both results.
    markidis_better: int
    ootomo_better: int
    equal: int
    examples: tuple[dict, ...]  #: Some inputs (hexadecimal floats) for which Markidis' method is better.

    to_dict = asdict


def search(
    engine: str | Engine, family: str = "fp16", k: int = 4, trials: int = 4096, seed: int = 0, keep: int = 3
) -> SearchResult:
    """Return the comparison of both methods on random dot products on an engine, by exact errors.

    Exponents are uniform in [-15, 14] as in the paper's query. c is within 24 binades below the largest product, so that it
    affects the sums.

    engine: an engine, or the name of an instruction or device.
    family ({"fp16", "fp32"}): family of elements.
    k, trials, seed, keep: length of the sums, number of dot products, seed, and number of examples to keep.
    Raises ValueError if the family is unknown, or k or trials is below 1.
    """
    if family not in ("fp16", "fp32"):
        raise ValueError(f"family is {family!r}, expected 'fp16' or 'fp32'")
    if k < 1 or trials < 1:
        raise ValueError(f"k is {k} and trials is {trials}, expected at least 1")
    engine = resolve_engine(engine, MARKIDIS)
    a, b, c = _inputs(family, k, trials, np.random.default_rng(seed))
    found = [dot_products(a, b, c, method, engine) for method in (MARKIDIS, OOTOMO)]
    markidis, ootomo = (_errors(a, b, c, d) for d in found)
    better = np.flatnonzero(markidis < ootomo)
    examples = tuple(_example(a[i], b[i], c[i], found[0][i], found[1][i]) for i in better[:keep])
    worse, equal = (int(np.count_nonzero(x)) for x in (ootomo < markidis, ootomo == markidis))
    return SearchResult(engine.label, family, k, trials, len(better), worse, equal, examples)


def _inputs(family: str, k: int, trials: int, rng: np.random.Generator):
    def draw(shape):
        values = rng.choice([-1.0, 1.0], shape) * np.ldexp(1 + rng.random(shape), rng.integers(-15, 15, shape))
        return tcm.round_to(values, family).astype(np.float32)

    a, b = draw((trials, k)), draw((trials, k))
    largest = np.frexp(np.abs(a.astype(np.float64) * b).max(axis=1))[1]
    c = rng.choice([-1.0, 1.0], trials) * np.ldexp(1 + rng.random(trials), largest - rng.integers(0, 25, trials))
    return a, b, c.astype(np.float32)


def dot_products(a: np.ndarray, b: np.ndarray, c: np.ndarray, method, engine) -> np.ndarray:
    """Return the dot products a_i b_i + c_i for shapes (t, k), (t, k), (t,), as the diagonals of small matrix products."""
    out = np.empty(len(a), np.float32)
    for part in _blocks(len(a)):
        out[part] = np.diagonal(recovered_gemm(a[part], b[part].T, _square(c[part]), method, engine))
    return out


def _blocks(count: int):
    """Return slices of 8, so that little is computed outside of the diagonals and calls cost little."""
    return [slice(start, min(start + 8, count)) for start in range(0, count, 8)]


def _square(x: np.ndarray) -> np.ndarray:
    """Return a square matrix whose rows are constant."""
    return np.broadcast_to(x[:, None], (len(x),) * 2)


def _errors(a, b, c, d) -> np.ndarray:
    """Return |computed - exact| of every dot product, rounded once to FP64."""
    errors = np.empty(len(a))
    for part in _blocks(len(a)):
        exact = exact_gemm(a[part], np.ascontiguousarray(b[part].T), np.ascontiguousarray(_square(c[part])))
        errors[part] = np.abs(np.diagonal(exact.error_of(np.ascontiguousarray(_square(d[part])))))
    return errors


def _example(a, b, c, markidis, ootomo) -> dict:
    single = {"c": c, "markidis": markidis, "ootomo": ootomo}
    vectors = {name: [float(x).hex() for x in values] for name, values in (("a", a), ("b", b))}
    return vectors | {name: float(x).hex() for name, x in single.items()}


def search_task(device: str, family: str, k: int, trials: int, seed: int) -> Task:
    """Return one :func:`search` as a task that a journal can resume."""
    engine = resolve_engine(device, MARKIDIS)
    configuration = {
        "search": "valpey5", "engine": repr(engine), "family": family, "k": k, "trials": trials, "seed": seed,
        "numpy": np.__version__,
    }  # fmt: skip
    label = f"{device}, {family} elements, k = {k}, seed {seed}: {trials} dot products"
    return Task(label, configuration, partial(_search_result, device, family, k, trials, seed))


def _search_result(*arguments) -> dict:
    return search(*arguments).to_dict()


def run(context: Context) -> Outcome:
    """Return the table on four architectures, and how often each method is more accurate on random inputs."""
    rows = [table_row(device) for device in DEVICES]
    table = Table(
        "Valpey et al., table 5 (b_1 = 1.998046875 * 2^7)",
        ["engine", "exact", "nearest FP32", "Markidis", "Ootomo"],
        [[r.engine, *(float(x).hex() for x in (r.exact, r.rounded, r.markidis, r.ootomo))] for r in rows],
    )
    trials = 128 if context.quick else 2048
    tasks = [
        search_task(device, family, k, trials, seed)
        for device in DEVICES
        for family in ("fp16", "fp32")
        for k in (4, 16)
        for seed in context.seeds
    ]
    searches = [
        SearchResult(**{**result, "examples": tuple(result["examples"])})
        for result in results_of(tasks, context.journal, context.progress, context.executor)
    ]
    found = Table(
        "Random dot products: number of results that are closer to the exact value",
        ["engine", "elements", "k", "trials", "Markidis", "Ootomo", "equal", "Markidis better"],
        [[s.engine, s.family, s.k, s.trials, s.markidis_better, s.ootomo_better, s.equal,
          f"{s.markidis_better / s.trials:.1%}"] for s in searches],
    )  # fmt: skip
    data = {"table": [r.to_dict() for r in rows], "searches": [s.to_dict() for s in searches]}
    return Outcome("valpey-table5", [table, found], data)
