"""Runs `jax.lax.dot_general` with a named dot algorithm on emulated matrix units.

Each preset of :class:`jax.lax.DotAlgorithmPreset` is a row of :data:`ALGORITHMS`. A callback computes the product on an engine;
transposing and reshaping stay in JAX, and gradients are products on the same engine.
"""

import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import tensorcore_models as tcm
from mpgemm.frameworks.multiplier import Multiplier, Product
from mpgemm.recovered import recovered_gemm
from tensorcore_models.catalogue.devices import DEVICES
from tensorcore_models.formats import get_float_format, get_format
from tensorcore_models.formats.operands import operand_bits, values_of_bits

FP8 = ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz")


@dataclass(frozen=True)
class Algorithm:
    """`Algorithm` holds the meaning of a preset: formats, accumulator, rounding and method."""

    formats: tuple[str, ...]  #: Formats of the operands on the unit; if there are several, the arrays' type decides.
    accumulator: str = "fp32"  #: Format of the sums.
    rounding: str | None = None  #: Rounding of FP32 arrays to the format; None if the library chooses it.
    method: str = ""  #: Recovery method of presets with several products.
    #: Number of products after which Hopper's FP8 sums are added outside, without fast accumulation (measured for cuBLASLt:
    #: tensorcore_models.libraries.scaled_mm).
    promote_on_hopper: int | None = None


ALGORITHMS = {
    "ANY_F8_ANY_F8_F32": Algorithm(FP8, promote_on_hopper=128),
    "ANY_F8_ANY_F8_F32_FAST_ACCUM": Algorithm(FP8),
    "F16_F16_F16": Algorithm(("fp16",), "fp16"),
    "F16_F16_F32": Algorithm(("fp16",)),
    "BF16_BF16_F32": Algorithm(("bf16",), rounding="rne"),
    "BF16_BF16_F32_X3": Algorithm(("fp32",), method="bf16x3"),
    "BF16_BF16_F32_X6": Algorithm(("fp32",), method="bf16x6"),
    "BF16_BF16_F32_X9": Algorithm(("fp32",), method="bf16x9"),
    "TF32_TF32_F32": Algorithm(("tf32",)),
    "TF32_TF32_F32_X3": Algorithm(("fp32",), method="tf32x3"),
    "F32_F32_F32": Algorithm(("fp32",)),
    "F64_F64_F64": Algorithm(("fp64",), "fp64"),
}


@dataclass(frozen=True)
class _Call:
    """`_Call` holds the properties of one product besides its operands."""

    engine: str
    algorithm: str
    rounding: str | None
    out: np.dtype
    gradient: bool = False  #: Whether the result is a gradient, whose overflow raises an error.


