"""Run `samedevice` on every case of a folder and count what it gets right.

    python tests/casebook/score.py [CASES] [--only ID …] [--every N] [--mend] [--jobs 2] [--json FILE] [-v]

FORMAT.md says what a case is. For a bug: it is caught at its line with PyTorch's words, operation, culprit and cause
named; the linter sees it where a reader could; with --mend also: `fix` mends it.
Fixed and clean scripts stay silent in `run` and `lint`.
torch is imported once; each command then runs in a forked child, as a user would run it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CHECKS = ["caught", "exception", "operation", "culprit", "cause", "silent", "lint", "lint-silent", "mended"]
TIME_LIMIT = 120  # seconds for one command


@dataclass
class Score:
    case: str
    checks: dict[str, bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def mark(self, check: str, passed: bool, note: str = "") -> None:
        self.checks[check] = self.checks.get(check, True) and passed
        if not passed:
            self.notes.append(f"{check}: {note}"[:600])


def command(arguments: list[str], folder: Path) -> tuple[int, str]:
    """Exit status and output of `samedevice ARGUMENTS` in `folder`, in a forked child."""
    log = Path(tempfile.mkstemp(dir=folder, suffix=".log")[1])
    child = os.fork()
    if child == 0:
        os._exit(_in_child(arguments, folder, log))
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), log.read_text(errors="replace")


def _in_child(arguments: list[str], folder: Path, log: Path) -> int:
    signal.alarm(TIME_LIMIT)
    os.chdir(folder)
    out = os.open(log, os.O_WRONLY)
    os.dup2(out, 1)
    os.dup2(out, 2)
    status: object = 70
    try:
        from samedevice.cli.main import main

        status = main(arguments)
    except SystemExit as stop:
        status = stop.code
    except BaseException:
        import traceback

        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return status if isinstance(status, int) else int(status is not None)


def run(script: str, devices: int, folder: Path) -> tuple[int, dict[str, Any], str]:
    report = folder / f"{script}.json"
    code, text = command(["run", "--simulate", f"cuda:{devices}", "--json", str(report), script], folder)
    return code, json.loads(report.read_text()) if report.exists() else {}, text


def lint(script: str, folder: Path) -> tuple[int, list[dict[str, Any]]]:
    code, text = command(["lint", "--format", "json", script], folder)
    try:
        return code, json.loads(text)["findings"]
    except (ValueError, KeyError):
        return 2, [{"unreadable": text[-300:]}]


def bare(name: object) -> str:
    """An expression without spaces and with one kind of quotes; an operator without namespace and underscores."""
    return str(name or "").replace(" ", "").replace("'", '"')


def operator(name: object) -> str:
    return re.sub(r"^.*::|\..*$", "", str(name or "")).strip("_")


def score_silence(score: Score, script: str, devices: int, folder: Path) -> None:
    code, report, text = run(script, devices, folder)
    score.mark("silent", code == 0 and report.get("findings") == [], f"{script}: exit {code}: {text[-400:]}")
    code, found = lint(script, folder)
    score.mark("lint-silent", code == 0 and not found, f"{script}: {found}")


def score_bug(score: Score, meta: dict[str, Any], folder: Path, mend: bool) -> None:
    devices = int(meta.get("devices", 1))
    culprit_lines = {meta["culprit_line"], *meta.get("culprit_line_also", [])}
    lines = {meta["line"]} if meta.get("raises", True) else {meta["line"], meta["culprit_line"]}
    _, report, text = run("buggy.py", devices, folder)
    found = report.get("findings", [])
    hit = next((f for f in found if (f.get("location") or {}).get("line") in lines), None)
    score.mark("caught", hit is not None, f"expected at {sorted(lines)}: {found} {text[-300:]}")
    hit = hit or {}
    if meta.get("raises", True):
        raised = hit.get("raised") or {}
        same = raised.get("type") == meta["error"] and meta["message_contains"] in (raised.get("message") or "")
        score.mark("exception", same, f"{raised} is not {meta['error']}: {meta['message_contains']}")
        if meta.get("operation"):
            accepted = {operator(name) for name in [meta["operation"], *meta.get("operation_also", [])]}
            score.mark("operation", operator(hit.get("operation")) in accepted, f"{hit.get('operation')}: {accepted}")
    culprit = hit.get("culprit") or {}
    names = {bare(name) for name in [meta["culprit"], *meta.get("culprit_also", [])]}
    named = bare(culprit.get("name")) in names or culprit.get("line") in culprit_lines
    score.mark("culprit", named, f"{culprit.get('name')} at {culprit.get('line')}: {names} at {culprit_lines}")
    if meta["cause"] != "other":  # a kind without a slug of its own: what it is called is not judged
        causes = {meta["cause"], *meta.get("cause_also", [])}
        score.mark("cause", hit.get("cause") in causes, f"{hit.get('cause')}: {causes}")
    if meta.get("visible_statically"):
        _, seen = lint("buggy.py", folder)
        at = {(f.get("location") or {}).get("line") for f in seen}
        score.mark("lint", bool(at & (lines | culprit_lines)), f"{at}: {lines | culprit_lines}")
    if mend:
        score_mend(score, devices, folder)


def score_mend(score: Score, devices: int, folder: Path) -> None:
    shutil.copy(folder / "buggy.py", folder / "mended.py")
    _, text = command(["fix", "--simulate", f"cuda:{devices}", "mended.py"], folder)
    if (folder / "mended.py").read_text() == (folder / "buggy.py").read_text():
        score.mark("mended", False, f"unchanged: {text[-200:]}")
        return
    code, report, text = run("mended.py", devices, folder)
    score.mark("mended", code == 0 and report.get("findings") == [], text[-300:])


def score_case(case: Path, mend: bool) -> Score:
    meta = tomllib.loads((case / "case.toml").read_text())
    score = Score(case.name)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for file in case.glob("*.py"):
            shutil.copy(file, folder)
        if not meta.get("clean"):
            score_bug(score, meta, folder, mend)
        script = "clean.py" if meta.get("clean") else "fixed.py"
        score_silence(score, script, int(meta.get("devices", 1)), folder)
    return score


def score_cases(cases: list[Path], jobs: int, mend: bool) -> list[Score]:
    import torch

    torch.set_num_threads(1)
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(partial(score_case, mend=mend), cases))


def totals(scores: list[Score]) -> dict[str, tuple[int, int]]:
    """For each check, how many cases pass and how many it applies to."""
    marks = {check: [s.checks[check] for s in scores if check in s.checks] for check in CHECKS}
    return {check: (sum(passed), len(passed)) for check, passed in marks.items() if passed}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="?", type=Path, default=Path(__file__).parent / "cases")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--every", type=int, default=1, help="score one case in N")
    parser.add_argument("--mend", action="store_true", help="also `fix` each bug: several runs a case")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    folders = sorted(p.parent for p in options.cases.rglob("case.toml"))
    folders = [f for f in folders if not options.only or f.name in options.only][:: options.every]
    scores = score_cases(folders, options.jobs, options.mend)
    for score in scores:
        if options.verbose and score.notes:
            print(score.case, *score.notes, sep="\n    ")
    if options.json:
        rows = {s.case: {"checks": s.checks, "notes": s.notes} for s in scores}
        options.json.write_text(json.dumps({"totals": totals(scores), "cases": rows}, indent=1))
    print(f"{len(scores)} cases: " + ", ".join(f"{c} {good}/{of}" for c, (good, of) in totals(scores).items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
