"""This package computes special functions of GPUs bit for bit: exponentials, logarithms, roots, sines and conversions.

A function is a row of data (:mod:`.rows`; CUDA's library functions in :mod:`.library`). Its program is a short sequence of FP32
instructions (:mod:`.sequences`) around NVIDIA's special-function unit. The datapath of that unit is written once
(:mod:`.datapath`), for integers (:mod:`.on_integers`) and for terms of solvers (:mod:`.on_terms`), with its coefficients in
``tables.txt``. Arrays are computed by a kernel (``_kernels/functions``). Recordings of whole domains are compared by hashes
(:mod:`.hashes`).
"""

import difflib
from functools import cache

from ..catalogue import canonical_device
from ..catalogue.devices import DEVICES
from ..catalogue.nvidia import ARCHITECTURES
from .function import Function
from .library import LIBRARY_FUNCTIONS
from .rows import INSTRUCTION, INSTRUCTIONS, Row

__all__ = ["Function", "get_function", "list_functions"]

#: The architecture of the GPU whose results were recorded.
RECORDED = "hopper"


def _evidence(arch: str, row: Row) -> str:
    """Return the evidence of a row's bits for an architecture."""
    if row.recorded == "IEEE 754":
        return "IEEE 754"
    if row.kind == INSTRUCTION:
        known = f"hardware: {row.recorded} recorded on an H100, 0 differ"
        known = known if row.recorded else "inferred from the packed form, which was recorded on an H100"
        where = "inferred from the H100 (the unit has not changed since G80)"
    else:
        known = f"hardware: {row.recorded} on an H100, 0 differ"
        known = known if row.recorded else "inferred: a sequence of instructions that were recorded on an H100"
        where = "inferred from the H100"
    return known if arch == RECORDED else f"{where}; {known}"


@cache
def _functions(arch: str) -> dict[str, Function]:
    """Return the functions of an architecture by name."""
    capability = ARCHITECTURES[arch].capability
    rows = {**INSTRUCTIONS, **LIBRARY_FUNCTIONS}
    return {
        name: Function(arch, name, row, _evidence(arch, row))
        for name, row in rows.items()
        if row.capability <= capability
    }


def _architecture(name: str) -> str:
    """Return the architecture of a name or device; raises ValueError if its functions are not modelled."""
    device = canonical_device(name)
    arch = DEVICES.get(device, (device, ()))[0]
    if arch not in ARCHITECTURES:
        raise ValueError(
            f"special functions of {name} are not modelled, expected one of NVIDIA's architectures: "
            f"{', '.join(ARCHITECTURES)}"
        )
    return arch


def list_functions(arch: str | None = None) -> list[Function]:
    """Return the special functions that are modelled bit for bit: PTX instructions and CUDA library functions.

    Parameters
    ----------
    arch : str, optional
        NVIDIA architecture or device; by default all architectures.

    Raises
    ------
    ValueError
        If the architecture is unknown, or its functions are not modelled.

    Examples
    --------
    >>> import tensorcore_models as tcm
    >>> [f.name for f in tcm.list_functions("h100")][:3]
    ['ex2.approx.ftz.f32', 'ex2.approx.f32', 'lg2.approx.ftz.f32']
    """
    if arch is not None:
        return list(_functions(_architecture(arch)).values())
    return [function for name in ARCHITECTURES for function in _functions(name).values()]


def get_function(arch: str, name: str | None = None) -> Function:
    """Return a special function by architecture (or device) and name, or by "arch:name" as one string.

    Parameters
    ----------
    arch : str
        Architecture, device ("h100"), or "arch:name".
    name : str, optional
        PTX name of an instruction, CUDA name of a library function ("expf"), or torch function ("torch.silu").

    Raises
    ------
    ValueError
        If the architecture or the name is unknown, or the architecture lacks the function; the message lists its functions.
    TypeError
        If an argument is not a string.

    Examples
    --------
    >>> import tensorcore_models as tcm
    >>> f = tcm.get_function("hopper", "rsqrt.approx.f32")
    >>> f.values([2.0, 4.0]).tolist()
    [0.7071067094802856, 0.5]
    """
    if not isinstance(arch, str) or not isinstance(name, str | None):
        given = arch if not isinstance(arch, str) else name
        raise TypeError(f"architecture and function must be strings, got {type(given).__name__}: pass their names")
    if name is None:
        arch, separator, name = arch.partition(":")
        if not separator:
            raise ValueError(f"a function is written 'arch:name', got {arch!r}: list_functions() returns all functions")
    known = _functions(_architecture(arch))
    if name in known:
        return known[name]
    elsewhere = [a for a in ARCHITECTURES if name in _functions(a)]
    near = difflib.get_close_matches(str(name), known, 3, cutoff=0.5)
    reason = f"{name} is not on {arch}" if elsewhere else f"unknown function {name!r} of {arch}"
    where = f"; it is on {', '.join(elsewhere)}" if elsewhere else f"; nearest: {', '.join(near)}" if near else ""
    raise ValueError(f"{reason}{where}. {arch} has {', '.join(known)}")
