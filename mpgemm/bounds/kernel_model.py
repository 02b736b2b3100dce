"""What a modelled kernel returns: the unit's sums with scales and an addend, before the rounding to an output format."""

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
    """What an engine returns for values that its formats hold, c added before (where it can be) or behind; float64."""
    formats = engine.formats
    bits = [operand_bits(v, f, None, n) for v, f, n in zip((x, y), formats, "ab", strict=False)]
    if scaling is not None and scaling.roundings:
        total = scaled_sums(engine, *bits, scaling, **options)
        with np.errstate(over="ignore", invalid="ignore"):
            return [(total if c is None else total + c.astype(np.float32)).astype(np.float64)]
    scales = (None, None) if scaling is None else (scaling.bits_a, scaling.bits_b)
    plain = values_of_bits(engine.gemm_bits(*bits, None, *scales, **options), formats[3]).astype(np.float64)
    if c is None:
        return [plain]
    c_bits = operand_bits(
        round_to(c, formats[2]) if isinstance(formats[2], Format) else c.astype(np.int64), formats[2], None, "c"
    )
    first = values_of_bits(engine.gemm_bits(*bits, c_bits, *scales, **options), formats[3]).astype(np.float64)
    return [
        first,
        tcm.decode(tcm.encode(plain + c, formats[3]), formats[3]) if isinstance(formats[3], Format) else plain + c,
    ]
