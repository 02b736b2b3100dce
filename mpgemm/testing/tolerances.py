"""This module computes tolerances for tests of GPU kernels, certified and statistical, and whether such tests can fail."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from mpgemm.bounds.bounded_product import Bounded, BoundedProduct, Data, EngineProduct, MethodProduct, upwards
from mpgemm.bounds.kernel_order import kernel_order
from mpgemm.bounds.populations import SIDE, Drawn, Orders, Population, corner, evenly_spread, part_of
from mpgemm.bounds.tails import exceedance
from mpgemm.inputs.sizes import check_shapes
from mpgemm.recovery.engines import plain_engine, resolve_engine
from mpgemm.recovery.methods import RecoveryMethod, get_method
from mpgemm.testing.case import KernelCase
from mpgemm.testing.faults import SIDE as FAULT_SIDE
from mpgemm.testing.faults import Limit, blocks_for, case_of, faults_seen
from mpgemm.testing.sampled import FEWEST, Sample, check_share, estimate, plan, sample, tightest_line
from mpgemm.testing.size_tolerance import a_priori, rounded_output, size_form
from mpgemm.testing.tolerance_result import Checked, Line, Tolerance, Vacuity, check_line, check_tolerance, on_the_whole
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.scaling import read_scales
from tensorcore_models.formats import get_float_format
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.machine.threads import one_thread
from tensorcore_models.orders.order import KOrder
from tensorcore_models.results import Interrupted

#: Number of multiplications up to which every element of a given product is examined; of larger ones, some rows and columns.
WHOLE = 1 << 32
#: Rows and columns of a product if only k is given.
SHAPE = (256, 256)
#: Rows and columns on which a dropped block and a dropped k are tried one after the other.
SMALL = 32

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Draws:
    """`Draws` describes the random operands of a tolerance.

    Attributes
    ----------
    distribution : str
        Name in :data:`mpgemm.inputs.matrices.DISTRIBUTIONS`.
    shape : (m, n)
        Sizes of the products that the tolerance is for.
    seed : int
        Seed of the pair of matrices for which a bound is certified.
    parameters : mapping of str to float
        Parameters of the distribution.
    """

    distribution: str
    shape: tuple[int, int] = SHAPE
    seed: int = 0
    parameters: Mapping[str, float] = field(default_factory=dict)


@default_fp_state
def tolerance(
    kernel: BoundedProduct | KernelCase | Engine | str,
    k: int | None = None,
    data=None,
    *,
    scale_a=None,
    scale_b=None,
    draws: Draws | str | None = None,
    quantile: float = 0.99,
    confidence: float = 0.95,
    check: tuple[float, float] | None = None,
    progress: Progress | None = None,
    first: Callable[[Tolerance], None] | None = None,
) -> Tolerance:
    """Return the tolerance that a test of a kernel may use, with its derivation.

    A kernel that computes as the model does never violates a certified tolerance (:mod:`mpgemm.bounds`). The fields `relative`
    and `absolute` of the result hold for any operands with the exponents of the data; without data they hold for any operands
    of the formats. The fields `bound` and `certified` hold for the data alone. The field `statistical` is measured on samples
    of the model's errors (:mod:`mpgemm.testing.sampled`).

    Parameters
    ----------
    kernel : BoundedProduct, KernelCase, Engine or str
        Tested kernel. An engine, "arch:name" or a device (its instruction for FP16) stands for one chain over k;
        :func:`kernel_of` describes other kernels. A case of :func:`mpgemm.testing.gemm_tolerance` contains its data.
    k : int
        Length of the dot products; by default that of the data.
    data : (a, b) or (a, b, c), optional
        Values of the operands, shapes (m, k), (k, n), (m, n). Values that the engine's formats cannot represent are rounded to
        nearest. Without data, the operands are assumed to have the largest exponents of their formats.
    scale_a, scale_b : array_like, optional
        Scales that go with `data`, read by shape and type (:func:`tensorcore_models.read_scales`). |A|, |B| and the exact
        product are then those of the scaled operands.
    draws : Draws or str, optional
        Distribution from which operands are drawn in place of `data`; a :class:`mpgemm.testing.Draws` also states sizes, seed
        and parameters.
    quantile : float
        Fraction of right products that pass the statistical tolerance in every element.
    confidence : float
        Confidence that this fraction passes.
    check : (rtol, atol), optional
        Tolerance of your own test, to find the faults that it misses and the right products that it rejects.
    progress : callable, optional
        Function that is called with (done, total, label) of the draws.
    first : callable, optional
        Function that is called with the certified tolerance, before anything is drawn.

    Raises
    ------
    Interrupted
        If the user presses Ctrl-C; the error has the results so far.
    ValueError
        If no bound is known for the engine, k does not fit the data, scales are missing, scales do not fit the engine, or a
        name is unknown.
    TypeError
        If k is not an integer.

    Examples
    --------
    >>> import numpy as np, tensorcore_models as tcm
    >>> x = np.random.default_rng(0).standard_normal((8, 128))
    >>> a, b = tcm.quantize_blocks(x, "mxfp8_e4m3", axis=1), tcm.quantize_blocks(x.T, "mxfp8_e4m3", axis=0)
    >>> engine = tcm.get_instruction("rtx_blackwell:mma.m16n8k32.block32.f32.e4m3.e4m3.f32.ue8m0")
    >>> found = tolerance(engine, 128, (a.elements, b.elements), scale_a=a.scales, scale_b=b.scales)
    >>> d = engine.gemm(a.elements, b.elements, scale_a=a.scales, scale_b=b.scales)
    >>> bool((abs(d - a.values() @ b.values()) <= found.bound).all()), found.vacuity.vacuous
    (True, False)
    """
    check_share(quantile, confidence)
    if check is not None:
        check_line(*check)
    product: BoundedProduct
    population: Population | None
    if isinstance(kernel, KernelCase):
        if data is not None or draws is not None:
            raise ValueError(
                "got a KernelCase together with data or draws, but a case contains its data: leave data and draws out"
            )
        if kernel.epilogue is not None:
            raise ValueError(
                f"got a case with the epilogue {kernel.epilogue.name}, but rtol and atol are for sums: leave the epilogue out"
            )
        product, population = kernel.product, _orders_of(kernel.product, kernel.data)
    else:
        product = kernel if isinstance(kernel, BoundedProduct) else kernel_of(kernel)
        draws = Draws(draws) if isinstance(draws, str) else draws
        population = _population(product, k, data, draws, scale_a, scale_b)
    if population is None:
        return _without_data(product, k, scale_a, scale_b)
    m, length, n = population.shape
    if k is not None and length != _length(k):
        raise ValueError(f"k is {k}, but the data have k = {length}: leave k out")
    if 0 in (m, n):
        raise ValueError(f"the product is {m} x {n}, but an empty product has no error: give at least one element")
    question = _Question(product, population, quantile, confidence, check)
    known = _certified(question)
    if first is not None:
        first(known.tolerance)
    return _by_sampling(question, known, progress)


def _population(product, k, data, draws: Draws | None, scale_a, scale_b) -> Population | None:
    """Return the source of products: a distribution, or the data in other orders; None without both."""
    if draws is not None:
        if data is not None:
            raise ValueError("got data and a distribution, expected one of them: leave one out")
        if k is None:
            raise ValueError("got a distribution without k: give k, the length of the dot products")
        sizes = (draws.shape[0], _length(k), draws.shape[1])
        return Drawn(shape=sizes, distribution=draws.distribution, seed=draws.seed, parameters=dict(draws.parameters))
    return None if data is None else _orders_of(product, _given(data, scale_a, scale_b, product.engine))


def _orders_of(product: BoundedProduct, data: Data) -> Orders:
    """Return the data with k in any order."""
    together = (data.scaling.block if data.scaling is not None else product.engine.block_size) or 1
    return Orders(shape=(*data.a.shape, data.b.shape[1]), data=data, together=together)


def _length(k) -> int:
    if isinstance(k, bool) or not hasattr(k, "__index__") or np.ndim(k):
        raise TypeError(f"k must be an integer, the length of the dot products, got {type(k).__name__}")
    if int(k) < 0:
        raise ValueError(f"k must be at least 0, got {int(k)}")
    return int(k)


def kernel_of(
    engine: Engine | str | None = None,
    *,
    method: str | RecoveryMethod | None = None,
    fmt: str | None = None,
    promote_every: int | tuple[int, int] | None = None,
    k_order: KOrder = "sequential",
    splits: int = 1,
    reference: str = "given",
    out_format: str | None = None,
) -> BoundedProduct:
    """Return the description of a kernel, from which :func:`mpgemm.tolerance` computes its tolerance.

    Parameters
    ----------
    engine : Engine or str, optional
        Modelled instruction, its name "arch:name", or a device. A device stands for its usual instruction for `fmt`. If
        `method` is given, this is the engine on which the method runs; the default is the method's default engine.
    method : str or RecoveryMethod, optional
        Recovery method that the kernel runs. Its errors depend on the operands, so :func:`mpgemm.tolerance` then needs data or
        draws.
    fmt : str, optional
        Operand format if `engine` is a device ("fp8", "half", ...; fp16 by default).
    promote_every : int or (least, most), optional
        Number of products after which the kernel adds its chain to an FP32 sum outside of the unit and starts a new chain.
        (least, most) allows any number from least to most.
    k_order : str, Order or sequence
        Order of k, as for :func:`mpgemm.testing.gemm_tolerance`; by default in order.
    splits : int
        Largest number of chains into which the kernel divides k, as for :func:`mpgemm.testing.gemm_tolerance`.
    reference : {"given", "rounded"}
        Operands from which the test computes its expected result. "given": the operands before the kernel rounds them, so
        that their rounding is a part of the tolerance. Without data this part is unknown and left out. "rounded": the
        operands after this rounding.
    out_format : str, optional
        Format to which the kernel rounds its result to nearest.

    Raises
    ------
    ValueError, TypeError
        If there is neither engine nor method, names are unknown, or arguments contradict each other.
    """
    narrow = None if out_format is None else get_float_format(out_format)
    if method is not None:
        row = method if isinstance(method, RecoveryMethod) else get_method(method)
        if promote_every is not None or k_order != "sequential" or splits != 1:
            raise ValueError(
                f"got promote_every {promote_every}, k_order {k_order!r} and splits {splits} with method {row.name}, which "
                "fixes the order of its additions: leave promote_every, k_order and splits out"
            )
        if fmt is not None:
            raise ValueError(
                f"got fmt {fmt!r} with method {row.name}, which has its own word format: leave fmt out, or give the format "
                "as an option of the method"
            )
        return MethodProduct(row, resolve_engine(engine, row), narrow)
    if engine is None:
        raise ValueError("got neither an engine nor a method: give one of them")
    engine = plain_engine(engine, fmt) if isinstance(engine, str) else engine
    if engine.formats[3].name == (narrow.name if narrow else None):
        narrow = None
    kernel_order(engine, engine.k, splits, k_order if isinstance(k_order, str) else "sequential", promote_every, None)
    return EngineProduct(engine, promote_every, reference, narrow, k_order, splits)


def _given(data, scale_a, scale_b, engine: Engine) -> Data:
    arrays = [np.asarray(x) for x in data if x is not None]
    a, b = arrays[:2]
    check_shapes(a, b)
    for x, name in zip(arrays, "abc", strict=False):
        if not np.isfinite(x.astype(np.float64)).all():
            raise ValueError(
                f"{name} holds infinities or NaN, expected finite values, because no error bound exists for others: give "
                f"finite {name}"
            )
    scaling = read_scales(scale_a, scale_b, a.shape[0], a.shape[1], b.shape[1], engine)
    return Data(a, b, arrays[2] if len(arrays) > 2 else None, scaling)


# -- parts of a tolerance ------------------------------------------------------------------------------------------------
def _without_data(product: BoundedProduct, k, scale_a, scale_b) -> Tolerance:
    if scale_a is not None or scale_b is not None:
        raise ValueError("got scale_a or scale_b without data: give data, or leave the scales out")
    if k is None:
        raise ValueError("got neither k nor data: give k, the length of the dot products, or data")
    if not isinstance(product, EngineProduct):
        raise ValueError(
            f"got neither data nor a distribution for {product.label}, whose errors depend on the operands: give one of them"
        )
    k = _length(k)
    relative, absolute, lines, published = a_priori(product, k, None)
    if product.engine.scale_format is not None:
        lines.append("without data beta assumes zeros below the largest scales; give data for the beta of your scales")
    relative, absolute = rounded_output(relative, absolute, product.out_format, lines)
    return Tolerance(
        relative, absolute, None, "\n".join(lines), published, None, label=product.label, k=k,
        notes=("for operands that the formats hold (rounding wider ones adds to it), if no sum overflows",),
        reference="rounded",
    )  # fmt: skip


class _Question(NamedTuple):
    """`_Question` holds the data and options for which a tolerance is computed."""

    product: BoundedProduct
    population: Population
    quantile: float
    confidence: float
    check: tuple[float, float] | None


class _Known(NamedTuple):
    """`_Known` holds the certified tolerance; by size not rounded up, for results before an output's rounding."""

    tolerance: Tolerance
    shown: Data
    complete: bool
    inner: tuple[float, float]
    looked: "_Looked"


