"""The running expression, found in the columns that Python 3.11 records and without them in 3.10."""

import linecache

import pytest

from samedevice.explaining.frames import user_frames

SOURCES = {
    "an operator": ("x = [1 + fail()]", "fail()"),
    "an operand": ("x = 1 + (one / zero) * 2", "one / zero"),
    "one of two calls": ("x = int(fail(), len([2]))", "fail()"),
    "the outer call": ("x = int(str('a'))", "int(str('a'))"),
    "a method": ("x = here.hello().fail()", "here.hello().fail()"),
    "a method with keywords": ("x = here.hello().fail(now=1)", "here.hello().fail(now=1)"),
    "an argument of a method": ("x = here.hello(one / zero).fail()", "one / zero"),
    "a chain over lines": ("x = (here.hello()\n    .fail(\n    1))", "here.hello()\n    .fail(\n    1)"),
    "an item": ("x = one + [1][3]", "[1][3]"),
    "an attribute": ("x = one + one.nothing", "one.nothing"),
    "a condition": ("if one and fail():\n    pass", "fail()"),
    "a return": ("def f():\n    return one + fail()\nf()", "fail()"),
    "a lambda": ("f = lambda: one + fail()\nf()", "fail()"),
    "a comprehension": ("x = [y + fail(y) for y in [1]]", "fail(y)"),
    "a generator": ("x = list(y + fail(y) for y in [1])", "fail(y)"),
    "a default": ("def f(a=one / zero):\n    pass", "one / zero"),
    "a decorator": ("@fail()\ndef f():\n    pass", "fail()"),
    "a with": ("with open(one / zero):\n    pass", "one / zero"),
    "a loop": ("for a in one + fail():\n    pass", "fail()"),
    "two functions alike": ("def f():\n    return 1 / zero\ndef g():\n    return 1 / zero\ng()", "1 / zero"),
    "an f-string": ("x = f'{one}' + f'{fail()}'", "fail()"),
    "an assignment": ("one.nothing = 1", "one.nothing"),
    "annotations unread": ("from __future__ import annotations\ndef f(a: nothing):\n    return fail()\nf(1)", "fail()"),
}


def failing(code, tmp_path):
    """The error of running `code` as a user's script."""
    file = tmp_path / "script.py"
    prelude = "class Here:\n    def hello(self, *a): return self\n    fail = property(lambda self: 1)\n"
    prelude += "here = Here()\none, zero = 1, 0\nfail = one\n"
    # A future import comes first.
    lines = code.split("\n")
    head = lines.pop(0) + "\n" if lines[0].startswith("from __future__") else ""
    file.write_text(head + prelude + "\n".join(lines) + "\n")
    linecache.checkcache()
    with pytest.raises(Exception) as caught:
        exec(compile(file.read_text(), str(file), "exec", dont_inherit=True), {"__name__": "__main__"})
    return caught.value


@pytest.mark.parametrize(("code", "expected"), SOURCES.values(), ids=SOURCES)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_the_running_expression(code, expected, tmp_path):
    frame = user_frames(failing(code, tmp_path))[-1]
    assert frame.position is not None
    assert frame.source.exact_text(frame.running) == expected


def test_a_source_that_was_changed_says_nothing(tmp_path):
    error = failing("x = one / zero", tmp_path)
    file = tmp_path / "script.py"
    file.write_text("return 1\n" * 20)
    linecache.checkcache()
    assert user_frames(error)[-1].line == 7
