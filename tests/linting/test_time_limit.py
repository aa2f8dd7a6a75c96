import contextlib
import signal
import threading

import pytest

from samedevice.linting import checking
from samedevice.linting.lint import lint
from samedevice.linting.time_limit import TimeUp, at_most

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGVTALRM"), reason="there is no such timer here")


def work(rounds):
    """Work that catches what it can."""
    for _ in range(rounds):
        with contextlib.suppress(Exception):
            sum(range(10_000))


def test_work_that_takes_too_long_is_ended_and_the_timer_put_back():
    with pytest.raises(TimeUp), at_most(0.05):
        work(1_000_000)
    assert signal.getsignal(signal.SIGVTALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_other_work_is_not():
    with at_most(60):
        work(1)
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_in_another_thread_and_where_the_timer_is_in_use_there_is_no_limit():
    done = []

    def limited():
        with at_most(0.001):
            work(100)
        done.append(True)

    thread = threading.Thread(target=limited)
    thread.start()
    thread.join()
    previous = signal.signal(signal.SIGVTALRM, lambda *_: None)
    try:
        limited()
    finally:
        signal.signal(signal.SIGVTALRM, previous)
    assert done == [True, True]


def test_a_file_that_takes_too_long_is_named_and_stops_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(checking, "SECONDS", 0.2)
    analyse = checking.analyse

    def slow(tree, file=None):
        if file is not None and file.name == "slow.py":
            work(1_000_000)
        return analyse(tree, file)

    monkeypatch.setattr(checking, "analyse", slow)
    for name in ("a.py", "slow.py", "z.py"):
        (tmp_path / name).write_text('import torch\nx = torch.zeros(3, device="cuda")\nx.numpy()\n')
    report = lint([tmp_path])
    assert [error.message for error in report.errors] == ["takes more than 0.2 s to follow; not linted"]
    assert len(report.findings) == 2
