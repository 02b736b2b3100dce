"""This module holds the rules for scales of quantised operands, and recognises `scale_a` and `scale_b` by shape and type.

A is (m, k), B is (k, n). A rule says how many rows of A (columns of B) and how many values of k share a factor, the format of
the factor, and where kernels apply it:

- "end": factors are applied to the whole sum. Factors per tensor are folded, ``RN32(RN32(scale_a scale_b) sum)`` (cuBLASLt,
  measured; see :mod:`tensorcore_models.libraries.scaled_mm`). Factors per row and column give
  ``RN32(scale_a RN32(scale_b sum))`` on Hopper (measured on an H100 with torch 2.11 and cuBLAS 13.0) and
  ``RN32(scale_b RN32(scale_a sum))`` elsewhere, as in torch's kernel on CUTLASS (published: RowwiseScaledMM.cu; torch called
  this kernel on Hopper, too, before cuBLAS 12.9).
- "block": each block of k is a chain of the unit from zero, whose result is added outside the unit by one fused multiply-add,
  ``total = RN32(RN32(scale_a scale_b) chain + total)`` (DeepGEMM; DeepSeek-V3 report, section 3.3.2).
- "product": factors are applied inside the unit, to each product (units with block scales). A further FP32 factor of each
  whole operand is applied at the end, folded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..formats import get_float_format, get_format
from ..formats.interop import as_array
from ..formats.operands import operand_bits
from ..formats.rounding import decode


class ScaleRule(NamedTuple):
    """`ScaleRule` describes the scale factors of one operand: which elements share a factor, and where factors are applied.

    Attributes
    ----------
    name : str
        Name of the rule.
    together : int or None
        Number of rows of A (or columns of B) that share a factor; None if all rows share it.
    along : int or None
        Number of values of k that share a factor; None if all values of k share it.
    format : str
        Format of a factor.
    applied : {"end", "block", "product"}
        Place where the factor is applied: to the whole sum ("end"), to the sum of each block of k, or to each product.
    evidence : str
        Source of the rule.
    """

    name: str
    together: int | None
    along: int | None
    format: str
    applied: str
    evidence: str = "no source"

    def shape(self, side: str, size: int, k: int) -> tuple[int, int]:
        """Return the shape of the factors of A (side "a", `size` rows) or of B (side "b", `size` columns)."""
        across = 1 if self.together is None else -(-size // self.together)
        along = 1 if self.along is None else -(-k // self.along)
        return (across, along) if side == "a" else (along, across)

    def fits(self, side: str, size: int, k: int, shape: tuple[int, ...]) -> bool:
        """Return whether factors of this shape fit the rule.

        A single factor may also be a scalar, and one factor for each row (column) may also be a one-dimensional array.
        """
        if shape == self.shape(side, size, k):
            return True
        if self.together is None and self.along is None:
            return shape in ((), (1,))
        return self.together == 1 and self.along is None and shape == (size,)


#: The rules in the order in which they are tried.
RULES = (
    ScaleRule("per tensor", None, None, "fp32", "end", "measured: cuBLASLt"),
    ScaleRule(
        "per row and column",
        1,
        None,
        "fp32",
        "end",
        "published: PyTorch's kernel on CUTLASS; measured: cuBLAS 13.0",
    ),
    ScaleRule("blocks of 1 x 128", 1, 128, "fp32", "block", "published: DeepGEMM, DeepSeek-V3"),
    ScaleRule("blocks of 128 x 128", 128, 128, "fp32", "block", "published: DeepGEMM, DeepSeek-V3"),
    ScaleRule("groups of 64", 1, 64, "fp32", "block", "published: weights of 4 bits, as AWQ and GPTQ group them"),
    ScaleRule("mx, blocks of 32", 1, 32, "ue8m0", "product", "published: PTX ISA"),
    ScaleRule("nvfp4, blocks of 16", 1, 16, "ue4m3", "product", "published: PTX ISA"),
)
#: Operand whose factors per row or column are applied first, by architecture, where recordings show it.
FIRST_FACTOR = {"hopper": "b"}
_A_FIRST, _B_FIRST = "RN32(scale_b RN32(scale_a sum))", "RN32(scale_a RN32(scale_b sum))"
_FIRST_WORDS = {"a": _A_FIRST, "b": _B_FIRST, None: f"{_A_FIRST}, on Hopper {_B_FIRST}"}
#: Format of the factors by array type; arrays of other types are numbers, which are read as FP32.
_OF_TYPE = {"float8_e8m0fnu": "ue8m0", "float8_e4m3fn": "ue4m3", "uint8": "encodings"}


@dataclass(frozen=True, eq=False)
class Scaling:
    """`Scaling` holds the scale factors of both operands; :func:`tensorcore_models.read_scales` returns it.

    Attributes
    ----------
    rule_a, rule_b : ScaleRule
        Rules of A and of B.
    a, b : ndarray of float64
        Values of the factors, in the shapes of the rules.
    bits_a, bits_b : ndarray of uint8 or None
        Encodings of block scales that the unit multiplies each product by; None for other scales.
    whole_a, whole_b : float
        Further FP32 factor of the whole operand (1 if there is none).
    sizes : tuple of int
        (m, k, n).
    first : {None, "a", "b"}
        Operand whose factors per row or column are applied first; None until :meth:`on` sets the operand that the libraries
        of a unit scale first.
    """

    rule_a: ScaleRule
    rule_b: ScaleRule
    a: np.ndarray
    b: np.ndarray
    bits_a: np.ndarray | None
    bits_b: np.ndarray | None
    whole_a: float
    whole_b: float
    sizes: tuple[int, int, int]
    first: str | None = None

    def on(self, unit) -> "Scaling":
        """Return a copy whose `first` is the operand that this unit's libraries scale first; keep `first` if it is set."""
        return self if self.first else replace(self, first=FIRST_FACTOR.get(getattr(unit, "arch", ""), "a"))

    @property
    def applied(self) -> str:
        """Return where the factors are applied: to the whole sum ("end"), to the sum of each block of k, or to each product."""
        return self.rule_a.applied

    @property
    def block(self) -> int | None:
        """Return how many consecutive values of k have the same factors; None if factors do not change along k."""
        return min((r.along for r in (self.rule_a, self.rule_b) if r.along is not None), default=None)

    @property
    def folded(self) -> bool:
        """Return whether each operand has a single factor, applied at the end."""
        return self.applied == "end" and self.rule_a.together is self.rule_b.together is None

    @property
    def roundings(self) -> int:
        """Return the number of further FP32 roundings that a result gets when the factors are applied to a chain's sum."""
        if self.applied == "end":
            return 2
        return 1 if self.applied == "block" else 2 * (self.whole_a != 1 or self.whole_b != 1)

    def spread_a(self) -> np.ndarray:
        """Return the exact factor of every element of A in float64, shape (m, k)."""
        found = _spread(self.rule_a, self.a, self.sizes[0], self.sizes[1], "a")
        return found if self.whole_a == 1 else found * self.whole_a

    def spread_b(self) -> np.ndarray:
        """Return the exact factor of every element of B in float64, shape (k, n)."""
        found = _spread(self.rule_b, self.b, self.sizes[2], self.sizes[1], "b")
        return found if self.whole_b == 1 else found * self.whole_b

    def times_a(self, values: np.ndarray) -> np.ndarray:
        """Return A times its factors in float64, equal to `values * spread_a()`, without building an array of factors."""
        return self._times(self.rule_a, self.a.T, self.whole_a, values.T).T

    def times_b(self, values: np.ndarray) -> np.ndarray:
        """Return B times its factors in float64, equal to `values * spread_b()`, without building an array of factors."""
        return self._times(self.rule_b, self.b, self.whole_b, values)

    @staticmethod
    def _times(rule: ScaleRule, factors: np.ndarray, whole: float, values: np.ndarray) -> np.ndarray:
        """Return values of shape (k, lines) times `factors` of shape (blocks of k, groups of lines) and times `whole`."""
        k, lines = values.shape
        out = np.empty_like(values)
        step = max(k, 1) if rule.along is None else rule.along
        for start in range(0, k, step):
            own = _spread(rule, factors, lines, k, "b", slice(start, start + 1))
            np.multiply(values[start : start + step], own if whole == 1 else own * whole, out=out[start : start + step])
        return out

    def at(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the FP32 factors at one k, shapes (m, 1) and (1, n), without the factors of whole tensors."""
        one = slice(position, position + 1)
        a = _spread(self.rule_a, self.a, self.sizes[0], self.sizes[1], "a", one)
        b = _spread(self.rule_b, self.b, self.sizes[2], self.sizes[1], "b", one)
        return a.astype(np.float32), b.astype(np.float32)

    def in_words(self) -> str:
        """Return a sentence that names the rules, the place where the factors are applied, and the source."""
        says = self.rule_a if self.rule_b.together is None else self.rule_b
        if self.rule_a.applied == "end":
            ends = "at the end, " + ("RN32(RN32(scale_a scale_b) sum)" if self.folded else _FIRST_WORDS[self.first])
        elif self.applied == "block":
            ends = f"after each block of {self.block} products, total = RN32(RN32(scale_a scale_b) chain + total)"
        else:
            ends = "inside the unit, to each product"
            if self.roundings:
                ends += "; factors of whole tensors are applied at the end, RN32(RN32(scale_a scale_b) sum)"
        both = [f"{n}: {r.name} {x.shape}" for n, r, x in (("A", self.rule_a, self.a), ("B", self.rule_b, self.b))]
        return f"{', '.join(both)}; applied {ends} ({says.evidence})"

    def part(self, rows: np.ndarray, columns: np.ndarray, order: np.ndarray | None = None) -> "Scaling":
        """Return the factors of some rows of A and columns of B; `order` permutes all blocks of k except a short last one."""
        k = self.sizes[1]
        rule_a, a = _taken(self.rule_a, self.a, rows)
        rule_b, b = _taken(self.rule_b, self.b.T, columns)
        bits_a = None if self.bits_a is None else self.bits_a[rows]
        bits_b = None if self.bits_b is None else self.bits_b[:, columns]
        if order is not None:
            a, b = (x if r.along is None else x[:, order] for r, x in ((rule_a, a), (rule_b, b)))
            bits_a = None if bits_a is None else bits_a[:, order]
            bits_b = None if bits_b is None else bits_b[order]
        sizes = len(rows), k, len(columns)
        return Scaling(rule_a, rule_b, a, b.T, bits_a, bits_b, self.whole_a, self.whole_b, sizes, self.first)


def _taken(rule: ScaleRule, values: np.ndarray, at: np.ndarray) -> tuple[ScaleRule, np.ndarray]:
    """Return factors (across, along) of some rows, with one factor for each row even if rows shared one."""
    if rule.together is None:
        return rule, values
    return rule._replace(together=1), values[np.asarray(at) // rule.together]


def _spread(rule: ScaleRule, values: np.ndarray, size: int, k: int, side: str, part: slice = slice(None)) -> np.ndarray:
    """Return a factor for every element, shape (size, k) of A and (k, size) of B; `part` selects values of k."""
    across, along = (0, 1) if side == "a" else (1, 0)
    places = np.arange(k)[part]
    values = np.take(values, np.zeros_like(places) if rule.along is None else places // rule.along, axis=along)
    if rule.together is None:
        return np.repeat(values, size, axis=across)
    return values if rule.together == 1 else np.take(values, np.arange(size) // rule.together, axis=across)


def read_scales(
    scale_a, scale_b, m: int, k: int, n: int, unit=None, rules: tuple[ScaleRule, ScaleRule] | None = None
) -> Scaling | None:
    """Return the scales of both operands, recognised by shapes and types, as a `Scaling`; None if both are None.

    Parameters
    ----------
    scale_a, scale_b : array_like, or (array_like, float), optional
        Scales of A and of B. Numbers are read as FP32. Block scales of a unit are arrays of ml_dtypes' float8_e8m0fnu or
        float8_e4m3fn, uint8 encodings, or numbers that the scale format can represent. In a pair (block scales, factor), the
        factor is one FP32 number for the whole tensor.
    m, k, n : int
        Sizes: A is (m, k), B is (k, n).
    unit : Engine, optional
        Unit that multiplies; by default the scales may be those of any unit.
    rules : (ScaleRule, ScaleRule), optional
        Rules of A and of B; by default the first rules that fit both operands.

    Raises
    ------
    ValueError
        If only one of the scales is given, a factor is NaN or infinite, a shape fits no rule, uint8 encodings could belong to
        two formats, or the two rules cannot be combined (the message lists the rules with their shapes).
    """
    if scale_a is None and scale_b is None:
        return None
    if scale_a is None or scale_b is None:
        given = "scale_a" if scale_b is None else "scale_b"
        raise ValueError(
            f"only one of scale_a and scale_b is given ({given}): give both, with 1.0 for an operand without a scale"
        )
    (a, whole_a), (b, whole_b) = (_parts(x, name) for x, name in ((scale_a, "scale_a"), (scale_b, "scale_b")))
    known = RULES if unit is None else _rules_of(unit)
    tried = (known, known) if rules is None else tuple([rule] for rule in rules)
    fitting = [
        [r for r in each if r.fits(side, size, k, x.shape) and _kind(x) in ("numbers", "encodings", r.format)
         and not (_kind(x) == "encodings" and r.applied != "product")]
        for side, size, x, each in (("a", m, a, tried[0]), ("b", n, b, tried[1]))
    ]  # fmt: skip
    for side, size, x, found, each in zip("ab", (m, n), (a, b), fitting, tried, strict=True):
        if not found:
            raise ValueError(_unfitting(f"scale_{side}", side, size, k, x, each))
    pairs = [(x, y) for x in fitting[0] for y in fitting[1] if _together(x, y)]
    if not pairs:
        shapes = (f"{r.name}: {r.shape('a', m, k)} and {r.shape('b', n, k)}" for r in known)
        raise ValueError(
            f"scale_a is {fitting[0][0].name}, scale_b is {fitting[1][0].name}, which are applied at different "
            f"places. Expected both per tensor or per row and column, both in blocks of 128, or both in one unit's "
            f"blocks. Expected shapes of scale_a and scale_b: {'; '.join(shapes)}"
        )
    formats = {x.format for x, _ in pairs}
    if "encodings" in (_kind(a), _kind(b)) and len(formats) > 1:
        raise ValueError(
            f"the uint8 scales scale_a and scale_b could be encodings of {' or '.join(sorted(formats))}: give arrays of "
            "ml_dtypes' float8_e4m3fn (ue4m3) or float8_e8m0fnu (ue8m0)"
        )
    rule_a, rule_b = pairs[0]
    whole = whole_a != 1 or whole_b != 1
    if whole and rule_a.applied != "product":
        raise ValueError(
            f"got a pair (scales, factor) with scales {rule_a.name}, expected block scales of a unit (mx, nvfp4): multiply the "
            "factor into the scales"
        )
    read = [_values(x, r, name) for x, r, name in ((a, rule_a, "scale_a"), (b, rule_b, "scale_b"))]
    shaped = [
        (v.reshape(r.shape(s, size, k)), e)
        for (v, e), r, s, size in zip(read, (rule_a, rule_b), "ab", (m, n), strict=True)
    ]
    return Scaling(rule_a, rule_b, shaped[0][0], shaped[1][0], shaped[0][1], shaped[1][1], whole_a, whole_b, (m, k, n))


def _parts(given, name: str) -> tuple[np.ndarray, float]:
    """Return the factors of an argument, and the FP32 factor of the whole tensor (1 if it has none)."""
    whole = 1.0
    if isinstance(given, list | tuple) and len(given) == 2 and np.ndim(given[0]) == 2:
        given, factor = given[0], as_array(given[1], name)
        if factor.size != 1:
            raise ValueError(
                f"{name} is a pair (block scales, factor), but the factor has shape {factor.shape}, expected one number"
            )
        whole = float(np.float32(factor.reshape(())))
        if not np.isfinite(whole):
            raise ValueError(f"{name}: the factor of the whole tensor is {whole}, expected a finite number")
    return as_array(given, name), whole


def _kind(x: np.ndarray) -> str:
    return _OF_TYPE.get(x.dtype.name, "numbers")


def _rules_of(unit) -> Sequence[ScaleRule]:
    """Return the rules whose scales can be used with a unit."""
    if unit.scale_format is None:
        return [rule for rule in RULES if rule.applied != "product"]
    fmt, size = get_format(unit.scale_format).name, unit.block_size
    named = [r for r in RULES if (r.format, r.along) == (fmt, size)]
    return named or [ScaleRule(f"blocks of {size}", 1, size, fmt, "product")]


def _together(x: ScaleRule, y: ScaleRule) -> bool:
    return x.applied == y.applied and (x.applied != "product" or x == y)


def _values(x: np.ndarray, rule: ScaleRule, name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the factors in float64, and their encodings if the rule applies them to each product (else None)."""
    bits = None
    if rule.applied == "product":
        fmt = get_float_format(rule.format)
        bits = x if x.dtype == np.uint8 else operand_bits(x.astype(np.float64), fmt, None, name)
        bits = bits & fmt.container.type((1 << fmt.bits) - 1)  # the top bit of a ue4m3 scale is stored and ignored
        values = decode(bits, fmt)
    else:
        with np.errstate(over="ignore"):
            values = x.astype(np.float32).astype(np.float64)
    wrong = ~np.isfinite(values)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"{name} holds {np.count_nonzero(wrong)} factors that are NaN or infinite, the first at {at}: replace these factors"
        )
    return values, bits


def _unfitting(name: str, side: str, size: int, k: int, x: np.ndarray, rules: Sequence[ScaleRule]) -> str:
    operand = f"A of {size} x {k}" if side == "a" else f"B of {k} x {size}"
    hint = ""
    if x.ndim == 2 and any(rule.fits(side, size, k, x.shape[::-1]) for rule in rules):
        hint = f". Its transpose fits: pass {name}.T"
    elif any(rule.fits(side, size, k, x.shape) for rule in RULES if rule not in rules):
        other = next(rule for rule in RULES if rule not in rules and rule.fits(side, size, k, x.shape))
        hint = f". The shape is that of {other.name}: use a unit that takes them" if other.applied == "product" else ""
    kind = "" if _kind(x) == "numbers" else f" and type {x.dtype}"
    shapes = "; ".join(_row(rule, side, size, k) for rule in rules)
    return f"{name} has shape {x.shape}{kind}, which fits no rule for {operand}: {shapes}{hint}"


def _row(rule: ScaleRule, side: str, size: int, k: int) -> str:
    return f"{rule.name}: {rule.shape(side, size, k)} {rule.format}"
