"""The casebook as a test: what must hold on real device bugs, in per cent of the cases.

The counts are made by score.py in a process of its own, so that forked children start from a fresh torch.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NEED = {"caught": 95, "exception": 95, "operation": 90, "culprit": 80, "cause": 70, "silent": 100, "lint-silent": 100}


def scored(tmp_path: Path, *options: str) -> dict:
    out = tmp_path / "scores.json"
    command = [sys.executable, str(HERE / "score.py"), "--json", str(out), *options]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(out.read_text())


def short(scores: dict, need: dict[str, int]) -> dict[str, str]:
    """Where a check stays below its per cent, the notes of the cases that fail it."""
    misses = {}
    for check, percent in need.items():
        good, of = scores["totals"][check]
        if 100 * good < percent * of:
            failed = [f"{c}: {r['notes']}" for c, r in scores["cases"].items() if not r["checks"].get(check, True)]
            misses[check] = f"{good}/{of} < {percent} %: " + "\n".join(failed)
    return misses


def test_short_names_the_check_and_its_cases():
    cases = {"a": {"checks": {"caught": True}, "notes": []}, "b": {"checks": {"caught": False}, "notes": ["why"]}}
    scores = {"totals": {"caught": [1, 2]}, "cases": cases}
    assert short(scores, {"caught": 50}) == {}
    assert short(scores, {"caught": 51}) == {"caught": "1/2 < 51 %: b: ['why']"}


def test_one_case_in_ten(tmp_path):
    scores = scored(tmp_path, "--every", "10")
    assert len(scores["cases"]) >= 9
    # So few cases cannot hold a per cent; what is absolute must hold on each.
    assert not short(scores, {"caught": 80, "silent": 100, "lint-silent": 100})


@pytest.mark.slow
def test_the_whole_casebook(tmp_path):
    assert not short(scored(tmp_path), NEED)
