"""Names and places where code is no plain script: exec, notebooks, bytecode, other files, workers, chained errors."""

import compileall
import importlib.util
import linecache
import sys
import textwrap

import pytest

CHAINS = {
    "raised from another": (
        "mask",
        """
        def step(x, mask):
            return x * mask  # fault
        mask = torch.ones(3)  # culprit
        try:
            step(A, mask)
        except RuntimeError as error:
            raise ValueError("the step failed") from error
        """,
    ),
    "wrapped without from": (
        "mask",
        """
        mask = torch.ones(3)  # culprit
        try:
            A * mask  # fault
        except RuntimeError:
            raise KeyError("step")
        """,
    ),
    "raised in finally": (
        "mask",
        """
        mask = torch.ones(3)  # culprit
        try:
            A * mask  # fault
        finally:
            {}["missing"]
        """,
    ),
    "raised in a context manager's end": (
        "mask",
        """
        class Scope:
            def __enter__(self):
                return self
            def __exit__(self, *_):
                raise OSError("closing failed")
        mask = torch.ones(3)  # culprit
        with Scope():
            A * mask  # fault
        """,
    ),
    "raised again": (
        "mask",
        """
        mask = torch.ones(3)  # culprit
        try:
            A * mask  # fault
        except RuntimeError as error:
            raise error.with_traceback(error.__traceback__)
        """,
    ),
    "a future": (
        "mask",
        """
        from concurrent.futures import ThreadPoolExecutor
        def step(x, mask):
            return x * mask  # fault
        mask = torch.ones(3)  # culprit
        with ThreadPoolExecutor(1) as pool:
            pool.submit(step, A, mask).result()
        """,
    ),
    "an exception group": (
        "mask",
        """
        mask = torch.ones(3)  # culprit
        errors = []
        try:
            A * mask  # fault
        except RuntimeError as error:
            errors.append(error)
        raise ExceptionGroup("steps", [ValueError("other"), *errors])
        """,
    ),
    "a task group": (
        "mask",
        """
        import asyncio
        async def step(x, mask):
            return x * mask  # fault
        async def main():
            mask = torch.ones(3)  # culprit recorded
            async with asyncio.TaskGroup() as group:
                group.create_task(step(A, mask))
        asyncio.run(main())
        """,
    ),
    "a star handler": (
        "mask",
        """
        mask = torch.ones(3)  # culprit
        try:
            try:
                A * mask  # fault
            except RuntimeError as error:
                raise ExceptionGroup("steps", [error])
        except* ValueError:
            pass
        """,
    ),
}
NEW = ("an exception group", "a task group", "a star handler")


@pytest.mark.parametrize("how", ["bare", "recorded"])
@pytest.mark.parametrize("case", CHAINS)
def test_chained_exceptions(case, how, check_row):
    if case in NEW and sys.version_info < (3, 11):
        pytest.skip("exception groups came with Python 3.11")
    name, script = CHAINS[case]
    check_row(name, 'A = torch.zeros(3, device="cuda")\n' + textwrap.dedent(script).lstrip(), how)


NET = """
import torch
from torch import nn

class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = torch.ones(3)

    def scaled(self, x):
        return x * self.mask
"""


@pytest.mark.parametrize("how", ["bare", "recorded"])
def test_a_base_class_in_another_file(how, run_script, tmp_path, monkeypatch):
    module = f"base_of_nets_{how}"
    (tmp_path / f"{module}.py").write_text(NET)
    monkeypatch.syspath_prepend(tmp_path)
    script = f"""
    from {module} import Base
    class Net(Base):
        def forward(self, x):
            return x - self.mask
    Net().cuda()(torch.zeros(3, device="cuda"))
    """
    ran = run_script(script, origins=how == "recorded", bare=how == "bare")
    culprit = ran.finding.culprit
    assert (culprit.name, culprit.line, culprit.file) == ("self.mask", 8, str(tmp_path / f"{module}.py"))
    assert ran.finding.location.file == ran.file


