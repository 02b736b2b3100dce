"""Compiled kernels; the public functions that use them validate their arguments."""

from tensorcore_models import _kernels  # noqa: F401  (says how to build them where they are not built)
