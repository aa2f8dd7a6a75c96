"""Warnings of C++ are filtered and counted by the user's line, as without a simulation."""

import warnings

import pytest
import torch

_TEXT = "An output with one or more elements was resized"


@pytest.fixture(autouse=True)
def _always():
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


def _warn():
    torch.add(torch.ones(3, device="cuda"), 1, out=torch.ones(1, device="cuda"))


def _warn_elsewhere():
    torch.add(torch.ones(3, device="cuda"), 1, out=torch.ones(1, device="cuda"))


def _shown(action, **where):
    globals().pop("__warningregistry__", None)
    warnings.onceregistry.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.filterwarnings(action, _TEXT, **where)
        for _ in range(2):
            _warn()
            _warn_elsewhere()
    assert {warning.filename for warning in caught} <= {__file__}
    return [warning.lineno for warning in caught]


def test_each_line_counts_for_itself(cuda2):
    first, second = _warn.__code__.co_firstlineno + 1, _warn_elsewhere.__code__.co_firstlineno + 1
    assert _shown("always") == [first, second, first, second]
    assert _shown("default") == [first, second]
    assert _shown("module") == [first]
    assert _shown("once") == [first]
    assert _shown("ignore") == []


def test_filters_of_a_module_mean_the_user_s(cuda2):
    assert len(_shown("always", module=__name__.replace(".", r"\."))) == 4
    assert _shown("always", module="samedevice") == []
    with pytest.raises(UserWarning, match=_TEXT):
        _shown("error", module=__name__.replace(".", r"\."))
