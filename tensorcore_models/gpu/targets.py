"""Lists the targets for which Triton kernels are compiled: architecture, matrix unit, limits."""

from dataclasses import dataclass

_KIB = 1024


@dataclass(frozen=True)
class KernelTarget:
    """`KernelTarget` is a compilation target.

    Attributes
    ----------
    name : str
        Name of the target in `--target` and in Triton.
    backend : {"cuda", "hip"}
        Backend of Triton.
    arch : int or str
        Compute capability (80), or AMD's name of the architecture.
    warp : int
        Number of threads of a warp (wavefront).
    unit : str or None
        Architecture of the catalogue whose instructions run the products; None if the catalogue has none.
    shared : int
        Bytes of shared memory that a block may take.
    registers : int
        Number of 32-bit registers of a multiprocessor.
    multiprocessors : int
        Number of multiprocessors of the device named in `device`.
    device : str
        Name of the device that has these numbers.
    gated : bool
        Whether the package's machine runs the compiled text, so that bits are checked without the device.
    """

    name: str
    backend: str
    arch: int | str
    warp: int
    unit: str | None
    shared: int
    registers: int
    multiprocessors: int
    device: str
    gated: bool


#: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; data sheets; AMD CDNA3 and CDNA4 white papers.
TARGETS = {
    row.name: row
    for row in (
        KernelTarget("sm_80", "cuda", 80, 32, "ampere", 163 * _KIB, 65536, 108, "A100", True),
        KernelTarget("sm_86", "cuda", 86, 32, "ampere", 99 * _KIB, 65536, 84, "RTX A6000", True),
        KernelTarget("sm_89", "cuda", 89, 32, "ada", 99 * _KIB, 65536, 142, "L40S", True),
        KernelTarget("sm_90", "cuda", 90, 32, "hopper", 227 * _KIB, 65536, 132, "H100 SXM", True),
        KernelTarget("sm_100", "cuda", 100, 32, "blackwell", 227 * _KIB, 65536, 148, "B200", True),
        KernelTarget("sm_120", "cuda", 120, 32, "rtx_blackwell", 99 * _KIB, 65536, 170, "RTX 5090", True),
        KernelTarget("gfx942", "hip", "gfx942", 64, "cdna3", 64 * _KIB, 131072, 304, "MI300X", True),
        KernelTarget("gfx950", "hip", "gfx950", 64, None, 160 * _KIB, 131072, 256, "MI355X", False),
    )
}


def get_target(name: str) -> KernelTarget:
    """Return the row of a target ("sm_90", "sm_90a", "90").

    Raises
    ------
    ValueError
        If the target is unknown; the message lists the known targets.
    """
    text = str(name)
    text = f"sm_{text}" if text.isdigit() else text.rstrip("af") if text.startswith("sm_") else text
    if text not in TARGETS:
        raise ValueError(f"unknown target {name!r}, expected one of {', '.join(TARGETS)}")
    return TARGETS[text]
