"""The same seeds give the same values, bit for bit, on a simulated device and on the CPU."""

import io

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import samedevice


def train(model, batches, loss, optimizer=torch.optim.Adam, **options):
    optimizer = optimizer(model.parameters(), **options)
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        value = loss(model, *batch)
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(value.item())
    return losses, [p.detach().cpu() for p in model.state_dict().values()]


def mlp(device):
    model = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Dropout(0.2), nn.Linear(8, 3)).to(device)
    batches = [(torch.randn(6, 5).to(device), torch.randint(3, (6,)).to(device)) for _ in range(4)]
    return train(model, batches, lambda m, x, y: F.cross_entropy(m(x), y), lr=0.01)


def convolutional(device):
    layers = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2)]
    model = nn.Sequential(*layers).to(device)
    batches = [(torch.randn(4, 3, 8, 8, device=device), torch.ones(4, 2, device=device)) for _ in range(3)]
    loss = lambda m, x, y: F.binary_cross_entropy_with_logits(m(x), y)  # noqa: E731
    return train(model, batches, loss, torch.optim.SGD, lr=0.1, momentum=0.9)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.head = nn.Embedding(11, 6), nn.LSTM(6, 7, 2, batch_first=True), nn.Linear(7, 11)

    def forward(self, tokens, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True)
        padded, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.head(padded)


def recurrent(device):
    model = Recurrent().to(device)
    batches = [(torch.randint(11, (3, 5), device=device), torch.tensor([5, 3, 2])) for _ in range(3)]
    loss = lambda m, x, n: F.cross_entropy(m(x, n).flatten(0, 1), x.flatten())  # noqa: E731
    return train(model, batches, loss, torch.optim.RMSprop)


def transformer(device):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    model = nn.Sequential(nn.Embedding(9, 8), nn.TransformerEncoder(layer, 2), nn.Linear(8, 9)).to(device)
    batches = [(torch.randint(9, (2, 6), device=device),) for _ in range(3)]
    loss = lambda m, x: F.cross_entropy(m(x).flatten(0, 1), x.flatten(), label_smoothing=0.1)  # noqa: E731
    return train(model, batches, loss, torch.optim.AdamW, lr=1e-3)


class Scatter(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(4, 6), nn.Linear(6, 2)

    def forward(self, x, source, target):
        messages = self.inner(x)[source]
        summed = torch.zeros(len(x), 6, device=x.device).index_add(0, target, messages)
        return self.outer(summed.relu()).log_softmax(-1)


def graph(device):
    model = Scatter().to(device)
    edges = torch.randint(7, (2, 20), device=device)
    batches = [(torch.randn(7, 4, device=device), *edges) for _ in range(3)]
    return train(model, batches, lambda m, *b: -m(*b)[:, 0].mean(), torch.optim.Adagrad)


def adversarial(device):
    generator, critic = (
        nn.Linear(4, 3).to(device),
        nn.Sequential(nn.Linear(3, 5), nn.LeakyReLU(), nn.Linear(5, 1)).to(device),
    )
    optimizers = [torch.optim.Adam(m.parameters(), betas=(0.5, 0.9)) for m in (generator, critic)]
    losses = []
    for _ in range(3):
        real, noise = torch.rand(6, 3, device=device), torch.randn(6, 4, device=device)
        fake = generator(noise)
        optimizers[1].zero_grad()
        mixed = (real * 0.3 + fake.detach() * 0.7).requires_grad_()
        (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        loss = critic(fake.detach()).mean() - critic(real).mean() + (slope.norm(2, 1) - 1).square().mean()
        loss.backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        (-critic(generator(noise)).mean()).backward()
        optimizers[0].step()
        losses.append(loss.item())
    return losses, [p.detach().cpu() for m in (generator, critic) for p in m.parameters()]


def resumed(device):
    def parts():
        model = nn.Linear(3, 2).to(device)
        return model, torch.optim.Adam(model.parameters(), amsgrad=True)

    def steps(model, optimizer):
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(4, 3, device=device)).square().mean().backward()
            optimizer.step()

    model, optimizer = parts()
    steps(model, optimizer)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file)
    assert saved["model"]["weight"].device == torch.device(device)
    model, optimizer = parts()
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    steps(model, optimizer)
    return [], [p.detach().cpu() for p in model.parameters()]


def split(device):
    """A model over both devices, with a part on the CPU in the middle."""
    second = "cuda:1" if device == "cuda:0" else device
    first, middle, last = nn.Linear(3, 4).to(device), nn.Linear(4, 4), nn.Linear(4, 1).to(second)
    x = torch.randn(5, 3, device=device)
    loss = last(middle(first(x).cpu().relu()).to(second)).mean().to(device)
    loss.backward()
    return [loss.item()], [p.grad.cpu() for m in (first, middle, last) for p in m.parameters()]


PROGRAMS = [mlp, convolutional, recurrent, transformer, graph, adversarial, resumed, split]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_values_are_those_of_a_plain_run(program):
    torch.manual_seed(0)
    plain = program("cpu")
    with samedevice.simulate("cuda:2"):
        torch.manual_seed(0)
        simulated = program("cuda:0")
    assert simulated[0] == plain[0]
    assert len(simulated[1]) == len(plain[1])
    assert all(torch.equal(a, b) for a, b in zip(simulated[1], plain[1], strict=True))
