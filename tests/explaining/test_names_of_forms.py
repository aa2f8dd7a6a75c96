"""The user's own name, its line and the failing line through the forms of Python; bare frames and recorded origins.

Each row: the name, then a script whose `# culprit` and `# fault` end the lines that the finding must give.
"""

import textwrap

import pytest

ROWS = {
    "a global": (
        "SCALE",
        """
        SCALE = torch.ones(3)  # culprit
        def step(x):
            return x * SCALE  # fault
        step(A)
        """,
    ),
    "a closure cell": (
        "offset",
        """
        def make():
            offset = torch.ones(3)  # culprit
            def step(x):
                return x + offset  # fault
            return step
        make()(A)
        """,
    ),
    "a class-level attribute": (
        "self.mean",
        """
        class Norm:
            mean = torch.zeros(3)  # culprit
            def run(self, x):
                return x - self.mean  # fault
        Norm().run(A)
        """,
    ),
    "a class attribute by the class": (
        "Norm.mean",
        """
        class Norm:
            mean = torch.zeros(3)  # culprit
        A - Norm.mean  # fault
        """,
    ),
    "slots": (
        "box.mean",
        """
        class Box:
            __slots__ = ("mean",)
            def __init__(self):
                self.mean = torch.zeros(3)  # culprit
        box = Box()
        A - box.mean  # fault
        """,
    ),
    "a dataclass": (
        "batch.mask",
        """
        from dataclasses import dataclass
        @dataclass
        class Batch:
            x: torch.Tensor
            mask: torch.Tensor
        batch = Batch(A, torch.ones(3))  # culprit
        batch.x * batch.mask  # fault
        """,
    ),
    "a frozen dataclass with slots": (
        "batch.mask",
        """
        from dataclasses import dataclass
        @dataclass(frozen=True, slots=True)
        class Batch:
            x: torch.Tensor
            mask: torch.Tensor
        batch = Batch(A, torch.ones(3))  # culprit
        batch.x * batch.mask  # fault
        """,
    ),
    "an attribute of an attribute": (
        "self.cfg.norm.mean",
        """
        from types import SimpleNamespace
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.cfg = SimpleNamespace(norm=SimpleNamespace(mean=torch.zeros(3)))  # culprit
            def forward(self, x):
                return x - self.cfg.norm.mean  # fault
        Net()(A)
        """,
    ),
    "a set comprehension": (
        "rows[1]",
        """
        rows = [A, torch.ones(3)]  # culprit
        out = {A + row for row in rows}  # fault
        """,
    ),
    "a dict comprehension": (
        'table["b"]',
        """
        table = {"a": A, "b": torch.ones(3)}  # culprit
        out = {k: A + v for k, v in table.items()}  # fault
        """,
    ),
    "a generator expression": (
        "rows[1]",
        """
        rows = [A, torch.ones(3)]  # culprit
        out = list(A + row for row in rows)  # fault
        """,
    ),
    "sum over a generator expression": (
        "rows[1]",
        """
        rows = [A, torch.ones(3)]  # culprit
        out = sum(row for row in rows)  # fault
        """,
    ),
    "zip": (
        "ys[1]",
        """
        xs = [A, A]
        ys = [A, torch.ones(3)]  # culprit
        for x, y in zip(xs, ys):
            x + y  # fault
        """,
    ),
    "enumerate": (
        "ys[1]",
        """
        ys = [A, torch.ones(3)]  # culprit
        for index, y in enumerate(ys):
            A + y  # fault
        """,
    ),
    "enumerate of zip": (
        "ys[1]",
        """
        xs = [A, A]
        ys = [A, torch.ones(3)]  # culprit
        for index, (x, y) in enumerate(zip(xs, ys)):
            x + y  # fault
        """,
    ),
    "dict items": (
        'batch["mask"]',
        """
        batch = {"x": A, "mask": torch.ones(3)}  # culprit
        for name, value in batch.items():
            A * value  # fault
        """,
    ),
    "dict values": (
        'batch["mask"]',
        """
        batch = {"x": A, "mask": torch.ones(3)}  # culprit
        for value in batch.values():
            A * value  # fault
        """,
    ),
    "map with a lambda": (
        "rows[0]",
        """
        rows = [torch.ones(3)]  # culprit
        list(map(lambda row: row + A, rows))  # fault
        """,
    ),
    "reversed": (
        "rows[0]",
        """
        rows = [torch.ones(3), A]  # culprit
        for row in reversed(rows):
            A + row  # fault
        """,
    ),
    "a walrus": (
        "y",
        """
        if (y := torch.ones(3)) is not None:  # culprit
            A + y  # fault
        """,
    ),
    "a walrus in the line": (
        "y",
        """
        out = A + (y := torch.ones(3))  # culprit fault
        """,
    ),
    "an f-string": (
        "y",
        """
        y = torch.ones(3)  # culprit
        text = f"sum is {(A + y).sum()}"  # fault
        """,
    ),
    "starred arguments": (
        "pair[1]",
        """
        pair = (A, torch.ones(3))  # culprit
        torch.add(*pair)  # fault
        """,
    ),
    "a star in the middle": (
        "rest[0]",
        """
        first, *rest = [A, torch.ones(3)]  # culprit
        first + rest[0]  # fault
        """,
    ),
    "keywords spread": (
        'options["other"]',
        """
        options = {"other": torch.ones(3)}  # culprit
        torch.add(A, **options)  # fault
        """,
    ),
    "through star args of a function": (
        "y",
        """
        def run(*tensors):
            return tensors[0] + tensors[1]  # fault
        y = torch.ones(3)  # culprit
        run(A, y)
        """,
    ),
    "through keyword args of a function": (
        "y",
        """
        def run(**tensors):
            return tensors["x"] + tensors["y"]  # fault
        y = torch.ones(3)  # culprit
        run(x=A, y=y)
        """,
    ),
    "match on a dict": (
        'batch["mask"]',
        """
        batch = {"x": A, "mask": torch.ones(3)}  # culprit
        match batch:
            case {"x": x, "mask": mask}:
                x * mask  # fault
        """,
    ),
    "match on a tuple": (
        "pair[1]",
        """
        pair = (A, torch.ones(3))  # culprit
        match pair:
            case (x, mask):
                x * mask  # fault
        """,
    ),
    "match on a class": (
        "batch.mask",
        """
        from dataclasses import dataclass
        @dataclass
        class Batch:
            x: torch.Tensor
            mask: torch.Tensor
        batch = Batch(A, torch.ones(3))  # culprit
        match batch:
            case Batch(x=x, mask=mask):
                x * mask  # fault
        """,
    ),
    "a nested function": (
        "y",
        """
        def outer(y):
            def inner(x):
                return x + y  # fault
            return inner(A)
        y = torch.ones(3)  # culprit
        outer(y)
        """,
    ),
    "a nonlocal": (
        "total",
        """
        def outer():
            total = torch.zeros(3)  # culprit
            def add(x):
                nonlocal total
                total = total + x  # fault
            add(A)
        outer()
        """,
    ),
    "augmented assignment": (
        "total",
        """
        total = torch.zeros(3)  # culprit
        total += A  # fault
        """,
    ),
    "augmented assignment to an attribute": (
        "self.total",
        """
        class Meter:
            def __init__(self):
                self.total = torch.zeros(3)  # culprit
            def update(self, x):
                self.total += x  # fault
        Meter().update(A)
        """,
    ),
    "augmented assignment to an entry": (
        'totals["loss"]',
        """
        totals = {"loss": torch.zeros(3)}  # culprit
        totals["loss"] += A  # fault
        """,
    ),
    "chained calls over lines": (
        "bias",
        """
        bias = torch.ones(3)  # culprit
        out = (
            A.abs()
            .add(1)
            .add(bias)  # fault
            .relu()
        )
        """,
    ),
    "a ternary": (
        "y",
        """
        y = torch.ones(3)  # culprit
        out = A + (y if A.numel() else A)  # fault
        """,
    ),
    "a boolean operator": (
        "y",
        """
        y = torch.ones(3)  # culprit
        out = A + (None or y)  # fault
        """,
    ),
    "a subscript by an expression": (
        "rows[i + 1]",
        """
        rows = [A, torch.ones(3)]  # culprit
        i = 0
        out = A + rows[i + 1]  # fault
        """,
    ),
    "a negative subscript": (
        "rows[-1]",
        """
        rows = [A, torch.ones(3)]  # culprit
        out = A + rows[-1]  # fault
        """,
    ),
    "an enum as key": (
        "table[Kind.MASK]",
        """
        import enum
        class Kind(enum.Enum):
            MASK = 1
        table = {Kind.MASK: torch.ones(3)}  # culprit
        out = A * table[Kind.MASK]  # fault
        """,
    ),
    "get of a dict": (
        'batch["mask"]',
        """
        batch = {"mask": torch.ones(3)}  # culprit
        out = A * batch.get("mask")  # fault
        """,
    ),
    "pop of a dict": (
        'batch.pop("mask")',
        """
        batch = {"mask": torch.ones(3)}  # culprit
        out = A * batch.pop("mask")  # fault
        """,
    ),
    "getattr": (
        "box.mask",
        """
        from types import SimpleNamespace
        box = SimpleNamespace(mask=torch.ones(3))  # culprit
        out = A * getattr(box, "mask")  # fault
        """,
    ),
    "a property": (
        "box.mask",
        """
        class Box:
            def __init__(self):
                self._mask = torch.ones(3)  # culprit
            @property
            def mask(self):
                return self._mask
        box = Box()
        out = A * box.mask  # fault
        """,
    ),
    "a variable that holds a generator": (
        "y",
        """
        def rows(y):
            yield A + y  # fault
        y = torch.ones(3)  # culprit
        made = rows(y)
        for row in made:
            pass
        """,
    ),
    "an index of an index": (
        "rows[order[0]]",
        """
        order = [1, 0]
        rows = [A, torch.ones(3)]  # culprit
        A + rows[order[0]]  # fault
        """,
    ),
    "the whole subject of a match": (
        "y",
        """
        y = torch.ones(3)  # culprit
        match y:
            case mask:
                A * mask  # fault
        """,
    ),
    "a private name": (
        "self.__mask",
        """
        class Box:
            def __init__(self):
                self.__mask = torch.ones(3)  # culprit
            def run(self, x):
                return x * self.__mask  # fault
        Box().run(A)
        """,
    ),
    "a closure over a parameter": (
        "y",
        """
        def make(y):
            return lambda x: x + y  # fault
        step = make(torch.ones(3))  # culprit recorded
        step(A)
        """,
    ),
    "a computed property": (
        "box.mask",
        """
        class Box:
            @property
            def mask(self):
                return torch.ones(3)  # culprit
        box = Box()
        out = A * box.mask  # fault
        """,
    ),
    "an operator of an object": (
        "self.weight",
        """
        class Scale:
            def __init__(self):
                self.weight = torch.ones(3)  # culprit
            def __matmul__(self, x):
                return x * self.weight  # fault
        Scale() @ A
        """,
    ),
    "a call of an object": (
        "self.weight",
        """
        class Scale:
            def __init__(self):
                self.weight = torch.ones(3)  # culprit
            def __call__(self, x):
                return x * self.weight  # fault
        Scale()(A)
        """,
    ),
    "a context manager": (
        "total",
        """
        import contextlib
        @contextlib.contextmanager
        def scope():
            total = torch.zeros(3)  # culprit recorded
            yield total
        with scope() as total:  # culprit bare
            A + total  # fault
        """,
    ),
    "a context manager's end": (
        "self.total",
        """
        class Scope:
            def __enter__(self):
                self.total = torch.zeros(3)  # culprit
                return self
            def __exit__(self, *_):
                self.total + A  # fault
        with Scope():
            pass
        """,
    ),
    "an async function": (
        "y",
        """
        import asyncio
        async def step(x, y):
            await asyncio.sleep(0)
            return x + y  # fault
        async def main():
            y = torch.ones(3)  # culprit
            await step(A, y)
        asyncio.run(main())
        """,
    ),
    "an async generator": (
        "y",
        """
        import asyncio
        async def rows(y):
            yield A + y  # fault
        async def main():
            y = torch.ones(3)  # culprit
            async for row in rows(y):
                pass
        asyncio.run(main())
        """,
    ),
    "a generator that yields from another": (
        "y",
        """
        def inner(y):
            yield A + y  # fault
        def outer(y):
            yield from inner(y)
        y = torch.ones(3)  # culprit
        for row in outer(y):
            pass
        """,
    ),
    "handed out by a generator": (
        "batch",
        """
        def batches():
            yield torch.ones(3)  # culprit recorded
        for batch in batches():  # culprit bare
            A + batch  # fault
        """,
    ),
    "a global declared": (
        "COUNT",
        """
        COUNT = torch.zeros(3)  # culprit
        def update():
            global COUNT
            COUNT = COUNT + A  # fault
        update()
        """,
    ),
    "a default argument": (
        "scale",
        """
        def step(x, scale=torch.ones(3)):  # culprit
            return x * scale  # fault
        step(A)
        """,
    ),
    "a name for what a module holds": (
        "consts.bias",
        """
        import types
        consts = types.ModuleType("consts")
        consts.bias = torch.ones(3)  # culprit
        math_bias = consts.bias
        A + math_bias  # fault
        """,
    ),
    "a named tuple": (
        "batch.mask",
        """
        from typing import NamedTuple
        class Batch(NamedTuple):
            x: torch.Tensor
            mask: torch.Tensor
        batch = Batch(A, torch.ones(3))  # culprit
        batch.x * batch.mask  # fault
        """,
    ),
    "semicolons": (
        "y",
        """
        y = torch.ones(3); z = 1  # culprit
        w = 2; out = A + y  # fault
        """,
    ),
    "an assert": (
        "y",
        """
        y = torch.ones(3)  # culprit
        assert (A == y).all()  # fault
        """,
    ),
    "a while": (
        "y",
        """
        y = torch.ones(3)  # culprit
        while (A < y).all():  # fault
            break
        """,
    ),
    "a return of a tuple": (
        "y",
        """
        def step(x, y):
            return x, x + y  # fault
        y = torch.ones(3)  # culprit
        step(A, y)
        """,
    ),
    "a slice in a subscript": (
        "y",
        """
        y = torch.ones(5)  # culprit
        out = A + y[1:4]  # fault
        """,
    ),
    "two accumulations": (
        "total",
        """
        total = torch.zeros(3)  # culprit
        losses = [A, A]
        for loss in losses:
            total = total + loss  # fault
        """,
    ),
    "a helper's result": (
        "positions",
        """
        def make(n):
            return torch.arange(n)  # culprit
        positions = make(3)
        out = A + positions  # fault
        """,
    ),
}


@pytest.mark.parametrize("how", ["bare", "recorded"])
@pytest.mark.parametrize("case", ROWS)
def test_name_line_and_place(case, how, check_row):
    name, script = ROWS[case]
    check_row(name, 'A = torch.zeros(3, device="cuda")\n' + textwrap.dedent(script).lstrip(), how)
