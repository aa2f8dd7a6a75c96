import json
import os

import pytest
import torch

from samedevice.cli.main import main


@pytest.fixture
def checkpoint(tmp_path):
    file = str(tmp_path / "model.pt")
    torch.save({"model": {"weight": torch.zeros(250, 4), "part": torch.zeros(100_000)[:2]}}, file)
    return file


def test_text(checkpoint, capsys):
    assert main(["inspect", checkpoint]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{checkpoint}: zip, 2 tensors, 404.0 kB\n  cpu: 2 tensors, 4.0 kB\n")
    assert '["model"]["weight"]  cpu       4.0 kB  float32[250, 4]\n' in printed
    assert "(a part of 400.0 kB: save a .clone() to keep the file small)" in printed


def test_json(checkpoint, capsys):
    assert main(["inspect", "--format", "json", checkpoint]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["format"], data["devices"], data["bytes"]) == (1, "zip", ["cpu"], 404_000)
    assert data["entries"][0]["shape"] == [250, 4]


def test_long_lists_are_cut_unless_all_is_asked_for(tmp_path, capsys):
    file = str(tmp_path / "many.pt")
    torch.save([torch.zeros(1) for _ in range(50)], file)
    assert main(["inspect", file]) == 0
    assert "… and 10 more; --all lists them" in capsys.readouterr().out
    assert main(["inspect", "--all", file]) == 0
    assert "[49]" in capsys.readouterr().out


def test_an_unsafe_checkpoint_is_named_and_not_run(tmp_path, monkeypatch, capsys):
    class Hostile:
        def __reduce__(self):
            return os.system, ("touch pwned",)

    monkeypatch.chdir(tmp_path)
    torch.save({"model": Hostile()}, "bad.pt")
    assert main(["inspect", "bad.pt"]) == 2
    printed = capsys.readouterr().err
    assert (
        printed
        == f"samedevice inspect: bad.pt is not safe to load: it names {os.system.__module__}.system. It was not run.\n"
    )
    assert not (tmp_path / "pwned").exists()


def test_names_in_a_file_do_not_steer_the_terminal(tmp_path, capsys):
    header = b'{"a\\u202e":{"dtype":"\\u001b[31m","shape":[8],"data_offsets":[0,8]}}'
    file = tmp_path / "model.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    assert main(["inspect", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "\\x1b[31m" in printed
    assert "\x1b" not in printed
    assert "\u202e" not in printed
