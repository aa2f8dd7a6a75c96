"""What the interpreter does around a script: its state at the start, uncaught exceptions, threads, the end.

Source: the Python documentation of `sys.exit`, `sys.excepthook`, `threading` and `atexit`, 3.10 to 3.14.
"""

from __future__ import annotations

import atexit
import contextlib
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, TypeAlias

from samedevice.explaining.frames import chain_of
from samedevice.simulation.patching import Applied, Patch
from samedevice.usercode import is_user_file, users_traceback

__all__ = [
    "INTERRUPTED",
    "become_main",
    "call_in_turn",
    "exit_functions",
    "exit_status",
    "show",
    "state",
    "wait_for_threads",
]

INTERRUPTED = 128 + signal.SIGINT
"""The exit status of a script that Ctrl-C ended, as shells show it."""

_ExitFunction: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


@contextlib.contextmanager
def state(argv: list[str], folder: str) -> Iterator[None]:
    """`sys.argv`, `sys.path` and `__main__` as a script finds them; put back afterwards.

    Args:
        argv: what `sys.argv` shall be.
        folder: what `sys.path` shall begin with.
    """
    before = sys.modules["__main__"], sys.argv, sys.path[:]
    sys.argv = argv
    if not getattr(sys.flags, "safe_path", False):  # since 3.11: -P and PYTHONSAFEPATH
        sys.path[0] = folder
    try:
        yield
    finally:
        main, sys.argv, sys.path[:] = before
        become_main(main)


def become_main(module: ModuleType) -> None:
    """Make `module` the `__main__` of this process.

    Where multiprocessing is loaded already it keeps a second name, under which spawned processes send classes back.
    Source: Lib/multiprocessing/__init__.py, 3.10 to 3.14.
    """
    sys.modules["__main__"] = module
    if "__mp_main__" in sys.modules:
        sys.modules["__mp_main__"] = module


def exit_status(error: SystemExit) -> int:
    """What `sys.exit(code)` means: None is 0, a number is itself, anything else is printed and means 1."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return int(error.code)
    print(error.code, file=sys.stderr)
    return 1


def show(error: BaseException) -> int:
    """Print an uncaught exception through `sys.excepthook`, without the frames that are ours.

    Args:
        error: the exception.

    Returns:
        The exit status: 1, that of an interrupt, or what the hook itself gave to `sys.exit`.
    """
    for each in chain_of(error):
        each.__traceback__ = users_traceback(each.__traceback__)
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit as leaving:
        return exit_status(leaving)
    except BaseException as second:
        print("Error in sys.excepthook:", file=sys.stderr)
        traceback.print_exception(type(second), second, users_traceback(second.__traceback__), chain=False)
        print("\nOriginal exception was:", file=sys.stderr)
        traceback.print_exception(error)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def wait_for_threads() -> None:
    """Return when the last thread that is no daemon has ended, as Python does at the end of a script."""
    # An executor's idle workers wait for the interpreter's own end (`concurrent.futures.thread`, 3.10 to 3.14).
    pools = sys.modules.get("concurrent.futures.thread")
    workers = getattr(pools, "_threads_queues", {})
    for thread in threading.enumerate():
        if not (thread.daemon or thread is threading.current_thread() or thread in workers):
            thread.join()


@contextlib.contextmanager
def exit_functions() -> Iterator[list[_ExitFunction]]:
    """Collect what the user's code gives to `atexit`: the end of the run is its end, with its devices still there.

    Yields:
        The functions and their arguments, the first registered first; hand them to `call_in_turn`.
    """
    register, unregister = atexit.register, atexit.unregister
    collected: list[_ExitFunction] = []

    def collect(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if code is None or not is_user_file(code.co_filename):
            return register(function, *args, **kwargs)
        collected.append((function, args, kwargs))
        return function

    def forget(function: Callable[..., Any], /) -> None:
        collected[:] = [each for each in collected if each[0] != function]
        unregister(function)

    with Applied([Patch(atexit, "register", collect), Patch(atexit, "unregister", forget)]):
        yield collected


def call_in_turn(collected: list[_ExitFunction], note: Callable[[BaseException], None]) -> None:
    """Call exit functions, the last registered first.

    Args:
        collected: what `exit_functions` collected; taken from its end.
        note: is told of each that fails, which is also shown and does not stop the others.
    """
    while collected:
        function, args, kwargs = collected.pop()
        try:
            function(*args, **kwargs)
        except SystemExit:
            pass
        except BaseException as error:
            note(error)
            print(f"Exception ignored in atexit callback {function!r}:", file=sys.stderr)
            traceback.print_exception(type(error), error, users_traceback(error.__traceback__))
