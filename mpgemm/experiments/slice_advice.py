"""Finds how many integer slices or moduli a product needs, proved before it is computed and measured against the exact
product."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from mpgemm.bounds.watching import JudgedProduct, hold, quick_run_bound
from mpgemm.exact.conditioning import DIGIT, Conditioning
from mpgemm.exact.errors import norm_frobenius
from mpgemm.exact.product import exact_gemm
from mpgemm.experiments.costs import data_sheet
from mpgemm.experiments.methods import fp32_baseline, native_fp64
from mpgemm.experiments.standing import LOST, NOISE_BITS
from mpgemm.experiments.verdict import spelled_bits
from mpgemm.recovery.counts import RESULT_BITS, ScaledOperands, counts_of, lost_share, words_of
from mpgemm.recovery.engines import plain_engine, resolve_engine
from mpgemm.recovery.exact_sums import padding
from mpgemm.recovery.methods import RecoveryMethod, get_method
from mpgemm.recovery.run import check_operands, prepare
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Result

#: Methods whose number of words is found by default.
METHODS = ("ozaki_int8", "ozaki2_int8", "ozaki_fp8", "ozaki2_fp8")
#: Prefix of targets that are relative to the result itself.
RELATIVE = "relative"
#: Devices whose costs are shown by default.
DEVICES = ("a100", "h100", "b200", "b300", "mi300x")


@dataclass(frozen=True)
class WordCount:
    """`WordCount` holds the accuracy and cost of one method with one number of words."""

    method: str
    #: count, passes: number of slices or moduli, and number of engine products of the full size.
    count: int
    passes: int
    #: Bits of |A||B| that the words keep in every element, by the bound of :mod:`mpgemm.recovery.counts`.
    proved_bits: float
    measured_bits: float  #: -log2 of the largest error over the target's scale, with the result's rounding.
    result_bits: float  #: -log2 of the error relative to the result, in the Frobenius norm.
    lost_bits: float  #: Bits by which the largest error exceeds the target; at most 0 if it is within.
    row: int  #: Row of the largest error.
    reached: bool  #: Whether the count reaches the target.
    #: Milliseconds for a product of 10^12 operations at the data sheet's rate, by device; devices without a rate are left out.
    cost: dict[str, float]


@dataclass(frozen=True, repr=False)
class SliceAdvice(Result):
    """`SliceAdvice` says how many slices or moduli each integer method needs for a product.

    Attributes
    ----------
    target : str
        The target: "fp64", "fp32", a number of bits, "relative" or "relative:BITS".
    output : str
        Format of the results.
    wanted : int
        Number of bits of the target; 53 for "fp64", 24 for "fp32".
    base : float
        Relative error of the target. It is relative to |A||B|, or to |A B| if the target is "relative" or "relative:BITS".
    condition : Conditioning
        Condition number of the product. An error relative to |A||B| is larger by this factor relative to the result.
    native_bits : float
        Accuracy in bits of the native product in the output's format.
    shape : (m, k, n)
        Shape of the product.
    span : int
        Largest number of bits, over all elements, by which |A||B| is below the product of the largest element of the row of A
        and the largest element of the column of B (:mod:`mpgemm.recovery.counts`).
    counts : tuple of WordCount
        Accuracy and cost of every method, with every number of slices or moduli that was tried.
    measured : dict of str to (int or None)
        Number of slices or moduli that each method needs on these matrices: this number and all larger ones that were tried
        reach the target. None if the native product should be used, because no number reaches it.
    proved : dict of str to (int or None)
        Smallest number of slices or moduli whose bound reaches the target, by method; None if no number has such a bound.
    native : dict of str to float
        Milliseconds of 10^12 operations in the output's format, on each device whose data sheet has a rate for the format.
    """

    target: str
    output: str
    wanted: int
    base: float
    shape: tuple[int, int, int]
    span: int
    counts: tuple[WordCount, ...]
    measured: dict[str, int | None]
    proved: dict[str, int | None]
    native: dict[str, float]
    condition: Conditioning
    native_bits: float

    @property
    def relative(self) -> bool:
        """Return whether the target limits the error relative to the result itself instead of |A||B|."""
        return self.target.startswith(RELATIVE)

    def to_rows(self) -> list[dict]:
        """Return one row for each method and count."""
        return [
            {**{key: value for key, value in asdict(entry).items() if key != "cost"}, **self._costs(entry)}
            for entry in self.counts
        ]

    def _costs(self, entry: WordCount) -> dict:
        devices = dict.fromkeys(device for other in self.counts for device in other.cost)
        return {f"cost {device}": entry.cost.get(device) for device in devices}

    def to_dict(self) -> dict:
        """Return the content as a dict of JSON-compatible values."""
        return {**asdict(self), "verdict": self.sentences()}

    def sentences(self) -> list[str]:
        """Return sentences on the number of slices or moduli that each method needs, the error with one fewer, and costs."""
        if 0 in self.shape:
            return ["The product has no multiplications, so there is nothing to emulate."]
        if not self.counts:
            return [f"An operand holds Inf or NaN, so the native {self.output.upper()} product is taken."]
        condition = self.condition.sentence(None if self.relative else self.wanted)
        lines = [condition, *(self._sentence(name) for name in self.measured)]
        if self.relative and None in self.measured.values():
            lines.append(
                f"The native {self.output.upper()} product has {spelled_bits(self.native_bits)} of the result in norm; a "
                "target that no count reaches needs longer words, or mpgemm.mp_gemm."
            )
        return lines + list(self._cost_sentences())

    def _sentence(self, name: str) -> str:
        row, least, proved = get_method(name), self.measured[name], self.proved[name]
        if least is None:
            mine = (entry for entry in self.counts if entry.method == name)
            best = max(mine, key=lambda entry: (entry.measured_bits, entry.count))
            instead = "" if self.relative else f"; take the native {self.output.upper()} product"
            return (
                f"{name}: not safe to emulate: {words_of(row, best.count)} {_losing(best)}{instead} "
                f"(the exponents span {self.span} bit{'s' * (self.span != 1)})."
            )
        bits = next(e.result_bits for e in self.counts if (e.method, e.count) == (name, least))
        text = f"{name}: safe to emulate with {words_of(row, least)}"
        if bits < DIGIT:
            text = (
                f"{name}: {words_of(row, least)} reach{'es' * (least == 1)} the target, but not one digit of the result is "
                f"right (its error is {2.0**-bits:.1e} of it)"
            )
        text += {
            None: ", measured; no available count is proved for every element",
            least: ", proved as well",
        }.get(proved, f" on these matrices, proved for {proved}")
        fewer = next((e for e in self.counts if (e.method, e.count) == (name, least - 1)), None)
        if fewer is not None:
            text += f"; {fewer.count} {_losing(fewer)}"
        return f"{text}."

    def _cost_sentences(self) -> Iterator[str]:
        safe = [e for e in self.counts if e.count == self.measured[e.method] and e.result_bits >= DIGIT]
        for device, native in self.native.items():
            there = [entry for entry in safe if device in entry.cost]
            if there:
                best = min(there, key=lambda entry: entry.cost[device])
                cost = best.cost[device]
                relation = "less than" if cost < native else "more than"
                yield (
                    f"{device}: {best.method} with {words_of(get_method(best.method), best.count)} takes {best.passes} "
                    f"pass{'es' * (best.passes != 1)}, "
                    f"{cost:.3g} ms for 10^12 operations (splits, sums outside and memory left out), {relation} the "
                    f"{native:.3g} ms of {self.output.upper()} itself."
                )


@default_fp_state
def slice_advice(
    a,
    b,
    target: str | int = "fp64",
    methods: Sequence[str] = METHODS,
    devices: Sequence[str] = DEVICES,
    *,
    output: str | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> SliceAdvice:
    """Return the number of slices or moduli that each integer method needs for a product.

    Targets limit the error of every element:

    * N bits: ``2^-N |A||B|`` plus the result's own rounding;
    * "relative:N": ``2^-N |A B|`` plus the result's own rounding; "relative" sets N to the number of bits of the output;
    * "fp64" and "fp32": ``2^1.5 e |A||B|``. For "fp64", e is the largest error over ``|A||B|`` of NumPy's FP64 product;
      for "fp32", that of the FP32 baseline (:func:`mpgemm.experiments.methods.fp32_baseline`). If the error is below the
      unit roundoff, or above 2^-10 (after an overflow, for example), e is the unit roundoff. The factor 2^1.5 is allowed
      because the errors of two products of one input differ by as much (:data:`mpgemm.experiments.standing.NOISE_BITS`).

    A number of slices or moduli is proved if, in every element, the bound of the error of splitting the operands plus the
    result's own rounding is within the limit.

    Parameters
    ----------
    a, b : array_like, shapes (m, k) and (k, n)
        The operands.
    target : {"fp64", "fp32", "relative", "relative:N"} or int
        Wanted accuracy as above.
    methods : sequence of str
        Names of methods with integer slices or residues, with options.
    devices : sequence of str
        Devices for which costs are computed, from the rates of their data sheets.
    output : {"fp64", "fp32"}, optional
        Format of the results, by default that of the target; for a number of bits, FP64 if the number or the operands need it.
    progress : callable, optional
        Function called as ``progress(done, total, label)``.

    Raises
    ------
    ValueError, TypeError
        If the output format has fewer bits than the target, a method does not use integer slices or residues, a name is
        unknown, or the operands are not matrices whose shapes fit.

    Examples
    --------
    >>> import numpy as np
    >>> a = np.random.default_rng(0).standard_normal((16, 64))
    >>> found = slice_advice(a, a.T, 40, ["ozaki_int8"])
    >>> found.proved
    {'ozaki_int8': 7}
    """
    a, b, _ = check_operands(a, b, None)
    wanted, output = _checked(target, output, np.float64 in (a.dtype, b.dtype))
    rows = [_row(name, output, devices) for name in methods]
    operands = ScaledOperands.of(a, b)
    shape = (a.shape[0], a.shape[1], b.shape[1])
    native = _native_costs(devices, output)
    if not operands.finite or 0 in shape:
        none: dict[str, int | None] = dict.fromkeys(methods)
        unknown = Conditioning(1.0, 1.0, 1.0, 0, 0)
        return SliceAdvice(
            str(target), output, wanted, 0.0, shape, operands.span, (), none, none, native, unknown, math.nan
        )
    goal = _Goal(a, b, target, output, wanted)
    counts: list[WordCount] = []
    proved: dict[str, int | None] = {}
    for name, row in zip(methods, rows, strict=True):
        proved[name] = None
        for candidate in counts_of(row, shape[1]):
            if progress is not None:
                progress(candidate.word_count, row.most_words, name)
            share = lost_share(candidate, operands)
            counts.append(goal.measured(name, candidate, share, _costs(candidate, devices)))
            if goal.proved(share):
                proved[name] = candidate.word_count
                break
    if progress is not None:
        progress(1, 1, "")
    measured = {name: _least([e for e in counts if e.method == name]) for name in methods}
    return SliceAdvice(
        str(target), output, wanted, goal.base, shape, operands.span, tuple(counts), measured, proved, native,
        Conditioning.of(goal.values, goal.sizes), goal.result_bits(goal.native),
    )  # fmt: skip


def _checked(target: str | int, output: str | None, wide: bool) -> tuple[int, str]:
    """Return the number of bits of the target, and the format of the results."""
    if output not in (None, *RESULT_BITS):
        raise ValueError(f"output is {output!r}, expected 'fp32', 'fp64' or None")
    if target in RESULT_BITS:
        bits = RESULT_BITS[str(target)]
        output = output or str(target)
    elif str(target) == RELATIVE:
        output = output or "fp64"
        bits = RESULT_BITS[output]
    elif (number := str(target).removeprefix(f"{RELATIVE}:")).isdecimal() and int(number) > 0:
        bits = int(number)
        output = output or ("fp64" if wide or bits > RESULT_BITS["fp32"] else "fp32")
    else:
        raise ValueError(
            f"target is {target!r}, expected fp64, fp32, relative, relative:BITS or a number of bits above 0"
        )
    if bits > RESULT_BITS[output]:
        raise ValueError(
            f"the target is {bits} bits, expected at most {RESULT_BITS[output]}, the precision of {output.upper()} output; ask "
            "for fewer bits"
        )
    return bits, output


def _row(name: str, output: str, devices: Sequence[str]) -> RecoveryMethod:
    row = get_method(name)
    if not row.exact or "target" not in row.options:
        raise ValueError(
            f"method {name!r} does not use integer slices or residues, expected one of {', '.join(METHODS)}"
        )
    for device in devices:
        plain_engine(device)
    return replace(row, target=output, count=None)


def _losing(entry: WordCount) -> str:
    lost = f"{entry.lost_bits:.1f} bits" if entry.lost_bits < math.inf else "a result that is exactly 0"
    return f"lose{'s' * (entry.count == 1)} {lost} in row {entry.row}"


def _least(entries: Sequence[WordCount]) -> int | None:
    """Return the smallest count from which on all counts reach the target, None if there is none."""
    least = None
    for entry in reversed(entries):
        if not entry.reached:
            break
        least = entry.count
    return least


class _Goal:
    """`_Goal` holds the exact product of one pair of matrices and the error that is allowed in each element."""

    def __init__(self, a: np.ndarray, b: np.ndarray, target: str | int, output: str, bits: int):
        self.a, self.b = a, b
        self.exact = exact_gemm(a, b)
        self.sizes = np.asarray(self.exact.magnitudes().rounded("fp64"))
        self.values = np.asarray(self.exact.rounded("fp64"))
        self.native = native_fp64(a, b) if output == "fp64" else fp32_baseline(a, b)
        relative = str(target).startswith(RELATIVE)
        #: Scale to which errors are relative, by element.
        self.scale = np.abs(self.values) if relative else self.sizes
        self.own = 2.0 ** -RESULT_BITS[output] * np.abs(self.values)
        nearest = self._error(np.asarray(self.exact.rounded(output)))
        #: Errors by overflow and underflow of the output format, which every method has.
        self.range = np.where(nearest > self.own, nearest, 0.0)
        if target in RESULT_BITS:
            product = native_fp64(a, b) if target == "fp64" else fp32_baseline(a, b)
            least, own_error = 2.0 ** -RESULT_BITS[str(target)], self._largest(product)[0]
            self.base = least if own_error > LOST else max(own_error, least)
            self.allowed = 2.0 ** NOISE_BITS["componentwise"] * self.base * self.sizes
        else:
            self.base = 2.0**-bits
            self.allowed = self.base * self.scale + self.own

    def _error(self, product: np.ndarray) -> np.ndarray:
        return np.abs(np.asarray(self.exact.error_of(product)))

    def _largest(self, product: np.ndarray) -> tuple[float, int]:
        """Return the largest error over the target's scale, and its row."""
        error = self._error(product)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(error > 0, error / self.scale, 0.0)
        place = int(np.argmax(ratio))
        return float(ratio.ravel()[place]), place // ratio.shape[1]

    def result_bits(self, product: np.ndarray) -> float:
        """Return -log2 of the error relative to the result, in the Frobenius norm."""
        error, norm = (norm_frobenius(x) for x in (self._error(product), self.values))
        if not error:
            return math.inf
        return math.log2(norm) - math.log2(error) if norm and math.isfinite(error) else -math.inf

    def proved(self, share: np.ndarray) -> bool:
        """Return whether `share`, the bound of the remainders over |A||B|, is within the target in every element."""
        with np.errstate(divide="ignore", invalid="ignore"):
            granted = np.where(self.sizes > 0, (self.allowed - self.own) / self.sizes, 0.0)
        return bool((share <= granted).all())

    def measured(self, name: str, row: RecoveryMethod, share: np.ndarray, cost: dict[str, float]) -> WordCount:
        """Return the error of a method with one number of words; it is the same on every engine, because sums are exact."""
        largest_share = float(share.max())
        proved_bits = math.inf if largest_share == 0 else -math.log2(largest_share)
        run = prepare(self.a, self.b, None, row, "ieee")
        product = run.product()
        options = f"{'moduli' if row.modular else 'slices'}={row.word_count},target={row.target}"
        recipe = {"method": f"recovery:{name}{',' if ':' in name else ':'}{options}@ieee"}
        watched = JudgedProduct(f"{name} with {words_of(row, row.word_count)}", recipe, self.a, self.b)
        hold(watched, product, self._error(product), quick_run_bound(run))
        largest, worst = self._largest(product)
        bits = math.inf if largest == 0 else -math.log2(largest)
        lost = -math.inf if largest == 0 else math.log2(largest / self.base)
        reached = bool((self._error(product) <= self.allowed + self.range).all())
        own = self.result_bits(product)
        return WordCount(name, row.word_count, row.passes, proved_bits, bits, own, lost, worst, reached, cost)


def _costs(row: RecoveryMethod, devices: Sequence[str]) -> dict[str, float]:
    """Return the milliseconds for 10^12 operations on each device that takes the words and has a rate."""
    found = {}
    for device in devices:
        try:
            engine = resolve_engine(device, row)
        except ValueError:
            continue
        if (rate := _rate(device, engine.formats[0].name)) is not None:
            found[device] = 1000 * row.passes * padding(row, engine) / rate
    return found


def _rate(device: str, fmt: str) -> float | None:
    sheet = data_sheet(device)
    return None if sheet is None else sheet.rate(fmt)


def _native_costs(devices: Sequence[str], output: str) -> dict[str, float]:
    rates = {device: _rate(device, output) for device in devices}
    return {device: 1000 / rate for device, rate in rates.items() if rate}
