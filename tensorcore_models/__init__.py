"""This package holds bit-exact models of matrix multiply-accumulate hardware.

The package holds number formats, rounding, splitting into words, accumulator algorithms, the catalogue of published
instructions, matrix engines, probes for black boxes, and runners for real hardware.

The stub beside this file says which module holds each public name; a module is imported when one of its names is first used.
"""

from .engines.homes import Home, register_home
from .lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    __file__,
    ("accumulators", "atlas", "catalogue", "compiled", "functions", "hardware", "libraries", "probing", "reference"),
)


def _tensors() -> Home:
    """Return the module that multiplies torch tensors on their GPU."""
    from .gpu import tensors

    return tensors


register_home("torch", _tensors)
