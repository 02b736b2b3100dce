"""The pytest plugin of mpgemm: fixtures for tests of matrix kernels.

A module of its own, so that pytest loads it without importing the package: the package is imported by the first test that
asks for a fixture.
"""

import pytest


@pytest.fixture(scope="session")
def gemm_tolerance():
    """:func:`mpgemm.testing.gemm_tolerance` that fails a test whose tolerance is vacuous, or unbounded for over a tenth."""
    from mpgemm.integrations.kernel_overflow import too_many_unbounded
    from mpgemm.testing import gemm_tolerance as unchecked

    def checked(*args, **options):
        found = unchecked(*args, **options)
        if found.vacuity.vacuous:
            pytest.fail(f"the tolerance is vacuous: a kernel that writes zeros passes\n{found}", pytrace=False)
        if (text := too_many_unbounded(found)) is not None:
            pytest.fail(text, pytrace=False)
        return found

    return checked
