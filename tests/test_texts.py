import copy
import json
import locale
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import samedevice
from samedevice.errors import UnknownDevice
from samedevice.texts import Text, language, listed, packed, say, say_number, shown, unpacked, with_parts, with_values

PACKAGE = Path(samedevice.__file__).parent
ASKED = ("SAMEDEVICE_LANG", "LC_ALL", "LC_MESSAGES", "LANG")


@pytest.fixture
def chinese(monkeypatch):
    monkeypatch.setenv("SAMEDEVICE_LANG", "zh_CN")


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
    )


def test_a_text_is_its_english_sentence():
    text = say("{name} is on {device}", name="self.pe", device="cpu")
    assert text == "self.pe is on cpu"
    assert json.dumps(text) == '"self.pe is on cpu"'
    assert shown(text) == "self.pe is on cpu"
    assert type(shown(text)) is str


def test_it_is_shown_in_the_readers_language(chinese):
    text = say("{name} is on {device}", name="self.pe", device="cpu")
    assert shown(text) == "self.pe 在 cpu 上"
    assert text == "self.pe is on cpu"


@pytest.mark.parametrize(
    ("number", "english", "translated"),
    [(1, "1 tensor", "1 个张量"), (2, "2 tensors", "2 个张量"), (0, "0 tensors", "0 个张量")],
)
def test_numbers_have_the_plurals_of_the_language(chinese, number, english, translated):
    text = say_number("{number} tensor", "{number} tensors", number)
    assert (text, shown(text)) == (english, translated)


@pytest.mark.parametrize(
    ("names", "most", "english", "translated"),
    [
        ([], None, "", ""),
        (["a"], None, "a", "a"),
        (["a", "b"], None, "a and b", "a 和 b"),
        (["a", "b", "c"], 3, "a, b and c", "a, b 和 c"),
        (list("abcdefg"), 3, "a, b, c and 4 more", "a, b, c 和另外 4 个"),
    ],
)
def test_names_are_listed(chinese, names, most, english, translated):
    text = listed(names, most)
    assert (text, shown(text)) == (english, translated)


def test_a_text_within_a_text_is_translated_too(chinese):
    what = say_number("{number} device fault", "{number} device faults", 2)
    text = say("{what} in {script}", what=what, script="train.py")
    assert text == "2 device faults in train.py"
    assert shown(text) == "train.py：发现 2 个设备问题"


def test_what_is_no_sentence_stays_as_it_is(chinese):
    assert shown("x = x.to(device)") == "x = x.to(device)"
    assert shown(say("a sentence that no catalogue has, {name}", name="x")) == "a sentence that no catalogue has, x"


@pytest.mark.parametrize("again", [lambda text: pickle.loads(pickle.dumps(text)), copy.deepcopy, copy.copy])
def test_a_copy_is_the_same_text(chinese, again):
    text = again(say("{what} in {script}", what=say("No device fault found"), script="a.py"))
    assert isinstance(text, Text)
    assert (text, shown(text)) == ("No device fault found in a.py", "a.py：没有发现设备问题")


def test_a_text_goes_through_json(chinese):
    text = say(
        "{what} in {script}", what=say_number("{number} device fault", "{number} device faults", 2), script="a.py"
    )
    again = unpacked(json.loads(json.dumps(packed(text))))
    assert (again, shown(again)) == ("2 device faults in a.py", "a.py：发现 2 个设备问题")
    assert unpacked(packed("x.to(device)")) == "x.to(device)"
    for wrong in (None, [], ["{x}", None, 1, {}], ["a", None]):
        with pytest.raises((ValueError, TypeError, LookupError)):
            unpacked(wrong)


def test_the_sentences_within_one_can_be_changed(chinese):
    text = say("{what} in {script}", what=say("No device fault found"), script="a.py")
    changed = with_parts(text, lambda part: say_number("{number} device fault", "{number} device faults", len(part)))
    assert (changed, shown(changed)) == ("21 device faults in a.py", "a.py：发现 21 个设备问题")
    assert with_parts("a.py", lambda part: part) == "a.py"


