"""This package finds the kind of fault that explains a kernel's result, in its wrong and in its right elements.

A suspicion is a statement with a prediction. It is named if three things hold: the prediction is as near as a right
kernel's own errors, for wrong elements and for right ones of the same place; it explains nearly all of the differences;
and one of as many predictions would hardly do so by chance. Other suspicions are listed as tried, with their
parameters. Only faults that :mod:`mpgemm.testing.diagnosis.proved` excludes by certified bounds are ruled out.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mpgemm.testing.diagnosis import along_k, altered, displaced, fitted, narrow, swizzles, tiles, words
from mpgemm.testing.diagnosis.along_k import in_list
from mpgemm.testing.diagnosis.displaced import line_maps
from mpgemm.testing.diagnosis.failure import CONFIRMED, GOOD, Failure, Finding, spread
from mpgemm.testing.diagnosis.functions_of_results import ZEROS, clipped, fixed_point, magnitudes, zeros
from mpgemm.testing.diagnosis.narrow import ALIKE, NARROW, narrow_errors, narrow_findings, overflowing_sums
from mpgemm.testing.diagnosis.proved import contradicted
from mpgemm.testing.epilogues import EPILOGUES, KernelEpilogue
from tensorcore_models.formats import get_float_format
from tensorcore_models.formats.rounding import round_to

#: Price of a number that is chosen to fit, and difference of scores from which on statements are distinguished. Scores are
#: squares over errors, -2 log likelihood. By chance a number reduces the score by 1 on average, and by 10 once in 640 (chi
#: squared); 4 is a ratio of likelihoods of 7.
PRICE, TOLD_APART = 10.0, 4.0
#: Share of a right kernel's errors, about 2^-24 |A||B|, below which the rest counts as 0: a fault's own FP32 factors are
#: rounded by 2^-24 of the result, which is 1/sqrt(k) of |A||B| on data of both signs, 0.1 at k = 100.
EXACT = 0.1
#: Largest ratio of wrong to all elements, as 1 in so many, at which wrong ones are explained alone. Chosen: races are far below
#: (1 % in tests/testing/test_judged_conclusions.py); with more wrong elements the right ones have to be explained, too.
SCATTERED = 8
#: Least number of wrong elements for a statement with a fitted number.
FEWEST = 4


def _addend(f: Failure) -> Iterator[Finding]:
    c = f.case.c
    if c is None:
        return
    for times, text in ((-1, "left out"), (1, "added twice"), (-2, "subtracted")):
        yield f.finding(f.true + times * f.added, f"the addend: C is {text}", 2.0)
    if (parts := f.case.splits) > 2:
        yield f.finding(
            f.true + (parts - 1) * f.added, f"the addend: C is added {parts} times, by each part of k", 2.0, 1.0
        )
    if (ends := f.case.ends) is not None and ends.beta not in (0, 1):
        yield f.finding(
            f.true + (1 / ends.beta - 1) * f.added, "the addend: beta is left out, so C is added whole", 2.0
        )
    for name in NARROW:
        narrow = round_to(f.added, get_float_format(name), saturate=True)
        yield f.finding(f.true - f.added + narrow, f"the addend: C is rounded to {name} first", 1.0, math.log(4))
    m, n = c.shape
    for read, text in _elsewhere(f, c):
        yield f.finding(f.true - f.added + read, f"the addend: C is {text}", 2.0, math.log(60))
    crossed = c[f.columns % m, f.rows % n]
    yield f.finding(f.true - f.added + crossed, "the addend: C is read along the wrong axis", 2.0, math.log(60))
    if f.case.scaling is not None and f.case.scaling.block is None:
        factors = np.multiply(*f.factors)[:, 0]
        yield f.finding(f.true + (factors - 1) * f.added, "the addend: C is added before the scales", 2.0, 1.0)


def _elsewhere(f: Failure, added: np.ndarray) -> Iterator[tuple[np.ndarray, str]]:
    """Yield (addend of the elements, description) with C read at other rows or columns; C has the shape (m, n)."""
    for size, word in zip(added.shape, ("row", "column"), strict=True):
        for text, at in line_maps(size):
            read = added[at[f.rows], f.columns] if word == "row" else added[f.rows, at[f.columns]]
            yield read, f"taken from {text.format(word)}"


def _again(f: Failure) -> Iterator[Finding]:
    """Yield results to which the result of an earlier run is added, as if the accumulator started from it."""
    yield f.finding(
        2 * f.true,
        "a stale C: every result is twice the exact one, as if added to that of an earlier run (or a scale of 2)",
        3.0,
    )


class FaultKind(NamedTuple):
    """`FaultKind` is a kind of fault with the function that predicts it.

    `name` describes its predictions with their parameters. `chosen` says whether a number is chosen to fit, `along_k`
    whether it uses products along k.
    """

    name: str
    predict: Callable[[Failure], Iterator[Finding]]
    chosen: bool = True
    along_k: bool = False


#: Description of the narrow sums that were tried.
_NARROW_SUMS = (
    f"sums in {' or '.join(NARROW)}, rounded every 1 to 128 products in order of k, or between named parts of k"
)
#: Kinds of faults in the order in which they are listed. Epilogues, narrow sums and scattered missing products are not among
#: them, because they do not predict single sums.
FAULT_KINDS: tuple[FaultKind, ...] = (
    FaultKind("zeros in all wrong elements, or in negative ones", zeros, False),
    FaultKind("results clipped at one number", clipped),
    FaultKind("results without their sign", magnitudes, False),
    FaultKind("results on a grid of one power of two, rounded or cut", fixed_point),
    FaultKind("C left out, twice, subtracted, rounded, of another line, before the scales", _addend, False),
    FaultKind("the exact result twice", _again, False),
    FaultKind("one factor, one offset, or one alpha and beta for all (fitted)", fitted.whole),
    FaultKind(
        "scales left out, squared, inverted, swapped, rounded, of another line or block (1 or 8 to 256 away, one of 2 to "
        "256 or of all)",
        along_k.given_scales, False, along_k=True,
    ),
    FaultKind("one factor for each of a few rows or columns (fitted)", along_k.own_scales),
    FaultKind("one factor for one block of k (fitted)", along_k.block_scales, along_k=True),
    FaultKind(
        "one k, one range of 2 to 256 k, every 2nd to 256th, or one end of k lost or twice", along_k.lost_terms, along_k=True
    ),
    FaultKind("A or B of a block of 16 to 128 k up to 4 blocks away", along_k.stale_blocks, along_k=True),
    FaultKind("k of A or B shifted, or groups of 1 to 128 exchanged, turned or swizzled", displaced.permuted, along_k=True),
    FaultKind(
        "A or B read 1 or 8 to 256 lines away, in transposed blocks, or with another leading dimension",
        displaced.rearranged, along_k=True,
    ),
    FaultKind("the result transposed in blocks of 8 to 256, or whole", displaced.transposed),
    FaultKind("the result written with a leading dimension up to 128 longer", displaced.strided),
    FaultKind("chunks of 1 to 64 elements of the result swizzled or turned by their row or column", swizzles.swizzled),
    FaultKind("whole rows or columns of the result exchanged or shifted", displaced.lines_moved),
    FaultKind("tiles of the result (8 to 256 rows, square or whole rows) exchanged or added", tiles.tiles_moved),
    FaultKind("A or B read transposed", displaced.operand_transposed, False, along_k=True),
    FaultKind(
        "operands rounded to tf32, bf16, fp16, e4m3fn or e5m2 (to nearest even or away, cut; up or down to the unit's own)",
        narrow.operands_rounded, along_k=True,
    ),
    FaultKind("operands clipped at 6, 240, 448, 57344 or 65504", narrow.operands_clipped, along_k=True),
    FaultKind("the magnitudes of A, B or both", altered.magnitudes, False, along_k=True),
    FaultKind("one triangle of A or B, or one that is mirrored", altered.halves, False, along_k=True),
    FaultKind("operands read as another format of their width", narrow.mistaken_formats, along_k=True),
    FaultKind(
        "a product of words left out, twice, subtracted, or of other words", words.products, False, along_k=True
    ),
    FaultKind("products of words added with a wrong factor (fitted)", words.factors, along_k=True),
    FaultKind("words without their scale, or with another rounding", words.splits, False, along_k=True),
    FaultKind("a part of k lost or twice in one product of words", words.lost_along_k, along_k=True),
)  # fmt: skip


#: Kinds that are tried if none of these explains the result; they fit many numbers.
LAST_KINDS = (
    FaultKind(
        "words of one product stale, of other rows or k, transposed, or without their sign",
        words.in_one_product,
        along_k=True,
    ),
    FaultKind("up to 16 single k lost", along_k.scattered),
    FaultKind("an offset of A or B, for all, each line, or each line and block with a scale (fitted)", altered.offsets),
    FaultKind("one factor, or one offset, for each row or column (fitted)", fitted.lines),
)

#: Kinds that need no sums; only these are left if an epilogue hides the sums.
OF_RESULTS = tuple(s for s in FAULT_KINDS if s.predict in (
    zeros, clipped, magnitudes, fixed_point, _again, fitted.whole, displaced.transposed, displaced.strided, swizzles.swizzled,
    displaced.lines_moved, tiles.tiles_moved))  # fmt: skip

#: Kinds that scattered elements can show alone: their errors have one factor in common.
OF_SCATTERED = tuple(
    s for s in FAULT_KINDS if s.predict not in (fitted.whole, along_k.own_scales, along_k.block_scales)
)


def _epilogue(f: Failure) -> Iterator[Finding]:
    """Yield results with the epilogue left out, applied twice, at the wrong place, or replaced; `f` is the failure of the
    results.
    """
    case, done = f.case, f.case.epilogue
    if done is None:
        return
    for values, text in _other_ends(f, done):
        if values.shape == f.exact.shape and np.isfinite(values[f.rows, f.columns]).all():
            yield f.finding(values[f.rows, f.columns], text, 3.0, math.log(16))
    if done.residual is not None:
        right = replace(done, residual=None).apply(case.values)[f.rows, f.columns]
        for read, text in _elsewhere(f, done.residual):
            yield f.finding(right + read, f"the residual is {text}", 3.0, math.log(60))
    if done.name.startswith("leaky_relu"):
        yield from _other_slope(f)


def _other_ends(f: Failure, done: KernelEpilogue) -> Iterator[tuple[np.ndarray, str]]:
    """Yield (results, description) of wrong ends of a kernel."""
    case, sums, apply = f.case, f.case.values, replace(done, residual=None).apply
    residual = 0.0 if done.residual is None else done.residual
    name = done.name.removesuffix("+residual")
    yield sums + residual, f"the epilogue {name} is left out"
    if not done.pairs:
        yield apply(apply(sums)) + residual, f"the epilogue {name} is applied twice"
    if case.c is not None:
        yield apply(sums - case.c) + (0 if done.pairs else case.c + residual), f"C is added after {name}"
        yield apply(sums - case.c) + residual, "the addend: C is left out"
    if done.residual is not None:
        yield apply(sums), "the residual is left out"
        yield apply(sums) + 2 * residual, "the residual is added twice"
        yield apply(sums + residual), f"the residual is added before {name}"
    if done.pairs:
        gate, up = np.split(sums, 2, axis=-1)
        yield apply(np.concatenate([up, gate], -1)), "the gates and the values that they multiply are exchanged"
        pairs = np.concatenate([sums[:, ::2], sums[:, 1::2]], -1)
        yield apply(pairs), "the gates are taken from every second column, not from the first half"
        yield gate * up, "the gates are not passed through silu"
        for other, shape in EPILOGUES.items():
            if not shape.number:
                yield shape.apply(gate, 0.0), f"the result is {other} of the gates, not multiplied with the second half"
                if other != "silu":
                    yield shape.apply(gate, 0.0) * up, f"the gates are passed through {other}, not silu"
    elif case.scaling is not None and case.scaling.block is None:
        factors = case.scaling.spread_a()[:, :1] * case.scaling.spread_b()[:1]
        added = 0.0 if case.c is None else case.c
        early = apply((sums - added) / factors) * factors
        yield early + added + residual, f"the epilogue {name} is applied before the scales"
    if name.startswith("gelu"):
        quick = EPILOGUES["silu"].apply(1.702 * sums, 0.0) / 1.702
        yield quick + residual, f"the epilogue is x / (1 + exp(-1.702 x)), not {name}"
    for other, shape in EPILOGUES.items():
        if not shape.number and other != name:
            yield shape.apply(sums, 0.0) + residual, f"the epilogue is {other}, not {name}"


def _other_slope(f: Failure) -> Iterator[Finding]:
    """Yield results of a leaky relu with another slope below 0."""
    case, done = f.case, f.case.epilogue
    assert done is not None
    below = f.wrong & (case.values < 0)
    if not below.any():
        return
    residual = 0.0 if done.residual is None else done.residual
    slope = float(np.median((f.out - residual)[below] / case.values[below]))
    values = EPILOGUES["leaky_relu"].apply(case.values, slope) + residual
    yield f.finding(values[f.rows, f.columns], f"the epilogue is leaky_relu:{slope:.3g}, not {done.name}", 3.0, 2.0, 1)


@dataclass(frozen=True)
class Diagnosis:
    """`Diagnosis` is the explanation of a failure.

    Attributes
    ----------
    statements : tuple of str
        Best explanations; several if the elements do not distinguish them, none if no fault explains the result.
    ruled_out : tuple of str
        Faults that certified bounds exclude, for a kernel with only one fault.
    tried : tuple of str
        Predictions that do not explain the elements, with their parameters; others of the same kind are not excluded.
    fitting : tuple of str
        Predictions that explain the elements, but may do so by chance because the elements are few; they are neither named as
        causes nor excluded.
    remarks : tuple of str
        Sentences on options of the check that the named fault suggests.
    """

    statements: tuple[str, ...]
    ruled_out: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    fitting: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


#: Largest number of listed statements that may fit by chance.
FITTING = 3


def fitting(found: Iterable[Finding]) -> tuple[str, ...]:
    """Return the statements that fit best but may do so by chance, in words."""
    perhaps = sorted(x for x in found if x.perhaps and not x.good)
    return tuple(dict.fromkeys(x.text for x in perhaps))[:FITTING]


_NOT_FINITE = "infinities or NaN where the exact result is finite: a sum overflowed, or memory was never written"


def diagnose(f: Failure) -> Diagnosis:
    """Return the statements that explain the wrong elements and the right ones beside them, and the kinds that do not."""
    epilogue = f.case.epilogue
    if not np.isfinite(f.out[f.wrong]).any():
        return Diagnosis((_no_number(f),))
    if epilogue is None and not np.isfinite(f.out[f.wrong]).all():
        return Diagnosis((_not_finite(f),))
    suspects = FAULT_KINDS
    if f.of_results:
        suspects = (FaultKind("the epilogue", _epilogue, False), *OF_RESULTS)
    given = f
    found = list(_tried(f, suspects))
    if f.of_results and epilogue is not None and epilogue.invertible and not any(x.good for x, _ in found):
        f = f.of_sums()
        found += _tried(f, FAULT_KINDS)
    many = int(np.count_nonzero(f.wrong)) >= FEWEST
    good = [(finding, name) for finding, name in found if finding.good]
    hint = None
    with np.errstate(all="ignore"):
        if not good and many and not f.of_results:
            last = [(finding, kind.name) for kind in LAST_KINDS for finding in _with_losses(kind, f)]
            good = [(finding, name) for finding, name in last if finding.good and not _better(finding, found)]
            found += last
            # a fit, even if by chance, contradicts a statement that rests on the size of errors alone
            doubt = any(finding.perhaps for finding, _ in found)
            hint = narrow_errors(f) if not good and not doubt and epilogue is None else None
        if not good and many and hint is None and _scattered(f):
            alone = [
                (finding._replace(text=f"{finding.text}, in these elements alone"), name)
                for finding, name in _tried(f.alone(), OF_SCATTERED)
            ]
            good, found = [(finding, name) for finding, name in alone if finding.good], found + alone
    statements: tuple[str, ...] = () if hint is None else (hint,)
    none = [finding.text for finding, _ in good if finding.text in ZEROS]
    if none:
        statements = (none[0],)  # other predictions of zeros say less
    elif good:
        statements = _simplest([finding for finding, _ in good], int(np.count_nonzero(f.wrong[f.rows, f.columns])))
    named = {name for finding, name in found if finding.perhaps} | ({_NARROW_SUMS} if hint else set())
    kinds = dict.fromkeys([*(name for _, name in found), *([_NARROW_SUMS] if many and epilogue is None else [])])
    tried = tuple(name for name in kinds if name not in named)
    return Diagnosis(
        statements, contradicted(given), tried, () if statements else fitting(x for x, _ in found),
        _remarks(f, [x for x, _ in good], statements),
    )  # fmt: skip


def _scattered(f: Failure) -> bool:
    """Return whether few elements are wrong all over the result, as in a race between threads.

    Right elements then do not contradict an explanation of the wrong ones.
    """
    few = int(np.count_nonzero(f.wrong)) * SCATTERED <= f.wrong.size
    return few and not f.of_results and not f.place.structured


def _simplest(good: list[Finding], elements: int) -> tuple[str, ...]:
    """Return the statements that explain best for their number of fitted numbers.

    The score is the rest in units of the best statement's, plus a price for each fitted number.
    """
    best = max(min(finding.fit for finding in good), EXACT)
    scores = {x: elements * (max(x.fit, EXACT) / best) ** 2 + PRICE * x.free + x.tried for x in good}
    least = min(scores.values())
    near = sorted((score, x.text) for x, score in scores.items() if score <= least + TOLD_APART)
    return tuple(dict.fromkeys(text for _, text in near))


def _with_losses(kind: FaultKind, f: Failure) -> Iterator[Finding]:
    """Yield a kind's findings with the unit's loss on sums of one sign, and without it."""
    for at, each in enumerate(f.losses()):
        yield from (finding._replace(lossless=at > 0) for finding in kind.predict(each))


def _better(fitted_one: Finding, found: list[tuple[Finding, str]]) -> bool:
    """Return whether a statement with fewer fitted numbers explains the elements better."""
    return any(x.free < fitted_one.free and x.fit < fitted_one.fit for x, _ in found)


def _remarks(f: Failure, good: list[Finding], statements: tuple[str, ...]) -> tuple[str, ...]:
    """Return a sentence on sums that are more exact than one chain of the unit, if the named fault shows them so."""
    named = [x for x in good if x.text in statements]
    if not named or not min(named).lossless or f.case.promote_every is not None or f.case.order.block is not None:
        return ()
    return (
        f"apart from the fault, the sums do not lose the {abs(f.share):.2g} of themselves that one chain of this unit loses: "
        "if the kernel adds outside of the unit every so many k, give --promote-every (promote_every in Python)",
    )


def _tried(f: Failure, suspects: tuple[FaultKind, ...]) -> Iterator[tuple[Finding, str]]:
    """Yield every suspect's findings; with few wrong elements, none with a fitted number."""
    if f.rows.size == 0 or not f.wrong[f.rows, f.columns].any():
        return
    many, few = int(np.count_nonzero(f.wrong)) >= FEWEST, f.few()
    with np.errstate(all="ignore"):
        for suspect in suspects:
            if not many and suspect.chosen:
                continue
            found = list(_with_losses(suspect, few if suspect.along_k else f))
            if suspect.along_k and few is not f and any(finding.fits for finding in found):
                found = list(_with_losses(suspect, f.few(CONFIRMED)))
            yield from ((finding, suspect.name) for finding in found)
        if many and f.case.epilogue is None:
            yield from ((finding, _NARROW_SUMS) for finding in narrow_findings(f))


