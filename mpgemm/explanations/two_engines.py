"""Compares one dot product on two engines: their sums, the first sum that differs, and the rule that causes the difference.

The rule is found by trial: the step is computed again with the rules of the first engine, one of which is replaced by the
second engine's. A rule that alone turns the first sum into the second explains the difference.
"""

import dataclasses
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds.attribution import dot_run
from mpgemm.explanations.dots import Event, Tracer, alignment, trace
from tensorcore_models.accumulators import Accumulator
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.matrix_engine import MatrixEngine
from tensorcore_models.explanations.descriptions import ROUNDINGS
from tensorcore_models.families.base import SumAlgorithm
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Result

#: Number of rows that are shown before and after the first row that differs.
AROUND = 2


@dataclass(frozen=True)
class EnginesRow:
    """`EnginesRow` holds both engines' sums at one point; `text` names the products added last, up to k = `stop`."""

    text: str
    stop: int
    first: float
    second: float

    @property
    def alike(self) -> bool:
        """Return whether both sums have the same value."""
        return self.first == self.second or (self.first != self.first and self.second != self.second)


@dataclass(frozen=True, repr=False)
class SideBySide(Result):
    """`SideBySide` compares a dot product on two engines.

    Attributes
    ----------
    method : str
        Name of the method.
    engines : (str, str)
        Labels of the engines.
    results : (float, float)
        Results of both engines.
    rows : tuple of EnginesRow
        Partial sums of both engines, after the same products; sums that only one engine forms are left out.
    first : int or None
        Index of the first row whose sums differ; None if no sums differ.
    why : str
        Sentence on the reason why the results differ or agree.
    rules : tuple of str
        Differences of the engines that explain the results: fields of their accumulators, such as "fraction_bits", or
        "algorithm", "format" (of the results), "k" (the k step) or "order" (of the products).
    """

    method: str
    engines: tuple[str, str]
    results: tuple[float, float]
    rows: tuple[EnginesRow, ...]
    first: int | None
    why: str
    rules: tuple[str, ...]

    def to_dict(self) -> dict:
        """Return all fields as JSON-compatible values."""
        return asdict(self)

    def to_rows(self) -> list[dict]:
        """Return one row for each partial sum that both engines form."""
        return [asdict(row) for row in self.rows]

    def sentences(self) -> list[str]:
        """Return sentences on the engines that were compared, and on the reason for the difference."""
        return [f"{self.method} on {self.engines[0]} and {self.engines[1]}", self.why]

    def shown(self) -> list[int]:
        """Return the indices of the rows to show: the first, the last, and the rows around the first row that differs."""
        near = range(max(0, self.first - AROUND), self.first + AROUND + 1) if self.first is not None else range(AROUND)
        wanted = {0, len(self.rows) - 1, *near}
        return [index for index in range(len(self.rows)) if index in wanted]

    def __str__(self) -> str:
        lines = [f"{self.method} on {self.engines[0]} and {self.engines[1]}"]
        before = -1
        for index in self.shown():
            if index > before + 1:
                alike = sum(row.alike for row in self.rows[before + 1 : index])
                lines.append(f"  ... {index - before - 1} sums, {alike} equal")
            row, before = self.rows[index], index
            mark = "  <- first that differs" if index == self.first else ""
            lines.append(f"  {row.text}, k < {row.stop}: {row.first!r} {row.second!r}{mark}")
        return "\n".join([*lines, f"results: {self.results[0]!r} and {self.results[1]!r}", self.why])


