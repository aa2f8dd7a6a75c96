"""The user's own name for a tensor, through the forms that code takes."""

import textwrap

import pytest

NAMES = {
    "an attribute": (
        "self.pe",
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.pe = torch.zeros(3)
            def forward(self, x):
                return x + self.pe
        Net()(A)
        """,
    ),
    "an entry": (
        'batch["mask"]',
        """
        batch = {"mask": torch.zeros(3)}
        A * batch["mask"]
        """,
    ),
    "an entry of an entry": (
        'targets[0]["boxes"]',
        """
        targets = [{"boxes": torch.zeros(3)}]
        A - targets[0]["boxes"]
        """,
    ),
    "an entry by a variable": (
        "table[key]",
        """
        table = {"k": torch.zeros(3)}
        key = "k"
        A - table[key]
        """,
    ),
    "an attribute of an attribute": (
        "cfg.model.mean",
        """
        from types import SimpleNamespace as N
        cfg = N(model=N(mean=torch.zeros(3)))
        A - cfg.model.mean
        """,
    ),
    "a view": (
        "x",
        """
        x = torch.zeros(6)
        A + x[:3]
        """,
    ),
    "a cast": (
        "x",
        """
        x = torch.zeros(3).int()
        A + x.float()
        """,
    ),
    "a sign": (
        "x",
        """
        x = torch.zeros(3, dtype=torch.bool)
        A.masked_fill(~x, 0.0)
        """,
    ),
    "a computation": (
        "x",
        """
        x = torch.zeros(3)
        A + 2 * (1 - x)
        """,
    ),
    "a sub-expression": (
        "torch.zeros(3)",
        """
        A + torch.zeros(3)
        """,
    ),
    "through a call": (
        "x",
        """
        def f(y):
            return A + y
        x = torch.zeros(3)
        f(x)
        """,
    ),
    "through two calls": (
        'data["x"]',
        """
        def g(z):
            return A + z
        def f(y):
            return g(y)
        data = {"x": torch.zeros(3)}
        f(data["x"])
        """,
    ),
    "through keywords": (
        'kwargs["y"]',
        """
        def f(y):
            return A + y
        kwargs = {"y": torch.zeros(3)}
        f(**kwargs)
        """,
    ),
    "through a lambda": (
        "x",
        """
        x = torch.zeros(3)
        (lambda y: A + y)(x)
        """,
    ),
    "through a decorator": (
        "x",
        """
        import functools
        def plain(f):
            @functools.wraps(f)
            def inner(*args):
                return f(*args)
            return inner
        @plain
        def f(y):
            return A + y
        x = torch.zeros(3)
        f(x)
        """,
    ),
    "through functools.partial": (
        "x",
        """
        import functools
        def f(y, z):
            return A + z
        x = torch.zeros(3)
        functools.partial(f, 1)(x)
        """,
    ),
    "through a generator": (
        "x",
        """
        def f(y):
            yield A + y
        x = torch.zeros(3)
        list(f(x))
        """,
    ),
    "in a list comprehension": (
        "x",
        """
        x = torch.zeros(3)
        [A + x for _ in range(2)]
        """,
    ),
    "the comprehension's own": (
        "rows[0]",
        """
        rows = [torch.zeros(3)]
        [A + row for row in rows]
        """,
    ),
    "of a sequence": (
        "net[1]",
        """
        net = nn.Sequential(nn.Linear(3, 3).cuda(), nn.Linear(3, 3))
        net(A)
        """,
    ),
    "of a hook": (
        "x",
        """
        x = torch.zeros(3)
        layer = nn.Linear(3, 3).cuda()
        layer.register_forward_hook(lambda m, i, o: o + x)
        layer(A)
        """,
    ),
    "unpacked": (
        "pair[1]",
        """
        pair = (A, torch.zeros(3))
        a, b = pair
        a + b
        """,
    ),
    "of a named tuple": (
        "pair.b",
        """
        from collections import namedtuple
        Pair = namedtuple('Pair', 'a b')
        pair = Pair(A, torch.zeros(3))
        pair.a + pair.b
        """,
    ),
    "over several lines": (
        "mask",
        """
        mask = torch.zeros(3)
        out = (
            A
            .abs()
            .mul(
                mask
            )
        )
        """,
    ),
    "in a keyword": (
        "weights",
        """
        weights = torch.ones(3)
        F.cross_entropy(A[None], torch.zeros(1, dtype=torch.long).cuda(), weight=weights)
        """,
    ),
    "reflected": (
        "x",
        """
        x = torch.zeros(3)
        x * A
        """,
    ),
    "compared": (
        "x",
        """
        x = torch.zeros(3)
        A > x
        """,
    ),
    "matrix product": (
        "x",
        """
        x = torch.zeros(3, 2)
        A[None] @ x
        """,
    ),
    "written in place": (
        "x",
        """
        x = torch.zeros(3)
        A.add_(x)
        """,
    ),
    "assigned by an index": (
        "x",
        """
        x = torch.zeros(3)
        A[torch.tensor([0, 1, 2])] = x
        """,
    ),
}


@pytest.mark.parametrize("how", ["recorded", "read", "bare"])
@pytest.mark.parametrize("case", NAMES)
def test_the_name_is_the_users(case, how, run_script):
    """`recorded`: with origins. `read`: from the operands and the source. `bare`: as a real machine raises it."""
    name, script = NAMES[case]
    script = f'A = torch.zeros(3, device="cuda")\n{textwrap.dedent(script)}'
    ran = run_script(script, origins=how == "recorded", bare=how == "bare")
    assert ran.finding is not None, ran.error
    assert ran.finding.culprit.name == name
    assert ran.finding.culprit.device == "cpu"
    assert ran.finding.expected_device == "cuda:0"
    assert ran.finding.location.file == ran.file


def test_every_operand_has_a_name(run_script):
    ran = run_script('model = nn.Linear(3, 2).to("cuda")\nbatch = {"x": torch.zeros(1, 3)}\nmodel(batch["x"])')
    assert [(one.name, one.device) for one in ran.finding.operands] == [
        ("model.bias", "cuda:0"),
        ('batch["x"]', "cpu"),
        ("model.weight", "cuda:0"),
    ]


def test_optimizer_state_is_named_by_its_way(run_script):
    script = """
    net = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for device in ("cpu", "cuda"):
        net.to(device)
        net(torch.zeros(1, 2, device=device)).sum().backward()
        optimizer.step()
    """
    finding = run_script(script).finding
    assert finding.culprit.name.startswith("optimizer.state[")
    assert finding.culprit.name.endswith('["momentum_buffer"]')
    assert finding.cause == "optimizer-state"


def test_a_replicas_failure_is_found_in_the_message(run_script):
    script = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)
            self.scale = torch.ones(4).to("cuda")  # culprit

        def forward(self, x):
            return self.fc(x) * self.scale  # fault

    net = nn.DataParallel(Net().cuda())
    net(torch.zeros(4, 4).cuda())
    """
    ran = run_script(script)
    finding = ran.finding
    assert finding.location.line == ran.line("fault")
    assert (finding.culprit.name, finding.culprit.line) == ("self.scale", ran.line("culprit"))
    assert finding.expected_device == "cuda:1"
    assert finding.cause in ("plain-attribute", "hardcoded-device")


def test_a_loaders_worker_failure_is_found_in_the_message(run_script):
    script = """
    from torch.utils.data import DataLoader, Dataset

    class Rows(Dataset):
        def __init__(self):
            self.mean = torch.zeros(3)  # culprit
            self.rows = torch.zeros(8, 3).cuda()

        def __len__(self):
            return 8

        def __getitem__(self, index):
            return self.rows[index] - self.mean  # fault

    loader = DataLoader(Rows(), batch_size=4, num_workers=1)
    next(iter(loader))
    """
    ran = run_script(script)
    assert ran.finding.location.line == ran.line("fault")
    assert (ran.finding.culprit.name, ran.finding.culprit.line) == ("self.mean", ran.line("culprit"))
