"""Reference of the algorithms made of IEEE operations: SFMA, AMX lanes, GPS, BFMMLA, and the late addition of c."""

from ..accumulators import Accumulator, GroupPairwiseSum, LanedFMA, PairRoundOddSum, SequentialFMA
from ..formats import FORMATS, Format
from ..formats.exact_rounding import round_to_bits, shift_right_rounded
from .operands import Operand, decode, flushed, multiply, special_bits, special_result, x86_nan_bits, zero_bits

FP32 = FORMATS["fp32"]

#: Which results become zero: none; those that are encoded as subnormal numbers; those that are below the smallest normal
#: number when they are rounded with an unbounded exponent.
KEEP, SUBNORMAL, TINY = range(3)


def _rounded_sum(
    terms: list[Operand],
    fmt: Format,
    spec: Accumulator,
    rounding: str,
    *,
    flush: int,
    saturate: bool,
    to_inf: bool,
    operands: list[Operand] | None = None,
) -> int:
    """IEEE sum of exact numbers, rounded once; signed zeros by IEEE 754-2019, 6.3.

    `operands`, by default `terms`, are the operation's, in the order in which x86 looks for a NaN among them.
    """
    special = special_result(terms)
    if special:
        if saturate:  # Ascend 910A: NaN becomes 0, infinity the largest finite number
            return 0 if special == "nan" else fmt.max_bits | (fmt.sign_bit if special == "-inf" else 0)
        if special == "nan" and spec.nan == "x86":
            return x86_nan_bits(terms if operands is None else operands, fmt)
        return special_bits(special, fmt, spec)
    unit = min(x.exponent for x in terms)
    total = sum((-x.significand if x.negative else x.significand) << (x.exponent - unit) for x in terms)
    if total == 0:
        all_negative = all(x.negative for x in terms) if all(x.significand == 0 for x in terms) else False
        mixed = not all_negative and (rounding == "rd") and any(x.negative for x in terms)
        return zero_bits(all_negative or mixed, fmt)
    if flush == TINY and _is_tiny(total, unit, fmt, rounding):
        return zero_bits(total < 0, fmt)
    bits = round_to_bits(
        total < 0, abs(total), unit, fmt, rounding, saturate=saturate, overflow_to_inf=to_inf and not saturate
    )
    smallest = 1 << (fmt.fraction_bits + fmt.padding_bits)
    if flush == SUBNORMAL and bits & fmt.magnitude_mask < smallest and fmt.decode_exact(bits).kind == "finite":
        return zero_bits(total < 0, fmt)
    return bits


def _is_tiny(total: int, unit: int, fmt: Format, rounding: str) -> bool:
    """Whether total * 2^unit, rounded to the format's precision with an unbounded exponent, is below its normal numbers."""
    quantum = abs(total).bit_length() - 1 + unit - fmt.fraction_bits
    rounded = shift_right_rounded(abs(total), quantum - unit, rounding, total < 0)
    return rounded.bit_length() - 1 + quantum < fmt.emin


def add(
    x: int,
    x_format: Format,
    y: int,
    y_format: Format,
    fmt: Format,
    spec: Accumulator,
    rounding: str = "rne",
    *,
    flush: int = KEEP,
    to_inf: bool = False,
) -> int:
    """IEEE addition of two encodings."""
    terms = [decode(x_format, x, spec), decode(y_format, y, spec)]
    return _rounded_sum(terms, fmt, spec, rounding, flush=flush, saturate=False, to_inf=to_inf)


def _fma(
    x: Operand,
    y: Operand,
    z: Operand,
    fmt: Format,
    spec: Accumulator,
    rounding: str,
    *,
    flush: int,
    saturate: bool = False,
) -> int:
    return _rounded_sum(
        [multiply(x, y), z], fmt, spec, rounding, flush=flush, saturate=saturate, to_inf=False, operands=[x, y, z]
    )


def sequential_fma(
    spec: SequentialFMA, a: list[Operand], b: list[Operand], c: int, formats: tuple[Format, Format, Format, Format]
) -> int:
    """Chain of fused multiply-adds in the output format (xie-mma-sim, Algorithm 1)."""
    a_format, b_format, c_format, d_format = formats
    total, total_format = c, c_format
    for k in _order(len(a), spec.pair_order):
        x, y, z = a[k], b[k], decode(total_format, total, spec)
        if spec.flush_inputs:
            x, y, z = flushed(x, a_format.emin), flushed(y, b_format.emin), flushed(z, total_format.emin)
        total = _fma(
            x, y, z, d_format, spec, spec.rounding, flush=TINY if spec.flush_outputs else KEEP, saturate=spec.saturate
        )
        total_format = d_format
    return total


