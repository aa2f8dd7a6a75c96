"""SD203 scaler-or-scheduler."""

from samedevice.causes.cause import Cause, Example

CAUSE = Cause(
    code="SD203",
    slug="scaler-or-scheduler",
    summary="A scaler or scheduler keeps tensors on another device than the training step.",
    why=(
        "Noise schedules, normalisers and gradient scalers are no part of the model: no `.to()` of a model "
        "reaches the tensors that they keep."
    ),
    source="https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling",
    examples=(
        Example(
            wrong="""\
import torch


class NoiseScheduler:
    def __init__(self, steps):
        self.kept = torch.linspace(0.99, 0.01, steps)

    def add_noise(self, x, noise, step):
        kept = self.kept[step].view(-1, 1)  # !
        return kept * x + (1 - kept) * noise


scheduler = NoiseScheduler(10)
x = torch.rand(4, 3, device="cuda")
step = torch.randint(0, 10, (4,), device="cuda")
print(scheduler.add_noise(x, torch.randn_like(x), step).shape)
""",
            right="""\
import torch


class NoiseScheduler:
    def __init__(self, steps):
        self.kept = torch.linspace(0.99, 0.01, steps)

    def add_noise(self, x, noise, step):
        kept = self.kept.to(step.device)[step].view(-1, 1)
        return kept * x + (1 - kept) * noise


scheduler = NoiseScheduler(10)
x = torch.rand(4, 3, device="cuda")
step = torch.randint(0, 10, (4,), device="cuda")
print(scheduler.add_noise(x, torch.randn_like(x), step).shape)
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
    fix_safety="Safe, at the price of a small copy at each call.",
)
