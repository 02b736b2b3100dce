"""Devices as aliases of architectures."""

#: device: (architecture, operand formats that its tensor cores lack although the architecture has them).
#: A2 and A30 lack FP64 tensor cores according to khattak-mikaitis, section IV-A3.
DEVICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "v100": ("volta", ()),
    "titan_v": ("volta", ()),
    "t4": ("turing", ()),
    "rtx2080ti": ("turing", ()),
    "a100": ("ampere", ()),
    "a2": ("ampere", ("fp64",)),
    "a30": ("ampere", ("fp64",)),
    "a40": ("ampere", ()),
    "rtx3090": ("ampere", ()),
    "rtx_a6000": ("ampere", ()),
    "rtx1000_ada": ("ada", ()),
    "rtx4060": ("ada", ()),
    "rtx4090": ("ada", ()),
    "l40s": ("ada", ()),
    "h100": ("hopper", ()),
    "h200": ("hopper", ()),
    "gh200": ("hopper", ()),
    "b200": ("blackwell", ()),
    "rtx_pro_6000": ("rtx_blackwell", ()),
    "mi100": ("cdna1", ()),
    "mi210": ("cdna2", ()),
    "mi250": ("cdna2", ()),
    "mi250x": ("cdna2", ()),
    "mi300": ("cdna3", ()),
    "mi300a": ("cdna3", ()),
    "mi300x": ("cdna3", ()),
}
