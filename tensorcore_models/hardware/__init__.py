"""This package runs real hardware: single instructions of NVIDIA GPUs and of this machine's CPU, and GPU libraries.

`engine` finds an engine by the name that the command line's ``--engine`` takes. Importing needs no GPU; an engine whose GPU is
missing raises OSError or RuntimeError, which says what is missing. ``mpgemm campaign`` compares a GPU with its models.
docs/hardware.md lists the runs on hardware.
"""

from ..lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__, ("campaign", "cuda", "libraries"))
