import ast
import codecs
import contextlib
import difflib
import importlib.machinery
import io
import multiprocessing.spawn
import runpy
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samedevice.causes.catalogue import all_causes
from samedevice.errors import UsageError
from samedevice.findings import Edit
from samedevice.fixing import Change, FixOptions, apply_edits, fix_files, fix_script, fix_text, proposed_changes
from samedevice.fixing.correspondence import corresponding
from samedevice.fixing.edits import write, write_all
from samedevice.fixing.overlay import overlaid
from samedevice.fixing.project import Project
from samedevice.linting.lint import lint_source
from samedevice.linting.source import decode

BUG = 'import torch\nx = torch.zeros(3, device="cuda")\ny = x.numpy()  # keep\n'
MENDED = 'import torch\nx = torch.zeros(3, device="cuda")\ny = x.cpu().numpy()  # keep\n'

MENDABLE = [
    pytest.param(example, id=f"{cause.slug}-{number}")
    for cause in all_causes()
    if cause.not_fixed is None and cause.not_static is None
    for number, example in enumerate(cause.examples, 1)
]


@pytest.mark.parametrize("example", MENDABLE)
def test_the_wrong_example_becomes_the_right_one(example):
    assert fix_text(example.wrong_script) == example.right


@pytest.mark.parametrize("cause", [cause for cause in all_causes() if cause.not_fixed], ids=lambda cause: cause.slug)
def test_what_is_left_to_a_person_is_left_alone(cause):
    for example in cause.examples:
        assert fix_text(example.wrong_script) == example.wrong_script


PROGRAMS = [example.wrong_script for cause in all_causes() for example in cause.examples]
BLOCKS = [
    "a = torch.zeros(3)",
    "b = torch.ones(3, device='cuda')",
    "c = a + b",
    "c = b.numpy(); d = 1",
    "if True:\n    a = torch.arange(3)\n    c = b[0] * a",
    "def f(x):\n\tn = torch.ones(  # tab and comment\n\t\t3,\n\t)\n\treturn x.to('cuda') + n",
    "f(b)",
    "a.to('cuda')",
    "model = torch.nn.Linear(3, 3).cuda()",
    "model(\n    a,\n)",
    "print('ä', model(a))",
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(BLOCKS), max_size=9), st.sampled_from(["\n", "\r\n"]))
def test_a_mended_text_parses_needs_no_more_and_has_no_new_findings(blocks, end):
    text = ("import torch\n" + "\n".join(blocks) + "\n").replace("\n", end)
    mended = fix_text(text)
    ast.parse(mended)
    assert fix_text(mended) == mended
    assert len(lint_source(mended)) <= len(lint_source(text))
    assert mended.replace(end, "").count("\n") == mended.replace(end, "").count("\r") == 0


lines = st.lists(st.text("ab \t#é", max_size=4), min_size=1, max_size=8)


@given(lines, st.data())
def test_edits_change_their_lines_and_no_others(text, data):
    first = data.draw(st.integers(1, len(text)))
    last = data.draw(st.integers(first, len(text)))
    new = data.draw(st.one_of(st.just([]), lines))
    edit = Edit("x.py", first, last, "\n".join(text[first - 1 : last]), "\n".join(new))
    whole = "\n".join(text) + "\n"
    after = apply_edits(whole, [edit]).split("\n")
    kept = new if edit.new else []
    assert after == [*text[: first - 1], *kept, *text[last:], ""]


@given(lines)
def test_an_edit_for_other_text_is_left_out(text):
    whole = "\n".join(text)
    assert apply_edits(whole, [Edit("x.py", 1, 1, text[0] + "!", "new")]) == whole
    assert apply_edits(whole, [Edit("x.py", len(text) + 1, len(text) + 1, "z", "new")]) == whole


def test_of_overlapping_edits_the_first_stays():
    edits = [Edit("x.py", 1, 2, "a\nb", "A\nB"), Edit("x.py", 2, 3, "b\nc", "lost"), Edit("x.py", 3, 3, "c", "C")]
    assert apply_edits("a\nb\nc\n", edits) == "A\nB\nC\n"


def test_the_last_line_may_have_no_end():
    assert apply_edits("a\nb", [Edit("x.py", 2, 2, "b", "B\nC")]) == "a\nB\nC"
    assert apply_edits("a\r\nb\r\n", [Edit("x.py", 1, 1, "a", "A\nA")]) == "A\r\nA\r\nb\r\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BUG.encode(), MENDED.encode()),
        (codecs.BOM_UTF8 + BUG.encode(), codecs.BOM_UTF8 + MENDED.encode()),
        (BUG.replace("\n", "\r\n").encode(), MENDED.replace("\n", "\r\n").encode()),
        (
            ("# coding: latin-1\n" + BUG.replace("keep", "é")).encode("latin-1"),
            ("# coding: latin-1\n" + MENDED.replace("keep", "é")).encode("latin-1"),
        ),
    ],
    ids=["utf-8", "byte order mark", "windows line ends", "latin-1"],
)
def test_files_keep_their_encoding_and_line_ends(tmp_path, before, after):
    path = tmp_path / "a.py"
    path.write_bytes(before)
    (change,) = fix_files([tmp_path])
    assert path.read_bytes() == after
    assert change.file == str(path)
    assert fix_files([tmp_path]) == ()


