"""This module compares two runs of a model module by module: the first difference, its cause, its effect on the logits."""

import math
from dataclasses import asdict, dataclass

import numpy as np

from mpgemm.experiments.whodunit import whodunit
from mpgemm.traces.fused import joined
from mpgemm.traces.reading import Trace
from tensorcore_models.engines.scaling import read_scales
from tensorcore_models.results import Result

#: Numbers of rows and columns of a product in which its recipe is searched for.
SHOWN = 24
#: Largest number of listed orders of k.
ORDERS = 3
#: Interval of probability ratios; tokens outside of it are counted.
RATIOS = (0.9, 1.1)


@dataclass(frozen=True)
class ModuleDifference:
    """`ModuleDifference` compares one module in both runs."""

    step: int
    module: str
    #: inputs, weights: whether the bits of the inputs, and of the weights, are equal; None if they were not recorded in both
    #: runs.
    inputs: bool | None
    weights: bool | None
    #: differing, elements: number of elements of the output whose bits differ, and of all elements.
    differing: int
    elements: int
    relative: float  #: root mean square of the difference over that of the first run's output; NaN if shapes differ
    largest: float  #: largest magnitude of the differences
    shapes: tuple[tuple[int, ...], tuple[int, ...]] | None = None  #: shapes of both outputs if they differ


@dataclass(frozen=True)
class LogitsDifference:
    """`LogitsDifference` compares the log-probabilities of both runs."""

    module: str
    tokens: int  #: rows of logits over all steps
    largest: float  #: largest change of the log-probability of the first run's most probable token
    outside: float  #: share of tokens whose probability ratio is outside of [0.9, 1.1]
    ranks: float  #: share of rows whose most probable token differs
    mean: float  #: mean of |change|


@dataclass(frozen=True, repr=False)
class TraceComparison(Result):
    """`TraceComparison` is the result of :func:`compare_traces`."""

    names: tuple[str, str]
    modules: tuple[ModuleDifference, ...]  #: modules recorded in both runs, in the order of the first
    first: ModuleDifference | None  #: first module whose output differs
    recipes: tuple[str, str] | None  #: arithmetics that give the first module's output of each run
    logits: LogitsDifference | None
    missing: tuple[str, ...]  #: modules of one run alone
    left_out: tuple[str, ...] = ()  #: products that a run's recorder left out, as "module: operation"
    joined: tuple[str, ...] = ()  #: projections that one run has fused, in words

    def to_rows(self) -> list[dict]:
        """Return one row for each module."""
        return [asdict(row) for row in self.modules]

    def to_dict(self) -> dict:
        """Return the content as a dict of JSON-compatible values."""
        return asdict(self)

    def sentences(self) -> list[str]:
        """Return sentences on the first difference, its cause, its course, the logits, and products that were not recorded."""
        return [*self._found(), *(f"not recorded: {_some(self.left_out)}" for _ in self.left_out[:1])]

    def _found(self) -> list[str]:
        if self.first is None:
            return [f"the runs have the same bits in all {len(self.modules)} modules that both recorded"]
        f = self.first
        others = [row for row in self.modules if row.shapes is not None]
        if f.shapes is not None:
            return [
                f"the first module whose output differs is {_reshaped(f).replace(' on, whose', ', whose')}",
                *self._later(f, others),
            ]
        lines = [
            f"the first module whose bits differ is {f.module} (step {f.step}): {f.differing} of {f.elements} elements, "
            f"{f.relative:.2g} of the output; {_inputs(f)}"
        ]
        if self.recipes is not None:
            lines += [f"{name}: {text}" for name, text in zip(self.names, self.recipes, strict=True)]
        else:
            lines.append("its cause is unknown, because its input and weight were not recorded in both runs")
        return [*lines, *self._later(f, others)]

    def _later(self, f: ModuleDifference, others: list[ModuleDifference]) -> list[str]:
        """Return sentences on the difference in later modules; outputs of `others` have different shapes."""
        lines = []
        if others and others[0] is not f:
            lines.append(f"from {_reshaped(others[0])}")
        if len(others) > 1:
            lines.append(
                f"{len(others)} modules have other rows and are not compared: {_some(tuple(x.module for x in others))}"
            )
        last = next((row for row in reversed(self.modules) if row.shapes is None), f)
        if last is not f and f.shapes is None:
            how = "grows" if last.relative > f.relative else "shrinks" if last.relative < f.relative else "goes"
            lines.append(
                f"the difference {how} from {f.relative:.2g} to {last.relative:.2g} of the output in {last.module}"
            )
        if self.logits is not None:
            g = self.logits
            lines.append(
                f"{g.module}: log-probabilities change by at most {g.largest:.3g} ({g.mean:.2g} on average); "
                f"{g.outside:.1%} of {g.tokens} tokens have a probability ratio outside of [{RATIOS[0]}, {RATIOS[1]}]; "
                f"another token is the most probable in {g.ranks:.1%} of the rows"
            )
        if self.missing:
            lines.append(f"in one run alone: {_some(self.missing)}")
        if self.joined:
            lines.append(f"compared as one: {_some(self.joined)}")
        return lines


