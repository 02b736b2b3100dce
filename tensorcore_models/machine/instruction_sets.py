"""This module chooses the instruction-set variant of the kernels: the best variant of the CPU, or the one that is set.

All variants give the same bits; the choice matters for speed and for tests. The environment variable ``MPGEMM_ISA`` (baseline,
avx2 or avx512) sets the variant of a process, :func:`set_isa` changes it during the run. The variable is read when a variant is
first needed, and again after ``set_isa(None)``, because small products cannot afford to read it every time.
"""

import functools
import os

from .._kernels.common.cpu import cpu_level

#: Names of the variants, indexed by the level that the kernels take (cpu.h).
ISAS: tuple[str, ...] = ("baseline", "avx2", "avx512")

#: The variant that runs; None if it is not chosen yet.
_active: str | None = None


@functools.cache  # asking the CPU traps to the hypervisor in virtual machines: 20 microseconds
def available_isas() -> tuple[str, ...]:
    """Return the instruction-set variants that this CPU runs, slowest first; CPUs other than x86-64 have "baseline"."""
    return ISAS[: cpu_level() + 1]


def check_isa(name: str) -> str:
    """Return `name` if this CPU runs that variant; raises ValueError if it is unknown or the CPU lacks its instructions."""
    if name not in ISAS:
        raise ValueError(f"unknown instruction set {name!r}, expected one of {', '.join(ISAS)}")
    if name not in available_isas():
        raise ValueError(f"this CPU cannot run {name!r} kernels, expected one of {', '.join(available_isas())}")
    return name


def set_isa(name: str | None) -> None:
    """Set the instruction-set variant of the kernels.

    None resets it to the variant that ``MPGEMM_ISA`` now names, or to the best variant if it names none.

    Raises
    ------
    ValueError
        If the name is unknown or the CPU lacks the instructions.
    """
    global _active
    _active = None if name is None else check_isa(name)


def active_isa() -> str:
    """Return the name of the kernels' current instruction-set variant.

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
    """Return the level of :func:`active_isa` that the kernels take."""
    return ISAS.index(_active or active_isa())