def test_proposed_changes_write_nothing_and_show_a_diff(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(BUG)
    (tmp_path / "broken.py").write_text("import torch (\n")
    (change,) = proposed_changes([tmp_path])
    assert path.read_text() == BUG
    name = str(path).lstrip("/")
    expected = difflib.unified_diff(BUG.splitlines(True), MENDED.splitlines(True), f"a/{name}", f"b/{name}")
    assert change.diff == "".join(expected)


def test_a_diff_says_where_a_last_line_has_no_end():
    assert Change("a.py", "a", "b").diff.endswith(
        "-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
    )


def test_writing_keeps_permissions_and_links(tmp_path):
    path, link = tmp_path / "a.py", tmp_path / "link.py"
    path.write_text("x = 1\n")
    path.chmod(0o755)
    link.symlink_to(path)
    write(link, "x = 2\n")
    assert link.is_symlink()
    assert path.read_text() == "x = 2\n"
    assert path.stat().st_mode & 0o777 == 0o755
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.py", "link.py"]


@pytest.mark.parametrize(
    ("before", "text"), [("x = 1\n", "x = (\n"), ("# coding: ascii\nx = 1\n", "# coding: ascii\nx = 'é'\n")]
)
def test_what_would_be_no_python_is_not_written(tmp_path, before, text):
    path = tmp_path / "a.py"
    path.write_text(before)
    with pytest.raises(UsageError, match="nothing was written"):
        write(path, text)
    assert path.read_text() == before
    assert [each.name for each in tmp_path.iterdir()] == ["a.py"]


SCRIPT = textwrap.dedent(
    """\
    import sys
    from pathlib import Path

    import torch

    Path(sys.argv[1]).open("a").write(Path(__file__).parent.name)
    weights = torch.ones(3)
    x = torch.ones(3, device="cuda")
    print(x * weights)
    """
)


def test_a_script_is_run_mended_and_run_again(tmp_path):
    path, log = tmp_path / "train.py", tmp_path / "log"
    path.write_text(SCRIPT)
    result = fix_script(FixOptions(str(path), args=(str(log),), simulate="cuda"))
    assert (result.clean, result.written, result.left) == (True, True, ())
    (made,) = result.made
    assert (made.places, made.safe) == (((str(path), 9),), True)
    assert path.read_text() == result.change.after != SCRIPT
    assert log.read_text() == tmp_path.name * 2
    assert sorted(each.name for each in tmp_path.iterdir()) == ["log", "train.py"]


TWICE = """\
import torch
MEAN, STD = torch.zeros(3), torch.ones(3)

def norm(x):
    return (x - MEAN) / STD

a = torch.ones(3, device="cuda")
labels = torch.ones(3)
gain = torch.ones(3)
print(norm(a), a * gain, a * labels)
"""


def test_only_edits_that_are_in_the_end_are_told_by_their_lines(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(TWICE)
    result = fix_script(FixOptions(str(path), simulate="cuda"))
    assert result.clean
    before, after = TWICE.splitlines(), path.read_text().splitlines()
    told = [line for made in result.made for _, line in made.places]
    assert told == sorted(set(told))
    assert [after[line - 1].strip() for line in told] == [made.summary for made in result.made]
    assert sorted(made.summary for made in result.made) == sorted(line.strip() for line in after if line not in before)
    assert "(x - MEAN.to(x.device)) / STD.to(x.device)" in path.read_text()


def test_what_is_left_is_told_in_full(tmp_path):
    (tmp_path / "neighbour.py").write_text(
        "import torch\ny = torch.ones(3)\nz = eval('y') + eval(\"torch.ones(3, device='cuda')\")\n"
    )
    path = tmp_path / "train.py"
    path.write_text("import torch\nimport neighbour\n")
    result = fix_script(FixOptions(str(path), simulate="cuda"))
    (finding,) = result.left
    assert (Path(finding.location.file).name, finding.location.line) == ("neighbour.py", 3)
    assert finding.expected_device == "cuda:0"
    assert finding.raised.type == "RuntimeError"
    assert finding.reasons
    assert len(finding.operands) == 2
    assert not result.written


def test_what_is_left_of_a_file_that_was_not_written_is_told_as_it_is_on_disk(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "import torch\ndevice = 'cuda'\nw = torch.ones(3)\nprint(torch.ones(3, device=device) * w)\nw.to('cuda:1')\n"
    )
    result = fix_script(FixOptions(str(path), simulate="cuda"))
    assert (result.clean, result.written, len(result.made)) == (False, False, 1)
    (finding,) = result.left
    lines = path.read_text().splitlines()
    assert (finding.location.line, finding.location.source) == (5, lines[4])
    assert all(edit.old == lines[edit.line - 1] for edit in (finding.fix.edits if finding.fix else ()))


SPAWNING = """\
import torch
import torch.multiprocessing as mp
import neighbour

def work(rank):
    print(neighbour.made() * torch.ones(2))

if __name__ == "__main__":
    mp.spawn(work, nprocs=1)
"""


def test_processes_that_are_spawned_run_the_edited_files(tmp_path):
    neighbour, path = tmp_path / "neighbour.py", tmp_path / "train.py"
    neighbour.write_text("import torch\n\ndef made():\n    return torch.ones(2) + torch.ones(2, device='cuda')\n")
    path.write_text(SPAWNING)
    result = fix_script(FixOptions(str(path), simulate="cuda"))
    assert (result.clean, result.written) == (True, True)
    assert sorted(Path(change.file).name for change in result.changes) == ["neighbour.py", "train.py"]


@pytest.mark.parametrize(
    ("line", "lines"),
    [(1, [1]), (2, [2, 3]), (3, [4]), (4, []), (5, [5])],
    ids=["unchanged", "one became two", "moved down", "gone", "after it"],
)
def test_lines_correspond(line, lines):
    assert list(corresponding("a\nb\nc\nd\ne\n", "a\nB\nB\nc\ne\n", line)) == lines


MODEL = """\
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.fc = nn.Linear(n, n)
        self.scale = torch.ones(n)  # für alle

    def forward(self, x):
        return self.fc(x) * self.scale"""

TRAIN = """\
import torch
from .model import Net

model = Net(4).cuda()
for x, y in [(torch.ones(2, 4), torch.tensor([0, 1]))]:
    torch.nn.functional.cross_entropy(model(x.cuda()), y).backward()
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package under version control, in a folder with a space, one file with Windows line ends and no last one."""
    folder = tmp_path / "my work"
    (folder / "net s").mkdir(parents=True)
    (folder / "pkg").mkdir()
    (folder / "pkg" / "__init__.py").write_text("")
    (folder / "pkg" / "model.py").write_bytes(MODEL.replace("\n", "\r\n").encode())
    (folder / "pkg" / "train.py").write_text(TRAIN)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    monkeypatch.chdir(folder)
    return folder / "pkg"


def applied(changes, folder):
    """What `git apply` makes of the patches."""
    patch = b"".join(change.patch for change in changes)
    subprocess.run(["git", "apply"], input=patch, cwd=folder, check=True)


def test_the_files_that_a_module_imports_are_mended_with_it(package):
    before = {path.name: path.read_bytes() for path in package.iterdir()}
    result = fix_script(FixOptions("pkg.train", simulate="cuda", module=True, write=False))
    assert (result.clean, result.written) == (True, False)
    assert {path.name: path.read_bytes() for path in package.iterdir()} == before
    assert [Path(change.file) for change in result.changes] == [Path("pkg/model.py"), Path("pkg/train.py")]
    applied(result.changes, Path.cwd())
    model = (package / "model.py").read_bytes()
    buffer = 'self.register_buffer("scale", torch.ones(n), persistent=False)  # für alle'
    expected = MODEL.replace("self.scale = torch.ones(n)  # für alle", buffer).replace("\n", "\r\n")
    assert model == expected.encode()
    for change in result.changes:
        assert Path(change.file).read_bytes() == change.data
    assert {made.places[0][0] for made in result.made} == {"pkg/model.py", "pkg/train.py"}
    for made in result.made:
        for file, line in made.places:
            before = next(change.before for change in result.changes if change.file == file)
            assert Path(file).read_text().splitlines()[line - 1] not in before.splitlines()


def test_patches_apply_byte_for_byte(package):
    names = ["net s/é a.py", "bom.py", "latin.py"]
    for name, head in zip(names, [b"", codecs.BOM_UTF8, b"# coding: latin-1\n"], strict=True):
        encoding = "latin-1" if b"latin" in head else "utf-8"
        Path(name).write_bytes(head + "a = 'é'\r\nb\t= 1\nc = 2".encode(encoding))
    changes = [Change(name, text := decode(Path(name).read_bytes()), text.replace("'é'", "'ü'")) for name in names]
    changes[1] = Change("bom.py", changes[1].before, changes[1].before.replace("c = 2", "c = 3\n"))
    wanted = {change.file: change.data for change in changes}
    applied(changes, Path.cwd())
    assert {name: Path(name).read_bytes() for name in names} == wanted
    assert wanted["bom.py"] == codecs.BOM_UTF8 + "a = 'é'\r\nb\t= 1\nc = 3\n".encode()


def test_only_the_projects_own_files_may_be_edited(tmp_path):
    work = tmp_path / "work"
    for name in ("lib/site-packages/theirs.py", "src/train.py", "src/data.csv", "../elsewhere.py"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("x = 1\n")
    (work / "pyproject.toml").write_text("")
    (work / "src" / "link.py").symlink_to(tmp_path / "elsewhere.py")
    project = Project.around(work / "src" / "train.py")
    assert project.root == work
    allowed = {path.name: project.may_edit(path) for path in [*work.rglob("*"), Path(ast.__file__)] if path.is_file()}
    assert [name for name, may in allowed.items() if may] == ["train.py"]
    for name in ("link.py", "../lib/site-packages/theirs.py"):
        assert project.edited([Edit(str(work / "src" / name), 1, 1, "x = 1", "x = 2")]) is None
    edited = project.edited([Edit(str(work / "src" / "train.py"), 1, 1, "x = 1", "x = 2")])
    assert [change.after for change in edited.changes()] == ["x = 2\n"]


def test_several_files_are_written_only_where_all_are_as_they_were_read(tmp_path):
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    first.write_text("a = 1\n")
    second.write_text("b = 3\n")
    changes = [Change(str(first), "a = 1\n", "a = 2\n"), Change(str(second), "b = 1\n", "b = 2\n")]
    with pytest.raises(UsageError, match="changed by somebody else"):
        write_all(changes)
    assert (first.read_text(), second.read_text()) == ("a = 1\n", "b = 3\n")
    assert len(list(tmp_path.iterdir())) == 2


def test_an_interrupted_run_leaves_everything_as_it_was(tmp_path):
    path, started = tmp_path / "train.py", tmp_path / "started"
    text = f"import torch, time\nopen({str(started)!r}, 'w').close()\ntime.sleep(600)\n"
    path.write_text(text)
    command = [sys.executable, "-m", "samedevice", "fix", "--simulate", "cuda", str(path)]
    none = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=none, stdout=none, stderr=none) as process:
        while not started.exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait() != 0
    assert path.read_text() == text
    assert sorted(each.name for each in tmp_path.iterdir()) == ["started", "train.py"]


def test_a_run_that_takes_too_long_is_ended(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("import time\ntime.sleep(600)\n")
    result = fix_script(FixOptions(str(path), timeout=0.5))
    assert (result.clean, result.written) == (False, False)


def test_a_module_that_is_not_here_is_a_usage_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, told in [("json.tool", "is not in the current folder"), ("no.such", "cannot be found")]:
        with pytest.raises(UsageError, match=told):
            fix_script(FixOptions(name, module=True))


@pytest.mark.slow
def test_without_verifying_edits_that_helped_are_kept(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT + "raise ValueError('mine')\n")
    arguments = (str(tmp_path / "log"),)
    assert not fix_script(FixOptions(str(path), arguments, "cuda")).written
    result = fix_script(FixOptions(str(path), arguments, "cuda", verify=False))
    assert (result.clean, result.written, len(result.made)) == (False, True, 1)
    assert path.read_text() == result.change.after


@pytest.mark.slow
def test_a_script_is_not_changed_where_it_is_only_looked_at(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    result = fix_script(FixOptions(str(path), args=(str(tmp_path / "log"),), simulate="cuda", write=False))
    assert result.clean
    assert not result.written
    assert path.read_text() == SCRIPT
    assert result.change.diff


@pytest.mark.slow
def test_a_script_that_fails_otherwise_is_left_alone(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("import torch\nraise ValueError('mine')\n")
    result = fix_script(FixOptions(str(path), simulate="cuda"))
    assert (result.clean, result.made, result.written) == (False, (), False)
    assert result.message == "the script fails for a reason of its own; `samedevice run` shows it"


def test_a_script_that_is_not_there_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        fix_script(FixOptions(str(Path(tmp_path) / "no.py")))


def test_an_overlay_leaves_the_process_as_it_was(tmp_path):
    loader = importlib.machinery.SourceFileLoader
    before = [dict(vars(owner)) for owner in (loader, io, multiprocessing.spawn)]
    module = tmp_path / "overlaid_module.py"
    module.write_text("value = 1\n")
    with contextlib.suppress(KeyboardInterrupt), overlaid({str(module): b"value = 2\n"}):
        assert runpy.run_path(str(module))["value"] == 2
        raise KeyboardInterrupt
    assert [dict(vars(owner)) for owner in (loader, io, multiprocessing.spawn)] == before
