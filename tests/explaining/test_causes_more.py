"""Variations: the same causes in the forms that scripts really have. Checked with recorded origins."""

import pytest

CASES = {
    "other, a device kept by tracing": (
        ("ids",),
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.position = nn.Embedding(8, 4)

            def forward(self, x):
                ids = torch.arange(x.size(1), device=x.device)  # culprit
                return x + self.position(ids)

        net = torch.jit.trace(Net(), torch.zeros(1, 3, 4)).to("cuda")
        net(torch.zeros(1, 3, 4).to("cuda"))  # fault
        """,
    ),
    "plain-container behind an empty optimizer": (
        ("net.layers",),
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [nn.Linear(2, 2)]

        net = Net().cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)  # fault
        """,
    ),
    "result-discarded of a batch object": (
        ("graph", "graph.x"),
        """
        class Graph:
            def __init__(self, x):
                self.x = x

            def to(self, device):
                return Graph(self.x.to(device))

        graph = Graph(torch.zeros(2, 4))
        model = nn.Linear(4, 2).to("cuda")
        graph.to("cuda")  # culprit
        model(graph.x)  # fault
        """,
    ),
    "factory-default-device written in place": (
        ("one_hot",),
        """
        def encode(labels, classes):
            one_hot = torch.zeros(len(labels), classes)  # culprit
            one_hot.scatter_(1, labels[:, None], 1.0)  # fault
            return one_hot

        encode(torch.zeros(3, dtype=torch.long).to("cuda"), 4)
        """,
    ),
    "factory-default-device counted in place": (
        ("degree",),
        """
        def degrees(index, weight, nodes):
            degree = torch.zeros(nodes)  # culprit
            return degree.scatter_add_(0, index, weight)  # fault

        degrees(torch.zeros(3, dtype=torch.long).cuda(), torch.ones(3).cuda(), 4)
        """,
    ),
    "metric-state in a loop": (
        ("total",),
        """
        def evaluate(batches):
            total = torch.zeros(1)  # culprit
            for batch in batches:
                total += batch.sum()  # fault
            return total

        evaluate([torch.ones(3).cuda()])
        """,
    ),
    "second-model-not-moved as averaged weights": (
        ('self.shadow["weight"]', "self.shadow"),
        """
        class EMA:
            def __init__(self, model, decay):
                self.decay = decay
                self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}  # culprit

            def update(self, model):
                for name, p in model.named_parameters():
                    self.shadow[name] = self.decay * self.shadow[name] + (1 - self.decay) * p.detach()  # fault

        model = nn.Linear(4, 2)
        ema = EMA(model, 0.9)
        model.to("cuda")
        ema.update(model)
        """,
    ),
    "numpy-on-cuda of a list": (
        ("losses",),
        """
        import numpy as np
        model = nn.Linear(4, 2).cuda()
        losses = []  # culprit
        for _ in range(3):
            losses.append(model(torch.zeros(2, 4).cuda()).mean().detach())
        print(np.array(losses).mean())  # fault
        """,
    ),
    "factory-default-device put into a buffer": (
        ("self.window",),
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)
                self.register_buffer("window", torch.ones(4))

            def resize(self, size):
                self.window = torch.hann_window(size)  # culprit

            def forward(self, x):
                return self.fc(x) * self.window  # fault

        net = Net().to("cuda")
        net.resize(4)
        net(torch.zeros(2, 4, device="cuda"))
        """,
    ),
    "global-tensor in a closure": (
        ("weights",),
        """
        def make_loss(weights):
            def loss(x):
                return (x * weights).sum()  # fault
            return loss

        loss = make_loss(torch.tensor([1.0, 2.0]))  # culprit
        loss(torch.zeros(2).cuda())
        """,
    ),
    "global-tensor as a default argument": (
        ("weights",),
        """
        def loss(x, weights=torch.tensor([1.0, 2.0])):  # culprit
            return (x * weights).sum()  # fault

        loss(torch.zeros(2).cuda())
        """,
    ),
    "global-tensor of a settings object": (
        ("STATS.mean",),
        """
        from dataclasses import dataclass

        @dataclass
        class Stats:
            mean: torch.Tensor
            std: torch.Tensor

        STATS = Stats(torch.zeros(3), torch.ones(3))  # culprit

        def normalize(x):
            return (x - STATS.mean) / STATS.std  # fault

        normalize(torch.zeros(2, 3).cuda())
        """,
    ),
    "checkpoint-map-location of a model": (
        ("model",),
        """
        import io
        file = io.BytesIO()
        torch.save(nn.Linear(4, 2).to("cuda:1"), file)
        file.seek(0)
        model = torch.load(file, weights_only=False)  # culprit
        device = torch.device("cuda:0")
        model(torch.zeros(2, 4).to(device))  # fault
        """,
    ),
    "factory-default-device mask of an attention": (
        ("mask",),
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

            def forward(self, x):
                mask = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)  # culprit
                return self.attention(x, x, x, attn_mask=mask)[0]  # fault

        Net().to("cuda")(torch.zeros(2, 3, 4, device="cuda"))
        """,
    ),
    "input-not-moved keyword batch": (
        ('inputs["ids"]', "inputs"),
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(10, 4)

            def forward(self, ids, mask=None):
                return self.embed(ids)  # fault

        model = Net().to("cuda")
        inputs = {"ids": torch.zeros(2, 3, dtype=torch.long), "mask": torch.ones(2, 3)}  # culprit
        model(**inputs)
        """,
    ),
    "factory-default-device joined": (
        ("torch.zeros(len(x), 1)",),
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)

            def forward(self, x):
                x = self.fc(x)
                return torch.cat([x, torch.zeros(len(x), 1)], dim=1)  # fault # culprit

        Net().to("cuda")(torch.zeros(2, 4, device="cuda"))
        """,
    ),
    "model-not-moved new head": (
        ("model.head", "self.head"),
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(4, 4)
                self.head = nn.Linear(4, 2)

            def forward(self, x):
                return self.head(self.body(x))  # fault

        model = Net().to("cuda")
        model.head = nn.Linear(4, 3)  # culprit
        model(torch.zeros(2, 4, device="cuda"))
        """,
    ),
    "model-not-moved kept by a trainer": (
        ("self.model",),
        """
        class Trainer:
            def __init__(self, device):
                self.device = device
                self.model = nn.Linear(4, 2)  # culprit

            def step(self, x):
                return self.model(x.to(self.device))  # fault

        Trainer("cuda").step(torch.zeros(2, 4))
        """,
    ),
    "hidden-state of a cell": (
        ("h",),
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = nn.GRUCell(4, 8)

            def forward(self, x):
                h = torch.zeros(x.size(1), 8)  # culprit
                for step in x:
                    h = self.cell(step, h)  # fault
                return h

        Net().to("cuda")(torch.zeros(3, 2, 4, device="cuda"))
        """,
    ),
    "optimizer-state restored before the move": (
        None,
        """
        import copy
        model = nn.Linear(4, 2)
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.zeros(2, 4)).sum().backward()
        optimizer.step()
        saved = copy.deepcopy(optimizer.state_dict())
        model = nn.Linear(4, 2)
        optimizer = torch.optim.Adam(model.parameters())
        optimizer.load_state_dict(saved)  # culprit
        model.cuda()
        model(torch.zeros(2, 4).cuda()).sum().backward()
        optimizer.step()  # fault
        """,
    ),
    "hardcoded-device of a teacher's logits": (
        ("soft",),
        """
        device = torch.device("cuda:1")
        model = nn.Linear(4, 2).to(device)
        x = torch.zeros(3, 4).to(device)
        soft = torch.ones(3, 2).cuda()  # culprit
        F.mse_loss(model(x), soft)  # fault
        """,
    ),
    "input-not-moved from NumPy": (
        ("state",),
        """
        import numpy as np

        class Policy(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 2)

            def forward(self, state):
                return self.fc(state)  # fault

        policy = Policy().to("cuda")
        state = torch.from_numpy(np.zeros((1, 4), dtype=np.float32))  # culprit
        policy(state)
        """,
    ),
    "input-not-moved from a loader": (
        ("images",),
        """
        from torch.utils.data import DataLoader, TensorDataset

        model = nn.Conv2d(3, 4, 3).cuda()
        loader = DataLoader(TensorDataset(torch.zeros(4, 3, 8, 8), torch.zeros(4)), batch_size=2)
        for images, labels in loader:  # culprit
            labels = labels.cuda()
            model(images)  # fault
        """,
    ),
    "result-discarded by a loop that only its variable remembers": (
        ("x", "y"),
        """
        model = nn.Linear(4, 2).cuda()
        x, y = torch.zeros(3, 4), torch.zeros(3, 2)
        for part in (x, y):
            part = part.to("cuda")  # culprit
        F.mse_loss(model(x), y)  # fault
        """,
    ),
    "input-not-moved where the loss meets it": (
        ("target",),
        """
        def validate(model, batches):
            for x, target in batches:  # culprit
                return F.cross_entropy(model(x.cuda()), target)  # fault

        def batches():
            for _ in range(2):
                yield torch.zeros(3, 4), torch.zeros(3, dtype=torch.long)

        validate(nn.Linear(4, 2).cuda(), batches())
        """,
    ),
    "stale-cache whose guard asks about the length": (
        ("cos",),
        """
        class Rotary(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("rates", torch.ones(4))
                self.length, self.cos, self.sin = 0, None, None

            def tables(self, length):
                if length > self.length:
                    angles = torch.outer(torch.arange(length, device=self.rates.device).float(), self.rates)
                    self.cos, self.sin = angles.cos(), angles.sin()  # culprit
                    self.length = length
                return self.cos[:length], self.sin[:length]

            def forward(self, x):
                cos, sin = self.tables(len(x))
                return x * cos + x * sin  # fault

        net = Rotary()
        net(torch.zeros(8, 4))
        net.to("cuda")(torch.zeros(5, 4).cuda())
        """,
    ),
    "nested-batch with an object among its entries": (
        ("graph.x", 'batch["graph"].x'),
        """
        class Graph:
            def __init__(self, x):
                self.x = x

        def move(value):
            return value.to("cuda") if isinstance(value, torch.Tensor) else value

        def forward(x, graph):
            return x + graph.x  # fault

        batch = {"x": torch.zeros(3), "graph": Graph(torch.zeros(3))}
        batch = {key: move(value) for key, value in batch.items()}
        forward(batch["x"], batch["graph"])
        """,
    ),
    "plain-attribute built over several lines": (
        ("self.table",),
        """
        class Positions(nn.Module):
            def __init__(self):
                super().__init__()
                table = torch.zeros(4, 2)
                table[:, 0] = 1.0
                self.table = table  # culprit

            def forward(self, x):
                return x + self.table  # fault

        Positions().to("cuda")(torch.zeros(4, 2).cuda())
        """,
    ),
    "model-not-moved by the caller's name": (
        ("net",),
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(1, 2, 3)

            def forward(self, x):
                return self.conv(x)  # fault

        def predict(image, device):
            net = Net()  # culprit
            return net(image.to(device))

        predict(torch.zeros(1, 1, 8, 8), "cuda")
        """,
    ),
    "module-created-in-forward at the first input": (
        ("self.project",),
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.project = None

            def forward(self, x):
                if self.project is None:
                    self.project = nn.Linear(x.shape[-1], 2)  # culprit
                return self.project(x)  # fault

        Net().to("cuda")(torch.zeros(3, 4).cuda())
        """,
    ),
    "checkpoint-map-location to the CPU": (
        ("state",),
        """
        import io
        device = torch.device("cuda")
        file = io.BytesIO()
        torch.save(torch.ones(3), file)
        file.seek(0)
        state = torch.load(file, map_location="cpu")  # culprit
        state * torch.zeros(3).to(device)  # fault
        """,
    ),
    "hardcoded-device behind a condition": (
        ("target",),
        """
        device = torch.device("cuda:1")
        logits = torch.zeros(3).to(device)
        target = torch.ones(3).to("cuda" if torch.cuda.is_available() else "cpu")  # culprit
        F.mse_loss(logits, target)  # fault
        """,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_cause_name_and_lines(case, run_script):
    names, script = CASES[case]
    ran = run_script(script)
    finding = ran.finding
    assert finding is not None, ran.error
    assert finding.location.line == (ran.line("fault") or ran.line("fault # culprit"))
    assert finding.cause == case.split()[0].rstrip(","), finding
    assert names is None or finding.culprit.name in names
    assert names is not None or finding.culprit.name.startswith("optimizer.state[")


def test_an_optimizer_that_is_empty_on_its_own_account_is_no_device_fault(run_script):
    ran = run_script("optimizer = torch.optim.SGD([], lr=0.1)")
    assert isinstance(ran.error, ValueError)
    assert ran.finding is None