def test_values_can_be_others(chinese):
    text = with_values(say("{what} in {script}", what=say("No device fault found"), script="a.py"), script="b.py")
    assert (text, shown(text)) == ("No device fault found in b.py", "b.py：没有发现设备问题")
    assert with_values("a.py", script="b.py") == "a.py"


def test_an_error_is_read_in_the_readers_language_and_kept_in_english(chinese):
    error = UnknownDevice(say("{index} is no device: indices count from 0.", index=-1))
    assert str(error) == "-1 不是设备：序号从 0 开始。"
    assert error.args == ("-1 is no device: indices count from 0.",)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.args) == (str(error), error.args)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh_CN"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "zh_CN.GB18030"}, "zh_CN"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_GB"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "", "LC_MESSAGES": ""}, "zh_CN"),
        ({"LANG": "zh_CN.UTF-8", "SAMEDEVICE_LANG": "en"}, "en"),
        ({"LANG": "de_DE", "SAMEDEVICE_LANG": "zh-cn"}, "zh_CN"),
        ({"SAMEDEVICE_LANG": "zh"}, "zh_CN"),
        ({"SAMEDEVICE_LANG": "zh-Hans"}, "zh_CN"),
        ({"SAMEDEVICE_LANG": "zh_Hans_SG"}, "zh_CN"),
        ({"LANG": "zh_TW.UTF-8"}, "en"),
        ({"SAMEDEVICE_LANG": "fr"}, "en"),
        ({"SAMEDEVICE_LANG": "../../etc"}, "en"),
    ],
)
def test_the_language_is_the_one_that_the_environment_asks_for(monkeypatch, asked, found):
    for name in ASKED:
        monkeypatch.delenv(name, raising=False)
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    assert language() == found


def test_the_names_that_windows_gives_are_known(monkeypatch):
    for name in ASKED:
        monkeypatch.delenv(name, raising=False)
    for number, found in ((0x0804, "zh_CN"), (0x1004, "zh_CN"), (0x0404, "en"), (0x0409, "en")):
        monkeypatch.setenv("LANG", locale.windows_locale[number])
        assert language() == found


def test_a_console_without_chinese_gets_english_it_can_show():
    code = "from samedevice.texts import language; print(language())"
    assert python(code, SAMEDEVICE_LANG="zh_CN", PYTHONIOENCODING="ascii").stdout == "en\n"
    assert python(code, SAMEDEVICE_LANG="zh_CN", PYTHONIOENCODING="gb18030").stdout == "zh_CN\n"


@pytest.mark.parametrize(
    "content",
    [None, b"", b"\xde\x12\x04\x95", (PACKAGE / "locale/zh_CN/LC_MESSAGES/samedevice.mo").read_bytes()[:5000]],
    ids=["missing", "empty", "head", "cut"],
)
def test_a_catalogue_that_is_missing_or_damaged_leaves_english(tmp_path, content):
    shutil.copytree(PACKAGE, tmp_path / "samedevice", ignore=shutil.ignore_patterns("__pycache__", "*.mo"))
    if content is not None:
        (tmp_path / "samedevice/locale/zh_CN/LC_MESSAGES/samedevice.mo").write_bytes(content)
    code = "import sys; sys.path.insert(0, sys.argv[1])\nfrom samedevice.reports import to_text\n"
    code += "from samedevice.findings import Report\nprint(to_text(Report()), end='')"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, "SAMEDEVICE_LANG": "zh_CN"},
    )
    assert (done.stdout, done.stderr) == ("No device fault found\n", "")


def test_english_needs_no_gettext():
    code = "import sys\nfrom samedevice.findings import Report\nprint(Report().to_text(), 'gettext' in sys.modules)"
    assert python(code, SAMEDEVICE_LANG="en").stdout == "No device fault found\n False\n"
    assert python(code, SAMEDEVICE_LANG="zh_CN").stdout == "没有发现设备问题\n True\n"
