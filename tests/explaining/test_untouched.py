"""Models, losses, metrics and layers whose classes have hooks of their own: none runs while a fault is explained."""

import sys
import types

import pytest

asked: list[str] = []


def _hook(name, answer):
    """Answers as Python would, and notes when the explanation asked."""

    def method(*args, **kwargs):
        frame = sys._getframe(1)
        while frame is not None:
            if "/samedevice/explaining/" in frame.f_code.co_filename.replace("\\", "/"):
                asked.append(name)
            frame = frame.f_back
        return answer(*args, **kwargs)

    return method


class Meta(type):
    """Says the names and bases of its classes itself."""

    for _name in ("__name__", "__module__", "__mro__", "__dict__", "__bases__"):
        locals()[_name] = property(_hook(f"meta {_name}", type.__dict__[_name].__get__))
    __bool__ = _hook("meta __bool__", lambda cls: False)
    __eq__ = _hook("meta __eq__", lambda cls, other: cls is other)
    __hash__ = type.__hash__


class Odd(metaclass=Meta):
    """Is empty and false, and equal to nothing."""

    __bool__ = _hook("__bool__", lambda self: False)
    __len__ = _hook("__len__", lambda self: 0)
    __iter__ = _hook("__iter__", lambda self: iter(()))
    __contains__ = _hook("__contains__", lambda self, key: False)
    __eq__ = _hook("__eq__", lambda self, other: False)
    __hash__ = _hook("__hash__", object.__hash__)


class OddDict(dict):
    """A mapping whose look-ups are its own."""

    for _name in ("__contains__", "__getitem__", "__iter__", "__len__", "get", "items", "keys", "values"):
        locals()[_name] = _hook(f"dict {_name}", getattr(dict, _name))
    __bool__ = _hook("dict __bool__", lambda self: False)


class OddList(list):
    """A list whose elements are its own business."""

    for _name in ("__contains__", "__getitem__", "__iter__", "__len__", "index", "count"):
        locals()[_name] = _hook(f"list {_name}", getattr(list, _name))
    __bool__ = _hook("list __bool__", lambda self: False)
    __eq__ = _hook("list __eq__", lambda self, other: False)
    __hash__ = _hook("list __hash__", object.__hash__)


class Name(str):
    """A key that compares in its own way."""

    __eq__ = _hook("key __eq__", str.__eq__)
    __hash__ = _hook("key __hash__", str.__hash__)
    __str__ = _hook("key __str__", lambda self: "a key")


