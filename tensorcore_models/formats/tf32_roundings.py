"""This module lists how libraries round FP32 operands to TF32 on each GPU, before the unit ignores their last 13 bits.

For example, 1024.5 x 1 is 1024 to nearest even and without rounding, 1025 with ties away; 2051 x 1 is 2052 with both roundings
and 2050 without rounding.
"""

from typing import NamedTuple


class TF32Rounding(NamedTuple):
    """`TF32Rounding` says how one library rounds FP32 operands to TF32 on some GPUs."""

    library: str  #: Name and version of the library.
    family: str  #: "cublas" or "triton".
    devices: tuple[str, ...]  #: GPUs for which the rounding is known; empty means all GPUs.
    rounding: str
    evidence: str

    def __str__(self) -> str:
        return f"{ROUNDINGS[self.rounding]} ({self.rounding}), as {self.library} does{self._where} ({self.evidence})"

    @property
    def _where(self) -> str:
        return f" on {', '.join(self.devices)}" if self.devices else ""


#: Names of the roundings in sentences.
ROUNDINGS = {"rne": "to nearest even", "rna": "to nearest, ties away", "rz": "truncated"}

TF32_ROUNDINGS = (
    TF32Rounding("cuBLAS 13.0 (torch 2.11)", "cublas", ("h100",), "rne", "measured: 32 recorded products, every bit"),
    TF32Rounding(
        "cuBLAS of 2020",
        "cublas",
        ("rtx3080", "rtx3090"),
        "rna",
        "published: PyTorch issues 53635, 84334, 1024.5 x 1 = 1025",
    ),
    TF32Rounding("tl.dot of Triton", "triton", (), "rz", "published: the operands reach the unit as they are"),
)


def tf32_rounding(family: str, device: str | None) -> TF32Rounding | None:
    """Return the rounding of a library on a device ("h100", "h100/mma"); None if it is neither measured nor published.

    >>> tf32_rounding("cublas", "h100").rounding, tf32_rounding("cublas", "a100")
    ('rne', None)
    """
    name = (device or "").partition("/")[0].lower()
    return next((r for r in TF32_ROUNDINGS if r.family == family and (not r.devices or name in r.devices)), None)


def tf32_owners() -> str:
    """Return text that lists all known roundings with their libraries."""
    return "; ".join(map(str, TF32_ROUNDINGS))