def _some(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:6])}{' ...' if len(names) > 6 else ''}"


def _reshaped(row: ModuleDifference) -> str:
    """Return a module whose outputs have different shapes, and a possible reason, in words."""
    assert row.shapes is not None
    one, other = row.shapes
    why = ": rows differ, as if routing flips or requests differ" if one[1:] == other[1:] else ""
    return f"{row.module} (step {row.step}) on, whose outputs have the shapes {one} and {other}{why}"


def _inputs(f: ModuleDifference) -> str:
    if f.inputs is None:
        return "its inputs were not recorded in both runs"
    if not f.inputs:
        return "its inputs differ already, because of modules before it that were not recorded"
    weights = {None: "", True: " and weights", False: "; its weights are not"}[f.weights]
    return f"its inputs{weights} are the same" if f.weights is not False else f"its inputs are the same{weights}"


def compare_traces(first: Trace, second: Trace, *, logits: str | None = None, explain: bool = True) -> TraceComparison:
    """Compare two runs of a model.

    `logits` is the module whose outputs are logits; by default the last one whose name ends in lm_head or logits. With
    `explain` the arithmetic of the first module's output is searched for in each run (seconds to a minute). Modules whose
    outputs have different shapes, as if routing flips, are named and not compared. Projections that one run has fused are
    joined in the other (:mod:`mpgemm.traces.fused`).

    Raises ValueError if no module is in both runs, or there is no such module of logits.
    """
    first, second, said = joined(first, second)
    keys = [key for key in first.modules if key in second.modules]
    if not keys:
        raise ValueError(
            f"{first.folder} and {second.folder} have no module in common ({_modules(first)} and {_modules(second)}): "
            "record the same modules in both"
        )
    rows = [row for key in keys if (row := _module(first, second, key)) is not None]
    apart = next((row for row in rows if row.differing), None)
    recipes = None
    if apart is not None and explain and apart.shapes is None:
        recipes = _recipes(first, second, (apart.step, apart.module))
    missing = [
        f"{module} (step {step})" for step, module in {**first.modules, **second.modules} if (step, module) not in keys
    ]
    names = str(first.folder), str(second.folder)
    left_out = tuple(dict.fromkeys((*first.left_out, *second.left_out)))
    changed = _logits(first, second, keys, logits)
    return TraceComparison(names, tuple(rows), apart, recipes, changed, tuple(missing), left_out, said)


def _modules(trace: Trace) -> str:
    return ", ".join(module for _, module in list(trace.modules)[:3])


