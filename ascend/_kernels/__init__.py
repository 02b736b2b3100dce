"""This package holds compiled kernels; the public functions that use them validate their arguments."""

from tensorcore_models import _kernels  # noqa: F401  (the import tells how to build the kernels where they are missing)
