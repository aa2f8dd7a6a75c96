"""Each fix is made: it turns the wrong example into the right one, changes nothing the second time, and compiles."""

import pytest

from samedevice.causes.catalogue import all_causes
from samedevice.fixing import fix_text


def named(wanted):
    return [
        pytest.param(cause, example, id=f"{cause.slug}-wrong-{number}")
        for cause in all_causes()
        if cause.not_static is None and wanted(cause)
        for number, example in enumerate(cause.examples, 1)
    ]


@pytest.mark.parametrize(("cause", "example"), named(lambda cause: cause.not_fixed is None))
def test_the_fix_turns_wrong_into_right(cause, example):
    fixed = fix_text(example.wrong_script, "example.py", unsafe=True)
    assert fixed == example.right
    assert fix_text(fixed, "example.py", unsafe=True) == fixed
    compile(fixed, "example.py", "exec")


@pytest.mark.parametrize(("cause", "example"), named(lambda cause: cause.not_fixed is not None))
def test_a_cause_said_to_need_a_person_is_left_alone(cause, example):
    assert fix_text(example.wrong_script, "example.py", unsafe=True) == example.wrong_script


@pytest.mark.parametrize("cause", all_causes(), ids=lambda cause: cause.slug)
def test_what_is_right_is_left_alone(cause):
    for script in (*(example.right for example in cause.examples), *cause.clean):
        assert fix_text(script, "example.py", unsafe=True) == script


BEFORE_INIT = """\
    def __init__(self):
        self.scale = torch.ones(3)
        super().__init__()
"""
NAME_IN_CLASS = """\
    scale = None

    def __init__(self):
        super().__init__()
        self.scale = torch.ones(3)
"""


@pytest.mark.parametrize("body", [BEFORE_INIT, NAME_IN_CLASS], ids=["before-init", "name-in-class"])
def test_an_attribute_that_register_buffer_would_refuse_is_moved_at_its_use(body):
    script = f"""\
import torch
from torch import nn


class Scale(nn.Module):
{body}
    def forward(self, x):
        return self.scale * x


Scale().to("cuda")(torch.ones(3, device="cuda"))
"""
    assert fix_text(script, "example.py") == script.replace("self.scale * x", "self.scale.to(x.device) * x")


@pytest.mark.parametrize(
    "line",
    [
        "torch.ones(3, device='cpu').mul_(2).add_(there)",
        "np.mean([there])",
        "losses = []; losses.append(there); np.mean(losses)",
    ],
)
def test_no_edit_would_lose_what_is_written_in_place_or_move_a_list(line):
    script = f"import numpy as np\nimport torch\nthere = torch.ones(3, device='cuda')\n{line}\n"
    assert ".to(" not in fix_text(script, "example.py")
    assert "losses.cpu" not in fix_text(script, "example.py")


def test_a_distribution_is_made_no_buffer():
    script = """\
import torch
from torch import nn


class Prior(nn.Module):
    def __init__(self):
        super().__init__()
        self.prior = torch.distributions.Normal(torch.zeros(3), torch.ones(3))

    def forward(self, x):
        return self.prior.log_prob(x)


Prior().to("cuda")(torch.ones(3, device="cuda"))
"""
    assert fix_text(script, "example.py") == script
