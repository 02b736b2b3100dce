"""This module converts arrays of values to arrays of encodings and back; each element is rounded once.

The kernels are in ``_kernels/conversion/convert.h``; :func:`tensorcore_models.formats.exact_rounding.encode_exact` is the
reference in Python integers.

The rules for special values, in all formats:

- *NaN* stays NaN and becomes quiet. IEEE-like formats keep its sign and the leading bits of its payload (IEEE 754-2019,
  6.2.3); ``fn`` formats keep the sign; other formats have a single NaN. A format without NaN raises an error, or gives the
  largest finite number with ``saturate=True`` (as the PTX conversions to fp4 and fp6 do). With ``nan=value`` every NaN becomes
  that value.
- *Infinity and overflow* give infinity; NaN in formats without infinity; in formats with neither (fp6, fp4) the largest finite
  number of that sign (OCP Microscaling Formats v1.0). ``saturate=True`` gives the largest finite number in every format;
  ``saturate=False`` raises an error in formats with neither infinity nor NaN. On overflow, modes that do not round away from
  zero on that side, and rounding to odd, give the largest finite number (IEEE 754-2019, 7.4).
- *Zero* keeps its sign if the format has -0. A format without zero (ue8m0) raises an error for zero; a tiny number becomes its
  smallest number.
- *Negative numbers* raise an error in unsigned formats; -0 becomes 0.
- With ``subnormals="flush"``, rounded results below the smallest normal number become zero, of the same sign if the format has
  -0.
- With ``rounding="sr"``, the magnitude is rounded up if the first 32 bits of the discarded fraction exceed a draw from
  [0, 2^32). The draw of the element with flat (C order) index i is the upper half of output i + 1 of SplitMix64 (Steele, Lea,
  Flood 2014) whose state starts at mix64(seed), so that results do not depend on threads or array shapes.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from .._kernels.conversion import convert
from ..integers import checked_integer
from ..machine.fp_state import default_fp_state
from ..machine.instruction_sets import isa_level
from ..machine.threads import threads_for
from .exact_rounding import ROUNDINGS, check_rounding, encode_exact
from .interop import as_array, format_of_dtype, is_ml_float, is_ml_integer
from .names import get_float_format
from .rows import Format

#: Number of elements between two checks for pending signals (Ctrl-C).
SLICE = 1 << 24
#: Approximate number of operations of one conversion, for `threads_for`.
_OPERATIONS = 16

_NAN_ERROR, _NAN_CONSTANT, _NAN_SIGNED, _NAN_PAYLOAD = range(4)  # as in convert.h
SUBNORMALS = ("keep", "flush")


@dataclass(frozen=True)
class EncodeTarget:
    """`EncodeTarget` holds a format and the rules of a conversion as the kernel takes them (``mpg_target`` in convert.h)."""

    fraction_bits: int
    padding_bits: int
    bits: int
    is_signed: bool
    is_scale: bool
    quantum_exponent: int
    emax: int
    sign_bit: int
    zero_sign: int
    max_bits: int
    inf_code: int
    inf_sign: int
    inf_error: bool
    saturate: bool
    nan_code: int
    nan_rule: int
    rounding: int
    flush: bool
    scale: int = 0
    seed: int = 0


def _nan_rule(fmt: Format, saturate: bool | None) -> tuple[int, int]:
    if fmt.has_nan:
        if fmt.specials == "ieee":
            return fmt.nan_encoding(), _NAN_PAYLOAD
        return fmt.nan_encoding(), _NAN_SIGNED if fmt.specials == "fn" else _NAN_CONSTANT
    return (fmt.max_bits, _NAN_CONSTANT) if saturate else (0, _NAN_ERROR)


@lru_cache(maxsize=256)
def _target(fmt: Format, rounding: str, saturate: bool | None, flush: bool) -> EncodeTarget:
    nan_code, nan_rule = _nan_rule(fmt, saturate)
    inf_code, inf_sign, inf_error = 0, 0, False
    clamp = fmt.clamps if saturate is None else saturate
    if clamp:
        inf_code, inf_sign = fmt.max_bits, fmt.sign_bit
    elif fmt.has_inf:
        inf_code, inf_sign = fmt.exponent_mask, fmt.sign_bit
    elif fmt.has_nan:
        inf_code, inf_sign = fmt.nan_encoding(), fmt.sign_bit if fmt.specials == "fn" else 0
    else:
        inf_error = True
    same = ("fraction_bits", "padding_bits", "bits", "quantum_exponent", "emax", "sign_bit", "max_bits")
    return EncodeTarget(
        **{name: getattr(fmt, name) for name in same},
        is_signed=fmt.signed,
        is_scale=fmt.specials == "scale",
        zero_sign=fmt.sign_bit if fmt.has_negative_zero else 0,
        inf_code=inf_code,
        inf_sign=inf_sign,
        inf_error=inf_error,
        saturate=clamp,
        nan_code=nan_code,
        nan_rule=nan_rule,
        rounding=ROUNDINGS.index(rounding),
        flush=flush,
    )


def subnormals_flushed(subnormals: str) -> bool:
    """Return whether subnormal results become zero; raises ValueError for an unknown rule."""
    if subnormals not in SUBNORMALS:
        raise ValueError(f"unknown subnormals {subnormals!r}, expected one of {', '.join(SUBNORMALS)}")
    return subnormals == "flush"


def checked_seed(seed: int) -> int:
    """Return a seed of stochastic rounding if it fits in 64 bits, else raise ValueError."""
    seed = checked_integer(seed, "seed")
    if not 0 <= seed < 1 << 64:
        raise ValueError(f"seed must lie in [0, 2**64), got {seed}")
    return seed


def encode_target(
    fmt: Format,
    rounding: str,
    saturate: bool | None,
    nan: float | None,
    subnormals: str,
    seed: int,
    scale_exponent: int = 0,
) -> EncodeTarget:
    """Return the checked rules of one conversion; parameters and errors are those of :func:`encode`."""
    check_rounding(rounding)
    flush = subnormals_flushed(subnormals)
    seed = checked_seed(seed)
    target = _target(fmt, rounding, None if saturate is None else bool(saturate), flush)
    if nan is not None and not np.isnan(nan):
        constant = encode_exact(float(nan), fmt, "rne", saturate=saturate, subnormals=subnormals)
        target = replace(target, nan_code=constant, nan_rule=_NAN_CONSTANT)
    # A source has at most 2200 binades, so scales beyond twice this number plus the format's range have the same effect.
    reach = 5000 + abs(fmt.quantum_exponent) + abs(fmt.emax)
    scale = max(-reach, min(reach, checked_integer(scale_exponent, "scale_exponent")))
    return replace(target, seed=seed, scale=scale)


def source_array(x: Any, name: str = "x") -> np.ndarray:
    """Return `x` as an aligned C-contiguous float32 or float64 array of the same values, possibly `x` itself (do not write)."""
    array = as_array(x, name)
    dtype = array.dtype
    if dtype.kind == "f" and dtype.itemsize > 8:
        raise TypeError(
            f"{name} has dtype {dtype}, which is wider than float64: round {name} first with .astype(float)"
        )
    if dtype.kind in "iu" or is_ml_integer(dtype):
        if is_ml_integer(dtype):
            array = array.astype(np.int8)
        wide = array.astype(np.float64)
        if dtype.itemsize == 8 and array.size:
            # 2^63 and 2^64 are float64 values but exceed int64 and uint64: exclude them before converting back
            fits = wide < 2.0 ** (63 if dtype.kind == "i" else 64)
            if not (fits.all() and (np.where(fits, wide, 0).astype(array.dtype) == array).all()):
                raise ValueError(
                    f"{name} holds integers beyond 2**53 that float64 cannot represent: "
                    f"round {name} first with .astype(float)"
                )
        array = wide
    elif dtype.kind == "f" and dtype.itemsize == 2:
        array = array.astype(np.float32)
    elif is_ml_float(dtype):
        fmt = format_of_dtype(dtype)
        array = array.astype(np.float32) if fmt is None else decode(bits_of(array), fmt, np.float32)
    native = array.dtype.newbyteorder("=")
    # require() drops subclasses and copies only strided, misaligned or byte-swapped arrays; reshape keeps 0-d arrays 0-d
    return np.require(array, dtype=native, requirements=["C", "A"]).reshape(array.shape)


def bits_of(array: np.ndarray) -> np.ndarray:
    """Return the bits of floating-point values as unsigned integers of the same width, in native byte order."""
    swapped = array.dtype.kind == "f" and not array.dtype.isnative
    native = array.astype(array.dtype.newbyteorder("=")) if swapped else array
    return np.ascontiguousarray(native).reshape(array.shape).view(f"u{array.dtype.itemsize}")


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


def _encode_exactly(source: np.ndarray, fmt: Format, target: EncodeTarget) -> np.ndarray | None:
    """Return encodings by a plain copy if `source` has no NaN (CPUs convert NaN differently) and fits in `fmt`, else None."""
    width = {"fp32": 4, "fp64": 8}.get(fmt.name, 0)
    if source.itemsize > width or target.scale or target.flush or target.saturate or np.isnan(source).any():
        return None
    return np.array(source, f"f{width}", order="C").view(fmt.container)


def _encode_source(source: np.ndarray, fmt: Format, target: EncodeTarget, name: str, fail: Any) -> np.ndarray:
    copied = _encode_exactly(source, fmt, target)
    if copied is not None:
        return copied
    out = np.empty(source.shape, fmt.container)
    flat, flat_out, isa = source.reshape(-1), out.reshape(-1), isa_level()
    threads = threads_for(_OPERATIONS * flat.size)
    for start in range(0, flat.size, SLICE):
        part, part_out = flat[start : start + SLICE], flat_out[start : start + SLICE]
        bad = convert.encode(_bytes(part), part.itemsize, _bytes(part_out), out.itemsize, target, start, isa, threads)
        if bad >= 0:
            index = np.unravel_index(start + bad, source.shape)
            where = f"{name}[{', '.join(map(str, index))}]" if index else name
            fail(float(part[bad]), where, start + bad)
    return out


@default_fp_state
def encode(
    x: Any,
    fmt: str | Format,
    rounding: str = "rne",
    saturate: bool | None = None,
    nan: float | None = None,
    subnormals: str = "keep",
    seed: int = 0,
    *,
    scale_exponent: int = 0,
) -> np.ndarray:
    """Return the encodings of values after one rounding to a format.

    Parameters
    ----------
    x : array_like
        Values as float64, float32, float16, ml_dtypes or integers, of any shape, strides and byte order; see
        :func:`tensorcore_models.formats.interop.as_array`. They are never modified.
    fmt : str or Format
        Target format.
    rounding : {"rne", "rna", "rz", "ru", "rd", "ro", "sr", "ra", "rnu", "rnd", "rnz", "rno"}
        Rounding mode.

        - to nearest, ties to even (rne), away from zero (rna), up (rnu), down (rnd), toward zero (rnz), to odd (rno)
        - directed: toward zero (rz), up (ru), down (rd), away from zero (ra)
        - to odd (ro), stochastic (sr)
    saturate : bool, optional
        If True, overflow and infinity give the largest finite number. If False, they give infinity; NaN in a format without
        infinity; an error in a format with neither. The default is False, but in formats with neither (fp6 and fp4) overflow
        and infinity give the largest finite number (OCP Microscaling Formats v1.0), and NaN raises an error.
    nan : float, optional
        Replacement of NaN (0.0 on an Ascend 910A, with ``saturate=True``); by default the rule of the format applies.
    subnormals : {"keep", "flush"}
        Whether rounded results below the smallest normal number are kept or become zero.
    seed : int
        Seed of stochastic rounding, in [0, 2**64).
    scale_exponent : int
        Exponent of the factor 2**scale_exponent by which the values are multiplied exactly before they are rounded.

    Returns
    -------
    numpy.ndarray
        Encodings of dtype ``fmt.container``, in the shape of `x`.

    Raises
    ------
    ValueError
        If an element has no encoding (such as NaN, zero or a negative number in a format without them), an integer has no
        exact float64 value, or a name is unknown.
    TypeError
        If `x` is not an array of real numbers of at most 64 bits.

    Examples
    --------
    >>> import tensorcore_models as tcm
    >>> [hex(b) for b in tcm.encode([1.0, 1e6, -0.0], "fp16")]
    ['0x3c00', '0x7c00', '0x8000']
    >>> tcm.round_to([2.6, 7.5, -100.0], "e2m1").tolist()
    [3.0, 6.0, -6.0]
    """
    row = get_float_format(fmt)
    if not row.has_fields:
        return _encode_tapered(source_array(x), row, rounding, saturate, nan, subnormals, seed, scale_exponent)
    rules: dict[str, Any] = {"saturate": saturate, "nan": nan, "subnormals": subnormals, "seed": seed}
    target = encode_target(row, rounding, **rules, scale_exponent=scale_exponent)

    def fail(value: float, where: str, index: int) -> None:
        try:
            encode_exact(value, row, rounding, **rules, index=index, scale_exponent=scale_exponent)
        except ValueError as error:
            raise ValueError(f"{where} = {value!r}: {error}") from None
        raise RuntimeError(
            f"{where} = {value!r}: the kernel refused a value that the exact reference encodes; please report this"
        )

    return _encode_source(source_array(x), row, target, "x", fail)


def _encode_tapered(
    x: np.ndarray, fmt: Format, rounding: str, saturate, nan, subnormals: str, seed: int, scale: int
) -> np.ndarray:
    """Compute :func:`encode` for a format without fields."""
    from .hifloat8 import encode_hifloat8

    flush = subnormals_flushed(subnormals)
    values = x.astype(np.float64)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        scaled = np.ldexp(values, max(-5000, min(5000, checked_integer(scale, "scale_exponent"))))
    lost = (scaled == 0) & (values != 0) | np.isinf(scaled) & np.isfinite(values)
    far = np.copysign(2.0 ** (1000 if scale > 0 else -1000), values)
    codes = encode_hifloat8(np.where(lost, far, scaled), rounding, bool(saturate), checked_seed(seed))
    if nan is not None and not np.isnan(nan):
        codes[np.isnan(values)] = encode_hifloat8(np.array(float(nan)), "rne", bool(saturate))
    if flush:
        codes[(codes & 0x7F < 8) & (codes != fmt.nan_encoding())] = 0
    return codes


@lru_cache(maxsize=64)
def _value_table(fmt: Format, dtype: np.dtype) -> np.ndarray | None:
    """Return the values of all encodings of an 8- or 16-bit format; None for other widths, or if `dtype` lacks a value."""
    if not fmt.has_fields:
        return _exact_values(fmt, dtype)
    if fmt.bits not in (8, 16):
        return None
    codes = np.arange(1 << fmt.bits, dtype=fmt.container)
    out = np.empty(codes.shape, dtype)
    if convert.decode(_bytes(codes), codes.itemsize, _bytes(out), out.itemsize, fmt, 1) >= 0:
        return None  # an encoding has no value of that type: decode one by one to find it
    out.setflags(write=False)
    return out


def _exact_values(fmt: Format, dtype: np.dtype) -> np.ndarray:
    """Return the values of all encodings from the exact reference."""
    special = {"nan": np.nan, "inf": np.inf}
    found = [fmt.decode_exact(code) for code in range(1 << fmt.bits)]
    sizes = [special.get(x.kind, x.significand * 2.0**x.exponent) for x in found]
    out = np.where([x.negative and x.kind != "nan" for x in found], np.negative(sizes), sizes).astype(dtype)
    out.setflags(write=False)
    return out


def _checked_bits(bits: Any, fmt: Format) -> np.ndarray:
    array = np.asarray(bits)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"expected integer encodings, got dtype {array.dtype}: encode values by encode, or view their bits by "
            f".view({fmt.container})"
        )
    if array.dtype.newbyteorder("=") != fmt.container:
        wrong = (array < 0) | (array > (1 << fmt.bits) - 1)
        if wrong.any():
            raise ValueError(
                f"{int(array[wrong][0])} is not an encoding of {fmt.name}, expected 0 to {(1 << fmt.bits) - 1}"
            )
    return np.require(array, dtype=fmt.container, requirements=["C", "A"]).reshape(array.shape)


@default_fp_state
def decode(bits: Any, fmt: str | Format, dtype: Any = np.float64) -> np.ndarray:
    """Return the exact values of encodings.

    Parameters
    ----------
    bits : array_like of int
        Encodings of type ``fmt.container``, or of any other integer type with values in [0, 2**fmt.bits). The low 13 bits of
        tf32 are ignored; nonzero bits above the format's width are an error.
    fmt : str or Format
        Format of the encodings.
    dtype : dtype
        Type of the result: float64 (default), float32, or the type of a format (float16, ml_dtypes) that has all the values.

    Returns
    -------
    numpy.ndarray
        Values in the shape of `bits`. NaN is quiet and keeps its sign and leading payload bits if the format has them.

    Raises
    ------
    ValueError
        If `dtype` cannot represent a value, or an integer is not an encoding.
    TypeError
        If `bits` is not an integer array or `dtype` not a floating-point type.
    """
    row, dtype = get_float_format(fmt), np.dtype(dtype).newbyteorder("=")
    codes = _checked_bits(bits, row)
    if dtype not in (np.float32, np.float64):
        return _decode_to_format(codes, row, dtype)
    out = np.empty(codes.shape, dtype)
    table = _value_table(row, dtype)
    flat, flat_out, threads = codes.reshape(-1), out.reshape(-1), threads_for(_OPERATIONS * codes.size)
    for start in range(0, flat.size, SLICE):
        part, part_out = flat[start : start + SLICE], flat_out[start : start + SLICE]
        if table is not None:
            convert.lookup(_bytes(part), codes.itemsize, _bytes(table), _bytes(part_out), out.itemsize, threads)
            continue
        bad = convert.decode(_bytes(part), codes.itemsize, _bytes(part_out), out.itemsize, row, threads)
        if bad >= 0:
            code = int(part[bad])
            if code >> row.bits:
                raise ValueError(f"{code:#x} is not a {row.bits}-bit encoding of {row.name}: its high bits must be 0")
            raise ValueError(f"the {row.name} encoding {code:#x} has no exact {dtype} value: decode to a wider type")
    return out


def _decode_to_format(codes: np.ndarray, fmt: Format, dtype: np.dtype) -> np.ndarray:
    wanted = format_of_dtype(dtype)
    if wanted is None:
        raise TypeError(f"dtype is {dtype}, expected float64, float32, float16 or a floating-point type of ml_dtypes")
    if wanted == fmt:
        return codes.view(dtype)
    values = decode(codes, fmt, np.float64)
    result = encode(values, wanted)
    same = (decode(result, wanted) == values) | np.isnan(values)
    if not same.all():
        raise ValueError(f"{dtype} cannot represent the {fmt.name} value {values[~same][0]!r}: decode to a wider type")
    return result.view(dtype)


@default_fp_state
def round_to(
    x: Any,
    fmt: str | Format,
    rounding: str = "rne",
    saturate: bool | None = None,
    nan: float | None = None,
    subnormals: str = "keep",
    seed: int = 0,
) -> np.ndarray:
    """Return values rounded to a format, in their own type.

    Parameters
    ----------
    x, fmt, rounding, saturate, nan, subnormals, seed
        See :func:`encode`.

    Returns
    -------
    numpy.ndarray
        Rounded values in the dtype (float64 for integers) and shape of `x`.

    Raises
    ------
    ValueError
        See :func:`encode`; also if the type of `x` cannot represent a rounded value. A float16 65504 rounded to bf16 is 65536,
        which float16 cannot represent; convert `x` to a wider type first.
    TypeError
        If `x` is not an array of real numbers of at most 64 bits.
    """
    array = as_array(x)
    dtype = (
        array.dtype.newbyteorder("=") if array.dtype.kind == "f" or is_ml_float(array.dtype) else np.dtype(np.float64)
    )
    return decode(encode(array, fmt, rounding, saturate, nan, subnormals, seed), fmt, dtype)
