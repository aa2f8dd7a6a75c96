import pytest


@pytest.fixture(autouse=True)
def cache_of_its_own(tmp_path_factory, monkeypatch):
    """No test reads what another run has kept, or writes into the home of whoever runs it."""
    monkeypatch.setenv("SAMEDEVICE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