@default_fp_state
def side_by_side(method, a, b, c=None, engines=("a100", "h100"), **options) -> SideBySide:
    """Compare one dot product ``sum a_k b_k + c`` on two engines.

    Parameters
    ----------
    method, **options
        Arguments of :func:`mpgemm.recovered_gemm`; the method must use floating-point words.
    a, b : array_like, shape (k,)
        A row of A and a column of B.
    c : float, optional
        The addend.
    engines : (Engine or str, Engine or str)
        The two engines, as for :func:`mpgemm.recovered_gemm`.

    Raises
    ------
    ValueError
        If there are not two engines, if the method uses integers (its products are exact on every engine), and in the cases
        of :func:`mpgemm.explain`.

    Examples
    --------
    >>> import numpy as np
    >>> a = np.float32([1, 2.0**-24, 2.0**-24])
    >>> found = side_by_side("fp16", a, np.ones(3, np.float32), engines=("v100", "h100"))
    >>> found.results, found.rules
    ((1.0, 1.0000001192092896), ('fraction_bits',))
    """
    if len(engines) != 2:
        raise ValueError(f"got {len(engines)} engines, expected two to compare")
    runs = [dot_run(method, a, b, c, engine, None, options) for engine in engines]
    for run in runs:
        if run.row.kind != "words":
            raise ValueError(
                f"{run.row.name} multiplies integers, which is exact on every engine, so no result can differ; take a method "
                "with floating-point words"
            )
        for words in run.words():
            if not all(np.isfinite(tcm.decode(word, run.word_format)).all() for word in words):
                raise ValueError(
                    f"{run.row.name}: an element is beyond the range of {run.word_format.name} words; scale a or b"
                )
    tracers = [trace(run) for run in runs]
    results = [float(run.product()[0, 0]) for run in runs]
    names = (runs[0].engine.label, runs[1].engine.label)
    short = _short(*names)
    pairs = _common(tracers[0], tracers[1])
    rows = tuple(EnginesRow(x.text, x.stop, x.value, y.value) for x, y in pairs)
    first = next((index for index, row in enumerate(rows) if not row.alike), None)
    if first is None:
        why, rules = _alike(short, results)
    else:
        why, rules = _why(runs, tracers[0].events, pairs, first, short)
    return SideBySide(runs[0].row.name, names, (results[0], results[1]), rows, first, why, rules)


def _short(first: str, second: str) -> tuple[str, str]:
    """Return the architectures of two engines' names, or the whole names if the architectures are equal."""
    archs = first.partition(":")[0], second.partition(":")[0]
    return archs if archs[0] != archs[1] else (first, second)


def _common(one: Tracer, other: Tracer) -> list[tuple[Event, Event]]:
    """Return the pairs of sums at points that both tracers recorded."""
    known = {event.key: event for event in other.events}
    return [(event, known[event.key]) for event in one.events if event.key in known]


def _alike(names, results) -> tuple[str, tuple[str, ...]]:
    if results[0] == results[1] or (results[0] != results[0] and results[1] != results[1]):
        return f"{names[0]} and {names[1]} give the same bits for this dot product.", ()
    return "The results differ, but all sums that both engines form before the result are equal.", ()


# -- why -----------------------------------------------------------------------------------------------------------------
def _why(runs, events: list[Event], pairs: list[tuple[Event, Event]], index: int, names) -> tuple[str, tuple[str, ...]]:
    """Return a sentence on the first row that differs, and the rules that explain the difference."""
    one, other = pairs[index]
    if one.pair is None:
        return (
            f"The sums outside differ, because the engines take k in steps of {runs[0].engine.k} and {runs[1].engine.k}.",
            ("k",),
        )
    start, seed = _since(events, pairs, index)
    where = f"Products {start} to {one.stop - 1}" if one.stop - start > 1 else f"Product {start}"
    engines = [run.engine for run in runs]
    ks = slice(start, one.stop)
    a, b = one.pair[0][:, ks], one.pair[1][ks]
    values = [_value(engine.accumulator, engine, a, b, seed) for engine in engines]
    if values != [one.value, other.value]:
        return (
            f"{where} come after other products on {names[1]} than on {names[0]}, because the engines take k in steps of "
            f"{engines[0].k} and {engines[1].k}, so they chain the products of the words in different orders.",
            ("order",),
        )
    rules = _rules(engines, a, b, seed, values)
    enough = " (this alone explains it)" if len(rules) == 1 else " (these explain it only together)"
    are = "are" if one.stop - start > 1 else "is"
    text = f"{where} {are} added up differently, because {_spelled(engines, names, rules)}{enough}"
    return f"{text}{_example(engines, names, a, b, seed, start)}.", rules


def _since(events: list[Event], pairs: list[tuple[Event, Event]], index: int) -> tuple[int, float | None]:
    """Return the k at which the last common sum of the same chain ends, and the value of that sum."""
    one, _ = pairs[index]
    for before, _ in reversed(pairs[:index]):
        if before.key[0] == one.key[0] and before.pair is not None and before.text == one.text and one.seed is not None:
            return before.stop, (one.seed if one.start == before.stop else before.value)
    return (one.start, one.seed) if one.key[1] == "part" else (0, _chain_seed(events, one))


