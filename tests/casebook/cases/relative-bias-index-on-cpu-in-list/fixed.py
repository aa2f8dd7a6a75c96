import torch
import torch.nn as nn


class WindowAttention(nn.Module):
    def __init__(self, dim, heads, windows=(2, 4)):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.rel_bias = nn.ParameterList(nn.Parameter(torch.zeros(heads, w * w, w * w)) for w in windows)

    def forward(self, x, stage):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (c // self.heads) ** 0.5
        scores = scores + self.rel_bias[stage]
        out = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, c)
        return self.proj(out)


class TinySwin(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, 4, stride=4)
        self.attn = WindowAttention(dim, heads=2)
        self.norm = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, 10)

    def forward(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2)
        x = x + self.attn(self.norm(x), stage=1)
        return self.fc(x.mean(1))


def main(device):
    torch.manual_seed(0)
    model = TinySwin().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(3):
        images, labels = torch.rand(4, 3, 16, 16), torch.randint(0, 10, (4,))
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, round(loss.item(), 4))


main("cuda" if torch.cuda.is_available() else "cpu")
