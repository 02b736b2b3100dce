"""Computes a model's operations besides products as a GPU and its libraries do, and states the basis of their bits.

An operation that rounds nothing, or consists of one IEEE operation, has the same bits on every machine. Functions, norms,
softmax and sums are computed by :mod:`tensorcore_models.libraries`. Reduced types are widened to FP32 and rounded once, as in
torch's kernels. All other operations raise an error, or run natively and are counted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from mpgemm.frameworks.torch_tensors import to_tensor
from tensorcore_models.catalogue import canonical_device
from tensorcore_models.engines.scaled import fused_multiply_add
from tensorcore_models.libraries import Unknown, fp32_lanes, row_operations

EXACT, IEEE, RECORDED = "exact", "IEEE 754", "recorded"
#: Operations without rounding, which move, choose, compare or make elements.
_EXACT = {
    "_to_copy", "_unsafe_view", "_local_scalar_dense", "_reshape_alias", "abs", "alias", "all", "amax", "amin", "any",
    "argmax", "argmin", "bitwise_and", "bitwise_not", "bitwise_or", "cat", "ceil", "clamp", "clamp_max", "clamp_min",
    "clone", "constant_pad_nd", "copy", "detach", "embedding", "empty", "empty_like", "empty_strided", "eq", "equal",
    "fill", "flip", "floor", "full", "full_like", "gather", "ge", "gt", "index", "index_copy", "index_select", "isfinite",
    "isinf", "isnan", "isneginf", "le", "lift", "lift_fresh", "logical_and", "logical_not", "logical_or", "lt",
    "masked_fill", "masked_scatter", "max", "maximum", "min", "minimum", "ne", "neg", "new_empty", "new_empty_strided",
    "new_full", "new_ones", "new_zeros", "nonzero", "ones", "ones_like", "relu", "repeat", "resize", "roll", "round",
    "scalar_tensor", "scatter", "select_scatter", "sgn", "sign", "slice_scatter", "sort", "stack", "topk", "tril", "triu",
    "trunc", "unfold", "where", "zero", "zeros", "zeros_like",
}  # fmt: skip
#: Functions of one operand: torch's name, and the library's name.
_FUNCTIONS = {
    "exp": "expf", "exp2": "exp2f", "log": "logf", "erf": "erff", "tanh": "tanhf", "rsqrt": "rsqrtf", "sqrt": "sqrt.rn.f32",
    "reciprocal": "rcp.rn.f32", "sigmoid": "torch.sigmoid", "silu": "torch.silu", "sin": "sinf", "cos": "cosf",
}  # fmt: skip
_REDUCED = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Computed:
    """`Computed` is a result with the basis of its bits."""

    value: Any
    basis: str = RECORDED  #: EXACT, IEEE, RECORDED, or "inferred: REASON".


def inferred(why: str) -> str:
    """Return the basis of a result that is inferred from recorded ones."""
    return f"inferred: {why}"


#: Devices on which operations were recorded, by the version of torch.
LIBRARIES = {"torch-2.11": ("h100",)}


def check_libraries(libraries: str, devices: list[str]) -> None:
    """Refuse a version or a device without recordings, and several devices, with a ValueError."""
    if libraries not in LIBRARIES:
        raise ValueError(f"libraries is {libraries!r}, expected one of {', '.join(LIBRARIES)}")
    if len(devices) != 1 or canonical_device(devices[0]) not in LIBRARIES[libraries]:
        raise ValueError(
            f"libraries={libraries!r} got the engines {', '.join(devices)}, expected {' or '.join(LIBRARIES[libraries])}, "
            "where these operations were recorded: name this engine, or leave libraries out"
        )


def elements(tree) -> int:
    """Return the number of elements of all tensors in a result."""
    return sum(x.numel() for x in _tensors(tree))


def run_exactly(func, args, kwargs) -> Computed | None:
    """Run an operation that rounds nothing or converts to nearest, so every machine gives its bits; return None for others."""
    name = func.overloadpacket.__name__
    base = name if name in _EXACT else name.rstrip("_")
    if func.is_view or base in _EXACT:
        return Computed(func(*args, **kwargs), EXACT)
    if base == "index_put" and not (kwargs.get("accumulate") or len(args) > 3 and args[3]):
        return Computed(func(*args, **kwargs), EXACT)
    if any(_is_real(x) for x in _tensors((args, kwargs))) or torch.Tag.nondeterministic_seeded in func.tags:
        return None
    found = func(*args, **kwargs)  # on integers, which is exact if the results are integers, too
    whole = all(not _is_real(x) or bool((x == x.round()).all()) for x in _tensors(found))
    return Computed(found, EXACT) if whole else None


def _is_real(x: torch.Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


def _tensors(tree) -> list[torch.Tensor]:
    return [x for x in torch.utils._pytree.tree_leaves(tree) if isinstance(x, torch.Tensor)]


def compute(func, args, kwargs) -> Computed | None:
    """Run an operation that rounds; return None if its bits are not known. Raises Unknown if its sizes are not."""
    name = func.overloadpacket.__name__
    base = name if name.startswith("_") and name != "_" else name.rstrip("_")
    if base in _FUNCTIONS and len(args) == 1:
        return _function(_FUNCTIONS[base], args[0])
    rule = _RULES.get(base)
    return None if rule is None else rule(*args, **{k: v for k, v in kwargs.items() if k != "out"})


# -- FP32 ----------------------------------------------------------------------------------------------------------------
def _wide(x: torch.Tensor) -> np.ndarray:
    """Return the values of a tensor in FP32. Raises Unknown for a type that FP32 does not hold."""
    if x.dtype not in (*_REDUCED, torch.float32):
        raise Unknown(
            f"functions of {x.dtype}", field="dtype", known=("torch.float32", "torch.bfloat16", "torch.float16")
        )
    return x.detach().to(torch.float32).contiguous().numpy()


def _narrow(x: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    return to_tensor(np.ascontiguousarray(x)).reshape(x.shape).to(dtype)


def _function(name: str, x: torch.Tensor) -> Computed:
    wide = _wide(x)
    basis = inferred("recorded in FP32 and bf16") if x.dtype == torch.float16 else RECORDED
    return Computed(_narrow(fp32_lanes.apply(name, wide), x.dtype), basis)


def _gelu(x: torch.Tensor, *, approximate: str = "none") -> Computed:
    return _function("torch.gelu_tanh" if approximate == "tanh" else "torch.gelu", x)


def _pair(x, y) -> tuple[Any, Any, torch.dtype] | None:
    """Return both operands in FP32 (or FP64) and the type of the result, or None for integers and complex numbers."""
    dtype = torch.result_type(x, y)
    if not dtype.is_floating_point:
        return None
    wide = torch.float32 if dtype in _REDUCED else dtype

    def widened(v):
        if isinstance(v, torch.Tensor):
            return v.to(dtype).to(wide)
        return torch.tensor(v, dtype=torch.float64).to(wide)  # kernels of reduced types keep scalars in FP32

    return widened(x), widened(y), dtype


def _binary(operate: Callable) -> Callable:
    def rule(x, y, *, alpha=1) -> Computed | None:
        pair = _pair(x, y)
        if pair is None:
            return None
        a, b, dtype = pair
        if alpha == 1:
            return Computed(operate(a, b).to(dtype), IEEE)
        if a.dtype != torch.float32:
            return None
        scaled = np.broadcast_to(np.float32(alpha), b.shape), b.numpy()
        sign = np.float32(operate(torch.zeros(()), torch.ones(())).item())
        found = fused_multiply_add(*np.broadcast_arrays(scaled[0] * sign, scaled[1], a.numpy()))
        return Computed(_narrow(found, dtype), inferred("alpha by a fused multiply-add"))

    return rule


def _div(x, y, *, rounding_mode=None) -> Computed | None:
    pair = None if rounding_mode is not None else _pair(x, y)
    if pair is None:
        return None
    a, b, dtype = pair
    if isinstance(y, torch.Tensor):
        return Computed((a / b).to(dtype), IEEE)
    return Computed((a * (1 / b)).to(dtype), inferred("torch multiplies by the rounded reciprocal of a number"))


def _pow(x, exponent) -> Computed | None:
    if not isinstance(x, torch.Tensor) or not x.is_floating_point() or isinstance(exponent, torch.Tensor):
        return None
    if exponent == 2:
        wide = x.to(torch.float32) if x.dtype in _REDUCED else x
        return Computed((wide * wide).to(x.dtype), IEEE)
    if exponent in (0.5, -0.5):
        return _function("sqrt.rn.f32" if exponent > 0 else "rsqrtf", x)
    return None


# -- rows ----------------------------------------------------------------------------------------------------------------
def _basis(kernel: str, length: int, dtype: torch.dtype, weights: bool = False) -> str:
    """Return the basis of the bits of a function of rows."""
    if length not in row_operations.RECORDED[kernel]:
        return inferred(f"rows of {length} by the kernel's source")
    if weights:
        return inferred("weights by the kernel's source")
    return inferred("recorded in FP32 and bf16") if dtype == torch.float16 else RECORDED


def _last(x: torch.Tensor, dim) -> bool:
    dims = [dim] if isinstance(dim, int) else list(dim or range(x.dim()))
    return x.dim() > 0 and [d % x.dim() for d in dims] == [x.dim() - 1]


def _softmax(x, dim, half_to_float=False, *, safe: bool = False) -> Computed | None:
    if not _last(x, dim):
        return None
    wide = _wide(x)
    found = row_operations.softmax(wide)
    if safe:
        found = np.where(np.isneginf(wide).all(-1, keepdims=True), np.float32(0), found)
    dtype = torch.float32 if half_to_float else x.dtype
    return Computed(_narrow(found, dtype), _basis("softmax", x.shape[-1], x.dtype))


def _safe_softmax(x, dim, dtype=None) -> Computed | None:
    return _softmax(x if dtype is None else x.to(dtype), dim, safe=True)


def _reduction(kernel: str, rows: Callable) -> Callable:
    def rule(x, dim=None, keepdim=False, *, dtype=None) -> Computed | None:
        if not _last(x, dim) or x.stride(-1) != 1 or dtype not in (None, x.dtype, torch.float32):
            return None  # for other strides the kernels' threads share other dimensions
        found = rows(_wide(x))
        found = np.asarray(found[..., None] if keepdim else found)
        basis = _basis(kernel, x.shape[-1], x.dtype)
        if x.dtype in _REDUCED:
            basis = inferred("recorded in FP32")
        return Computed(_narrow(found, dtype or x.dtype), basis)

    return rule


def _rms_norm(x, normalized_shape, weight=None, eps=None) -> Computed | None:
    if len(normalized_shape) != 1:
        return None
    eps = torch.finfo(torch.float32).eps if eps is None else eps
    found = row_operations.rms_norm(_wide(x), None if weight is None else _wide(weight), eps)
    return Computed(_narrow(found, x.dtype), _basis("rms_norm", x.shape[-1], x.dtype, weight is not None))


def _layer_norm(x, normalized_shape, weight, bias, eps) -> Computed | None:
    """Return normalised rows; means and deviations, which only gradients use, are those of torch on the CPU."""
    if len(normalized_shape) != 1:
        return None
    by, plus = (None if each is None else _wide(each) for each in (weight, bias))
    found = _narrow(row_operations.layer_norm(_wide(x), by, plus, eps), x.dtype)
    rest = torch.ops.aten.native_layer_norm(x, normalized_shape, weight, bias, eps)[1:]
    return Computed((found, *rest), _basis("layer_norm", x.shape[-1], x.dtype, weight is not None))


_RULES: dict[str, Callable[..., Computed | None]] = {
    "add": _binary(torch.add), "sub": _binary(torch.sub), "rsub": lambda x, y, **k: _RULES["sub"](y, x, **k),
    "mul": _binary(torch.mul), "div": _div, "pow": _pow, "square": lambda x: _pow(x, 2), "gelu": _gelu,
    "_softmax": _softmax, "_safe_softmax": _safe_softmax, "mean": _reduction("mean", row_operations.means),
    "sum": _reduction("sum", row_operations.sums), "rms_norm": _rms_norm,
    "native_layer_norm": _layer_norm,
}  # fmt: skip
#: Operations that torch runs as several on a CPU, and as one kernel on a GPU.
WHOLE = frozenset({"rms_norm"})
