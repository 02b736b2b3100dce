"""Each instruction set in turn, and back to what the environment asks for."""

from collections.abc import Iterator

import pytest

import tensorcore_models as tcm

ISAS = tcm.available_isas()


@pytest.fixture(autouse=True)
def default_isa_and_threads():
    """For modules that import it: a test's choice of instruction set and threads ends with it."""
    yield
    tcm.set_isa(None)
    tcm.set_num_threads(None)


def every_isa() -> Iterator[str]:
    """Sets each instruction set in turn."""
    for name in ISAS:
        tcm.set_isa(name)
        yield name
