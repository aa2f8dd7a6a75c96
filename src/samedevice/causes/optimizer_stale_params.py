"""SD202 optimizer-stale-params."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD202",
    slug="optimizer-stale-params",
    summary=say("The optimizer holds parameters that the model no longer has, so they never train."),
    why=say(
        "An optimizer keeps the parameter objects that it was given. A layer that is replaced afterwards, or "
        "a model that is built anew, has parameters that it has never heard of: nothing is raised, and they "
        "keep their first values."
    ),
    source="https://docs.pytorch.org/docs/stable/optim.html",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # !
model[1] = nn.Linear(4, 3).to("cuda")
for _ in range(2):
    optimizer.zero_grad()
    model(torch.rand(8, 4, device="cuda")).sum().backward()
    optimizer.step()
""",
            right="""\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).to("cuda")
model[1] = nn.Linear(4, 3).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.rand(8, 4, device="cuda")).sum().backward()
    optimizer.step()
""",
        ),
    ),
    clean=(
        """\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).to("cuda")
model[0].requires_grad_(False)
optimizer = torch.optim.SGD(model[1].parameters(), lr=0.1)  # a part that is frozen on purpose
for _ in range(2):
    optimizer.zero_grad()
    model(torch.rand(8, 4, device="cuda")).sum().backward()
    optimizer.step()
""",
    ),
    fix_safety=say("The optimizer starts without state: moments and step counts of what trained before are lost."),
    not_fixed=say("the optimizer has to be built after the change; moving statements is left to the author"),
)
