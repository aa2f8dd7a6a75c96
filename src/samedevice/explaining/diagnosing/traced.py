"""A traced program holds the devices of its tracing as constants: `torch.arange(n, device=x.device)` stays where x was.

TorchScript's error prints the traced line of the user's own source; that line is read, since no frame of it runs.
"""

from __future__ import annotations

import ast
import re

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.frames import text_of
from samedevice.explaining.made import Made
from samedevice.explaining.sources import Source, read_source
from samedevice.explaining.syntax import bindings_of, call_name
from samedevice.explaining.tracebacks import frames_in
from samedevice.explaining.vocabulary import FACTORIES
from samedevice.texts import say

__all__ = ["is_traced", "judge"]

_MARK = "Traceback of TorchScript"
_TRACED_LINE = re.compile(r"(?m)^\S+\.py\(\d+\): ")
"""How a traced line is printed; a scripted one looks like Python's own."""
_REASON = say("the program was traced: the device of its tracing is a constant in it, which no `.to()` changes")


def is_traced(error: BaseException) -> bool:
    """Whether the failure is one of a traced program."""
    _, mark, original = text_of(error).rpartition(_MARK)
    return bool(mark) and bool(_TRACED_LINE.search(original))


def judge(evidence: Evidence) -> Verdict | None:
    """The variable of the traced line that a factory made, with the line that made it."""
    if not is_traced(evidence.error):
        return None
    original = text_of(evidence.error).rpartition(_MARK)[2]
    for told in frames_in(original):  # innermost first
        if not told.is_users:
            continue
        source = read_source(told.file)
        found = _made_by_factory(source, told.line)
        if found is None:
            return Verdict("other", _REASON, None, Made(told.file, told.line, told.function or ""))
        name, line = found
        return Verdict("other", _REASON, name, Made(told.file, line, told.function or ""))
    return Verdict("other", _REASON)


def _made_by_factory(source: Source, line: int) -> tuple[str, int] | None:
    statement, function = source.statement_at(line), source.function_at(line)
    if statement is None or function is None:
        return None
    for node in ast.walk(statement):
        for binding in bindings_of(node.id, function) if isinstance(node, ast.Name) else ():
            calls = ast.walk(binding.value) if binding.value is not None else ()
            if isinstance(node, ast.Name) and any(call_name(c) in FACTORIES for c in calls if isinstance(c, ast.expr)):
                return node.id, binding.line
    return None
