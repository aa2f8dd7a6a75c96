"""Mends of kinds that a person once found clumsy or wrong: the edit is the idiomatic one, and the program then runs."""

import difflib
import re
import runpy

import pytest
import torch

from samedevice.explaining.explain import explain
from samedevice.explaining.mending.mend import _SENTENCES

# Each script, and the lines that the mend puts there, in their order.
MENDS = {
    "a list of dicts whose keys hold other words": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)

            def forward(self, xs, rows):
                losses = []
                for y, row in zip(self.fc(torch.stack(xs)), rows):
                    losses.append((y - row["wavelength"]).abs().sum())
                return torch.stack(losses).sum()

        device = torch.device("cuda")
        net = Net().to(device)
        xs = [torch.rand(2) for _ in range(2)]
        rows = [{"wavelength": torch.rand(2), "valid": torch.ones(2)} for _ in range(2)]
        for _ in range(2):
            xs = [x.to(device) for x in xs]
            net(xs, rows).backward()
        """,
        [
            "rows = [{k: v.to(device) for k, v in t.items()} for t in rows]",
        ],
    ),
    "a buffer written over several lines, with comments and spaces in its texts": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.names = {"left  right": 2}
                self.table = torch.full(
                    (2, self.names["left  right"]),  # rows and columns
                    0.5,
                )

            def forward(self, x):
                return x + self.table

        net = Net().cuda()
        out = net(torch.ones(2, 2, device="cuda"))
        """,
        [
            'self.register_buffer("table", torch.full(',
            "), persistent=False)",
        ],
    ),
    "a state made over several lines": (
        """
        device = torch.device("cuda")
        cell = nn.LSTM(4, 8).to(device)
        state = (
            torch.zeros(1, 2, 8),  # hidden
            torch.zeros(
                1, 2, 8  # cell
            ),
        )
        out = cell(torch.ones(3, 2, 4, device=device), state)
        """,
        [
            "torch.zeros(1, 2, 8, device=device),  # hidden",
            "1, 2, 8, device=device  # cell",
        ],
    ),
    "a layer replaced by its index after the move": (
        """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        backbone = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1000))
        backbone = backbone.to(device)
        backbone[2] = nn.Linear(16, 10)
        optimizer = torch.optim.SGD(backbone.parameters(), lr=0.1)
        for step in range(3):
            x = torch.randn(4, 8).to(device)
            y = torch.randint(0, 10, (4,)).to(device)
            loss = nn.functional.cross_entropy(backbone(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        [
            "backbone[2] = nn.Linear(16, 10).to(device)",
        ],
    ),
    "a head replaced after the move": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.features = nn.Linear(8, 16)
                self.fc = nn.Linear(16, 1000)

            def forward(self, x):
                return self.fc(self.features(x).relu())

        def main():
            device = torch.device("cuda")
            model = Net().to(device)
            for p in model.parameters():
                p.requires_grad = False
            model.fc = nn.Linear(16, 10)
            optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.1)
            for step in range(3):
                x = torch.randn(4, 8, device=device)
                loss = model(x).sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

        main()
        """,
        [
            "model.fc = nn.Linear(16, 10).to(device)",
        ],
    ),
    "a head replaced in a file that moves with cuda()": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.features = nn.Linear(8, 16)
                self.fc = nn.Linear(16, 1000)

            def forward(self, x):
                return self.fc(self.features(x).relu())

        model = Net().cuda()
        num_ftrs = model.fc.in_features
        model.fc = nn.Linear(num_ftrs, 2)
        out = model(torch.randn(4, 8).cuda())
        """,
        [
            "model.fc = nn.Linear(num_ftrs, 2).cuda()",
        ],
    ),
    "a teacher on another GPU": (
        """
        teacher = nn.Linear(8, 4).to("cuda:1").eval()
        student = nn.Linear(8, 4).to("cuda:0")
        optimizer = torch.optim.Adam(student.parameters())
        for step in range(3):
            x = torch.randn(16, 8)
            with torch.no_grad():
                soft = F.softmax(teacher(x.to("cuda:1")), dim=1)
            logits = student(x.to("cuda:0"))
            loss = F.kl_div(F.log_softmax(logits, dim=1), soft, reduction="batchmean")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        [
            'loss = F.kl_div(F.log_softmax(logits, dim=1), soft.to(logits.device), reduction="batchmean")',
        ],
    ),
    "weights that a loss keeps as an attribute": (
        """
        class FocalLoss(nn.Module):
            def __init__(self, weight=None, gamma=2.0):
                super().__init__()
                self.weight = weight
                self.gamma = gamma

            def forward(self, logits, target):
                ce = F.cross_entropy(logits, target, weight=self.weight, reduction="none")
                pt = torch.exp(-ce)
                return ((1 - pt) ** self.gamma * ce).mean()

        device = torch.device("cuda")
        model = nn.Linear(8, 3).to(device)
        w = torch.tensor([1.0, 2.0, 3.0])
        criterion = FocalLoss(w)
        x, y = torch.randn(4, 8).to(device), torch.randint(0, 3, (4,)).to(device)
        loss = criterion(model(x), y)
        loss.backward()
        """,
        [
            "criterion = FocalLoss(w.to(device))",
        ],
    ),
    "a loss with a buffer": (
        """
        class FocalLoss(nn.Module):
            def __init__(self, weight, gamma=2.0):
                super().__init__()
                self.register_buffer("weight", weight)
                self.gamma = gamma

            def forward(self, logits, target):
                ce = F.cross_entropy(logits, target, weight=self.weight, reduction="none")
                pt = torch.exp(-ce)
                return ((1 - pt) ** self.gamma * ce).mean()

        device = torch.device("cuda")
        model = nn.Linear(8, 3).to(device)
        criterion = FocalLoss(torch.tensor([1.0, 2.0, 3.0]))
        x, y = torch.randn(4, 8).to(device), torch.randint(0, 3, (4,)).to(device)
        loss = criterion(model(x), y)
        loss.backward()
        """,
        [
            "criterion = FocalLoss(torch.tensor([1.0, 2.0, 3.0])).to(device)",
        ],
    ),
    "an averaging object made before the move": (
        """
        class EMA:
            def __init__(self, model, decay=0.9):
                self.decay = decay
                self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

            def update(self, model):
                for name, p in model.named_parameters():
                    self.shadow[name] = self.decay * self.shadow[name] + (1 - self.decay) * p.detach()

        device = torch.device("cuda")
        model = nn.Linear(4, 4)
        ema = EMA(model)
        model.to(device)
        for step in range(3):
            model(torch.randn(2, 4, device=device)).sum().backward()
            ema.update(model)
        """,
        [
            "model.to(device)",
        ],
    ),
    "a dict of averages made before the move": (
        """
        device = torch.device("cuda")
        model = nn.Linear(4, 4)
        shadow = {k: v.clone() for k, v in model.state_dict().items()}
        model.to(device)
        for step in range(3):
            model(torch.randn(2, 4, device=device)).sum().backward()
            with torch.no_grad():
                for k, v in model.state_dict().items():
                    shadow[k].mul_(0.9).add_(v, alpha=0.1)
        """,
        [
            "model.to(device)",
        ],
    ),
    "a copy of the model made before the move": (
        """
        import copy

        device = torch.device("cuda")
        model = nn.Linear(4, 4)
        ema_model = copy.deepcopy(model)
        model.to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            model(torch.randn(2, 4, device=device)).sum().backward()
            optimizer.step()
            with torch.no_grad():
                for pe, p in zip(ema_model.parameters(), model.parameters()):
                    pe.mul_(0.9).add_(p, alpha=0.1)
        """,
        [
            "model.to(device)",
        ],
    ),
    "an attribute before super().__init__()": (
        """
        class Net(nn.Module):
            def __init__(self, n):
                self.scale = torch.ones(n)
                super().__init__()
                self.fc = nn.Linear(n, n)

            def forward(self, x):
                return self.fc(x) * self.scale

        model = Net(4).cuda()
        model(torch.randn(2, 4).cuda())
        """,
        [
            'self.register_buffer("scale", torch.ones(n), persistent=False)',
        ],
    ),
    "an attribute whose name the class has": (
        """
        class Net(nn.Module):
            mean = torch.zeros(4)
            def __init__(self, n):
                super().__init__()
                self.fc = nn.Linear(n, n)
                self.mean = torch.ones(n)

            def forward(self, x):
                return self.fc(x - self.mean)

        model = Net(4).cuda()
        model(torch.randn(2, 4).cuda())
        """,
        [
            "return self.fc(x - self.mean.to(x.device))",
        ],
    ),
    "a random state from a checkpoint sent to the device": (
        """
        import os, tempfile
        device = torch.device("cuda")
        model = nn.Linear(4, 3).to(device)
        path = os.path.join(tempfile.mkdtemp(), "ck.pt")
        torch.save({"model": model.state_dict(), "rng_state": torch.get_rng_state()}, path)
        checkpoint = torch.load(path, map_location="cuda")
        model.load_state_dict(checkpoint["model"])
        torch.set_rng_state(checkpoint["rng_state"])
        """,
        [
            'torch.set_rng_state(checkpoint["rng_state"].cpu())',
        ],
    ),
    "a state brought to the CPU by a helper": (
        """
        class RNNModel(nn.Module):
            def __init__(self, ntoken, nhid):
                super().__init__()
                self.encoder = nn.Embedding(ntoken, nhid)
                self.rnn = nn.LSTM(nhid, nhid)
                self.decoder = nn.Linear(nhid, ntoken)

            def forward(self, input, hidden):
                output, hidden = self.rnn(self.encoder(input), hidden)
                return self.decoder(output), hidden

            def init_hidden(self, bsz):
                weight = next(self.parameters())
                return (weight.new_zeros(1, bsz, 8), weight.new_zeros(1, bsz, 8))

        def repackage_hidden(h):
            if isinstance(h, torch.Tensor):
                return h.detach().cpu()
            return tuple(repackage_hidden(v) for v in h)

        device = torch.device("cuda")
        model = RNNModel(10, 8).to(device)
        hidden = model.init_hidden(2)
        data = torch.randint(0, 10, (12, 2)).to(device)
        for i in range(0, 12, 4):
            hidden = repackage_hidden(hidden)
            output, hidden = model(data[i:i + 4], hidden)
            output.sum().backward()
        """,
        [
            "return h.detach()",
        ],
    ),
    "a gradient given to autograd": (
        """
        device = torch.device("cuda")
        critic = nn.Linear(4, 1).to(device)

        def gradient_penalty(critic, real, fake):
            alpha = torch.rand(real.size(0), 1, device=real.device)
            mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
            scores = critic(mixed)
            grads = torch.autograd.grad(
                outputs=scores,
                inputs=mixed,
                grad_outputs=torch.ones(scores.size()),
                create_graph=True,
                retain_graph=True,
            )[0]
            return ((grads.norm(2, dim=1) - 1) ** 2).mean()

        real, fake = torch.randn(8, 4).to(device), torch.randn(8, 4).to(device)
        gradient_penalty(critic, real, fake).backward()
        """,
        [
            "grad_outputs=torch.ones(scores.size(), device=device),",
        ],
    ),
    "a loader that shuffles on a default device": (
        """
        from torch.utils.data import DataLoader, TensorDataset
        torch.set_default_device("cuda")
        data = TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,)))
        loader = DataLoader(data, batch_size=4, shuffle=True)
        model = nn.Linear(4, 3)
        for x, y in loader:
            nn.functional.cross_entropy(model(x), y).backward()
        """,
        [
            'loader = DataLoader(data, batch_size=4, shuffle=True, generator=torch.Generator(device="cuda"))',
        ],
    ),
    "a split on a default device": (
        """
        from torch.utils.data import TensorDataset, random_split
        torch.set_default_device("cuda")
        data = TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,)))
        train, test = random_split(data, [12, 4])
        """,
        [
            'train, test = random_split(data, [12, 4], generator=torch.Generator(device="cuda"))',
        ],
    ),
    "a distribution in an attribute": (
        """
        from torch.distributions import Normal

        class VAE(nn.Module):
            def __init__(self, d):
                super().__init__()
                self.enc = nn.Linear(8, 2 * d)
                self.dec = nn.Linear(d, 8)
                self.prior = Normal(torch.zeros(d), torch.ones(d))

            def forward(self, x):
                mu, logvar = self.enc(x).chunk(2, dim=1)
                z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
                kl = -self.prior.log_prob(z).sum(1)
                return self.dec(z), kl

        device = "cuda" if torch.cuda.is_available() else "cpu"
        model = VAE(3).to(device)
        recon, kl = model(torch.randn(4, 8).to(device))
        (recon.sum() + kl.sum()).backward()
        """,
        [
            'self.register_buffer("prior_loc", torch.zeros(d), persistent=False)',
            'self.register_buffer("prior_scale", torch.ones(d), persistent=False)',
            "@property",
            "def prior(self):",
            "return Normal(self.prior_loc, self.prior_scale)",
        ],
    ),
    "a distribution that is drawn from": (
        """
        from torch.distributions import Normal, kl_divergence

        class Flow(nn.Module):
            def __init__(self, d):
                super().__init__()
                self.net = nn.Linear(d, d)
                self.base = Normal(torch.zeros(d), 1.0)

            def sample(self, n):
                z = self.base.sample((n,))
                return self.net(z)

        model = Flow(3).cuda()
        model.sample(4)
        """,
        [
            'self.register_buffer("base_loc", torch.zeros(d), persistent=False)',
            "@property",
            "def base(self):",
            "return Normal(self.base_loc, 1.0)",
        ],
    ),
    "numbers collected for NumPy": (
        """
        import numpy as np
        device = torch.device("cuda")
        model = nn.Linear(4, 1).to(device)
        losses = []
        for step in range(4):
            loss = model(torch.randn(8, 4, device=device)).pow(2).mean()
            loss.backward()
            losses.append(loss)
        print("mean loss", np.mean(losses))
        """,
        [
            "losses.append(loss.item())",
        ],
    ),
    "arrays collected for NumPy": (
        """
        import numpy as np
        device = torch.device("cuda")
        model = nn.Linear(4, 3).to(device)
        preds = []
        with torch.no_grad():
            for step in range(4):
                preds.append(model(torch.randn(8, 4, device=device)).argmax(1))
        print(np.concatenate(preds))
        """,
        [
            "preds.append(model(torch.randn(8, 4, device=device)).argmax(1).cpu())",
        ],
    ),
    "a metric on the CPU": (
        """
        class ConfusionMatrix:
            def __init__(self, n):
                self.n = n
                self.matrix = torch.zeros(n, n, dtype=torch.long)

            def update(self, pred, target):
                index = target * self.n + pred
                self.matrix += torch.bincount(index, minlength=self.n ** 2).reshape(self.n, self.n)

            def compute(self):
                return self.matrix.diag().float() / self.matrix.sum(1).clamp(min=1)

        device = torch.device("cuda")
        model = nn.Linear(4, 3).to(device)
        metric = ConfusionMatrix(3)
        for _ in range(3):
            x, y = torch.randn(8, 4).to(device), torch.randint(0, 3, (8,)).to(device)
            metric.update(model(x).argmax(1), y)
        print(metric.compute())
        """,
        [
            "self.matrix += torch.bincount(index, minlength=self.n ** 2).reshape(self.n, self.n).cpu()",
        ],
    ),
    "factories in a module's method": (
        """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.emb = nn.Embedding(10, 4)
                self.fc = nn.Linear(4, 4)

            def forward(self, x):
                positions = torch.arange(x.size(1))
                noise = torch.zeros(x.size(0), x.size(1), 4)
                return self.fc(self.emb(x) + self.emb(positions)) + noise

        model = Net().to(device)
        model(torch.randint(0, 10, (2, 5)).to(device))
        """,
        [
            "positions = torch.arange(x.size(1), device=x.device)",
            "noise = torch.zeros(x.size(0), x.size(1), 4, device=x.device)",
        ],
    ),
    "a model moved between steps": (
        """
        class Trainer:
            def __init__(self, model):
                self.model = model
                self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

            def step(self, x):
                loss = self.model(x).pow(2).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                return loss.item()

        trainer = Trainer(nn.Linear(4, 4))
        trainer.step(torch.randn(2, 4))
        trainer.model.to("cuda")
        trainer.step(torch.randn(2, 4).to("cuda"))
        """,
        [
            "trainer.optimizer.load_state_dict(trainer.optimizer.state_dict())",
        ],
    ),
    "state loaded before the move": (
        """
        import os, tempfile
        path = os.path.join(tempfile.mkdtemp(), "ck.pt")
        device = torch.device("cuda")

        def build():
            model = nn.Linear(4, 4)
            return model, torch.optim.Adam(model.parameters(), lr=1e-3)

        model, optimizer = build()
        model(torch.randn(2, 4)).sum().backward()
        optimizer.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)

        model, optimizer = build()
        checkpoint = torch.load(path, map_location="cpu")
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        model.to(device)
        for step in range(3):
            optimizer.zero_grad()
            model(torch.randn(2, 4, device=device)).sum().backward()
            optimizer.step()
        """,
        [
            "model.to(device)",
        ],
    ),
    "a generator that others share": (
        """
        device = torch.device("cuda")
        generator = torch.Generator().manual_seed(0)
        perm = torch.randperm(16, generator=generator)
        data = torch.randn(16, 4, generator=generator)
        model = nn.Linear(4, 4).to(device)
        for i in range(2):
            noise = torch.randn(8, 4, generator=generator, device=device)
            model(data[perm[:8]].to(device) + noise)
        """,
        [
            "noise = torch.randn(8, 4, generator=generator).to(device)",
        ],
    ),
    "a wrapped model on the CPU": (
        """
        device = torch.device("cuda:0")
        model = nn.DataParallel(nn.Linear(4, 4), device_ids=[0, 1])
        x = torch.randn(8, 4).to(device)
        model(x).sum().backward()
        """,
        [
            "model = nn.DataParallel(nn.Linear(4, 4), device_ids=[0, 1]).to(device)",
        ],
    ),
    "a scaler that steps the other optimizer": (
        """
        device = torch.device("cuda")
        gen, disc = nn.Linear(4, 4).to(device), nn.Linear(4, 1).to(device)
        opt_g = torch.optim.Adam(gen.parameters())
        opt_d = torch.optim.Adam(disc.parameters())
        scaler = torch.amp.GradScaler("cuda")
        for step in range(2):
            z = torch.randn(8, 4, device=device)
            opt_d.zero_grad()
            loss_d = disc(gen(z).detach()).mean()
            scaler.scale(loss_d).backward()
            scaler.step(opt_g)
            scaler.update()
        """,
        [
            "scaler.step(opt_d)",
        ],
    ),
    "slow weights taken before the move": (
        """
        class Lookahead:
            def __init__(self, optimizer, k=2, alpha=0.5):
                self.optimizer, self.k, self.alpha = optimizer, k, alpha
                self.count = 0
                self.slow = [[p.detach().clone() for p in group["params"]] for group in optimizer.param_groups]

            def step(self):
                self.optimizer.step()
                self.count += 1
                if self.count % self.k == 0:
                    for group, slow in zip(self.optimizer.param_groups, self.slow):
                        for p, q in zip(group["params"], slow):
                            q += self.alpha * (p.data - q)
                            p.data.copy_(q)

        model = nn.Linear(4, 2)
        optimizer = Lookahead(torch.optim.SGD(model.parameters(), lr=0.1))
        model.cuda()
        for i in range(4):
            model(torch.randn(2, 4).cuda()).sum().backward()
            optimizer.step()
        """,
        [
            "model.cuda()",
        ],
    ),
    "positions kept by tracing": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.emb = nn.Embedding(10, 4)
                self.pos = nn.Embedding(16, 4)

            def forward(self, x):
                positions = torch.arange(x.size(1), device=x.device)
                return self.emb(x) + self.pos(positions)

        net = Net().eval()
        traced = torch.jit.trace(net, torch.randint(0, 10, (2, 5)))
        traced = traced.to("cuda")
        traced(torch.randint(0, 10, (2, 5)).cuda())
        """,
        [
            'traced = torch.jit.trace(net.to("cuda"), torch.randint(0, 10, (2, 5)).to("cuda"))',
        ],
    ),
    "a target network beside its policy": (
        """
        import random
        from collections import deque, namedtuple

        Transition = namedtuple("Transition", "state action reward next_state done")
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

        class QNet(nn.Module):
            def __init__(self, n_obs, n_act):
                super().__init__()
                self.net = nn.Sequential(nn.Linear(n_obs, 32), nn.ReLU(), nn.Linear(32, n_act))

            def forward(self, x):
                return self.net(x)

        class Memory:
            def __init__(self, size):
                self.buffer = deque(maxlen=size)

            def push(self, *args):
                self.buffer.append(Transition(*args))

            def sample(self, n):
                batch = random.sample(list(self.buffer), n)
                return Transition(*(torch.stack(x) for x in zip(*batch)))

        policy = QNet(4, 2).to(device)
        target = QNet(4, 2)
        target.load_state_dict(policy.state_dict())
        optimizer = torch.optim.Adam(policy.parameters())
        memory = Memory(100)
        for _ in range(32):
            action = torch.tensor(random.randrange(2))
            memory.push(torch.randn(4), action, torch.tensor(1.0), torch.randn(4), torch.tensor(0.0))
        for step in range(2):
            b = memory.sample(8)
            q = policy(b.state.to(device)).gather(1, b.action.to(device).unsqueeze(1)).squeeze(1)
            with torch.no_grad():
                best = target(b.next_state.to(device)).max(1).values
            expected = b.reward.to(device) + 0.99 * best * (1 - b.done.to(device))
            loss = F.smooth_l1_loss(q, expected)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        [
            "target = QNet(4, 2).to(device)",
        ],
    ),
    "a queue in an attribute, labels in forward": (
        """
        class MoCo(nn.Module):
            def __init__(self, dim=8, K=32):
                super().__init__()
                self.encoder_q = nn.Linear(16, dim)
                self.encoder_k = nn.Linear(16, dim)
                self.K = K
                self.queue = F.normalize(torch.randn(dim, K), dim=0)
                self.queue_ptr = 0

            @torch.no_grad()
            def enqueue(self, keys):
                n = keys.shape[0]
                self.queue[:, self.queue_ptr:self.queue_ptr + n] = keys.T
                self.queue_ptr = (self.queue_ptr + n) % self.K

            def forward(self, im_q, im_k):
                q = F.normalize(self.encoder_q(im_q), dim=1)
                with torch.no_grad():
                    k = F.normalize(self.encoder_k(im_k), dim=1)
                l_pos = (q * k).sum(1, keepdim=True)
                l_neg = q @ self.queue.clone().detach()
                logits = torch.cat([l_pos, l_neg], dim=1) / 0.07
                labels = torch.zeros(logits.shape[0], dtype=torch.long)
                self.enqueue(k)
                return logits, labels

        device = torch.device("cuda")
        model = MoCo().to(device)
        criterion = nn.CrossEntropyLoss().to(device)
        for _ in range(2):
            a, b = torch.randn(8, 16, device=device), torch.randn(8, 16, device=device)
            logits, labels = model(a, b)
            criterion(logits, labels).backward()
        """,
        [
            'self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0), persistent=False)',
            "labels = torch.zeros(logits.shape[0], dtype=torch.long, device=logits.device)",
        ],
    ),
    "a teacher that a trainer keeps": (
        """
        class Trainer:
            def __init__(self, student, teacher, temperature=2.0):
                self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
                self.student = student.to(self.device)
                self.teacher = teacher.eval()
                self.T = temperature
                self.opt = torch.optim.SGD(self.student.parameters(), lr=0.1)

            def step(self, x, y):
                x, y = x.to(self.device), y.to(self.device)
                s = self.student(x)
                with torch.no_grad():
                    t = self.teacher(x)
                soft = F.softmax(t / self.T, 1)
                loss = F.cross_entropy(s, y) + F.kl_div(F.log_softmax(s / self.T, 1), soft, reduction="batchmean")
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                return loss.item()

        trainer = Trainer(nn.Linear(8, 3), nn.Linear(8, 3))
        for _ in range(2):
            trainer.step(torch.randn(4, 8), torch.randint(0, 3, (4,)))
        """,
        [
            "self.teacher = teacher.eval().to(self.device)",
        ],
    ),
    "states made side by side": (
        """
        class CharRNN(nn.Module):
            def __init__(self, vocab, hidden, layers=2):
                super(CharRNN, self).__init__()
                self.hidden, self.layers = hidden, layers
                self.emb = nn.Embedding(vocab, hidden)
                self.lstm = nn.LSTM(hidden, hidden, layers, batch_first=True)
                self.fc = nn.Linear(hidden, vocab)

            def forward(self, x, state):
                out, state = self.lstm(self.emb(x), state)
                return self.fc(out), state

            def init_state(self, batch):
                return (torch.zeros(self.layers, batch, self.hidden), torch.zeros(self.layers, batch, self.hidden))

        device = torch.device("cuda")
        net = CharRNN(20, 16).to(device)
        opt = torch.optim.Adam(net.parameters())
        data = torch.randint(0, 20, (4, 33))
        for epoch in range(2):
            h, c = net.init_state(4)
            for i in range(0, 32, 8):
                x, y = data[:, i:i + 8].to(device), data[:, i + 1:i + 9].to(device)
                h, c = h.detach(), c.detach()
                out, (h, c) = net(x, (h, c))
                loss = nn.functional.cross_entropy(out.reshape(-1, 20), y.reshape(-1))
                opt.zero_grad()
                loss.backward()
                opt.step()

        def sample(net, start, n):
            net.eval()
            state = net.init_state(1)
            token = torch.tensor([[start]])
            result = []
            with torch.no_grad():
                for _ in range(n):
                    out, state = net(token, state)
                    token = out[:, -1].argmax(-1, keepdim=True)
                    result.append(token.item())
            return result

        print(sample(net, 3, 5))
        """,
        [
            "return (torch.zeros(self.layers, batch, self.hidden, device=next(self.parameters()).device), "
            "torch.zeros(self.layers, batch, self.hidden, device=next(self.parameters()).device))",
            "token = token.to(device)",
        ],
    ),
    "layers put into a model that has moved": (
        """
        class LoRALinear(nn.Module):
            def __init__(self, base, r=2, alpha=4.0):
                super().__init__()
                self.base = base
                self.A = nn.Parameter(torch.randn(r, base.in_features) * 0.01)
                self.B = nn.Parameter(torch.zeros(base.out_features, r))
                self.scale = torch.tensor([alpha / r] * base.out_features)

            def forward(self, x):
                return self.base(x) + (x @ self.A.T @ self.B.T) * self.scale

        def inject(model):
            for name, child in list(model.named_children()):
                if isinstance(child, nn.Linear):
                    setattr(model, name, LoRALinear(child))
                else:
                    inject(child)

        inner = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), inner, nn.Linear(8, 2)).cuda()
        inject(model)
        params = [p for n, p in model.named_parameters() if n.endswith(("A", "B"))]
        opt = torch.optim.AdamW(params, lr=1e-3)
        for _ in range(2):
            loss = model(torch.randn(4, 8).cuda()).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
        [
            'self.register_buffer("scale", torch.tensor([alpha / r] * base.out_features), persistent=False)',
            "model.cuda()",
        ],
    ),
    "copies of parameters in a variable": (
        """
        import copy

        class EarlyStopping:
            def __init__(self):
                self.best, self.state = None, None

            def __call__(self, loss, model):
                if self.best is None or loss < self.best:
                    self.best = loss
                    self.state = {k: v.cpu() for k, v in model.state_dict().items()}

        def l2_from_start(model, start):
            return sum(((p - start[n]) ** 2).sum() for n, p in model.named_parameters())

        device = torch.device("cuda")
        model = nn.Linear(4, 1)
        start = copy.deepcopy(dict(model.named_parameters()))
        model.to(device)
        stopper = EarlyStopping()
        opt = torch.optim.Adam(model.parameters())
        best_loss = torch.tensor(float("inf"))
        for epoch in range(3):
            x = torch.randn(8, 4, device=device)
            loss = model(x).pow(2).mean() + 0.1 * l2_from_start(model, start)
            opt.zero_grad()
            loss.backward()
            opt.step()
            stopper(loss.item(), model)
        """,
        [
            "model.to(device)",
        ],
    ),
    "a batch whose own to() forgets a field": (
        """
        from dataclasses import dataclass

        @dataclass
        class Batch:
            tokens: torch.Tensor
            mask: torch.Tensor
            meta: dict

            def to(self, device):
                return Batch(self.tokens.to(device), self.mask, self.meta)

        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.emb = nn.Embedding(10, 8)
                self.fc = nn.Linear(8, 4)

            def forward(self, batch):
                h = self.emb(batch.tokens)
                h = h.masked_fill(~batch.mask[..., None], 0.0)
                return self.fc(h) + batch.meta["bias"]

        device = torch.device("cuda")
        model = Tagger().to(device)
        for _ in range(2):
            batch = Batch(torch.randint(0, 10, (2, 5)), torch.rand(2, 5) > 0.5, {"bias": torch.zeros(4)})
            batch = batch.to(device)
            model(batch).sum().backward()
        """,
        [
            "return Batch(self.tokens.to(device), self.mask.to(device), self.meta)",
            'return self.fc(h) + batch.meta["bias"].to(next(self.parameters()).device)',
        ],
    ),
    "a helper's table": (
        """
        class AnchorBox:
            def __init__(self, size=4):
                ys, xs = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
                self.centers = torch.stack([xs, ys], dim=-1).reshape(-1, 2).float()

            def encode(self, boxes):
                d = torch.cdist(boxes[:, :2], self.centers)
                return d.argmin(1)

        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(3, 5, 1)

            def forward(self, images):
                return self.conv(images).flatten(2).transpose(1, 2)

        device = torch.device("cuda:0")
        model = Head().to(device)
        anchors = AnchorBox()
        images = torch.randn(2, 3, 4, 4)
        targets = [{"boxes": torch.rand(3, 4) * 4, "labels": torch.ones(3, dtype=torch.long)} for _ in range(2)]
        images = images.to(device)
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        out = model(images)
        loss = 0
        for i, t in enumerate(targets):
            idx = anchors.encode(t["boxes"])
            loss = loss + nn.functional.l1_loss(out[i, idx, :4], t["boxes"])
        loss.backward()
        """,
        [
            "d = torch.cdist(boxes[:, :2], self.centers.to(boxes.device))",
        ],
    ),
    "metadata beside an image that is moved": (
        """
        class CFG:
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

        class PetNet(nn.Module):
            def __init__(self):
                super().__init__()
                self.cnn = nn.Conv2d(3, 4, 3)
                self.fc = nn.Linear(4 + 5, 1)

            def forward(self, image, meta):
                x = self.cnn(image).mean((2, 3))
                x = torch.cat([x, meta], dim=1)
                return self.fc(x)

        def train_fn(loader, model):
            for step, batch in enumerate(loader):
                image = batch["image"].to(CFG.device, non_blocking=True)
                meta = batch["meta"]
                model(image, meta).sum().backward()

        rows = [{"image": torch.randn(3, 8, 8), "meta": torch.randn(5)} for _ in range(4)]
        train_fn(torch.utils.data.DataLoader(rows, batch_size=2), PetNet().to(CFG.device))
        """,
        [
            'meta = batch["meta"].to(CFG.device, non_blocking=True)',
        ],
    ),
    "labels that the validation loop forgets": (
        """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        net = nn.Linear(4, 3).to(device)
        test = [(torch.randn(8, 4), torch.randint(0, 3, (8,))) for _ in range(2)]
        correct = 0
        with torch.no_grad():
            for X, y in test:
                X = X.to(device)
                pred = net(X).argmax(1)
                correct += (pred == y).sum().item()
        """,
        [
            "y = y.to(device)",
        ],
    ),
    "targets of a detector, a list of dicts": (
        """
        class Detector(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(8, 4)

            def forward(self, images, targets):
                boxes = self.head(torch.stack(images))
                losses = []
                for box, t in zip(boxes, targets):
                    losses.append((box - t["boxes"]).abs().sum())
                return torch.stack(losses).sum()

        device = torch.device("cuda")
        model = Detector().to(device)
        images = [torch.rand(8) for _ in range(2)]
        targets = [{"boxes": torch.rand(3, 4), "labels": torch.ones(3)} for _ in range(2)]
        for _ in range(2):
            images = [image.to(device) for image in images]
            model(images, targets).backward()
        """,
        [
            "targets = [{k: v.to(device) for k, v in t.items()} for t in targets]",
        ],
    ),
    "a schedule kept by an object that knows its device": (
        """
        class Diffusion:
            def __init__(self, steps=50, device="cuda"):
                self.device = device
                self.beta = torch.linspace(1e-4, 0.02, steps)
                self.alpha_hat = torch.cumprod(1.0 - self.beta, dim=0)

            def noise(self, x, t):
                scale = torch.sqrt(self.alpha_hat[t])[:, None]
                return scale * x + torch.sqrt(1 - self.alpha_hat[t])[:, None] * torch.randn_like(x)

        diffusion = Diffusion()
        x = torch.randn(4, 3, device="cuda")
        diffusion.noise(x, torch.randint(0, 50, (4,), device="cuda"))
        """,
        [
            "self.alpha_hat = torch.cumprod(1.0 - self.beta, dim=0).to(device)",
        ],
    ),
    "an adjacency that a method normalises": (
        """
        class GCN(nn.Module):
            def __init__(self, adj, d, c):
                super().__init__()
                self.adj = adj
                self.lin = nn.Linear(d, c)

            def normalised(self):
                return self.adj / self.adj.sum(1, keepdim=True)

            def forward(self, x):
                adj = self.normalised()
                return adj @ self.lin(x)

        adj = torch.ones(6, 6)
        model = GCN(adj, 4, 3).to("cuda")
        model(torch.randn(6, 4).to("cuda")).sum().backward()
        """,
        [
            'self.register_buffer("adj", adj, persistent=False)',
        ],
    ),
    "a variance that a distribution is given": (
        """
        class ActorCritic(nn.Module):
            def __init__(self, o, a):
                super().__init__()
                self.actor = nn.Linear(o, a)
                self.action_var = torch.full((a,), 0.36)

            def act(self, s):
                dist = torch.distributions.Normal(self.actor(s), self.action_var.sqrt())
                return dist.sample()

        policy = ActorCritic(4, 2).to("cuda")
        policy.act(torch.randn(4, device="cuda"))
        """,
        [
            'self.register_buffer("action_var", torch.full((a,), 0.36), persistent=False)',
        ],
    ),
    "a teacher hidden from the module that holds it": (
        """
        class Distiller(nn.Module):
            def __init__(self, teacher, student):
                super().__init__()
                self.__dict__["teacher"] = teacher
                self.student = student

            def forward(self, x):
                with torch.no_grad():
                    t = self.teacher(x)
                return F.mse_loss(self.student(x), t)

        def build(width):
            return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 4))

        teacher = build(32)
        d = Distiller(teacher, build(8))
        d.cuda()
        d(torch.randn(4, 8).cuda()).backward()
        """,
        [
            "teacher = build(32).cuda()",
        ],
    ),
    "a target for a model in parts": (
        """
        class TwoStage(nn.Module):
            def __init__(self):
                super().__init__()
                self.stage1 = nn.Linear(8, 16).to("cuda:0")
                self.head = nn.Linear(16, 4).to("cuda:1")

            def forward(self, x):
                return self.head(self.stage1(x.to("cuda:0")).to("cuda:1"))

        model = TwoStage()
        x, t = torch.randn(4, 8), torch.randint(0, 4, (4,))
        F.cross_entropy(model(x), t.to("cuda:0")).backward()
        """,
        [
            'F.cross_entropy(model(x), t.to("cuda:1")).backward()',
        ],
    ),
    "a target that is sent where the output is not": (
        """
        model = nn.Linear(4, 3).to("cuda:1")
        for x, target in [(torch.randn(5, 4), torch.randint(0, 3, (5,)))]:
            out = model(x.to("cuda:1"))
            loss = F.cross_entropy(out, target.to("cuda:0"))
        """,
        [
            "loss = F.cross_entropy(out, target.to(out.device))",
        ],
    ),
    "a bias table that is filled on the CPU": (
        """
        class Attention(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.proj = nn.Linear(dim, dim)
                self.bias = {}

            def get_bias(self, n):
                if n not in self.bias:
                    i = torch.arange(n)
                    self.bias[n] = -(i[None] - i[:, None]).abs().float()
                return self.bias[n]

            def forward(self, x):
                x = self.proj(x)
                return (x @ x.transpose(-1, -2) + self.get_bias(x.size(1))).softmax(-1) @ x

        Attention(8).to("cuda")(torch.rand(2, 5, 8, device="cuda")).sum().backward()
        """,
        [
            "i = torch.arange(n, device=next(self.parameters()).device)",
        ],
    ),
    "labels mixed by a function of a script": (
        """
        def mix(x, y):
            onehot = torch.eye(5)[y]
            return x, 0.5 * onehot + 0.5 * onehot.flip(0)

        if __name__ == "__main__":
            device = "cuda:0"
            mix(torch.rand(4, 3, device=device), torch.randint(0, 5, (4,), device=device))
        """,
        [
            "onehot = torch.eye(5, device=x.device)[y]",
        ],
    ),
    "a generator from a helper, given to a loader": (
        """
        from torch.utils.data import DataLoader

        def seeded(seed, device):
            g = torch.Generator(device=device)
            g.manual_seed(seed)
            return g

        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        g = seeded(0, device)
        for x in DataLoader(torch.randn(8, 3), batch_size=2, shuffle=True, generator=g):
            pass
        """,
        [
            'g = seeded(0, "cpu")',
        ],
    ),
    "scores of several GPUs, joined at the end": (
        """
        class Worker:
            def __init__(self, rank):
                self.device = torch.device("cuda", rank)
                self.model = nn.Linear(4, 2).to(self.device)
                self.scores = []

            @torch.no_grad()
            def process(self, x):
                self.scores.append(self.model(x.to(self.device)))

        workers = [Worker(rank) for rank in range(2)]
        for worker in workers:
            worker.process(torch.randn(3, 4))
        merged = [score for worker in workers for score in worker.scores]
        print(torch.cat(merged).mean())
        """,
        [
            "print(torch.cat([each.cpu() for each in merged]).mean())",
        ],
    ),
    "DataParallel around a model on the second GPU": (
        """
        gpu = 1
        device = torch.device(f"cuda:{gpu}")
        model = nn.Linear(4, 2).to(device)
        model = nn.DataParallel(model)
        model(torch.randn(6, 4).to(device)).sum().backward()
        """,
        [
            "model = nn.DataParallel(model, device_ids=[1, 0])",
        ],
    ),
}


@pytest.fixture(autouse=True)
def usual_default_device():
    yield
    torch.set_default_device(None)


def mended(text, fix):
    lines = text.split("\n")
    for edit in sorted(fix.edits, key=lambda edit: -edit.line):
        assert "\n".join(lines[edit.line - 1 : edit.end_line]) == edit.old
        lines[edit.line - 1 : edit.end_line] = edit.new.split("\n") if edit.new else []
    return "\n".join(lines)


def added(before, after):
    """The lines of `after` that are new, or stand before what they stood behind."""
    changes = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line[2:].strip() for line in changes if line.startswith("+ ") and line[2:].strip()]


@pytest.mark.parametrize("case", MENDS)
def test_the_mend_is_the_idiomatic_one_and_the_program_runs(case, run_script):
    script, lines = MENDS[case]
    ran = run_script(script)
    first = text = ran.text
    for _ in range(3):
        text = mended(text, ran.finding.fix)
        ran = run_script(text, preamble=False)
        if ran.error is None:
            break
    assert ran.error is None, text
    assert sorted(added(first, text)) == sorted(lines)
    assert ran.silent == ()


WITHOUT_CUDA = {
    "a device": (
        'device = torch.device("cuda")',
        'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")',
    ),
    "a string": ("device = 'cuda:0'", "device = 'cuda:0' if torch.cuda.is_available() else 'cpu'"),
}


@pytest.mark.skipif(torch.cuda.is_available() or torch.version.cuda is not None, reason="a build without CUDA is meant")
@pytest.mark.parametrize("case", WITHOUT_CUDA)
def test_a_build_without_cuda_is_asked_first(case, tmp_path):
    before, after = WITHOUT_CUDA[case]
    path = tmp_path / "train.py"
    path.write_text(f"import torch\n{before}\nx = torch.zeros(3, device=device)\n")
    with pytest.raises(AssertionError, match="not compiled with CUDA") as raised:
        runpy.run_path(str(path))
    finding = explain(raised.value)
    assert (finding.cause, finding.location.line) == ("hardcoded-device", 3)
    (edit,) = finding.fix.edits
    assert (edit.line, edit.old, edit.new) == (2, before, after)


def test_a_random_state_that_is_no_bytes_is_no_device_fault():
    with pytest.raises(TypeError, match="ByteTensor") as raised:
        torch.set_rng_state(torch.zeros(3))
    assert explain(raised.value) is None


SENTENCES = [fix.summary for fix in _SENTENCES.values()]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_names_no_variable_that_the_user_may_not_have(sentence):
    assert not re.search(r"\b(x|y|mask|teacher|batch|lengths|criterion) =", sentence)
