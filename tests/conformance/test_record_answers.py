"""The recorder of the tables, tried on a simulated machine: its rows are those of the tables, with our answers."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).parents[2] / "scripts" / "record_answers.py"


def record(*arguments):
    return subprocess.run([sys.executable, str(SCRIPT), *map(str, arguments)], capture_output=True, text=True)


def rows_of(path):
    head, *rows = path.read_text(encoding="utf-8").splitlines()
    assert head.startswith("# ")
    return [row.split("\t") for row in rows]


@pytest.mark.skipif(torch.cuda.device_count() > 1, reason="needs a machine without two CUDA devices")
def test_it_needs_two_devices(tmp_path):
    done = record("expressions", tmp_path / "table.tsv")
    assert done.returncode == 2
    assert done.stderr.startswith("record_answers: needs a machine with two CUDA devices, and this one has 0; nothing")
    assert done.stdout == ""
    assert not (tmp_path / "table.tsv").exists()


@pytest.mark.slow
def test_expressions(answers, tmp_path):
    assert record("expressions", tmp_path / "table.tsv", "--every", 150, "--simulated").returncode == 0
    rows = rows_of(tmp_path / "table.tsv")
    known = [row for table in (answers.EXPRESSIONS, answers.MORE_EXPRESSIONS) for row in answers.expressions(table)]
    assert len(rows) > 8
    assert {code for _, code, _ in rows} & {row.code for row in known}
    for name, code, said in rows:
        if not answers.CHANGES_PROCESS.search(code):
            assert answers.difference(answers.Row(name, code, said), answers.answer(code)) is None


@pytest.mark.slow
@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the table's samples are those of torch 2.13")
def test_operators(answers, tmp_path):
    pytest.importorskip("expecttest")
    assert record("operators", tmp_path / "table.tsv", "--every", 80, "--simulated").returncode == 0
    rows = {tuple(row[:5]): row[5:] for row in rows_of(tmp_path / "table.tsv")}
    table = {tuple(row[:5]): row[5:] for row in rows_of(answers.OPERATORS)}
    common = [key for key in rows if key in table and table[key][0] in ("OK", "DEV")]
    assert len(common) > 10
    for key in common:
        assert rows[key][0] == table[key][0]
        assert rows[key][0] != "OK" or rows[key] == table[key]
