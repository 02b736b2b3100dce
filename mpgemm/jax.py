"""Runs JAX's products on emulated matrix units (extra "jax").

:func:`dot_general` stands in for `jax.lax.dot_general` and takes the names of dot algorithms; it can be compiled and
differentiated, and passed to layers that have a `dot_general` argument. See docs/jax.md.
"""

# ruff: noqa: F401  (what is imported here is the public interface)
from mpgemm.frameworks.extras import require

require("jax", "jax")

from mpgemm.frameworks.jax_dots import ALGORITHMS, Algorithm, dot_general  # noqa: E402
