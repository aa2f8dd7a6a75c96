"""`install()`: uncaught device faults are explained after Python's own traceback, in scripts, threads and IPython.

The exception and its traceback stay as they are; nothing is added to any operation. What was installed before is
called first and, after `uninstall()`, is back in place.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from types import TracebackType
from typing import Any, TextIO

from samedevice.explaining.explain import explain
from samedevice.findings import Finding, Report

__all__ = ["install", "uninstall"]

_before: dict[str, Any] = {}
_NOTE_MARK = "samedevice: "


def install(*, notes: bool = False) -> None:
    """Explain device faults that nothing catches; safe to call twice.

    Args:
        notes: on Python 3.11 and later, put the explanation on the exception as a note (`add_note`) before it is
            shown, instead of printing it after.
    """
    if _before:
        return
    _before.update(excepthook=sys.excepthook, threading=threading.excepthook)
    sys.excepthook = _hook(sys.excepthook, notes)
    threading.excepthook = _thread_hook(threading.excepthook, notes)
    shell = _shell()
    if shell is not None:
        _before["shell"] = shell.showtraceback
        shell.showtraceback = _shell_hook(shell.showtraceback)


def uninstall() -> None:
    """Put back what was there before `install()`."""
    if not _before:
        return
    sys.excepthook = _before.pop("excepthook")
    threading.excepthook = _before.pop("threading")
    shell = _shell()
    if shell is not None and "shell" in _before:
        shell.showtraceback = _before["shell"]
    _before.clear()


def show(finding: Finding | None, file: TextIO | None = None) -> None:
    """Print an explanation; a stream that is closed is no reason to fail."""
    if finding is None:
        return
    with contextlib.suppress(Exception):
        print(f"\n{Report(findings=(finding,), outcome='finding').to_text()}", file=file or sys.stderr)


def annotate(error: BaseException, finding: Finding | None) -> bool:
    """Put the explanation on `error` as a note; False where there is none or Python has no notes yet."""
    if finding is None or not hasattr(error, "add_note"):
        return False
    if not any(note.startswith(_NOTE_MARK) for note in getattr(error, "__notes__", ())):
        text = Report(findings=(finding,), outcome="finding").to_text()
        error.add_note(_NOTE_MARK + text)
    return True


def _hook(before: Any, notes: bool) -> Any:
    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        finding = explain(error)
        noted = notes and annotate(error, finding)
        before(kind, error, traceback)
        show(None if noted else finding)

    return hook


def _thread_hook(before: Any, notes: bool) -> Any:
    def hook(arguments: threading.ExceptHookArgs) -> None:
        finding = explain(arguments.exc_value) if arguments.exc_value is not None else None
        noted = notes and arguments.exc_value is not None and annotate(arguments.exc_value, finding)
        before(arguments)
        show(None if noted else finding)

    return hook


def _shell() -> Any:
    """The running IPython shell, or None; IPython is never imported for it."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython() if get_ipython is not None else None


def _shell_hook(before: Any) -> Any:
    """IPython shows every traceback through this method; 7.0 to 9.x."""

    def showtraceback(*arguments: Any, **keywords: Any) -> None:
        before(*arguments, **keywords)
        error = sys.exc_info()[1] or getattr(sys, "last_value", None)
        show(explain(error) if error is not None else None, sys.stdout)

    return showtraceback
