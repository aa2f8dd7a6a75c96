"""The user's own name for a tensor, through the forms that code takes."""

import pytest

NAMES = {
    "an attribute": ("self.pe", "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.pe = torch.zeros(3)\n    def forward(self, x):\n        return x + self.pe\nNet()(A)"),
    "an entry": ('batch["mask"]', 'batch = {"mask": torch.zeros(3)}\nA * batch["mask"]'),
    "an entry of an entry": ('targets[0]["boxes"]', 'targets = [{"boxes": torch.zeros(3)}]\nA - targets[0]["boxes"]'),
    "an entry by a variable": ("table[key]", 'table = {"k": torch.zeros(3)}\nkey = "k"\nA - table[key]'),
    "an attribute of an attribute": ("cfg.model.mean", "from types import SimpleNamespace as N\ncfg = N(model=N(mean=torch.zeros(3)))\nA - cfg.model.mean"),
    "a view": ("x", "x = torch.zeros(6)\nA + x[:3]"),
    "a cast": ("x", "x = torch.zeros(3).int()\nA + x.float()"),
    "a sign": ("x", "x = torch.zeros(3, dtype=torch.bool)\nA.masked_fill(~x, 0.0)"),
    "a computation": ("x", "x = torch.zeros(3)\nA + 2 * (1 - x)"),
    "a sub-expression": ("torch.zeros(3)", "A + torch.zeros(3)"),
    "through a call": ("x", "def f(y):\n    return A + y\nx = torch.zeros(3)\nf(x)"),
    "through two calls": ('data["x"]', 'def g(z):\n    return A + z\ndef f(y):\n    return g(y)\ndata = {"x": torch.zeros(3)}\nf(data["x"])'),
    "through keywords": ('kwargs["y"]', 'def f(y):\n    return A + y\nkwargs = {"y": torch.zeros(3)}\nf(**kwargs)'),
    "through a lambda": ("x", "x = torch.zeros(3)\n(lambda y: A + y)(x)"),
    "through a decorator": ("x", "import functools\ndef plain(f):\n    @functools.wraps(f)\n    def inner(*args):\n        return f(*args)\n    return inner\n@plain\ndef f(y):\n    return A + y\nx = torch.zeros(3)\nf(x)"),
    "through functools.partial": ("x", "import functools\ndef f(y, z):\n    return A + z\nx = torch.zeros(3)\nfunctools.partial(f, 1)(x)"),
    "through a generator": ("x", "def f(y):\n    yield A + y\nx = torch.zeros(3)\nlist(f(x))"),
    "in a list comprehension": ("x", "x = torch.zeros(3)\n[A + x for _ in range(2)]"),
    "the comprehension's own": ("rows[0]", "rows = [torch.zeros(3)]\n[A + row for row in rows]"),
    "of a sequence": ("net[1]", "net = nn.Sequential(nn.Linear(3, 3).cuda(), nn.Linear(3, 3))\nnet(A)"),
    "of a hook": ("x", "x = torch.zeros(3)\nlayer = nn.Linear(3, 3).cuda()\nlayer.register_forward_hook(lambda m, i, o: o + x)\nlayer(A)"),
    "unpacked": ("pair[1]", "pair = (A, torch.zeros(3))\na, b = pair\na + b"),
    "of a named tuple": ("pair.b", "from collections import namedtuple\nPair = namedtuple('Pair', 'a b')\npair = Pair(A, torch.zeros(3))\npair.a + pair.b"),
    "over several lines": ("mask", "mask = torch.zeros(3)\nout = (\n    A\n    .abs()\n    .mul(\n        mask\n    )\n)"),
    "in a keyword": ("weights", "weights = torch.ones(3)\nF.cross_entropy(A[None], torch.zeros(1, dtype=torch.long).cuda(), weight=weights)"),
    "reflected": ("x", "x = torch.zeros(3)\nx * A"),
    "compared": ("x", "x = torch.zeros(3)\nA > x"),
    "matrix product": ("x", "x = torch.zeros(3, 2)\nA[None] @ x"),
    "written in place": ("x", "x = torch.zeros(3)\nA.add_(x)"),
    "assigned by an index": ("x", "x = torch.zeros(3)\nA[torch.tensor([0, 1, 2])] = x"),
}  # fmt: skip


@pytest.mark.parametrize("origins", [True, False], ids=["recorded", "read"])
@pytest.mark.parametrize("case", NAMES)
def test_the_name_is_the_users(case, origins, run_script):
    name, script = NAMES[case]
    ran = run_script(f'A = torch.zeros(3, device="cuda")\n{script}', origins=origins)
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
