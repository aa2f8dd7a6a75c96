"""SD203 scaler-or-scheduler."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD203",
    slug="scaler-or-scheduler",
    summary=say("A gradient scaler or scheduler serves another optimizer or device than the training step uses."),
    why=say(
        "A `GradScaler` looks for infinities in the gradients of the optimizer that it steps. Where the loss reaches "
        "none of that optimizer's parameters there are no gradients, and it refuses with an assertion."
    ),
    source="https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn

actor, critic = nn.Linear(4, 2).to("cuda"), nn.Linear(4, 1).to("cuda")
optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
loss = critic(torch.rand(8, 4, device="cuda")).mean()
scaler.scale(loss).backward()
scaler.step(optimizer)  # !
scaler.update()
""",
            right="""\
import torch
from torch import nn

actor, critic = nn.Linear(4, 2).to("cuda"), nn.Linear(4, 1).to("cuda")
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
loss = critic(torch.rand(8, 4, device="cuda")).mean()
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
""",
        ),
    ),
    clean=(
        """\
import torch
from torch import nn

model = nn.Linear(4, 2).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
scaler = torch.amp.GradScaler("cuda")
loss = model(torch.rand(8, 4, device="cuda")).sum()
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
schedule.step(loss.item())
""",
    ),
    fix_safety=say("No edit is safe to guess: which optimizer the loss is for is the author's to say."),
    not_fixed=say("which optimizer the loss is for is the author's to say"),
)
