"""What the interpreter understands: each program twice, with the fault in the marked line and without one."""

import textwrap

import pytest

from samedevice.linting.lint import lint_source

PREAMBLE = """\
import argparse, collections, copy, functools, os, types
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

here = torch.zeros(2, 2)
there = torch.zeros(2, 2, device="cuda")
"""

WRONG = {
    "through a name": "a = here\nb = a\nthere + b  # !",
    "through a tuple": "a, (b, c) = here, (there, here)\nb * c  # !",
    "through a function": "def made(n):\n    return torch.ones(n)\nthere - made(2)  # !",
    "through a default": "def f(x, y=torch.ones(2)):\n    return x * y  # !\nf(there)",
    "through keywords": "def f(*, a, b):\n    return a @ b  # !\nf(b=here, a=there)",
    "through **": "def f(a, b):\n    return a @ b  # !\nf(**{'a': there, 'b': here})",
    "through *": "def f(a, b):\n    return a @ b  # !\nf(*[there, here])",
    "through a closure": "def outer(w):\n    def inner(x):\n        return x * w  # !\n    return inner\nouter(here)(there)",
    "through a lambda": "f = lambda x: x + here  # !\nf(there)",
    "through an object": "class A:\n    def __init__(self):\n        self.w = torch.ones(2)  # !\n"
    "    def f(self, x):\n        return x * self.w\nA().f(there)",
    "through a base class": "class A:\n    def w(self):\n        return torch.ones(2)\nclass B(A):\n"
    "    def f(self, x):\n        return x * super().w()  # !\nB().f(there)",
    "through a property": "class A:\n    @property\n    def w(self):\n        return torch.ones(2)\n"
    "    def f(self, x):\n        return x * self.w  # !\nA().f(there)",
    "through a classmethod": "class A:\n    @classmethod\n    def w(cls):\n        return torch.ones(2)\n"
    "there + A.w()  # !",
    "through a dataclass": "@dataclass\nclass Batch:\n    x: torch.Tensor\n    device: str = 'cuda'\n"
    "b = Batch(here)\nthere * b.x  # !",
    "through a namespace": "g = types.SimpleNamespace(x=here)\nthere * g.x  # !",
    "through a dict": "d = {'x': here}\nthere * d['x']  # !",
    "through a dict's items": "d = {'x': here}\nfor name, value in d.items():\n    there * value  # !",
    "through a list": "xs = []\nxs.append(here)\ntorch.cat([there, *xs])  # !",
    "through a comprehension": "xs = [t * 2 for t in (here, here)]\nthere + xs[0]  # !",
    "through zip": "for a, b in zip([there], [here]):\n    a + b  # !",
    "through enumerate": "for i, a in enumerate([here]):\n    there + a  # !",
    "through map": "a, b = map(lambda t: t * 2, (here, there))\na + b  # !",
    "through deepcopy": "model = nn.Linear(2, 2)\ntarget = copy.deepcopy(model)\nmodel.cuda()\ntarget(there)  # !",
    "through a generator": "def batches():\n    for _ in range(3):\n        yield torch.ones(2), 1\n"
    "for x, i in batches():\n    there + x  # !",
    "through a loader": "loader = DataLoader(TensorDataset(here, here), batch_size=2)\nmodel = nn.Linear(2, 2).cuda()\n"
    "for x, y in loader:\n    model(x)  # !",
    "through a dataset": "class Data(Dataset):\n    def __getitem__(self, i):\n        return {'x': torch.ones(3)}\n"
    "model = nn.Linear(3, 2).cuda()\nfor batch in DataLoader(Data()):\n    model(batch['x'])  # !",
    "views keep the device": "there + here.view(4)[1:].unsqueeze(0).T.float()  # !",
    "like keeps the device": "there + torch.zeros_like(here)  # !",
    "new_ keeps the device": "there + here.new_ones(2)  # !",
    "clones keep the device": "there + here.detach().clone()  # !",
    "data moved back": "x = there.cpu()\nthere + x  # !",
    "device names": "d = torch.device('cuda:%d' % 1)\nx = torch.zeros(2, 2, device=d)\nhere + x  # !",
    "f-strings": "gpu = 1\nx = torch.zeros(2, device=f'cuda:{gpu}')\nx + here  # !",
    "argparse": "p = argparse.ArgumentParser()\np.add_argument('--device', default='cuda')\nargs = p.parse_args()\n"
    "x = here.to(args.device)\nx + here  # !",
    "cuda where available": "d = 'cuda' if torch.cuda.is_available() else 'cpu'\nx = here.to(d)\nx + here  # !",
    "a device picked in branches": "if torch.cuda.is_available():\n    d = torch.device('cuda')\nelse:\n"
    "    d = torch.device('cpu')\nhere.to(d) + here  # !",
    "a setting says cuda": "def main(args):\n    model = nn.Linear(2, 2)\n    if args.cuda:\n        model.cuda()\n"
    "    return model(torch.ones(2, 2))  # !",
    "environment": "d = os.environ.get('DEVICE', 'cuda')\nhere.to(d) + here  # !",
    "with a device": "with torch.device('cuda'):\n    x = torch.ones(2)\nx + here  # !",
    "the default device": "torch.set_default_device('cuda')\nx = torch.ones(2)\nx + here  # !",
    "in place": "total = torch.zeros(())\ntotal += there.sum()  # !",
    "matrix product": "there @ here  # !",
    "where": "torch.where(there > 0, there, here)  # !",
    "index from another device": "here[there.long()]  # !",
    "written values": "there[there > 0] = here  # !",
    "strict about scalars": "there.clamp(max=torch.tensor(1.0))  # !",
    "in an f-string": "print(f'{(there + here).sum():.3f}')  # !",
    "sequential": "model = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).cuda()\nmodel(here)  # !",
    "module list": "heads = nn.ModuleList([nn.Linear(2, 2)]).cuda()\nfor head in heads:\n    head(here)  # !",
    "module moved in a function": "def place(m, d):\n    m.to(d)\nmodel = nn.Linear(2, 2)\nplace(model, 'cuda')\nmodel(here)  # !",
    "module of its own class": "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.fc = nn.Linear(2, 2)\n    def forward(self, x):\n        return self.fc(x)  # !\nNet().cuda()(here)",
    "a loss": "F.cross_entropy(there, torch.tensor([0, 1]))  # !",
    "a criterion": "nn.MSELoss()(there, here)  # !",
    "numpy of the device": "np.mean(there)  # !",
    "hidden state": "rnn = nn.LSTM(2, 2).cuda()\nrnn(there, (torch.zeros(1, 2), torch.zeros(1, 2)))  # !",
    "forward alone": "class Net(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
    "        self.w = nn.Parameter(torch.ones(d))\n    def forward(self, x):\n"
    "        return self.w + torch.arange(3)  # !",
    "an attribute alone": "class Net(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
    "        self.pe = torch.ones(d, d)  # !\n    def forward(self, x):\n        return x + self.pe[: x.size(1)]",
    "an attribute of an argument's device": "def f(x, n):\n    a = torch.zeros(n, device=x.device)\n    return a + torch.arange(n)  # !",
    "a device argument": "def train(model, device):\n    net = nn.Linear(2, 2).to(device)\n    return net(torch.ones(2, 2))  # !",
    "accumulated over ranks": "class W:\n    def __init__(self, rank):\n        self.x = torch.ones(2, device=torch.device('cuda', rank))\n"
    "out = collections.defaultdict(list)\nfor w in [W(0), W(1)]:\n    out['x'].append(w.x)\ntorch.cat(out['x'])  # !",
}

