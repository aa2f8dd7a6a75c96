"""SD901 unused-silencing."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD901",
    slug="unused-silencing",
    summary=say("A comment silences a finding that is not there."),
    why=say(
        "A comment that was needed once would hide the next fault of that kind on its line. Only comments that name "
        "codes of this tool are looked at; a bare `# noqa` may be meant for another one."
    ),
    source="https://docs.pytorch.org/docs/stable/notes/cuda.html",
    examples=(
        Example(
            wrong="""\
import torch

print(torch.rand(3, 4).sum())  # noqa: SD103  # !
""",
            right="""\
import torch

print(torch.rand(3, 4).sum())
""",
        ),
    ),
    clean=(
        """\
import torch

x = torch.rand(3, 4)
x.to("cuda")  # noqa: SD105
print(x.sum())  # noqa
""",
    ),
    fix_safety=say("Safe: comments do nothing when a program runs."),
    not_run=say("it is no fault: a run does what was meant"),
)
