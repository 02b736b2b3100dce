"""GPU architectures: their compute capabilities and compilation targets."""

from ...catalogue.nvidia import ARCHITECTURES

#: Architecture of the catalogue: (compute capability, compilation target).
TARGETS: dict[str, tuple[tuple[int, int], str]] = {
    arch: (row.capability, row.target) for arch, row in ARCHITECTURES.items()
}


def architecture_of(capability: tuple[int, int]) -> str:
    """Return architecture of a compute capability; raises ValueError if no architecture of the catalogue has it."""
    major, minor = capability
    for name, row in ARCHITECTURES.items():
        if (major, minor) in (row.capability, *row.variants):
            return name
    for name, row in ARCHITECTURES.items():
        if row.whole_major and row.capability[0] == major:
            return name
    raise ValueError(f"compute capability {major}.{minor} is not supported; known: {', '.join(TARGETS)}")


def target_of(arch: str, capability: tuple[int, int] | None = None) -> str:
    """Compilation target for an architecture; for a device of it if its compute capability is given. Raises ValueError."""
    if arch not in TARGETS:
        raise ValueError(f"no CUDA target for architecture {arch!r}; there are {', '.join(TARGETS)}")
    target = TARGETS[arch][1]
    if capability is None:
        return target
    suffix = "a" if target.endswith("a") else ""
    return f"sm_{capability[0]}{capability[1]}{suffix}"
