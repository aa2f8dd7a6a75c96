"""The cache gives back what was found, forgets it when anything that it rests on changes, and never gets in the way."""

import json
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

import samedevice
from samedevice.causes.catalogue import all_causes
from samedevice.config import Config
from samedevice.linting import cache as caches
from samedevice.linting import checking
from samedevice.linting.cache import Cache
from samedevice.linting.lint import lint

BUG = 'import torch\nx = torch.zeros(3, device="cuda")\ny = x.numpy()\n'


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache")


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.py").write_text(BUG)
    return folder


@pytest.fixture
def looked_at(monkeypatch):
    """The names of the files that the rules looked at."""
    names = []
    check = checking.check

    def counted(text, filename, **options):
        names.append(filename.rpartition("/")[2])
        return check(text, filename, **options)

    monkeypatch.setattr(checking, "check", counted)
    return names


def again(cache):
    """The same folder, as the next run sees it."""
    return Cache(cache.folder)


def test_what_has_not_changed_is_not_looked_at_again(cache, project, looked_at):
    first = lint([project], cache=cache)
    assert looked_at == ["a.py"]
    assert lint([project], cache=again(cache)) == first
    assert looked_at == ["a.py"]
    (project / "a.py").write_text(BUG + "\n")
    assert lint([project], cache=again(cache)) == first
    assert looked_at == ["a.py", "a.py"]


def test_every_kind_of_finding_comes_back_as_it_was(cache, project):
    for cause in all_causes():
        for number, example in enumerate(cause.examples):
            (project / f"{cause.module}_{number}.py").write_text(example.wrong_script)
    first = lint([project], cache=cache)
    assert len(first.findings) > 25
    assert lint([project], cache=again(cache)) == first == lint([project])


def test_settings_and_comments_have_their_say_each_time(cache, project):
    assert lint([project], cache=cache).findings
    assert not lint([project], cache=again(cache), config=Config(ignore=("SD112",))).findings
    assert not lint([project], cache=again(cache), config=Config(select=("SD3",))).findings
    assert lint([project], cache=again(cache)).findings


@pytest.mark.parametrize("name", ["a.py", "a.ipynb"])
def test_what_is_in_the_cache_is_told_without_the_interpreter(cache, tmp_path, name):
    """Its sentences name lines, which in a notebook are those of cells."""
    source = "import torch\ng = torch.rand(2, device='cuda')\n\ndef f():\n    return torch.ones(2) + g\nf()\n"
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / name).write_text(source if name == "a.py" else json.dumps(notebook))
    code = (
        "import sys; from pathlib import Path\nfrom samedevice.linting.cache import Cache\n"
        "from samedevice.linting.lint import lint\n"
        f"print(*(finding.message for finding in lint([{name!r}], cache=Cache(Path('cache'))).findings))\n"
        "print('samedevice.linting.devices' in sys.modules, 'samedevice.linting.rule' in sys.modules)\n"
    )
    told = [
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    message = told[0].splitlines()[0]
    assert "line 5 of cell 1" in message if name == "a.ipynb" else "line 5" in message
    assert told == [f"{message}\nTrue True\n", f"{message}\nFalse False\n"]


def test_what_is_imported_counts(cache, project, looked_at):
    (project / "a.py").write_text("import torch\nfrom b import make\nprint(make() + torch.ones(3, device='cuda'))\n")
    (project / "b.py").write_text("import torch\ndef make():\n    return torch.ones(3, device='cuda')\n")
    assert not lint([project / "a.py"], cache=cache).findings
    (project / "b.py").write_text("import torch\ndef make():\n    return torch.ones(3, device='cpu')\n")
    alone = lint([project / "a.py"])
    assert lint([project / "a.py"], cache=again(cache)) == alone
    (project / "b.py").unlink()
    assert lint([project / "a.py"], cache=again(cache)) == lint([project / "a.py"])
    assert looked_at.count("a.py") == 5


def test_a_file_that_was_looked_for_in_vain_counts(cache, project, looked_at):
    (project / "a.py").write_text("import torch\nfrom b import make\nprint(make() + torch.ones(3, device='cuda'))\n")
    lint([project], cache=cache)
    (project / "b.py").write_text("def make():\n    return 3\n")
    lint([project / "a.py"], cache=again(cache))
    assert looked_at == ["a.py", "a.py"]


def test_another_version_looks_again(cache, project, looked_at, monkeypatch):
    lint([project], cache=cache)
    monkeypatch.setattr(samedevice, "__version__", "9.9")
    caches._linter.cache_clear()
    lint([project], cache=again(cache))
    monkeypatch.undo()
    caches._linter.cache_clear()
    assert looked_at == ["a.py", "a.py"]


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"\xff\xfe", b"[]", b"3", b"null", b"{}", b'{"reads": [], "findings": []}', b"[" * 100_000]
    + [json.dumps({"reads": {}, "findings": [entry]}).encode() for entry in (3, {}, {"location": 3}, None)],
)
def test_a_damaged_entry_is_none(cache, project, damage):
    first = lint([project], cache=cache)
    (entry,) = (path for path in cache.folder.rglob("??/*") if path.is_file())
    entry.write_bytes(damage)
    assert lint([project], cache=again(cache)) == first
    assert json.loads(entry.read_bytes())["findings"]


def test_a_folder_that_cannot_be_written_costs_nothing(project, tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "nul\0"):
        assert lint([project], cache=Cache(place)) == lint([project])


def test_it_says_that_it_is_a_cache_and_hides_from_git(cache, project):
    lint([project], cache=cache)
    assert (cache.folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    assert (cache.folder / ".gitignore").read_text() == "*\n"
    assert not list(cache.folder.rglob("*.new"))


def test_many_at_once(cache, project):
    for number in range(20):
        (project / f"b{number}.py").write_text(f"{BUG}# {number % 3}\n")
    alone = lint([project])
    reports = []
    threads = [threading.Thread(target=lambda: reports.append(lint([project], cache=again(cache)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reports == [alone] * 4


def test_old_entries_go(cache, project):
    import os

    lint([project], cache=cache)
    (entry,) = (path for path in cache.folder.rglob("??/*") if path.is_file())
    cache.prune()
    assert entry.exists()
    os.utime(entry, (0, 0))
    cache.prune()
    assert entry.exists()  # was looked at today
    (cache.folder / "lint" / "pruned").unlink()
    cache.prune()
    assert not entry.exists()


def test_findings_compare(project):
    """The tests above rest on it."""
    first, second = lint([project]), lint([project])
    (finding,) = first.findings
    assert first == second
    assert first is not second
    for other in (replace(finding, message="…"), replace(finding, location=replace(finding.location, line=4))):
        assert replace(first, findings=(other,)) != first
