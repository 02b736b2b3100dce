"""Scales of quantised operands: the rules in use, and one reading of `scale_a` and `scale_b` by shape and type.

A is (m, k), B is (k, n). A rule says how many rows (of B: columns) and how many values of k share a factor, in which format the
factor is, and where kernels apply it:

- "end": to the whole sum. Per tensor the factors are folded, ``RN32(RN32(scale_a scale_b) sum)`` (cuBLASLt, measured; see
  :mod:`tensorcore_models.libraries.scaled_mm`). With one factor per row or column it is ``RN32(scale_a RN32(scale_b sum))`` on
  Hopper, as an H100 returns it (torch 2.11, cuBLAS 13.0: measured), and elsewhere ``RN32(scale_b RN32(scale_a sum))``, as
  torch's kernel on CUTLASS has it (RowwiseScaledMM.cu: published; before cuBLAS 12.9 torch called it on Hopper, too).
- "block": each block of k is a chain of the unit from zero, which is added outside by one fused multiply-add,
  ``total = RN32(RN32(scale_a scale_b) chain + total)`` (DeepGEMM; DeepSeek-V3 report, section 3.3.2).
- "product": inside of the unit, with each product (units with block scales). One FP32 factor more for each operand is applied
  at the end, folded.
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
    """`ScaleRule` is a rule by which the scales of one operand apply: shape, format and place.

    Attributes
    ----------
    name : str
    together : int or None
        Rows of A (columns of B) that share a factor; None: all.
    along : int or None
        Values of k that share a factor; None: all.
    format : str
        Format of a factor.
    applied : {"end", "block", "product"}
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
        """Return whether factors of a shape fit this rule; a single number and a vector of one factor per row
        (column) may be flat."""
        if shape == self.shape(side, size, k):
            return True
        if self.together is None and self.along is None:
            return shape in ((), (1,))
        return self.together == 1 and self.along is None and shape == (size,)


#: The rules in use, in the order in which they are tried; a row is one rule.
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
#: Architecture whose libraries were recorded: the operand whose factors of rows or columns come first.
FIRST_FACTOR = {"hopper": "b"}
_A_FIRST, _B_FIRST = "RN32(scale_b RN32(scale_a sum))", "RN32(scale_a RN32(scale_b sum))"
_FIRST_WORDS = {"a": _A_FIRST, "b": _B_FIRST, None: f"{_A_FIRST}, on Hopper {_B_FIRST}"}
#: What a type of array says of the factors' format; others are numbers, which are read as FP32.
_OF_TYPE = {"float8_e8m0fnu": "ue8m0", "float8_e4m3fn": "ue4m3", "uint8": "encodings"}


