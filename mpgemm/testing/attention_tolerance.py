"""This module computes the tolerance of an attention kernel on its operands, and the loss by a cast of P without a factor."""

from dataclasses import asdict, dataclass
from typing import Unpack

import numpy as np

import tensorcore_models as tcm
from mpgemm.testing.attention import AttentionOptions, call_of
from mpgemm.testing.attention_case import CONFIDENCE, QUANTILE, draw_results, limit_of
from tensorcore_models.engines.engine import Engine
from tensorcore_models.results import Result


@dataclass(frozen=True, repr=False)
class AttentionTolerance(Result):
    """`AttentionTolerance` is a tolerance of an attention kernel on given operands, in absolute numbers.

    Attributes
    ----------
    label : str
    certified : float
        Largest certified bound of all elements; no kernel that computes as stated exceeds its bounds.
    statistical : float
        Largest statistical bound of all elements, from samples of the exact model.
    quantile, confidence : float
        Fraction of whole results that pass the statistical tolerance, and its confidence.
    size : float
        Root mean square of the exact result.
    zeros : float
        Share of elements for which zeros pass.
    elements, of : int
        Number of checked elements, and of all elements.
    p_scale : float
        Assumed factor of P in its cast to the operands' format.
    kept : float
        Least result of all rows for V = 1 if P is cast without a factor; 1 for formats of more than 8 bits.
    """

    label: str
    certified: float
    statistical: float
    quantile: float
    confidence: float
    size: float
    zeros: float
    elements: int
    of: int
    p_scale: float
    kept: float

    def to_dict(self) -> dict:
        """Return the content as a dict of JSON-compatible values."""
        return asdict(self)

    def to_rows(self) -> list[dict]:
        """Return a list of one row (a dict of column names and values), as for a table."""
        return [self.to_dict()]

    def sentences(self) -> list[str]:
        """Return sentences on the tolerance, its derivation, and its power."""
        lines = [
            f"{self.label}: a test may allow atol={min(self.certified, self.statistical):.3g} (rms result {self.size:.3g})",
            f"certified (no kernel with this arithmetic exceeds it): {self.certified:.3g}",
            f"statistical ({self.quantile:.2%} of right results pass, confidence {self.confidence:.0%}, sampled on the exact "
            f"model): {self.statistical:.3g}",
            f"zeros pass for {self.zeros:.0%} of {self.elements} elements"
            + (f" of {self.of}" if self.of > self.elements else ""),
        ]
        if self.p_scale != 1:
            lines.append(
                f"P is assumed to be cast times {self.p_scale:g}; without the factor V = 1 would give {self.kept:.3g} in "
                "the worst row"
            )
        return lines


def attention_tolerance(
    q, k, v, *, engine: Engine | str, out_format: str | None = None, **options: Unpack[AttentionOptions]
) -> AttentionTolerance:
    """Return the tolerance of an attention kernel for these operands.

    Parameters
    ----------
    q, k, v, engine, **options
        See :func:`mpgemm.testing.assert_attention_close`.
    out_format : str, optional
        Format of the kernel's result: the operands' by default, bf16 for operands of 8 bits.

    Raises
    ------
    ValueError, TypeError
        See :func:`mpgemm.testing.assert_attention_close`.
    """
    q, k, v = (tcm.as_array(x, name) for x, name in ((q, "q"), (k, "k"), (v, "v")))
    own = tcm.format_of_dtype(q.dtype)
    if out_format is None:
        out_format = "bf16" if own is not None and own.bits <= 8 else own.name if own is not None else "fp32"
    nothing = np.broadcast_to(np.float32(0), (*q.shape[:-1], v.shape[-1]))
    with np.errstate(all="ignore"):
        call = call_of(nothing, q, k, v, engine, out_format, options)
        cases = call.looked_at
        elements = sum(case.exact.size for case in cases)
        times = limit_of(draw_results(cases), elements)
        bound, line, exact = (
            np.concatenate([np.ravel(x) for x in each])
            for each in zip(*((case.bound, case.line(times), case.exact) for case in cases), strict=True)
        )
        passing = float(np.mean(np.abs(exact) <= np.minimum(bound, line)))
        kept = min(case.kept_without_factor() for case in cases)
    return AttentionTolerance(
        call.what, float(bound.max()), float(line.max()), QUANTILE, CONFIDENCE, float(np.sqrt(np.mean(np.square(exact)))),
        passing, elements, nothing.size, cases[0].program.p_scale, kept,
    )  # fmt: skip