RIGHT = {
    "scalars may join": "there + torch.tensor(1.0)\nthere.masked_fill(there > 0, torch.tensor(0.0))",
    "indices may be on the CPU": "there[torch.tensor([0, 1])]\nthere[here > 0] = 0.0\nthere[here > 0] = torch.tensor(1.0)",
    "copies cross devices": "there.copy_(here)\nhere.copy_(there)\nthere[0] = here[0]",
    "moved": "there + here.to('cuda')\nthere + here.cuda()\nthere + here.to(there)\nthere + here.to(device=there.device)",
    "moved back": "there.cpu() + here",
    "numbers": "there * 2 + there.size(0) - len(there)",
    "items": "total = 0.0\ntotal += there.sum().item()\nhere * there.sum().item()",
    "unknown things": "import somewhere\nx = somewhere.load()\nthere + x\nhere + x\nsomewhere.model(here)",
    "unknown arguments": "def f(x, y):\n    return x + y + torch.ones(3)",
    "a decorator that is not known": "import lib\n@lib.wrap\ndef f():\n    return torch.ones(2)\nthere + f()",
    "branches that differ": "import lib\nx = here\nif lib.flag():\n    x = there\nthere + x\nhere + x",
    "devices asked for": "def f(x, y):\n    if x.device != y.device:\n        y = y.to(x.device)\n    return x.new_zeros(3).to(x.device) + y",
    "returns by device": "def f(device=None):\n    if device is None:\n        return torch.empty(2, 2)\n    return torch.empty(2, 2).cuda(device)",
    "isinstance": "d = {'x': here, 'n': 3}\nd = {k: v.to('cuda') if isinstance(v, torch.Tensor) else v for k, v in d.items()}\nthere + d['x']",
    "a setting says cuda everywhere": "def main(args):\n    model = nn.Linear(2, 2)\n    x = torch.ones(2, 2)\n"
    "    if args.cuda:\n        model.cuda()\n    if args.cuda:\n        x = x.cuda()\n    return model(x)",
    "a buffer": "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.register_buffer('pe', torch.ones(3))\n    def forward(self, x):\n        return x + self.pe\nNet().cuda()(there)",
    "a buffer set anew": "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.register_buffer('n', torch.zeros(3))\n        self.n = torch.ones(3)\n    def forward(self, x):\n"
    "        return x + self.n\nNet().cuda()(there)",
    "nn.Buffer": "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.pe = nn.Buffer(torch.ones(3))\n    def forward(self, x):\n        return x + self.pe\nNet().cuda()(there)",
    "a parameter list": "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.ws = nn.ParameterList([nn.Parameter(torch.ones(2))])\n    def forward(self, x):\n"
    "        return x * self.ws[0]\nNet().cuda()(there)",
    "a module dict": "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.heads = nn.ModuleDict({'a': nn.Linear(2, 2)})\n    def forward(self, x):\n"
    "        return self.heads['a'](x)\nNet().cuda()(there)",
    "modules registered under computed names": "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.layers = []\n        for i in range(9):\n            layer = nn.Linear(2, 2)\n"
    "            self.add_module(f'layer{i}', layer)\n            self.layers.append(layer)\n    def forward(self, x):\n"
    "        return self.layers[0](x)\nNet().cuda()(there)",
    "an attribute moved where it is used": "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.pe = torch.ones(3)\n    def forward(self, x):\n        return x + self.pe.to(x.device)\nNet().cuda()(there)",
    "a module that moves itself": "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.pe = torch.ones(3)\n    def _apply(self, fn, recurse=True):\n        self.pe = fn(self.pe)\n"
    "        return super()._apply(fn)\n    def forward(self, x):\n        return x + self.pe\nNet().cuda()(there)",
    "a cache that asks for the device": "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.mask = None\n    def forward(self, x):\n"
    "        if self.mask is None or self.mask.device != x.device:\n"
    "            self.mask = torch.ones(3, device=x.device)\n        return x + self.mask\n"
    "net = Net()\nnet(here)\nnet.cuda()\nnet(there)",
    "data parallel brings its inputs": "model = nn.DataParallel(nn.Linear(2, 2).cuda())\nmodel(here)",
    "trained elsewhere": "import lib\nmodel = nn.Linear(2, 2)\nmodel = lib.prepare(model)\nmodel(there)",
    "prepared in place": "import lib\nmodel = nn.Linear(2, 2)\nlib.setup(model)\nmodel(there)",
    "an optimizer before the move": "model = nn.Linear(2, 2)\nopt = torch.optim.Adam(model.parameters())\nmodel.cuda()\n"
    "model(there).sum().backward()\nopt.step()",
    "an optimizer rebuilt": "model = nn.Sequential(nn.Linear(2, 2)).cuda()\nopt = torch.optim.SGD(model.parameters(), lr=1)\n"
    "model[0] = nn.Linear(2, 2).cuda()\nopt = torch.optim.SGD(model.parameters(), lr=1)\n"
    "model(there).sum().backward()\nopt.step()",
    "two optimizers": "a, b = nn.Linear(2, 2).cuda(), nn.Linear(2, 2).cuda()\nopt_a = torch.optim.Adam(a.parameters())\n"
    "opt_b = torch.optim.Adam(b.parameters())\na(there).sum().backward()\nopt_a.step()\nb(there).sum().backward()\nopt_b.step()",
    "the default device for all": "torch.set_default_device('cuda')\nmodel = nn.Linear(2, 2)\nmodel(torch.ones(2, 2))",
    "meta": "x = torch.zeros(2, device='meta')\nx + here",
    "the current device is set": "def main(rank):\n    torch.cuda.set_device(rank)\n    x = torch.zeros(2).cuda()\n"
    "    return x + torch.zeros(2, device=torch.device('cuda', rank))",
    "the same index": "def main(rank):\n    d = torch.device('cuda', rank)\n    return torch.zeros(2, device=d) + torch.zeros(2).to(d)",
    "lists of numbers": "x = [1, 2] + [3]\nx[0] + 1\nnp.ones(3) + np.zeros(3)",
    "ctc targets": "nn.CTCLoss()(there, here, here, here)",
    "padded sequences": "nn.utils.rnn.pad_sequence([there, here])",
    "discarded on a module": "model = nn.Linear(2, 2)\nmodel.to('cuda')\nmodel(there)",
    "saved and loaded": "torch.save(there, 'f')\nx = torch.load('f', map_location='cpu')\nhere + x",
}


