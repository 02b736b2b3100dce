"""Computes a kernel's results from the unit's sums, scales and an addend, before rounding to an output format."""

from typing import Any

import numpy as np

import tensorcore_models as tcm
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.scaled import scaled_sums
from tensorcore_models.engines.scaling import Scaling
from tensorcore_models.formats import Format
from tensorcore_models.formats.operands import operand_bits, values_of_bits
from tensorcore_models.formats.rounding import round_to


def model_results(engine: Engine, x, y, c, scaling: Scaling | None, options: dict[str, Any]) -> list[np.ndarray]:
    """Return an engine's results in float64: with c as the chain's seed (where possible) and with c added afterwards."""
    a_format, b_format, c_format, d_format = engine.formats
    a, b = operand_bits(x, a_format, None, "a"), operand_bits(y, b_format, None, "b")
    if scaling is not None and scaling.roundings:
        total = scaled_sums(engine, a, b, scaling, **options)
        with np.errstate(over="ignore", invalid="ignore"):
            return [(total if c is None else total + c.astype(np.float32)).astype(np.float64)]
    scale_a, scale_b = (None, None) if scaling is None else (scaling.bits_a, scaling.bits_b)
    plain = values_of_bits(engine.gemm_bits(a, b, None, scale_a, scale_b, **options), d_format).astype(np.float64)
    if c is None:
        return [plain]
    seed = round_to(c, c_format) if isinstance(c_format, Format) else c.astype(np.int64)
    c_bits = operand_bits(seed, c_format, None, "c")
    first = values_of_bits(engine.gemm_bits(a, b, c_bits, scale_a, scale_b, **options), d_format).astype(np.float64)
    if not isinstance(d_format, Format):
        return [first, plain + c]
    return [first, tcm.decode(tcm.encode(plain + c, d_format), d_format)]
