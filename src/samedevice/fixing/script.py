"""Mending a program by running it: the edit that its device fault asks for, and again, until a run is clean.

Edits are made in memory and tried in a process of their own (`trial`); on disk nothing changes until a run of the
mended program ended without a device fault. Only the user's own files inside the project's folder are edited.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from samedevice.errors import UsageError
from samedevice.findings import Finding, Fix
from samedevice.fixing.correspondence import any_gone, as_on_disk
from samedevice.fixing.edits import Change, write_all
from samedevice.fixing.files import findings_if_valid
from samedevice.fixing.made import Made, made_of
from samedevice.fixing.project import Project
from samedevice.fixing.trial import try_run
from samedevice.running import RunOptions
from samedevice.texts import say

__all__ = ["FixOptions", "FixResult", "fix_script"]

_MOST_RUNS = 20


@dataclass(frozen=True, slots=True)
class FixOptions:
    """A program to mend by running it."""

    script: str
    """A script, or with `module` a module's name."""
    args: tuple[str, ...] = ()
    simulate: str | None = None
    """DEVICE[:N]; None: the devices that are here."""
    write: bool = True
    """False: only say what would be changed."""
    timeout: float | None = None
    """Seconds for one run; None: no limit."""
    module: bool = False
    verify: bool = True
    """False: edits that helped are kept also where no run was seen to end clean."""


@dataclass(frozen=True, slots=True)
class FixResult:
    """How it went. `clean`: the last run ended without a device fault and without an error of its own."""

    script: str
    clean: bool
    changes: tuple[Change, ...] = ()
    made: tuple[Made, ...] = ()
    left: tuple[Finding, ...] = ()
    """What the last run still found, at the lines that the files on disk have now."""
    message: str = ""
    """Why it ended, where it is not clean."""
    written: bool = False

    @property
    def change(self) -> Change:
        """The change of the script itself, or of the first file that was changed."""
        return next(iter(self.changes), Change(self.script, "", ""))


@dataclass(slots=True)
class _Attempt:
    """A state of the files and what a run of it found."""

    project: Project
    outcome: str
    findings: tuple[Finding, ...]
    made: tuple[tuple[Fix, Project], ...] = ()
    """The edits that led here, each with the files right after it."""
    tried: set[Project] = field(default_factory=set)


def fix_script(options: FixOptions) -> FixResult:
    """Run a program, make the edit that its device fault asks for, and run it again, until clean or nothing helps.

    Files are changed only where the mended program was seen to run to its end without a device fault, all of them at
    the end; each is whole at any time, whatever ends this process.

    Args:
        options: what to mend and how to run it.

    Returns:
        What was changed, and what is left.

    Raises:
        UsageError: there is no such script, it is no Python, or a file was changed by others meanwhile.
    """
    project = Project.around(_main_file(options))
    attempt = _run(project, options)
    for _ in range(_MOST_RUNS):
        if attempt.outcome != "finding":
            break
        following = _next(attempt, options)
        if following is None:
            break
        attempt = following
    return _result(attempt, options)


def _main_file(options: FixOptions) -> Path:
    """The file that is run first."""
    if not options.module:
        path = Path(options.script)
        return path / "__main__.py" if path.is_dir() else path
    folder = Path.cwd().joinpath(*options.script.split("."))
    candidates = [folder.with_suffix(".py"), folder / "__main__.py"]
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        known = importlib.util.find_spec(options.script.partition(".")[0]) is not None
        if known:
            raise UsageError(
                say(
                    "module {name} is not in the current folder; only files of your own are mended", name=options.script
                )
            )
        raise UsageError(say("module {name} cannot be found; only files of your own are mended", name=options.script))
    return found


def _result(attempt: _Attempt, options: FixOptions) -> FixResult:
    clean = attempt.outcome == "ok"
    changes = attempt.project.changes()
    written = bool(changes) and options.write and (clean or not options.verify)
    if written:
        write_all(changes)
    left = attempt.findings if written else tuple(as_on_disk(each, attempt.project) for each in attempt.findings)
    made = made_of(attempt.made, attempt.project)
    return FixResult(options.script, clean, changes, made, left, _why(attempt), written)


def _why(attempt: _Attempt) -> str:
    if attempt.outcome == "ok":
        return ""
    if attempt.outcome == "error":
        return say("the script fails for a reason of its own; `samedevice run` shows it")
    return say("no edit that is known helps against what is left")


def _next(attempt: _Attempt, options: FixOptions) -> _Attempt | None:
    """The first edit after which the run gets further, or None."""
    for fix in _candidates(attempt):
        project = attempt.project.edited(fix.edits)
        if project is None or project in attempt.tried:
            continue
        attempt.tried.add(project)
        following = _run(project, options)
        following.tried |= attempt.tried
        following.made = (*attempt.made, (fix, project))
        if _helps(attempt, following) or (not options.verify and following.outcome == "error"):
            return following
    return None


def _helps(before: _Attempt, after: _Attempt) -> bool:
    """Whether a run after an edit ended clean, or at another fault."""
    if after.outcome != "finding":
        return after.outcome == "ok"
    return any_gone(before.findings, before.project, after.findings, after.project)


def _candidates(attempt: _Attempt) -> Iterator[Fix]:
    """Edits against what the run found: its own first, then the linter's for the same lines, then its others."""
    for finding in attempt.findings:
        if finding.fix is not None and finding.fix.edits:
            yield finding.fix
    linted = list(_linted(attempt))
    for near in (True, False):
        for finding in linted:
            if any(_meet(finding, other) for other in attempt.findings) is near and finding.fix is not None:
                yield finding.fix


def _linted(attempt: _Attempt) -> Iterator[Finding]:
    """What the linter would edit in the files that the findings name, and in the script."""
    named = {attempt.project.main: None}
    for finding in attempt.findings:
        for file, _ in _places(finding):
            named.setdefault(Path(file).absolute())
    for path in named:
        text = attempt.project.text(path)
        for finding in (findings_if_valid(text, str(path), None) or ()) if text is not None else ():
            if finding.fix is not None and finding.fix.edits:
                edits = tuple(replace(edit, file=str(path)) for edit in finding.fix.edits)
                yield replace(finding, fix=replace(finding.fix, edits=edits))


def _meet(first: Finding, second: Finding) -> bool:
    def places(finding: Finding) -> set[tuple[str, int]]:
        return {(str(Path(file).resolve()), line) for file, line in _places(finding)}

    return bool(places(first) & places(second))


def _places(finding: Finding) -> Iterator[tuple[str, int]]:
    location, culprit = finding.location, finding.culprit
    if location is not None:
        yield location.file, location.line
    if culprit is not None and culprit.file is not None and culprit.line is not None:
        yield culprit.file, culprit.line


def _run(project: Project, options: FixOptions) -> _Attempt:
    run = RunOptions(options.script, options.args, options.module, options.simulate)
    found = try_run(run, project.data(), options.timeout)
    outcome, findings = found if found is not None else ("error", ())
    return _Attempt(project, outcome, findings)
