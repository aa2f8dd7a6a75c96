"""What must work without torch works without it, and `import samedevice` costs next to nothing."""

import subprocess
import sys

import pytest

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numpy"):
            raise ModuleNotFoundError(f"No module named {name!r} (blocked)", name=name)

sys.meta_path.insert(0, Blocked())
from samedevice.cli.main import main
"""


def python(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, **options)


def test_import_loads_neither_torch_nor_numpy_nor_half_the_standard_library():
    done = python("import sys; before = set(sys.modules); import samedevice; print(*sorted(set(sys.modules) - before))")
    loaded = set(done.stdout.split())
    assert "samedevice" in loaded, done.stderr
    assert not {"torch", "numpy", "argparse", "json", "ast"} & loaded
    assert {name for name in loaded if name.startswith("samedevice")} == {"samedevice"}


@pytest.mark.parametrize(
    ("arguments", "status", "printed"),
    [
        (["--version"], 0, "samedevice"),
        (["causes", "SD103"], 0, "register_buffer"),
        (["lint", "wrong.py"], 1, "SD105"),
        (["explain", "error.txt"], 0, "Cause SD"),
        (["doctor"], 1, "is installed and cannot be imported"),
        (["run", "--simulate", "cuda", "wrong.py"], 2, "--simulate needs torch"),
        (["run", "hello.py"], 0, "hello"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_commands_work_without_torch(tmp_path, arguments, status, printed):
    (tmp_path / "wrong.py").write_text("import torch\nx = torch.rand(3)\nx.to('cuda')\nprint(x)\n")
    (tmp_path / "hello.py").write_text("print('hello')\n")
    (tmp_path / "error.txt").write_text(
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!\n"
    )
    done = python(BLOCK + f"sys.exit(main({arguments!r}))", cwd=tmp_path)
    assert (done.returncode, printed in done.stdout + done.stderr) == (status, True), done.stdout + done.stderr
