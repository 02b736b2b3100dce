"""Which instruction-set variant of the kernels runs: the best one of the CPU, or the one asked for.

Every variant gives the same bits; choosing one matters for speed and for tests. The environment variable
``MPGEMM_ISA`` (baseline, avx2 or avx512) forces a variant for a process, :func:`set_isa` while it runs. The variable is read
when a variant is first needed, and again after ``set_isa(None)``: small products cannot afford to look at it every time.
"""

import functools
import os

from .._kernels.common.cpu import cpu_level

#: Names of the variants, by the level that the kernels take (cpu.h).
ISAS: tuple[str, ...] = ("baseline", "avx2", "avx512")

#: The variant that runs; None: not looked for yet.
_active: str | None = None


@functools.cache  # asking the CPU traps to the hypervisor in virtual machines: 20 microseconds
def available_isas() -> tuple[str, ...]:
    """Return the names of the instruction-set variants that this CPU runs, slowest first; on CPUs other than x86-64
    only "baseline"."""
    return ISAS[: cpu_level() + 1]


def check_isa(name: str) -> str:
    """Return `name` itself if this CPU runs that variant; raises ValueError if it is unknown or the CPU lacks the
    instructions."""
    if name not in ISAS:
        raise ValueError(f"unknown instruction set {name!r}; known: {', '.join(ISAS)}")
    if name not in available_isas():
        raise ValueError(f"this CPU cannot run {name!r} kernels; it runs: {', '.join(available_isas())}")
    return name


def set_isa(name: str | None) -> None:
    """Set the kernel variant that is used from now on; None goes back to ``MPGEMM_ISA`` (which is read again) or the
    best variant.

    Raises
    ------
    ValueError
        If the name is unknown or the CPU lacks the instructions.
    """
    global _active
    _active = None if name is None else check_isa(name)


def active_isa() -> str:
    """Return the name of the instruction-set variant of the kernels that runs now.

    Raises
    ------
    ValueError
        If ``MPGEMM_ISA`` names a variant that is unknown or that the CPU lacks.
    """
    global _active
    if _active is None:
        _active = _from_environment()
    return _active


def _from_environment() -> str:
    wanted = os.environ.get("MPGEMM_ISA")
    if not wanted:
        return available_isas()[-1]
    try:
        return check_isa(wanted)
    except ValueError as error:
        raise ValueError(f"environment variable MPGEMM_ISA: {error}") from None


def isa_level() -> int:
    """Return the number of :func:`active_isa`, as the kernels take it."""
    return ISAS.index(_active or active_isa())
