"""This package holds assertions for tests of matrix kernels, with or without pytest; see docs/pytest.md.

- :func:`assert_gemm_close` compares a result with a certified tolerance, :func:`assert_bits` with a recipe's bits,
  :func:`assert_grouped_close` the groups of a grouped product, :func:`assert_attention_close` attention;
  :func:`assert_attention_invariants` checks properties of every attention kernel.
- :func:`check_gemm`, :func:`check_grouped` and :func:`check_attention` return the result of a check.
- :func:`gemm_tolerance` and :func:`attention_tolerance` return tolerances; :func:`faults_of` and :func:`missed_faults`
say which
  faults a test with a tolerance misses.
- :func:`kernel_of` and :class:`Draws` describe the kernel and the data for :func:`mpgemm.tolerance`.
"""

# ruff: noqa: F401  (what is imported here is the public interface)
from mpgemm.testing.attention import assert_attention_close, check_attention
from mpgemm.testing.attention_invariants import assert_attention_invariants, check_attention_invariants
from mpgemm.testing.attention_tolerance import attention_tolerance
from mpgemm.testing.case import KernelCase, gemm_tolerance
from mpgemm.testing.check import KernelCheck, assert_gemm_close, check_gemm
from mpgemm.testing.faults import faults_of, missed_faults
from mpgemm.testing.grouped import assert_grouped_close, check_grouped
from mpgemm.testing.recipe_bits import assert_bits
from mpgemm.testing.tolerances import Draws, kernel_of

#: An older name of the class.
KernelTolerance = KernelCase
