"""An end to work that takes too long, by the processor's time that it has used. Knows nothing of the work.

Only where the operating system has such a timer, in the main thread, and where nobody else uses it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["TimeUp", "at_most"]


class TimeUp(BaseException):
    """Raised in the work; no `except Exception` in it stops this."""


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Run the body for at most that much time of the processor.

    Raises:
        TimeUp: it took longer.
    """
    import signal

    number = getattr(signal, "SIGVTALRM", None)
    if number is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    if signal.getsignal(number) is not signal.SIG_DFL:
        yield
        return
    signal.signal(number, _raise)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(number, signal.SIG_DFL)


def _raise(number: int, frame: FrameType | None) -> None:
    raise TimeUp
