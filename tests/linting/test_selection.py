import subprocess

import pytest

from samedevice.config import Config
from samedevice.linting.selection import select_files


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name in (
        "a.py", "b.txt", "pkg/c.py", "pkg/generated/d.py", "pkg/generated/keep.py", ".venv/lib/e.py", "build/f.py",
        "legacy/g.py", "data_one.py", "pkg/data_two.py", "deep/x/y/z.py", "deep/x/skip/z.py",
    ):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import torch\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(paths, config=None):
    return [path.as_posix() for path in select_files(paths, config or Config())]


def test_folders_are_walked_in_order_without_what_nobody_wants(project):
    assert names(["."]) == [
        "a.py", "data_one.py", "deep/x/skip/z.py", "deep/x/y/z.py", "legacy/g.py", "pkg/c.py", "pkg/data_two.py",
        "pkg/generated/d.py", "pkg/generated/keep.py",
    ]  # fmt: skip


def test_a_file_given_by_name_is_taken_even_where_it_is_excluded(project):
    assert names(["legacy/g.py", "b.txt"], Config(exclude=("legacy",))) == ["legacy/g.py", "b.txt"]


def test_each_file_is_taken_once(project):
    assert names(["pkg/c.py", "pkg", project / "pkg" / "c.py"]).count("pkg/c.py") == 1


def test_settings_exclude(project):
    assert "legacy/g.py" not in names(["."], Config(exclude=("legacy",)))


IGNORED = """
# a comment
generated/*
!keep.py
/data_*.py
deep/**/skip/
"""


def test_gitignore_is_respected_as_git_does(project):
    subprocess.run(["git", "init", "-q"], check=True)
    (project / ".gitignore").write_text(IGNORED)
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard", "--", "*.py"], capture_output=True, text=True, check=True
    ).stdout.split()
    ours = {"build/f.py", ".venv/lib/e.py"}  # passed by whatever git says
    assert sorted(names(["."])) == sorted(set(listed) - ours)


def test_gitignore_of_the_checkout_holds_for_a_folder_inside_it(project):
    subprocess.run(["git", "init", "-q"], check=True)
    (project / ".gitignore").write_text("data_two.py\n")
    assert names(["pkg"]) == ["pkg/c.py", "pkg/generated/d.py", "pkg/generated/keep.py"]


def test_notebooks_are_taken_and_their_checkpoints_are_not(project):
    for name in ("pkg/n.ipynb", "pkg/.ipynb_checkpoints/n-checkpoint.ipynb"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("{}")
    assert names(["pkg"]) == [
        "pkg/c.py",
        "pkg/data_two.py",
        "pkg/generated/d.py",
        "pkg/generated/keep.py",
        "pkg/n.ipynb",
    ]


def test_a_checkout_inside_a_checkout_has_its_own_rules(project):
    for folder in (project, project / "deep"):
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (project / ".gitignore").write_text("z.py\na.py\n")
    assert "a.py" not in names(["."])
    assert [name for name in names(["."]) if name.endswith("z.py")] == ["deep/x/skip/z.py", "deep/x/y/z.py"]


def test_a_file_named_by_a_commit_hook_is_passed_by_where_it_is_excluded(project):
    config = Config(exclude=("legacy",))
    assert [path.name for path in select_files(["legacy/g.py", "a.py"], config, force_exclude=True)] == ["a.py"]
    assert [path.name for path in select_files(["legacy", ".venv"], config, force_exclude=True)] == []
