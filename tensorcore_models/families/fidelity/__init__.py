"""Holds FidelityPhases and IntegerPhases, whose multipliers take part of each operand in each phase (Tenstorrent)."""

from .specification import NAMES, FidelityPhases, IntegerPhases

__all__ = ["NAMES", "FidelityPhases", "IntegerPhases"]
