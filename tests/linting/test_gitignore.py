"""What git ignores, told by git itself: `git check-ignore` is asked about the same patterns and paths."""

import os
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from samedevice.linting import gitignore

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

FOLDERS = ["a", "b", "a/b", "a/b/c", "b/a", "a b", "ab", "a/ab", "build"]
NAMES = [
    "a.py",
    "b.py",
    "ab.py",
    "c",
    "a",
    "b",
    "a b.py",
    "é.py",
    "#a.py",
    "!b.py",
    "[a].py",
    "a\\b.py",
    "-.py",
    " .py",
]
PATHS = sorted({*NAMES, *(f"{folder}/{name}" for folder in FOLDERS for name in NAMES)} - {*FOLDERS})
PIECES = [
    "a", "b", "ab", "c", ".py", "*", "**", "?", "/", "/", "!", "#", "\\", " ", "[ab]", "[!a]", "[^a]", "[a-c]", "[]a]",
    "[a",
    "[[:alpha:]]", "[[:digit:]]", "[[:nope:]]", "[a-]", "[\\]a]", "**/", "/**", "/**/", "é", "\\ ", "build", "***",
    "[--a]", "[[:]", "\t",
]  # fmt: skip
LINES = st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join), max_size=5)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    root = tmp_path_factory.mktemp("checkout").resolve()
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    paths = [path for path in PATHS if not (root / path).is_dir()]
    for path in paths:
        (root / path).touch()
    return root, paths


def ignored_by_git(root, paths):
    command = ["git", "-c", "core.excludesFile=/dev/null", "check-ignore", "-z", "--stdin", "--no-index"]
    environment = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1"}
    answer = subprocess.run(
        command, cwd=root, input="\0".join(paths).encode(), capture_output=True, check=False, env=environment
    )
    assert answer.returncode in (0, 1), answer.stderr
    return set(answer.stdout.decode().split("\0")) - {""}


def ignored_by_us(root, paths):
    def ignored(path):
        patterns = gitignore.inherited(root)
        folder = root
        for part in path.split("/"):
            patterns += gitignore.patterns_in(folder)
            folder = folder / part
            if gitignore.is_ignored(patterns, folder, is_folder=folder.is_dir()):
                return True
        return False

    return {path for path in paths if ignored(path)}


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINES, LINES, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\ufeff"]))
def test_git_and_we_ignore_the_same(checkout, outer, inner, end, mark):
    root, paths = checkout
    (root / ".gitignore").write_bytes((mark + end.join(outer)).encode())
    (root / "a" / ".gitignore").write_bytes((end.join(inner) + end).encode())
    assert ignored_by_us(root, paths) == ignored_by_git(root, paths)


def test_the_checkouts_own_exclude_file_is_read(checkout):
    root, _ = checkout
    for file in (root / ".gitignore", root / "a" / ".gitignore"):
        file.write_text("")
    exclude = root / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("b.py\n")
    assert ignored_by_us(root, ["b.py", "a/b.py", "a.py"]) == {"b.py", "a/b.py"}
    exclude.write_text("")
