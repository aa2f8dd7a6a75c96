"""What a file imports from its package, folder or project is understood; what is wrong there is not reported here."""

import textwrap
import threading

import pytest

from samedevice.config import PROJECT_MARKS
from samedevice.linting.checking import check
from samedevice.linting.devices.neighbours import NEIGHBOURS
from samedevice.linting.lint import lint, lint_source

HELPERS = """
import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
MEAN = torch.tensor([0.1, 0.2])

def causal(n):
    return torch.ones(n, n).tril()

def to_device(batch, device):
    return {key: value.to(device) for key, value in batch.items()}

def step(model, x):
    return model(x).sum()
"""
MODELS = """
import torch
from torch import nn
from . import helpers

class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.scale = torch.ones(2)
        self.register_buffer("shift", torch.ones(2))

class Net(Base):
    def forward(self, x, mask=None):
        x = self.fc(x) + self.shift
        return x if mask is None else x * mask
"""
FOCAL = """
import torch

class Focal(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, given, wanted):
        return ((given - wanted) * self.weight).sum()
"""
START = """
import torch
import app.losses as L
from app import Net
from app.helpers import DEVICE, MEAN, causal, step, to_device
there = torch.ones(2, 2, device=DEVICE)
here = torch.ones(2, 2)
net = Net().to(DEVICE)
"""


@pytest.fixture
def project(tmp_path):
    """A folder with a package `app`; gives a function that writes a file into it and lints that."""

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    write("app/__init__.py", "from .models import Net\n")
    write("app/helpers.py", HELPERS)
    write("app/models.py", MODELS)
    write("app/losses/__init__.py", "from app.losses.focal import *\n")
    write("app/losses/focal.py", FOCAL)

    def linted(name, text):
        report = lint([write(name, text)])
        assert report.errors == ()
        return [(finding.code, finding.location.line) for finding in report.findings]

    linted.write = write
    return linted


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("net(here)", "SD101"),
        ("net(there, torch.zeros(2, 2))", "SD101"),
        ("net(there, mask=here)", "SD101"),
        ("net(there) + causal(2)", "SD101"),
        ("there - MEAN", "SD117"),
        ("step(net, here)", "SD101"),
        ("step(Net(), there)", "SD102"),
        ("L.Focal(here).to(DEVICE)(there, there)", "SD103"),
        ("L.Focal(there)(there, here)", "SD101"),
        ("to_device({'a': here}, DEVICE)['b' if False else 'a'] + here", "SD101"),
        ("there + net.scale", "SD103"),
    ],
)
def test_found(project, line, code):
    assert project("train.py", START + line + "\n") == [(code, START.count("\n") + 1)]


@pytest.mark.parametrize(
    "line",
    [
        "net(there)",
        "net(there, there)",
        "net(here.to(DEVICE)) + causal(2).to(DEVICE)",
        "there - MEAN.to(DEVICE)",
        "step(net, there)",
        "L.Focal(there)(there, there)",
        "to_device({'a': here}, DEVICE)['a'] + there",
        "there + net.shift",
    ],
)
def test_silent(project, line):
    assert project("train.py", START + line + "\n") == []


def test_a_base_class_of_another_file_is_seen_where_it_is_used(project):
    wrong = """
    from app.models import Base
    import torch
    class Deep(Base):
        def forward(self, x):
            return self.fc(x) * self.scale
    """
    assert project("app/deep.py", wrong) == [("SD103", 6)]
    assert project("app/deep.py", wrong.replace("scale", "shift")) == []


@pytest.mark.parametrize(
    "statement",
    [
        "from models import make",
        "from .models import make",
        "import models; make = models.make",
        "from . import models; make = models.make",
        "from models import *",
        "from inner import make",
        "from inner.deep import make",
        "import inner.deep; make = inner.deep.make",
    ],
)
def test_ways_to_import(project, statement):
    project.write("scripts/models.py", "import torch\ndef make(): return torch.ones(2)\n")
    project.write("scripts/inner/__init__.py", "from .deep import make\n")
    project.write("scripts/inner/deep.py", "from ..models import make\n")
    program = f"import torch\n{statement}\ntorch.ones(2, device='cuda') + make()\n"
    assert project("scripts/train.py", program) == [("SD101", 3)]


