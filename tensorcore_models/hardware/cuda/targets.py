"""This module maps GPU architectures to their compute capabilities and compilation targets."""

from ...catalogue.nvidia import ARCHITECTURES

#: (compute capability, compilation target) by architecture of the catalogue.
TARGETS: dict[str, tuple[tuple[int, int], str]] = {
    arch: (row.capability, row.target) for arch, row in ARCHITECTURES.items()
}


def architecture_of(capability: tuple[int, int]) -> str:
    """Return the architecture of a compute capability; raises ValueError if no architecture of the catalogue has it."""
    major, minor = capability
    for name, row in ARCHITECTURES.items():
        if (major, minor) in (row.capability, *row.variants):
            return name
    for name, row in ARCHITECTURES.items():
        if row.whole_major and row.capability[0] == major:
            return name
    raise ValueError(f"compute capability {major}.{minor} is not supported, expected one of {', '.join(TARGETS)}")


def target_of(arch: str, capability: tuple[int, int] | None = None) -> str:
    """Return the compilation target of an architecture, or of its device with this compute capability; raises ValueError."""
    if arch not in TARGETS:
        raise ValueError(f"no CUDA target for architecture {arch!r}, expected one of {', '.join(TARGETS)}")
    target = TARGETS[arch][1]
    if capability is None:
        return target
    suffix = "a" if target.endswith("a") else ""
    return f"sm_{capability[0]}{capability[1]}{suffix}"
