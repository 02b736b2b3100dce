"""The GEMMs that `mpgemm evaluate` compares, as a list of named callables.

A :class:`GemmMethod` multiplies two float32 matrices in some way. :func:`build_methods` makes them from names; a name
is a family of :data:`FAMILIES` or ``engine:ARCH:INSTRUCTION`` for any matrix engine of the catalogue (operands rounded
to nearest to the engine's formats first).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

import ascend
import tensorcore_models as tcm

#: s_b of the SGEMM-cube: a power of two exponent for both operands, or "auto" for one from the data of each.
ScaleExponent = int | str

DEFAULT_SCALE_EXPONENTS: tuple[ScaleExponent, ...] = (0, 6, 12, "auto")
ORDERS = ("elementwise", "termwise", "termwise_inplace")


@dataclass(frozen=True)
class GemmMethod:
    """One way to multiply.

    Parameters
    ----------
    name : str
        Unique; stands in tables and files.
    label : str
        For the legend of a figure.
    multiply : callable
        ``multiply(a, b)`` on float32 matrices gives the product; it can be pickled.
    settings : mapping
        JSON-compatible values that determine `multiply`; the journal of results is keyed by them.
    family : str
        What draws alike in a figure.
    """

    name: str
    label: str
    multiply: Callable[[np.ndarray, np.ndarray], np.ndarray] = field(compare=False)
    settings: Mapping = field(default_factory=dict)
    family: str = ""

    def __post_init__(self):
        object.__setattr__(self, "settings", {"name": self.name, **self.settings})
        object.__setattr__(self, "family", self.family or self.name)


def native_fp16(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Operands rounded to fp16, products accumulated in fp32 as the Ascend cube does, float32 result.

    This is the SGEMM-cube of operands that have no residual, so its accumulation order is that of the cube.
    """
    return ascend.cube_gemm(_to_fp16(a), _to_fp16(b), scale_exponent=0, order="termwise")


def native_fp16_accumulate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Operands rounded to fp16, a chain of fp16 fused multiply-adds in k order, float16 result.

    acc = RN16(acc + a b) for every product, the product exact. Each sum is formed in float64 and rounded once more to
    fp16. That is the fused result: where the sum is so wide that float64 rounds it, the product is too small, or the
    accumulator too large, for the float64 result to come to a midpoint between two fp16 numbers that the exact sum
    misses (11-bit accumulator, 22-bit product, both at least 2^-48).
    """
    a16, b16 = _to_fp16(a).astype(np.float64), _to_fp16(b).astype(np.float64)
    accumulator = np.zeros((a.shape[0], b.shape[1]), np.float16)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for column, row in zip(a16.T, b16, strict=True):
            accumulator = (accumulator + np.outer(column, row)).astype(np.float16)
    return accumulator


def native_fp32(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """NumPy's float32 product: the SGEMM of the BLAS that NumPy was built with."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return np.matmul(a, b)


def native_fp64(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """NumPy's float64 product of the float32 operands, float64 result."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return np.matmul(a.astype(np.float64), b.astype(np.float64))


def _to_fp16(x: np.ndarray) -> np.ndarray:
    """Rounded to nearest even and saturated at 65504, as the Ascend 910A converts; float32 container."""
    return np.asarray(tcm.round_to(x, "fp16", saturate=True)).astype(np.float32)


def sgemm_cube(order: str, scale_exponent: ScaleExponent) -> GemmMethod:
    """SGEMM-cube (Xue et al., eq. 7) in the given order with the given s_b.

    Raises
    ------
    ValueError
        If the order is unknown or s_b neither an integer nor "auto".
    """
    if order not in ORDERS:
        raise ValueError(f"unknown order {order!r}; known: {', '.join(ORDERS)}")
    if scale_exponent != "auto" and not isinstance(scale_exponent, int):
        raise ValueError(f'a scale exponent is an integer or "auto", got {scale_exponent!r}')
    return GemmMethod(
        f"sgemm_cube_{order}_{scale_exponent}",
        f"SGEMM-cube {order}, s_b = {scale_exponent}",
        partial(_cube, order, scale_exponent),
        {"order": order, "scale_exponent": scale_exponent},
        "sgemm_cube",
    )


def _cube(order: str, scale_exponent: ScaleExponent, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return ascend.cube_gemm(a, b, order=order, scale_exponent=scale_exponent)


def engine_method(name: str) -> GemmMethod:
    """A matrix engine of the catalogue by "ARCH:INSTRUCTION", chained over k.

    Raises
    ------
    ValueError
        If there is no such instruction, or it does not take two matrices of values (block-scaled ones need scales).
    """
    arch, _, instruction = name.partition(":")
    engine = tcm.get_instruction(arch, instruction)
    return GemmMethod(
        f"engine:{engine.arch}:{engine.name}",
        f"{engine.arch} {engine.name}",
        partial(_engine_gemm, engine.arch, engine.name),
    )


def _engine_gemm(arch: str, name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(tcm.get_instruction(arch, name).gemm(a, b, input_rounding="rne"))


#: Families that need no engine: name -> (methods from orders and scale exponents).
FAMILIES: dict[str, Callable[[Sequence[str], Sequence[ScaleExponent]], list[GemmMethod]]] = {
    "fp16": lambda orders, scales: [GemmMethod("fp16", "FP16, FP32 accumulation", native_fp16)],
    "fp16_accumulate": lambda orders, scales: [
        GemmMethod("fp16_accumulate", "FP16, FP16 accumulation", native_fp16_accumulate)
    ],
    "fp32": lambda orders, scales: [GemmMethod("fp32", "FP32 SGEMM (NumPy)", native_fp32)],
    "fp64": lambda orders, scales: [GemmMethod("fp64", "FP64 DGEMM (NumPy)", native_fp64)],
    "sgemm_cube": lambda orders, scales: [sgemm_cube(order, scale) for order in orders for scale in scales],
}


def build_methods(
    names: Sequence[str] = tuple(FAMILIES),
    orders: Sequence[str] = ("elementwise", "termwise"),
    scale_exponents: Sequence[ScaleExponent] = DEFAULT_SCALE_EXPONENTS,
) -> list[GemmMethod]:
    """The methods of those names, each once, in the order given.

    Parameters
    ----------
    names : sequence of str
        Families of :data:`FAMILIES`, or ``engine:ARCH:INSTRUCTION``.
    orders, scale_exponents : sequence
        For the families that have them.

    Raises
    ------
    ValueError
        If a name is unknown; the message lists the known ones.
    """
    methods: dict[str, GemmMethod] = {}
    for name in names:
        if name in FAMILIES:
            found = FAMILIES[name](orders, scale_exponents)
        elif name.startswith("engine:"):
            found = [engine_method(name.removeprefix("engine:"))]
        else:
            raise ValueError(f"unknown method {name!r}; known: {', '.join(FAMILIES)}, engine:ARCH:INSTRUCTION")
        methods.update((method.name, method) for method in found)
    return list(methods.values())
