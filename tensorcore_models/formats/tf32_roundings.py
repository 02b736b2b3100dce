"""How FP32 operands become TF32, by library and GPU: the unit ignores 13 bits, libraries round before it sees them.

1024.5 x 1 is 1024 to nearest even and where nobody rounds, 1025 with ties away; 2051 x 1 is 2052 or, where nobody rounds, 2050.
"""

from typing import NamedTuple


class TF32Rounding(NamedTuple):
    """One library on some GPUs."""

    library: str  #: With its version.
    family: str  #: "cublas" or "triton".
    devices: tuple[str, ...]  #: For which it is known; empty: all.
    rounding: str
    evidence: str

    def __str__(self) -> str:
        return f"{ROUNDINGS[self.rounding]} ({self.rounding}), as {self.library} does{self._where} ({self.evidence})"

    @property
    def _where(self) -> str:
        return f" on {', '.join(self.devices)}" if self.devices else ""


#: What the roundings are called.
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
    """Return the row of a library on a device ("h100", "h100/mma"); None where nobody has measured or published it.

    >>> tf32_rounding("cublas", "h100").rounding, tf32_rounding("cublas", "a100")
    ('rne', None)
    """
    name = (device or "").partition("/")[0].lower()
    return next((r for r in TF32_ROUNDINGS if r.family == family and (not r.devices or name in r.devices)), None)


def tf32_owners() -> str:
    """Return whose roundings are known, in a sentence without its end."""
    return "; ".join(map(str, TF32_ROUNDINGS))
