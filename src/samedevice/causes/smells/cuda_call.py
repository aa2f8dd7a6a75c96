"""SD301 cuda-call."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD301",
    slug="cuda-call",
    summary=say("`.cuda()` stands in a function that others call."),
    why=say(
        "A function that moves to CUDA by itself cannot be used on a machine without it, on another "
        "accelerator, or on the GPU that its caller has chosen. Let the caller hand in the device, or follow "
        "the tensors that are given."
    ),
    source="https://docs.pytorch.org/docs/stable/notes/cuda.html#device-agnostic-code",
    examples=(
        Example(
            wrong="""\
import torch


def make_mask(lengths, size, device):
    steps = torch.arange(size, device=device)
    return steps < lengths.unsqueeze(1).cuda()  # !


print(make_mask(torch.tensor([1, 3]), 4, "cuda"))
""",
            right="""\
import torch


def make_mask(lengths, size, device):
    steps = torch.arange(size, device=device)
    return steps < lengths.unsqueeze(1).to(device)


print(make_mask(torch.tensor([1, 3]), 4, "cuda"))
""",
        ),
    ),
    clean=(
        """\
import torch
from torch import nn


def main():
    model = nn.Linear(4, 2).cuda()  # a script's own decision
    print(model(torch.rand(3, 4, device="cuda")).shape)


if __name__ == "__main__":
    main()
""",
    ),
    fix_safety=say("Unsafe: where the function is given another device than CUDA, the tensor goes there from now on."),
    not_run=say("it is no fault: a run does what was meant"),
)
