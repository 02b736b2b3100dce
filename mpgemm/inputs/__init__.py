"""Provides input matrices: `matrices` generates them or loads shipped ones, `files` reads and writes files."""

from mpgemm.inputs.matrices import generate, load_shipped

__all__ = ["generate", "load_shipped"]
