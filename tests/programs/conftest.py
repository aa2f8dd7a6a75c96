import importlib.util
import sys
from pathlib import Path

import pytest

TABLES = ("transformers_models", "timm_models", "torchvision_models", "graph_models", "other_models")


def _load(name):
    spec = importlib.util.spec_from_file_location(f"programs_{name}", Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def pytest_generate_tests(metafunc):
    if "family" in metafunc.fixturenames:
        family = _load("family").Family
        rows = [row for table in TABLES for row in _load(table).FAMILIES]
        metafunc.parametrize("family", [pytest.param(family(**row), id=row["name"]) for row in rows])


@pytest.fixture(scope="session")
def train_a_step():
    return _load("training").train_a_step
