import importlib.util
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location("programs_listing", Path(__file__).with_name("listing.py"))
_LISTING = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_LISTING)


def pytest_generate_tests(metafunc):
    if "family" in metafunc.fixturenames:
        family = _LISTING.load("family").Family
        rows = [row for table in _LISTING.TABLES for row in _LISTING.load(table).FAMILIES]
        metafunc.parametrize("family", [pytest.param(family(**row), id=row["name"]) for row in rows])


@pytest.fixture(scope="session")
def train_a_step():
    return _LISTING.load("training").train_a_step
