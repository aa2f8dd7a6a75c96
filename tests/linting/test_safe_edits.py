"""Edits that are marked as safe leave a program that still runs, without CUDA too, and computes what it did."""

import textwrap

import pytest
import torch

from samedevice.fixing import fix_text
from samedevice.linting.lint import lint_source

CHOSEN = """\
import torch
from torch import nn
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
"""
WRITTEN = """\
import torch
from torch import nn
device = "cuda"
"""
FORCED = """\
import torch
from torch import nn
"""

STATE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4)
    def init_hidden(self, n):
        {made}
    def forward(self, x, state):
        return self.lstm(x, state)
net = Net().to(device)
state = net.init_hidden(2)
out, state = net(torch.ones(3, 2, 4, device=device), state)
"""

HEAD = """
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = {module}
    def forward(self, x):
        return self.net(x)
def predict(model, img):
    return model(img).softmax(-1)
head = Head().to(device)
out = predict(head, torch.ones(2, 4))
"""

EDITS = {
    "a Sequential has no weight": (
        HEAD.format(module="nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))"),
        "self.net(x.to(next(self.net.parameters()).device))",
    ),
    "what a layer without parameters passes on": (
        HEAD.format(module="nn.Sequential(nn.Flatten(), nn.Linear(4, 2))"),
        "self.net(x.to(next(self.net.parameters()).device))",
    ),
    "a Sequential in a Sequential": (
        HEAD.format(module="nn.Sequential(nn.Sequential(nn.Linear(4, 4)), nn.Linear(4, 2))"),
        "self.net(x.to(next(self.net.parameters()).device))",
    ),
    "a layer has a weight": (HEAD.format(module="nn.Linear(4, 2)"), "self.net(x.to(self.net.weight.device))"),
    "a name from outside": (
        """
        def evaluate(model, inputs):
            return model(inputs)
        out = evaluate(nn.Sequential(nn.Linear(4, 2)).to(device), torch.ones(2, 4))
        """,
        "model(inputs.to(device))",
    ),
    "a state of two": (
        STATE.format(made="h = torch.zeros(1, n, 4)\n        c = torch.zeros(1, n, 4)\n        return h, c"),
        "h = torch.zeros(1, n, 4, device=next(self.parameters()).device)\n"
        "        c = torch.zeros(1, n, 4, device=next(self.parameters()).device)",
    ),
    "a state of two in one line": (
        STATE.format(made="return torch.zeros(1, n, 4), torch.ones(1, n, 4)"),
        "return torch.zeros(1, n, 4, device=next(self.parameters()).device), "
        "torch.ones(1, n, 4, device=next(self.parameters()).device)",
    ),
    "a state made outside of functions": (
        STATE.format(made="pass").replace("net.init_hidden(2)", "(torch.zeros(1, 2, 4), torch.zeros(1, 2, 4))"),
        "state = (torch.zeros(1, 2, 4, device=device), torch.zeros(1, 2, 4, device=device))",
    ),
    "a list in a variable": (
        """
        both = [torch.ones(2), torch.ones(2, device=device)]
        out = torch.cat(both)
        """,
        "both = [torch.ones(2, device=device), torch.ones(2, device=device)]",
    ),
    "an expression of several parts": (
        """
        q = torch.ones(3) + 1
        out = torch.ones(3, device=device) + 0.9 * q
        """,
        "+ (0.9 * q).to(device)",
    ),
}


def applied(program, head=CHOSEN):
    return fix_text(head + textwrap.dedent(program))


@pytest.mark.parametrize(("program", "edit"), EDITS.values(), ids=EDITS)
def test_the_edit_is_the_right_one_and_the_program_runs(program, edit):
    before = CHOSEN + textwrap.dedent(program)
    after = applied(program)
    assert edit in after
    assert lint_source(after) == ()
    results = []
    for text in (before, after):
        scope = {"__name__": "program"}
        torch.manual_seed(0)
        exec(compile(text, "program", "exec"), scope)
        results.append(scope["out"])
    assert torch.equal(*results)


@pytest.mark.parametrize(("program", "edit"), EDITS.values(), ids=EDITS)
def test_the_mend_that_is_told_is_the_one_that_is_made(program, edit):
    (finding,) = lint_source(CHOSEN + textwrap.dedent(program))
    assert finding.fix.safe
    assert all(finding.fix.summary in each.new for each in finding.fix.edits)


def test_a_model_that_is_given_tells_its_device_where_no_name_does():
    program = """
