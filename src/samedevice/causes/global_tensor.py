"""SD117 global-tensor."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD117",
    slug="global-tensor",
    summary=say("A tensor made at module level or held by a closure stays where it was made."),
    why=say("No `.to()` of a model or batch reaches a constant beside the code that uses it."),
    source="https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.device",
    examples=(
        Example(
            wrong="""\
import torch

MEAN = torch.tensor([0.5, 0.4, 0.3])


def normalize(image):
    return image - MEAN  # !


print(normalize(torch.rand(2, 3, device="cuda")).shape)
""",
            right="""\
import torch

MEAN = torch.tensor([0.5, 0.4, 0.3])


def normalize(image):
    return image - MEAN.to(image.device)


print(normalize(torch.rand(2, 3, device="cuda")).shape)
""",
        ),
    ),
    clean=(
        """\
import torch

HALF = torch.tensor(0.5)
ORDER = torch.tensor([2, 0, 1])


def normalize(image):
    return (image - HALF)[:, ORDER]  # one number, and indices, may be on the CPU


print(normalize(torch.rand(2, 3, device="cuda")).shape)
""",
    ),
    fix_safety=say("Safe, at the price of a small copy at each call. A buffer of a module avoids it."),
)
