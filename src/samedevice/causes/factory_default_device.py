"""SD106 factory-default-device."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD106",
    slug="factory-default-device",
    summary=say("A tensor is created without `device=`, so it lands on the CPU among tensors that are elsewhere."),
    why=say(
        "`torch.zeros`, `torch.randn`, `torch.arange` and their kin create on the default device, which is "
        "the CPU, whatever the tensors around them are on. The `*_like` functions and the `new_*` methods "
        "take the device of the tensor that they are given."
    ),
    source="https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.device",
    examples=(
        Example(
            wrong="""\
import torch


def add_steps(x):
    steps = torch.arange(x.shape[1])  # !
    return x + steps


print(add_steps(torch.rand(4, 3, device="cuda")).shape)
""",
            right="""\
import torch


def add_steps(x):
    steps = torch.arange(x.shape[1], device=x.device)
    return x + steps


print(add_steps(torch.rand(4, 3, device="cuda")).shape)
""",
        ),
    ),
    clean=(
        """\
import torch


def add_noise(x):
    return x + torch.randn_like(x) + x.new_zeros(x.shape)


print(add_noise(torch.rand(4, 3, device="cuda")).shape)
""",
        """\
import torch


def halve(x):
    factor = torch.tensor(0.5)  # one number on the CPU joins any device
    return x * factor


print(halve(torch.rand(4, 3, device="cuda")).shape)
""",
        """\
import torch

order = torch.randperm(10)
rows = torch.rand(10, 4, device="cuda")[order]  # indices on the CPU are right for a tensor anywhere
print(rows.shape)
""",
    ),
    fix_safety=say(
        "Safe for values that are computed; random values come from the device's own generator, so a seeded "
        "run gives other numbers than before."
    ),
)
