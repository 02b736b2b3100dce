"""JAX's products on emulated matrix units (extra "jax").

:func:`dot_general` is `jax.lax.dot_general` for named dot algorithms; it can be compiled, differentiated, and given to
layers that take a `dot_general`. See docs/jax.md.
"""

# ruff: noqa: F401  (what is imported here is the public interface)
from mpgemm.frameworks.extras import require

require("jax", "jax")

from mpgemm.frameworks.jax_dots import ALGORITHMS, Algorithm, dot_general  # noqa: E402