def _certified(question: _Question) -> _Known:
    """Derive the certified tolerance from the specification."""
    product, population = question.product, question.population
    m, k, n = population.shape
    complete = m * k * n <= WHOLE
    shown = population.whole() if complete else population.corner()
    found = product.bounded(shown)
    relative, absolute, lines, published, inner = size_form(product, shown, found)
    line = tightest_line(found)
    vacuities, certified, looked = {}, None, _Looked(product, shown, found)
    if line is not None:
        certified = Line(upwards(line[0]), upwards(line[1]))
        vacuities["certified"] = looked.at(certified)
    vacuity = looked.at(found.bound)
    share = _rounded_share(product, shown)
    tolerance = Tolerance(
        None if line is None else upwards(relative), None if line is None else upwards(absolute),
        found.bound if complete else None, "\n".join(lines), published, vacuity,
        label=product.label, k=k, certified=certified, lines=vacuities,
        reference=getattr(product, "reference", "given"), rounded_operands=share,
        notes=_notes(product, population, shown, complete, line, share),
    )  # fmt: skip
    return _Known(tolerance, shown, complete, inner, looked)


@dataclass(frozen=True)
class _Looked:
    """`_Looked` is a product in which zeros, lost blocks and lost products are tried."""

    product: BoundedProduct
    data: Data
    found: Bounded

    def at(self, allowed: Line | np.ndarray) -> Vacuity:
        """Return the faults that a line, or a bound of each element, lets pass."""
        if isinstance(allowed, Line):
            allowed = allowed.atol + allowed.rtol * self.found.least
        a, b, _ = self.product.expected(self.data)
        rows, columns = evenly_spread(self.data, SMALL)
        small = self.product.expected(part_of(self.data, rows, columns))
        part = check_tolerance(*small, bound=allowed[np.ix_(rows, columns)])
        return on_the_whole(part, a, b, self.found.least, allowed)


