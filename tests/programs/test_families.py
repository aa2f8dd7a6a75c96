"""Small models of many libraries, trained a step on a simulated device: clean, and found out where a bug is planted."""

import linecache

import pytest
import torch

import samedevice

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.fixture(autouse=True)
def _installed(family):
    pytest.importorskip(family.package)


def test_runs_clean_and_as_on_the_cpu(family, train_a_step):
    plain = train_a_step(family, "cpu")
    with samedevice.simulate("cuda:2"), samedevice.watch() as watching:
        simulated = train_a_step(family, "cuda:1")
        elsewhere = {name: str(tensor.device) for name, tensor in simulated.items() if str(tensor.device) != "cuda:1"}
        values = {name: tensor.cpu() for name, tensor in simulated.items()}
    assert not watching.report.findings
    assert not elsewhere
    assert values.keys() == plain.keys()
    if family.repeatable:
        different = [name for name, value in plain.items() if not torch.equal(value, values[name])]
        assert not different


def test_an_input_left_behind_is_found(family, train_a_step):
    finding = _found(lambda: train_a_step(family, "cuda:1", behind=True))
    assert family.words in finding.raised.message
    assert finding.operation == family.operation
    assert finding.code in ("SD106", "SD108")
    assert finding.culprit.name.startswith(f'batch["{family.behind}"]')
    assert finding.culprit.device == "cpu"
    assert finding.expected_device == "cuda:1"


def test_a_part_left_behind_is_found(family, train_a_step):
    finding = _found(lambda: train_a_step(family, "cuda:1", part=True))
    assert finding.code == "SD102"
    assert finding.culprit.name == f"model{_as_code(family.part)}"
    assert finding.culprit.device == "cpu"
    assert finding.expected_device == "cuda:1"


def _found(program):
    """The one finding of a program that fails at the line marked in it."""
    with samedevice.simulate("cuda:2"), pytest.raises(RuntimeError), samedevice.watch() as watching:
        program()
    (finding,) = watching.report.findings
    line = linecache.getline(finding.location.file, finding.location.line)
    assert "# the user's own line" in line
    return finding


def _as_code(path):
    return "".join(f"[{step}]" if step.isdigit() else f".{step}" for step in path.split("."))
