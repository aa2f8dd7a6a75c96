import copy
import pickle

import pytest
import torch
import torch.utils.checkpoint

import samedevice


def draws(device):
    torch.manual_seed(0)
    cpu = torch.randn(3)
    dropped = torch.nn.functional.dropout(torch.ones(8, device=device))
    return [
        cpu,
        dropped,
        torch.rand(2, device=device),
        torch.randperm(5, device=device),
        torch.randn_like(cpu).to(device),
    ]


def test_same_seed_same_values_as_without_simulation():
    plain = draws("cpu")
    with samedevice.simulate("cuda:2"):
        for device in ("cuda", "cuda:1"):
            for a, b in zip(plain, draws(device), strict=True):
                assert torch.equal(a, b.cpu())


def test_seeding_cuda_like_everything_changes_no_value():
    torch.manual_seed(5)
    plain = torch.randn(3)
    with samedevice.simulate("cuda"):
        torch.manual_seed(5)
        torch.cuda.manual_seed(5)
        torch.cuda.manual_seed_all(5)
        assert torch.equal(plain, torch.randn(3, device="cuda").cpu())


def test_a_device_seeded_apart_repeats_its_numbers(cuda2):
    torch.manual_seed(1)
    torch.cuda.manual_seed(7)
    first = torch.randn(3, device="cuda")
    cpu = torch.randn(2)
    torch.cuda.manual_seed(7)
    assert torch.equal(first, torch.randn(3, device="cuda"))
    assert torch.cuda.initial_seed() == 7
    assert torch.initial_seed() == 1
    torch.manual_seed(1)
    assert torch.equal(cpu, torch.randn(2)), "what the device drew did not move the CPU's generator"
    assert torch.cuda.initial_seed() == 1


def test_states_are_saved_and_restored(cuda2):
    torch.manual_seed(1)
    torch.rand(4, device="cuda")
    state, states = torch.cuda.get_rng_state(), torch.cuda.get_rng_state_all()
    assert state.device.type == "cpu"
    assert len(states) == 2
    first = torch.nn.functional.dropout(torch.ones(9, device="cuda"))
    torch.cuda.set_rng_state(state)
    assert torch.equal(first, torch.nn.functional.dropout(torch.ones(9, device="cuda")))
    with torch.random.fork_rng(devices=[0, 1]):
        torch.rand(3, device="cuda:1")
    torch.cuda.set_rng_state_all(states)


def test_checkpointing_recomputes_the_same_dropout(cuda2):
    inputs = torch.ones(64, device="cuda", requires_grad=True)
    seen = []

    def forward(x):
        seen.append(torch.nn.functional.dropout(x))
        return seen[-1]

    torch.utils.checkpoint.checkpoint(forward, inputs, use_reentrant=True).sum().backward()
    assert torch.equal(*seen)


@pytest.mark.parametrize("state", [torch.zeros(16), "on the device"])
@pytest.mark.parametrize(
    "restore",
    [
        lambda state: torch.set_rng_state(state),
        lambda state: torch.cuda.set_rng_state(state),
        lambda state: torch.Generator(device="cuda").set_state(state),
        lambda state: torch.Generator().set_state(state),
    ],
)
def test_a_state_is_a_byte_tensor_on_the_cpu(cuda2, state, restore):
    state = torch.get_rng_state().cuda() if isinstance(state, str) else state
    with pytest.raises(TypeError, match=r"^RNG state must be a torch\.ByteTensor$"):
        restore(state)


def test_a_state_of_a_real_device_is_read_as_its_seed(cuda2):
    torch.cuda.set_rng_state(torch.tensor([9, *[0] * 15], dtype=torch.uint8))
    first = torch.rand(2, device="cuda")
    torch.cuda.manual_seed(9)
    assert torch.equal(first, torch.rand(2, device="cuda"))
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        torch.cuda.set_rng_state(torch.zeros(5, dtype=torch.uint8))


def test_generators_say_where_they_are(cuda2):
    assert torch.Generator(device="cuda").device == torch.device("cuda")
    assert torch.Generator("cuda:1").device == torch.device("cuda:1")
    assert torch.Generator().device == torch.device("cpu")
    assert isinstance(torch.default_generator, torch.Generator)
    generator = torch.Generator("cuda").manual_seed(5)
    for other in (pickle.loads(pickle.dumps(generator)), copy.deepcopy(generator), generator.clone_state()):
        assert other.device == torch.device("cuda")
        assert torch.equal(other.get_state(), generator.get_state())
    expected = torch.randn(3, generator=torch.Generator().manual_seed(5))
    assert torch.equal(torch.randn(3, device="cuda", generator=generator).cpu(), expected)


