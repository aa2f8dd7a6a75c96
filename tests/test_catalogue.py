"""Every sentence of the source is in every catalogue, translated, with the placeholders that it is given."""

import ast
import gettext
import importlib.util
import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CATALOGUES = sorted((ROOT / "src/samedevice/locale").glob("*/LC_MESSAGES/samedevice.po"))


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("make_catalogue", ROOT / "scripts" / "make_catalogue.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def messages(tool):
    return tool.all_messages()


@pytest.fixture(params=CATALOGUES, ids=lambda file: file.parts[-3])
def file(request):
    return request.param


@pytest.fixture
def catalogue(tool, file):
    return tool.read(file)


def test_simplified_chinese_is_there():
    assert "zh_CN" in {file.parts[-3] for file in CATALOGUES}


def test_each_sentence_is_given_what_its_placeholders_name(tool, messages):
    assert len(messages) > 300
    for message in messages:
        if "**" not in message.values:
            named = frozenset().union(*map(tool.names, message.sentences))
            assert named - {"number"} == message.values - {"number"}, (message.file, message.line)


def test_a_sentence_that_is_put_together_is_refused(tool):
    for call in ('say(f"{x} is on cpu")', 'say("a" + x)', 'say_number("one", f"{n}", n)', "say(text)"):
        with pytest.raises(tool.NotLiteral, match="must be a literal"):
            list(tool.messages_in(call, "a.py"))
    (message,) = tool.messages_in('say("one {x} "\n    "sentence", x=1)', "a.py")
    assert (message.sentences, message.values) == (("one {x} sentence",), {"x"})


def test_it_has_every_sentence_and_none_that_is_gone(messages, catalogue):
    wanted = {message.sentences for message in messages}
    had = {entry.id if isinstance(entry.id, tuple) else (entry.id,) for entry in catalogue if entry.id}
    assert had == wanted
    assert not catalogue.obsolete


def test_every_sentence_is_translated_and_none_by_a_guess(tool, catalogue):
    assert tool.untranslated(catalogue) == []


def test_a_translation_has_the_placeholders_of_its_sentence(tool, catalogue):
    for entry in catalogue:
        if entry.id:
            sentences = entry.id if isinstance(entry.id, tuple) else (entry.id,)
            translations = entry.string if isinstance(entry.string, tuple) else (entry.string,)
            for translation in translations:
                assert tool.placeholders(translation) == tool.placeholders(sentences[-1]), entry.id


def test_code_in_a_sentence_is_code_in_its_translation(catalogue):
    for entry in catalogue:
        sentence = entry.id if isinstance(entry.id, str) else entry.id[-1]
        translation = entry.string if isinstance(entry.string, str) else entry.string[0]
        if sentence:
            assert sorted(re.findall("`[^`]+`", sentence)) == sorted(re.findall("`[^`]+`", translation))


def test_chinese_and_latin_letters_stand_apart(catalogue):
    for entry in catalogue:
        translation = entry.string if isinstance(entry.string, str) else entry.string[0]
        plain = re.sub(r"\{[^}]*\}", "{}", translation)
        assert not re.search("[\u4e00-\u9fff][A-Za-z0-9`]|[A-Za-z0-9`][\u4e00-\u9fff]", plain), translation


def test_what_the_package_reads_is_made_from_it(tool, file, catalogue):
    assert file.read_bytes() == tool.written(catalogue), "run scripts/make_catalogue.py"
    assert _content(file.with_suffix(".mo").read_bytes()) == _content(tool.compiled(catalogue))


def _content(data):
    translations = gettext.GNUTranslations(io.BytesIO(data))
    return translations._catalog


def test_the_wheel_has_it(tmp_path):
    code = "from hatchling.builders.wheel import WheelBuilder; import sys\n"
    code += "print(*WheelBuilder(sys.argv[1]).build(directory=sys.argv[2], versions=['standard']))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(done.stdout.split()[-1]) as wheel:
        for file in CATALOGUES:
            assert file.with_suffix(".mo").relative_to(ROOT / "src").as_posix() in wheel.namelist()


NO_SENTENCES = ("messages/", "simulation/", "linting/devices/")
"""Where PyTorch's own words stand, and where nothing is said."""
NOT_SHOWN = {
    "__init__.py": ["has no attribute"],  # Python's own words
    "checkpoints/formats.py": ["shape x"],  # the reason inside a translated sentence
    "cli/arguments.py": ["(?P<"],  # argparse's sentences, to be recognised
    "explaining/diagnosing/traced.py": ["Traceback of TorchScript"],
    "explaining/replayed.py": ["in replica"],
    "fixing/edits.py": ["No newline at end of file"],  # what patches say
    "fixing/overlay.py": ["no cached bytecode"],  # caught by the import system
    "linting/cache.py": ["Signature:"],
    "linting/language_server.py": ["the linter failed in"],  # in the editor's log
    "pytest_plugin.py": ["the test on", "the session on"],  # what pytest shows beside its own options
    "reports/to_sarif.py": ["shows it wrong and right", "made or left behind here"],  # for machines
    "running/interpreter.py": [
        "Exception ignored in",
        "exception was",
        "Error in sys.excepthook",
    ],  # Python's own words
    "trees/inside.py": ["is only looked into"],
    "trees/replace.py": ["that must exist before"],  # the reason inside a translated sentence
}
"""Sentences that no reader meets in a report, or that are somebody else's."""
WORD = re.compile(r"\b(?:the|an?|are|was|were|of|with|from|that|which|it|on|by|does|has|have|no|not|is|in)\b")


def sentences_not_said(text):
    """Strings and f-strings with three words or more, one of them a small one, outside of `say` and docstrings."""
    tree, skipped = ast.parse(text), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            skipped.add(id(node.value))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("say", "say_number"):
            skipped.update(map(id, ast.walk(node)))
        elif isinstance(node, ast.JoinedStr):
            skipped.update(map(id, ast.iter_child_nodes(node)))
    for node in ast.walk(tree):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node] if isinstance(node, ast.Constant) else []
        found = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts)
        is_prose = " " in found and len(re.findall("[A-Za-z]{2,}", found)) >= 3 and WORD.search(found)
        if is_prose and id(node) not in skipped and not is_code(found):
            yield found


def is_code(text):
    try:
        ast.parse(text.strip())
    except SyntaxError:
        return text.lstrip().startswith(("<", "(?", ":root", "│", "import ", "File ", "samedevice "))
    return True


def test_a_sentence_past_the_catalogue_is_found():
    assert list(sentences_not_said('x = f"{a} is on the {b}"')) == ["x is on the x"]
    assert list(sentences_not_said('raise UsageError("the file is not there")')) == ["the file is not there"]
    assert list(sentences_not_said('"""A docstring of the module."""\nsay("the file is {x} there", x=f(1))')) == []


def test_no_sentence_is_said_past_the_catalogue():
    source = ROOT / "src" / "samedevice"
    for file in sorted(source.rglob("*.py")):
        name = file.relative_to(source).as_posix()
        if not name.startswith(NO_SENTENCES):
            found = list(sentences_not_said(file.read_text(encoding="utf-8")))
            assert [each for each in found if not any(part in each for part in NOT_SHOWN.get(name, ()))] == [], name
