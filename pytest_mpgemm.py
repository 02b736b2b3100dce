"""The pytest plugin of mpgemm: fixtures for tests of matrix kernels, and what their tolerances miss.

A module of its own, so that pytest loads it without importing the package: the package is imported by the first test that
asks for a fixture.
"""

import pytest

#: What a test's report carries: the faults that a tolerance of this test would let pass.
MISSES = "mpgemm: its tolerance misses"
#: Of the tolerances that the present test asked for; a fixture of a session knows no test.
_missed: list[str] = []


@pytest.fixture(scope="session")
def gemm_tolerance():
    """:func:`mpgemm.testing.gemm_tolerance` that fails a test whose tolerance is vacuous, or unbounded for over a tenth.

    The faults of kernels that its tolerances would let pass are listed at the end of the run.
    """
    from mpgemm.testing import gemm_tolerance as unchecked
    from mpgemm.testing.faults import missed_faults
    from mpgemm.testing.possible_results import too_many_unbounded

    def checked(*args, **options):
        found = unchecked(*args, **options)
        if found.vacuity.vacuous:
            pytest.fail(f"the tolerance is vacuous: a kernel that writes zeros passes\n{found}", pytrace=False)
        if (text := too_many_unbounded(found)) is not None:
            pytest.fail(text, pytrace=False)
        if (missed := missed_faults(found)) is not None:
            _missed.append(f"{found.engine.label}, k = {found.a.shape[1]}, {found.out_format}: {missed}")
        return found

    return checked


def pytest_runtest_teardown(item):
    """Give what was found to the test's report, which comes back from workers, too."""
    item.user_properties += [(MISSES, text) for text in dict.fromkeys(_missed)]
    _missed.clear()


def pytest_terminal_summary(terminalreporter):
    """List, for each test that asked for a tolerance, which of the faults tried it would let pass."""
    reports = [report for of_kind in terminalreporter.stats.values() for report in of_kind]
    reports = [report for report in reports if getattr(report, "when", None) == "teardown"]
    found = [
        (report.nodeid, text)
        for report in reports
        for name, text in getattr(report, "user_properties", ())
        if name == MISSES
    ]
    if found:
        terminalreporter.section("faults of kernels that tolerances miss (mpgemm)")
    for test, text in found:
        terminalreporter.write_line(f"{test}: {text}")
