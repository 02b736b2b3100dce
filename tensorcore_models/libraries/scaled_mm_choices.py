"""This module reads cuBLASLt's recorded choices for `torch._scaled_mm` from the package mmaemu.

mmaemu 0.1.0 (PyPI, Apache-2.0, extra ``scaled-mm``) holds the choices of cuBLASLt 12.8.3's heuristic on an RTX 4060 (1,228,448
calls) and on an H100 PCIe (1,767,416 calls), with torch's workspace of 1 MiB. Other calls have no answer.
"""

import numpy as np

from ..formats import FORMATS, operand_format
from .recipe import Unknown

#: Name of each device in mmaemu's tables.
PROFILES = {"rtx4060": "ada", "h100": "hopper"}

#: Scheme of each device for joining the parts of k, and the other schemes by CUSTOM_OPTION.
SCHEMES: dict[str, tuple[str, dict[int, str]]] = {"rtx4060": ("serial", {1: "pairwise"}), "h100": ("serial", {})}

_FORMATS = {"e4m3fn": "e4m3", "e5m2": "e5m2"}
_OUTPUTS = {name: FORMATS[name].dtype_name for name in ("fp32", "bf16", "fp16", "e4m3fn", "e5m2")}


def recorded_split(
    m: int,
    k: int,
    n: int,
    *,
    device: str = "rtx4060",
    a_format: str = "e4m3fn",
    b_format: str = "e4m3fn",
    out_format: str = "bf16",
    fast_accumulation: bool = False,
) -> tuple[int, str | None]:
    """Return the `split_k` and `scheme` of :func:`scaled_mm_recipe` that cuBLASLt was recorded to choose.

    Parameters
    ----------
    m, k, n : int
        Sizes of the call: A is m x k, B is k x n.
    device : {"rtx4060", "h100"}
        GPU; "h100" is an H100 PCIe.
    a_format, b_format : {"e4m3fn", "e5m2"}
        Operand formats.
    out_format : {"fp32", "bf16", "fp16", "e4m3fn", "e5m2"}
        Output format.
    fast_accumulation : bool
        Value of torch's `use_fast_accum`.

    Raises
    ------
    Unknown
        If the call was not recorded.
    ValueError
        If mmaemu is not installed.
    """
    a_format, b_format, out_format = (operand_format(fmt).name for fmt in (a_format, b_format, out_format))
    for name, value, known in (
        ("device", device, PROFILES),
        ("a_format", a_format, _FORMATS),
        ("b_format", b_format, _FORMATS),
        ("out_format", out_format, _OUTPUTS),
    ):
        if value not in known:
            raise Unknown(f"{name} {value!r} has no recorded choices", field=name, known=known)
    try:
        from mmaemu.platform.splitk_table import lookup
    except ImportError as error:
        raise ValueError(
            f"recorded choices need the package mmaemu ({error}): pip install 'mpgemm[scaled-mm]', "
            "or give split_k and scheme"
        ) from error
    row = lookup(
        m, n, k, a_dtype=_FORMATS[a_format], b_dtype=_FORMATS[b_format], out_dtype=_OUTPUTS[out_format],
        use_fast_accum=fast_accumulation, profile=PROFILES[device],
    )  # fmt: skip
    if row is None:
        raise Unknown(
            f"{m} x {k} x {n} ({a_format} times {b_format} to {out_format}) was not recorded on {device}", field="shape",
            advice="Record the choice on the GPU, or give split_k and scheme",
        )  # fmt: skip
    parts = int(np.asarray(row["splitK"]))
    usual, others = SCHEMES[device]
    return parts, others.get(row["custom"], usual) if parts > 1 else None