@pytest.mark.parametrize("mark", sorted(PROJECT_MARKS))
def test_scripts_and_tests_see_the_package_of_their_project(project, mark):
    project.write(mark, "")
    project.write("src/lib/__init__.py", "import torch\nTABLE = torch.ones(2)\n")
    program = "import torch\nfrom lib import TABLE\nfrom app import helpers\n"
    assert project("tests/test_it.py", program + "torch.ones(2, device=helpers.DEVICE) + TABLE\n") == [("SD117", 4)]


def test_names_of_python_and_torch_are_never_taken_from_beside_the_file(project):
    project.write("copy.py", "import torch\ndef deepcopy(x): return torch.ones(2)\n")
    project.write("torch.py", "def ones(n): return 1\n")
    program = "import torch, copy\nthere = torch.ones(2, device='cuda')\nthere + copy.deepcopy(there)\n"
    assert project("train.py", program + "there + torch.ones(2)\n") == [("SD101", 4)]


def test_the_default_device_may_be_set_by_an_imported_file(project):
    project.write("setup_device.py", "import torch\ntorch.set_default_device('cuda')\n")
    program = "import torch\n{}torch.ones(2) + torch.ones(2, device='cuda')\n"
    assert project("train.py", program.format("import setup_device\n")) == []
    assert project("train.py", program.format("")) == [("SD101", 2)]


def test_faults_of_the_imported_file_are_its_own(project):
    project.write("bad.py", "import torch\ndef f(x): return x.cuda() + torch.ones(2)\ndef g(x): x.cuda(); return x\n")
    assert project("train.py", "import torch\nfrom bad import f, g\nf(torch.ones(2))\ng(torch.ones(2))\n") == []


def test_cycles_end_and_what_cannot_be_read_is_not_known(project):
    project.write("a.py", "from b import *\nfrom b import y\nimport c\nx = y\n")
    project.write("b.py", "from a import *\nfrom a import x\ny = x\n")
    project.write("c.py", "def broken(:\n")
    project.write("d.py", "\0")
    (project.write("e.py", "x = 1\n")).write_bytes(b"\xff\xfe\x00")
    imports = "import torch\nfrom a import x, y\nimport c, d, e, nothing\nfrom .. import gone\n"
    assert project("train.py", imports + "torch.ones(1, device='cuda') + x + y + c.z\n") == []
    for n in range(40):
        project.write(f"m{n}.py", f"from m{n + 1} import x\n")
    assert project("train.py", "import torch\nfrom m0 import x\ntorch.ones(1, device='cuda') + x\n") == []


def test_a_changed_neighbour_is_read_again(project):
    program = "import torch\nfrom part import table\ntorch.ones(2, device='cuda') + table\n"
    project.write("part.py", "import torch\ntable = torch.ones(2)\n")
    assert project("train.py", program) == [("SD117", 3)]
    project.write("part.py", "import torch\ntable = torch.ones(2, device='cuda')\n")
    assert project("train.py", program) == []


def test_a_text_without_a_file_has_no_neighbours(project, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = "import torch\nfrom app.helpers import MEAN\ntorch.ones(2, device='cuda') + MEAN\n"
    assert lint_source(program) == ()
    assert lint_source(program, "not_there.py") == ()
    project.write("there.py", "")
    assert [finding.code for finding in lint_source(program, "there.py")] == ["SD117"]


def test_what_another_thread_reads_is_its_own(project):
    mine = project.write("two.py", "import torch\n")
    other = project.write("script.py", "import torch\nfrom app import helpers\nhelpers.causal(2)\n")
    NEIGHBOURS.read.clear()
    NEIGHBOURS.tree(mine)
    checked = []
    thread = threading.Thread(target=lambda: checked.append(check(other.read_text(), str(other))))
    thread.start()
    thread.join()
    assert NEIGHBOURS.read == {mine}
    assert str(other.parent / "app" / "helpers.py") in checked[0].reads
    assert str(mine) not in checked[0].reads
