# culprit: tasks
# operation: aten::mm
# says: different from other tensors
"""Functional transforms, parametrizations, pruning, symbolic tracing, quantization, sparse and nested tensors."""

import torch
from torch import nn
from torch.func import functional_call, grad, jacrev, stack_module_state, vmap
from torch.nn.utils import parametrizations, parametrize, prune

device = torch.device("cuda:1" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1)).to(device)
weights = dict(model.named_parameters())
tasks = torch.randn(5, 4, 3).to(device)  # planted: tasks = torch.randn(5, 4, 3)


def loss_of(weights, x):
    return functional_call(model, weights, (x,)).square().mean()  # fault


def adapted(x):
    steps = grad(loss_of)(weights, x)
    quick = {name: weight - 0.1 * steps[name] for name, weight in weights.items()}
    return loss_of(quick, x)


print(vmap(adapted)(tasks).tolist())
print(jacrev(lambda x: model(x))(tasks[0, 0]).tolist())
sample = vmap(grad(loss_of), in_dims=(None, 0))(weights, tasks[0])
assert all(gradient.device == device for gradient in sample.values())
many = [nn.Linear(3, 2).to(device) for _ in range(3)]
stacked, buffers = stack_module_state(many)
outputs = vmap(lambda p, b, x: functional_call(many[0], (p, b), (x,)), in_dims=(0, 0, None))(stacked, buffers, tasks[0])
assert outputs.device == device


class Symmetric(nn.Module):
    def forward(self, weight):
        return weight.triu() + weight.triu(1).mT


square = nn.Linear(3, 3).to(device)
parametrize.register_parametrization(square, "weight", Symmetric())
rotated = parametrizations.orthogonal(nn.Linear(3, 3)).to(device)
normed = parametrizations.spectral_norm(nn.Linear(3, 3)).to(device)
prune.l1_unstructured(square, "bias", amount=1)
prune.random_structured(many[0], "weight", amount=1, dim=0)
y = normed(rotated(square(tasks[0])))
y.sum().backward()
assert square.bias_mask.device == device
assert square.parametrizations.weight.original.grad.device == device
prune.remove(many[0], "weight")

traced = torch.fx.symbolic_trace(model)
assert torch.equal(traced(tasks[0]), model(tasks[0]))
print(traced.code.count("return"))
scripted = torch.jit.trace(model, tasks[0])
assert scripted(tasks[0]).device == device
small = torch.ao.quantization.quantize_dynamic(model.cpu(), {nn.Linear}, dtype=torch.qint8)
assert small(tasks[0].cpu()).device.type == "cpu"
sparse = torch.eye(3, device=device).to_sparse() @ tasks[0].mT
nested = torch.nested.nested_tensor([tasks[0, :2], tasks[1, :3]], layout=torch.jagged)
print(sparse.sum().item(), nested.values().sum().item(), nested.device.type == device.type)
