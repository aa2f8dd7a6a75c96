import pytest

from samedevice.findings import Culprit, Edit, FileError, Finding, Fix, Location, Operand, Raised, Report


@pytest.fixture
def met():
    """A fault that was run into, with everything known about it."""
    return Finding(
        code="SD103",
        cause="plain-attribute",
        message="add: self.pe is on cpu, x is on cuda:0",
        location=Location("train.py", 31, "forward", source="return x + self.pe[:, : x.size(1)]"),
        raised=Raised("RuntimeError", "Expected all tensors to be on the same device, but found <two>"),
        operation="aten::add",
        culprit=Culprit("self.pe", "train.py", 12, "cpu", (1, 512, 64), "torch.float32", "self.pe = pe"),
        expected_device="cuda:0",
        operands=(
            Operand("x", "cuda:0", (8, 16, 64), "torch.float32", "self"),
            Operand("self.pe[:, : x.size(1)]", "cpu", (1, 16, 64), "torch.float32", "other"),
        ),
        reasons=("self.pe is a plain attribute of model, so model.to() passed it by.",),
        fix=Fix(
            'self.register_buffer("pe", pe, persistent=False)',
            (
                Edit(
                    "train.py",
                    12,
                    12,
                    "        self.pe = pe",
                    '        self.register_buffer("pe", pe, persistent=False)',
                ),
            ),
            safe=False,
        ),
    )


@pytest.fixture
def seen():
    """A fault seen in source."""
    return Finding(
        code="SD105",
        cause="result-discarded",
        message="the result of x.to(device) is dropped",
        location=Location("a folder/train.py", 4, None, 5, 4, 17, "x.to(device)"),
        severity="warning",
        fix=Fix("x = x.to(device)", (Edit("a folder/train.py", 4, 4, "    x.to(device)", "    x = x.to(device)"),)),
    )


@pytest.fixture
def run_report(met):
    return Report((met,), "finding", "train.py", ("cuda:0",))


@pytest.fixture
def lint_report(seen):
    return Report((seen,), "finding", errors=(FileError("broken.py", "line 3: invalid syntax"),))
