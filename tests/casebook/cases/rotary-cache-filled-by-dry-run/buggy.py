import torch
import torch.nn as nn
import torch.nn.functional as F


class Rotary(nn.Module):
    def __init__(self, dim, base=10000.0):
        super().__init__()
        inv_freq = 1.0 / base ** (torch.arange(0, dim, 2).float() / dim)
        self.register_buffer("inv_freq", inv_freq)
        self.cached_len = 0
        self.cached_cos = None
        self.cached_sin = None

    def tables(self, length):
        if length > self.cached_len:
            t = torch.arange(length, device=self.inv_freq.device)
            freqs = torch.outer(t.float(), self.inv_freq).repeat(1, 2)
            self.cached_cos, self.cached_sin = freqs.cos(), freqs.sin()
            self.cached_len = length
        return self.cached_cos[:length], self.cached_sin[:length]

    def forward(self, q, k):
        cos, sin = self.tables(q.size(-2))
        return self.rotate(q, cos, sin), self.rotate(k, cos, sin)

    @staticmethod
    def rotate(x, cos, sin):
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-b, a], dim=-1) * sin


class Block(nn.Module):
    def __init__(self, dim=16, heads=2, vocab=40):
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(vocab, dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.rotary = Rotary(dim // heads)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.embed(ids)
        q, k, v = (p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in self.qkv(x).chunk(3, dim=-1))
        q, k = self.rotary(q, k)
        h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(x + h.transpose(1, 2).flatten(2))


torch.manual_seed(2)
model = Block()
with torch.no_grad():
    n_logits = model(torch.randint(0, 40, (1, 24))).numel()
print("logits for a full context:", n_logits)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model.to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    ids = torch.randint(0, 40, (4, 17), device=device)
    loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.4f}")