def dot_general(
    lhs,
    rhs,
    dimension_numbers,
    precision,
    preferred_element_type=None,
    *,
    engine: str = "h100",
    input_rounding: str | None = None,
):
    """Compute `jax.lax.dot_general` with a named algorithm on an emulated matrix unit.

    Parameters
    ----------
    lhs, rhs : jax.Array
        Operands.
    dimension_numbers : ((lhs contracting, rhs contracting), (lhs batch, rhs batch))
        Dimensions, as for `jax.lax.dot_general`.
    precision : jax.lax.DotAlgorithmPreset or str
        Row of :data:`ALGORITHMS`, by member or name.
    preferred_element_type : dtype, optional
        Type of the result, by default that of lhs, and float32 for 8-bit operands.
    engine : str
        Device ("h100", "h100/mma") or architecture, instruction "arch:name", or "ieee".
    input_rounding : str, optional
        Rounding of FP32 values to TF32: "rne", "rna" or "rz"; needed for TF32_TF32_F32
        (:mod:`tensorcore_models.formats.tf32_roundings` lists the roundings of libraries).

    Returns
    -------
    jax.Array
        Sums of one chain over the contracted dimensions, in the order given, rounded once to the result's type.

    Raises
    ------
    ValueError
        If the precision names no algorithm, the types do not fit it, or the engine is unknown. Inside of `jit`, JAX wraps
        errors of the callback.
    TypeError
        If the engine is not a name.
    """
    name = str(getattr(precision, "name", precision))
    algorithm = ALGORITHMS.get(name)
    if algorithm is None:
        raise ValueError(
            f"precision is {precision!r}, expected one of {', '.join(ALGORITHMS)}; the default precision depends on the "
            "hardware, so it is not simulated"
        )
    lhs, rhs = jnp.asarray(lhs), jnp.asarray(rhs)
    _check_types(name, algorithm, (lhs.dtype, rhs.dtype), input_rounding)
    if not isinstance(engine, str):
        raise TypeError(
            f"engine is a {type(engine).__name__}, expected the name of a device, such as 'h100', or 'arch:name'"
        )
    Multiplier(engine)
    out = np.dtype(preferred_element_type or (np.float32 if lhs.dtype.itemsize == 1 else lhs.dtype))
    call = _Call(engine, name, input_rounding or algorithm.rounding, out)
    (inner_l, inner_r), (batch_l, batch_r) = dimension_numbers
    free_l = [d for d in range(lhs.ndim) if d not in (*inner_l, *batch_l)]
    free_r = [d for d in range(rhs.ndim) if d not in (*inner_r, *batch_r)]

    def shape(x, dimensions):
        return [x.shape[d] for d in dimensions]

    batch, rows, columns = shape(lhs, batch_l), shape(lhs, free_l), shape(rhs, free_r)
    k = math.prod(shape(lhs, inner_l))
    if shape(lhs, inner_l) != shape(rhs, inner_r) or batch != shape(rhs, batch_r):
        raise ValueError(
            f"lhs and rhs have shapes {lhs.shape} and {rhs.shape}, expected shapes that fit dimension_numbers "
            f"{dimension_numbers}"
        )
    a = lhs.transpose(*batch_l, *free_l, *inner_l).reshape(math.prod(batch), math.prod(rows), k)
    b = rhs.transpose(*batch_r, *inner_r, *free_r).reshape(math.prod(batch), k, math.prod(columns))
    return _matmul(call, a, b).reshape(*batch, *rows, *columns)


def _check_types(name: str, algorithm: Algorithm, dtypes, rounding: str | None) -> None:
    stored = [tcm.format_of_dtype(dtype) for dtype in dtypes]
    found = [None if fmt is None else fmt.name for fmt in stored]
    wide = {"tf32": ("fp32",), "bf16": ("bf16", "fp32")}
    allowed = wide.get(algorithm.formats[0], algorithm.formats)
    if any(fmt not in allowed for fmt in found):
        raise ValueError(
            f"got {dtypes[0]} and {dtypes[1]}, but {name} expects {' or '.join(allowed)}: convert with .astype()"
        )
    if algorithm.formats == ("tf32",) and rounding is None:
        raise ValueError(
            f"{name} needs input_rounding, because the library that XLA calls chooses the rounding to TF32: pass 'rne' "
            f"(cuBLAS 13.0 on an "
            "H100, measured), 'rna' (cuBLAS on GPUs of 2020, published) or 'rz' (Triton: the unit ignores the low bits)"
        )


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _matmul(call: _Call, a, b):
    """Return A B for a batch of matrices."""
    result = jax.ShapeDtypeStruct((a.shape[0], a.shape[1], b.shape[2]), call.out)
    return jax.pure_callback(partial(_on_host, call), result, a, b, vmap_method="sequential")


