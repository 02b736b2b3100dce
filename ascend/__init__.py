"""This package models Ascend matrix units: chips, block planning, tile schedules with two interpreters, SGEMM-cube."""

from tensorcore_models.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
