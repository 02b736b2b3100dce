"""Matrices to work on: generated and shipped ones in `matrices`, files in `files`."""

from mpgemm.inputs.matrices import generate, load_shipped

__all__ = ["generate", "load_shipped"]
