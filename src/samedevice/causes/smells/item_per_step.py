"""SD305 item-per-step."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD305",
    slug="item-per-step",
    summary=say("`.item()` is called in every step of a training loop."),
    why=say(
        "The number is only known when the device has done the whole step, so the program waits there and cannot "
        "queue the next one. Sum on the device, and ask for the number after the loop or every so many steps."
    ),
    source="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn

model = nn.Linear(4, 1).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for step in range(3):
    loss = model(torch.rand(8, 4, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()  # !
print(float(total) > 0)
""",
            right="""\
import torch
from torch import nn

model = nn.Linear(4, 1).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for step in range(3):
    loss = model(torch.rand(8, 4, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.detach()
print(float(total) > 0)
""",
        ),
    ),
    clean=(
        """\
import torch
from torch import nn

model = nn.Linear(4, 1).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.rand(8, 4, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(loss.item() > 0)
""",
    ),
    fix_safety=say(
        "Unsafe: the sum becomes a tensor on the device, in the loss's own precision; what prints or stores it needs "
        "one `.item()`."
    ),
    not_run=say("it is no fault: a run does what was meant"),
)
