"""Several processes give what one gives, in the same order; one that dies takes no other file with it."""

import os
import subprocess
import sys
import threading

import pytest

from samedevice.linting import jobs
from samedevice.linting.lint import lint

BUG = 'import torch\nx = torch.zeros(3, device="cuda")\ny = x.numpy()\n'


# `eval` is a function that another process finds, however that was started.
DIE = "__import__('os').kill(__import__('os').getpid(), 9)"


@pytest.mark.parametrize("count", [0, 1, 2, 3, 100])
def test_results_are_in_order(count):
    assert jobs.mapped(eval, [f"2 * {number}" for number in range(count)], 2, str) == [2 * n for n in range(count)]


@pytest.mark.skipif(os.name != "posix", reason="processes are killed by a signal")
def test_who_kills_its_process_is_named_alone():
    items = [DIE if number in (7, 30) else str(number) for number in range(40)]
    found = jobs.mapped(eval, items, 2, str.upper)
    assert found == [DIE.upper() if number in (7, 30) else number for number in range(40)]


def test_what_is_raised_comes_through():
    with pytest.raises(ZeroDivisionError):
        jobs.mapped(eval, ["1 / 0"] * 40, 2, str)


def test_beside_other_threads_processes_start_anew():
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait)
    thread.start()
    try:
        assert jobs._context().get_start_method() == "spawn"
    finally:
        waiting.set()
        thread.join()


def test_two_processes_find_what_one_finds(tmp_path):
    for number in range(30):
        (tmp_path / f"a{number}.py").write_text(BUG if number % 3 else "import torch\nx = = 1\n")
    report = lint([tmp_path], jobs=2)
    assert (len(report.findings), len(report.errors)) == (20, 10)
    assert report == lint([tmp_path])


@pytest.mark.skipif(sys.platform != "linux", reason="processes start anew there, which needs the guard")
def test_the_command_does_not_need_a_guard(tmp_path):
    """A script that lints with several processes and has no `if __name__ == "__main__"`."""
    for number in range(20):
        (tmp_path / f"a{number}.py").write_text(BUG)
    script = tmp_path / "script.txt"
    script.write_text(
        f"from samedevice.linting.lint import lint\nprint(len(lint([{str(tmp_path)!r}], jobs=2).findings))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "20\n"
