import pytest

import samedevice


@pytest.fixture
def cuda2():
    """A machine with two CUDA devices."""
    with samedevice.simulate("cuda:2") as machine:
        yield machine
