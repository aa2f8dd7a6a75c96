"""The hooks for pre-commit: their entries, and (slowly) in a real pre-commit, whose environment has no torch."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from samedevice.cli.main import main

ROOT = Path(__file__).parents[2]
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
BUG = 'import torch\nx = torch.zeros(3, device="cuda")\ny = x.numpy()\n'


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text('[tool.samedevice]\nexclude = ["generated"]\n')
    Path("generated").mkdir()
    for name in ("a.py", "generated/b.py"):
        Path(name).write_text(BUG)
    Path("c.py").write_text("import torch\n")
    return ["a.py", "generated/b.py", "c.py"]


def run(hook, files):
    command, *arguments = shlex.split(HOOKS[hook]["entry"])
    assert command == "samedevice"
    return main([*arguments, *files])


def test_the_hooks_are_whole():
    for hook in HOOKS.values():
        assert hook.keys() >= {"id", "name", "entry", "language", "types_or"}
        assert hook["language"] == "python"


def test_one_lints_and_one_mends_and_both_pass_by_what_is_excluded(project, capsys):
    assert run("samedevice", project) == 1
    assert capsys.readouterr().out.count("SD112") == 1
    assert run("samedevice-fix", project) == 0
    assert Path("a.py").read_text() == BUG.replace("x.numpy()", "x.cpu().numpy()")
    assert Path("generated/b.py").read_text() == BUG
    assert run("samedevice", project) == 0


@pytest.mark.slow
def test_in_a_real_pre_commit(project, tmp_path_factory):
    pytest.importorskip("pre_commit")
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "add", "."], check=True)
    environment = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path_factory.mktemp("pre-commit"))}
    command = [sys.executable, "-m", "pre_commit", "try-repo", str(ROOT)]
    for hook, status in (("samedevice-fix", 1), ("samedevice", 0)):
        done = subprocess.run(
            [*command, hook, "--all-files"], capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == status, done.stdout + done.stderr
    assert Path("a.py").read_text() == BUG.replace("x.numpy()", "x.cpu().numpy()")
