"""pytest: run tests on simulated devices, and explain the device faults that they fail with. Options and hooks only.

    pytest --samedevice-simulate cuda:2          # the whole session, test modules included
    @pytest.mark.simulated_device("cuda:2")      # one test with its fixtures

This module is imported into every pytest run of everyone who installs samedevice, so it imports nothing but pytest:
torch and the rest are loaded when a test asks for a device or fails with torch loaded.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Generator
from typing import Any

import pytest

__all__: list[str] = []

_SIMULATION = pytest.StashKey[contextlib.ExitStack]()
_MARK = "simulated_device"
_WRONG_MARK = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option for a whole session."""
    parser.getgroup("samedevice").addoption(
        "--samedevice-simulate",
        metavar="DEVICE[:N]",
        help="run the session on N simulated devices, e.g. cuda or cuda:2",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin the session's simulation: before collection, since modules ask for devices when they are imported."""
    config.addinivalue_line("markers", f"{_MARK}(device='cuda'): run the test on simulated devices, e.g. 'cuda:2'")
    device = config.getoption("samedevice_simulate")
    if device is None:
        return
    from samedevice.errors import SameDeviceError
    from samedevice.simulation.simulate import simulate

    stack = contextlib.ExitStack()
    try:
        stack.enter_context(simulate(device))
    except SameDeviceError as error:
        raise pytest.UsageError(f"--samedevice-simulate: {error}") from None
    config.stash[_SIMULATION] = stack


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the session's simulation."""
    stack = config.stash.get(_SIMULATION, None)
    if stack is not None:
        stack.close()


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say that the devices are simulated: a green run must not be taken for one on a GPU."""
    device = config.getoption("samedevice_simulate")
    if device is None:
        return None
    from samedevice.texts import say, shown

    return shown(say("samedevice: simulated {devices}", devices=device))


# `hookwrapper`, since `wrapper` is unknown to pytest 7, and a plugin that fails to load fails every run of its users.
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, None]:
    """Give a marked test, with its fixtures, the devices that it names."""
    mark = item.get_closest_marker(_MARK)
    if mark is None or _SIMULATION in item.config.stash:
        # Tensors of modules and of the session's fixtures are on the session's devices, and end with them.
        yield
        return
    from samedevice.errors import SameDeviceError

    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(simulated_device(*mark.args, **mark.kwargs))
        except (SameDeviceError, TypeError) as error:
            item.stash[_WRONG_MARK] = f"@pytest.mark.{_MARK}: {error}"
        yield


def simulated_device(device: str = "cuda") -> contextlib.AbstractContextManager[object]:
    """The mark's arguments, by the names that `pytest --markers` shows."""
    from samedevice.simulation.simulate import simulate

    return simulate(device)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test whose mark is wrong, and no other."""
    if _WRONG_MARK in item.stash:
        pytest.fail(item.stash[_WRONG_MARK], pytrace=False)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, None]:
    """Add the explanation of a device fault to the report of the test that failed with it."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    # Asked for only now: in a test of unittest it is pytest's own hook that knows the exception.
    if report.failed and call.excinfo is not None and "torch" in sys.modules:
        _explain(item, call.excinfo, report)
        _say_whose_devices(item, report)


def _explain(item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException], report: pytest.TestReport) -> None:
    """Explain the fault, and take the simulation's own frames out of what pytest shows."""
    from samedevice.explaining.explain import explain
    from samedevice.findings import Report
    from samedevice.usercode import users_traceback

    error = excinfo.value
    if str(excinfo.traceback[-1].frame.f_globals.get("__name__")).startswith("_pytest."):
        # What pytest itself says of an exception that was expected, whose text it quotes.
        return
    finding = explain(error)
    if finding is None:
        return
    users = users_traceback(excinfo.tb) or excinfo.tb
    report.longrepr = item.repr_failure(pytest.ExceptionInfo.from_exc_info((type(error), error, users)))
    finding = finding.named_from(str(item.config.invocation_params.dir))
    report.sections.append(("samedevice", Report((finding,), "finding").to_text()))


def _say_whose_devices(item: pytest.Item, report: pytest.TestReport) -> None:
    """Say that a test which wants other devices than the session has had the session's."""
    mark = item.get_closest_marker(_MARK)
    session = item.config.getoption("samedevice_simulate")
    if mark is None or session is None or mark.args == (session,) or mark.kwargs == {"device": session}:
        return
    from samedevice.texts import say, shown

    text = say(
        "--samedevice-simulate {session} holds for the whole session; this test's mark asks for {wanted}",
        session=session,
        wanted=", ".join(map(str, (*mark.args, *mark.kwargs.values()))) or "cuda",
    )
    report.sections.append(("samedevice", shown(text)))