def test_a_default_generator_given_by_hand_is_the_default(cuda2):
    torch.cuda.init()
    generator = torch.cuda.default_generators[0]
    for seed in (torch.manual_seed, torch.cuda.manual_seed):
        seed(11)
        first = torch.randn(2, device="cuda", generator=generator)
        seed(11)
        assert torch.equal(first, torch.randn(2, device="cuda"))


WRONG = {
    "randn": lambda g: torch.randn(3, device="cuda", generator=g),
    "randint": lambda g: torch.randint(3, (3,), device="cuda", generator=g),
    "normal_": lambda g: torch.zeros(3, device="cuda").normal_(generator=g),
    "bernoulli": lambda g: torch.bernoulli(torch.zeros(3, device="cuda"), generator=g),
    "multinomial": lambda g: torch.multinomial(torch.ones(3, device="cuda"), 2, generator=g),
    "randperm": lambda g: torch.randperm(3, device="cuda", generator=g),
    "init": lambda g: torch.nn.init.normal_(torch.zeros(3, device="cuda"), generator=g),
}


@pytest.mark.parametrize("draw", WRONG.values(), ids=WRONG)
def test_a_generator_of_the_cpu_does_not_draw_on_a_device(cuda2, draw):
    with pytest.raises(RuntimeError, match=r"^Expected a 'cuda' device type for generator but found 'cpu'$"):
        draw(torch.Generator())
    draw(torch.Generator("cuda:1"))


def test_a_generator_of_a_device_does_not_draw_on_the_cpu(cuda2):
    generator = torch.Generator("cuda")
    for draw in (
        lambda: torch.multinomial(torch.ones(3), 2, generator=generator),
        lambda: torch.zeros(3).normal_(generator=generator),
        lambda: torch.utils.data.random_split(range(4), [2, 2], generator=generator),
    ):
        with pytest.raises(RuntimeError, match=r"^Expected a 'cpu' device type for generator but found 'cuda'$"):
            draw()


def test_a_state_has_the_devices_size_and_restores_the_sequence(cuda2):
    torch.cuda.manual_seed(5)
    assert torch.cuda.get_rng_state().tolist() == [5, *[0] * 15]
    torch.rand(3, device="cuda")
    state = torch.cuda.get_rng_state()
    assert (state.shape, state.dtype, state.device.type) == ((16,), torch.uint8, "cpu")
    assert state.tolist()[:8] == [5, *[0] * 7]
    first = torch.rand(4, device="cuda")
    torch.cuda.set_rng_state(state.clone())
    assert torch.equal(torch.rand(4, device="cuda"), first)
    assert torch.cuda.get_rng_state_all()[1].shape == (16,)


@pytest.mark.parametrize("size", [0, 9, 15, 17])
def test_a_state_of_another_size_is_refused(cuda2, size):
    with pytest.raises(RuntimeError, match=r"^RNG state is wrong size$"):
        torch.cuda.set_rng_state(torch.zeros(size, dtype=torch.uint8))
    with pytest.raises(RuntimeError, match=r"^RNG state is wrong size$"):
        torch.cuda.set_rng_state(torch.get_rng_state())
    with pytest.raises(RuntimeError):
        torch.set_rng_state(torch.cuda.get_rng_state())
    torch.cuda.set_rng_state(torch.cuda.get_rng_state()[:8])


def draw_after_restoring(states, order):
    """What another process draws, which did not make these states."""
    with samedevice.simulate("cuda"):
        for name in order:
            {"cpu": torch.set_rng_state, "cuda": torch.cuda.set_rng_state}[name](states[name])
        return torch.rand(3, device="cuda"), torch.rand(3)


@pytest.mark.parametrize("order", [("cpu", "cuda"), ("cuda", "cpu")])
def test_a_saved_pair_of_states_goes_on_as_one_stream(order):
    with samedevice.simulate("cuda"):
        torch.manual_seed(3)
        torch.rand(7, device="cuda")
        states = {"cpu": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state()}
        expected = torch.rand(3, device="cuda"), torch.rand(3)
    drawn = draw_after_restoring(states, order)
    assert all(torch.equal(one, other) for one, other in zip(drawn, expected, strict=True))


def test_an_unknown_state_is_its_seed(cuda2):
    with_seed = torch.tensor([9, *[0] * 7, 8, *[0] * 7], dtype=torch.uint8)
    torch.cuda.set_rng_state(with_seed)
    drawn = torch.rand(3, device="cuda")
    assert torch.equal(drawn, torch.rand(3, generator=torch.Generator().manual_seed(9)).cuda())


def test_a_generator_that_is_no_keyword_is_of_the_kind_of_device_too(cuda2):
    x = torch.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        torch.poisson(x, torch.Generator())
    assert torch.poisson(x, torch.Generator("cuda")).device == x.device
