"""From an exception to the frames of the user's own code, innermost last.

Only looks at what the traceback holds. Chained exceptions and groups are followed, since a framework may wrap a
device fault in an error of its own.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType, TracebackType
from typing import Any

from samedevice.explaining.live import is_kind, is_module
from samedevice.explaining.positions import Position, position_of
from samedevice.explaining.sources import Function, Source, read_source
from samedevice.findings import Location
from samedevice.usercode import is_user_file

__all__ = [
    "UserFrame",
    "Variables",
    "all_frames",
    "chain_of",
    "modules_below",
    "text_of",
    "user_frames",
    "variables_of",
]

_DEEPEST_CHAIN = 64
# An exception's class may define attributes of the same names: what Python itself keeps is read below them.
_CAUSE, _CONTEXT = BaseException.__dict__["__cause__"], BaseException.__dict__["__context__"]
_SUPPRESSED, _TRACEBACK = BaseException.__dict__["__suppress_context__"], BaseException.__dict__["__traceback__"]


@dataclass(frozen=True, slots=True, eq=False)
class Variables:
    """What a frame held when it was looked at, by the frame's own names for it."""

    f_code: CodeType
    f_locals: dict[str, Any]
    f_globals: dict[str, Any]


def variables_of(frame: FrameType) -> Variables:
    """The variables of a frame, in dicts of ours, with nothing left behind in the frame.

    Note [The frame keeps what it was asked for]: up to Python 3.12 a function's `f_locals` is a dict that stays with
    the frame, so asking a function that goes on running would keep alive what its variables held at that moment.
    The dict is emptied again; Python fills it anew whenever somebody asks.
    """
    code, shared, own = frame.f_code, frame.f_globals, frame.f_locals
    if own is shared:
        return Variables(code, shared, shared)
    function = bool(code.co_flags & inspect.CO_OPTIMIZED)
    # The body of a class may run in a mapping of its metaclass's making, which is not asked.
    found = dict(own) if function else dict(dict.items(own)) if is_kind(own, dict) else {}
    if function and type(own) is dict and sys.gettrace() is None:
        own.clear()
    return Variables(code, found, shared)


@dataclass(frozen=True, slots=True, eq=False)
class UserFrame:
    """One frame of the user's own code and the place in it that was running."""

    frame: Variables
    line: int
    position: Position | None
    """Of the running expression, where it is known."""

    @property
    def file(self) -> str:
        """The file as its code object names it."""
        return self.frame.f_code.co_filename

    @property
    def function(self) -> str:
        """The name of the running function; "<module>" at the top of a script."""
        return self.frame.f_code.co_name

    @property
    def source(self) -> Source:
        """The file's source."""
        return read_source(self.file)

    @property
    def location(self) -> Location:
        """The place that was running, as findings say it."""
        return Location(self.file, self.line, self.function, source=self.source.line(self.line) or None)

    @property
    def statement(self) -> ast.stmt | None:
        """The statement that was running."""
        return self.source.statement_at(self.line)

    @property
    def running(self) -> ast.expr | ast.stmt | None:
        """The very expression that was running, where Python recorded it, else the statement."""
        found = self.source.node_at(self.position) if self.position else None
        # What is written to is half of an assignment.
        return (
            self.statement
            if found is None or (isinstance(found, ast.Subscript) and isinstance(found.ctx, ast.Store))
            else found
        )

    @property
    def is_comprehension(self) -> bool:
        """Whether it is a comprehension's own frame, as there were before Python 3.12; generators still have one."""
        return self.function in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")

    @property
    def definition(self) -> Function | None:
        """The syntax of the running function, of a comprehension the one around it; None at the top of a script."""
        name = self.function
        if self.is_comprehension:
            return self.source.function_at(self.line)
        if name.startswith("<") and name != "<lambda>":
            return None
        return self.source.function_at(self.frame.f_code.co_firstlineno, name) or self.source.function_at(
            self.line, name
        )


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """`error`, then what it was raised from or while handling, and the members of exception groups; each once."""
    queue, seen = [error], set[int]()
    while queue and len(seen) < _DEEPEST_CHAIN:
        current = queue.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        cause, context = _CAUSE.__get__(current), _CONTEXT.__get__(current)
        inner = cause if cause is not None else None if _SUPPRESSED.__get__(current) else context
        queue.extend([*_group_members(current), *([inner] if inner is not None else [])])


def user_frames(error: BaseException) -> list[UserFrame]:
    """The user's frames in the traceback of `error`, outermost first."""
    found: list[UserFrame] = []
    for traceback in _links(_TRACEBACK.__get__(error)):
        if not is_user_file(traceback.tb_frame.f_code.co_filename):
            continue
        code, line = traceback.tb_frame.f_code, traceback.tb_lineno
        position = position_of(code, traceback.tb_lasti, line, read_source(code.co_filename))
        found.append(UserFrame(variables_of(traceback.tb_frame), line, position))
    return found


def all_frames(error: BaseException) -> list[FrameType]:
    """Every frame of the traceback, library code included, outermost first."""
    return [traceback.tb_frame for traceback in _links(_TRACEBACK.__get__(error))]


def modules_below(error: BaseException) -> list[Any]:
    """The modules whose library code was running below the user's innermost frame: the layers that the line called."""
    found: list[Any] = []
    for frame in all_frames(error):
        if is_user_file(frame.f_code.co_filename):
            found = []
        elif frame.f_code.co_varnames[:1] == ("self",) and is_module(owner := variables_of(frame).f_locals.get("self")):
            found.append(owner)
    return found


def text_of(error: BaseException) -> str:
    """The exception's text without asking it: a class of the user's may have a `__str__` of its own."""
    arguments = BaseException.args.__get__(error)  # type: ignore[attr-defined]
    return arguments[0] if arguments and type(arguments[0]) is str else ""


def _links(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _group_members(error: BaseException) -> tuple[BaseException, ...]:
    group = getattr(builtins, "BaseExceptionGroup", None)  # Python 3.11 and newer
    if group is None or not is_kind(error, group):
        return ()
    found = group.__dict__["exceptions"].__get__(error)
    return found if type(found) is tuple else ()
