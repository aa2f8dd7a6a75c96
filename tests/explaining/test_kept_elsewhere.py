"""What stands beside a tensor says what happened to it: a sibling that was moved, a list that got the moved ones."""

import difflib

import pytest

from samedevice.fixing.edits import apply_edits

AGENT = """
    device = torch.device("cuda")

    class Agent:
        def __init__(self, {parameter}):
            {first}
            self.target = nn.Linear(4, 2)

        def gap(self, s):
            return (self.q(s) - self.target(s)).sum()

    agent = Agent({argument})
    s = torch.ones(1, 4, device="cuda")
    {use}
"""


def agent(first, use="agent.gap(s)", parameter="size=4", argument=""):
    return AGENT.format(first=first, use=use, parameter=parameter, argument=argument)


LOOP = """
    device = torch.device("cuda")
    net = nn.Linear(3, 2).to(device)

    def run(xs):
        {loop}
        return [net(x) for x in xs]

    run({given})
"""

# Each script, its cause, words of its reasons, and the lines that the mend puts there.
MENDS = {
    "a model of a plain object, moved as the global device says": (
        agent("self.q = nn.Linear(4, 2).to(device)"),
        "second-model-not-moved",
        "",
        ["self.target = nn.Linear(4, 2).to(device)"],
    ),
    "the same, used from outside": (
        agent("self.q = nn.Linear(4, 2).to(device)", "(agent.q(s) - agent.target(s)).sum()"),
        "second-model-not-moved",
        "",
        ["self.target = nn.Linear(4, 2).to(device)"],
    ),
    "moved as the sibling's fixed device says": (
        agent('self.q = nn.Linear(4, 2).to("cuda")'),
        "second-model-not-moved",
        "",
        ['self.target = nn.Linear(4, 2).to("cuda")'],
    ),
    "moved as the sibling's `.cuda()` says": (
        agent("self.q = nn.Linear(4, 2).cuda()", "(agent.q(s) - agent.target(s)).sum()"),
        "second-model-not-moved",
        "",
        ['self.target = nn.Linear(4, 2).to("cuda")'],
    ),
    "moved as a parameter with a word of its own says": (
        agent("self.q = nn.Linear(4, 2).to(where)", parameter="where", argument="device"),
        "second-model-not-moved",
        "",
        ["self.target = nn.Linear(4, 2).to(where)"],
    ),
    "a model that another made object is given": (
        agent("self.q = size", parameter="size", argument="nn.Linear(4, 2).to(device)"),
        "second-model-not-moved",
        "",
        ["self.target = nn.Linear(4, 2).to(device)"],
    ),
    "a parameter of an object that steps": (
        """
        class Runner:
            def __init__(self, model, opt):
                self.model, self.opt = model, opt
                self.centers = nn.Parameter(torch.zeros(3, 2))
                opt.add_param_group({"params": [self.centers]})

            def step(self, x, y):
                loss = (self.model(x) - self.centers[y]).pow(2).sum()
                loss.backward()
                self.opt.step()

        net = nn.Linear(4, 2).cuda()
        Runner(net, torch.optim.Adam(net.parameters())).step(
            torch.ones(2, 4).cuda(), torch.tensor([0, 2]).cuda()
        )
        """,
        "plain-attribute",
        "a Runner is no module",
        ["self.centers = nn.Parameter(torch.zeros(3, 2, device=next(model.parameters()).device))"],
    ),
    "a parameter of an object that knows no model": (
        """
        device = torch.device("cuda")

        class Centers:
            def __init__(self):
                self.centers = nn.Parameter(torch.randn(3, 2))

            def gap(self, z, y):
                return (z - self.centers[y]).pow(2).sum()

        centers = Centers()
        optimizer = torch.optim.Adam([centers.centers])
        centers.gap(torch.ones(2, 2, device=device), torch.tensor([0, 2], device=device)).backward()
        optimizer.step()
        """,
        "plain-attribute",
        "a Centers is no module",
        ["self.centers = nn.Parameter(torch.randn(3, 2, device=device))"],
    ),
    "a dropped move in a loop over a list": (
        LOOP.format(loop="for x in xs: x.to(device)", given="[torch.ones(3), torch.ones(3)]"),
        "result-discarded",
        "",
        ["xs = [x.to(device) for x in xs]"],
    ),
    "a dropped move in a loop over a tuple": (
        LOOP.format(loop="for x in xs: x = x.to(device)", given="(torch.ones(3), torch.ones(3))"),
        "result-discarded",
        "",
        ["xs = tuple(x.to(device) for x in xs)"],
    ),
    "a dropped move in a numbered loop": (
        LOOP.format(loop="for i, x in enumerate(xs): x.to(device)", given="[torch.ones(3), torch.ones(3)]"),
        "result-discarded",
        "",
        ["for i, x in enumerate(xs): xs[i] = x.to(device)"],
    ),
    "a dropped move in a loop that does more": (
        LOOP.format(loop="for x in xs: x.to(device); size = len(x)", given="[torch.ones(3)]"),
        "result-discarded",
        "",
        ["return [net(x.to(net.weight.device)) for x in xs]"],
    ),
    "a dropped move before a use in the same round": (
        """
        device = torch.device("cuda")
        net = nn.Linear(3, 2).to(device)
        xs = [torch.ones(3), torch.ones(3)]
        for x in xs:
            x.to(device)
            net(x)
        """,
        "result-discarded",
        "",
        ["x = x.to(device)"],
    ),
    "a list that was moved into another": (
        """
        w = torch.ones(3, device="cuda")
        xs = [torch.ones(3), torch.ones(3)]
        ys = [x.cuda() for x in xs]
        out = w * ys[0] * xs[1]
        """,
        "input-not-moved",
        "what was moved of it is in ys",
        ["out = w * ys[0] * ys[1]"],
    ),
    "a batch of a loader that was moved into a list": (
        """
        w = torch.ones(3, device="cuda")
        for xs in torch.utils.data.DataLoader([(torch.ones(3), torch.ones(3))], batch_size=None):
            ys = [x.cuda() for x in xs]
            out = w * xs[1]
        """,
        "input-not-moved",
        "what was moved of it is in ys",
        ["out = w * ys[1]"],
    ),
    "an input of a recurrent layer whose state was moved": (
        """
        device = torch.device("cuda")
        net = nn.GRU(3, 3).to(device)
        x = torch.ones(5, 2, 3)
        h = torch.zeros(1, 2, 3).to(device)
        net(x, h)
        """,
        "input-not-moved",
        "it was made on the CPU",
        ["x = x.to(device)"],
    ),
    "a checkpoint that map_location put on the CPU": (
        """
        import os
        import tempfile

        device = torch.device("cuda")
        path = os.path.join(tempfile.mkdtemp(), "mean.pt")
        torch.save(torch.ones(4, device=device), path)
        mean = torch.load(path, "cpu")
        out = torch.ones(4, device=device) - mean
        """,
        "checkpoint-map-location",
        "its map_location is what put it on cpu",
        ["mean = torch.load(path, device)"],
    ),
}


