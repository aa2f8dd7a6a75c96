import pytest

from samedevice.config import Config, load
from samedevice.errors import UsageError


@pytest.fixture
def project(tmp_path):
    def write(text, folder="."):
        place = tmp_path / folder
        place.mkdir(parents=True, exist_ok=True)
        (place / "pyproject.toml").write_text(text, encoding="utf-8")
        return tmp_path

    return write


def test_the_nearest_table_holds(project):
    root = project('[tool.samedevice]\nselect = ["SD1"]\n')
    project('[project]\nname = "inner"\n', "inner")  # no table of ours: the search goes on
    config = load(root / "inner" / "module.py")
    assert config.select == ("SD1",)
    assert config.root == root


def test_every_setting_is_read(project):
    root = project(
        """
[tool.samedevice]
select = ["SD1", "optimizer-state"]
ignore = ["SD107"]
exclude = ["legacy", "notebooks/*.py"]
[tool.samedevice.per-file-ignores]
"tests/*" = ["SD106"]
"""
    )
    assert load(root) == Config(
        root=root,
        select=("SD1", "optimizer-state"),
        ignore=("SD107",),
        exclude=("legacy", "notebooks/*.py"),
        per_file_ignores={"tests/*": ("SD106",)},
    )


def test_no_table_means_defaults(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert load(tmp_path).select == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.samedevice]\nselct = []\n", "tool.samedevice has no setting 'selct'; did you mean 'select'?"),
        ("[tool.samedevice]\nzzz = []\n", "settings are select, extend-select, ignore, exclude, per-file-ignores"),
        ('[tool.samedevice]\nselect = "SD1"\n', "select must be a list of strings, not 'SD1'"),
        ("[tool.samedevice]\nignore = [1]\n", "ignore must be a list of strings, not [1]"),
        ("[tool]\nsamedevice = 3\n", "tool.samedevice must be a table, not 3"),
        ("[tool.samedevice]\nper-file-ignores = []\n", "per-file-ignores must be a table"),
        ("[tool.samedevice\n", "cannot read"),
    ],
)
def test_a_wrong_setting_is_named_with_its_file(project, text, message):
    root = project(text)
    with pytest.raises(UsageError) as caught:
        load(root)
    assert message in str(caught.value)
    assert str(root / "pyproject.toml") in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, True),
        ({"select": ("SD1",)}, True),
        ({"select": ("plain-attribute",)}, True),
        ({"select": ("ALL",)}, True),
        ({"select": ("SD2",)}, False),
        ({"select": ("plain",)}, False),
        ({"ignore": ("SD103",)}, False),
        ({"ignore": ("SD10",)}, False),
        ({"select": ("SD103",), "ignore": ("plain-attribute",)}, False),
        ({"per_file_ignores": {"tests/*": ("SD103",)}}, False),
        ({"per_file_ignores": {"*.py": ("SD103",)}}, False),
        ({"per_file_ignores": {"tests": ("SD103",)}}, False),
        ({"per_file_ignores": {"src/*": ("SD103",)}}, True),
    ],
)
def test_wants(tmp_path, settings, wanted):
    config = Config(root=tmp_path, **settings)
    assert config.wants("SD103", "plain-attribute", tmp_path / "tests" / "train.py") is wanted


@pytest.mark.parametrize(
    ("path", "excluded"),
    [
        ("src/train.py", False),
        (".venv/lib/x.py", True),
        ("src/__pycache__/x.py", True),
        ("build/x.py", True),
        ("src/rebuild/x.py", False),
        ("legacy/old.py", True),
        ("src/legacy/old.py", True),
        ("notebooks/a.py", True),
        ("src/notebooks/a.py", False),
    ],
)
def test_excludes(tmp_path, path, excluded):
    config = Config(root=tmp_path, exclude=("legacy/", "notebooks/*.py"))
    assert config.excludes(tmp_path / path) is excluded


def test_a_project_in_a_hidden_folder_is_not_excluded(tmp_path):
    root = tmp_path / ".cache" / "project"
    assert not Config(root=root).excludes(root / "train.py")
