"""Tolerances for tests of GPU kernels: a certified one, a statistical one, and whether a test with them could fail at all."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

import numpy as np

from mpgemm.bounds import bounds
from mpgemm.bounds.bounded_product import BoundedProduct, Data, EngineProduct, MethodProduct, upwards
from mpgemm.bounds.operand_facts import facts_of, scaled_values
from mpgemm.bounds.published_bounds import block_fma_bounds
from mpgemm.bounds.statistical import SIDE, Statistical, corner, draws_for, orders_of_k, sample, tightest_line
from mpgemm.bounds.vacuity import Vacuity, check_line, check_tolerance
from mpgemm.inputs.matrices import generate
from mpgemm.recovery.engines import plain_engine, resolve_engine
from mpgemm.recovery.methods import RecoveryMethod, get_method
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, get_float_format
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Result

#: Multiplications up to which the certified line covers every element; of larger products it covers a corner.
WHOLE = 1 << 31


class Line(NamedTuple):
    """|computed - expected| <= atol + rtol |expected|, as numpy.allclose and torch.allclose take it."""

    rtol: float
    atol: float


class Checked(NamedTuple):
    """A given tolerance: what it would let pass, and how often a right kernel fails it."""

    line: Line
    vacuity: Vacuity
    draws: int
    failures: int

    def to_dict(self) -> dict:
        """JSON-compatible values."""
        return {
            **self.line._asdict(),
            "vacuity": self.vacuity.to_dict(),
            "draws": self.draws,
            "failures": self.failures,
        }


@dataclass(frozen=True, repr=False)
class Tolerance(Result):
    """What a test of a kernel may allow: ``|computed - exact| <= relative S + absolute``, ``S = |A||B| + |C|``.

    Attributes
    ----------
    label : str
        The engine, or the method on its engine.
    k : int
    relative, absolute : float
        Certified. Without data they hold for any operands of the formats, else for operands with the data's exponents (a
        recovery method: for the data).
    bound : numpy.ndarray or None
        The same for the data, element by element.
    derivation : str
        How it comes about.
    published : dict of str to float
        Published bounds of the relative part.
    vacuity : Vacuity or None
        What the bound lets pass on the data.
    certified : Line or None
        A line above every bound of the data, or of the drawn pairs; None where a bound is infinite.
    statistical : Statistical or None
        By sampling; None without data and distribution.
    lines : mapping of str to Vacuity
        What the certified and the statistical line let pass on the data.
    checked : Checked or None
        The tolerance that was given.
    reference : str
        "given" or "rounded": from which operands the expected result must be computed.
    notes : tuple of str
        What a reader must know.
    """

    relative: float
    absolute: float
    bound: np.ndarray | None
    derivation: str
    published: dict[str, float]
    vacuity: Vacuity | None
    label: str = ""
    k: int = 0
    certified: Line | None = None
    statistical: Statistical | None = None
    lines: Mapping[str, Vacuity] | None = None
    checked: Checked | None = None
    reference: str = "rounded"
    notes: tuple[str, ...] = ()

    def to_rows(self) -> list[dict]:
        """The certified bound, then the lines above it, above the sample, and what was given."""
        s, lines = self.statistical, {"certified": self.certified}
        lines |= {"statistical": None if s is None else Line(s.rtol, s.atol)}
        lines |= {"given": None if self.checked is None else self.checked.line}
        seen = {**(self.lines or {}), **({"given": self.checked.vacuity} if self.checked else {})}
        by_size = {"tolerance": "certified by size", "relative": self.relative, "absolute": self.absolute}
        by_size |= {"rtol": None, "atol": None, "verdict": self.vacuity.verdict if self.vacuity else None}
        return [by_size] + [
            {"tolerance": name, "relative": None if s is None or name != "statistical" else s.relative, "absolute": None,
             "rtol": line.rtol, "atol": line.atol, "verdict": seen[name].verdict if name in seen else None}
            for name, line in lines.items()
            if line is not None
        ]  # fmt: skip

    def sentences(self) -> list[str]:
        """What is tested, how the bound comes about, and what a reader must know."""
        return [f"{self.label}, k = {self.k}", *self.derivation.split("\n"), *self.notes]

    @property
    def snippet(self) -> str:
        """Python to paste into a test; d is the kernel's result, a, b (and c) its operands."""
        rounded = " as rounded for the kernel" if self.reference == "rounded" else ""
        lines = [
            "import numpy as np",
            f"# a, b: operands{rounded}, in float64; d: the kernel's result",
            "expected = a @ b",
        ]
        if math.isfinite(self.relative):
            lines += [
                "size = np.abs(a) @ np.abs(b)",
                "# certified:",
                f"assert (np.abs(d - expected) <= {self.relative:.3g} * size + {self.absolute:.3g}).all()",
            ]
        if self.certified is not None:
            lines += ["# certified on these data:", _allclose(self.certified)]
        if self.statistical is not None and math.isfinite(self.statistical.atol):
            s = self.statistical
            lines += [
                f"# {s.quantile:.4g} of all such products, confidence {s.confidence:.4g}:",
                _allclose(Line(s.rtol, s.atol)),
            ]
        return "\n".join(lines)

    def to_dict(self) -> dict:
        """JSON-compatible values."""
        return {
            "label": self.label,
            "k": self.k,
            "reference": self.reference,
            "certified": {
                "relative": self.relative,
                "absolute": self.absolute,
                "line": None if self.certified is None else self.certified._asdict(),
                "derivation": self.derivation.split("\n"),
                "published": self.published,
            },
            "statistical": None if self.statistical is None else asdict(self.statistical),
            "vacuity": {
                "certified by size": None if self.vacuity is None else self.vacuity.to_dict(),
                **{name: value.to_dict() for name, value in (self.lines or {}).items()},
            },
            "checked": None if self.checked is None else self.checked.to_dict(),
            "snippet": self.snippet,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [f"|computed - exact| <= {self.relative:.6g} (|A||B| + |C|) + {self.absolute:.3g}", self.derivation]
        lines += [f"published, {name}: {value:.6g}" for name, value in self.published.items()]
        if self.vacuity is not None:
            lines.append(str(self.vacuity))
        elif self.relative >= 1:
            lines.append("VACUOUS: at least |A||B| + |C| itself, so zeros pass")
        if self.certified is not None:
            lines.append(f"certified on the data: rtol={self.certified.rtol:.3g}, atol={self.certified.atol:.3g}")
        if self.statistical is not None:
            s = self.statistical
            lines.append(
                f"statistical: rtol={s.rtol:.3g}, atol={s.atol:.3g} ({s.quantile:.4g} of whole products, confidence "
                f"{s.confidence:.4g}, {s.draws} draws of {s.population})"
            )
        return "\n".join([*lines, *self.notes])


def _allclose(line: Line) -> str:
    return f"np.testing.assert_allclose(d, expected, rtol={line.rtol:.3g}, atol={line.atol:.3g})"


@default_fp_state
def tolerance(
    engine: Engine | str | None = None,
    k: int | None = None,
    data=None,
    *,
    method: str | RecoveryMethod | None = None,
    fmt: str | None = None,
    distribution: str | None = None,
    parameters: Mapping[str, float] | None = None,
    shape: tuple[int, int] = (SIDE, SIDE),
    seed: int = 0,
    scale_a=None,
    scale_b=None,
    reference: str = "given",
    out_format: str | None = None,
    quantile: float = 0.99,
    confidence: float = 0.95,
    check: tuple[float, float] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Tolerance:
    """The tolerance that a test of a kernel may use, with its derivation (see :mod:`mpgemm.bounds`).

    Certified means never violated by a kernel that computes as the model does, whatever the operands (`relative`, `absolute`)
    or on the data (`bound`, `certified`). The statistical one is measured on the exact model
    (:mod:`mpgemm.bounds.statistical`).

    Parameters
    ----------
    engine : Engine or str
        The modelled instruction, its "arch:name" in any spelling, or a device (its usual instruction for `fmt`). The kernel may
        chain its k steps in order only. With `method` what it runs on; the method's own engine by default.
    k : int
        Length of the dot products; that of the data by default.
    data : (a, b) or (a, b, c), optional
        The operands, shapes (m, k), (k, n), (m, n), as values. Values that the engine's formats lack are rounded to nearest.
        Without them exponents are taken to be the formats' largest.
    method : str or RecoveryMethod, optional
        A recovery method instead of the plain product; needs data or a distribution.
    fmt : str, optional
        Operand format where `engine` is a device ("fp8", "half", ...; fp16 by default).
    distribution, parameters, shape, seed
        Draw the data instead: a name of :data:`mpgemm.inputs.matrices.DISTRIBUTIONS`, its parameters, (m, n), the first seed.
    scale_a, scale_b : array_like, shapes (m, ceil(k/bs)) and (ceil(k/bs), n), optional
        Block scales that go with `data` on a block-scaled engine, as :meth:`Engine.gemm` takes them (values, or encodings
        where they are uint8). |A|, |B| and the exact product are then those of the scaled operands.
    reference : {"given", "rounded"}
        Whether the test computes its expected result from the operands as given, so that their rounding counts, or from the
        rounded ones. Without data nothing is known of a rounding: it is left out.
    out_format : str, optional
        Format to which the kernel rounds its result to nearest.
    quantile, confidence : float
        Of the statistical tolerance.
    check : (rtol, atol), optional
        A tolerance to judge.
    progress : callable, optional
        (done, total, label) of the draws.

    Returns
    -------
    Tolerance

    Raises
    ------
    ValueError
        If no bound is known for the core, k does not fit the data, scales are missing or not wanted, or names are unknown.
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
    product = _product(engine, method, fmt, reference, out_format)
    draws_for(quantile, confidence)
    if check is not None:
        check_line(*check)
    if distribution is not None:
        if data is not None:
            raise ValueError("data or a distribution, not both")
        if k is None:
            raise ValueError("a distribution needs k, the length of the dot products")
        m, n = shape
        draw = _Drawn(distribution, m, _length(k), n, seed, dict(parameters or {}))
        whole = draw(0)
    elif data is not None:
        draw, whole = None, _given(data, scale_a, scale_b)
    else:
        return _without_data(product, k, scale_a, scale_b)
    if k is not None and whole.a.shape[1] != _length(k):
        raise ValueError(f"k is {k}, the data have {whole.a.shape[1]}")
    return _with_data(product, whole, draw, quantile, confidence, check, progress)


def _length(k) -> int:
    if isinstance(k, bool) or not hasattr(k, "__index__") or np.ndim(k):
        raise TypeError(f"k is the length of the dot products, an integer, got {type(k).__name__}")
    if int(k) < 0:
        raise ValueError(f"k is {int(k)}, expected at least 0")
    return int(k)


def _product(engine, method, fmt, reference: str, out_format: str | None) -> EngineProduct | MethodProduct:
    """What is tested."""
    narrow = None if out_format is None else get_float_format(out_format)
    if method is not None:
        row = get_method(method)
        if fmt is not None:
            raise ValueError("a method has a word format of its own: leave fmt out, or give it as the method's option")
        return MethodProduct(row, resolve_engine(engine, row), narrow)
    if engine is None:
        raise ValueError("a tolerance needs an engine or a method")
    engine = plain_engine(engine, fmt) if isinstance(engine, str) else engine
    if engine.formats[3].name == (narrow.name if narrow else None):
        narrow = None
    return EngineProduct(engine, None, reference, narrow)


@dataclass(frozen=True)
class _Drawn:
    """Pairs of a distribution."""

    distribution: str
    m: int
    k: int
    n: int
    seed: int
    parameters: dict

    def __call__(self, index: int) -> Data:
        return Data(*generate(self.distribution, self.m, self.k, self.n, self.seed + index, **self.parameters))

    def small(self) -> "_Drawn":
        """The same with few rows and columns."""
        return replace(self, m=min(self.m, SIDE), n=min(self.n, SIDE))

    def __str__(self) -> str:
        return f"fresh pairs of {self.distribution}, seeds {self.seed} and up"


def _given(data, scale_a, scale_b) -> Data:
    arrays = [np.asarray(x) for x in data if x is not None]
    a, b = arrays[:2]
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"a is {a.shape} and b is {b.shape}: the columns of a must be as many as the rows of b")
    for x, name in zip(arrays, "abc", strict=False):
        if not np.isfinite(x.astype(np.float64)).all():
            raise ValueError(f"{name} holds values that are not finite: nothing can be said of such a product")
    scales = (None if x is None else np.asarray(x) for x in (scale_a, scale_b))
    return Data(a, b, arrays[2] if len(arrays) > 2 else None, *scales)


# -- the parts -----------------------------------------------------------------------------------------------------------
def _a_priori(product: EngineProduct, k: int, facts) -> tuple[float, float, list[str], dict[str, float]]:
    """(relative, absolute, derivation, published bounds) of an engine, its operands exact."""
    engine = product.engine
    step = bounds.step_error(engine, facts)
    steps = bounds.steps_of(engine, k, step.terms)
    relative = bounds.growth(step.relative, steps) * bounds.MARGIN**2
    absolute = step.absolute * steps * (1 + bounds.growth(step.relative, steps)) * bounds.MARGIN if steps else 0.0
    lines = [f"{engine.label}: {steps} steps of {step.terms} products", *(f"each step: {t}" for t in step.derivation)]
    lines.append(f"alpha = {step.relative:.4g}, beta = {step.absolute:.4g}; (1 + alpha)^{steps} - 1 = {relative:.6g}")
    published = {}
    if isinstance(engine.formats[0], Format):
        found = block_fma_bounds(max(k, 1), step.terms, 0.0, engine.formats[3].unit_roundoff)
        published = {f"block FMA, {name}": value for name, value in found.items()}
    return relative, absolute, lines, published


def _rounded_output(relative: float, absolute: float, fmt: Format | None, lines: list[str]) -> tuple[float, float]:
    if fmt is None:
        return relative, absolute
    u = fmt.unit_roundoff
    lines.append(f"the result is rounded to {fmt.name}: {u:.4g} of it more")
    return (relative + u + relative * u) * bounds.MARGIN, (absolute * (1 + u) + fmt.min_subnormal) * bounds.MARGIN


def _without_data(product: BoundedProduct, k, scale_a, scale_b) -> Tolerance:
    if scale_a is not None or scale_b is not None:
        raise ValueError("scale_a and scale_b go with data")
    if k is None:
        raise ValueError("a tolerance needs k, the length of the dot products, or data")
    if not isinstance(product, EngineProduct):
        raise ValueError(f"what the words of {product.label} lose depends on the operands: give data or a distribution")
    k = _length(k)
    relative, absolute, lines, published = _a_priori(product, k, None)
    if product.engine.scale_format is not None:
        lines.append(
            "without data beta is that of zeros below the largest scales; give data for the one of your scales"
        )
    relative, absolute = _rounded_output(relative, absolute, product.out_format, lines)
    return Tolerance(
        relative, absolute, None, "\n".join(lines), published, None, label=product.label, k=k,
        notes=("for operands that the formats hold (rounding wider ones comes on top), where no sum overflows",),
    )  # fmt: skip


def _rounding_of_operands(engine: Engine, a, b, used_a, used_b, relative: float, absolute: float, lines: list[str]):
    """(relative, absolute) with the rounding of the operands, where they are rounded."""
    if np.array_equal(a, used_a) and np.array_equal(b, used_b):
        return relative, absolute
    u, tiny, largest = [], [], []
    for fmt, x in zip(engine.formats[:2], (a, b), strict=True):
        u.append(fmt.unit_roundoff)
        tiny.append(fmt.min_subnormal)
        largest.append(float(np.max(np.abs(x), initial=0.0)))
    both = u[0] + u[1] + u[0] * u[1]
    lines.append(
        f"operands are rounded to {engine.formats[0].name}: (1 + u)^2 - 1 = {both:.4g} of |A||B| more, and what is below "
        "the format's range"
    )
    k = a.shape[1]
    absolute += k * (1 + relative) * (tiny[0] * largest[1] + tiny[1] * largest[0] + tiny[0] * tiny[1])
    return (relative + both + relative * both) * bounds.MARGIN, absolute * bounds.MARGIN


def _size_form(product: BoundedProduct, data: Data, bound, sizes):
    """(relative, absolute, derivation, published) of the form relative S + absolute."""
    if not isinstance(product, EngineProduct):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(bound == 0, 0.0, bound / sizes)
        relative = float(np.max(ratio, initial=0.0))
        return relative, 0.0, [f"{product.label}: largest bound over |A||B| + |C| on the data"], {}
    engine, k = product.engine, data.a.shape[1]
    used = product.rounded(data)
    *_, scales_a, scales_b = scaled_values(engine, *used, data.scale_a, data.scale_b)
    relative, absolute, lines, published = _a_priori(product, k, facts_of(engine, *used, scales_a, scales_b))
    if product.reference == "given" and engine.scale_format is None:
        given = (data.a.astype(np.float64), data.b.astype(np.float64))
        relative, absolute = _rounding_of_operands(engine, *given, *used, relative, absolute, lines)
    relative, absolute = _rounded_output(relative, absolute, product.out_format, lines)
    return relative, absolute, lines, published


def _with_data(product, whole: Data, draw: _Drawn | None, quantile, confidence, check, progress) -> Tolerance:
    """Everything that data tell."""
    m, k = whole.a.shape
    n = whole.b.shape[1]
    if 0 in (m, n):
        raise ValueError(
            f"a is {whole.a.shape} and b is {whole.b.shape}: a test of an empty product has nothing to allow"
        )
    small = corner(whole)
    complete = m * k * n <= WHOLE
    measured = product.measure(whole if complete else small)
    relative, absolute, lines, published = _size_form(product, whole, measured.bound, measured.sizes)
    line = tightest_line(measured)
    if line is None:
        relative, absolute = math.inf, math.inf
    count = draws_for(quantile, confidence)
    block = getattr(getattr(product, "engine", None), "block_size", None) or 1
    draws = orders_of_k(small, block, count) if draw is None else (draw.small()(i) for i in range(count))
    tried = [line or Line(0.0, 1.0)] + ([] if check is None else [Line(*check)])
    found = sample(product, draws, count, tried, progress)
    expected = product.expected(small)
    notes = _notes(product, whole, small, complete, line, draw)
    certified, statistical, vacuities = None, None, {}
    if line is not None:
        stretch = max(1.0, float(found.bounds.max())) if draw is not None else 1.0
        certified = Line(upwards(line[0] * stretch), upwards(line[1] * stretch))
        vacuities["certified"] = check_tolerance(*expected, **certified._asdict())
    reached = float(found.lines[:, 0].max())
    shape = (small.a.shape[0], k, small.b.shape[1])
    population = "random orders of k on these data" if draw is None else str(draw)
    statistical = Statistical(
        quantile, confidence, count, population, shape, upwards(float(found.relative.max())),
        upwards(tried[0][0] * reached), upwards(tried[0][1] * reached), float(found.of_bound.max()),
    )  # fmt: skip
    if math.isfinite(statistical.atol):
        vacuities["statistical"] = check_tolerance(*expected, rtol=statistical.rtol, atol=statistical.atol)
    vacuity = check_tolerance(*expected, bound=product.measure(small).bound)
    tolerance = Tolerance(
        upwards(relative), upwards(absolute), measured.bound if complete else None, "\n".join(lines), published, vacuity,
        label=product.label, k=k, certified=certified, statistical=statistical, lines=vacuities, notes=notes,
        reference=getattr(product, "reference", "given"),
    )  # fmt: skip
    if check is None:
        return tolerance
    failures = int(np.count_nonzero(found.lines[:, 1] > 1))
    checked = Checked(Line(*check), check_tolerance(*expected, rtol=check[0], atol=check[1]), count, failures)
    return replace(tolerance, checked=checked)


def _notes(product, whole: Data, small: Data, complete: bool, line, draw) -> tuple[str, ...]:
    notes = []
    if line is None:
        notes.append("nothing is certified: an operand or a sum may overflow")
    if not complete:
        rows, columns = small.a.shape[0], small.b.shape[1]
        notes.append(f"the certified line covers {rows} x {columns} elements, evenly spread; by size it covers all")
    if draw is not None:
        notes.append(
            f"the certified line covers the pairs drawn from {draw.distribution}; by size it covers all operands whose "
            "largest exponents are no larger"
        )
    if isinstance(product, EngineProduct) and product.reference == "given":
        pairs = zip((small.a, small.b), product.rounded(small), strict=True)
        changed = sum(int(np.count_nonzero(given.astype(np.float64) != used)) for given, used in pairs)
        if changed:
            share = changed / max(1, small.a.size + small.b.size)
            notes.append(
                f"{share:.0%} of the operands are rounded to {product.engine.formats[0].name}, which counts here; where the "
                'expected result is computed from the rounded operands, take the reference "rounded"'
            )
    return tuple(notes)