@pytest.mark.parametrize("how", ["bare", "recorded"])
def test_bytecode_without_its_source(how, run_script, tmp_path, monkeypatch):
    module = f"compiled_net_{how}"
    (tmp_path / f"{module}.py").write_text(NET)
    compileall.compile_file(tmp_path / f"{module}.py", legacy=True, quiet=2)
    (tmp_path / f"{module}.py").unlink()
    monkeypatch.syspath_prepend(tmp_path)
    script = f"""
    from {module} import Base
    net = Base().cuda()
    net.scaled(torch.zeros(3, device="cuda"))
    """
    ran = run_script(script, origins=how == "recorded", bare=how == "bare")
    finding = ran.finding
    assert (finding.location.line, finding.location.function, finding.location.source) == (11, "scaled", None)
    assert finding.raised.message.startswith("Expected all tensors")
    if how == "recorded":
        assert (finding.culprit.name, finding.culprit.line) == ("self.mask", 8)
    else:
        assert finding.culprit is None or finding.culprit.name == "self.mask"


@pytest.mark.parametrize("how", ["bare", "recorded"])
@pytest.mark.parametrize(
    "file", ["<ipython-input-3-0f1c2d3e4f50>", "/tmp/ipykernel_4242/1234567.py", "<sources of mine>"]
)
def test_sources_that_only_linecache_knows(file, how, run_script, monkeypatch):
    cell = "mask = torch.ones(3)\nout = A * mask\n"
    lines = cell.splitlines(keepends=True)
    script = f"""
    import linecache
    A = torch.zeros(3, device="cuda")
    linecache.cache[{file!r}] = (len({cell!r}), None, {lines!r}, {file!r})
    exec(compile({cell!r}, {file!r}, "exec"))
    """
    ran = run_script(script, origins=how == "recorded", bare=how == "bare")
    del linecache.cache[file]
    finding = ran.finding
    assert (finding.culprit.name, finding.culprit.line, finding.culprit.file) == ("mask", 1, file)
    assert (finding.location.line, finding.location.source) == (2, "out = A * mask")


@pytest.mark.parametrize("how", ["bare", "recorded"])
def test_code_given_to_exec_as_text(how, run_script):
    script = """
    A = torch.zeros(3, device="cuda")
    mask = torch.ones(3)  # culprit
    exec("out = A * mask")  # fault
    """
    ran = run_script(script, origins=how == "recorded", bare=how == "bare")
    assert ran.finding.location.line == ran.line("fault")
    if how == "recorded":
        assert (ran.finding.culprit.name, ran.finding.culprit.line) == ("mask", ran.line("culprit"))


@pytest.mark.skipif(importlib.util.find_spec("IPython") is None, reason="IPython is not installed")
def test_a_real_cell_of_ipython(run_script):
    script = """
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell()
    shell.user_ns["A"] = torch.zeros(3, device="cuda")
    shell.run_cell("import torch\\nmask = torch.ones(3)\\n")
    result = shell.run_cell("x = 1\\nout = A * mask\\n", silent=True)
    InteractiveShell.clear_instance()
    raise result.error_in_exec
    """
    finding = run_script(script, origins=False, bare=True).finding
    assert (finding.culprit.name, finding.location.line) == ("mask", 2)
    assert finding.location.source == "out = A * mask"


WORKERS = {
    "a collate function": """
    mean = torch.zeros(3)  # culprit
    def collate(rows):
        return torch.stack(rows).to("cuda") - mean  # fault
    loader = DataLoader(torch.zeros(8, 3), batch_size=4, num_workers={workers}, collate_fn=collate)
    """,
    "a transform": """
    class Shift:
        def __init__(self):
            self.mean = torch.zeros(3)  # culprit
        def __call__(self, row):
            return row.to("cuda") - self.mean  # fault
    class Rows(Dataset):
        def __init__(self, transform):
            self.transform = transform
        def __len__(self):
            return 8
        def __getitem__(self, index):
            return self.transform(torch.zeros(3))
    loader = DataLoader(Rows(Shift()), batch_size=4, num_workers={workers})
    """,
}


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("case", WORKERS)
def test_what_a_loader_runs(case, workers, run_script):
    head = "from torch.utils.data import DataLoader, Dataset\n"
    script = head + textwrap.dedent(WORKERS[case]).format(workers=workers) + "next(iter(loader))\n"
    ran = run_script(script, origins=False, bare=True)
    assert ran.finding is not None, ran.error
    name = {"a collate function": "mean", "a transform": "self.mean"}[case]
    assert ran.finding.location.line == ran.line("fault")
    assert (ran.finding.culprit.name, ran.finding.culprit.line) == (name, ran.line("culprit"))