def _no_number(f: Failure) -> str:
    """Return a statement on wrong results that all are NaN or infinite; NaN everywhere say nothing about the cause."""
    got = f.out[f.wrong]
    if not np.isnan(got).any() and f.case.epilogue is None and np.array_equal(np.sign(got), np.sign(f.exact[f.wrong])):
        with np.errstate(all="ignore"):
            text = overflowing_sums(f)
        if text is not None:
            return text
    if np.isnan(got).all() and (text := _nan_lines(f)) is not None:
        return text
    kinds = "NaN" if np.isnan(got).all() else "an infinity" if not np.isnan(got).any() else "NaN or an infinity"
    return f"every wrong result is {kinds}, which says nothing about the cause"


def _nan_lines(f: Failure) -> str | None:
    """Return a statement on rows or columns of NaN, which a NaN of an operand causes; None if NaN lie otherwise."""
    nan = np.isnan(f.out)
    for axis, name, of in ((1, "row", "A"), (0, "column", "B")):
        lines = nan.all(axis)
        if lines.all() or not np.array_equal(nan, np.broadcast_to(np.expand_dims(lines, axis), nan.shape)):
            continue
        at = np.flatnonzero(lines)
        at = f.case.lines[at] if axis == 1 and f.case.lines is not None else at
        which, them = (f"this {name}", "it") if at.size == 1 else (f"these {name}s", "them")
        where = f"{name}{'s' * (at.size > 1)} {in_list(at)}"
        return f"all of {where} is NaN, and nothing else: a NaN in {which} of {of}, or in a scale of {them}, causes it"
    return None