def _backward(call: _Call, kept, grad):
    """Return gradients by the same algorithm, with operands and cotangents in its type.

    Cotangents of FP8 operands are E5M2, as in FP8 training (Micikevicius et al. 2022, arXiv:2209.05433).
    """
    a, b = kept
    if np.dtype(a.dtype).itemsize == 1:
        gradient = get_float_format(_GRADIENTS[np.dtype(a.dtype).name])
        shape = jax.ShapeDtypeStruct(grad.shape, gradient.dtype)
        grad = jax.pure_callback(partial(_narrowed, gradient), shape, grad, vmap_method="sequential")
    else:
        grad = grad.astype(a.dtype)
    into_a = _Call(call.engine, call.algorithm, call.rounding, np.dtype(a.dtype), True)
    into_b = _Call(call.engine, call.algorithm, call.rounding, np.dtype(b.dtype), True)
    return _matmul(into_a, grad, b.swapaxes(1, 2)), _matmul(into_b, a.swapaxes(1, 2), grad)


#: Formats of cotangents by the FP8 type of the operands.
_GRADIENTS = {
    "float8_e4m3fn": "e5m2", "float8_e5m2": "e5m2", "float8_e4m3fnuz": "e5m2fnuz", "float8_e5m2fnuz": "e5m2fnuz",
}  # fmt: skip


def _narrowed(fmt, grad) -> np.ndarray:
    """Return the cotangent rounded to an 8-bit format. Raises ValueError if a finite value overflows."""
    values = np.asarray(grad)
    found = values_of_bits(operand_bits(values, fmt, "rne", "the cotangent"), fmt)
    return _not_overflown(found, values.astype(np.float64), f"the cotangent, rounded to {fmt.name},")


def _not_overflown(found: np.ndarray, wide: np.ndarray, what: str) -> np.ndarray:
    lost = np.isfinite(wide) & ~np.isfinite(found.astype(np.float64))
    if lost.any():
        raise ValueError(
            f"{what} overflows in {np.count_nonzero(lost)} of {lost.size} values, the largest of magnitude "
            f"{np.abs(wide[lost]).max():.4g}: scale the loss down, or multiply in a wider type"
        )
    return found


_matmul.defvjp(lambda call, a, b: (_matmul(call, a, b), (a, b)), _backward)


def _on_host(call: _Call, a, b) -> np.ndarray:
    """Return the products of a batch as a NumPy array of the result's type."""
    a, b = np.asarray(a), np.asarray(b)
    algorithm = ALGORITHMS[call.algorithm]
    fmt = tcm.format_of_dtype(call.out)
    if fmt is None:
        raise ValueError(f"preferred_element_type is {call.out}, expected a floating-point type, such as float32")
    found = [_one(call, algorithm, x, y) for x, y in zip(a, b, strict=True)]
    rounded = [values_of_bits(operand_bits(d, fmt, "rne", "d"), fmt) for d in found]
    if call.gradient and fmt.bits == 8:
        what = f"a gradient, rounded to {fmt.name},"
        rounded = [_not_overflown(x, d.astype(np.float64), what) for x, d in zip(rounded, found, strict=True)]
    return np.stack(rounded) if rounded else np.zeros((0, a.shape[1], b.shape[2]), call.out)


def _one(call: _Call, algorithm: Algorithm, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if algorithm.method:
        return recovered_gemm(a, b, method=algorithm.method, engine=call.engine)
    stored = [fmt.name for fmt in (tcm.format_of_dtype(x.dtype) for x in (a, b)) if fmt is not None]
    formats = stored if len(algorithm.formats) > 1 else list(algorithm.formats) * 2
    device = call.engine.partition("/")[0].partition(":")[0]
    hopper = DEVICES.get(device, (device,))[0] == "hopper"
    every = algorithm.promote_on_hopper if hopper else None
    unit = Multiplier(call.engine, promote_every=every, input_rounding=call.rounding)
    sizes = a.shape[0], a.shape[1], b.shape[1]
    return unit.multiply(
        a, b, Product("dot_general", *sizes, formats[0], formats[1], get_format(formats[0]).name, algorithm.accumulator)
    )
