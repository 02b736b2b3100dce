"""What kind of bug would make a kernel's result look like this: each suspicion is tried on the elements that fail.

A suspicion is a statement with a prediction. The prediction must be within the tolerance for every failing element that is
looked at, and as near as a right kernel's own errors are: a certified bound is wide, so wrong predictions can lie inside of
it. Narrower sums and results are in :mod:`mpgemm.testing.diagnosis.narrow`. Only where nothing fits so well, what lies
within the tolerance is said.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from mpgemm.testing.diagnosis.failure import SAMPLES, Failure, Finding
from mpgemm.testing.diagnosis.narrow import narrow_findings, narrow_sums, overflowing_sums
from mpgemm.testing.diagnosis.scales import block_scales, given_scales, mistaken_formats, own_scales
from mpgemm.testing.diagnosis.terms import lost_terms, scattered, stale_blocks
from tensorcore_models.formats import Format, get_float_format
from tensorcore_models.formats.rounding import round_to

#: Failing elements below which a prediction with a free parameter fits by chance.
FEWEST = 4
#: A prediction is right up to this many times a right kernel's own errors (root mean square; other orders of k double them).
GOOD = 5.0
#: Predictions are reported up to this many times as far away as the nearest.
NEAR = 1.5
#: The same where there are many elements: statements that fit worse than this are told apart from the nearest.
TOLD_APART = 1.03
#: Tiles that kernels have.
TILES = (8, 16, 32, 64, 128, 256)


def suspicions(failure: Failure) -> list[str]:
    """Statements that explain the failing elements, those that leave least free first."""
    if not failure.got.any():
        return ["0 everywhere: elements that the kernel never wrote, or a tile it skipped"]
    failure = failure.everywhere()
    many = failure.rows.size >= FEWEST
    tests = (*_WITHOUT_PARAMETERS, *_WITH_PARAMETERS) if many else _WITHOUT_PARAMETERS
    if not np.isfinite(failure.got).all():
        found = [x for x in mistaken_formats(failure) if x.fit <= GOOD]
        return [min(found).text if found else overflowing_sums(failure) or _NOT_FINITE]
    found = [finding for test in tests for finding in test(failure) if finding.units <= 1]
    if many:
        found += narrow_findings(failure)
    good = sorted(finding for finding in found if finding.fit <= GOOD)
    if not good and many:
        good = list(scattered(failure, GOOD))
    if good:
        near = NEAR if failure.rows.size < SAMPLES else TOLD_APART
        good = [finding for finding in good if finding.fit <= near * max(good[0].fit, 0.1)]
        free = min(finding.free for finding in good)
        return list(dict.fromkeys(finding.text for finding in good if finding.free == free))
    hint = narrow_sums(failure) if many else None
    if hint is not None:
        return [hint]
    rest = sorted((finding.units, finding.text) for finding in found)
    return list(dict.fromkeys(text for units, text in rest if units <= NEAR * max(rest[0][0], 1e-3)))


def suspicions_of_all(failure: Failure) -> list[str]:
    """What explains errors that are too large only when they are all taken together: narrower sums."""
    text = next((finding.text for finding in narrow_findings(failure)), None) or narrow_sums(failure)
    return [] if text is None else [text]


_NOT_FINITE = "infinities or NaN where the exact result is finite: overflow of a sum, or memory that was never written"


def _addend(f: Failure) -> Iterator[Finding]:
    if f.tolerance.c is None:
        return
    for times, text in ((-1, "left out"), (1, "added twice"), (-2, "subtracted")):
        yield f.finding(f.true + times * f.added, f"the addend: C is {text}")


def _again(f: Failure) -> Iterator[Finding]:
    """The result of a run before is added: the accumulator starts from what C holds."""
    text = "a stale C: everything is there twice, as if added to the result of a run before (or a scale of 2)"
    yield f.finding(2 * f.true, text, 3.0)


def _scale(f: Failure) -> Iterator[Finding]:
    best = int(np.argmax(np.abs(f.true)))
    if f.true[best] == 0 or f.got[best] == 0:
        return
    ratio = f.got[best] / f.true[best]
    exponent = round(math.log2(abs(ratio)))
    power = ""
    if abs(math.log2(abs(ratio)) - exponent) < 1e-3:
        ratio, power = math.copysign(2.0**exponent, ratio), f" (2^{exponent})"
    text = f"a wrong scale: every result is {ratio:.6g}{power} times the exact one"
    found = f.finding(ratio * f.true, text, 1 + abs(ratio))._replace(free=1)
    if found.fit <= GOOD:  # within a wide bound nearly everything is a scale
        yield found


def _moved(f: Failure) -> Iterator[Finding]:
    """Elements that belong elsewhere: transposed tiles, exchanged tiles. The smallest tile that explains them."""
    m, n = f.exact.shape
    whole = max(m, n)
    found: list[Finding] = []
    for tile in (*(t for t in TILES if t < whole), whole):
        top, left = f.rows // tile * tile, f.columns // tile * tile
        places = {
            f"blocks of {tile} x {tile} are transposed": (top + f.columns - left, left + f.rows - top),
            f"neighbouring blocks of {tile} rows are exchanged": (f.rows ^ tile, f.columns),
            f"neighbouring blocks of {tile} columns are exchanged": (f.rows, f.columns ^ tile),
        }
        for text, (i, j) in places.items():
            if (i < m).all() and (j < n).all():
                slack = np.maximum(f.bound[i, j] / f.allowed, 1.0)
                found.append(f.finding(f.exact[i, j], text if tile < whole else "the result is transposed", slack))
    yield from sorted(found)[:1]


def _stale(f: Failure) -> Iterator[Finding]:
    """A tile that starts from the sums of another one: the one before it, or itself."""
    m, n = f.exact.shape
    found = []
    for tile in TILES:
        for text, (i, j) in {
            f"{tile} rows above": (f.rows - tile, f.columns),
            f"{tile} rows below": (f.rows + tile, f.columns),
            f"{tile} columns before": (f.rows, f.columns - tile),
            f"{tile} columns behind": (f.rows, f.columns + tile),
        }.items():
            if (i >= 0).all() and (j >= 0).all() and (i < m).all() and (j < n).all():
                text = f"a stale accumulator: the sums of the tile {text} are added"
                found.append(f.finding(f.true + f.exact[i, j], text, 2.0))
    yield from sorted(found)[:1]


def _operand_transposed(f: Failure) -> Iterator[Finding]:
    a, b = f.tolerance.a, f.tolerance.b
    if b.shape[0] == b.shape[1]:
        yield f.finding(np.einsum("ik,ik->i", a[f.rows], b[f.columns]) + f.added, "B is read transposed")
    if a.shape[0] == a.shape[1]:
        yield f.finding(np.einsum("ki,ki->i", a[:, f.rows], b[:, f.columns]) + f.added, "A is read transposed")


def _operands_rounded(f: Failure) -> Iterator[Finding]:
    """The product of operands in a narrower format."""
    fmt = f.tolerance.engine.formats[0]
    a, b = f.tolerance.given
    scaling = f.tolerance.scaling if f.tolerance.engine.scale_format is None else None  # there they are multiplied in
    factors = (1.0, 1.0) if scaling is None else (scaling.spread_a()[f.rows], scaling.spread_b()[:, f.columns].T)
    for name in ("tf32", "bf16", "fp16", "e4m3fn", "e5m2"):
        narrow = get_float_format(name)
        if not isinstance(fmt, Format) or narrow.fraction_bits >= fmt.fraction_bits:
            continue
        for rounding, how in (("rne", "rounded"), ("rz", "cut")):
            rounded = [round_to(x, narrow, rounding, saturate=True) for x in (a[f.rows], b[:, f.columns].T)]
            rounded = [x * factor for x, factor in zip(rounded, factors, strict=True)]
            prediction = np.einsum("ik,ik->i", *rounded) + f.added
            yield f.finding(prediction, f"the operands were {how} to {name} first", 1 + 2.0**-6)


_Test = Callable[[Failure], Iterator[Finding]]
_WITHOUT_PARAMETERS: tuple[_Test, ...] = (_addend, _again, _operand_transposed, given_scales)
_WITH_PARAMETERS: tuple[_Test, ...] = (
    _moved, _stale, _scale, own_scales, block_scales, lost_terms, stale_blocks, _operands_rounded, mistaken_formats,
)  # fmt: skip
