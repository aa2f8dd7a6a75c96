import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split

BAD_FORK = (
    "Cannot re-initialize CUDA in forked subprocess. "
    "To use CUDA with multiprocessing, you must use the 'spawn' start method"
)


class Numbers(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.full((2,), float(index)), index


class MadeThere(Numbers):
    def __getitem__(self, index):
        return torch.zeros(1, device="cuda")


class Telling(Dataset):
    """Calls something in the worker and returns what it said."""

    def __init__(self, call):
        self.call = call

    def __len__(self):
        return 1

    def __getitem__(self, index):
        try:
            return repr(self.call())
        except RuntimeError as error:
            return str(error)


class Held(Numbers):
    def __init__(self):
        self.values = torch.ones(4, 2, device="cuda")

    def __getitem__(self, index):
        return self.values[index] * 2


@pytest.mark.parametrize("workers", [0, 2])
def test_pinned_batches_stay_on_the_cpu_until_moved(cuda2, workers):
    for values, indices in DataLoader(Numbers(), 2, pin_memory=True, num_workers=workers):
        assert values.is_pinned()
        assert indices.is_pinned()
        assert values.device.type == "cpu"
        moved = values.to("cuda:1", non_blocking=True)
        assert moved.device == torch.device("cuda:1")
        assert not moved.is_pinned()
        assert moved.tolist() == values.tolist()


def test_a_device_may_be_used_in_the_dataset_without_workers(cuda2):
    assert all(batch.is_cuda for batch in DataLoader(MadeThere(), 2))


USES = {
    "made": lambda: torch.zeros(1, device="cuda"),
    "tensor": lambda: torch.tensor([1], device="cuda:1"),
    "cuda": lambda: torch.zeros(1).cuda(),
    "to": lambda: torch.zeros(1).to("cuda"),
    "module": lambda: torch.nn.Linear(1, 1).cuda(),
    "asked": lambda: torch.cuda.current_device(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_forked_worker_must_not_touch_a_device(cuda2, use):
    torch.cuda.init()
    assert list(DataLoader(Telling(use), num_workers=1, multiprocessing_context="fork")) == [[BAD_FORK]]


def test_a_forked_worker_may_use_what_was_not_used_before(cuda2):
    torch.manual_seed(0)
    assert torch.cuda.is_available()
    assert list(DataLoader(Telling(torch.cuda.current_device), num_workers=1)) == [["0"]]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_forked_worker_cannot_hand_over_what_is_on_a_device(cuda2):
    with pytest.raises(RuntimeError) as raised:
        list(DataLoader(Held(), num_workers=1, multiprocessing_context="fork"))
    assert str(raised.value).strip().endswith(BAD_FORK)


@pytest.mark.slow
def test_a_spawned_worker_has_the_same_devices(cuda2):
    loader = DataLoader(Held(), num_workers=1, multiprocessing_context="spawn")
    assert [(str(batch.device), batch.tolist()) for batch in loader] == [("cuda:0", [[2.0, 2.0]])] * 4


def test_pinning_needs_the_cpu(cuda2):
    with pytest.raises(
        RuntimeError, match=r"cannot pin 'torch\.cuda\.FloatTensor' only dense CPU tensors can be pinned"
    ):
        list(DataLoader(TensorDataset(torch.ones(2, 2, device="cuda")), pin_memory=True))


def test_shuffling_draws_on_the_cpu_unless_that_is_not_the_default(cuda2):
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        list(DataLoader([1, 2], shuffle=True, generator=torch.Generator("cuda")))
    with torch.device("cuda"):
        assert [batch.device for batch in DataLoader([1, 2])] == [torch.device("cuda:0")] * 2
        assert len(list(DataLoader([1, 2], shuffle=True, generator=torch.Generator("cuda")))) == 2
        for draw in (lambda: list(DataLoader([1, 2], shuffle=True)), lambda: random_split(range(4), [2, 2])):
            with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
                draw()


def test_memory_is_pinned_also_where_no_method_is_patched(cuda2):
    # What a loader's thread does while another thread imports a part of PyTorch.
    x = torch.ones(3)
    assert not torch.ops.aten.is_pinned(x)
    pinned = torch.ops.aten.pin_memory(x)
    assert pinned.is_pinned()
    assert torch.ops.aten.is_pinned(pinned)
    assert not x.is_pinned()
