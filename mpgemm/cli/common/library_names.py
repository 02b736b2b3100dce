"""The libraries that commands know by name: what they end in, what each needs, and the calls that end in them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Library:
    """One library."""

    name: str  #: What the commands call it.
    calls: tuple[str, ...]  #: Calls and libraries that end in it.
    needs: str  #: What must be given.


LIBRARIES = (
    Library(
        "cublaslt", ("cublas", "torch.matmul", "torch.mm", "torch.bmm", "torch.addmm", "torch.nn.functional.linear"),
        "a version, as in cublaslt-13.1, and --config ALGO_ID=... or --recorded FILE",
    ),
    Library(
        "scaled_mm", ("torch._scaled_mm",),
        "FP8 operands; --config fast_accumulation=, split_k=, scheme= (defaults: false, 1, none) or --recorded mmaemu",
    ),
    Library("cutlass", (), "--config tile_k=, split_k=, ... as the kernel was built; without, one chain over k"),
)  # fmt: skip


def resolve_library(text: str) -> tuple[str, str]:
    """(library, version or "") of a name such as "torch.matmul-13.1". Raises ValueError if it is not known."""
    name, _, version = text.partition("-")
    for library in LIBRARIES:
        if name == library.name or name in library.calls:
            return library.name, version
    known = ", ".join(name for library in LIBRARIES for name in (library.name, *library.calls))
    raise ValueError(f"unknown library {text!r}; known: {known}")


def which_library(gpu: str) -> str:
    """The question for a library, with what is known on a device and what each needs."""
    from tensorcore_models.catalogue import canonical_device
    from tensorcore_models.libraries.cublaslt_tables import PLATFORMS, TARGETS

    device = canonical_device(gpu)
    versions = [version for target, version in PLATFORMS if target == TARGETS.get(gpu)]
    known = []
    for library in LIBRARIES:
        here = _here(library.name, gpu, versions)
        calls = f" (what {', '.join(library.calls)} call)" if library.calls else ""
        known.append(f"{library.name}{calls}: {here or library.needs}")
    return f"which library's kernel on {device}? Give --library: " + "; ".join(known)


def _here(name: str, gpu: str, versions: Sequence[str]) -> str:
    """Why a library is not known on a device; empty where it is."""
    from tensorcore_models.libraries.cublaslt_tables import TARGETS
    from tensorcore_models.libraries.scaled_mm import DEVICES as SCALED_DEVICES

    if name == "cublaslt" and not versions:
        return f"not known on {gpu}, only on {', '.join(TARGETS)}"
    if name == "scaled_mm" and gpu not in SCALED_DEVICES:
        return f"not known on {gpu}, only on {', '.join(SCALED_DEVICES)}"
    return ""
