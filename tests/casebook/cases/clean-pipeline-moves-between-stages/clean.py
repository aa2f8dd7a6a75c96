import torch
import torch.nn as nn


def device_of(module):
    return next(module.parameters()).device


class Pipeline(nn.Module):
    def __init__(self, devices):
        super().__init__()
        self.embed = nn.Embedding(50, 16).to(devices[0])
        self.encoder = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)).to(devices[0])
        self.decoder = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 50)).to(devices[-1])
        self.residual_scale = torch.tensor(0.5)

    def forward(self, ids):
        x = self.embed(ids.to(device_of(self.embed)))
        x = x + self.residual_scale * self.encoder(x)
        return self.decoder(x.to(device_of(self.decoder)))


def main():
    torch.manual_seed(0)
    count = torch.cuda.device_count()
    devices = [torch.device("cuda", i) for i in range(count)] or [torch.device("cpu")]
    model = Pipeline(devices[:2])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    history = []
    for step in range(3):
        ids = torch.randint(0, 50, (4, 9))
        logits = model(ids[:, :-1])
        targets = ids[:, 1:].to(logits.device)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        history.append(loss.detach().cpu())
        print(step, round(loss.item(), 4), round(norm.item(), 4))
    print("mean", torch.stack(history).mean().item())


if __name__ == "__main__":
    main()
