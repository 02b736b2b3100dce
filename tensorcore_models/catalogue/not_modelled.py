"""Lists matrix units that the catalogue lacks, with the nearest architecture and the data that a model would need."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class NotModelled:
    """`NotModelled` is a unit without rows in the catalogue."""

    unit: str  #: Name of the unit in docs/hardware.md.
    names: str  #: Regular expression of whole names in lower case, without spaces, hyphens and underscores.
    nearest: str | None  #: Architecture with the most similar unit; None if there is none.
    missing: str  #: Data that a model would need.


_NO_RULE = "a published or recorded rule of its arithmetic"
_FAMILY = "outputs of this product, which probably computes as its family does, but was never checked"
NOT_MODELLED = (
    NotModelled("Rubin", r"(vera)?rubin(cpx)?|vr?200|r100|feynman", "blackwell", "the chip's outputs, or a model of them"),
    NotModelled(
        "Jetson Thor", r"thor|t5000|sm11\d[af]?", "blackwell",
        "outputs or a model of compute capability 11.0; it compiles tcgen05 as the B200 does, which does not tell the bits",
    ),
    NotModelled(
        "RDNA 3, RDNA 3.5, RDNA 4", r"rdna[\d.]+|gfx1[12]\d\w+|(radeon)?rx[79]\d{3}(xtx?|gre)?", None,
        f"{_NO_RULE}; its units differ from CDNA's matrix cores",
    ),
    NotModelled("CDNA4", r"cdna4|gfx950|mi35\dx?", "cdna3", _NO_RULE),
    NotModelled("MI400 series", r"cdna(5|next)|mi4\d\dx?", "cdna3", f"{_NO_RULE}, and of CDNA4's"),
    NotModelled(
        "Apple GPUs", r"(apple)?m\d(pro|max|ultra)?|(apple)?a1\d(pro)?", "apple_amx",
        f"{_NO_RULE}; apple_amx is the unit of the CPU",
    ),
    NotModelled("Intel XMX", r"(intel)?(xmx|arc|xe\d?|pontevecchio|pvc|battlemage|[ab]\d80|max1\d50)", None, _NO_RULE),
    NotModelled("Trainium", r"(aws)?(trainium|trn|inferentia|inf)\d?", None, _NO_RULE),
    NotModelled("Qualcomm HMX", r"(qualcomm)?(hexagon|hmx|npu|ai100)", None, _NO_RULE),
    NotModelled("Gaudi's successors", r"gaudi[4-9]|falconshores|jaguarshores", "gaudi3", _NO_RULE),
    NotModelled(
        "Ascend 310P", r"(ascend)?310(p\d?|b\d?)?", "ascend",
        f"{_NO_RULE}; `mpgemm plan` and `mpgemm simulate` know its memory and rates",
    ),
    NotModelled("Ascend 910C, 920, 960", r"910[cd]|920c?|9[67]0", "ascend910b", _NO_RULE),
    NotModelled(
        "GPUs before Volta", r"pascal|maxwell|kepler|p100|p40|p4|m40|k80|gtx\d+(ti)?|sm[3-6]\d", None,
        "a matrix unit, which these GPUs do not have",
    ),
    NotModelled("DGX Spark", r"gb10|(dgx)?spark", "rtx_blackwell", "outputs of compute capability 12.1 (target sm_121)"),
    NotModelled("other Turing GPUs", r"rtx20\d\d(ti|super)?|t\d00+|rtx[68]000", "turing", _FAMILY),
    NotModelled("other Ampere GPUs", r"rtx30\d\d(ti)?|a10g?|a16|rtxa\d000|ga10\d", "ampere", _FAMILY),
    NotModelled("other Ada GPUs", r"rtx40\d\d(ti)?(super)?|l2|l20|rtx\d000ada|ad10\d", "ada", _FAMILY),
    NotModelled("other Blackwell GPUs", r"rtx50\d\d(ti)?|gb20\d|rtxpro\d000", "rtx_blackwell", _FAMILY),
)  # fmt: skip


def why_not_modelled(name: str) -> str | None:
    """Return the reason why a unit is not modelled, with the nearest architecture; None for a name that the table lacks.

    Parameters
    ----------
    name : str
        Name in lower case, without spaces, hyphens and underscores.
    """
    row = next((row for row in NOT_MODELLED if re.fullmatch(row.names, name)), None)
    if row is None:
        return None
    nearest = "no architecture is near" if row.nearest is None else f"the nearest architecture is {row.nearest}"
    return f"not modelled ({row.unit}); {nearest}; a model needs {row.missing} (docs/hardware.md, units without rows)"
