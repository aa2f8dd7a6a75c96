"""SD201 optimizer-state."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD201",
    slug="optimizer-state",
    summary=say("The optimizer's state is on another device than its parameters."),
    why=say(
        "An optimizer makes its state beside the parameters at the first step, and `load_state_dict` puts it "
        "beside the parameters at that moment. A model that is moved afterwards leaves the state behind, and "
        "no `.to()` moves it."
    ),
    source="https://docs.pytorch.org/docs/stable/optim.html",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters())
model(torch.rand(8, 4)).sum().backward()
optimizer.step()

model.to("cuda")
optimizer.zero_grad()
model(torch.rand(8, 4, device="cuda")).sum().backward()
optimizer.step()  # !
""",
            right="""\
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters())
model(torch.rand(8, 4)).sum().backward()
optimizer.step()

model.to("cuda")
optimizer.load_state_dict(optimizer.state_dict())  # or samedevice.sync_optimizer(optimizer)
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

model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters())
model.to("cuda")  # keeps the parameter objects, and there is no state yet
model(torch.rand(8, 4, device="cuda")).sum().backward()
optimizer.step()
print(optimizer.state[model.weight]["step"].device)  # the step count stays on the CPU, and is right there
""",
    ),
    fix_safety=say(
        "Safe: values are copied, none is computed anew. Moving the model before the optimizer is built or "
        "loaded needs no mend at all."
    ),
    not_fixed=say("whether to move the model earlier or the state later is for the author to say"),
)
