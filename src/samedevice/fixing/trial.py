"""One run of a program with edits that are not on disk yet, in a process of its own.

Each run needs fresh modules, which only a fresh process has. The specification and the report are JSON files in a
temporary folder; the program's own output is thrown away.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from samedevice import reports
from samedevice.errors import UsageError
from samedevice.findings import Culprit, Edit, Finding, Fix, Location, Operand, Raised
from samedevice.fixing.overlay import overlaid
from samedevice.running import RunOptions, run
from samedevice.texts import packed, unpacked

__all__ = ["try_run"]

_GROUPS = hasattr(os, "killpg")
_START = "import sys; from samedevice.fixing.trial import main; sys.exit(main(sys.argv[1]))"


def try_run(
    options: RunOptions, files: Mapping[str, bytes], timeout: float | None
) -> tuple[str, tuple[Finding, ...]] | None:
    """Run a program as `samedevice run` does, with `files` in place of those on disk.

    Args:
        options: what to run.
        files: what edited files hold, by their real paths.
        timeout: seconds after which the run is ended; None: no limit.

    Returns:
        The outcome and the findings; None where the run left no report.

    Raises:
        UsageError: `run` takes `options` for wrong usage, such as a device that cannot be simulated.
    """
    with tempfile.TemporaryDirectory() as folder:
        specification, report = Path(folder) / "specification.json", Path(folder) / "report.json"
        encoded = {path: b64encode(data).decode() for path, data in files.items()}
        values = {"options": asdict(options), "files": encoded, "report": str(report)}
        specification.write_text(json.dumps(values), encoding="utf-8")
        _wait([sys.executable, "-c", _START, str(specification)], timeout)
        try:
            data = json.loads(report.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
    if "wrong_usage" in data:
        raise UsageError(unpacked(data["wrong_usage"]))
    return str(data["outcome"]), tuple(_finding(entry) for entry in data["findings"])


def _wait(command: list[str], timeout: float | None) -> None:
    """Run `command` with its output thrown away; when it takes too long, end it and all that it started."""
    none = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=none, stdout=none, stderr=none, start_new_session=_GROUPS) as process:
        try:
            process.wait(timeout)
        except BaseException as error:
            _end(process)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (AttributeError, OSError):
        process.kill()
    process.wait()


def main(specification: str) -> int:
    """The process that `try_run` starts."""
    values = json.loads(Path(specification).read_text(encoding="utf-8"))
    options = RunOptions(**{**values["options"], "args": tuple(values["options"]["args"])})
    process = os.getpid()
    with overlaid({path: b64decode(data) for path, data in values["files"].items()}):
        try:
            result = run(options)
        except UsageError as error:
            told = json.dumps({"wrong_usage": packed(error.message)})
            Path(values["report"]).write_text(told, encoding="utf-8")
            return 2
    if os.getpid() == process:  # not in a forked child that came to the program's end
        Path(values["report"]).write_text(reports.to_json(result.report), encoding="utf-8")
    return result.status


def _finding(entry: Mapping[str, Any]) -> Finding:
    """A finding in a JSON report."""
    location, culprit, raised, fix = (entry[key] for key in ("location", "culprit", "raised", "fix"))
    return Finding(
        **{key: entry[key] for key in ("code", "cause", "severity", "message", "operation", "expected_device")},
        location=Location(**location) if location else None,
        raised=Raised(**raised) if raised else None,
        culprit=Culprit(**_shaped(culprit)) if culprit else None,
        operands=tuple(Operand(**_shaped(operand)) for operand in entry["operands"]),
        reasons=tuple(entry["reasons"]),
        fix=Fix(fix["summary"], tuple(Edit(**edit) for edit in fix["edits"]), fix["safe"]) if fix else None,
    )


def _shaped(values: Mapping[str, Any]) -> dict[str, Any]:
    shape = values["shape"]
    return {**values, "shape": None if shape is None else tuple(shape)}