def evaluate(model, inputs):
    return model(inputs)
def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = nn.Sequential(nn.Linear(4, 2)).to(device)
    return evaluate(net, torch.ones(2, 4))
out = main()
"""
    after = applied(program, FORCED)
    assert "model(inputs.to(next(model.parameters()).device))" in after
    exec(compile(after, "program", "exec"), {"__name__": "program"})


UNCERTAIN = {
    "no device is at hand": """
        def run(x):
            net = [nn.Linear(4, 2).to(torch.device("cuda" if torch.cuda.is_available() else "cpu"))]
            return net[0](x)
        run(torch.ones(2, 4))
        """,
    "moved under a condition": """
        x = torch.ones(2, 4)
        if torch.cuda.is_available():
            y = torch.ones(2, 4).cuda()
            z = x.add(torch.ones(2, 4).cuda())
        """,
    "a list that is given": """
        def joined(parts):
            return torch.cat(parts)
        def main():
            d = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            joined([torch.ones(2), torch.ones(2, device=d)])
        main()
        """,
    "a norm without parameters": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(4, affine=False)
            def forward(self, x):
                return self.norm(x)
        def main():
            d = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            Net().to(d)(torch.ones(2, 4))
        main()
        """,
    "replicas have no parameters": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Sequential(nn.Linear(4, 4))
                self.table = torch.ones(4, 4)
            def forward(self, x):
                y = torch.ones(4, 4)
                return self.net(y)
        def main():
            d = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            nn.DataParallel(Net().to(d))(torch.ones(2, 4))
        main()
        """,
}


@pytest.mark.parametrize("program", UNCERTAIN.values(), ids=UNCERTAIN)
def test_where_nothing_is_certain_no_edit_is_safe(program):
    text = FORCED + textwrap.dedent(program)
    assert lint_source(text)
    assert fix_text(text) == text


def test_a_device_that_is_written_down_everywhere_may_be_written_once_more():
    program = "net = nn.Sequential(nn.Linear(4, 2)).cuda()\nout = net(torch.ones(2, 4))\n"
    assert 'net(torch.ones(2, 4).to("cuda"))' in fix_text(FORCED + program)


@pytest.mark.parametrize("move", ["x.cuda()", 'x.to("cuda")'])
def test_a_model_is_moved_as_a_whole_ahead_of_its_wrapper(move):
    program = f"""
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
if torch.cuda.device_count() > 1:
    model = nn.DataParallel(model)
x = torch.ones(8, 4)
out = model({move})
"""
    findings = lint_source(FORCED + program)
    assert len(findings) == 1
    after = fix_text(FORCED + program)
    assert 'model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).to("cuda")\n' in after
    assert "    model = nn.DataParallel(model)\n" in after
    assert lint_source(after) == ()


def test_layers_made_ahead_are_moved_with_the_sequential():
    program = (
        "first = nn.Linear(4, 4)\nmodel = nn.Sequential(first, nn.Linear(4, 2))\nx = torch.ones(2, 4).to(device)\n"
    )
    after = applied(program + "out = model(x)\n")
    assert "model = nn.Sequential(first, nn.Linear(4, 2)).to(device)\n" in after
    assert "first = nn.Linear(4, 4)\n" in after


RANDOM = {
    "a leaf": "w = torch.randn(2, requires_grad=True).to(device)\nopt = torch.optim.SGD([w])\n",
    "a parameter": "w = nn.Parameter(torch.randn(2)).to(device)\nopt = torch.optim.SGD([w])\n",
    "a factory": "def f(x):\n    x = x.to(device)\n    noise = torch.{made}\n    return x.add(noise)\n",
}


@pytest.mark.parametrize("program", RANDOM.values(), ids=RANDOM)
@pytest.mark.parametrize("made", ["randn(2)", "randperm(2)"])
def test_other_random_numbers_are_not_safe(program, made):
    text = WRITTEN + program.format(made=made)
    (finding,) = lint_source(text)
    assert "device=" in finding.fix.summary
    assert not finding.fix.safe
    assert "device=" in fix_text(text, unsafe=True)


def test_numbers_that_are_computed_are_safe():
    for program in RANDOM.values():
        text = WRITTEN + program.format(made="ones(2)").replace("torch.randn", "torch.ones")
        (finding,) = lint_source(text)
        assert finding.fix.safe


def test_a_generator_keeps_its_device():
    text = WRITTEN + (
        "def f(x):\n    x = x.to(device)\n    g = torch.Generator()\n"
        "    noise = torch.randn(2, generator=g)\n    return x.add(noise)\n"
    )
    (finding,) = lint_source(text)
    assert finding.fix.summary == "torch.randn(2, generator=g).to(x.device)"
    assert finding.fix.safe


def test_code_that_asks_for_a_leaf_is_let_pass():
    made = WRITTEN + "w = torch.randn(2, requires_grad=True).to(device)\n"
    assert lint_source(made + "opt = torch.optim.SGD([w]) if w.is_leaf else None\n") == ()
    assert lint_source(made + "if w.is_leaf:\n    opt = torch.optim.SGD([w])\n") == ()
    assert lint_source(made + "opt = torch.optim.SGD([w]) if w.requires_grad else None\n")


OWN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Sequential(nn.Linear(4, 2))
    def forward(self, x):
        return self.second(self.first(x).relu())
"""


