"""What tests share: published data that does not ship with the project, and what memory a function takes."""

import gc
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# Tests call small kernels by the thousand, often with more processes than cores: threads that spin while they wait for
# work cost a hundred times the work. Read when OpenMP's library is loaded, so it is set before the packages' imports.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads spin, too

# How long an example takes says more about the machine's load than about the code.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")


@pytest.hookimpl(trylast=True)  # when all parameters are known
def pytest_generate_tests(metafunc):
    """Make only the n cases of a test marked `sweep(n)` that `make test` runs: making the others takes seconds."""
    mark = next(metafunc.definition.iter_markers("sweep"), None)
    if mark is not None and "not full" in metafunc.config.option.markexpr:
        calls = metafunc._calls
        metafunc._calls = [calls[i] for i in kept(len(calls), mark.args[0])]


def kept(cases: int, n: int) -> list[int]:
    """Return n of the cases, spread evenly over them."""
    return sorted({i * cases // n for i in range(n)}) if cases > n else list(range(cases))


@pytest.hookimpl(tryfirst=True)  # before pytest drops what `-m` leaves out
def pytest_collection_modifyitems(items):
    """Of a test marked `sweep(n)`, all cases but n, spread evenly over them, run in `make test-all` only."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sweep"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for group in cases.values():
        (n,) = group[0].get_closest_marker("sweep").args
        chosen = set(kept(len(group), n))
        for i, item in enumerate(group):
            if i not in chosen:
                item.add_marker("full")


def pytest_collection_finish():
    """Run full garbage collections less often, because they took 6 % of the suite's time for objects that stay alive."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 200)


@pytest.fixture(autouse=True, scope="session")
def _memory_nobody_wrote():
    """`numpy.empty` gives a pattern, not what another array left there: elements that a kernel leaves out are seen."""
    given = np.empty

    def filled(*args, **options):
        x = given(*args, **options)
        if x.dtype.isbuiltin == 1 and x.dtype.kind in "uif":
            x[...] = np.frombuffer(b"\xa5" * x.itemsize, x.dtype)[0]
        return x

    np.empty = filled
    yield
    np.empty = given


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch):
    """Tables in full: a terminal as wide as any of them, whatever pytest runs in."""
    monkeypatch.setenv("COLUMNS", "100000")


def _folder(variable: str, what: str) -> Path:
    value = os.environ.get(variable)
    if not value or not Path(value).is_dir():
        pytest.skip(f"{what} not found: set {variable} to its folder")
    return Path(value)


@pytest.fixture(scope="session")
def hardware_vectors() -> Path:
    """Folder with the published outputs of real GPUs (.npz files and index.json)."""
    return _folder("MPGEMM_VECTORS", "published hardware vectors")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder with the facts, experiments and platform files that do not ship with the project."""
    return _folder("MPGEMM_SHARED", "shared facts, experiments and platform files")


@pytest.fixture(scope="session")
def peak():
    """A function's peak: bytes that arrays and objects take at the same time while it runs."""

    def measured(function) -> int:
        tracemalloc.start()
        try:
            function()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return measured
