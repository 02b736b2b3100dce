"""This module holds number formats as rows of data.

A :class:`Format` is a frozen record of a few fields, from which all its other properties are derived. Encodings are plain
integers in this module (see :meth:`Format.decode_exact`); :mod:`tensorcore_models.formats.rounding` handles arrays of
encodings.

Sources: IEEE 754-2019 (binary64/32/16); NVIDIA's PTX ISA (tf32, bf16, ue4m3); CANN's --allow_hf32 (hf32); OCP 8-bit
Floating Point (e4m3fn, e5m2); OCP Microscaling Formats (e3m2, e2m3, e2m1, ue8m0); Noune et al. 2022 (the FNUZ formats);
ml_dtypes (e4m3, e3m4); HabanaAI/Intel_Gaudi3_Software (ufp16); asc-devkit,
HF32.md (hf32_950); arXiv 2409.16626 (hifloat8). Other spellings are in :mod:`tensorcore_models.formats.names`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

import ml_dtypes
import numpy as np

#: Meaning of the encodings that are not finite numbers.
#: ``ieee``: the top exponent holds infinities and NaNs. ``fn``: only all ones is NaN, and there is no infinity. ``fnuz``: only
#: the encoding of -0 is NaN, and there is no infinity and no -0. ``finite``: all encodings are numbers. ``scale``: all ones is
#: NaN, and there is no zero and no sign (ue8m0). ``tapered``: the widths of exponent and fraction depend on the number.
Specials = Literal["ieee", "fn", "fnuz", "finite", "scale", "tapered"]


class Decoded(NamedTuple):
    """`Decoded` is a decoded number; its value is (-1)^negative * significand * 2^exponent if `kind` is "finite"."""

    kind: Literal["finite", "inf", "nan"]
    negative: bool
    significand: int  # integer, hidden bit included; for NaN the fraction bits (the payload)
    exponent: int  # of the significand's unit in the last place


@dataclass(frozen=True)
class Format:
    """`Format` is a binary floating-point format.

    Parameters
    ----------
    name : str
        Usual name of the format, in lower case.
    exponent_bits, fraction_bits : int
        Widths of the exponent field and of the stored fraction (the precision is ``fraction_bits + 1``).
    bias : int
        Exponent bias: a normal number is ``1.f * 2**(field - bias)``.
    specials : {"ieee", "fn", "fnuz", "finite", "scale", "tapered"}
        Encodings that are not finite numbers. "ieee": the largest exponent field has infinities and NaN. "fn": only all ones
        is NaN; no infinity. "fnuz": only the encoding of -0 is NaN; no infinity. "finite": none. "scale": only all ones is
        NaN, and there is neither zero nor sign (ue8m0). "tapered": the widths of exponent and fraction depend on the number.
    signed : bool
        Whether there is a sign bit.
    padding_bits : int
        Bits below the fraction that are stored and ignored (13 for tf32, 12 for hf32 in 32-bit containers).
    dtype_name : str
        Name of the numpy or ml_dtypes type of its values; empty if there is none.

    Raises
    ------
    ValueError
        If the widths are negative, need more than 64 bits, or exceed the range that the kernels handle.
    """

    name: str
    exponent_bits: int
    fraction_bits: int
    bias: int
    specials: Specials = "ieee"
    signed: bool = True
    padding_bits: int = 0
    dtype_name: str = ""

    #: In a format without fields, the number that would follow the largest number.
    beyond: ClassVar[int] = 0

    def __post_init__(self):
        if self.exponent_bits < 1 or self.fraction_bits < 0 or self.padding_bits < 0:
            raise ValueError(
                f"format {self.name!r}: exponent_bits {self.exponent_bits} must be at least 1, fraction_bits "
                f"{self.fraction_bits} and padding_bits {self.padding_bits} at least 0"
            )
        if self.bits > 64:
            raise ValueError(f"format {self.name!r} needs {self.bits} bits, expected at most 64")
        if self.exponent_bits > 30 or self.exponent_bits + self.fraction_bits > 63 or abs(self.bias) > 1 << 31:
            raise ValueError(
                f"format {self.name!r}: exponent_bits {self.exponent_bits} may be at most 30, exponent and "
                f"fraction together at most 63 bits, and the bias {self.bias} at most 2**31 in magnitude"
            )
        if self.specials == "scale" and (self.signed or self.fraction_bits):
            raise ValueError(
                f"format {self.name!r}: signed is {self.signed} and fraction_bits is {self.fraction_bits}, "
                "expected False and 0 with specials 'scale'"
            )
        if self.specials == "fnuz" and not self.signed:
            raise ValueError(
                f"format {self.name!r}: signed is False, expected True with specials 'fnuz', whose NaN is the encoding of -0"
            )
        if self.specials == "ieee" and (self.exponent_bits < 2 or self.fraction_bits < 1):
            raise ValueError(
                f"format {self.name!r}: exponent_bits is {self.exponent_bits} and fraction_bits is {self.fraction_bits}, "
                "expected at least 2 and 1 with specials 'ieee'"
            )

    @property
    def has_fields(self) -> bool:
        """Return whether exponent and fraction have the same bit positions in all encodings."""
        return self.specials != "tapered"

    # -- widths
    @cached_property
    def bits(self) -> int:
        """Return the width of an encoding in bits, sign and padding included."""
        return int(self.signed) + self.exponent_bits + self.fraction_bits + self.padding_bits

    @property
    def precision(self) -> int:
        """Return the number p of significand bits, including the hidden bit."""
        return self.fraction_bits + 1

    @cached_property
    def container(self) -> np.dtype:
        """Return the unsigned integer type that holds one encoding."""
        return np.dtype(next(f"u{size}" for size in (1, 2, 4, 8) if 8 * size >= self.bits))

    @cached_property
    def dtype(self) -> np.dtype | None:
        """Return the numpy or ml_dtypes type of the values, None if there is none; tf32 and hf32 values are float32."""
        if not self.dtype_name:
            return None
        return np.dtype(getattr(ml_dtypes, self.dtype_name, self.dtype_name))

    # -- exponent range
    @property
    def has_subnormals(self) -> bool:
        """Return whether exponent field 0 means zero and subnormal numbers."""
        return self.specials != "scale"

    @cached_property
    def emin(self) -> int:
        """Return the exponent of the smallest normal number."""
        return 1 - self.bias if self.has_subnormals else -self.bias

    @cached_property
    def emax(self) -> int:
        """Return the exponent of the largest finite number."""
        top = (1 << self.exponent_bits) - 1 - self.bias
        if self.specials == "ieee" or self.specials == "scale" or (self.specials == "fn" and self.fraction_bits == 0):
            return top - 1
        return top

    @cached_property
    def quantum_exponent(self) -> int:
        """Return the exponent of the unit in the last place of the smallest normal number."""
        return self.emin - self.fraction_bits

    # -- specials
    @cached_property
    def has_inf(self) -> bool:
        """Return whether the format has encodings of infinity."""
        return self.specials == "ieee"

    @cached_property
    def has_nan(self) -> bool:
        """Return whether the format has an encoding of NaN."""
        return self.specials != "finite"

    @cached_property
    def clamps(self) -> bool:
        """Return whether overflow gives the largest finite number by default, as the format has neither infinity nor NaN.

        OCP Microscaling Formats v1.0 prescribes this for conversions to its element formats, among them fp6 and fp4.
        """
        return self.specials == "finite"

    @cached_property
    def has_negative_zero(self) -> bool:
        """Return whether -0 has an encoding of its own."""
        return self.signed and self.specials in ("ieee", "fn", "finite")

    @cached_property
    def sign_bit(self) -> int:
        """Return the sign bit as a mask over encodings, 0 for an unsigned format."""
        return 1 << (self.bits - 1) if self.signed else 0

    @cached_property
    def magnitude_mask(self) -> int:
        """Return the mask over encodings of all bits except the sign bit and ignored bits."""
        return ((1 << (self.exponent_bits + self.fraction_bits)) - 1) << self.padding_bits

    @cached_property
    def exponent_mask(self) -> int:
        """Return the mask of the exponent field over encodings, which also encodes +infinity in formats that have it."""
        return ((1 << self.exponent_bits) - 1) << (self.fraction_bits + self.padding_bits)

    @cached_property
    def inf_bits(self) -> int | None:
        """Return the encoding of +infinity, None for a format without infinity."""
        return self.exponent_mask if self.has_inf else None

    @cached_property
    def nan_bits(self) -> int | None:
        """Return the encoding of the quiet NaN that conversions produce, None for a format without NaN."""
        if self.specials == "ieee":
            return self.exponent_mask | (1 << (self.fraction_bits + self.padding_bits - 1))
        if self.specials == "fnuz":
            return self.sign_bit
        if self.specials in ("fn", "scale"):
            return self.magnitude_mask
        return None

    def nan_encoding(self) -> int:
        """Return :attr:`nan_bits` of a format that has NaN.

        Raises
        ------
        ValueError
            If the format has no NaN.
        """
        if self.nan_bits is None:
            raise ValueError(f"{self.name} has no NaN: use a format that has one")
        return self.nan_bits

    @cached_property
    def max_bits(self) -> int:
        """Return the encoding of the largest finite number."""
        top = (1 << (self.exponent_bits + self.fraction_bits)) - 1
        if self.specials == "ieee":
            top = (((1 << self.exponent_bits) - 1) << self.fraction_bits) - 1
        elif self.specials in ("fn", "scale"):
            top -= 1
        return top << self.padding_bits

    # -- values (exact in float64 for every format up to binary64)
    @cached_property
    def max_finite(self) -> float:
        """Return the largest finite value (F_max of the papers)."""
        significand, exponent = self.decode_exact(self.max_bits)[2:]
        return float(np.ldexp(float(significand), exponent))

    @cached_property
    def min_normal(self) -> float:
        """Return the smallest positive normal value (f_min of the papers)."""
        return float(np.ldexp(1.0, self.emin))

    @cached_property
    def min_subnormal(self) -> float:
        """Return the smallest positive value."""
        return float(np.ldexp(1.0, self.quantum_exponent if self.has_subnormals else self.emin))

    @cached_property
    def unit_roundoff(self) -> float:
        """Return u = 2^-precision, the largest relative error of rounding to nearest without underflow."""
        return float(np.ldexp(1.0, -self.precision))

    # -- decoding
    def decode_exact(self, bits: int) -> Decoded:
        """Decode one encoding into exact integers.

        Parameters
        ----------
        bits : int
            Encoding; padding bits are ignored, and so are high bits of unsigned formats stored in wider containers.

        Returns
        -------
        Decoded
            Kind, sign, integer significand and exponent of the unit in the last place; zero has significand 0 and the exponent
            of the smallest subnormal number.
        """
        bits = int(bits)
        negative = bool(bits & self.sign_bit)
        field = (bits >> (self.fraction_bits + self.padding_bits)) & ((1 << self.exponent_bits) - 1)
        fraction = (bits >> self.padding_bits) & ((1 << self.fraction_bits) - 1)
        magnitude = (field << self.fraction_bits) | fraction
        all_ones = (1 << (self.exponent_bits + self.fraction_bits)) - 1
        if self.specials == "ieee" and field == (1 << self.exponent_bits) - 1:
            return Decoded("nan" if fraction else "inf", negative, fraction, 0)
        if (self.specials in ("fn", "scale") and magnitude == all_ones) or (
            self.specials == "fnuz" and negative and magnitude == 0
        ):
            return Decoded("nan", negative, fraction, 0)
        if field == 0 and self.has_subnormals:
            return Decoded("finite", negative, fraction, self.quantum_exponent)
        return Decoded("finite", negative, fraction | (1 << self.fraction_bits), field - self.bias - self.fraction_bits)


class HiFloat8(Format):
    """`HiFloat8` (arXiv 2409.16626) is an 8-bit format of Ascend 950 with tapered precision.

    After the sign, a prefix code, the dot, says how many exponent bits follow; the remaining bits are the fraction:

        dot    exponent bits   exponents           fraction bits
        11     4               +-8 to +-15         1
        10     3               +-4 to +-7          2
        01     2               +-2, +-3            3
        001    1               +-1                 3
        0001   0               0                   3
        0000   0               2^(m - 23), m = 1 to 7 in the last three bits, no fraction

    An exponent is a sign and a magnitude whose leading bit is not stored. Code 0 is zero (there is no -0), 0x80 is NaN, and
    0x6F and 0xEF, in the place of 1.5 x 2^15, are infinities. `fraction_bits` is that of numbers near 1, and numbers without a
    fraction count as subnormal. fp16 and bf16 can represent every number of HiFloat8.
    """

    bits, emax, quantum_exponent = 8, 15, -22  # type: ignore[assignment]
    beyond = 3 << 14
    has_inf, has_nan, has_negative_zero = True, True, False  # type: ignore[assignment]
    sign_bit, magnitude_mask, exponent_mask, inf_bits, nan_bits, max_bits = 0x80, 0x7F, 0x6F, 0x6F, 0x80, 0x6E  # type: ignore[assignment]

    def decode_exact(self, bits: int) -> Decoded:
        """Decode one encoding as :meth:`Format.decode_exact` does; the significand has the fraction bits of this encoding."""
        negative, magnitude = bool(bits & 0x80), int(bits) & 0x7F
        if magnitude == 0:
            return Decoded("nan" if negative else "finite", negative, 0, 0 if negative else self.quantum_exponent)
        if magnitude == self.inf_bits:
            return Decoded("inf", negative, 0, 0)
        if magnitude < 8:
            return Decoded("finite", negative, 1, magnitude - 23)
        length, width = next((n, w) for dot, n, w in _DOTS if magnitude >> 7 - n == dot)
        fraction_bits = 7 - length - width
        field = magnitude >> fraction_bits & (1 << width) - 1
        leading = 1 << width >> 1
        exponent = (field & leading - 1 | leading) * (-1 if field & leading else 1) if width else 0
        significand = magnitude & (1 << fraction_bits) - 1 | 1 << fraction_bits
        return Decoded("finite", negative, significand, exponent - fraction_bits)


#: Prefix codes of HiFloat8 as (dot, length of the dot, exponent bits).
_DOTS = ((0b11, 2, 4), (0b10, 2, 3), (0b01, 2, 2), (0b001, 3, 1), (0b0001, 4, 0))

FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format("fp64", 11, 52, 1023, dtype_name="float64"),
        Format("fp32", 8, 23, 127, dtype_name="float32"),
        Format("tf32", 8, 10, 127, padding_bits=13, dtype_name="float32"),
        Format("hf32", 8, 11, 127, padding_bits=12, dtype_name="float32"),
        Format("hf32_950", 8, 10, 127, padding_bits=13, dtype_name="float32"),
        Format("bf16", 8, 7, 127, dtype_name="bfloat16"),
        Format("fp16", 5, 10, 15, dtype_name="float16"),
        Format("ufp16", 6, 10, 31, signed=False),
        Format("e5m2", 5, 2, 15, dtype_name="float8_e5m2"),
        Format("e4m3fn", 4, 3, 7, "fn", dtype_name="float8_e4m3fn"),
        Format("e5m2fnuz", 5, 2, 16, "fnuz", dtype_name="float8_e5m2fnuz"),
        Format("e4m3fnuz", 4, 3, 8, "fnuz", dtype_name="float8_e4m3fnuz"),
        Format("e4m3", 4, 3, 7, dtype_name="float8_e4m3"),
        Format("e3m4", 3, 4, 3, dtype_name="float8_e3m4"),
        Format("e3m2", 3, 2, 3, "finite", dtype_name="float6_e3m2fn"),
        Format("e2m3", 2, 3, 1, "finite", dtype_name="float6_e2m3fn"),
        Format("e2m1", 2, 1, 1, "finite", dtype_name="float4_e2m1fn"),
        Format("ue8m0", 8, 0, 127, "scale", signed=False, dtype_name="float8_e8m0fnu"),
        Format("ue4m3", 4, 3, 7, "fn", signed=False),
        HiFloat8("hifloat8", 5, 3, 16, "tapered"),
    )
}


@dataclass(frozen=True)
class IntegerFormat:
    """`IntegerFormat` is a two's complement or unsigned integer format of an integer matrix unit."""

    name: str
    bits: int
    signed: bool

    @cached_property
    def container(self) -> np.dtype:
        """Return the unsigned integer type that holds one encoding."""
        return np.dtype(next(f"u{size}" for size in (1, 2, 4, 8) if 8 * size >= self.bits))

    @cached_property
    def dtype(self) -> np.dtype:
        """Return the numpy type of the values; 4-bit values are stored as 8-bit integers."""
        return np.dtype(("i" if self.signed else "u") + str(self.container.itemsize))

    @property
    def minimum(self) -> int:
        """Return the smallest value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def maximum(self) -> int:
        """Return the largest value."""
        return (1 << (self.bits - int(self.signed))) - 1

    def decode_integer(self, bits: int) -> int:
        """Return the value of one encoding."""
        bits = int(bits) & ((1 << self.bits) - 1)
        return bits - (1 << self.bits) if self.signed and bits >> (self.bits - 1) else bits


INTEGER_FORMATS: dict[str, IntegerFormat] = {
    row.name: row
    for row in (
        IntegerFormat("s4", 4, True),
        IntegerFormat("u4", 4, False),
        IntegerFormat("s8", 8, True),
        IntegerFormat("u8", 8, False),
        IntegerFormat("s32", 32, True),
    )
}
