import contextlib
import io
import queue
import subprocess
import sys
import threading
import warnings

import pytest
import torch

import samedevice


def snapshot():
    """Every attribute of PyTorch's modules and classes, and what else a simulation touches."""
    found = {}
    for name, module in list(sys.modules.items()):
        if module is not None and name.partition(".")[0] in ("torch", "threading", "multiprocessing"):
            found[name] = dict(vars(module))
            for key, value in list(vars(module).items()):
                if issubclass(type(value), type) and value.__module__.partition(".")[0] in ("torch", "threading"):
                    found[f"{name}.{key}"] = dict(vars(value))
    found["sys.meta_path"] = dict(enumerate(sys.meta_path))
    return found


def differences(before, after):
    ignored = {"__warningregistry__", "__abstractmethods__"}
    for owner, attributes in before.items():
        now = after.get(owner, {})
        for name in (attributes.keys() | now.keys()) - ignored:
            new_module = name not in attributes and f"{owner}.{name}" in sys.modules
            if attributes.get(name, ...) is not now.get(name, ...) and not new_module:
                yield f"{owner}.{name}"


def use_devices(kind):
    """Much of what a script does: each of it replaces, registers or remembers something."""
    device = torch.device(kind)
    model = torch.nn.Sequential(torch.nn.Conv1d(3, 3, 1), torch.nn.BatchNorm1d(3)).to(device)
    # The scaler of older versions computes in float64.
    mixed = kind != "mps"
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler(kind, enabled=mixed)
    with torch.autocast(kind, dtype=torch.bfloat16) if mixed else contextlib.nullcontext():
        loss = model(torch.randn(2, 3, 4, device=device)).float().sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    torch.nn.LSTM(3, 2).to(device)(torch.randn(2, 3, device=device))
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    torch.load(file)
    torch.manual_seed(0)
    torch.randn(2, device=device, generator=torch.Generator(device))
    for batch in torch.utils.data.DataLoader(torch.zeros(4, 2), pin_memory=True):
        batch.to(device)
    torch.accelerator.synchronize()
    torch.accelerator.current_stream()
    torch.vmap(lambda row: row * 2)(torch.ones(2, 2, device=device))
    with torch.device(device):
        torch.zeros(1)
    torch.set_default_device(device)
    assert repr(torch.ones(2)).endswith(f"device='{kind}:0')")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["cuda", "xpu", "mps", "npu", "hpu"])
def test_after_it_everything_is_as_it_was(kind):
    with samedevice.simulate(kind):  # imports what PyTorch imports late
        use_devices(kind)
    before = snapshot()
    with samedevice.simulate(kind):
        assert list(differences(before, snapshot()))
        use_devices(kind)
    assert list(differences(before, snapshot())) == []
    assert torch.zeros(1).device.type == "cpu"
    assert torch._C._len_torch_dispatch_stack() == torch._C._len_torch_function_stack() == 0


