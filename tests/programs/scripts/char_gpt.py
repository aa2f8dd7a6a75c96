# culprit: self.mask
# operation: aten::masked_fill
# says: expected self and mask to be on the same device
"""A character model written by hand: mixed precision with a scaler, accumulation, recomputation, a resumed run."""

import io
import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

device = "cuda" if torch.cuda.is_available() else "cpu"
TEXT = "the quick brown fox jumps over the lazy dog and runs away "
LETTERS = sorted(set(TEXT))
DATA = torch.tensor([LETTERS.index(letter) for letter in TEXT * 3])
WIDTH, LENGTH = 16, 12


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        hidden = torch.ones(LENGTH, LENGTH).triu(1) > 0
        self.register_buffer("mask", hidden)  # planted: self.mask = hidden

    def forward(self, x):
        query, key, value = self.mix(x).chunk(3, -1)
        scores = query @ key.mT / math.sqrt(WIDTH)
        scores = scores.masked_fill(self.mask[: x.shape[1], : x.shape[1]], -math.inf)  # fault
        return self.out(scores.softmax(-1) @ value)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.first, self.second = Attention(), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.inner = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.inner(self.second(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters, self.places = nn.Embedding(len(LETTERS), WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(WIDTH, len(LETTERS), bias=False)
        self.head.weight = self.letters.weight

    def forward(self, tokens):
        x = self.letters(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.training else block(x)
        return self.head(x)


def batch():
    starts = torch.randint(len(DATA) - LENGTH - 1, (4,))
    pieces = torch.stack([DATA[i : i + LENGTH + 1] for i in starts]).pin_memory() if device == "cuda" else None
    pieces = torch.stack([DATA[i : i + LENGTH + 1] for i in starts]) if pieces is None else pieces
    pieces = pieces.to(device, non_blocking=True)
    return pieces[:, :-1], pieces[:, 1:]


def parts():
    model = torch.compile(Model().to(device)) if device == "cuda" else Model()
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-2, fused=device == "cuda")
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    return model, optimizer, scheduler, torch.amp.GradScaler(device, enabled=device == "cuda")


def train(model, optimizer, scheduler, scaler, steps):
    model.train()
    for _ in range(steps):
        for _ in range(2):
            tokens, wanted = batch()
            with torch.autocast(device, torch.bfloat16):
                logits = model(tokens)
                loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten()) / 2
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        scheduler.step()
        assert norm.device == tokens.device
        assert math.isfinite(loss.item())


@torch.no_grad()
def write(model, count):
    model.eval()
    tokens = torch.zeros(1, 1, dtype=torch.long, device=device)
    for _ in range(count):
        logits = model(tokens[:, -LENGTH:])[:, -1]
        best, _ = logits.topk(5)
        logits[logits < best[:, [-1]]] = -math.inf
        following = torch.multinomial(logits.softmax(-1), 1)
        tokens = torch.cat([tokens, following], 1)
    return "".join(LETTERS[i] for i in tokens[0].tolist())


torch.manual_seed(0)
first = parts()
train(*first, 3)
file = io.BytesIO()
torch.save([part.state_dict() for part in first], file)
file.seek(0)
second = parts()
for part, state in zip(second, torch.load(file, map_location=device), strict=True):
    part.load_state_dict(state)
train(*second, 2)
assert len(write(second[0], 15)) == 16
if device == "cuda":
    assert torch.cuda.max_memory_allocated() > 0
    assert all(p.device == torch.device("cuda:0") for p in second[0].parameters())
