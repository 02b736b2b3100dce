"""Makes the methods that `mpgemm evaluate` compares from their names.

A :class:`~mpgemm.experiments.gemm_method.GemmMethod` multiplies two matrices in some way and rounds operands to its own format.
:func:`build_methods` makes it from a name, which is a key of :data:`NAMED_METHODS`, ``engine:ARCH:INSTRUCTION`` for a matrix
engine of the catalogue (operands are rounded to nearest to its formats), or ``recovery:METHOD@ENGINE`` for a recovery method.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

import ascend
import tensorcore_models as tcm
from ascend.numeric.arguments import DEFAULT_STEP_ORDER, ORDERS, STEP_ORDERS
from ascend.numeric.baseline import FP32_CHAIN
from ascend.tile_schedule import TileSchedule
from mpgemm.bounds.norms import Lines
from mpgemm.bounds.watching import quick_engine_bound, with_rounded_operands
from mpgemm.experiments.cases import as_fp32
from mpgemm.experiments.cube_bounds import cube_bound, sgemm_bound
from mpgemm.experiments.gemm_method import GemmMethod, likely
from mpgemm.experiments.recovery_methods import recovery_method
from mpgemm.recovery.engines import ieee_engine, named_engine
from mpgemm.recovery.methods import get_method, is_method
from mpgemm.recovery.run import prepare

#: s_b of SGEMM-cube: an exponent for both operands, or "auto" for an exponent from the data of each operand.
ScaleExponent = int | str

DEFAULT_SCALE_EXPONENTS: tuple[ScaleExponent, ...] = (0, 6, 12, "auto")


def _of_fp32(multiply: Callable[..., np.ndarray], *operands: np.ndarray, **options) -> np.ndarray:
    """Return the product by a function that takes FP32 operands, after rounding operands to FP32."""
    return multiply(*map(as_fp32, operands), **options)


def fp32_baseline(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the float32 product that other methods are compared with; its bits are the same on every machine.

    Chains of :data:`FP32_CHAIN` fused multiply-adds, each from zero, are added up in float32 in the order of k. A BLAS sums
    about as many products in a chain.
    """
    return ieee_engine("fp32").gemm(as_fp32(a), as_fp32(b), promote_every=FP32_CHAIN)


def _fp32() -> GemmMethod:
    row = replace(get_method("fp32"), accumulation="blocks", restart_every=FP32_CHAIN)
    bound = partial(_of_fp32, partial(likely, c=None, method=row, engine="ieee"))
    method = _sums_method("fp32", f"FP32, chains of {FP32_CHAIN}", fp32_baseline)
    return replace(method, likely_bound=bound)


