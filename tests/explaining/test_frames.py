"""From exceptions to the user's frames, expressions and chains."""

import ast
import sys

import pytest

from samedevice.explaining.explain import explain
from samedevice.explaining.frames import chain_of, user_frames
from samedevice.explaining.sources import read_source


def raised(function):
    with pytest.raises(Exception) as caught:
        function()
    return caught.value


def test_causes_contexts_and_groups_are_followed_once_each():
    first, second = ValueError("first"), KeyError("second")
    second.__context__ = first
    first.__context__ = second  # a ring ends
    assert list(chain_of(second)) == [second, first]


def test_a_suppressed_context_is_not_followed():
    def fail():
        try:
            raise ValueError
        except ValueError:
            raise KeyError from None

    assert len(list(chain_of(raised(fail)))) == 1


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups came with Python 3.11")
def test_members_of_groups_are_explained():
    numpy = TypeError(
        "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
    )
    group = ExceptionGroup("several", [ValueError("mine"), numpy])  # noqa: F821
    assert explain(group).cause == "numpy-on-cuda"


def test_library_frames_are_left_out():
    frames = user_frames(raised(lambda: ast.parse("(")))
    assert [frame.function for frame in frames][-1] == "<lambda>"
    assert all(frame.file == __file__ for frame in frames)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="positions came with Python 3.11")
def test_the_running_expression_of_a_long_statement():
    def fail():
        return (
            1
            + len("x")
            + None
        )  # fmt: skip

    frame = user_frames(raised(fail))[-1]
    assert isinstance(frame.running, ast.BinOp)
    assert frame.source.text_of(frame.running) == '1 + len("x") + None'


def test_a_source_that_is_gone_or_broken_is_empty(tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("def f(:\n")
    assert read_source(str(broken)).statement_at(1) is None
    assert read_source(str(tmp_path / "none.py")).line(3) == ""


def test_code_without_source_is_explained_as_far_as_it_goes():
    code = compile("raise RuntimeError(text)", "/nowhere/train.py", "exec")
    text = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
    finding = explain(raised(lambda: exec(code, {"text": text})))
    assert (finding.location.file, finding.location.line) == ("/nowhere/train.py", 1)
    assert finding.raised.message == text


LOOPS = """
for a in x:
    for b in (
        a,
    ):
        c()
        def inner():
            d()
            while e:
                f()
g()
async def h():
    async for i in x: j()
"""


@pytest.mark.parametrize(("line", "loops"), [(2, ""), (4, "a"), (6, "ab"), (8, ""), (10, "e"), (11, ""), (13, "i")])
def test_the_loops_around_a_line(line, loops, tmp_path):
    path = tmp_path / "loops.py"
    path.write_text(LOOPS)
    found = read_source(str(path)).loops_around(line)
    told = "".join(ast.unparse(loop.test if isinstance(loop, ast.While) else loop.target) for loop in found)
    assert told == loops
