import numpy as np
import torch
import torch.nn as nn


class HyperConv(nn.Module):
    def __init__(self, layers, n_items, dim=12):
        super().__init__()
        self.layers = layers
        self.embedding = nn.Embedding(n_items, dim)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    def forward(self, adjacency):
        item_embeddings = self.embedding.weight
        final = [item_embeddings]
        for _ in range(self.layers):
            item_embeddings = torch.sparse.mm(adjacency, item_embeddings)
            final.append(item_embeddings)
        return final


@torch.no_grad()
def export_items(model, adjacency, top=5):
    model.eval()
    final = model(adjacency)
    items = np.sum([layer.cpu().numpy() for layer in final], axis=0) / (model.layers + 1)
    norms = np.linalg.norm(items, axis=1)
    return np.argsort(-norms)[:top]


def hypergraph(n_items, n_sessions=30):
    rows = torch.randint(0, n_items, (n_sessions * 4,))
    cols = torch.randint(0, n_items, (n_sessions * 4,))
    values = torch.full((n_sessions * 4,), 0.1)
    return torch.sparse_coo_tensor(torch.stack([rows, cols]), values, (n_items, n_items)).coalesce()


torch.manual_seed(30)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
adjacency = hypergraph(40).to(device)
model = HyperConv(2, 40).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(3):
    final = model(adjacency)
    loss = torch.stack(final).mean(0).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("top items", export_items(model, adjacency).tolist())