@pytest.mark.parametrize("name", WRONG)
def test_found(name):
    program = WRONG[name]
    marked = [number for number, line in enumerate(program.splitlines(), 1) if line.endswith("# !")]
    text = PREAMBLE + program.replace("  # !", "") + "\n"
    lines = [finding.location.line - PREAMBLE.count("\n") for finding in lint_source(text)]
    assert lines[:1] == marked


@pytest.mark.parametrize("name", RIGHT)
def test_silent(name):
    assert [finding.message for finding in lint_source(PREAMBLE + RIGHT[name] + "\n")] == []


def test_a_program_of_every_kind_of_syntax_is_followed():
    program = textwrap.dedent(
        """
        import torch
        from torch import *
        from . import neighbour
        x: torch.Tensor
        y: int = 3
        async def f(a, /, b, *c, d=1, **e):
            async with a as b, b:
                async for i in b:
                    await i
            yield (yield from b)
        class A(metaclass=type):
            global g
            def __init__(self): self.x = self.y = torch.ones(2)
            @property
            def p(self): return self.x
            @p.setter
            def p(self, v): self.x = v
            def __setitem__(self, k, v): self.d[k] = v
        with open("f") as h, torch.no_grad(): pass
        while True:
            if y: break
            else: continue
        else: pass
        try: raise ValueError
        except (ValueError, TypeError) as e: pass
        else: pass
        finally: pass
        match y:
            case [1, *rest] if rest: z = torch.ones(2)
            case {"a": b, **r}: pass
            case A(x=1) | None: pass
            case _: pass
        del y
        assert x is not None, "?"
        x[..., None, 1:2:3, :] = {**{}, "a": 1}, {1, 2}, {k: v for k, v in {}}, {*()}
        x @= -x; x //= +x; x = not x or x and ~x
        lambda *a, k=1, **kw: (n := 2) if a else f"{x!r:>{y}}" "s"
        [[i for i in j if i] for j in x], (i async for i in x)
        print(*x, **x, sep="")
        a = b = c, *d = [1, 2, 3]
        A()[1] = 2
        """
    )
    assert lint_source(program) == ()
