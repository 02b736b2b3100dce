"""Holds compiled kernels, whose arguments are validated by the public functions that call them."""

from tensorcore_models import _kernels  # noqa: F401  (its error says how to build missing kernels)
