import importlib.util

import pytest

from samedevice.cli.main import main


def test_without_pygls_it_says_what_to_install(monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "pygls" else find(name, *rest))
    assert main(["lsp"]) == 2
    assert capsys.readouterr().err == (
        "samedevice lsp: pygls is not installed; `pip install 'samedevice[lsp]'` brings it; "
        "see `samedevice lsp --help`\n"
    )


@pytest.mark.parametrize(("arguments", "status"), [(["--help"], 0), (["--zebra"], 2), (["x"], 2)])
def test_arguments(arguments, status, capsys):
    assert main(["lsp", *arguments]) == status
