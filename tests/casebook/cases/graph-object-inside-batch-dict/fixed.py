from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Graph:
    edge_index: torch.Tensor
    edge_weight: torch.Tensor
    num_nodes: int


def to_device(data, device):
    if torch.is_tensor(data):
        return data.to(device)
    if isinstance(data, dict):
        return {k: to_device(v, device) for k, v in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(to_device(v, device) for v in data)
    if isinstance(data, Graph):
        return Graph(data.edge_index.to(device), data.edge_weight.to(device), data.num_nodes)
    return data


def collate(sizes):
    offset, edges, weights, feats, labels = 0, [], [], [], []
    for n in sizes:
        edges.append(torch.randint(0, n, (2, 3 * n)) + offset)
        weights.append(torch.rand(3 * n))
        feats.append(torch.randn(n, 6))
        labels.append(torch.randint(0, 2, (n,)))
        offset += n
    graph = Graph(torch.cat(edges, dim=1), torch.cat(weights), offset)
    return {"graph": graph, "x": torch.cat(feats), "y": torch.cat(labels)}


class WeightedConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.lin_self = nn.Linear(n_in, n_out)
        self.lin_neigh = nn.Linear(n_in, n_out, bias=False)

    def forward(self, x, graph):
        src, dst = graph.edge_index
        messages = x.index_select(0, src) * graph.edge_weight.unsqueeze(1)
        gathered = x.new_zeros(graph.num_nodes, x.size(1)).index_add(0, dst, messages)
        return self.lin_self(x) + self.lin_neigh(gathered)


class NodeClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = WeightedConv(6, 16)
        self.conv2 = WeightedConv(16, 2)

    def forward(self, batch):
        h = torch.relu(self.conv1(batch["x"], batch["graph"]))
        return self.conv2(h, batch["graph"])


torch.manual_seed(6)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = NodeClassifier().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(4):
    batch = to_device(collate([5, 9, 7]), device)
    loss = nn.functional.cross_entropy(model(batch), batch["y"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, round(loss.item(), 4))