def _chain_seed(events: list[Event], one: Event) -> float | None:
    """Return the value from which a chain started, the seed of its first sum."""
    return next((event.seed for event in events if event.key[0] == one.key[0]), None)


def _value(spec: Accumulator, engine: Engine, a, b, seed: float | None, formats=None) -> float:
    """Return the sum of a part of a chain, computed with an accumulator."""
    x, y, c, d = formats or engine.formats
    unit = MatrixEngine(spec, a_format=x, b_format=y, c_format=c, d_format=d)
    bits = None if seed is None else tcm.encode(np.array([[seed]]), unit.formats[2])
    return float(np.asarray(tcm.decode(unit.gemm_bits(a, b, bits), unit.formats[3]))[0, 0])


def _rules(engines, a, b, seed, values) -> tuple[str, ...]:
    """Return the fewest rules of the second engine that turn the first engine's sum into the second's."""
    first, second = (engine.accumulator for engine in engines)
    if type(first) is not type(second):
        return ("algorithm",)
    differing = [f.name for f in dataclasses.fields(first) if getattr(first, f.name) != getattr(second, f.name)]
    if engines[0].formats[3] != engines[1].formats[3]:
        differing.append("format")
    for count in range(1, len(differing) + 1):
        for names in combinations(differing, count):
            formats = engines[1].formats if "format" in names else None
            try:
                spec = dataclasses.replace(first, **{n: getattr(second, n) for n in names if n != "format"})
                if _value(spec, engines[0], a, b, seed, formats) == values[1]:
                    return names
            except ValueError:  # rules that do not go together
                continue
    return tuple(differing)


#: Phrases on an engine that follows a rule.
RULES = {
    "terms": "adds {value} products at once, with a rounding after them",
    "fraction_bits": "keeps {value} fraction bits below the largest addend",
    "exponent_floor": "never aligns below the exponent {value}",
    "output_fraction_bits": "rounds the sum to {value} fraction bits",
    "group": "adds groups of {value} products first",
    "format": "rounds every sum to {value}",
    "output_rounding": "has the sum rounded {value}",
    "alignment_rounding": "has the addends rounded {value} at the alignment",
}


def _spelled(engines, names, rules: tuple[str, ...]) -> str:
    """Return the rules of both engines in words."""
    texts = []
    for engine, name in zip(engines, names, strict=True):
        does = [_brief(engine)] if rules == ("algorithm",) else [_does(engine, rule) for rule in rules]
        texts.append(f"{name} {' and '.join(does)}")
    return ", and ".join(texts)


def _brief(engine: Engine) -> str:
    return engine.accumulator.words(engine.formats[3].name).brief  # type: ignore[attr-defined]


def _does(engine: Engine, rule: str) -> str:
    value = engine.formats[3].name if rule == "format" else getattr(engine.accumulator, rule)  # type: ignore[attr-defined]
    value = ROUNDINGS[value] if rule.endswith("_rounding") else "all" if value is None else value
    return RULES.get(rule, "has the rule " + rule + " = {value}").format(value=value)


def _example(engines, names, a, b, seed, start: int) -> str:
    """Return a sentence on the addend whose kept parts differ most, if both engines align all addends at once."""
    kept = []
    for engine in engines:
        algorithm, spec = engine.accumulator.form()
        if algorithm is not SumAlgorithm.FUSED or a.shape[1] > spec.terms:
            return ""
        found = alignment(spec, engine.formats, a.ravel(), b.ravel(), seed)
        if found is None:
            return ""
        kept.append({x.name: (int(x.units), x.units, found.quantum) for x in found.addends})
    gaps = {name: abs(kept[0][name][0] * kept[0][name][2] - kept[1][name][0] * kept[1][name][2]) for name in kept[0]}
    worst = max(gaps, key=lambda name: gaps[name])
    if not gaps[worst]:
        return ""
    parts = [
        f"{names[i]} keeps {kept[i][worst][0]} of its {float(kept[i][worst][1]):.4g} units of 2^{_log2(kept[i][worst][2])}"
        for i in range(2)
    ]
    number = worst.partition(" ")[2]
    who = f"product {start + int(number)}" if number else "the running sum"
    return f". Of {who}, {parts[0]}, {parts[1]}"


def _log2(power: Fraction) -> int:
    return power.numerator.bit_length() - power.denominator.bit_length()
