"""A transformer whose table of positions is a buffer: it moves with the model and stays out of the state dict."""

import math

import torch
import torch.nn.functional as F
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class PositionalEncoding(nn.Module):
    def __init__(self, width, longest=128):
        super().__init__()
        position = torch.arange(longest).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(longest, width)
        table[:, 0::2] = torch.sin(position * rate)
        table[:, 1::2] = torch.cos(position * rate)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x):
        return x + self.table[: x.size(1)]


class Tagger(nn.Module):
    def __init__(self, words=100, width=32, tags=4):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.position = PositionalEncoding(width)
        self.encoder = nn.TransformerEncoderLayer(width, 4, 64, batch_first=True)
        self.tags = nn.Linear(width, tags)

    def forward(self, tokens):
        return self.tags(self.encoder(self.position(self.embed(tokens))))


torch.manual_seed(0)
model = Tagger().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    tokens = torch.randint(0, 100, (8, 20), device=device)
    loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten() % 4)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.3f} on {loss.device}")