def _bits(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


def _equal(first: Trace, second: Trace, key, kind: str) -> bool | None:
    pair = first.tensor(key, kind), second.tensor(key, kind)
    if pair[0] is None or pair[1] is None:
        return None
    return (
        pair[0].dtype == pair[1].dtype
        and pair[0].shape == pair[1].shape
        and bool((_bits(pair[0]) == _bits(pair[1])).all())
    )


def _module(first: Trace, second: Trace, key) -> ModuleDifference | None:
    one, other = first.tensor(key, "output"), second.tensor(key, "output")
    if one is None or other is None:
        return None
    if one.shape != other.shape:
        shapes = tuple(map(int, one.shape)), tuple(map(int, other.shape))
        inputs, weights = (_operand_equal(first, second, key, kind) for kind in ("input", "weight"))
        return ModuleDifference(key[0], key[1], inputs, weights, one.size, one.size, math.nan, math.nan, shapes)
    same = one.dtype == other.dtype
    x, y = one.astype(np.float64), other.astype(np.float64)
    differing = int(np.count_nonzero(_bits(one) != _bits(other))) if same else int(np.count_nonzero(x != y))
    with np.errstate(invalid="ignore"):
        distance = np.abs(x - y)
    known = np.isfinite(distance)
    scale = math.sqrt(float(np.mean(np.square(x[known])))) if known.any() else 0.0
    root = math.sqrt(float(np.mean(np.square(distance[known])))) if known.any() else 0.0
    relative = root / scale if scale else (math.inf if root else 0.0)
    largest = float(distance[known].max(initial=0.0))
    inputs, weights = (_operand_equal(first, second, key, kind) for kind in ("input", "weight"))
    return ModuleDifference(key[0], key[1], inputs, weights, differing, one.size, relative, largest)


def _operand_equal(first: Trace, second: Trace, key, kind: str) -> bool | None:
    """Return whether the bits of an operand and of its scales are equal, or None if it was not recorded in both runs."""
    found, scales = (_equal(first, second, key, each) for each in (kind, f"{kind}_scale"))
    return False if found and scales is False else found


# -- the arithmetic of an output -----------------------------------------------------------------------------------------------
def _recipes(first: Trace, second: Trace, key) -> tuple[str, str] | None:
    one, other = (trace.tensor(key, "output") for trace in (first, second))
    if one is None or other is None:
        return None
    apart = np.atleast_1d(one.astype(np.float64) != other.astype(np.float64))
    apart = apart.reshape(-1, apart.shape[-1])
    found = [_who(trace, key, apart) for trace in (first, second)]
    return None if None in found else (str(found[0]), str(found[1]))


def _telling(apart: np.ndarray, axis: int) -> np.ndarray:
    """Return the rows (columns) with most elements that differ between the runs, and others evenly spread."""
    counts = apart.sum(1 - axis)
    most = np.argsort(-counts, kind="stable")[: SHOWN // 2]
    spread = np.linspace(0, len(counts) - 1, min(len(counts), SHOWN // 2)).astype(int)
    return np.unique(np.concatenate([most[counts[most] > 0], spread]))


def _who(trace: Trace, key, apart: np.ndarray) -> str | None:
    """Return the arithmetics that give a module's output from its input and weight; `apart` marks elements that differ."""
    x, weight, bias, out = (trace.tensor(key, kind) for kind in ("input", "weight", "bias", "output"))
    if x is None or weight is None or out is None or weight.ndim != 2 or 0 in (x.ndim, out.ndim):
        return None
    rows, found = x.reshape(-1, x.shape[-1]), out.reshape(-1, out.shape[-1])
    if (rows.shape[1], found.shape[1]) != weight.shape[::-1] or len(rows) != len(found):
        return None
    taken, columns = _telling(apart, 0), _telling(apart, 1)
    try:
        addend = None if bias is None else _addend(bias, len(weight))[columns][None].repeat(len(taken), 0)
        answer = whodunit(
            np.ascontiguousarray(rows[taken]), np.ascontiguousarray(weight[columns].T),
            np.ascontiguousarray(found[np.ix_(taken, columns)]), addend=addend, methods=(),
            **_scales(trace, key, (len(rows), rows.shape[1], len(weight)), taken, columns),
        )  # fmt: skip
    except (ValueError, TypeError) as error:
        return f"not explained ({error})"
    if not answer.settled and len(answer.exact) > 1:
        return (
            f"{len(answer.exact)} of {answer.tried} candidates give these bits, by {len(answer.by_who())} names; they share "
            f"{answer.shared or 'nothing but their formats'}"
        )
    if not answer.settled:
        return answer.verdict
    orders, _, ends = zip(*(each.how.partition(", result ") for each in answer.exact), strict=True)
    ways = tuple(dict.fromkeys(orders))
    how = " or ".join(ways[:ORDERS]) + (f" or one of {len(ways) - ORDERS} more" if len(ways) > ORDERS else "")
    how += f", result {ends[0]}" if ends[0] else ""
    if len(answer.exact) > ORDERS:
        return f"{answer.exact[0].who}, {how}: {len(answer.exact)} of {answer.tried} candidates give these bits"
    return f"{answer.exact[0].who}, {how}; no other of {answer.tried} candidates gives these bits"


def _addend(bias: np.ndarray, size: int) -> np.ndarray:
    """Return a bias as FP32 numbers, one for each column. Raises ValueError if its size differs."""
    if bias.size not in (1, size):
        raise ValueError(
            f"the bias must have {size} numbers, one for each column of the output, got the shape {bias.shape}"
        )
    return np.broadcast_to(bias.reshape(-1).astype(np.float32), size)


def _scales(trace: Trace, key, sizes: tuple[int, int, int], rows: np.ndarray, columns: np.ndarray) -> dict:
    """Return the scales of some rows and columns of a quantised module's product; none if they were not recorded."""
    scale_a, scale_b = trace.tensor(key, "input_scale"), trace.tensor(key, "weight_scale")
    scaling = read_scales(scale_a, None if scale_b is None else scale_b.T, *sizes)
    if scaling is None:
        return {}
    part = scaling.part(rows, columns)
    return {"scale_a": part.a, "scale_b": part.b}


# -- logits -----------------------------------------------------------------------------------------------------------------
def _logits(first: Trace, second: Trace, keys, wanted: str | None) -> LogitsDifference | None:
    modules = list(dict.fromkeys(module for _, module in keys))
    if wanted is not None and wanted not in modules:
        raise ValueError(
            f"no module {wanted!r} is in both runs: take one of the common modules, such as {', '.join(modules[-6:])}"
        )
    named = [m for m in modules if m.rpartition(".")[2].partition("#")[0] in ("lm_head", "logits")]
    chosen = wanted or (named[-1] if named else None)
    if chosen is None:
        return None
    changes, ranks = [], []
    for key in keys:
        one, other = first.tensor(key, "output"), second.tensor(key, "output")
        if key[1] != chosen or one is None or other is None or one.shape != other.shape:
            continue
        x, y = _log_probabilities(one), _log_probabilities(other)
        best = np.argmax(x, 1)
        at = np.arange(len(x))
        changes.append(y[at, best] - x[at, best])
        ranks.append(np.argmax(y, 1) != best)
    if not any(x.size for x in changes):
        return None
    change, moved = np.concatenate(changes), np.concatenate(ranks)
    ratios = np.exp(change)
    outside = float(np.mean((ratios < RATIOS[0]) | (ratios > RATIOS[1])))
    sizes = np.abs(change)
    return LogitsDifference(chosen, len(change), float(sizes.max()), outside, float(moved.mean()), float(sizes.mean()))


def _log_probabilities(logits: np.ndarray) -> np.ndarray:
    x = np.atleast_1d(logits).astype(np.float64)
    x = x.reshape(-1, x.shape[-1])
    x = x - x.max(1, keepdims=True)
    return x - np.log(np.exp(x).sum(1, keepdims=True))
