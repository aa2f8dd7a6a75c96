"""The user's own name through what PyTorch puts between lines: layers, hooks, autograd, transforms, loaders."""

import textwrap

import pytest

NET = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        return self.fc(self.norm(x))  # fault

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block() for _ in range(3)])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

"""

ROWS = {
    "a layer deep in a model": (
        "self.norm",
        NET
        + """
        model = Net().cuda()
        model.layers[2].norm = nn.LayerNorm(4)  # culprit
        model(torch.zeros(1, 4, device="cuda"))
        """,
    ),
    "a parameter deep in a model": (
        "self.fc.bias",
        NET
        + """
        model = Net().cuda()
        model.layers[1].fc.bias = nn.Parameter(torch.zeros(4))  # culprit
        model(torch.zeros(1, 4, device="cuda"))
        """,
    ),
    "a module dict": (
        'self.heads["b"]',
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.heads = nn.ModuleDict({"a": nn.Linear(4, 4).cuda(), "b": nn.Linear(4, 4)})  # culprit
            def forward(self, x):
                return self.heads["a"](x) + self.heads["b"](x)  # fault
        Net()(torch.zeros(1, 4, device="cuda"))
        """,
    ),
    "a parameter dict": (
        'self.scales["b"]',
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scales = nn.ParameterDict({"a": torch.ones(4).cuda(), "b": torch.ones(4)})  # culprit
            def forward(self, x):
                return x * self.scales["a"] * self.scales["b"]  # fault
        Net()(torch.zeros(1, 4, device="cuda"))
        """,
    ),
    "a parameter list": (
        "self.scales[1]",
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scales = nn.ParameterList([torch.ones(4).cuda(), torch.ones(4)])  # culprit
            def forward(self, x):
                return x * self.scales[0] * self.scales[1]  # fault
        Net()(torch.zeros(1, 4, device="cuda"))
        """,
    ),
    "an attribute in another method": (
        "self.mask",
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)
                self.build()
            def build(self):
                self.mask = torch.ones(4)  # culprit
            def forward(self, x):
                return self.fc(x) * self.mask  # fault
        Net().cuda()(torch.zeros(1, 4, device="cuda"))
        """,
    ),
    "an inherited attribute": (
        "self.mask",
        """
        class Base(nn.Module):
            def __init__(self):
                super().__init__()
                self.mask = torch.ones(4)  # culprit
        class Net(Base):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)
            def forward(self, x):
                return self.fc(x) * self.mask  # fault
        Net().cuda()(torch.zeros(1, 4, device="cuda"))
        """,
    ),
    "a list of tensors in a module": (
        "self.masks",
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.masks = [torch.ones(4).cuda(), torch.ones(4)]  # culprit
            def forward(self, x):
                return x * self.masks[0] * self.masks[1]  # fault
        Net()(torch.zeros(1, 4, device="cuda"))
        """,
    ),
    "nested targets": (
        'targets[0]["boxes"]',
        """
        class Net(nn.Module):
            def forward(self, x, targets):
                boxes = targets[0]["boxes"]
                return x - boxes  # fault
        targets = [{"boxes": torch.ones(4)}]  # culprit
        Net()(torch.zeros(1, 4, device="cuda"), targets)
        """,
    ),
    "optimizer state": (
        'optimizer.state[model.head.weight]["exp_avg"]',
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(4, 1, bias=False)
            def forward(self, x):
                return self.head(x)
        model = Net()
        optimizer = torch.optim.Adam(model.parameters())  # culprit bare
        for device in ("cpu", "cuda"):
            model.to(device)
            model(torch.zeros(1, 4, device=device)).sum().backward()
            optimizer.step()  # fault culprit
        """,
    ),
    "a sequential": (
        "net[2]",
        """
        net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)).cuda()
        net[2] = nn.Linear(4, 4)  # culprit
        net(torch.zeros(1, 4, device="cuda"))  # fault
        """,
    ),
    "the input of a sequential": (
        'batch["x"]',
        """
        net = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).cuda()
        batch = {"x": torch.zeros(1, 4)}  # culprit
        net(batch["x"])  # fault
        """,
    ),
    "a forward hook": (
        "scale",
        """
        scale = torch.ones(4)  # culprit
        def hook(module, inputs, output):
            return output * scale  # fault
        fc = nn.Linear(4, 4).cuda()
        fc.register_forward_hook(hook)
        fc(torch.zeros(1, 4, device="cuda"))
        """,
    ),
    "a forward pre-hook": (
        "scale",
        """
        scale = torch.ones(4)  # culprit
        def hook(module, inputs):
            return (inputs[0] * scale,)  # fault
        fc = nn.Linear(4, 4).cuda()
        fc.register_forward_pre_hook(hook)
        fc(torch.zeros(1, 4, device="cuda"))
        """,
    ),
    "a backward hook of a module": (
        "scale",
        """
        scale = torch.ones(4)  # culprit
        def hook(module, inputs, outputs):
            return (inputs[0] * scale,)  # fault
        fc = nn.Linear(4, 4).cuda()
        fc.register_full_backward_hook(hook)
        fc(torch.zeros(1, 4, device="cuda", requires_grad=True)).sum().backward()
        """,
    ),
    "a hook of a tensor": (
        "scale",
        """
        scale = torch.ones(4)  # culprit
        x = torch.zeros(4, device="cuda", requires_grad=True)
        x.register_hook(lambda grad: grad * scale)  # fault
        x.sum().backward()
        """,
    ),
    "a custom function's backward": (
        "ctx.scale",
        """
        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, scale):
                ctx.scale = scale  # culprit bare
                return x * 2
            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.scale, None  # fault
        scale = torch.ones(4)  # culprit recorded
        x = torch.zeros(4, device="cuda", requires_grad=True)
        Scaled.apply(x, scale).sum().backward()
        """,
    ),
    "a custom function's saved tensor": (
        "scale",
        """
        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, scale):
                ctx.save_for_backward(scale)
                return x * 2
            @staticmethod
            def backward(ctx, grad):
                (scale,) = ctx.saved_tensors  # culprit bare
                return grad * scale, None  # fault
        mask = torch.ones(4)  # culprit recorded
        x = torch.zeros(4, device="cuda", requires_grad=True)
        Scaled.apply(x, mask).sum().backward()
        """,
    ),
    "vmap": (
        "y",
        """
        y = torch.ones(4)  # culprit
        torch.vmap(lambda x: x * y)(torch.zeros(2, 4, device="cuda"))  # fault
        """,
    ),
    "torch.func.grad": (
        "scale",
        """
        scale = torch.ones(4)  # culprit
        def loss(x):
            return (x * scale).sum()  # fault
        torch.func.grad(loss)(torch.zeros(4, device="cuda"))
        """,
    ),
    "jacrev": (
        "scale",
        """
        scale = torch.ones(4)  # culprit
        def f(x):
            return x * scale  # fault
        torch.func.jacrev(f)(torch.zeros(4, device="cuda"))
        """,
    ),
    "functional_call": (
        'params["weight"]',
        """
        fc = nn.Linear(4, 4).cuda()
        params = {"weight": torch.ones(4, 4), "bias": torch.zeros(4).cuda()}  # culprit
        torch.func.functional_call(fc, params, (torch.zeros(1, 4, device="cuda"),))  # fault
        """,
    ),
    "checkpointed": (
        "scale",
        """
        from torch.utils.checkpoint import checkpoint
        scale = torch.ones(4)  # culprit
        def run(x):
            return x * scale  # fault
        checkpoint(run, torch.zeros(4, device="cuda"), use_reentrant=False)
        """,
    ),
    "a criterion's weight": (
        "criterion.weight",
        """
        criterion = nn.CrossEntropyLoss(weight=torch.ones(4))  # culprit
        criterion(torch.zeros(2, 4, device="cuda"), torch.zeros(2, dtype=torch.long, device="cuda"))  # fault
        """,
    ),
    "a target": (
        "labels",
        """
        criterion = nn.CrossEntropyLoss()
        labels = torch.zeros(2, dtype=torch.long)  # culprit
        criterion(torch.zeros(2, 4, device="cuda"), labels)  # fault
        """,
    ),
    "a mask in attention": (
        "mask",
        """
        attention = nn.MultiheadAttention(4, 2, batch_first=True).cuda()
        x = torch.zeros(1, 3, 4, device="cuda")
        mask = torch.zeros(3, 3)  # culprit
        attention(x, x, x, attn_mask=mask)  # fault
        """,
    ),
    "embedding ids": (
        "ids",
        """
        table = nn.Embedding(10, 4).cuda()
        ids = torch.tensor([1, 2])  # culprit
        table(ids)  # fault
        """,
    ),
    "hidden state": (
        "hidden",
        """
        rnn = nn.GRU(4, 4, batch_first=True).cuda()
        hidden = torch.zeros(1, 1, 4)  # culprit
        rnn(torch.zeros(1, 3, 4, device="cuda"), hidden)  # fault
        """,
    ),
    "an einsum": (
        "weights",
        """
        x = torch.zeros(3, 4, device="cuda")
        weights = torch.ones(4, 5)  # culprit
        torch.einsum("ij,jk->ik", x, weights)  # fault
        """,
    ),
    "torch.where": (
        "fill",
        """
        x = torch.zeros(3, device="cuda")
        fill = torch.ones(3)  # culprit
        torch.where(x > 0, x, fill)  # fault
        """,
    ),
    "torch.cat of a literal list": (
        "bias",
        """
        x = torch.zeros(3, device="cuda")
        bias = torch.ones(3)  # culprit
        torch.cat([x, bias])  # fault
        """,
    ),
    "torch.stack of a comprehension": (
        "rows[1]",
        """
        rows = [torch.zeros(3).cuda(), torch.ones(3), torch.ones(3)]  # culprit
        torch.stack([row for row in rows])  # fault
        """,
    ),
    "a gather": (
        "index",
        """
        x = torch.zeros(3, device="cuda")
        index = torch.tensor([0, 2])  # culprit
        x.gather(0, index)  # fault
        """,
    ),
    "numpy of an expression": (
        "out",
        """
        out = torch.zeros(3, device="cuda")  # culprit
        out.detach().numpy()  # fault
        """,
    ),
    "numpy of a model's output": (
        "model(x)",
        """
        model = nn.Linear(3, 3).cuda()
        x = torch.zeros(1, 3, device="cuda")
        scores = model(x).detach().numpy()  # culprit fault
        """,
    ),
    "an intermediate of two calls": (
        "model(x).cpu()",
        """
        model = nn.Linear(3, 3).cuda()
        bias = torch.zeros(3, device="cuda")
        x = torch.zeros(1, 3, device="cuda")
        out = bias + model(x).cpu()  # culprit fault
        """,
    ),
    "two tied weights": (
        "self.decoder",
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.encoder = nn.Embedding(5, 4)
                self.decoder = nn.Linear(4, 5, bias=False)
                self.decoder.weight = self.encoder.weight
            def forward(self, x):
                return self.decoder(self.encoder(x))  # fault
        net = Net()
        net.encoder.cuda()
        net.decoder = nn.Linear(4, 5, bias=False)  # culprit
        net(torch.zeros(1, dtype=torch.long, device="cuda"))
        """,
    ),
    "a lazy layer": (
        "x",
        """
        fc = nn.LazyLinear(4).cuda()
        fc(torch.zeros(1, 3, device="cuda"))
        x = torch.zeros(1, 3)  # culprit
        fc(x)  # fault
        """,
    ),
    "a tensor subclass": (
        "tagged",
        """
        class Tagged(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return super().__torch_function__(func, types, args, kwargs or {})  # fault
        tagged = torch.ones(4).as_subclass(Tagged)  # culprit
        torch.zeros(4, device="cuda") * tagged
        """,
    ),
    "a wrapper with __torch_function__": (
        "args[1]",
        """
        class Wrapped:
            def __init__(self, value):
                self.value = value
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                args = [arg.value if isinstance(arg, cls) else arg for arg in args]  # culprit bare
                return func(*args)  # fault
        wrapped = Wrapped(torch.ones(4))  # culprit recorded
        torch.add(torch.zeros(4, device="cuda"), wrapped)
        """,
    ),
}


@pytest.mark.parametrize("how", ["bare", "recorded"])
@pytest.mark.parametrize("case", ROWS)
def test_name_line_and_place(case, how, check_row):
    name, script = ROWS[case]
    head, _, body = script.partition(NET) if script.startswith(NET) else ("", "", script)
    check_row(name, (NET.lstrip() if body is not script else head) + textwrap.dedent(body).lstrip(), how)
