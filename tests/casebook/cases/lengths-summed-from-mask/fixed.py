import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class InterestExtractor(nn.Module):
    def __init__(self, n_items, dim=16):
        super().__init__()
        self.items = nn.Embedding(n_items, dim, padding_idx=0)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.attn = nn.Linear(2 * dim, 1)

    def forward(self, history, candidate):
        mask = history.ne(0)
        lengths = mask.sum(dim=1)
        packed = pack_padded_sequence(self.items(history), lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        query = self.items(candidate).unsqueeze(1).expand_as(states)
        scores = self.attn(torch.cat([states, query], dim=-1)).squeeze(-1)
        scores = scores.masked_fill(~mask[:, : states.size(1)], float("-inf"))
        return (scores.softmax(-1).unsqueeze(-1) * states).sum(1)


class CTRModel(nn.Module):
    def __init__(self, n_items=100):
        super().__init__()
        self.extractor = InterestExtractor(n_items)
        self.head = nn.Linear(16, 1)

    def forward(self, history, candidate):
        return self.head(self.extractor(history, candidate)).squeeze(-1)


def clicks(n):
    history = torch.zeros(n, 12, dtype=torch.long)
    for row in history:
        k = int(torch.randint(2, 13, ()))
        row[:k] = torch.randint(1, 100, (k,))
    return history, torch.randint(1, 100, (n,)), torch.randint(0, 2, (n,)).float()


torch.manual_seed(8)
device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
model = CTRModel().to(device)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
for step in range(4):
    history, candidate, label = (t.to(device) for t in clicks(16))
    loss = nn.functional.binary_cross_entropy_with_logits(model(history, candidate), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.4f}")