def test_a_model_that_nothing_moved_is_one_fault_and_is_moved_where_it_is_made():
    program = OWN + "net = Net()\nout = net(torch.ones(2, 4).to(device))\n"
    (finding,) = lint_source(CHOSEN + program)
    assert (finding.code, finding.fix.summary, finding.fix.safe) == ("SD102", "Net().to(device)", True)
    after = applied(program)
    assert "net = Net().to(device)\n" in after
    assert lint_source(after) == ()
    exec(compile(after, "program", "exec"), {"__name__": "program"})


def test_a_model_of_a_function_is_moved_to_the_device_of_that_function():
    program = OWN + (
        'def main():\n    where = "cuda" if torch.cuda.is_available() else "cpu"\n    my_device = torch.device(where)\n'
        "    net = Net()\n    return net(torch.ones(2, 4).to(my_device))\nout = main()\n"
    )
    assert "    net = Net().to(my_device)\n" in applied(program, FORCED)


def test_a_layer_that_stayed_behind_is_told_by_itself():
    program = OWN + "net = Net()\nnet.first.to(device)\nout = net(torch.ones(2, 4).to(device))\n"
    (finding,) = lint_source(CHOSEN + program)
    assert "Net()" not in (finding.fix.summary if finding.fix else "")


def test_a_wrapped_model_of_a_class_is_one_fault():
    program = OWN + (
        "net = Net()\nif torch.cuda.device_count() > 1:\n    net = nn.DataParallel(net)\n"
        "out = net(torch.ones(8, 4).cuda())\n"
    )
    assert len(lint_source(FORCED + program)) == 1
    after = fix_text(FORCED + program)
    assert 'net = Net().to("cuda")\n' in after
    assert lint_source(after) == ()


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        ('{"x": torch.ones(2, 4), "y": torch.ones(2, 2)}', "SD101"),
        ('{"x": torch.ones(2, 4), "y": torch.ones(2, 2).to(device)}', "SD108"),
        ('{"x": torch.ones(2, 4), "y": load()}', "SD108"),
        ('{"x": torch.ones(2, 4), "y": {"z": torch.ones(2).to(device)}}', "SD108"),
        ('{"x": torch.ones(2, 4), "y": {"z": torch.ones(2)}, "n": 3}', "SD101"),
    ],
)
def test_the_rest_of_a_batch_is_spoken_of_only_where_it_was_moved(batch, code):
    program = (
        f'from loading import load\nmodel = nn.Linear(4, 2).to(device)\nbatch = {batch}\nout = model(batch["x"])\n'
    )
    (finding,) = lint_source(CHOSEN + program)
    assert finding.code == code
    if code == "SD101":
        assert finding.fix.summary == 'batch["x"].to(device)'


def test_a_nested_part_is_told_with_the_batch_that_was_moved_around_it():
    program = (
        'model = nn.Linear(4, 2).to(device)\nbatch = {"extra": {"mask": torch.ones(2, 4)}, "y": torch.ones(2)}\n'
        'batch["y"] = batch["y"].to(device)\nout = model(batch["extra"]["mask"])\n'
    )
    assert [finding.code for finding in lint_source(CHOSEN + program)] == ["SD108"]


def test_a_part_of_a_split_model_is_named_as_the_program_names_it():
    program = """
print(torch.cuda.is_available())
first = nn.Linear(4, 4).to("cuda:0")
second = nn.Linear(4, 4).to("cuda:1")
out = second(first(torch.ones(2, 4).to("cuda:0")))
"""
    after = fix_text(FORCED + program)
    assert 'second(first(torch.ones(2, 4).to("cuda:0")).to("cuda:1"))' in after