def _order(count: int, pair_order: str) -> list[int]:
    if pair_order == "ascending":
        return list(range(count))
    return [k for pair in range(0, count, 2) for k in (pair + 1, pair) if k < count]


def laned_fma(spec: LanedFMA, a: list[Operand], b: list[Operand], c: int, formats: tuple[Format, ...]) -> int:
    """Interleaved FMA chains from zero, summed, then added to c (Intel SDM, TDPBF16PS)."""
    a_format, b_format, c_format, d_format = formats
    lanes = []
    for lane in range(spec.lanes):
        total = 0
        for x, y in zip(a[lane :: spec.lanes], b[lane :: spec.lanes], strict=True):
            if spec.flush_inputs:
                x, y = flushed(x, a_format.emin), flushed(y, b_format.emin)
            total = _fma(x, y, decode(d_format, total, spec), d_format, spec, "rne", flush=TINY)
        lanes.append(total)
    total = lanes[0]
    for lane in lanes[1:]:
        total = add(total, d_format, lane, d_format, d_format, spec, flush=TINY)
    start = flushed(decode(c_format, c, spec), c_format.emin)
    return _rounded_sum(
        [start, decode(d_format, total, spec)], d_format, spec, "rne", flush=TINY, saturate=False, to_inf=False
    )


def group_pairwise_sum(
    spec: GroupPairwiseSum, a: list[Operand], b: list[Operand], c: int, formats: tuple[Format, ...]
) -> int:
    """FP32 products, a tree of FP32 additions over each group, then c (xie-mma-sim, Algorithms 2 and 3)."""
    a_format, b_format, c_format, d_format = formats
    if spec.flush_input != "none":
        floors = (a_format.emin, b_format.emin) if spec.flush_input == "format" else (FP32.emin, FP32.emin)
        a = [_flushed_to_positive(x, floors[0]) for x in a]
        b = [_flushed_to_positive(x, floors[1]) for x in b]
    flush = SUBNORMAL if spec.flush_results else KEEP
    products = [_product(x, y, d_format, spec, "rne", flush) for x, y in zip(a, b, strict=True)]
    total = _tree(products, spec.group, d_format, spec)
    return add(c, c_format, total, d_format, d_format, spec, flush=flush)


def flushed_addend(spec: GroupPairwiseSum, c: int, c_format: Format) -> int:
    """The c of an instruction: zeros, and what is flushed, are +0."""
    if spec.flush_input == "none":
        return c
    return 0 if _flushed_to_positive(decode(c_format, c, spec), FP32.emin).is_zero else c


def _flushed_to_positive(x: Operand, below: int) -> Operand:
    y = flushed(x, below)
    return y._replace(negative=False) if y.is_zero else y


def _product(
    x: Operand, y: Operand, fmt: Format, spec: Accumulator, rounding: str, flush: int, to_inf: bool = False
) -> int:
    """IEEE product; a zero keeps the product's sign."""
    return _rounded_sum([multiply(x, y)], fmt, spec, rounding, flush=flush, saturate=False, to_inf=to_inf)


def _tree(terms: list[int], places: int, fmt: Format, spec: GroupPairwiseSum) -> int:
    """Binary tree over `places` neighbours, of which the first are present."""
    if len(terms) == 1:
        return terms[0]
    middle = places // 2
    left = _tree(terms[:middle], middle, fmt, spec)
    if len(terms) <= middle:
        return left
    right = _tree(terms[middle:], places - middle, fmt, spec)
    return add(left, fmt, right, fmt, fmt, spec, flush=SUBNORMAL if spec.flush_results else KEEP)


def pair_round_odd(
    spec: PairRoundOddSum, a: list[Operand], b: list[Operand], c: int, formats: tuple[Format, ...]
) -> int:
    """Unfused sum of a pair of products, added to the accumulator, all rounded to odd (Arm ARM, BFMMLA)."""
    a_format, b_format, c_format, d_format = formats
    products = [
        _product(flushed(x, a_format.emin), flushed(y, b_format.emin), d_format, spec, "ro", SUBNORMAL, to_inf=True)
        for x, y in zip(a, b, strict=True)
    ]
    pair = products[0]
    for product in products[1:]:
        pair = add(pair, d_format, product, d_format, d_format, spec, "ro", flush=SUBNORMAL, to_inf=True)
    start = flushed(decode(c_format, c, spec), c_format.emin)
    terms = [start, decode(d_format, pair, spec)]
    return _rounded_sum(terms, d_format, spec, "ro", flush=SUBNORMAL, saturate=False, to_inf=True)
