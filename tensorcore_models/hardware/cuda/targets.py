"""GPU architectures: their compute capabilities, and how PTX spells formats."""

#: Architecture of the catalogue: (compute capability, compilation target).
TARGETS: dict[str, tuple[tuple[int, int], str]] = {
    "volta": ((7, 0), "sm_70"),
    "turing": ((7, 5), "sm_75"),
    "ampere": ((8, 0), "sm_80"),
    "ada": ((8, 9), "sm_89"),
    "hopper": ((9, 0), "sm_90a"),
    "blackwell": ((10, 0), "sm_100a"),
    "rtx_blackwell": ((12, 0), "sm_120a"),
}

#: How PTX spells the formats.
PTX_NAMES = {"fp64": "f64", "fp32": "f32", "fp16": "f16", "e4m3fn": "e4m3"}


def ptx_name(fmt: str) -> str:
    """PTX's spelling of a format."""
    return PTX_NAMES.get(fmt, fmt)


def architecture_of(capability: tuple[int, int]) -> str:
    """Architecture of a compute capability.

    Raises
    ------
    ValueError
        If no architecture of the catalogue has it.
    """
    major, minor = capability
    if (major, minor) in ((7, 0), (7, 2)):
        return "volta"
    if major == 8 and minor != 9:
        return "ampere"
    for name, (known, _) in TARGETS.items():
        if known == (major, minor) or (major >= 10 and known[0] == major):
            return name
    raise ValueError(f"compute capability {major}.{minor} is none of {', '.join(TARGETS)}")


def target_of(arch: str, capability: tuple[int, int] | None = None) -> str:
    """Compilation target for an architecture; for a device of it if its compute capability is given.

    Raises
    ------
    ValueError
        If kernels are not generated for the architecture.
    """
    if arch not in TARGETS:
        raise ValueError(f"no CUDA target for architecture {arch!r}; there are {', '.join(TARGETS)}")
    target = TARGETS[arch][1]
    if capability is None:
        return target
    suffix = "a" if target.endswith("a") else ""
    return f"sm_{capability[0]}{capability[1]}{suffix}"
