"""Notebooks: places are cells and lines, edits change one cell's text, what is no Python is looked past."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samedevice.config import Config
from samedevice.fixing import fix_files, fix_text
from samedevice.linting import notebooks
from samedevice.linting.lint import lint, lint_source
from samedevice.linting.source import SourceError

MAKE = "import torch\nx = torch.zeros(3, device='cuda')"


def code(source):
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}


def markdown(source):
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def notebook(*cells, language="python"):
    return {"cells": list(cells), "metadata": {"language_info": {"name": language}}, "nbformat": 4, "nbformat_minor": 5}


def written(*cells, indent=1, **how):
    return json.dumps(notebook(*cells, **how), indent=indent, ensure_ascii=False) + "\n"


def places(text):
    return [(f.code, f.location.cell, f.location.line, f.location.column) for f in lint_source(text, "a.ipynb")]


def test_a_finding_names_cell_and_line_and_what_it_says_of_lines_too():
    cell = ["device = torch.device('cuda:1')\n", "z = torch.zeros(3).cuda()\n"]
    text = written(markdown("# torch"), code(["import torch"]), code(cell), code("print(z + torch.ones(3).to(device))"))
    (finding,) = lint_source(text, "a.ipynb")
    assert (finding.location.cell, finding.location.line, finding.location.source) == (3, 2, cell[1].strip())
    assert "; line 1 of cell 4 uses it" in finding.message


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("%matplotlib inline\nx.numpy()", 2),
        ("!pip install torch\nx.numpy()", 2),
        ("!pip install \\\n  torch\nx.numpy()", 3),
        ("files = !ls\nx.numpy()", 2),
        ("out = %time 1\nx.numpy()", 2),
        ("x?\nx.numpy()", 2),
        ("?x\nx.numpy()", 2),
        ("x.numpy??\nx.numpy()", 2),
        ("if True:\n    %time\n    x.numpy()", 3),
        ("%%time\nx.numpy()", 2),
        ("\n\n%%capture out\nx.numpy()", 4),
        ("await f()\nx.numpy()", 2),
        ("async for a in b: pass\nx.numpy()", 2),
        ("y = (7\n%2)\nx.numpy()", 3),
    ],
)
def test_what_is_no_python_is_looked_past(cell, line):
    text = written(code(MAKE), code(cell))
    assert [place[:3] for place in places(text)] == [("SD112", 2, line)]
    mended = cell.replace("x.numpy()", "x.cpu().numpy()")
    assert json.loads(fix_text(text, "a.ipynb"))["cells"][1]["source"] == mended


def test_cells_in_other_languages_are_none_of_ours():
    assert places(written(code(MAKE), code("%%bash\nx.numpy()"), code("%%html\n<torch>"))) == []
    assert places(written(code(MAKE), code("x.numpy()"), language="julia")) == []


def test_a_cell_that_is_no_python_stops_no_other(tmp_path):
    file = tmp_path / "a.ipynb"
    file.write_text(written(code(MAKE), code("x = = 1\n"), code("x.numpy()")))
    report = lint([file])
    assert [finding.location.cell for finding in report.findings] == [3]
    assert [error.message for error in report.errors] == ["cell 2, line 1: invalid syntax"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("torch {", "no notebook: "),
        ('["torch"]', "no notebook of format 4: it has no cells"),
        ('{"worksheets": ["torch"]}', "older format"),
        ('{"cells": ["torch", 3, {"cell_type": "code", "source": 3}]}', None),
        ("[" * 100_000 + '"torch"', "no notebook: "),
    ],
)
def test_what_is_no_notebook_is_told_so(text, message):
    if message is None:
        assert lint_source(text, "a.ipynb") == ()
    else:
        with pytest.raises(SourceError, match=message):
            lint_source(text, "a.ipynb")


LAYOUTS = [
    pytest.param(lambda data: json.dumps(data, indent=1, ensure_ascii=False) + "\n", id="as Jupyter writes"),
    pytest.param(lambda data: json.dumps(data), id="one line"),
    pytest.param(lambda data: json.dumps(data, indent="\t", ensure_ascii=True), id="tabs, escaped"),
    pytest.param(lambda data: json.dumps(data, indent=2, sort_keys=True).replace("\n", "\r\n"), id="CRLF"),
    pytest.param(lambda data: json.dumps(data, separators=(" ,", " :")), id="odd separators"),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("as_list", [True, False])
def test_fixing_changes_the_cell_and_nothing_else(tmp_path, layout, as_list):
    lines = [
        "# café ☕ \ud83d\ude00\n".encode("utf-16", "surrogatepass").decode("utf-16"),
        "y = x.numpy()\n",
        "print(y)",
    ]
    source, mended = (
        (part if as_list else "".join(part)) for part in (lines, [lines[0], "y = x.cpu().numpy()\n", lines[2]])
    )
    file = tmp_path / "a.ipynb"
    file.write_bytes(layout(notebook(markdown("ü"), code(MAKE), code(source))).encode())
    assert [change.file for change in fix_files([file])] == [str(file)]
    assert file.read_bytes().decode() == layout(notebook(markdown("ü"), code(MAKE), code(mended)))
    assert fix_files([file]) == ()


def test_an_edit_that_would_touch_no_python_is_not_made():
    text = written(code(MAKE), code("%%time\n!ls"), code("!ls\n(x\n!ls\n.numpy())"))
    assert fix_text(text, "a.ipynb") == text


def test_a_new_line_is_written_as_the_others_are():
    cell = ["import torch\n", "for m in ('a', 'b'):\n", "    print(m)\n"]
    text = json.dumps(notebook(code(cell)), indent=3)
    new = notebooks.with_sources(text, {1: "".join([*cell[:1], "x = 'é'\n", *cell[1:]])})
    assert new == json.dumps(notebook(code([*cell[:1], "x = 'é'\n", *cell[1:]])), indent=3, ensure_ascii=False)


SOURCES = st.lists(st.text('ab\n"\\é%!\t', max_size=8), max_size=4)


@settings(max_examples=100, deadline=None)
@given(SOURCES, st.data(), st.sampled_from([None, 1, "\t"]), st.booleans())
def test_any_text_comes_into_its_cell_and_no_other(sources, data, indent, as_list):
    cells = [code(source.splitlines(keepends=True) if as_list else source) for source in sources]
    text = json.dumps(notebook(*cells), indent=indent)
    assert notebooks.with_sources(text, notebooks.cell_sources(text)) == text
    for number in notebooks.cell_sources(text):
        new = data.draw(st.text('ab\n"é', max_size=8))
        changed = notebooks.cell_sources(notebooks.with_sources(text, {number: new}))
        assert changed == {**notebooks.cell_sources(text), number: new}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["x.numpy()", "%magic", "!ls", "def f(:", "y = 1", "", "x?", "await f()"]), max_size=5))
def test_any_notebook_is_linted_and_mended_once(cells):
    text = written(code(MAKE), *map(code, cells))
    mended = fix_text(text, "a.ipynb")
    assert fix_text(mended, "a.ipynb") == mended
    assert places(mended) == []


def test_comments_and_settings_hold_in_notebooks():
    text = written(code(MAKE), code("x.numpy()  # noqa: SD112"))
    assert places(text) == []
    config = Config(per_file_ignores={"*.ipynb": ("SD112",)})
    assert lint_source(written(code(MAKE), code("x.numpy()")), "a.ipynb", config=config) == ()
