import torch
import torch.nn as nn
from torch.utils.data import DataLoader


class SentenceEncoder(nn.Module):
    def __init__(self, vocab=80, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.mix = nn.Linear(dim, dim)
        self.classify = nn.Linear(dim, 2)

    def pool(self, hidden, mask):
        weight = mask.unsqueeze(-1).float()
        return (hidden * weight).sum(1) / weight.sum(1).clamp(min=1.0)

    def forward(self, ids, mask):
        hidden = torch.tanh(self.mix(self.embed(ids)))
        return self.classify(self.pool(hidden, mask))


def collate(rows):
    texts, labels = zip(*rows)
    ids = nn.utils.rnn.pad_sequence(list(texts), batch_first=True)
    return ids, ids.ne(0), torch.tensor(labels)


def train(model, loader, device, epochs=2):
    optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        running = 0.0
        for ids, mask, labels in loader:
            ids, labels = ids.to(device), labels.to(device)
            logits = model(ids, mask)
            loss = nn.functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch}: {running / len(loader):.4f}")


if __name__ == "__main__":
    torch.manual_seed(4)
    rows = [(torch.randint(1, 80, (int(n),)), int(n) % 2) for n in torch.randint(3, 12, (40,))]
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train(SentenceEncoder().to(device), DataLoader(rows, batch_size=8, collate_fn=collate), device)
