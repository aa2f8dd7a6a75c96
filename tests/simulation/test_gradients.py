"""Autograd's own device checks, in the words of the real CUDA build of 2.13."""

import pytest
import torch
from torch import nn

import samedevice
from samedevice.faults import fault_of

CPU, CUDA, CUDA1 = torch.device("cpu"), torch.device("cuda:0"), torch.device("cuda:1")


@pytest.fixture
def p():
    return torch.ones(3, requires_grad=True)


@pytest.fixture
def c(cuda2):
    return torch.ones(3, device="cuda", requires_grad=True)


CROSSINGS = {
    "to": lambda p: p.to("cuda") * 2,
    "to and back": lambda p: p.cuda().cpu().cuda(1).exp(),
    "dtype too": lambda p: p.to("cuda:1", torch.float64) * 2,
    "copy_": lambda p: torch.zeros(3, device="cuda").copy_(p) * 2,
    "setitem": lambda p: _set(torch.zeros(2, 3, device="cuda"), 0, p),
    "setitem of a slice": lambda p: _set(torch.zeros(6, device="cuda"), slice(1, 4), p),
    "type_as": lambda p: p.type_as(torch.ones(1, device="cuda")),
    "module": lambda p: nn.Linear(3, 2).cuda()(p.cuda()),
    "padded": lambda p: nn.utils.rnn.pad_sequence([torch.zeros(4, device="cuda"), p]),
    "checkpoint": lambda p: torch.utils.checkpoint.checkpoint(lambda x: x.cuda().exp(), p, use_reentrant=False),
    "reentrant checkpoint": lambda p: torch.utils.checkpoint.checkpoint(
        lambda x: x.cuda().exp(), p, use_reentrant=True
    ),
}


def _set(target, index, value):
    target[index] = value
    return target * 2


@pytest.mark.parametrize("cross", CROSSINGS.values(), ids=CROSSINGS)
def test_the_gradient_comes_back_over_a_crossing(cuda2, p, cross):
    torch.cuda.init()  # else a checkpoint refuses to be the first to use a device, as on a real machine
    y = cross(p)
    assert y.device.type == "cuda"
    y.sum().backward()
    assert p.grad.device == CPU
    cross(p).sum().backward()  # accumulates on one device
    assert p.grad.device == CPU


SCATTERED = {
    "Select": lambda x, p: torch.select_scatter(x, p[0], 0, 1),
    "Slice": lambda x, p: torch.slice_scatter(x, p, 0, 0, 2),
    "Diagonal": lambda x, p: torch.diagonal_scatter(x, p[0]),
    "AsStrided": lambda x, p: torch.as_strided_scatter(x, p[0], (2,), (2,)),
}


@pytest.mark.parametrize(("name", "scatter"), SCATTERED.items(), ids=SCATTERED)
def test_of_what_was_scattered_from_elsewhere_is_refused(cuda2, name, scatter):
    p = torch.ones(2, 2, requires_grad=True)
    message = f"{name}ScatterBackward0 returned an invalid gradient at index 1 - expected device cpu but got cuda:0"
    with pytest.raises(RuntimeError, match=message):
        scatter(torch.zeros(2, 2, device="cuda"), p).sum().backward()
    here = torch.ones(2, 2, device="cuda", requires_grad=True)
    scatter(torch.zeros(2, 2, device="cuda"), here).sum().backward()
    assert here.grad.device == CUDA


def test_of_a_number_that_was_scattered_is_moved(cuda2):
    s = torch.tensor(1.0, requires_grad=True)
    torch.select_scatter(torch.zeros(2, device="cuda"), s, 0, 1).sum().backward()
    assert s.grad.device == CPU


def test_of_a_tensor_used_on_both_sides(cuda2, p):
    loss = (p.cuda() * 2).sum().cpu() + (p * 3).sum() + (p.cuda(1) ** 2).sum().cpu()
    loss.backward()
    assert p.grad.device == CPU
    assert p.grad.tolist() == [7.0] * 3


