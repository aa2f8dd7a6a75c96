"""What a device says of types that an operator does not take, as the real CUDA build of 2.13 answered."""

import pytest
import torch
import torch.nn.functional as F

HALF = torch.float16
SAID = {
    "convolution": (
        lambda d: F.conv2d(torch.ones(1, 3, 8, 8, dtype=HALF, device=d), torch.ones(4, 3, 3, 3, device=d)),
        "Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) should be the same",
    ),
    "convolution of other kernels": (
        lambda d: F.conv1d(torch.ones(2, 3, 8, device=d), torch.ones(4, 3, 3, device=d).double()),
        "Input type (torch.cuda.FloatTensor) and weight type (torch.cuda.DoubleTensor) should be the same",
    ),
    "product": (
        lambda d: torch.ones(2, 2, dtype=HALF, device=d) @ torch.ones(2, 2, device=d),
        "expected mat1 and mat2 to have the same dtype, but got: c10::Half != float",
    ),
    "no kernel": (
        lambda d: torch.bincount(torch.ones(3, device=d)),
        "\"bincount_cuda\" not implemented for 'Float'",
    ),
    "indices": (
        lambda d: F.embedding(torch.ones(2, device=d), torch.ones(3, 4, device=d)),
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
        "torch.cuda.FloatTensor instead (while checking arguments for embedding)",
    ),
}


@pytest.mark.parametrize(("call", "words"), SAID.values(), ids=SAID)
def test_on_a_device_and_on_the_host(cuda2, call, words):
    with pytest.raises((RuntimeError, NotImplementedError)) as away:
        call("cuda")
    assert str(away.value).startswith(words)
    with pytest.raises((RuntimeError, NotImplementedError)) as here:
        call("cpu")
    assert "cuda" not in str(here.value)


PRODUCTS = {
    "addmm_cuda": lambda x: x @ x,
    "baddbmm_cuda": lambda x: torch.einsum("ij,jk", x, x),
    "addmv_impl_cuda": lambda x: x @ x[0],
    "dot": lambda x: torch.dot(x[0], x[0]),
}


@pytest.mark.parametrize(("kernel", "product"), PRODUCTS.items(), ids=PRODUCTS)
def test_products_of_integers(cuda2, kernel, product):
    x = torch.ones(2, 2, dtype=torch.int32)
    product(x)
    with pytest.raises(NotImplementedError) as refused:
        product(x.cuda(1))
    assert str(refused.value) == f"\"{kernel}\" not implemented for 'Int'"
    assert product(x.float().cuda(1)).device == torch.device("cuda:1")


def test_a_product_without_elements_and_an_outer_one(cuda2):
    x = torch.ones(2, 2, dtype=torch.long, device="cuda")
    assert (x[:0] @ x).device == torch.outer(x[0], x[0]).device == torch.device("cuda:0")


def test_pools_of_integers(cuda2):
    x = torch.ones(1, 1, 2, 2, dtype=torch.long)
    F.avg_pool2d(x, 2)
    with pytest.raises(NotImplementedError, match="avg_pool2d_out_cuda_frame"):
        F.avg_pool2d(x.cuda(), 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: F.max_pool2d(x, 2), "\"max_pool2d_with_indices_out_cuda_frame\" not implemented for 'Long'"),
        (lambda x: F.avg_pool2d(x, 2), "\"avg_pool2d_out_cuda_frame\" not implemented for 'Long'"),
        (lambda x: F.conv2d(x, x[:1, :1]), "getCudnnDataTypeFromScalarType() not supported for Long"),
        (
            lambda x: F.conv2d(x.expand(1, 2, 4, 4), x[:, :, :1].expand(2, 1, 1, 4), groups=2),
            "\"conv_depthwise2d_forward_cuda\" not implemented for 'Long'",
        ),
    ],
)
def test_integers_that_only_the_host_takes(cuda2, call, words):
    x = torch.ones(1, 1, 4, 4, dtype=torch.long)
    assert call(x).dtype is torch.long
    with pytest.raises(RuntimeError) as refused:
        call(x.cuda())
    assert str(refused.value) == words


def test_kernels_of_a_device_have_names_of_their_own(cuda2):
    x = torch.ones(3, dtype=torch.long)
    with pytest.raises(NotImplementedError, match="host_softmax"):
        torch.softmax(x.cuda(), 0)
    with pytest.raises(NotImplementedError, match="softmax_lastdim_kernel_impl"):
        torch.softmax(x, 0)
