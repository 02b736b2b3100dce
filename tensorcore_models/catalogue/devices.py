"""Lists devices as aliases of architectures."""

from .nvidia import ARCHITECTURES

#: Products without recorded outputs: (architecture, operand formats they lack, reason why their unit is the architecture's).
SAME_UNIT: dict[str, tuple[str, tuple[str, ...], str]] = {
    "v100s": ("volta", (), "GV100, as the V100"),
    "a800": ("ampere", (), "GA100, as the A100, with slower links"),
    "rtx3060": ("ampere", ("fp64",), "compute capability 8.6, as the A2, of which outputs are published"),
    "orin": ("ampere", ("fp64",), "compute capability 8.7; the arithmetic is inferred from that of 8.0 and 8.6"),
    "rtx4080": ("ada", (), "compute capability 8.9, as the RTX 4060 and the L40S"),
    "l4": ("ada", (), "compute capability 8.9, as the L40S"),
    "l40": ("ada", (), "compute capability 8.9, as the L40S"),
    "h20": ("hopper", (), "compute capability 9.0, as the H100, with fewer units"),
    "h800": ("hopper", (), "compute capability 9.0, as the H100, with slower links"),
    "rtx5080": ("rtx_blackwell", (), "compute capability 12.0, as the RTX PRO 6000"),
    "rtx5090": ("rtx_blackwell", (), "compute capability 12.0, as the RTX PRO 6000"),
    "mi308x": ("cdna3", (), "gfx942, as the MI300X, with fewer units"),
    "mi325x": ("cdna3", (), "gfx942, as the MI300X, with other memory"),
}
#: Products of other vendors' architectures.
_OTHERS = {
    "cdna1": "mi100", "cdna2": "mi210 mi250 mi250x", "cdna3": "mi300 mi300a mi300x", "ascend": "910a",
    "ascend910b": "910b1 910b2 910b3 910b4", "ascend950": "950 950pr",
    "gaudi": "hl-205", "gaudi2": "hl-225h", "gaudi3": "hl-325l hl-338",
    "wormhole": "n150 n300", "blackhole": "p100a p150a",
}  # fmt: skip
#: Devices: (architecture, operand formats that their tensor cores lack although the architecture has them).
DEVICES: dict[str, tuple[str, tuple[str, ...]]] = {
    **{device: (arch, lacks) for arch, row in ARCHITECTURES.items() for device, lacks in row.devices.items()},
    **{device: (arch, ()) for arch, devices in _OTHERS.items() for device in devices.split()},
    **{device: row[:2] for device, row in SAME_UNIT.items()},
}
