import torch
import torch.nn as nn


class PolicyHead(nn.Module):
    def __init__(self, vocab=50, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.lm_head = nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.lm_head(self.embed(ids).cumsum(1))


class Trainer:
    def __init__(self, model, device):
        self.model = model.to(device)
        self.device = device
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def offload_optimizer(self):
        for state in self.optimizer.state.values():
            for key, value in state.items():
                if torch.is_tensor(value):
                    state[key] = value.to("cpu", non_blocking=True)
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    @torch.no_grad()
    def rollout(self, prompts, steps=4):
        self.offload_optimizer()
        ids = prompts.to(self.device)
        for _ in range(steps):
            probs = self.model(ids)[:, -1].softmax(-1)
            ids = torch.cat([ids, torch.multinomial(probs, 1)], dim=1)
        return ids

    def update(self, ids):
        logits = self.model(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    trainer = Trainer(PolicyHead(), device)
    for iteration in range(3):
        prompts = torch.randint(0, 50, (4, 3))
        samples = trainer.rollout(prompts)
        print(iteration, round(trainer.update(samples), 4))


if __name__ == "__main__":
    main()
