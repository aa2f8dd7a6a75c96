import importlib.metadata
import json
import sys

import pytest
import torch

import samedevice
from samedevice import doctor
from samedevice.cli.main import main


def topics(lines):
    return [line.topic for line in lines]


def test_what_this_machine_is():
    lines = doctor.examine()
    assert topics(lines)[:3] == ["samedevice", "python", "driver"]
    assert lines[0].text == samedevice.__version__
    assert any(line.topic == "torch" and torch.__version__ in line.text for line in lines)


def test_the_command_tries_a_simulation(capsys):
    assert main(["doctor"]) in (0, 1)
    assert "simulation     works: of two simulated devices, a tensor moved to the second is on cuda:1" in (
        capsys.readouterr().out
    )
    assert not torch.cuda.is_initialized()


def test_json(capsys):
    main(["doctor", "--format", "json"])
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == 1
    assert {"topic", "text", "state"} == set(data["lines"][0])


def test_without_torch(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    lines = doctor.examine()
    assert ("torch", "not installed; mend: pip install torch", "note") in [(x.topic, x.text, x.state) for x in lines]
    assert lines[-1].text == "lint, explain, inspect and causes work"


def test_a_broken_torch_is_said_to_be_broken(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert any("is installed and cannot be imported" in line.text for line in doctor.examine())


@pytest.mark.parametrize(
    ("script", "state", "text"),
    [
        ("echo 'H200, 570.1, 143771 MiB'", "ok", "NVIDIA H200, 570.1, 143771 MiB"),
        ("echo 'NVIDIA-SMI has failed'; exit 9", "wrong", "NVIDIA NVIDIA-SMI has failed"),
    ],
)
def test_the_driver_is_asked(tmp_path, monkeypatch, script, state, text):
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert (state, text) in [(line.state, line.text) for line in doctor.examine() if line.topic == "driver"]
