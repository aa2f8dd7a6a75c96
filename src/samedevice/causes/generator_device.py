"""SD111 generator-device."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD111",
    slug="generator-device",
    summary=say("The random generator belongs to another device than the tensor to be drawn."),
    why=say(
        "A `torch.Generator` draws on the device that it was made for, the CPU by default, and each device "
        "has its own kind."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.Generator.html",
    examples=(
        Example(
            wrong="""\
import torch

generator = torch.Generator().manual_seed(0)
noise = torch.randn(4, 3, generator=generator, device="cuda")  # !
print(noise.shape)
""",
            right="""\
import torch

generator = torch.Generator("cuda").manual_seed(0)
noise = torch.randn(4, 3, generator=generator, device="cuda")
print(noise.shape)
""",
        ),
    ),
    clean=(
        """\
import torch
from torch.utils.data import random_split

generator = torch.Generator().manual_seed(0)
first, second = random_split(range(10), [8, 2], generator=generator)
noise = torch.randn(4, 3, generator=generator).to("cuda")
print(len(first), noise.shape)
""",
    ),
    fix_safety=say(
        "A generator of another device gives other numbers for the same seed. To keep the numbers, draw on "
        "the CPU and move the result."
    ),
)
