"""Runners for real hardware: single instructions of NVIDIA GPUs and of this machine's CPU with raw bits in and out, and the
libraries that users call.

`engine` looks an engine up by name, as the command line's ``--engine`` takes it. Importing needs no GPU; using an engine
without one raises OSError or RuntimeError that says what is missing. ``mpgemm campaign`` compares a GPU with its models.
docs/hardware.md says what has been run on which hardware.
"""

from ..lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__, ("campaign", "cuda", "libraries"))
