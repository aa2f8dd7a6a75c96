"""SD118 stale-cache."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD118",
    slug="stale-cache",
    summary=say("A cached mask or table is used again after the device has changed."),
    why=say(
        "A cache that is filled at the first call keeps the device of that call. A check on the CPU, a move, "
        "a second model or a second device then meets the old tensor."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn


class Causal(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = None

    def forward(self, x):
        if self.mask is None:
            self.mask = torch.ones(x.size(1), x.size(1), device=x.device).tril()  # !
        return self.mask @ x


model = Causal()
print(model(torch.rand(2, 3, 4)).shape)
model.to("cuda")
print(model(torch.rand(2, 3, 4, device="cuda")).shape)
""",
            right="""\
import torch
from torch import nn


class Causal(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = None

    def forward(self, x):
        if self.mask is None or self.mask.device != x.device:
            self.mask = torch.ones(x.size(1), x.size(1), device=x.device).tril()
        return self.mask @ x


model = Causal()
print(model(torch.rand(2, 3, 4)).shape)
model.to("cuda")
print(model(torch.rand(2, 3, 4, device="cuda")).shape)
""",
        ),
    ),
    clean=(
        """\
import torch

masks = {}


def mask(length, device):
    if (length, device) not in masks:
        masks[length, device] = torch.ones(length, length, device=device).tril()
    return masks[length, device]


for device in (torch.device("cpu"), torch.device("cuda:0")):
    x = torch.rand(2, 3, 4, device=device)
    print((mask(3, x.device) @ x).shape)
""",
    ),
    fix_safety=say("Safe: the table is computed again only when the device has changed."),
)
