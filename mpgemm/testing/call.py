"""This module reads parts of a kernel's call in a test: its operands and result, alpha and beta, the rows to check."""

from typing import Any, NamedTuple

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds.populations import evenly
from mpgemm.frameworks.multiplier import Multiplier
from mpgemm.recovery.engines import scaled_engine
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.scaling import Scaling
from tensorcore_models.formats import Format, IntegerFormat, get_format
from tensorcore_models.formats.rounding import round_to
from tensorcore_models.formats.tf32_roundings import tf32_owners

#: Formats of integer operands by their types.
INTEGERS = {name: get_format(fmt) for name, fmt in {"int8": "s8", "uint8": "u8", "int4": "s4", "uint4": "u4"}.items()}


class KernelEnds(NamedTuple):
    """`KernelEnds` computes RN(alpha D) + RN(beta C) of a sum D in FP32."""

    alpha: float
    beta: float


def check_tf32(arrays: list[np.ndarray]) -> None:
    """Raise ValueError if TF32 lacks values of an operand: the library's rounding must be stated, the unit has none."""
    for x, name in zip(arrays, "ab", strict=True):
        values = x.astype(np.float64)
        lost = (np.asarray(round_to(values, "tf32")) != values) & np.isfinite(values)
        if lost.any():
            raise ValueError(
                f"{name}: {np.count_nonzero(lost)} of {lost.size} values are not representable in tf32; state how "
                f"the kernel's library rounds these values with input_rounding= (--input-rounding): {tf32_owners()}"
            )


def ends_of(alpha: Any, beta: Any, c: Any, scale_a: Any, scale_b: Any) -> KernelEnds | None:
    """Return the factors of the product and of C, or None if both are 1.

    Raises TypeError or ValueError if they are no FP32 numbers, or do not fit the other options.
    """
    for value, name in ((alpha, "alpha"), (beta, "beta")):
        if isinstance(value, bool) or np.ndim(value) or not np.isreal(value):
            raise TypeError(f"{name} must be one number, got {value!r}")
        if not np.isfinite(np.float32(value)):
            raise ValueError(f"{name} must be a finite FP32 number, got {value!r}")
    found = KernelEnds(float(np.float32(alpha)), float(np.float32(beta)))
    if found == (1.0, 1.0):
        return None
    if found.beta != 1 and c is None:
        raise ValueError("got beta without c: give c, or leave beta out")
    if found.alpha != 1 and (scale_a is not None or scale_b is not None):
        raise ValueError("got alpha together with scales: multiply alpha into scale_a, and leave alpha out")
    return found


def integer_weights(arrays: list[np.ndarray], scale_b: Any) -> Format | None:
    """Return integer weights of a 16-bit A as numbers of A's type, which holds them exactly, and the type; None for others.

    Raises TypeError or ValueError if scales are missing, or the integers are wider.
    """
    fmt, name = tcm.format_of_dtype(arrays[0].dtype), arrays[1].dtype.name
    if fmt is None or fmt.name not in ("fp16", "bf16") or "int" not in name:
        return None
    if name not in INTEGERS:
        raise TypeError(f"weights beside {fmt.name} must be int8, uint8, int4 or uint4, got {name}")
    if scale_b is None:
        raise ValueError(
            "b holds integer weights: give scale_b, with one scale for each column, or for groups of 64 or 128 "
            "along k in shape (k / 64, n) or (k / 128, n)"
        )
    arrays[1] = arrays[1].astype(np.float32).astype(arrays[0].dtype)
    return fmt


def format_of_result(out: np.ndarray, others: str = "") -> Format:
    """Return the format of a kernel's result.

    Raises TypeError, naming `others` that fit, if its type is no floating-point type.
    """
    fmt = tcm.format_of_dtype(out.dtype)
    if fmt is None:
        raise TypeError(f"out must have a floating-point format{others}, got {out.dtype}")
    return fmt


def sampled_rows(m: int, rows: int | None) -> np.ndarray | None:
    """Return the evenly spread rows that are checked, or None for all.

    Raises ValueError or TypeError if `rows` is no integer of at least 1.
    """
    if rows is None:
        return None
    if isinstance(rows, bool) or not hasattr(rows, "__index__"):
        raise TypeError(f"rows must be an integer, the number of rows to check, got {rows!r}")
    if rows < 1:
        raise ValueError(f"rows must be at least 1, got {rows}")
    return None if rows >= m else evenly(m, int(rows))


def kernel_engine(engine: Engine | str, a: np.ndarray, b: np.ndarray, scaling: Scaling | None = None) -> Engine:
    """Return the engine of a name for operands of these types, with block scales if the unit multiplies them in."""
    target = Multiplier(engine)
    if target.engine is not None:
        return target.engine
    formats = [INTEGERS.get(x.dtype.name) or tcm.format_of_dtype(x.dtype) for x in (a, b)]
    if None in formats:
        raise TypeError(
            f"a is {a.dtype} and b is {b.dtype}, expected formats of a matrix unit: convert a and b, or name an instruction "
            "'arch:name'"
        )
    names = [fmt.name for fmt in formats if fmt is not None]
    if scaling is not None and scaling.applied == "product":
        rule = scaling.rule_a
        return scaled_engine(target.device, names[0], names[1], rule.format, rule.along or 1, target.path)
    return target.engine_for(*names, *(["s32"] if isinstance(formats[0], IntegerFormat) else []))
