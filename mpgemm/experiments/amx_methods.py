"""Defines the methods of `mpgemm evaluate` on AMX, which run only when they are asked for."""

from collections.abc import Callable

import numpy as np

from mpgemm.amx import METHODS, USUAL, sgemm, sgemm_report
from mpgemm.bounds.norms import Lines
from mpgemm.bounds.watching import quick_run_bound, with_rounded_operands
from mpgemm.experiments.cases import as_fp32
from mpgemm.experiments.cube_bounds import sgemm_bound
from mpgemm.experiments.gemm_method import GemmMethod
from mpgemm.experiments.recovery_methods import recovery_method
from mpgemm.recovery.run import prepare
from tensorcore_models.cpu_units.units import setting


def _options() -> dict:
    return {key: value for key, value in METHODS[USUAL].items() if key not in ("method", "engine")}


def _modelled() -> list[GemmMethod]:
    """Return bf16x6 on the model of the AMX unit."""
    row, engine = METHODS[USUAL]["method"], METHODS[USUAL]["engine"]
    changes = ",".join(f"{key}={value}" for key, value in _options().items())
    return [recovery_method(f"{row}:{changes}@{engine}")]


def _on_this_cpu() -> list[GemmMethod]:
    """Return the method on this CPU's unit, or on its emulation."""
    unit = "emulated AMX" if setting() == "emulated" else "this CPU's AMX"
    name = f"{USUAL} on {unit}"
    return [GemmMethod("amx", name, _multiply, {"unit": unit}, _details, True, timed=True, bound=_bound)]


def _multiply(*operands: np.ndarray) -> np.ndarray:
    return sgemm(*map(as_fp32, operands), method=USUAL)


def _bound(a: Lines, b: Lines, c: np.ndarray | None = None) -> np.ndarray | None:
    """Return the larger of the bounds of the words on the unit and of numpy's product, which may take their place."""
    x, y = a.rounded_to(np.float32), b.rounded_to(np.float32)
    z = None if c is None else as_fp32(c)
    row, engine = METHODS[USUAL]["method"], METHODS[USUAL]["engine"]
    model = quick_run_bound(prepare(x.values, y.values, z, row, engine, options=_options()), (x, y))
    if model is None:
        return None
    native = sgemm_bound("fp32", a, b, c)
    rounded = 0.0 if c is None or z is None else np.abs(c - z.astype(np.float64))
    return np.maximum(native, with_rounded_operands(model + rounded, x, y))


def _details(*operands: np.ndarray) -> dict:
    """Return the path that ran, the unit, and the reason for the path."""
    report = sgemm_report(*map(as_fp32, operands), method=USUAL)
    return {"path": report.path, "unit": report.unit, "reason": report.reason}


#: Functions that make the methods, by the names of :data:`mpgemm.experiments.methods.ON_REQUEST`.
AMX_METHODS: dict[str, Callable[[], list[GemmMethod]]] = {"bf16x6": _modelled, "amx": _on_this_cpu}
