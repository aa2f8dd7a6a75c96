import importlib.util
import sys
from pathlib import Path

import pytest


def _load(name):
    spec = importlib.util.spec_from_file_location(f"conformance_{name}", Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def answers():
    """The table reader and the comparison."""
    return _load("answers")


@pytest.fixture(scope="session")
def placements(answers):
    """The operators of op_db with one argument elsewhere."""
    return _load("placements")
