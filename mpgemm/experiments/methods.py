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


def native_fp32(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """NumPy's float32 product: the SGEMM of the BLAS that NumPy was built with."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return np.matmul(a, b)


def native_fp64(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """NumPy's float64 product of the float32 operands, float64 result."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return np.matmul(a.astype(np.float64), b.astype(np.float64))


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
        partial(ascend.cube_gemm, order=order, scale_exponent=scale_exponent),
        {"order": order, "scale_exponent": scale_exponent},
        "sgemm_cube",
    )


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


#: Families that need no engine: name -> (methods from orders and scale exponents). fp16 and SGEMM-cube are the Ascend
#: cube's (910A: saturating, sequential sums); `sgemm_cube_scaled` is the extension beyond the paper that brings each row
#: of A and column of B into range by a power of two.
FAMILIES: dict[str, Callable[[Sequence[str], Sequence[ScaleExponent]], list[GemmMethod]]] = {
    "fp16": lambda orders, scales: [GemmMethod("fp16", "FP16, FP32 accumulation", ascend.cube_hgemm)],
    "fp16_accumulate": lambda orders, scales: [
        GemmMethod("fp16_accumulate", "FP16, FP16 accumulation", partial(ascend.cube_hgemm, accumulate="fp16"))
    ],
    "fp32": lambda orders, scales: [GemmMethod("fp32", "FP32 SGEMM (NumPy)", native_fp32)],
    "fp64": lambda orders, scales: [GemmMethod("fp64", "FP64 DGEMM (NumPy)", native_fp64)],
    "sgemm_cube": lambda orders, scales: [sgemm_cube(order, scale) for order in orders for scale in scales],
    "sgemm_cube_scaled": lambda orders, scales: [
        GemmMethod(
            "sgemm_cube_scaled",
            "SGEMM-cube termwise, s_b = 12, scaled rows",
            partial(ascend.cube_gemm, scale_exponent=12, order="termwise", row_scaling=True),
            family="sgemm_cube",
        )
    ],
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
