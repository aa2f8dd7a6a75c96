"""Faults that raise nothing: found, named, mended; and silence where half of the pattern is somebody's purpose."""

import pytest

FAULTS = {
    "parameters replaced in part": (
        "optimizer-stale-params",
        "optimizer",
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(4, 4)
                self.head = nn.Linear(4, 2)

            def new_head(self, classes):
                self.head = nn.Linear(4, classes).to(self.body.weight.device)

            def forward(self, x):
                return self.head(self.body(x))

        net = Net().cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)  # culprit
        net.new_head(3)
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.ones(2, 4).cuda()).sum().backward()
            optimizer.step()  # fault
        """,
    ),
    "the model replaced by a copy": (
        "optimizer-stale-params",
        "optimizer",
        """
        import copy
        net = nn.Linear(4, 2)
        optimizer = torch.optim.Adam(net.parameters())  # culprit
        net = copy.deepcopy(net).to("cuda")
        for _ in range(2):
            net(torch.ones(2, 4).cuda()).sum().backward()
            optimizer.step()  # fault
        """,
    ),
    "a parameter moved out of its module": (
        "plain-attribute",
        "net.scale",
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)
                self.scale = nn.Parameter(torch.ones(4)).cuda()  # culprit

            def forward(self, x):
                return self.fc(x) * self.scale

        net = Net().cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.ones(2, 4).cuda()).sum().backward()
        optimizer.step()  # fault
        """,
    ),
    "a tensor trained, its copy held": (
        "optimizer-stale-params",
        "optimizer",
        """
        latent = torch.zeros(4, requires_grad=True)
        optimizer = torch.optim.SGD([latent], lr=0.1)  # culprit
        latent = latent.detach().to("cuda").requires_grad_()
        for _ in range(2):
            latent.square().sum().backward()
            optimizer.step()  # fault
        """,
    ),
    "a move that nothing keeps": (
        "result-discarded",
        "inputs",
        """
        inputs = torch.ones(2, 4)
        inputs.to("cuda")  # culprit
        mean = inputs.mean()  # fault
        """,
    ),
    "a buffer that a move makes two": (
        "other",
        "net.reader.mean",
        """
        class Part(nn.Module):
            def __init__(self, mean):
                super().__init__()
                self.fc = nn.Linear(4, 4)
                self.register_buffer("mean", mean)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                mean = torch.zeros(4)
                self.reader, self.writer = Part(mean), Part(mean)  # culprit

            def forward(self, x):
                self.writer.mean.mul_(0.9).add_(0.1 * x.detach().mean(0))
                return self.reader.fc(x - self.reader.mean)

        net = Net().cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.ones(2, 4).cuda()).sum().backward()
        optimizer.step()  # fault
        """,
    ),
    "a tie that the move cuts": (
        "other",
        "net.embed.weight",
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.out = nn.Linear(4, 8, bias=False)
                self.embed = nn.Embedding(8, 4, _weight=self.out.weight)  # culprit

        net = Net()
        net.to("cuda")  # fault
        """,
    ),
}

# What to share instead is not on one line.
SENTENCE_ONLY = ("a tie that the move cuts", "a buffer that a move makes two")

CLEAN = {
    "a move made to warm up, then kept": """
        x = torch.ones(2, 4)
        x.to("cuda")
        y = x.to("cuda")
        x.sum()
        """,
    "moves made to measure": """
        x = torch.ones(2, 4)
        for _ in range(3):
            x.to("cuda")
        x.sum()
        """,
    "modules and batches that move in place": """
        class Batch:
            def __init__(self, x):
                self.x = x

            def to(self, device):
                self.y = self.x.to(device)

        net, batch = nn.Linear(4, 2), Batch(torch.ones(2, 4))
        before = [p.detach() for p in net.parameters()]
        net.to("cuda")
        batch.to("cuda")
        batch.x + 1
        before[0] + 1
        """,
    "a step beside its parameter, a table in two modules": """
        class Part(nn.Module):
            def __init__(self, table):
                super().__init__()
                self.fc = nn.Linear(4, 4)
                self.register_buffer("table", table)

        table = torch.ones(4)
        net = nn.Sequential(Part(table), Part(table)).cuda()
        optimizer = torch.optim.Adam(net.parameters())
        for _ in range(3):
            sum(part.fc(part.table).sum() for part in net).backward()
            optimizer.step()
            for state in optimizer.state.values():
                state["step"] = state["step"].to("cuda")
        """,
    "a latent per sample, each with its optimizer": """
        for _ in range(2):
            latent = torch.zeros(4).cuda().requires_grad_()
            optimizer = torch.optim.SGD([latent], lr=0.1)
            latent.square().sum().backward()
            optimizer.step()
        """,
    "the optimizer before the move": """
        net = nn.Linear(4, 2)
        optimizer = torch.optim.Adam(net.parameters())
        net.to("cuda")
        net(torch.ones(2, 4).cuda()).sum().backward()
        optimizer.step()
        """,
    "two optimizers, each its part": """
        a, b = nn.Linear(2, 2).cuda(), nn.Linear(2, 2).cuda()
        first = torch.optim.SGD(a.parameters(), lr=0.1)
        second = torch.optim.SGD(b.parameters(), lr=0.1)
        for _ in range(4):
            b(a(torch.ones(1, 2).cuda())).sum().backward()
            first.step()
            second.step()
        """,
    "only the head is trained": """
        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).cuda()
        optimizer = torch.optim.SGD(net[1].parameters(), lr=0.1)
        for _ in range(4):
            net(torch.ones(1, 2).cuda()).sum().backward()
            optimizer.step()
        """,
    "gradients of the input": """
        net = nn.Linear(2, 2).cuda()
        x = torch.zeros(1, 2).cuda().requires_grad_()
        optimizer = torch.optim.SGD([x], lr=0.1)
        net(x).sum().backward()
        optimizer.step()
        """,
    "a step before any gradient": """
        net = nn.Linear(2, 2).cuda()
        other = nn.Linear(2, 2).cuda()
        torch.optim.SGD(other.parameters(), lr=0.1).step()
        """,
    "an activation kept for later": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)

            def forward(self, x):
                self.kept = self.fc(x)
                self.shifted = self.fc.weight.to("cuda:1").clone()
                return self.kept

        net = Net().cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.ones(1, 2).cuda()).sum().backward()
        optimizer.step()
        """,
    "one parameter in two places": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(8, 4)
                self.out = nn.Linear(4, 8, bias=False)
                self.out.weight = self.embed.weight

        Net().to("cuda")
        """,
    "moved to where it is": """
        weight = nn.Parameter(torch.ones(2))
        net = nn.Module()
        net.a, net.b = weight, nn.Parameter(weight.data)
        net.to("cpu")
        """,
    "a frozen teacher in no optimizer": """
        teacher, student = nn.Linear(2, 2).cuda(), nn.Linear(2, 2).cuda()
        teacher.requires_grad_(False)
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        x = torch.ones(1, 2).cuda()
        F.mse_loss(student(x), teacher(x)).backward()
        optimizer.step()
        """,
}


@pytest.mark.parametrize("case", FAULTS)
def test_the_fault_is_found_once(case, watch_script):
    cause, name, script = FAULTS[case]
    ran = watch_script(script)
    (finding,) = ran.report.findings
    assert (finding.cause, finding.severity, finding.raised) == (cause, "warning", None)
    assert finding.location.line == ran.marks["fault"]
    assert (finding.culprit.name, finding.culprit.line) == (name, ran.marks["culprit"])


@pytest.mark.parametrize("case", [case for case in FAULTS if case not in SENTENCE_ONLY])
def test_the_mended_script_is_silent(case, watch_script):
    ran = watch_script(FAULTS[case][2])
    (edit,) = ran.report.findings[0].fix.edits
    lines = ran.text.split("\n")
    assert "\n".join(lines[edit.line - 1 : edit.end_line]) == edit.old
    lines[edit.line - 1 : edit.end_line] = edit.new.split("\n")
    del ran  # its model is still reachable from this very frame
    assert watch_script("\n".join(lines), preamble=False).report.findings == ()


@pytest.mark.parametrize("case", CLEAN)
def test_right_programs_are_left_in_peace(case, watch_script):
    assert watch_script(CLEAN[case]).report.findings == ()
