"""FidelityPhases, IntegerPhases: multipliers take parts of the operands, phase after phase (Tenstorrent's matrix unit)."""

from .specification import NAMES, FidelityPhases, IntegerPhases

__all__ = ["NAMES", "FidelityPhases", "IntegerPhases"]
