"""Explains one result of a special function step by step: table lookup, sum, truncation and error."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import mpmath
import numpy as np

import tensorcore_models as tcm
from tensorcore_models.functions import Function, datapath, on_integers
from tensorcore_models.functions.tables import UNITS, tables

#: Exact functions that special functions approximate, by the first part of their names.
_EXACT: dict[str, Callable] = {
    "ex2": lambda x: mpmath.mpf(2) ** x, "exp2f": lambda x: mpmath.mpf(2) ** x, "lg2": lambda x: mpmath.log(x, 2),
    "rcp": lambda x: 1 / x, "rsqrt": lambda x: 1 / mpmath.sqrt(x), "rsqrtf": lambda x: 1 / mpmath.sqrt(x), "sqrt": mpmath.sqrt,
    "sin": mpmath.sin, "cos": mpmath.cos, "tanh": mpmath.tanh, "tanhf": mpmath.tanh, "expf": mpmath.exp, "__expf": mpmath.exp,
    "sinf": mpmath.sin, "cosf": mpmath.cos, "tanf": mpmath.tan, "logf": mpmath.log, "__logf": mpmath.log, "erff": mpmath.erf,
    "div": lambda x, y: x / y, "cvt": lambda x, *_: x,
}  # fmt: skip
#: Significand bits of results, with the leading bit, and exponent of the smallest normal number; FP32's for other results.
_PRECISION = {"fp16": (11, -14), "bf16": (8, -126), "fp64 high": (21, -1022)}


@dataclass(frozen=True)
class Lookup:
    """`Lookup` holds the steps of the special-function unit for one operand, in integers.

    `total` is F = c0 + c1 x + c2 Q(x) in units of 2^-fraction_bits; for a logarithm it is the exponent `whole` plus F,
    without the last two bits of F. If `replaced`, the operand is special or outside of the tables, and the result is a fixed
    value.
    """

    segment: int
    segments: int
    x: int
    c0: int
    c1: int
    c2: int
    square: int
    total: int
    fraction_bits: int
    scale: int
    significand: int
    table: str
    whole: int | None
    replaced: bool


@dataclass(frozen=True)
class ExplainedInstruction:
    """`ExplainedInstruction` is an instruction with its operands' and result's encodings, and the unit's steps if it
    has any."""

    name: str
    operands: tuple[int, ...]
    result: int
    lookup: Lookup | None


@dataclass(frozen=True)
class FunctionExplanation:
    """`FunctionExplanation` is a result of a function with the instructions that compute it.

    Attributes
    ----------
    function : Function
        The function.
    operands : tuple of float
        Operands, rounded to the function's format.
    operations : tuple of ExplainedInstruction
        Instructions in the order in which they run.
    result : int
        Encoding of the result.
    value : float
        Value of the result.
    exact : float or None
        Exact value of the approximated function; None if it is undefined or infinite, or becomes 0 or infinity in a double.
    error : float or None
        Error of the result in units in the last place of a result of the magnitude of `exact`.
    """

    function: Function
    operands: tuple[float, ...]
    operations: tuple[ExplainedInstruction, ...]
    result: int
    value: float
    exact: float | None
    error: float | None

    def to_dict(self) -> dict:
        """Return all fields as JSON-compatible values."""
        found = asdict(self)
        found["function"] = f"{self.function.arch}:{self.function.name}"
        found["evidence"] = self.function.evidence
        return found

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self):
        given = ", ".join(f"{x:.9g}" for x in self.operands)
        yield f"{self.function.arch}:{self.function.name} of {given}"
        yield f"evidence: {self.function.evidence}"
        for operation in self.operations:
            words = ", ".join(f"{x:#010x}" for x in operation.operands)
            yield f"\n{operation.name}({words}) = {operation.result:#010x}"
            if operation.lookup is not None:
                yield from _lookup_lines(operation.lookup)
        digits = 2 * self.function.result_dtype.itemsize
        yield f"\nresult  {self.value:.9g} ({self.result:#0{digits + 2}x})"
        if self.exact is not None and self.error is not None:
            yield f"exact   {self.exact:.12g}, so the error is {self.error:+.3f} units in the last place"


def _lookup_lines(found: Lookup):
    if found.replaced:
        yield "  the operand is special or outside of the tables, so the result is a fixed value"
        return
    unit = 2.0**-found.fraction_bits
    yield f"  segment  {found.segment} of {found.segments} in table {found.table}, x = {found.x} of 2^17"
    yield f"  c0 c1 c2 {found.c0:#x}, {found.c1}, {found.c2}"
    yield f"  square   Q(x) = {found.square}; x^2 / 2^19 = {found.x**2 / 2**19:.3f}"
    name = "F" if found.whole is None else f"{found.whole} + F"
    value = f"{found.total:#x} 2^{-found.fraction_bits} = {found.total * unit:.12g}"
    yield f"  sum      F = c0 + c1 x + c2 Q(x); {name} = {value}"
    cut = f"{found.significand:#x}, the rest of F is left out"
    yield f"  cut      {found.significand.bit_length()} leading bits: {cut}; times 2^{found.scale}"


def find_function(arch: str, name: str) -> Function:
    """Return a function by its name; the first part of a name ("ex2") stands for the FP32 instruction that only uses
    the unit."""
    if name in UNITS:
        names = [f.name for f in tcm.list_functions(arch) if f.name in (f"{name}.approx.ftz.f32", f"{name}.approx.f32")]
        name = names[0] if names else name
    return tcm.get_function(arch, name)


def explain_function(function: Function, operands: Sequence[float]) -> FunctionExplanation:
    """Return one result of a function step by step.

    Parameters
    ----------
    function : Function
        A function from :func:`tensorcore_models.get_function`; for packed operands, one number is computed.
    operands : sequence of float
        One number for each operand, which is rounded to the operands' format first.

    Raises
    ------
    ValueError
        If the number of operands is wrong, or the function converts two numbers into a pair.
    """
    one = _unpacked(function)
    if one.row.packed:
        raise ValueError(
            f"{one.name} converts two numbers into a pair, expected a function with one result; name a scalar conversion"
        )
    if len(operands) != len(one.row.operands):
        raise ValueError(f"got {len(operands)} numbers, expected {len(one.row.operands)} for {one.name}")
    high = one.row.operand == "fp64 high"
    fmt = "fp64" if high else "fp32" if one.row.operand == "word" else one.row.operand
    codes = [int(tcm.encode(x, fmt)) >> (32 if high else 0) for x in operands]
    numbers = tuple(_number(code, fmt, high) for code in codes)
    result = int(one.bits(*codes))
    value = float(one.values(*numbers).reshape(-1)[0])
    operations = tuple(
        ExplainedInstruction(
            step.operation,
            tuple(given),
            int(got),
            _lookup(step.operation, given[0]) if step.operation in UNITS else None,
        )
        for step, given, got in one.steps(*codes)
    )
    exact = _exact(one, numbers)
    error = (
        None
        if exact is None or not np.isfinite(value)
        else _error(value, exact, *_PRECISION.get(one.row.result, (24, -126)))
    )
    return FunctionExplanation(one, numbers, operations, result, value, None if exact is None else float(exact), error)


def _number(code: int, fmt: str, high: bool) -> float:
    """Return the value of an encoding, or of the upper word of a double."""
    word = np.array(code << 32, np.uint64) if high else np.array(code, tcm.get_format(fmt).container)
    return float(tcm.decode(word, fmt))


def _unpacked(function: Function) -> Function:
    """Return the scalar form of an instruction on packed numbers, or the function itself if it is not packed."""
    name = function.name.replace("f16x2", "f16")
    return tcm.get_function(function.arch, name) if name != function.name else function


def _lookup(name: str, word: int) -> Lookup:
    found = datapath.steps(on_integers, name, word)
    reduced, table = found.reduced, UNITS[name].tables[found.reduced.table]
    c0, c1, c2 = found.coefficients
    fields = datapath.fields(on_integers, UNITS[name], word)
    replaced = fields.nan or any(condition for condition, _ in reduced.fixed)
    finer = tables()[UNITS[name].tables[0]].fraction_bits - tables()[table].fraction_bits
    return Lookup(
        reduced.segment, len(tables()[table].rows), reduced.x, c0, c1, c2, found.square, found.total,
        found.fraction_bits - finer, reduced.scale - finer, found.cut, table, reduced.whole, bool(replaced),
    )  # fmt: skip


def _exact(function: Function, numbers: Sequence[float]) -> mpmath.mpf | None:
    exact = _EXACT.get(function.name.split(".")[0])
    if exact is None or not all(np.isfinite(numbers)):
        return None
    with mpmath.workdps(60):
        try:
            value = exact(*map(mpmath.mpf, numbers))
        except (ZeroDivisionError, ValueError):
            return None
        return value if isinstance(value, mpmath.mpf) and 0 < abs(float(value)) < math.inf else None


def _error(value: float, exact: mpmath.mpf, precision: int, least: int) -> float:
    with mpmath.workdps(60):
        exponent = max(mpmath.frexp(exact)[1] - 1, least)
        return float((mpmath.mpf(value) - exact) / mpmath.ldexp(1, exponent + 1 - precision))