SCALARS = {
    "product": lambda s, c: s * c,
    "sum": lambda s, c: c + s,
    "quotient": lambda s, c: c / s,
    "where": lambda s, c: torch.where(c > 0, s, c),
    "index_put": lambda s, c: _set(c.clone(), torch.tensor([0]), s),
    "lerp weight": lambda s, c: torch.lerp(c, c + 1, s),
}


@pytest.mark.parametrize("use", SCALARS.values(), ids=SCALARS)
def test_a_number_on_the_cpu_gets_its_gradient_there(cuda2, use):
    s, c = torch.tensor(2.0, requires_grad=True), torch.ones(3, device="cuda", requires_grad=True)
    for _ in range(2):
        use(s, c).sum().backward()
    assert (s.grad.device, c.grad.device) == (CPU, CUDA)


def test_second_derivatives_over_a_crossing(cuda2, p):
    (first,) = torch.autograd.grad((p.cuda() ** 3).sum(), p, create_graph=True)
    assert first.device == CPU
    (second,) = torch.autograd.grad(first.sum(), p)
    assert (second.device, second.tolist()) == (CPU, [6.0] * 3)


class TestAssignedGradients:
    def test_of_another_kind(self, c, p):
        with pytest.raises(RuntimeError) as caught:
            c.grad = torch.ones(3)
        assert str(caught.value) == (
            "attempting to assign a gradient with device type 'cpu' to a tensor with device type 'cuda'. "
            "Please ensure that the gradient and the tensor are on the same device"
        )
        assert fault_of(caught.value).operands[0].argument == "grad"
        with pytest.raises(RuntimeError, match="device type 'cuda' to a tensor with device type 'cpu'"):
            p.grad = torch.ones(3, device="cuda")

    def test_of_another_index(self, c):
        with pytest.raises(RuntimeError, match="attempting to assign a gradient located on device with index"):
            c.grad = torch.ones(3, device="cuda:1")

    def test_right_ones(self, c):
        c.grad = torch.ones(3, device="cuda")
        assert c.grad.device == CUDA
        c.grad = None
        assert c.grad is None
        c.grad = torch.zeros(3, device="cuda")
        del c.grad
        assert c.grad is None
        with pytest.raises(TypeError):
            c.grad = 1.0
        with pytest.raises(RuntimeError, match="attempting to assign a gradient of size"):
            c.grad = torch.zeros(2, device="cuda")


class TestRoots:
    def test_elsewhere(self, c):
        message = "invalid gradient at index 0 - expected device cuda:0 but got cpu"
        with pytest.raises(RuntimeError, match=message):
            (c * 2).backward(torch.ones(3))
        with pytest.raises(RuntimeError, match=message):
            torch.autograd.grad(c * 2, c, torch.ones(3))

    def test_a_number_is_moved(self, c):
        (c * 2).sum().backward(torch.tensor(1.0))
        assert c.grad.device == CUDA


class Doubled(torch.autograd.Function):
    answer = staticmethod(lambda gradient: gradient)

    @staticmethod
    def forward(ctx, x, factor, bias):
        return x * factor + bias

    @staticmethod
    def backward(ctx, gradient):
        return Doubled.answer(gradient), None, gradient


class TestFunctions:
    def run(self, answer, x, bias):
        Doubled.answer = staticmethod(answer)
        Doubled.apply(x, 2.0, bias).sum().backward()

    def test_a_gradient_elsewhere(self, c):
        message = (
            "Function DoubledBackward returned an invalid gradient at index 0 - expected device cuda:0 but got cpu"
        )
        with pytest.raises(RuntimeError, match=message):
            self.run(lambda gradient: gradient.cpu(), c, c.detach())

    def test_what_needs_no_gradient_is_not_looked_at(self, c):
        self.run(lambda gradient: gradient, c, torch.ones(3, device="cuda"))
        assert c.grad.device == CUDA
        loss = _Astray.apply(c.detach(), 2.0, c).sum()
        with pytest.raises(RuntimeError, match="at index 1 - expected device cuda:0 but got cuda:1"):
            loss.backward()

    def test_a_number_is_moved(self, cuda2):
        s = torch.tensor(1.0, device="cuda", requires_grad=True)
        self.run(lambda gradient: gradient.cpu(), s, s.detach())
        assert s.grad.device == CUDA

    def test_on_the_cpu(self, cuda2, p):
        self.run(lambda gradient: gradient, p, p)
        assert p.grad.device == CPU