def _by_sampling(question: _Question, known: _Known, progress: Progress | None) -> Tolerance:
    """Derive the tolerance from draws."""
    product, population, *_, check = question
    side, count = plan(population.shape, SIDE)
    found, whole = Sample(), Sample()
    try:
        if not population.fresh and known.complete:
            whole.add(product.errors(known.shown))
        with one_thread():
            sample(product, replace(population, side=side).blocks(count), count, found, progress)
    except KeyboardInterrupt:
        enough = len(found.error) >= FEWEST
        raise Interrupted(_with_lines(question, known, found, whole) if enough else known.tolerance) from None
    tolerance = _with_lines(question, known, found, whole)
    m, k, n = population.shape
    faulty = replace(population, side=FAULT_SIDE)
    try:
        with one_thread():
            cases = [case_of(product, data) for data in faulty.blocks(blocks_for(faulty.block[0], k, faulty.block[1]))]
        limits = {}
        if tolerance.relative is not None and tolerance.absolute is not None:
            limits["certified by size"] = Limit(atol=tolerance.absolute, relative=tolerance.relative)
        lines = {"certified": tolerance.certified, "statistical": tolerance.statistical}
        lines |= {"given": None if check is None else Line(*check)}
        limits |= {name: Limit(line.rtol, line.atol) for name, line in lines.items() if line is not None}
        with one_thread(), np.errstate(over="ignore", invalid="ignore"):
            return replace(tolerance, faults=faults_seen(cases, limits, m * n))
    except KeyboardInterrupt:
        raise Interrupted(tolerance) from None


