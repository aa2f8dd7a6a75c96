"""What `samedevice` offers is said in `_HOME`, in its twin for type checkers and in the documentation: they agree."""

import ast
import importlib
from pathlib import Path

import pytest

import samedevice

PACKAGE = Path(samedevice.__file__).parent

CONTRACT = {
    "move_to_device",
    "sync_optimizer",
    "check",
    "unify",
    "DeviceLoader",
    "align_inputs",
    "simulate",
    "watch",
    "explain",
    "install",
}
"""The functions that the documentation promises; more may be offered."""


def typed_names():
    """The names that the `if TYPE_CHECKING:` block imports, with the module of each."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    return {
        alias.asname: node.module.removeprefix("samedevice.")
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module.startswith("samedevice.")
        for alias in node.names
    }


def test_the_twin_agrees():
    assert typed_names() == samedevice._HOME


def test_all_and_dir_list_every_name():
    assert set(samedevice.__all__) == {"__version__", *samedevice._HOME}
    assert set(samedevice.__all__) <= set(dir(samedevice))


def test_the_contract_is_kept():
    assert set(samedevice._HOME) >= CONTRACT


@pytest.mark.parametrize("name", sorted(samedevice._HOME))
def test_every_name_is_there_and_says_what_it_does(name):
    value = getattr(samedevice, name)
    assert value is getattr(importlib.import_module(f"samedevice.{samedevice._HOME[name]}"), name)
    assert value.__doc__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'samedevice' has no attribute 'mov_to_device'"):
        _ = samedevice.mov_to_device


def test_no_module_shares_a_public_functions_name_in_its_package():
    """With a lazy `__init__`, importing such a module would put it in the function's place."""
    modules = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not modules & set(samedevice._HOME)


def test_reports_stay_functions_after_their_modules_are_imported():
    from samedevice import reports

    for name in ("to_text", "to_json", "to_html", "to_sarif", "to_github", "to_mermaid"):
        importlib.import_module(f"samedevice.reports.{name}")
        assert callable(getattr(reports, name))