class _Astray(Doubled):
    @staticmethod
    def backward(ctx, gradient):
        return None, None, gradient.to("cuda:1")


class TestHooks:
    def test_one_that_returns_another_device(self, c):
        def moves(gradient):
            return gradient.cpu()

        y = c * 2
        y.register_hook(moves)
        message = r"hook 'moves' has changed the type of value \(was torch\.cuda\.FloatTensor got torch\.FloatTensor\)"
        with pytest.raises(RuntimeError, match=message):
            y.sum().backward()

    def test_right_ones(self, c):
        seen = []
        c.register_hook(lambda gradient: seen.append(gradient.device))
        handle = c.register_hook(lambda gradient: gradient * 2)
        c.sum().backward()
        assert (seen, c.grad.tolist()) == ([CUDA], [2.0] * 3)
        handle.remove()
        c.sum().backward()
        assert c.grad.tolist() == [3.0] * 3


def test_gradients_left_behind_are_refused(cuda2):
    parameter = nn.Parameter(torch.ones(3))
    (parameter * 2).sum().backward()
    parameter.data = parameter.data.cuda()
    assert parameter.grad.device == CPU
    with pytest.raises(RuntimeError, match="cuda:0 and cpu"):
        (parameter * 2).sum().backward()


def test_a_graph_may_outlive_the_simulation():
    with samedevice.simulate("cuda"):
        x = torch.ones(2, requires_grad=True)
        y = (x.cuda() * 2).sum()
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0]


def _kind(name, was="torch.cuda.FloatTensor", got="torch.FloatTensor"):
    return rf"hook '{name}' has changed the type of value \(was {was} got {got}\)"


def test_hooks_of_nodes_return_the_kind_of_device_that_they_were_given(c):
    y = c.exp()
    y.grad_fn.register_prehook(lambda gradients: (gradients[0].cpu(),))
    with pytest.raises(RuntimeError, match=_kind("<lambda>")) as caught:
        y.sum().backward()
    assert fault_of(caught.value).operation == "aten::backward"
    z = c.exp()
    z.grad_fn.register_hook(lambda inputs, outputs: (inputs[0].cpu(),))
    with pytest.raises(RuntimeError, match=_kind("<lambda>")):
        z.sum().backward()


def test_full_backward_hooks_do_too(c):
    module = nn.ReLU()
    handle = module.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0].cpu(),))
    with pytest.raises(RuntimeError, match=_kind("hook")):
        module(c).sum().backward()
    handle.remove()
    module.register_full_backward_pre_hook(lambda module, outputs: (outputs[0].cpu(),))
    with pytest.raises(RuntimeError, match=_kind("hook")):
        module(c).sum().backward()


def test_hooks_that_keep_the_device_are_silent(c):
    module = nn.ReLU()
    module.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 2,))
    y = module(c)
    y.register_hook(lambda gradient: gradient * 2)
    y.grad_fn.register_prehook(lambda gradients: None)
    y.sum().backward()
    assert c.grad.device == CUDA
    assert c.grad[0] == 4


def test_the_name_of_a_hook_is_its_own(c):
    y = c.exp()
    y.register_hook(lambda gradient: torch.ones(4, device="cuda"))
    with pytest.raises(RuntimeError, match="hook '<lambda>' has changed the size of value"):
        y.sum().backward()


def test_a_hook_s_gradient_on_another_device_of_the_kind_is_refused_behind_the_node(c):
    y = c * 2
    y.register_hook(lambda gradient: gradient.to("cuda:1"))
    with pytest.raises(
        RuntimeError, match="MulBackward0 returned an invalid gradient at index 0 - expected device cuda:0"
    ):
        y.sum().backward()


def test_a_hook_outlives_its_simulation():
    with samedevice.simulate("cuda:2"):
        x = torch.ones(3, device="cuda", requires_grad=True)
        y = x * 2
        y.grad_fn.register_prehook(lambda gradients: (gradients[0] * 3,))
        y.register_hook(lambda gradient: gradient * 5)
    y.sum().backward()
    assert x.grad[0] == 30