@dataclass(frozen=True, eq=False)
class Scaling:
    """`Scaling` holds the factors of both operands as :func:`tensorcore_models.read_scales` read them.

    Attributes
    ----------
    rule_a, rule_b : ScaleRule
    a, b : ndarray of float64
        Values of the factors, in the shapes of the rules.
    bits_a, bits_b : ndarray of uint8 or None
        Encodings, where a unit multiplies them with each product.
    whole_a, whole_b : float
        One FP32 factor more for each operand (1 without).
    sizes : (m, k, n)
    first : {None, "a", "b"}
        The operand whose factors of rows or columns are multiplied in first; None: not settled, by the unit.
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
        """Return the factors in the order in which this unit's libraries apply them, unless the order is fixed
        already."""
        return self if self.first else replace(self, first=FIRST_FACTOR.get(getattr(unit, "arch", ""), "a"))

    @property
    def applied(self) -> str:
        """Return where the factors are applied: "end", "block" or "product"."""
        return self.rule_a.applied

    @property
    def block(self) -> int | None:
        """Return the number of consecutive k with the same factors in both operands; None if factors do not change
        along k."""
        return min((r.along for r in (self.rule_a, self.rule_b) if r.along is not None), default=None)

    @property
    def folded(self) -> bool:
        """Return whether each operand has a single factor, applied at the end."""
        return self.applied == "end" and self.rule_a.together is self.rule_b.together is None

    @property
    def roundings(self) -> int:
        """Return the number of FP32 roundings that the factors add to a chain: of their product, and of the product
        with the sum."""
        if self.applied == "end":
            return 2
        return 1 if self.applied == "block" else 2 * (self.whole_a != 1 or self.whole_b != 1)

    def spread_a(self) -> np.ndarray:
        """Return the factor of every element of A in float64, shape (m, k); exact."""
        found = _spread(self.rule_a, self.a, self.sizes[0], self.sizes[1], "a")
        return found if self.whole_a == 1 else found * self.whole_a

    def spread_b(self) -> np.ndarray:
        """Return the factor of every element of B, shape (k, n)."""
        found = _spread(self.rule_b, self.b, self.sizes[2], self.sizes[1], "b")
        return found if self.whole_b == 1 else found * self.whole_b

    def times_a(self, values: np.ndarray) -> np.ndarray:
        """Return A times its factors in float64: the same as `values * spread_a()`, but without an array of factors."""
        return self._times(self.rule_a, self.a.T, self.whole_a, values.T).T

    def times_b(self, values: np.ndarray) -> np.ndarray:
        """Return B times its factors in float64."""
        return self._times(self.rule_b, self.b, self.whole_b, values)

    @staticmethod
    def _times(rule: ScaleRule, factors: np.ndarray, whole: float, values: np.ndarray) -> np.ndarray:
        """Return values of shape (k, lines) times the factors of a tensor, shape (blocks of k, groups of lines), and of all of
        it."""
        k, lines = values.shape
        out = np.empty_like(values)
        step = max(k, 1) if rule.along is None else rule.along
        for start in range(0, k, step):
            own = _spread(rule, factors, lines, k, "b", slice(start, start + 1))
            np.multiply(values[start : start + step], own if whole == 1 else own * whole, out=out[start : start + step])
        return out

    def at(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the FP32 factors at one k, without those of whole tensors: shapes (m, 1) and (1, n)."""
        one = slice(position, position + 1)
        a = _spread(self.rule_a, self.a, self.sizes[0], self.sizes[1], "a", one)
        b = _spread(self.rule_b, self.b, self.sizes[2], self.sizes[1], "b", one)
        return a.astype(np.float32), b.astype(np.float32)

    def in_words(self) -> str:
        """Return a sentence on the rules, the place where the factors are applied, and the source."""
        says = self.rule_a if self.rule_b.together is None else self.rule_b
        if self.rule_a.applied == "end":
            ends = "at the end, " + ("RN32(RN32(scale_a scale_b) sum)" if self.folded else _FIRST_WORDS[self.first])
        elif self.applied == "block":
            ends = f"after each block of {self.block} products, total = RN32(RN32(scale_a scale_b) chain + total)"
        else:
            ends = "inside of the unit, with each product"
            if self.roundings:
                ends += "; the factors of whole tensors at the end, RN32(RN32(scale_a scale_b) sum)"
        both = [f"{n}: {r.name} {x.shape}" for n, r, x in (("A", self.rule_a, self.a), ("B", self.rule_b, self.b))]
        return f"{', '.join(both)}; applied {ends} ({says.evidence})"

    def part(self, rows: np.ndarray, columns: np.ndarray, order: np.ndarray | None = None) -> "Scaling":
        """Return the factors of some rows of A and columns of B; `order` permutes the blocks of k, except for a short
        last block."""
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
    """Return factors (across, along) of some rows; one for each of them where several shared one."""
    if rule.together is None:
        return rule, values
    return rule._replace(together=1), values[np.asarray(at) // rule.together]


def _spread(rule: ScaleRule, values: np.ndarray, size: int, k: int, side: str, part: slice = slice(None)) -> np.ndarray:
    """Return one factor for every element, or for some values of k, shape (size, k) of A and (k, size) of B."""
    across, along = (0, 1) if side == "a" else (1, 0)
    places = np.arange(k)[part]
    values = np.take(values, np.zeros_like(places) if rule.along is None else places // rule.along, axis=along)
    if rule.together is None:
        return np.repeat(values, size, axis=across)
    return values if rule.together == 1 else np.take(values, np.arange(size) // rule.together, axis=across)


def read_scales(
    scale_a, scale_b, m: int, k: int, n: int, unit=None, rules: tuple[ScaleRule, ScaleRule] | None = None
) -> Scaling | None:
    """Return the scales of both operands, interpreted by their shapes and types as a kernel's caller gives them; None
    if both are None.

    Parameters
    ----------
    scale_a, scale_b : array_like, or (array_like, float), optional
        Numbers are read as FP32. Block scales of a unit are ml_dtypes' float8_e8m0fnu or float8_e4m3fn, uint8 encodings, or
        numbers that their format holds; in a pair (block scales, factor) the factor is one FP32 number for the whole
        tensor.
    m, k, n : int
        A is (m, k), B is (k, n).
    unit : Engine, optional
        The unit that multiplies; by default the scales may be those of any unit.
    rules : (ScaleRule, ScaleRule), optional
        The rules of A and of B where the caller knows them; some shapes fit several.

    Raises
    ------
    ValueError
        If only one is given, factors are NaN or infinite, a shape fits no rule or rules do not go together (the message lists
        the rules with the shapes that are expected), or encodings could be of two formats.
    """
    if scale_a is None and scale_b is None:
        return None
    if scale_a is None or scale_b is None:
        raise ValueError("give scale_a and scale_b together, with 1.0 for an operand without a scale")
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
            f"scale_a is {fitting[0][0].name}, scale_b is {fitting[1][0].name}: these are applied at different "
            f"places. Expected both per tensor or per row and column, both in blocks of 128, or both in one unit's "
            f"blocks. Expected shapes of scale_a and scale_b: {'; '.join(shapes)}"
        )
    formats = {x.format for x, _ in pairs}
    if "encodings" in (_kind(a), _kind(b)) and len(formats) > 1:
        raise ValueError(
            f"scale_a and scale_b are encodings of {' or '.join(sorted(formats))}: give them as values or by their type"
        )
    rule_a, rule_b = pairs[0]
    whole = whole_a != 1 or whole_b != 1
    if whole and rule_a.applied != "product":
        raise ValueError(f"a factor in addition to block scales needs a unit's blocks (nvfp4, mx), got {rule_a.name}")
    read = [_values(x, r, name) for x, r, name in ((a, rule_a, "scale_a"), (b, rule_b, "scale_b"))]
    shaped = [
        (v.reshape(r.shape(s, size, k)), e)
        for (v, e), r, s, size in zip(read, (rule_a, rule_b), "ab", (m, n), strict=True)
    ]
    return Scaling(rule_a, rule_b, shaped[0][0], shaped[1][0], shaped[0][1], shaped[1][1], whole_a, whole_b, (m, k, n))


def _parts(given, name: str) -> tuple[np.ndarray, float]:
    """Return (factors, FP32 factor of the whole tensor)."""
    whole = 1.0
    if isinstance(given, list | tuple) and len(given) == 2 and np.ndim(given[0]) == 2:
        given, factor = given[0], as_array(given[1], name)
        if factor.size != 1:
            raise ValueError(f"{name} is a pair (block scales, one factor), but the factor has shape {factor.shape}")
        whole = float(np.float32(factor.reshape(())))
        if not np.isfinite(whole):
            raise ValueError(f"{name}: the factor of the whole tensor is {whole}")
    return as_array(given, name), whole


def _kind(x: np.ndarray) -> str:
    return _OF_TYPE.get(x.dtype.name, "numbers")


def _rules_of(unit) -> Sequence[ScaleRule]:
    """Return the rules that a unit can serve."""
    if unit.scale_format is None:
        return [rule for rule in RULES if rule.applied != "product"]
    fmt, size = get_format(unit.scale_format).name, unit.block_size
    named = [r for r in RULES if (r.format, r.along) == (fmt, size)]
    return named or [ScaleRule(f"blocks of {size}", 1, size, fmt, "product")]


def _together(x: ScaleRule, y: ScaleRule) -> bool:
    return x.applied == y.applied and (x.applied != "product" or x == y)


def _values(x: np.ndarray, rule: ScaleRule, name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return (values in float64, encodings where a unit takes them)."""
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
        raise ValueError(f"{name} holds {np.count_nonzero(wrong)} factors that are NaN or infinite, the first at {at}")
    return values, bits


def _unfitting(name: str, side: str, size: int, k: int, x: np.ndarray, rules: Sequence[ScaleRule]) -> str:
    operand = f"A of {size} x {k}" if side == "a" else f"B of {k} x {size}"
    hint = ""
    if x.ndim == 2 and any(rule.fits(side, size, k, x.shape[::-1]) for rule in rules):
        hint = f". Its transpose fits: pass {name}.T"
    elif any(rule.fits(side, size, k, x.shape) for rule in RULES if rule not in rules):
        other = next(rule for rule in RULES if rule not in rules and rule.fits(side, size, k, x.shape))
        hint = f". The shape is that of {other.name}: name a unit that takes them" if other.applied == "product" else ""
    kind = "" if _kind(x) == "numbers" else f" and type {x.dtype}"
    shapes = "; ".join(_row(rule, side, size, k) for rule in rules)
    return f"{name} has shape {x.shape}{kind}, which fits no rule for {operand}: {shapes}{hint}"


def _row(rule: ScaleRule, side: str, size: int, k: int) -> str:
    return f"{rule.name}: {rule.shape(side, size, k)} {rule.format}"
