"""Measures the errors of a computed matrix product from exact differences.

Notation: ``C`` is the exact value of A B (+ C0), ``C^`` the computed one, ``dC = C^ - C`` the exact difference (each
element rounded once to binary64, so it is 0 if and only if the element is exact), ``|X|`` the matrix of absolute
values. ``||X||_F`` is the Frobenius norm, ``||X||_inf`` the largest row sum of ``|X|``. Rounding errors scale with
``S = |A||B| (+ |C0|)``.

Elements that are not finite follow two rules. An element whose exact value is infinite or NaN, because an input is, counts as
right if and only if the computed element is the same infinity, or any NaN for NaN; norms then leave it out, as they leave out
inputs that are not finite. If such an element is not right, or if the exact value is finite and the computed one is not, the
difference and every metric over it are infinite. No metric is ever NaN.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any, Literal

import numpy as np

import tensorcore_models as tcm
from mpgemm.exact.conditioning import Conditioning
from mpgemm.exact.product import ExactResult, exact_gemm
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Result

REFERENCES = ("exact", "mpmath")

#: Metrics of an :class:`ErrorReport` that are relative errors, so that -log2 of them is a number of bits, with their names in
#: figures.
RELATIVE_METRICS = {
    "relative_frobenius": "||dC||_F / ||C||_F (eq. 13)",
    "relative_inf": "||dC||_inf / (||A||_inf ||B||_inf)",
    "normwise": "||dC||_F / || |A||B| ||_F",
    "componentwise": "max |dC| / (|A||B|)",
    "rowwise": "max |dC_ij| / (||a_i||_2 ||b_j||_2)",
}
#: Metrics of an :class:`ErrorReport` that tables and means over seeds show.
METRICS = (*RELATIVE_METRICS, "max_ulp", "mean_ulp", "bits_equal")
#: Grades of the BLAS grading tests, best first, with the relative error that each grade limits to (k + 1) u, where u is the
#: unit roundoff of the results. Grade A limits the error of every element over |A||B|, which the conventional product
#: reaches; B limits it over the norms of the element's row and column; C limits the error of the whole product over the norms
#: of A and B, which fast methods such as Strassen's reach. The grades follow descriptions of these tests (arXiv:2511.13778
#: grades emulated DGEMM by them), whose own thresholds are not reproduced here.
GRADES = {"A": "componentwise", "B": "rowwise", "C": "relative_inf"}


#: Number of elements of an operand that a norm reads at a time.
_NORM_SLICE = 1 << 20


@dataclass(frozen=True, repr=False)
class ErrorReport(Result):
    """`ErrorReport` holds errors of a computed product; each error is 0 if and only if all elements are exact.

    Below, C is the exact product with the addend C0 (if there is one), dC = computed - exact, and ``S = |A||B| (+ |C0|)``.

    Attributes
    ----------
    m, n, k : int
        Sizes of the product.
    format : str
        Format of the computed elements.
    reference : str
        "exact" (:func:`mpgemm.exact_gemm`) or "mpmath" (:func:`mpgemm.mp_gemm`).
    relative_frobenius : float
        ``||dC||_F / ||C||_F``, eq. 13 of Xue et al. (arXiv:2507.23387v4), whose norm is taken to be the Frobenius norm.
    relative_inf : float
        ``||dC||_inf / (||A||_inf ||B||_inf)``, figure 7 of Khattak and Mikaitis (arXiv:2512.07004). With an
        addend, ``||C0||_inf`` is added to the denominator.
    normwise : float
        ``||dC||_F / ||S||_F``, which unlike `relative_frobenius` does not grow where the product cancels.
    componentwise : float
        The largest ``|dC_ij| / S_ij``; 0/0 is 0.
    rowwise : float
        The largest ``|dC_ij| / (||a_i||_2 ||b_j||_2)``; 0/0 is 0. With an addend, ``|C0_ij|`` is added to the denominator.
    max_ulp, mean_ulp : float
        Largest and mean ``|dC_ij| / ulp(C_ij)``. For 2^e <= |x| < 2^(e+1), ulp(x) is 2^(e-p+1), where p is the precision of
        `format` and e is limited to the exponents of its normal numbers. C_ij is rounded to binary64 first.
    bits_equal : float
        Fraction of elements that equal the exact value correctly rounded (to nearest, ties to even) to `format`. Zeros of
        either sign are equal, since an exact zero has no sign; NaNs are equal.
    nonfinite : int
        Number of computed elements that are infinite or NaN.
    nonfinite_wrong : int
        Number of elements that are wrong because they or their exact values are infinite or NaN
        (:mod:`mpgemm.exact.errors`).
    """

    m: int
    n: int
    k: int
    format: str
    reference: str
    relative_frobenius: float
    relative_inf: float
    normwise: float
    componentwise: float
    rowwise: float
    max_ulp: float
    mean_ulp: float
    bits_equal: float
    nonfinite: int
    nonfinite_wrong: int

    @default_fp_state
    def effective_bits(self, metric: str = "relative_frobenius") -> float:
        """Return -log2 of a relative error, the number of correct leading bits: inf for error 0, -inf for an infinite one.

        Raises
        ------
        ValueError
            If `metric` is not one of :data:`RELATIVE_METRICS`.
        """
        if metric not in RELATIVE_METRICS:
            raise ValueError(f"unknown relative error {metric!r}; known: {', '.join(RELATIVE_METRICS)}")
        error = getattr(self, metric)
        return math.inf if error == 0 else -math.log2(error)

    @property
    def grade(self) -> str:
        """Return the grade: "A", "B" or "C" if `componentwise`, `rowwise` or `relative_inf` is at most (k + 1) u, else "-".

        The first grade that applies is returned; u is the unit roundoff of the results (:data:`GRADES`).
        """
        limit = (self.k + 1) * tcm.FORMATS[self.format].unit_roundoff
        return next((grade for grade, metric in GRADES.items() if getattr(self, metric) <= limit), "-")

    def to_dict(self) -> dict:
        """Return the fields as JSON-compatible values; an infinite error is the string "inf", since JSON has no infinity."""
        return {key: "inf" if value == math.inf else value for key, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping) -> "ErrorReport":
        """Return the report whose :meth:`to_dict` gave `values`."""
        fields_of_json: dict = {key: math.inf if value == "inf" else value for key, value in values.items()}
        return cls(**fields_of_json)

    def to_json(self) -> str:
        """Return the result of :meth:`to_dict` as JSON text."""
        return json.dumps(self.to_dict())

    def __repr__(self) -> str:
        size = f"{self.m} x {self.k} x {self.n}"
        return f"<ErrorReport {self.format}, {size}: {self.effective_bits():.2f} bits, componentwise {self.componentwise:.3g}>"

    def to_rows(self) -> list[dict]:
        """Return the fields, effective bits and grade as a list of one row, a dict of column names and values."""
        return [{**asdict(self), "effective_bits": self.effective_bits(), "grade": self.grade}]

    def __str__(self) -> str:
        width = max(len(row.name) for row in fields(self))
        lines = [f"{self.m} x {self.k} times {self.k} x {self.n}, {self.format}, against the {self.reference} product"]
        for row in fields(self)[5:]:
            value = getattr(self, row.name)
            lines.append(f"  {row.name:{width}}  {value:.6g}")
        lines.append(f"  {'effective_bits':{width}}  {self.effective_bits():.2f}")
        lines.append(f"  {'grade':{width}}  {self.grade}")
        return "\n".join(lines)


@default_fp_state
def errors(
    computed: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None = None,
    reference: Literal["exact", "mpmath"] = "exact",
) -> ErrorReport:
    """Return the errors of `computed` as a result for the product a b (+ c).

    Parameters
    ----------
    computed : numpy.ndarray, shape (m, n)
        The result in fp64, fp32, fp16, bf16 or an fp8 type of ml_dtypes; ulp and `bits_equal` refer to this format.
    a, b, c : numpy.ndarray, shapes (m, k), (k, n), (m, n)
        The inputs of the product in fp64, fp32, fp16 or bf16. No array is changed.
    reference : {"exact", "mpmath"}
        Exact product to compare with: "exact" is fast; "mpmath" is an independent check, slow, for small matrices.

    Raises
    ------
    ValueError
        If shapes do not match or the reference is unknown.
    TypeError
        If an element type is not one of the types above.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.float32([[1, 2**-24]]), np.float32([[1], [1]])
    >>> report = errors(a @ b, a, b)  # 1 + 2^-24 is a tie and rounds to 1
    >>> report.max_ulp, report.bits_equal, report.effective_bits()
    (0.5, 1.0, 24.000000085991324)
    """
    return ErrorMeter(a, b, c, reference).measure(computed)


class ErrorMeter:
    """`ErrorMeter` measures the :func:`errors` of several results of one product and computes the exact product only once.

    Its parameters are those of :func:`errors`.

    Raises
    ------
    ValueError
        If the reference is unknown or shapes do not match.
    """

    @default_fp_state
    def __init__(self, a, b, c=None, reference: str = "exact"):
        if reference not in REFERENCES:
            raise ValueError(f"unknown reference {reference!r}; known: {', '.join(REFERENCES)}")
        a, b = tcm.as_array(a, "a"), tcm.as_array(b, "b")
        c = None if c is None else tcm.as_array(c, "c")
        self.reference = reference
        if reference == "exact":
            self.exact: Any = exact_gemm(a, b, c)
        else:
            from mpgemm.exact.mp_reference import MpResult  # imported here because mpmath loads slowly

            self.exact = MpResult(a, b, c)
        self.shape = (a.shape[0], b.shape[1], a.shape[1])
        self._values = np.asarray(self.exact.rounded("fp64"))
        self._sizes = _exact_sizes(self.exact if isinstance(self.exact, ExactResult) else exact_gemm(a, b, c))
        self._sides = _row_norms(a), _row_norms(b.T)
        self._addend = 0.0 if c is None else np.abs(np.where(np.isfinite(c), c, 0).astype(np.float64))
        self._scale_inf = _input_norm_inf(a) * _input_norm_inf(b) + (0.0 if c is None else _input_norm_inf(c))

    def measure(self, computed: np.ndarray) -> ErrorReport:
        """Return the errors of one computed result (see :func:`errors`).

        Raises
        ------
        ValueError
            If the shape is not that of the product.
        TypeError
            If the elements have no floating-point format.
        """
        return self.report(computed, self.differences(computed))

    @default_fp_state
    def differences(self, computed: np.ndarray) -> np.ndarray:
        """Return |computed - exact| of every element, in float64.

        The difference is 0 for an infinity or NaN that is right, and infinite for one that is wrong
        (:mod:`mpgemm.exact.errors`).

        Raises ValueError and TypeError like :meth:`measure`.
        """
        computed, _ = self._checked(computed)
        values = computed.astype(np.float64)
        correct, comparable = self._agreement(values)
        difference = np.zeros(values.shape)
        if comparable.any():
            difference[comparable] = np.abs(np.asarray(self.exact.error_of(computed)))[comparable]
        difference[~comparable & ~correct] = np.inf
        return difference

    def _checked(self, computed: np.ndarray) -> tuple[np.ndarray, "tcm.Format"]:
        """Return a result as an array, and its format."""
        computed = tcm.as_array(computed, "computed")
        if computed.shape != self.shape[:2]:
            raise ValueError(f"computed has shape {computed.shape}, expected {self.shape[:2]} from a and b")
        fmt = tcm.format_of_dtype(computed.dtype)
        if fmt is None:
            raise TypeError(
                f"computed has elements of type {computed.dtype}, expected a floating-point format; convert "
                f"computed, for example to float32"
            )
        return computed, fmt

    @default_fp_state
    def report(self, computed: np.ndarray, difference: np.ndarray) -> ErrorReport:
        """Return the errors of a result with the given :meth:`differences`."""
        computed, fmt = self._checked(computed)
        values = computed.astype(np.float64)
        ulps = _in_ulps(difference, self._values, fmt)
        relative: dict[str, Any] = self.relative_metrics(difference)
        rounded = np.asarray(self.exact.rounded(fmt.name)).astype(np.float64)
        equal = (values == rounded) | (np.isnan(values) & np.isnan(rounded))
        return ErrorReport(
            *self.shape,
            fmt.name,
            self.reference,
            **relative,
            max_ulp=float(ulps.max(initial=0.0)),
            mean_ulp=_mean(ulps),
            bits_equal=float(equal.mean()) if equal.size else 1.0,
            nonfinite=int(np.count_nonzero(~np.isfinite(values))),
            nonfinite_wrong=int(np.count_nonzero(difference == np.inf)),
        )

    @default_fp_state
    def conditioning(self) -> Conditioning:
        """Return the condition number of the product."""
        return Conditioning.of(self._values, self._sizes)

    @default_fp_state
    def relative_metrics(self, difference: np.ndarray) -> dict[str, float]:
        """Return the relative errors of a result by name, from the absolute errors of its elements, shape (m, n).

        The names are those of :data:`RELATIVE_METRICS`. Bounds of absolute errors give bounds of relative errors.
        """
        finite = np.isfinite(self._values)
        return {
            "relative_frobenius": _ratio(norm_frobenius(difference), norm_frobenius(self._values[finite])),
            "relative_inf": _ratio(_norm_inf(difference), self._scale_inf),
            "normwise": _ratio(norm_frobenius(difference), norm_frobenius(self._sizes[finite])),
            "componentwise": _largest_ratio(difference, self._sizes),
            "rowwise": self._rowwise(difference),
        }

    def _rowwise(self, difference: np.ndarray) -> float:
        """Return the largest error over the product of the norms of its row of A and its column of B."""
        (rows, row_scales), (columns, column_scales) = self._sides
        shift = row_scales[:, None] + column_scales
        with np.errstate(under="ignore", over="ignore"):
            scale = np.ldexp(rows[:, None] * columns, shift) + self._addend
        return _largest_ratio(difference, scale)

    def _agreement(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return masks of the elements that are right and not finite, and of those where both values are finite."""
        both_nan = np.isnan(values) & np.isnan(self._values)
        same_inf = np.isinf(values) & (values == self._values)
        return both_nan | same_inf, np.isfinite(values) & np.isfinite(self._values)


