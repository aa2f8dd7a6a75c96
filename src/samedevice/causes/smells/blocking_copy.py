"""SD307 blocking-copy."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD307",
    slug="blocking-copy",
    summary=say("Memory is pinned, and the copy from it waits all the same."),
    why=say(
        "Pinned memory can be copied while the program goes on, but only where the copy is asked for with "
        "`non_blocking=True`. Without it, pinning costs time and gains little."
    ),
    source="https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers",
    examples=(
        Example(
            wrong="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
loader = DataLoader(TensorDataset(torch.rand(8, 4)), batch_size=4, pin_memory=True)
for (images,) in loader:
    images = images.to(device)  # !
    print(images.shape)
""",
            right="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
loader = DataLoader(TensorDataset(torch.rand(8, 4)), batch_size=4, pin_memory=True)
for (images,) in loader:
    images = images.to(device, non_blocking=True)
    print(images.shape)
""",
        ),
        Example(
            wrong="""\
import torch

images = torch.rand(8, 4).pin_memory()
weights = torch.rand(4).pin_memory().cuda()  # !
print((images.cuda(non_blocking=True) @ weights).shape)
""",
            right="""\
import torch

images = torch.rand(8, 4).pin_memory()
weights = torch.rand(4).pin_memory().cuda(non_blocking=True)
print((images.cuda(non_blocking=True) @ weights).shape)
""",
        ),
    ),
    clean=(
        """\
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.rand(8, 4)), batch_size=4)
for (images,) in loader:
    print(images.to("cuda").shape)
""",
    ),
    fix_safety=say(
        "Safe for copies to a device: what uses the tensor there waits for the copy. Do not write to the pinned "
        "tensor before that."
    ),
    not_run=say("it is no fault: a run does what was meant"),
)
