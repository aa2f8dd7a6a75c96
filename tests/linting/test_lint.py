import subprocess
import sys

import pytest

from samedevice.causes.catalogue import SLUGS
from samedevice.config import Config
from samedevice.linting.lint import lint, lint_source
from samedevice.linting.rule import ORDER, rules

BUG = 'import torch\nx = torch.zeros(3, device="cuda")\ny = x.numpy()\n'


def test_every_rule_speaks_for_a_cause_of_the_catalogue():
    assert {SLUGS[rule.code] for rule in rules()} == {rule.slug for rule in rules()} == set(SLUGS.values())
    assert [rule.slug.replace("-", "_") for rule in rules()] == list(ORDER)


def test_a_finding_says_what_where_and_how_to_mend_it():
    (finding,) = lint_source(BUG, "a.py")
    assert (finding.code, finding.cause, finding.severity) == ("SD112", "numpy-on-cuda", "error")
    assert finding.message == "`x` is on cuda; numpy needs it on the CPU"
    location = finding.location
    assert (location.file, location.line, location.column) == ("a.py", 3, 5)
    assert (location.end_line, location.end_column, location.source) == (3, 14, "y = x.numpy()")
    assert (finding.culprit.name, finding.culprit.line, finding.culprit.device) == ("x", 2, "cuda")
    assert finding.fix.summary == "x.cpu()"
    assert (finding.fix.edits[0].old, finding.fix.edits[0].new) == ("y = x.numpy()", "y = x.cpu().numpy()")


def test_findings_come_in_order():
    text = BUG + "z = torch.zeros(3)\nw = x + z\n" + "v = x.numpy()\n"
    lines = [finding.location.line for finding in lint_source(text)]
    assert lines == sorted(lines)


def test_one_thing_in_the_wrong_place_is_reported_once(found):
    assert found(
        """
        import torch
        x = torch.zeros(3)
        y = torch.zeros(3, device="cuda")
        a = x + y
        b = x * y
        c = y - x
        """
    ) == [("SD101", 5)]


def test_a_file_that_cannot_be_read_stops_no_other(tmp_path):
    for name, data in (
        ("bad_syntax.py", b"import torch\nx = (\n"),
        ("bad_bytes.py", b"import torch\nx = '\xff'\n"),
        ("bad_null.py", b"import torch\0\n"),
        ("bug.py", BUG.encode()),
        ("deep.py", b"import torch\nx = " + b"(" * 150 + b"1" + b")" * 150 + b"\n"),
        ("long.py", b"import torch\nx = " + b"+".join([b"y"] * 20_000) + b"\n"),
        ("python2.py", b"import torch\nprint 'x'\n"),
    ):
        (tmp_path / name).write_bytes(data)
    report = lint([tmp_path, tmp_path / "missing.py"], config=Config())
    assert [finding.location.file for finding in report.findings] == [str(tmp_path / "bug.py")]
    names = {error.file.rpartition("/")[2] for error in report.errors}
    assert names >= {"bad_syntax.py", "bad_bytes.py", "bad_null.py", "python2.py", "missing.py"}
    assert names <= {"bad_syntax.py", "bad_bytes.py", "bad_null.py", "python2.py", "missing.py", "deep.py", "long.py"}
    assert all(error.message for error in report.errors)
    assert (report.outcome, report.ok) == ("finding", False)


def test_a_file_without_torch_is_not_parsed(tmp_path):
    (tmp_path / "a.py").write_text("this is no python\n")
    report = lint([tmp_path])
    assert report.ok
    assert report.outcome == "ok"


@pytest.mark.parametrize(
    ("config", "seen"),
    [
        (Config(select=("SD112",)), True),
        (Config(select=("numpy-on-cuda",)), True),
        (Config(select=("SD2",)), False),
        (Config(ignore=("SD1",)), False),
    ],
)
def test_settings_choose(config, seen):
    assert bool(lint_source(BUG, "a.py", config=config)) is seen


def test_settings_for_some_files(tmp_path):
    for name in ("a.py", "tests/b.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(BUG)
    config = Config(root=tmp_path, per_file_ignores={"tests/*": ("SD112",)})
    assert [finding.location.file for finding in lint([tmp_path], config=config).findings] == [str(tmp_path / "a.py")]


def test_linting_imports_neither_torch_nor_numpy():
    program = (
        "import sys\nfrom samedevice.linting.lint import lint_source\n"
        f"assert lint_source({BUG!r})\n"
        "assert not {'torch', 'numpy'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_process_is_as_before():
    import gc
    import signal
    import threading

    before = gc.get_threshold(), signal.getsignal(signal.SIGINT)
    threads = [threading.Thread(target=lint_source, args=(BUG * 20,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        lint_source(BUG)
    for thread in threads:
        thread.join()
    assert (gc.get_threshold(), signal.getsignal(signal.SIGINT)) == before