def _not_finite(f: Failure) -> str:
    """Return a statement on infinities and NaN where the exact result is finite."""
    rows, columns = spread(f.wrong & np.isfinite(f.exact))
    here = replace(f, rows=rows, columns=columns)
    finite = np.isfinite(here.got)
    with np.errstate(all="ignore"):
        for prediction, text in narrow.misreadings(here):
            shown = np.isfinite(f.case.rounded(prediction))
            if _alike(shown, finite):
                both = finite & shown
                part = replace(here, rows=rows[both], columns=columns[both])
                if part.finding(prediction[both], text, 4.0).fit <= GOOD:
                    return text
        return overflowing_sums(f) or _NOT_FINITE


def _alike(predicted: np.ndarray, finite: np.ndarray) -> bool:
    """Return whether a prediction has finite results in the same places: both kinds occur, and nearly all places agree."""
    if min(np.count_nonzero(finite), np.count_nonzero(~finite)) < FEWEST:
        return False
    return bool(min(np.mean(predicted[finite]), np.mean(~predicted[~finite])) >= ALIKE)


def diagnose_errors(f: Failure) -> Diagnosis:
    """Return explanations of errors that are too large only when they are taken together."""
    found = diagnose(f)
    if found.statements:
        return found
    text = next((finding.text for finding in narrow_findings(f)), None)
    return replace(found, statements=() if text is None else (text,))