def native_fp32(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return NumPy's float32 product, the SGEMM of the BLAS that NumPy was built with."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return np.matmul(as_fp32(a), as_fp32(b))


def native_fp64(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return NumPy's float64 product of the operands, without rounding them."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return np.matmul(a.astype(np.float64), b.astype(np.float64))


@dataclass(frozen=True)
class CubeOptions:
    """`CubeOptions` holds options of runs on the Ascend cube (:func:`ascend.cube_gemm`).

    Raises ValueError for an unknown order or scale exponent.
    """

    #: orders, scale_exponents, step_orders: options of SGEMM-cube, which runs with every combination.
    orders: tuple[str, ...] = ("elementwise", "termwise")
    scale_exponents: tuple[ScaleExponent, ...] = DEFAULT_SCALE_EXPONENTS
    step_orders: tuple[str, ...] = (DEFAULT_STEP_ORDER,)
    #: Block sizes (b_m, b_k, b_n) on the 910A; None is one block, with all of k in one chain.
    blocking: tuple[int, int, int] | None = None

    def __post_init__(self):
        for what, values, known in (("order", self.orders, ORDERS), ("step order", self.step_orders, STEP_ORDERS)):
            for value in values:
                if value not in known:
                    raise ValueError(f"unknown {what} {value!r}; known: {', '.join(known)}")
        for scale in self.scale_exponents:
            if scale != "auto" and not isinstance(scale, int):
                raise ValueError(f'scale exponent is {scale!r}, expected an integer or "auto"')

    def method(
        self, function: Callable, name: str, label: str, step_order: str = DEFAULT_STEP_ORDER, **given
    ) -> GemmMethod:
        """Return the method that runs a function of ascend with these options and `given`.

        The name shows a step order that is not the default.
        """
        keywords, settings = {**given, "step_order": step_order}, {**given, "step_order": step_order}
        if step_order != DEFAULT_STEP_ORDER:
            name = f"{name}_{step_order}"
        if self.blocking is not None:
            keywords["blocking"] = ascend.Blocking(*self.blocking)
            settings["blocking"] = list(self.blocking)
        bound = partial(cube_bound, function is ascend.cube_gemm, **keywords)
        multiply = partial(_of_fp32, function, **keywords)
        return GemmMethod(name, label, multiply, settings, step_order=step_order, bound=bound)

    def methods(self, function: Callable, name: str, label: str, **given) -> list[GemmMethod]:
        """Return the :meth:`method` for each step order."""
        return [self.method(function, name, label, step, **given) for step in self.step_orders]


def short_chains(order: str, shape: tuple[int, int, int], products: int) -> TileSchedule:
    """Return the schedule of SGEMM-cube in an order with `products` products in each chain of k."""
    m, k, n = shape
    whole = TileSchedule.unblocked(m=m, k=k, n=n, mode=order)  # type: ignore[arg-type]
    return replace(whole, blocking=replace(whole.blocking, bk=products))


def fp32_chain(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the float32 product with all of k in one chain of fused multiply-adds, in order.

    A simple SGEMM computes this, and, as the catalogue assumes, FP32 on the cube of the 910B.
    """
    return prepare(as_fp32(a), as_fp32(b), None, "fp32", "ieee").product()


def _sgemm_cube(options: CubeOptions) -> list[GemmMethod]:
    return [
        options.method(
            ascend.cube_gemm, f"sgemm_cube_{order}_{scale}", f"SGEMM-cube {order}, s_b = {scale}", step,
            order=order, scale_exponent=scale,
        )
        for step in options.step_orders
        for order in options.orders
        for scale in options.scale_exponents
    ]  # fmt: skip


def engine_method(name: str) -> GemmMethod:
    """Return the method of a matrix engine without block scales ("ARCH:INSTRUCTION"), or of real hardware.

    Names of hardware are "cuda:INSTRUCTION" and "torch:FORMAT".
    """
    engine = _engine(name)
    if engine.scale_format is not None:
        raise ValueError(
            f"{name} needs block scales, but the operands have none; take an instruction without block scales"
        )
    asked = "" if ":" in name else f"{name}: "
    label = f"{asked}{engine.label.replace(':', ' ', 1)}"
    return GemmMethod(f"engine:{engine.label}", label, partial(_engine_gemm, name), bound=partial(_engine_bound, name))


def _engine(name: str) -> tcm.Engine:
    """Return the engine of a name: a model of the catalogue, a device's default FP16 instruction, or hardware present here."""
    return named_engine(name) or tcm.default_instruction(name, a_format="fp16", d_format="fp32")


def _engine_gemm(name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(_engine(name).gemm(a, b, input_rounding="rne"))


def _engine_bound(name: str, a: Lines, b: Lines) -> np.ndarray | None:
    return quick_engine_bound(_engine(name), a, b)


def _sums_method(name: str, label: str, multiply: Callable[..., np.ndarray]) -> GemmMethod:
    """Return the method of a product in FP32, or in FP64 if its name is "fp64", to which a C is added at the end."""
    bound = partial(sgemm_bound, "fp64" if name == "fp64" else "fp32")
    return GemmMethod(name, label, partial(with_addend, multiply), takes_addend=True, bound=bound)


def with_addend(
    multiply: Callable[..., np.ndarray], a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None
) -> np.ndarray:
    """Return an FP32 or FP64 product, and C added to it in the same precision."""
    product = multiply(a, b)
    with np.errstate(over="ignore", invalid="ignore"):
        return product if c is None else product + (as_fp32(c) if product.dtype == np.float32 else c)


def _hf32_bound(a: Lines, b: Lines) -> np.ndarray | None:
    x, y = a.rounded_to(np.float32), b.rounded_to(np.float32)
    bound = _engine_bound(HF32, x, y)
    return None if bound is None else with_rounded_operands(bound, x, y)


#: Functions that make a method from the part of a name after "PREFIX:".
PREFIXES: dict[str, Callable[[str], GemmMethod]] = {"engine": engine_method, "recovery": recovery_method}

#: Instruction of HF32. Chips of the 910B generation and later have it; they also have FP32 on the cube, with the bits of
#: `fp32_chain`.
HF32 = "ascend910b:cube.m16n16k8.f32.hf32.hf32.f32"

#: Methods that are compared by default. `fp32` sums in a fixed order of this package, `fp32_numpy` in that of this machine's
#: library. fp16 and SGEMM-cube run on the Ascend cube (910A, saturating); `sgemm_cube_scaled` extends the paper's method by
#: powers of two that bring each row of A and column of B into range.
NAMED_METHODS: dict[str, Callable[[CubeOptions], list[GemmMethod]]] = {
    "fp16": lambda options: options.methods(ascend.cube_hgemm, "fp16", "FP16, FP32 accumulation"),
    "fp16_accumulate": lambda options: options.methods(
        ascend.cube_hgemm, "fp16_accumulate", "FP16, FP16 accumulation", accumulate="fp16"
    ),
    "fp32": lambda _: [_fp32()],
    "fp32_numpy": lambda _: [_sums_method("fp32_numpy", "FP32 SGEMM (NumPy)", native_fp32)],
    "fp32_chain": lambda _: [_sums_method("fp32_chain", "FP32, one chain of k (910B's cube)", fp32_chain)],
    "hf32": lambda _: [
        GemmMethod("hf32", "HF32 (910B's cube)", partial(_of_fp32, partial(_engine_gemm, HF32)), bound=_hf32_bound)
    ],
    "fp64": lambda _: [_sums_method("fp64", "FP64 DGEMM (NumPy)", native_fp64)],
    "sgemm_cube": _sgemm_cube,
    "sgemm_cube_scaled": lambda options: options.methods(
        ascend.cube_gemm, "sgemm_cube_scaled", "SGEMM-cube termwise, s_b = 12, scaled rows",
        row_scaling=True, order="termwise", scale_exponent=12,
    ),
}  # fmt: skip


#: Methods that are compared only if they are asked for: bf16x6 on the model of the AMX unit, and on the unit itself.
ON_REQUEST = ("bf16x6", "amx")


def build_methods(names: Sequence[str] = tuple(NAMED_METHODS), options: CubeOptions | None = None) -> list[GemmMethod]:
    """Return the methods of these names (see the module), each once, in order; raise ValueError for an unknown name."""
    options = options or CubeOptions()
    methods: dict[str, GemmMethod] = {}
    for name in names:
        if name in NAMED_METHODS:
            found = NAMED_METHODS[name](options)
        elif name in ON_REQUEST:
            from mpgemm.experiments.amx_methods import AMX_METHODS

            found = AMX_METHODS[name]()
        elif name.partition(":")[0] in PREFIXES:
            prefix, _, rest = name.partition(":")
            found = [PREFIXES[prefix](rest)]
        elif is_method(name.partition("@")[0]):
            found = [recovery_method(name)]
        else:
            known = [*NAMED_METHODS, *ON_REQUEST, *(f"{prefix}:NAME" for prefix in PREFIXES), "METHOD@ENGINE"]
            raise ValueError(f"unknown method {name!r}; known: {', '.join(known)}")
        for method in found:
            methods[method.name] = _together(methods[method.name], method) if method.name in methods else method
    return list(methods.values())


def _together(method: GemmMethod, other: GemmMethod) -> GemmMethod:
    """Return one method for two devices with the same instruction, labelled "h100, h200: INSTRUCTION"."""
    asked, separator, what = method.label.partition(": ")
    also, _, same = other.label.partition(": ")
    return replace(method, label=f"{asked}, {also}: {what}") if separator and what == same and also != asked else method