@pytest.fixture
def before():
    """What there was, with everything imported."""
    with samedevice.simulate("cuda"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        use_devices("cuda")
    return snapshot()


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_after_an_exception_everything_is_as_it_was(before, error):
    def script():
        with samedevice.simulate("cuda:2"):
            torch.set_default_device("cuda")
            raise error("on purpose")

    with pytest.raises(error):
        script()
    assert list(differences(before, snapshot())) == []
    assert torch.zeros(1).device.type == "cpu"


def test_after_a_generator_that_nobody_finishes_everything_is_as_it_was(before):
    def batches():
        with samedevice.simulate("cuda:2"):
            while True:
                yield torch.zeros(1, device="cuda")

    generator = batches()
    assert next(generator).is_cuda
    generator.close()
    assert list(differences(before, snapshot())) == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_after_an_exception_in_a_thread_everything_is_as_it_was(before):
    def work():
        raise ValueError(f"on purpose, on {torch.zeros(1, device='cuda').device}")

    with samedevice.simulate("cuda:2"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert list(differences(before, snapshot())) == []


def test_a_default_device_of_before_is_one_again():
    torch.set_default_device("meta")
    try:
        with samedevice.simulate("cuda"):
            torch.set_default_device("cuda")
        assert torch.zeros(1).is_meta
    finally:
        torch.set_default_device(None)


def test_after_it_there_is_no_device_again():
    with samedevice.simulate("cuda:2"):
        torch.zeros(1, device="cuda")
    if not torch.cuda.is_available():
        with pytest.raises((AssertionError, RuntimeError), match=r"CUDA|NVIDIA"):
            torch.zeros(1, device="cuda")


def test_tensors_made_inside_stay_usable():
    with samedevice.simulate("cuda:2"):
        x = torch.ones(2, device="cuda:1", requires_grad=True)
        y = x.cpu() * 2
    assert x.device == y.device == torch.device("cpu")
    (x * torch.ones(2) + y).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_later_simulation_knows_nothing_of_an_earlier_one():
    with samedevice.simulate("cuda:2"):
        x = torch.ones(2, device="cuda:1")
    with samedevice.simulate("xpu"):
        assert x.device.type == "cpu"
        assert (x + torch.ones(2)).device.type == "cpu"


def test_it_does_not_nest():
    with samedevice.simulate("cuda:2"):
        with pytest.raises(samedevice.UsageError, match=r"cuda:0, cuda:1 are being simulated already\. Mend: "):
            samedevice.simulate("cuda").__enter__()
        assert torch.zeros(1, device="cuda").is_cuda


def test_it_decorates():
    @samedevice.simulate("cuda")
    def device():
        return str(torch.zeros(1, device="cuda").device)

    assert device() == device() == "cuda:0"


def test_what_is_imported_meanwhile_goes_on_working():
    with samedevice.simulate("cuda"):
        names: dict = {}
        exec("from torch import tensor, zeros, device", names)
        assert names["tensor"]([1.0], device="cuda").is_cuda
    assert names["tensor"]([1.0]).device.type == "cpu"
    assert names["zeros"](2).device.type == "cpu"
    assert names["device"]("cpu") == torch.device("cpu")
    with samedevice.simulate("xpu"):
        assert names["tensor"]([1.0], device="xpu").device == torch.device("xpu:0")


class TestThreads:
    def test_a_new_thread_is_in_it(self, cuda2):
        seen = []

        def work():
            x = torch.zeros(2, device="cuda")
            seen.append((x * 2).device)
            try:
                x + torch.zeros(2)
            except RuntimeError as error:
                seen.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert seen[0] == torch.device("cuda:0")
        assert "cuda:0 and cpu" in seen[1]

    @pytest.mark.parametrize(
        "first",
        [lambda: torch.zeros(2).to("cuda"), lambda: torch.zeros(2, device="cuda"), lambda: torch.ones(2).cuda()],
    )
    def test_a_thread_that_was_there_before_joins_when_it_first_asks(self, first):
        jobs, answers = queue.Queue(), queue.Queue()

        def work():
            while (job := jobs.get()) is not None:
                answers.put(job())

        thread = threading.Thread(target=work)
        thread.start()
        try:
            for _ in range(2):
                with samedevice.simulate("cuda"):
                    jobs.put(lambda: (first() * 2).device)
                    assert answers.get(timeout=30) == torch.device("cuda:0")
                jobs.put(lambda: (torch.zeros(2) * 2).device)
                assert answers.get(timeout=30) == torch.device("cpu")
        finally:
            jobs.put(None)
            thread.join()

    def test_a_thread_that_outlives_it_goes_on(self):
        leave, answers = threading.Event(), []

        def work():
            leave.wait(30)
            answers.append((torch.zeros(2) + 1).tolist())

        with samedevice.simulate("cuda"):
            thread = threading.Thread(target=work)
            thread.start()
        leave.set()
        thread.join()
        assert answers == [[1.0, 1.0]]


def test_the_traceback_ends_close_to_the_user_s_line(cuda2):
    with pytest.raises(RuntimeError) as caught:
        torch.zeros(2, device="cuda") + torch.zeros(2)
    inside = [entry for entry in caught.traceback if "samedevice/simulation" in str(entry.path).replace("\\", "/")]
    assert len(inside) <= 2


@pytest.mark.slow
def test_in_a_process_that_starts_with_it():
    script = (
        "import samedevice\n"
        "with samedevice.simulate('cuda:2'):\n"
        "    import torch\n"
        "    print(torch.zeros(1, device='cuda:1').device, torch.cuda.device_count())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["cuda:1", "2"]
