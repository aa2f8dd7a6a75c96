"""SD306 made-then-moved."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD306",
    slug="made-then-moved",
    summary=say("A tensor is made on the CPU and moved at once."),
    why=say(
        "The values are written to the CPU's memory, copied, and thrown away. With `device=` they are made where they "
        "are needed."
    ),
    source="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#create-tensors-directly-on-the-target-device",
    examples=(
        Example(
            wrong="""\
import torch

device = torch.device("cuda")
steps = torch.arange(8).unsqueeze(0).to(device)  # !
mask = torch.zeros(  # !
    8,
    dtype=torch.bool,
).to(device)
print(steps[~mask.unsqueeze(0)].shape)
""",
            right="""\
import torch

device = torch.device("cuda")
steps = torch.arange(8, device=device).unsqueeze(0)
mask = torch.zeros(
    8,
    dtype=torch.bool, device=device,
)
print(steps[~mask.unsqueeze(0)].shape)
""",
        ),
        Example(
            wrong="""\
import torch

noise = torch.randn(3, 4).cuda()  # !
print(noise.shape)
""",
            right="""\
import torch

noise = torch.randn(3, 4, device="cuda")
print(noise.shape)
""",
        ),
    ),
    clean=(
        """\
import torch

device = torch.device("cuda")
generator = torch.Generator().manual_seed(0)
same_everywhere = torch.randn(3, 4, generator=generator).to(device)
pinned = torch.zeros(3, pin_memory=True).to(device, non_blocking=True)
print(same_everywhere.shape, pinned.shape)
""",
    ),
    fix_safety=say(
        "Safe for values that are computed. Unsafe for random ones: they come from the device's own generator, so a "
        "seeded run gives other numbers."
    ),
    not_run=say("it is no fault: a run does what was meant"),
)