# Cause, and the script: its objects are `Odd` ones.
SCRIPTS = {
    "a plain attribute": (
        "plain-attribute",
        """
        class Net(Odd, nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
                self.pe = torch.ones(2)
            def forward(self, x):
                return self.fc(x) + self.pe
        Net().cuda()(torch.ones(2, 2).cuda())
        """,
    ),
    "a loss that keeps its weights": (
        "criterion-not-moved",
        """
        class FocalLoss(Odd, nn.Module):
            def __init__(self, weight):
                super().__init__()
                self.weight = weight
            def forward(self, x):
                return (x * self.weight).sum()
        criterion = FocalLoss(torch.ones(2))
        net = nn.Linear(2, 2).cuda()
        criterion(net(torch.ones(2, 2).cuda()))
        """,
    ),
    "a loss with a buffer": (
        "criterion-not-moved",
        """
        class MyLoss(Odd, nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("weight", torch.ones(2))
            def forward(self, x):
                return (x * self.weight).sum()
        criterion = MyLoss()
        net = nn.Linear(2, 2).cuda()
        criterion(net(torch.ones(2, 2).cuda()))
        """,
    ),
    "state of a metric of its own": (
        "metric-state",
        """
        class Mean(Odd):
            def __init__(self):
                self.total = torch.zeros(2)
            def update(self, x):
                return x + self.total
            def compute(self):
                return self.total
        mean = Mean()
        net = nn.Linear(2, 2).cuda()
        mean.update(net(torch.ones(2, 2).cuda()))
        """,
    ),
    "what a metric says of its defaults": (
        "plain-attribute",
        """
        class Metric(Odd, nn.Module):
            def __init__(self, defaults):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(2))
                self._defaults = defaults
                self.seen = torch.zeros(2)
            def forward(self, x):
                return x + self.seen
        Metric(3).cuda()(torch.ones(2, 2).cuda())
        """,
    ),
    "what a metric says of its defaults, in a mapping of its own": (
        "metric-state",
        """
        class Metric(Odd, nn.Module):
            def __init__(self, defaults):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(2))
                self._defaults = defaults
                self.seen = torch.zeros(2)
            def forward(self, x):
                return x + self.seen
        Metric(OddDict(seen=0)).cuda()(torch.ones(2, 2).cuda())
        """,
    ),
    "recurrent state": (
        "hidden-state",
        """
        class Recurrent(Odd, nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = nn.Linear(2, 2)
            def forward(self, x, hidden):
                return self.cell(x) + hidden
        rnn = Recurrent().cuda()
        hidden = torch.zeros(2, 2)
        rnn(torch.ones(2, 2).cuda(), hidden)
        """,
    ),
    "two models": (
        "second-model-not-moved",
        """
        class Net(Odd, nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.ModuleDict({"a": nn.Linear(2, 2)})
            def forward(self, x):
                return self.inner["a"](x)
        first, second = Net().cuda(), Net()
        second(first(torch.ones(2, 2).cuda()))
        """,
    ),
    "modules in a list": (
        "plain-container",
        """
        class Part(Odd, nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
            def forward(self, x):
                return self.fc(x)
        class Net(Odd, nn.Module):
            def __init__(self):
                super().__init__()
                self.first = Part()
                self.parts = [Part()]
            def forward(self, x):
                x = self.first(x)
                for part in self.parts:
                    x = part(x)
                return x
        Net().cuda()(torch.ones(2, 2).cuda())
        """,
    ),
    "averaged weights": (
        "second-model-not-moved",
        """
        class Averaged(Odd):
            def __init__(self, net):
                self.shadow = OddDict((key, value.clone()) for key, value in net.state_dict().items())
            def update(self, net):
                for key in ("weight", "bias"):
                    dict.__getitem__(self.shadow, key).lerp_(getattr(net, key).detach(), 0.5)
        net = nn.Linear(2, 2)
        averaged = Averaged(net)
        net.cuda()
        averaged.update(net)
        """,
    ),
    "an entry beside others": (
        "nested-batch",
        """
        class Batch(Odd):
            def __init__(self, x, mask):
                self.x, self.mask = x, mask
        batch = Batch(torch.ones(2).cuda(), torch.ones(2))
        vars(batch)[Name("extra")] = torch.ones(2)
        batch.x + batch.mask
        """,
    ),
    "results in a list of its own kind": (
        "numpy-on-cuda",
        """
        import numpy as np
        losses = OddList([torch.ones(3).cuda(), torch.ones(3).cuda()])
        np.array(losses)
        """,
    ),
    "rows of a list of its own kind": (
        "input-not-moved",
        """
        net = nn.Linear(2, 2).cuda()
        rows = OddList([OddDict(x=torch.arange(2.0).sqrt(), y=3)])
        for row in rows:
            net(row["x"])
        """,
    ),
    "an entry under a key of its own kind": (
        "nested-batch",
        """
        batch = {Name("x"): torch.ones(2).cuda(), Name("mask"): torch.ones(2), Odd(): 3}
        x, mask = list(batch.values())[:2]
        def use(batch):
            for key in batch:
                x + batch[key]
        use(batch)
        """,
    ),
    "a cache that is filled once": (
        "stale-cache",
        """
        class Net(Odd, nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.mask = nn.Linear(2, 2), None
            def forward(self, x):
                if self.mask is None:
                    self.mask = torch.ones(2, device=x.device)
                return self.fc(x) * self.mask
        net = Net()
        net(torch.ones(2, 2))
        net.cuda()(torch.ones(2, 2).cuda())
        """,
    ),
    "a generator of another device": (
        "generator-device",
        """
        class Sampler(Odd):
            def __init__(self):
                self.generator = torch.Generator()
        sampler = Sampler()
        torch.randn(3, generator=sampler.generator, device="cuda")
        """,
    ),
    "lengths in an object": (
        "lengths-must-be-cpu",
        """
        class Batch(Odd):
            def __init__(self):
                self.x, self.lengths = torch.ones(2, 3, 4).cuda(), torch.tensor([3, 2]).cuda()
        batch = Batch()
        nn.utils.rnn.pack_padded_sequence(batch.x, batch.lengths, batch_first=True)
        """,
    ),
    "a distribution": (
        "plain-attribute",
        """
        class Net(Odd, nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
                self.prior = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
            def forward(self, x):
                return self.prior.log_prob(self.fc(x))
        Net().cuda()(torch.ones(2, 2).cuda())
        """,
    ),
    "a dropped move of an entry": (
        "result-discarded",
        """
        class Batch(Odd):
            def __init__(self):
                self.parts = OddList([torch.ones(2)])
        batch = Batch()
        batch.parts[0].cuda()
        torch.ones(2).cuda() + batch.parts[0]
        """,
    ),
    "a layer replaced after the move": (
        "model-not-moved",
        """
        class Net(Odd, nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)
            def forward(self, x):
                return self.second(self.first(x))
        net = Net().cuda()
        net.second = nn.Linear(2, 2)
        net(torch.ones(2, 2).cuda())
        """,
    ),
    "an optimizer's own state": (
        "optimizer-state",
        """
        class Net(Odd, nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
            def forward(self, x):
                return self.fc(x)
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        def step(x):
            net(x).sum().backward()
            optimizer.step()
        step(torch.ones(2, 2))
        net.cuda()
        optimizer.zero_grad()
        step(torch.ones(2, 2).cuda())
        """,
    ),
    "an optimizer's state": (
        "optimizer-state",
        """
        class Stepper(Odd):
            def __init__(self, optimizer, masters):
                self.optimizer, self.masters = optimizer, masters
            def step(self, grads):
                for master, grad in zip(self.masters, grads):
                    master + grad
        net = nn.Linear(2, 2)
        masters = [parameter.detach().clone() for parameter in net.parameters()]
        net.cuda()
        stepper = Stepper(torch.optim.SGD(net.parameters(), lr=0.1), masters)
        stepper.step([torch.ones_like(parameter) for parameter in net.parameters()])
        """,
    ),
}


@pytest.fixture
def odd(monkeypatch):
    module = types.ModuleType("odd")
    vars(module).update(Odd=Odd, OddDict=OddDict, OddList=OddList, Name=Name)
    monkeypatch.setitem(sys.modules, "odd", module)
    asked.clear()
    yield asked
    asked.clear()


@pytest.mark.parametrize("origins", [True, False], ids=["recorded", "bare"])
@pytest.mark.parametrize("case", SCRIPTS)
def test_nothing_of_the_user_s_is_asked(case, origins, run_script, odd):
    cause, script = SCRIPTS[case]
    lines = ["from odd import Name, Odd, OddDict, OddList", *script.strip("\n").splitlines()]
    ran = run_script("\n".join(line.removeprefix(" " * 8) for line in lines), "cuda:1", origins=origins)
    assert ran.finding is not None, ran.error
    assert (ran.finding.cause, odd) == (cause, [])
