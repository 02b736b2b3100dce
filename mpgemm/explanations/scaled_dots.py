"""Follows one dot product of operands with scales step by step: its chains, the factors applied to them, and the error."""

from dataclasses import asdict, dataclass

import numpy as np

from mpgemm.exact.product import exact_gemm
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.scaled import fused_multiply_add, scaled_sums
from tensorcore_models.engines.scaling import Scaling
from tensorcore_models.formats.operands import operand_bits, values_of_bits
from tensorcore_models.results import Result


@dataclass(frozen=True)
class ScaledStep:
    """`ScaledStep` is a chain of the unit with the factor and the sum outside."""

    #: start, stop: range of k of the chain.
    start: int
    stop: int
    #: chain, exact: the unit's sum before factors outside are applied, and the exact sum.
    chain: float
    exact: float
    factor: float  #: Factor by which the chain's sum is multiplied.
    total: float  #: Sum outside after this chain.


@dataclass(frozen=True, repr=False)
class ScaledExplanation(Result):
    """`ScaledExplanation` holds the steps of one dot product with scales."""

    engine: str
    scales: str
    steps: tuple[ScaledStep, ...]
    result: float
    exact: float

    def to_rows(self) -> list[dict]:
        """Return one row for each chain."""
        return [asdict(step) for step in self.steps]

    to_dict = asdict

    def sentences(self) -> list[str]:
        """Return sentences on the result, its error and the chain with the largest error."""
        inside = [abs((step.chain - step.exact) * step.factor) for step in self.steps]
        worst = int(np.argmax(inside)) if inside else 0
        error = self.result - self.exact
        texts = [f"{self.engine}, {self.scales}", f"result {self.result!r}, exact {self.exact!r}, error {error:.3g}"]
        if len(inside) > 1:
            step = self.steps[worst]
            texts.append(
                f"the chain over k {step.start}:{step.stop} has the largest error inside of the unit, {inside[worst]:.3g} of "
                f"{sum(inside):.3g} in all chains"
            )
        return texts


def explain_scaled(engine: Engine, a, b, scaling: Scaling) -> ScaledExplanation:
    """Return the steps of one dot product ``sum (s_k a_k) (t_k b_k)``; a and b are rounded to nearest to the engine's
    formats."""
    formats = engine.formats
    x, y = (operand_bits(np.asarray(v), f, "rne", n) for v, f, n in ((a, formats[0], "a"), (b, formats[1], "b")))
    x, y = x.reshape(1, -1), y.reshape(-1, 1)
    values = values_of_bits(x, formats[0]).astype(np.float64), values_of_bits(y, formats[1]).astype(np.float64)
    exact = float(exact_gemm(values[0] * scaling.spread_a(), values[1] * scaling.spread_b()).rounded("fp64")[0, 0])
    result = float(scaled_sums(engine, x, y, scaling)[0, 0])
    k = x.shape[1]
    length = scaling.block if scaling.applied == "block" else max(k, 1)
    steps, total = [], np.zeros((1, 1), np.float32)
    for start in range(0, k, length or k):
        piece = slice(start, min(start + (length or k), k))
        inside = (scaling.bits_a, scaling.bits_b) if scaling.applied == "product" else (None, None)
        chain = values_of_bits(engine.gemm_bits(x[:, piece], y[piece], None, *inside), formats[3]).astype(np.float32)
        used = values[0][:, piece], values[1][piece]
        if scaling.applied == "product":
            used = values[0] * scaling.spread_a() / scaling.whole_a, values[1] * scaling.spread_b() / scaling.whole_b
            factor = np.float32(scaling.whole_a) * np.float32(scaling.whole_b)
        else:
            factor_a, factor_b = scaling.at(start)
            factor = (factor_a * factor_b)[0, 0]
        total = fused_multiply_add(np.full((1, 1), factor), chain, total)
        true = float(exact_gemm(*used).rounded("fp64")[0, 0])
        outside = float(total[0, 0]) if scaling.applied == "block" else result
        steps.append(ScaledStep(piece.start, piece.stop, float(chain[0, 0]), true, float(factor), outside))
    return ScaledExplanation(engine.label, scaling.on(engine).in_words(), tuple(steps), result, exact)
