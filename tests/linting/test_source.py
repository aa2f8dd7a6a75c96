import codecs
import sys
import threading
import warnings

import pytest

from samedevice.linting import source
from samedevice.linting.source import SourceError, decode, parse


@pytest.mark.parametrize(
    "data",
    [
        codecs.BOM_UTF8 + "x = 'é'\n".encode(),
        "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"),
        "x = 'é'\n".encode(),
    ],
)
def test_text_is_decoded_as_python_decodes_it(data):
    assert "x = 'é'" in decode(data)


@pytest.mark.parametrize("data", [b"x = '\xff'\n", b"# coding: no-such-encoding\n"])
def test_bytes_that_are_no_text_are_refused(data):
    with pytest.raises(SourceError, match="cannot be decoded"):
        decode(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (\n", "line 1: '\\(' was never closed"),
        ("print 'torch'\n", "line 1: Missing parentheses"),
        ("x = 1\0\n", "null bytes"),
        ("(" * 300 + ")" * 300, "nest|parenthes"),
        ("x = " + "-" * 100_000 + "1\n", "cannot be parsed|too"),
    ],
)
def test_what_is_no_python_is_refused_with_a_reason(text, message):
    with pytest.raises(SourceError, match=message):
        parse(text, "x.py")


def test_spans_are_in_characters_where_ast_counts_bytes():
    parsed = parse('name = "äöü"; x = torch.zeros(3)\n', "x.py")
    call = parsed.tree.body[1].value
    assert parsed.segment(call) == "torch.zeros(3)"
    assert parsed.span(call) == ((1, 18), (1, 32))


def test_lines_are_split_as_ast_counts_them():
    text = "a = 1\r\nb = '\f'\rc = 3\n"
    parsed = parse(text, "x.py")
    assert [parsed.line(node.lineno) for node in parsed.tree.body] == ["a = 1", "b = '\f'", "c = 3"]


def test_files_that_cannot_be_read_say_why(tmp_path):
    with pytest.raises(SourceError, match="cannot be read"):
        source.read(tmp_path / "missing.py")
    with pytest.raises(SourceError, match="cannot be read"):
        source.read(tmp_path)


def test_threads_leave_the_filters_of_warnings_as_they_are():
    """Python warns of the text; a thread that asks it not to must not undo what another one asked."""
    text = "import torch\n" + "x = 1\n" * 40 + 'assert (1, "a")\n'
    before, interval = list(warnings.filters), sys.getswitchinterval()
    threads = [threading.Thread(target=lambda: [parse(text, "a.py") for _ in range(50)]) for _ in range(16)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert warnings.filters == before