@pytest.mark.parametrize("case", MENDS)
def test_the_mend_uses_what_stands_beside(case, run_script):
    script, cause, reason, wanted = MENDS[case]
    ran = run_script(script)
    assert ran.finding is not None, ran.error
    assert ran.finding.cause == cause
    assert reason in " ".join(ran.finding.reasons)
    assert ran.finding.fix is not None
    text = apply_edits(ran.text, ran.finding.fix.edits)
    changed = difflib.unified_diff(ran.text.splitlines(), text.splitlines(), n=0)
    assert [line[1:].strip() for line in changed if line[0] == "+" and line[:3] != "+++"] == wanted
    assert run_script(text, preamble=False).error is None


def test_a_copy_on_the_cpu_is_no_moved_one(run_script):
    ran = run_script(
        """
        w = torch.ones(3, device="cuda")
        xs = [torch.ones(3), torch.ones(3)]
        ys = [x.cpu() for x in xs]
        out = w * xs[1]
        """
    )
    assert "it was made on the CPU and never moved to cuda:0" in ran.finding.reasons
    assert "ys" not in ran.finding.fix.summary


def test_a_copy_that_an_optimizer_of_its_own_keeps(run_script):
    ran = run_script(
        """
        class Slow:
            def __init__(self, optimizer):
                self.optimizer = optimizer
                self.slow = [p.detach().clone() for g in optimizer.param_groups for p in g["params"]]

            def step(self):
                for slow, p in zip(self.slow, self.optimizer.param_groups[0]["params"]):
                    slow.add_(p.detach() - slow)

        net = nn.Linear(2, 2)
        optimizer = Slow(torch.optim.SGD(net.parameters(), lr=0.1))
        net.cuda()
        optimizer.step()
        """
    )
    assert ran.finding.cause == "optimizer-state"
