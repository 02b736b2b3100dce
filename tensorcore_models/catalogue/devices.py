"""Devices as aliases of architectures."""

from .nvidia import ARCHITECTURES

#: device: (architecture, operand formats that its tensor cores lack although the architecture has them).
DEVICES: dict[str, tuple[str, tuple[str, ...]]] = {
    **{device: (arch, lacks) for arch, row in ARCHITECTURES.items() for device, lacks in row.devices.items()},
    "mi100": ("cdna1", ()),
    "mi210": ("cdna2", ()),
    "mi250": ("cdna2", ()),
    "mi250x": ("cdna2", ()),
    "mi300": ("cdna3", ()),
    "mi300a": ("cdna3", ()),
    "mi300x": ("cdna3", ()),
    "910a": ("ascend", ()),
    "910b1": ("ascend910b", ()),
    "910b2": ("ascend910b", ()),
    "910b3": ("ascend910b", ()),
    "910b4": ("ascend910b", ()),
    "hl-205": ("gaudi", ()),
    "hl-225h": ("gaudi2", ()),
    "hl-325l": ("gaudi3", ()),
    "hl-338": ("gaudi3", ()),
    "n150": ("wormhole", ()),
    "n300": ("wormhole", ()),
}