def _exact_sizes(exact: ExactResult) -> np.ndarray:
    """Return S = |A||B| + |C0|, correctly rounded to binary64, with infinity in place of NaN."""
    sizes = np.asarray(exact.magnitudes().rounded("fp64"))
    return np.where(np.isnan(sizes), np.inf, sizes)


def _row_norms(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (x, e) with x 2^e the 2-norms of the rows over their finite elements."""
    largest, squares = np.zeros(x.shape[0]), np.zeros(x.shape[0])
    for rows, values in _finite_slices(x):
        largest[rows] = np.maximum(largest[rows], np.abs(values).max(axis=1, initial=0.0))
    exponents = np.frexp(largest)[1]
    for rows, values in _finite_slices(x):
        squares[rows] += np.square(np.ldexp(values, -exponents[rows, None])).sum(axis=1)
    return np.sqrt(squares), exponents


def _finite_slices(x: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield (rows, elements of these rows in some columns), as float64 with 0 for elements that are not finite."""
    height = max(_NORM_SLICE // max(x.shape[1], 1), 1)
    for row in range(0, x.shape[0], height):
        rows = slice(row, row + height)
        for column in range(0, x.shape[1], _NORM_SLICE):
            values = x[rows, column : column + _NORM_SLICE].astype(np.float64)
            values[~np.isfinite(values)] = 0.0
            yield rows, values


def _norm_inf(x: np.ndarray) -> float:
    """Return the largest row sum of |x|, infinite if an element is not finite."""
    if not x.size:
        return 0.0
    with np.errstate(over="ignore"):
        largest = float(np.abs(x.astype(np.float64)).sum(axis=1).max())
    return math.inf if math.isnan(largest) else largest


def _input_norm_inf(x: np.ndarray) -> float:
    """Return the largest row sum of |x| over finite elements."""
    sums = np.zeros(x.shape[0])
    for rows, values in _finite_slices(x):
        with np.errstate(over="ignore"):
            sums[rows] += np.abs(values).sum(axis=1)
    return float(sums.max(initial=0.0))


def _mean(x: np.ndarray) -> float:
    """Return the mean of non-negative numbers: infinite if a number is, 0 for no numbers, finite even if their sum
    overflows."""
    if not np.isfinite(x).all():
        return math.inf
    try:
        return _ratio(exact_sum(x), x.size)
    except OverflowError:
        return math.ldexp(exact_sum(np.ldexp(x, -64)) / x.size, 64)


#: Bits of a slice in :func:`exact_sum`; the sum of a chunk of 2^22 slices fits a 63-bit integer.
_SLICE_BITS = 40
_CHUNK = 1 << 22


def exact_sum(x: np.ndarray) -> float:
    """Return the sum of finite numbers, rounded once like `math.fsum`; it adds slices of 40 bits as integers."""
    left = x.ravel()
    top = math.frexp(float(np.abs(left).max(initial=0.0)))[1]
    total, unit = 0, top
    while left.size:
        unit -= _SLICE_BITS
        slices = np.rint(np.ldexp(left, -unit))
        sums = [int(slices[i : i + _CHUNK].astype(np.int64).sum()) for i in range(0, slices.size, _CHUNK)]
        total = (total << _SLICE_BITS) + sum(sums)
        left = left - np.ldexp(slices, unit)
        left = left[left != 0]
    return float(Fraction(total) * Fraction(2) ** unit)


def norm_frobenius(x: np.ndarray) -> float:
    """Return the Frobenius norm without intermediate overflow or underflow, infinite if an element is not finite."""
    largest = float(np.abs(x).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return 0.0 if largest == 0.0 else math.inf
    exponent = math.frexp(largest)[1]
    try:
        return math.ldexp(math.sqrt(exact_sum(np.square(np.ldexp(x, -exponent)))), exponent)
    except OverflowError:
        return math.inf


def _ratio(error: float, scale: float) -> float:
    """Return error / scale with 0/0 = 0; a positive error never gives 0, and the result is never NaN."""
    if error == 0.0:
        return 0.0
    if scale == 0.0 or math.isinf(error):
        return math.inf
    return max(float(error) / float(scale), math.ulp(0.0))


def _largest_ratio(difference: np.ndarray, sizes: np.ndarray) -> float:
    """Return the largest |dC_ij| / S_ij by the rules of :func:`_ratio`."""
    if not difference.any():
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore", under="ignore", over="ignore"):
        quotient = np.where(np.isinf(difference), np.inf, difference / sizes)
    quotient = np.where(difference == 0.0, 0.0, np.maximum(quotient, math.ulp(0.0)))
    return float(quotient.max())


def _in_ulps(difference: np.ndarray, exact: np.ndarray, fmt: "tcm.Format") -> np.ndarray:
    """Return |dC| in units in the last place of `fmt` at the exact value."""
    finite = np.where(np.isfinite(exact), exact, 0.0)
    exponents = np.where(finite == 0.0, fmt.emin, np.frexp(finite)[1] - 1)
    exponents = np.clip(exponents, fmt.emin, fmt.emax)
    with np.errstate(over="ignore", under="ignore"):
        ulps = np.ldexp(difference, fmt.fraction_bits - exponents)
    return np.where((difference > 0.0) & (ulps == 0.0), math.ulp(0.0), ulps)
