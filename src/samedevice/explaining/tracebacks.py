"""Reads pasted tracebacks: the frames of Python, IPython, pytest and rich, whatever stands around them.

Only text is read here; which frame is the user's is told from its path alone, since the files may be on another
machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from samedevice.usercode import is_user_file

__all__ = ["PastedFrame", "frames_in"]

_FORMS = (
    # Python, and TorchScript's own: File "train.py", line 31, in forward
    re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)(?:, in (?P<function>[^\n(]+))?'),
    # IPython 8: File ~/net.py:31, in Net.forward(self, x)  ·  Cell In[3], line 5, in train(…)
    re.compile(r"File (?P<file>[^\s\"][^\n\"]*?):(?P<line>\d+)(?:, in (?P<function>[\w.<>]+))?"),
    re.compile(r"(?P<file>Cell In ?\[\d+\]),? line (?P<line>\d+)(?:, in (?P<function>[\w.<>]+))?"),
    # IPython 7: <ipython-input-3-0f1> in forward(self, x), the line marked by an arrow below; of a cell without "(…)"
    re.compile(
        r"(?m)(?P<file><ipython-input-[^>\n]+>|^(?:[A-Za-z]:)?[^\n<>:\"]+\.py) in (?P<function>[\w.<>]+)"
        r"(?:\([^\n]*\))?\n(?:[^\n]*\n){0,8}?-+> ?(?P<line>\d+)"
    ),
    # IPython 8.0: Input In [3], in <cell line: 2>()
    re.compile(
        r"(?P<file>Input In ?\[\d+\]), in (?P<function>[^\n(]+)\([^\n]*\)\n(?:[^\n]*\n){0,8}?-+> ?(?P<line>\d+)"
    ),
    # rich: │ train.py:31 in forward
    re.compile(r"│\s*(?P<file>\S+\.py):(?P<line>\d+) in (?P<function>[\w.<>]+)"),
    # pytest, short and long: train.py:31: in forward  ·  train.py:31: RuntimeError
    re.compile(r"(?m)^(?P<file>[^\s:]+\.py):(?P<line>\d+): (?:in (?P<function>\S+))?"),
    # TorchScript's original code: net.py(31): forward
    re.compile(r"(?m)^(?P<file>[^\s()]+\.py)\((?P<line>\d+)\): (?P<function>[\w.<>]+)"),
)
_LIBRARY = re.compile(
    r"[\\/]lib(?:64)?[\\/]python\d|[\\/](?:site|dist)-packages[\\/]|[\\/]Python3\d+[\\/]lib[\\/]|^<frozen", re.I
)
_NEAR = 4_000
"""Within how many characters the code of a frame follows."""
_LONGEST = 12
"""How many lines of one statement are read."""
_POINTER = re.compile(r"^[\s~^│╱-]*$")
_NUMBERED = re.compile(r"^\s*(?:│\s*)?(?:❱|-+>|>)?\s*(?P<line>\d+)\s*[│|]?\s?(?P<code>.*?)\s*│?\s*$")


@dataclass(frozen=True, slots=True)
class PastedFrame:
    """One frame as the text tells it."""

    file: str
    line: int
    function: str | None
    code: str
    """The line of code that the traceback shows; "" where it shows none."""

    @property
    def is_users(self) -> bool:
        """Whether the path looks like the user's own code, wherever it was run."""
        if self.file.startswith(("Cell In", "Input In", "<ipython-input")):
            return True
        return not _LIBRARY.search(self.file) and is_user_file(self.file)


def frames_in(text: str) -> list[PastedFrame]:
    """The frames in `text`, in its order, which is outermost first."""
    found: dict[tuple[int, int], PastedFrame] = {}
    for form in _FORMS:
        for match in form.finditer(text):
            # The first form that reads a place is the right one; a later one would read a part of it again.
            if any(start < match.end() and match.start() < end for start, end in found):
                continue
            found[match.span()] = _frame(match, text)
    return [found[span] for span in sorted(found)]


def _frame(match: re.Match[str], text: str) -> PastedFrame:
    line = int(match["line"][:9])
    function = (match.groupdict().get("function") or "").strip().rpartition(".")[2] or None
    rest = text[match.start() :][:_NEAR].splitlines()
    return PastedFrame(match["file"].strip(), line, function, _code_of(rest, line))


def _code_of(rest: list[str], line: int) -> str:
    """The frame's code: the line that carries its number, else the indented one that follows, with what it opens."""
    for at, text in enumerate(rest[1:12], 1):
        numbered = _NUMBERED.match(text)
        if numbered is not None and int(numbered["line"]) == line:
            following = [_NUMBERED.match(each) for each in rest[at + 1 : at + _LONGEST]]
            return _closed(_bare(numbered["code"]), [_bare(each["code"]) if each else None for each in following])
    return _closed(next(_indented(rest), ""), [next(_indented(["", each]), None) for each in rest[2 : 2 + _LONGEST]])


def _bare(code: str) -> str:
    return code.strip(" \t│")  # rich draws a line at each level of indentation


def _closed(code: str, following: list[str | None]) -> str:
    """`code` with the lines that follow, where it opens a bracket that they close; else as it is.

    Python 3.13 shows all lines of a statement; a line of marks may stand between.
    """
    whole = code
    for text in following:
        opened = sum(map(whole.count, "([{")) - sum(map(whole.count, ")]}"))
        if opened <= 0:
            return whole
        if text is not None and text.startswith(("File ", "Traceback")):
            break
        whole += f" {text}" if text is not None and not whole.endswith(("(", "[", "{")) else text or ""
    return whole if sum(map(whole.count, "([{")) == sum(map(whole.count, ")]}")) else code


def _indented(rest: list[str]) -> Iterator[str]:
    following = rest[1] if len(rest) > 1 else ""
    if following.startswith((" ", "\t")) and not _POINTER.match(following):
        yield following.strip()