def _with_lines(question: _Question, known: _Known, found: Sample, whole: Sample) -> Tolerance:
    """Return the statistical bound, and how often right products fail the given one."""
    product, population, quantile, confidence, check = question
    statistical = estimate(found, whole, population, quantile, confidence, known.inner, product.out_format)
    vacuities, notes = dict(known.tolerance.lines or {}), list(known.tolerance.notes)
    if statistical is not None:
        vacuities["statistical"] = known.looked.at(Line(statistical.rtol, statistical.atol))
    else:
        notes.append("no statistical tolerance, because results overflow in the drawn products")
    tolerance = replace(known.tolerance, statistical=statistical, lines=vacuities, notes=tuple(notes))
    if check is None:
        return tolerance
    ratios = found.rounded_over(Line(*check), product.out_format)
    m, _, n = population.shape
    failing = 1 - (1 - exceedance(np.concatenate(ratios), 1.0)) ** (m * n)
    if any(bool((x > 1).any()) for x in whole.rounded_over(Line(*check), product.out_format)):
        failing = 1.0
    failures = sum(bool((x > 1).any()) for x in ratios)
    vacuity = known.looked.at(Line(*check))
    return replace(tolerance, checked=Checked(Line(*check), vacuity, len(ratios), failures, failing))


def _rounded_share(product: BoundedProduct, shown: Data) -> float:
    """Return the fraction of the operands whose rounding to the engine's formats counts as an error."""
    if not isinstance(product, EngineProduct) or product.reference != "given":
        return 0.0
    small = corner(shown, SIDE)
    pairs = zip((small.a, small.b), product.rounded(small), strict=True)
    changed = sum(int(np.count_nonzero(given.astype(np.float64) != used)) for given, used in pairs)
    return changed / max(1, small.a.size + small.b.size)


def _notes(product, population: Population, shown: Data, complete: bool, line, share: float) -> tuple[str, ...]:
    notes = []
    if line is None:
        notes.append("nothing is certified, because an operand or a sum may overflow")
    if not complete:
        rows, columns = shown.a.shape[0], shown.b.shape[1]
        notes.append(
            f"the certified tolerance covers {rows} x {columns} elements, evenly spread; the one by size covers all"
        )
    if isinstance(population, Drawn):
        notes.append(
            f"the certified tolerance covers the pair of seed {population.seed}; the one by size covers all operands whose "
            "largest exponents are no larger"
        )
    if share:
        notes.append(
            f"{share:.0%} of the operands are rounded to {product.engine.formats[0].name}, which counts here; if the "
            'test computes the expected result from the rounded operands, take the reference "rounded"'
        )
    return tuple(notes)
