"""Identification of a black box: its specification as an engine, with the evidence; see :mod:`.run` for how."""

from .aimed import Aimed
from .box import Box, Fault, as_box
from .outcome import Identification
from .run import identify
from .solver import Solver

__all__ = ["Aimed", "Box", "Fault", "Identification", "Solver", "as_box", "identify"]
