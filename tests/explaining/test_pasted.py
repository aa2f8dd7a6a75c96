"""Text in any form around it: Python, IPython, pytest, rich, logs, other languages; hypothesis for what is around."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samedevice.explaining.explain import explain
from samedevice.explaining.tracebacks import frames_in

ADDMM = (
    "RuntimeError: Expected all tensors to be on the same device, but got mat1 is on cpu, different from other tensors "
    "on cuda:0 (when checking argument in method wrapper_CUDA_addmm)"
)
OLD = (
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! "
    "(when checking argument for argument mat2 in method wrapper_CUDA_addmm)"
)
PYTHON = f"""Traceback (most recent call last):
  File "/home/me/proj/train.py", line 12, in <module>
    loss = net(batch)
  File "/home/me/env/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1751, in _wrapped_call_impl
    return self._call_impl(*args, **kwargs)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/me/proj/net.py", line 31, in forward
    return self.fc(images)
           ^^^^^^^^^^^^^^^
  File "/home/me/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 125, in forward
    return F.linear(input, self.weight, self.bias)
{ADDMM}
"""
IPYTHON = f"""---------------------------------------------------------------------------
RuntimeError                              Traceback (most recent call last)
Cell In[7], line 3
      1 for images, labels in loader:
      2     labels = labels.to(device)
----> 3     out = model(images)

File ~/.venv/lib/python3.11/site-packages/torch/nn/modules/module.py:1751, in Module._wrapped_call_impl(self, *args)
   1749     return self._compiled_call_impl(*args, **kwargs)
   1750 else:
-> 1751     return self._call_impl(*args, **kwargs)

{ADDMM}
"""
OLD_IPYTHON = f"""RuntimeError                              Traceback (most recent call last)
<ipython-input-3-0f1c2d3e4f50> in train(model, images)
      1 def train(model, images):
----> 2     return model(images)

{OLD}
"""
PYTEST = f"""
test_net.py:14: in test_forward
    out = net(images)
net.py:31: in forward
    return self.fc(images)
E   {ADDMM}
"""
RICH = f"""╭───────────────── Traceback (most recent call last) ─────────────────╮
│ /home/me/proj/train.py:31 in forward                                 │
│                                                                      │
│   30 │   def forward(self, images):                                  │
│ ❱ 31 │   │   return self.fc(images)                                  │
│   32                                                                 │
╰──────────────────────────────────────────────────────────────────────╯
{ADDMM}
"""


@pytest.mark.parametrize(
    ("text", "file", "line", "function"),
    [
        (PYTHON, "/home/me/proj/net.py", 31, "forward"),
        (IPYTHON, "Cell In[7]", 3, None),
        (OLD_IPYTHON, "<ipython-input-3-0f1c2d3e4f50>", 2, "train"),
        (PYTEST, "net.py", 31, "forward"),
        (RICH, "/home/me/proj/train.py", 31, "forward"),
    ],
    ids=["python", "ipython", "old-ipython", "pytest", "rich"],
)
def test_the_users_own_line(text, file, line, function):
    location = explain(text).location
    assert (location.file, location.line, location.function) == (file, line, function)


def test_input_and_parameters_are_told_apart_by_the_message():
    finding = explain(PYTHON)
    assert (finding.cause, finding.culprit.name, finding.culprit.device) == ("input-not-moved", "images", "cpu")
    assert (finding.operation, finding.expected_device) == ("aten::addmm", "cuda:0")
    finding = explain(OLD_IPYTHON)
    assert (finding.cause, finding.culprit.name, finding.expected_device) == ("model-not-moved", "model", "cuda:0")


def test_a_single_line_is_enough():
    finding = explain(
        "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
    )
    assert (finding.cause, finding.expected_device, finding.location) == ("numpy-on-cuda", "cpu", None)


@pytest.mark.parametrize(
    "around",
    [
        "运行时报错,求助:\n{}\n我用的是 torch 2.8,谢谢",
        "Fehler beim Trainieren (siehe unten)\n\n```\n{}\n```\nWas tun?",
        "2024-05-01 12:00:00,123 ERROR root: {}",
        "> > {}",
    ],
)
def test_whatever_language_is_around_it(around):
    assert explain(around.format(PYTHON)).location.line == 31


def test_the_file_is_read_where_it_is_here(tmp_path):
    script = tmp_path / "net.py"
    script.write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.pe = torch.zeros(4)\n\n    def forward(self, x):\n        return x + self.pe\n"
    )
    text = (
        f'  File "{script}", line 10, in forward\n    return x + self.pe\nRuntimeError: Expected all tensors to be on '
        "the same device, but found at least two devices, cuda:0 and cpu!"
    )
    finding = explain(text)
    assert (finding.cause, finding.culprit.name, finding.culprit.line) == ("plain-attribute", "self.pe", 7)


def test_a_file_that_changed_since_is_not_believed(tmp_path):
    script = tmp_path / "net.py"
    script.write_text("import torch\nx = 1\n")
    finding = explain(f'  File "{script}", line 2, in forward\n    return self.fc(images)\n{ADDMM}')
    assert finding.culprit.name == "images"


def test_what_is_no_device_message_is_none():
    assert explain("ValueError: too many values to unpack") is None
    assert explain("") is None


@settings(deadline=None, max_examples=30)
@given(st.text(), st.text())
def test_any_text_around_changes_nothing(before, after):
    finding, alone = explain(f"{before}\n{ADDMM}\n{after}"), explain(ADDMM)
    assert (finding.operation, finding.raised, finding.cause) == (alone.operation, alone.raised, alone.cause)
    assert (finding.culprit, finding.expected_device, finding.operands) == (
        alone.culprit,
        alone.expected_device,
        alone.operands,
    )


@settings(deadline=None)
@given(st.text())
def test_no_text_raises(text):
    frames_in(text)
    explain(text)
