"""Edits of the user's lines: spelling, comments and literals stay as they are; what would not parse is not proposed."""

import ast
import linecache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samedevice.explaining.mending.edits import (
    insert_after,
    insert_before,
    replace_lines,
    replace_node,
    with_keyword,
)
from samedevice.explaining.mending.optimizers import constructed_after
from samedevice.explaining.sources import read_source


@pytest.fixture
def source_of(tmp_path):
    def write(text):
        path = tmp_path / "edited.py"
        path.write_text(text)
        linecache.checkcache(str(path))
        return read_source(str(path))

    return write


def applied(source, edit):
    lines = [line.rstrip("\n") for line in source.lines]
    assert "\n".join(lines[edit.line - 1 : edit.end_line]) == edit.old
    lines[edit.line - 1 : edit.end_line] = edit.new.split("\n")
    return "\n".join(lines)


def first(source, kind):
    return next(node for node in ast.walk(source.tree) if isinstance(node, kind))


# What is written, and how it is told on one line.
SPELLINGS = {
    "f('a  b',  \"c\")": "f('a  b',  \"c\")",
    "f(\n    x,  # the 'input'\n    1e-3,\n)": "f(x, 1e-3,)",
    "(a\n    .b('#  no comment')\n    .c())": "a.b('#  no comment').c()",
    "f(x + \\\n    y)": "f(x + y)",
    "f('''a\n  b''', 1)": "f('a\\n  b', 1)",
    "f(['a  b'\n   'c   d'])": "f(['a  b' 'c   d'])",
    "f(f'{x:>  4}  {y}',\n  z)": "f(f'{x:>  4}  {y}', z)",
    "naïve['é'](  \n   x)": "naïve['é'](x)",
}


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_text_on_one_line_is_the_same_expression(text, source_of):
    source = source_of(f"if 1:\n    z = {text}\n")
    value = first(source, ast.Assign).value
    told = source.text_of(value)
    assert told == SPELLINGS[text]
    assert ast.dump(ast.parse(told, mode="eval").body) == ast.dump(value)


KEYWORDS = {
    "f()": "f(device=d)",
    "f( 'a  b' )": "f( 'a  b', device=d )",
    "f((x))": "f((x), device=d)",
    "f(x, *xs, **kw)": "f(x, *xs, **kw, device=d)",
    "f(\n    x,\n    dtype=t,  # why\n)": "f(\n    x,\n    dtype=t, device=d,  # why\n)",
    "f(\n    x  # why\n)": "f(\n    x, device=d  # why\n)",
    "f(  # why\n)": "f(device=d  # why\n)",
    "é('é', g(1))": "é('é', g(1), device=d)",
    "f(f'{x}')": "f(f'{x}', device=d)",
    "f('''a\n  b''')": "f('''a\n  b''', device=d)",
}


@pytest.mark.parametrize("text", KEYWORDS)
def test_a_keyword_goes_behind_the_last_argument(text, source_of):
    source = source_of(f"z = 1, {text}  # kept\n")
    edit = with_keyword(source, "device", "d", first(source, ast.Call))
    assert applied(source, edit) == f"z = 1, {KEYWORDS[text]}  # kept"


def test_several_calls_get_it_in_one_edit(source_of):
    source = source_of("z = (\n    f(1), g(),  # both\n    h(2,\n      3),\n)\n")
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
    edit = with_keyword(source, "device", "d", *calls)
    assert applied(source, edit) == (
        "z = (\n    f(1, device=d), g(device=d),  # both\n    h(2,\n      3, device=d),\n)"
    )


def test_no_keyword_where_the_call_would_not_parse(source_of):
    source = source_of("z = f(x for x in y)\n")
    assert with_keyword(source, "device", "d", first(source, ast.Call)) is None


@given(
    st.lists(st.sampled_from(["x", "'a  b'", "(1, 2)", "*y", "k=3", "# c\n", "\n", "g(1)"]), max_size=6), st.booleans()
)
def test_a_keyword_changes_nothing_else(parts, trailing):
    arguments = "".join(part if part.endswith("\n") else f"{part}, " for part in parts)
    arguments = arguments if trailing else arguments.removesuffix(", ")
    text = f"f({arguments})\n"
    try:
        before = ast.parse(text).body[0].value
    except SyntaxError:
        return
    linecache.cache["<edited>"] = (len(text), None, text.splitlines(keepends=True), "<edited>")
    source = read_source("<edited>")
    edit = with_keyword(source, "device", "d", source.tree.body[0].value)
    after = ast.parse(applied(source, edit)).body[0].value
    assert ast.dump(after.keywords.pop().value) == ast.dump(ast.parse("d", mode="eval").body)
    assert ast.dump(after) == ast.dump(before)
    assert applied(source, edit).count("#") == text.count("#")


def test_lines_go_before_and_after_as_deep_as_the_statement(source_of):
    source = source_of("def f():\n    x = g(\n        1,\n    )\n    return x\n")
    statement = first(source, ast.Assign)
    assert applied(source, insert_after(source, statement, "x.to(d)")).splitlines()[4] == "    x.to(d)"
    assert applied(source, insert_before(source, statement, "y = 1")).splitlines()[1] == "    y = 1"


def test_no_line_is_put_beside_a_statement_that_does_not_begin_its_line(source_of):
    source = source_of("if a: x = 1\n")
    statement = first(source, ast.Assign)
    assert insert_after(source, statement, "y = 1") is None
    assert insert_before(source, statement, "y = 1") is None


def test_an_edit_that_would_not_parse_is_none(source_of):
    source = source_of("x = f(1)\n")
    assert replace_node(source, first(source, ast.Call), "f(") is None
    assert replace_lines(source, 1, 1, ["x = ("]) is None
    assert replace_lines(source, 1, 2, ["x = 2"]) is None


def test_an_optimizer_is_constructed_again_only_where_that_parses(source_of):
    text = "opt = SGD(\n    m.parameters(),\n    lr=1,\n)\nif new: m = Net(); m.cuda()\n"
    source = source_of(text)
    assert constructed_after(source.file, 1, "m") is None
    source = source_of(text.replace("if new: m = Net(); m.cuda()", "if new:\n    m = Net()"))
    (edit,) = constructed_after(source.file, 1, "m").edits
    assert applied(source, edit).endswith(
        "if new:\n    m = Net()\n    opt = SGD(\n        m.parameters(),\n        lr=1,\n    )"
    )
