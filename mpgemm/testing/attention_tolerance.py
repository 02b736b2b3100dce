"""Computes the tolerance of an attention kernel on its operands, and what a cast of P without a factor would lose there."""

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
    """A tolerance of an attention kernel, as absolute numbers on given operands.

    Attributes
    ----------
    label : str
    certified : float
        No kernel that computes as is said exceeds it: the largest of all elements.
    statistical : float
        So much right kernels keep below, sampled on the exact model: the largest of all elements.
    quantile, confidence : float
        For the statistical tolerance: the fraction of whole results that pass, and its confidence.
    size : float
        Root mean square of the exact result.
    zeros : float
        Share of elements in which zeros pass.
    elements, of : int
        Elements looked at, and all.
    p_scale : float
        The factor with which P is taken to be cast to the operands' format.
    kept : float
        What V = 1 gives where P is cast without a factor, the least of all rows; 1 for formats of more than 8 bits.
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
        """Say what may be allowed, how it is known, and what it sees."""
        lines = [
            f"{self.label}: a test may allow atol={min(self.certified, self.statistical):.3g} (rms result {self.size:.3g})",
            f"certified (no kernel that computes so exceeds it): {self.certified:.3g}",
            f"statistical ({self.quantile:.2%} of right results pass, confidence {self.confidence:.0%}, sampled on the exact "
            f"model): {self.statistical:.3g}",
            f"zeros pass in {self.zeros:.0%} of {self.elements} elements"
            + (f" of {self.of}" if self.of > self.elements else ""),
        ]
        if self.p_scale != 1:
            lines.append(
                f"P is taken to be cast times {self.p_scale:g}; without it V = 1 would give {self.kept:.3g} in the worst row"
            )
        return lines


def attention_tolerance(
    q, k, v, *, engine: Engine | str, out_format: str | None = None, **options: Unpack[AttentionOptions]
) -> AttentionTolerance:
    """Return the tolerance of an attention kernel on operands.

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
