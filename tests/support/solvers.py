"""Tests that need an SMT solver skip without one."""

import pytest

from tensorcore_models.probing.formal import available_backends

needs_solver = pytest.mark.skipif(
    not available_backends(), reason="no SMT solver is installed: pip install 'mpgemm[smt]'"
)
