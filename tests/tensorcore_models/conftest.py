"""What tests of the models share: each instruction set that this machine has, the generic kernels, one identification."""

import pytest
from boxes import FOUR

from tensorcore_models import available_isas, kernels, probing, set_isa


@pytest.fixture(params=available_isas())
def isa(request):
    """The name of an instruction set, in force while the test runs."""
    set_isa(request.param)
    yield request.param
    set_isa(None)


@pytest.fixture
def generic_kernels():
    """No kernel but the generic ones runs."""
    kernels.set_kernel("generic")
    yield
    kernels.set_kernel(None)


@pytest.fixture(scope="session")
def identified() -> probing.Identification:
    """A unit of four products, identified once."""
    return probing.identify(FOUR, vectors=1000)
