"""Uncaught device faults are explained after Python's own traceback, which stays as it is."""

import subprocess
import sys
import threading

import pytest

from samedevice.explaining import install as installing
from samedevice.explaining.explain import explain

MESSAGE = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."


@pytest.fixture
def installed():
    before = sys.excepthook, threading.__excepthook__
    threading.excepthook = threading.__excepthook__
    installing.install()
    yield threading.excepthook  # pytest puts its own there for the time of the test
    installing.uninstall()
    assert (sys.excepthook, threading.excepthook) == before


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return caught


def test_the_traceback_comes_first_and_then_the_explanation(installed, capsys):
    error = raised(TypeError(MESSAGE))
    sys.excepthook(type(error), error, error.__traceback__)
    text = capsys.readouterr().err
    assert text.index("Traceback (most recent call last)") < text.index("SD112")


def test_other_exceptions_are_shown_as_ever(installed, capsys):
    error = raised(ValueError("mine"))
    sys.excepthook(type(error), error, error.__traceback__)
    assert capsys.readouterr().err.rstrip().endswith("ValueError: mine")


def test_installing_twice_is_installing_once(installed):
    hook = sys.excepthook
    installing.install()
    assert sys.excepthook is hook


def test_faults_in_threads_are_explained(installed, capsys):
    error = raised(TypeError(MESSAGE))
    installed(threading.ExceptHookArgs((type(error), error, error.__traceback__, threading.current_thread())))
    assert "SD112" in capsys.readouterr().err


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes came with Python 3.11")
def test_a_note_is_put_on_the_exception_once():
    error = raised(TypeError(MESSAGE))
    assert installing.annotate(error, explain(error))
    assert installing.annotate(error, explain(error))
    assert len(error.__notes__) == 1
    assert "SD112" in error.__notes__[0]


def test_in_a_script_of_its_own():
    script = f"import samedevice\nsamedevice.install()\nraise TypeError({MESSAGE!r})\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "SD112" in done.stderr
    assert "torch" not in done.stdout
