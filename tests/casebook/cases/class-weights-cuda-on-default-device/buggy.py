import torch
import torch.nn as nn


def inverse_frequency(labels, n_classes):
    counts = torch.bincount(labels, minlength=n_classes).clamp(min=1)
    weights = counts.sum() / counts.float()
    return weights.cuda() if torch.cuda.is_available() else weights


class Worker:
    def __init__(self, rank, n_classes=4):
        self.rank = rank
        self.device = torch.device(f"cuda:{rank}") if torch.cuda.is_available() else torch.device("cpu")
        self.model = nn.Sequential(nn.Conv1d(1, 8, 5), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, n_classes))
        self.model.to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.n_classes = n_classes

    def fit(self, signals, labels, epochs=2):
        weights = inverse_frequency(labels, self.n_classes)
        signals, labels = signals.to(self.device), labels.to(self.device)
        for _ in range(epochs):
            logits = self.model(signals)
            loss = nn.functional.cross_entropy(logits, labels, weight=weights)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()


def main():
    torch.manual_seed(0)
    for rank in range(max(1, torch.cuda.device_count())):
        worker = Worker(rank)
        loss = worker.fit(torch.randn(24, 1, 40), torch.randint(0, 4, (24,)))
        print(f"rank {rank}: {loss:.4f}")


if __name__ == "__main__":
    main()
