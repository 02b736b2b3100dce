"""This module checks the arguments of the Ascend cube's products: options, FP32 matrices, schedules, scale exponents."""

from typing import Any, Literal

import numpy as np

from tensorcore_models.formats.rounding import source_array
from tensorcore_models.formats.split_analysis import chosen_scale_exponent
from tensorcore_models.integers import checked_integer

Order = Literal["elementwise", "termwise", "termwise_inplace"]
StepOrder = Literal["sequential", "pairwise", "exact"]
ScaleExponent = int | tuple[int, int] | Literal["auto"]

ORDERS = ("elementwise", "termwise", "termwise_inplace")
#: Step orders in the order of the kernel's numbers.
STEP_ORDERS = ("sequential", "pairwise", "exact")
#: Default rounding inside a cube step, here and in every verdict, the same as in the cube's rows of the catalogue:
#: after every product, which PTO-ISA's ADR-0047 states. The SGEMM-cube paper's figure 9 fits one rounding per step; no bits
#: are published.
DEFAULT_STEP_ORDER: StepOrder = "sequential"
OVERFLOWS = ("saturate", "inf")
#: Limit within which powers of two that scale words and sums are float32 numbers.
LARGEST_SCALE_EXPONENT = 126
#: Range of s in elementwise order, where a word over 2^s stays so far inside FP32 that its products are exact.
ELEMENTWISE_SCALE_EXPONENTS = (-60, 100)


def check_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    """Raise ValueError if an option's value is unknown."""
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")


def fp32_array(x: Any, name: str) -> np.ndarray:
    """Return FP32 values as a C-contiguous float32 array. Raises ValueError if values of a wider type are no FP32 numbers."""
    source = source_array(x, name)
    if source.dtype == np.float32:
        return source
    with np.errstate(over="ignore", under="ignore"):
        narrow = source.astype(np.float32)
    different = int(np.count_nonzero((narrow != source) & ~np.isnan(source)))
    if different:
        raise ValueError(
            f"{name} holds {different} values that FP32 cannot represent: round {name} with .astype(numpy.float32)"
        )
    return narrow


def checked_matrices(a: Any, b: Any, c: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the operands as float32 matrices of shapes (m, k), (k, n) and (m, n); c may be None."""
    a, b = fp32_array(a, "a"), fp32_array(b, "b")
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(f"a and b must be matrices (2 dimensions), got shapes {a.shape} and {b.shape}")
    if a.shape[1] != b.shape[0]:
        raise ValueError(
            f"a has {a.shape[1]} columns, but b has {b.shape[0]} rows (shapes {a.shape} and {b.shape}): they must be equal"
        )
    if c is not None:
        c = fp32_array(c, "c")
        if c.shape != (a.shape[0], b.shape[1]):
            raise ValueError(f"c must have the product's shape {(a.shape[0], b.shape[1])}, got {c.shape}")
    return a, b, c


def checked_group(group: int, step: int) -> int:
    """Return the number of consecutive products of one term in elementwise order, from 1 to the cube step."""
    group = checked_integer(group, "group")
    if not 1 <= group <= step:
        raise ValueError(f"group must lie between 1 and {step} (products in a cube step), got {group}")
    return group


def scale_pair(scale: Any) -> tuple[int, int]:
    """Return (s_a, s_b) of eq. 7 from one integer or two.

    Raises ValueError if a power of two made of them is no float32 number.
    """
    pair = scale if isinstance(scale, tuple | list) else (scale, scale)
    if len(pair) != 2 or any(isinstance(s, bool) or not hasattr(s, "__index__") for s in pair):
        raise TypeError(f"a scale exponent must be an integer or a pair (s_a, s_b) of integers, got {scale!r}")
    first, second = (s.__index__() for s in pair)
    if max(abs(first), abs(second), abs(first + second), abs(first - second)) > LARGEST_SCALE_EXPONENT:
        raise ValueError(
            f"scale exponents, their sum and their difference must lie between -{LARGEST_SCALE_EXPONENT} and "
            f"{LARGEST_SCALE_EXPONENT}, got {scale!r}"
        )
    return first, second


def scale_exponents(scale: ScaleExponent, a: np.ndarray, b: np.ndarray, order: str) -> tuple[int, int]:
    """Return (s_a, s_b) of eq. 7 within the range of the order; "auto" chooses them from the elements."""
    if isinstance(scale, str):
        if scale != "auto":
            raise ValueError(f"scale_exponent must be an integer, a pair or 'auto', got {scale!r}")
        scale = chosen_scale_exponent(a), chosen_scale_exponent(b)
    pair = scale_pair(scale)
    low, high = ELEMENTWISE_SCALE_EXPONENTS
    if order == "elementwise" and not all(low <= s <= high for s in (*pair, sum(pair))):
        raise ValueError(
            f"elementwise order needs scale exponents (and their sum) between {low} and {high}, got {pair}: "
            "use termwise order, or row_scaling"
        )
    return pair
