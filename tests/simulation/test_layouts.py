"""Quantized and sparse tensors on a device: which operators it has for them, and what their kernels compare."""

import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore:Sparse", "ignore:torch.quantize_per_tensor")

INDICES, VALUES = torch.tensor([[0, 1], [0, 1]]), torch.ones(2)
CPU_HAS = {
    "index": lambda q: q[torch.tensor([0])],
    "max": lambda q: q.max(),
    "eq": lambda q: q == q,
    "topk": lambda q: q.topk(1),
    "cat": lambda q: torch.cat([q, q]),
    "avg_pool2d": lambda q: torch.nn.functional.avg_pool2d(q[None], 1),
    "clamp": lambda q: q.clamp(0, 1),
}
BOTH_HAVE = {
    "dequantize": lambda q: q.dequantize(),
    "relu": lambda q: q.relu(),
    "view": lambda q: q.view(4),
    "index_select": lambda q: q.index_select(0, torch.zeros(1, dtype=torch.long, device=q.device)),
    "copy": lambda q: q.clone(),
    "int_repr": lambda q: q.int_repr(),
}


def quantized(device):
    return torch.quantize_per_tensor(torch.ones(2, 2, device=device), 0.1, 0, torch.quint8)


def sparse(device, layout=torch.sparse_coo):
    return torch.eye(2).to_sparse(layout=layout).to(device)


class TestQuantized:
    @pytest.mark.parametrize("call", CPU_HAS.values(), ids=CPU_HAS)
    def test_what_only_the_cpu_has(self, cuda2, call):
        call(quantized("cpu"))
        with pytest.raises(NotImplementedError, match="with arguments from the 'QuantizedCUDA' backend"):
            call(quantized("cuda"))

    @pytest.mark.parametrize("call", BOTH_HAVE.values(), ids=BOTH_HAVE)
    def test_what_both_have(self, cuda2, call):
        assert call(quantized("cuda:1")).device == torch.device("cuda:1")

    def test_what_neither_has(self, cuda2):
        with pytest.raises(
            NotImplementedError, match=r"'aten::sum\.IntList_out' with arguments from the 'QuantizedCUDA'"
        ):
            quantized("cuda").sum()

    def test_an_iterator_compares_before_it_looks_for_a_kernel(self, cuda2):
        with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cpu"):
            quantized("cuda") + quantized("cpu")
        with pytest.raises(RuntimeError, match="offending types: QUInt8 Float"):
            quantized("cuda") * torch.ones(2, 2, device="cuda")

    def test_numbers_are_quantized_where_they_go(self, cuda2):
        assert quantized("cuda").copy_(torch.ones(2, 2, device="cuda")).device == torch.device("cuda:0")
        with pytest.raises(RuntimeError, match="expects a quantized and float tensors to be on the same device"):
            quantized("cuda").copy_(torch.ones(2, 2))

    def test_dense_tensors_are_computed_on_as_ever(self, cuda2):
        x = torch.ones(2, 2, device="cuda")
        quantized("cuda")
        assert x.max().device == torch.cat([x, x]).device == torch.device("cuda:0")


class TestSparse:
    def test_of_two_devices(self, cuda2):
        with pytest.raises(RuntimeError, match=r"Expected cuda::check_device\({r_, t, src}\) to be true"):
            sparse("cuda:0") + sparse("cuda:1")
        with pytest.raises(RuntimeError, match=r"Expected cuda::check_device\({sparse, r_, dense}\) to be true"):
            torch.ones(2, 2, device="cuda:0") + sparse("cuda:1")
        with pytest.raises(RuntimeError, match=r"Expected cuda::check_device\({r_, t_, src_}\) to be true"):
            sparse("cuda:0") * sparse("cuda:1")
        assert (sparse("cuda:1") + sparse("cuda:1")).device == torch.device("cuda:1")

    def test_without_a_kernel(self, cuda2):
        with pytest.raises(
            NotImplementedError, match=r"'aten::eq\.Tensor' with arguments from the 'SparseCUDA' backend"
        ):
            sparse("cuda").eq(sparse("cpu"))

    def test_a_product_of_a_compressed_and_a_dense_one(self, cuda2):
        with pytest.raises(RuntimeError, match="wrapper_SparseCsrCUDA__sparse_mask"):
            sparse("cuda", torch.sparse_csr) * torch.ones(2, 2)
        product = sparse("cuda", torch.sparse_csr) * torch.ones(2, 2, device="cuda")
        assert product.device == torch.device("cuda:0")

    def test_a_compressed_one_is_added_to_a_dense_one_on_the_device(self, cuda2):
        csr = sparse("cuda", torch.sparse_csr)
        assert (csr + torch.ones(2, 2, device="cuda:1")).device == torch.device("cuda:1")
        for add in (lambda dense: csr + dense, lambda dense: dense + csr):
            with pytest.raises(RuntimeError, match=r"dense.is_cuda\(\) INTERNAL ASSERT FAILED"):
                add(torch.ones(2, 2))

    def test_quotients(self, cuda2):
        assert (sparse("cuda") / torch.tensor(2.0)).device == torch.device("cuda:0")
        with pytest.raises(RuntimeError, match="Sparse division requires a scalar or zero-dim dense tensor divisor"):
            sparse("cuda") / torch.ones(2, 2)

    @pytest.mark.parametrize("name", ["csr", "csc", "bsr", "bsc"])
    def test_parts_of_compressed_ones_are_on_one_device(self, cuda2, name):
        make = getattr(torch, f"sparse_{name}_tensor")
        values = torch.ones(2) if name.startswith("cs") else torch.ones(2, 1, 1)
        parts = torch.tensor([0, 1, 2]), torch.tensor([0, 1])
        with pytest.raises(RuntimeError, match=r"Values and c(row|col)_indices need to be on the same device"):
            make(*parts, values.cuda(), (2, 2))
        layout = getattr(torch, f"sparse_{name}")
        with pytest.raises(RuntimeError, match=r"Values and c(row|col)_indices need to be on the same device"):
            torch.sparse_compressed_tensor(*parts, values.cuda(), (2, 2), layout=layout)
        assert make(*(part.cuda() for part in parts), values.cuda(), (2, 2)).device == torch.device("cuda:0")

    def test_indices_that_are_lists_go_to_the_values(self, cuda2):
        made = torch.sparse_coo_tensor([[0, 1], [0, 1]], VALUES.cuda(1), (2, 2))
        assert made.device == torch.device("cuda:1")
        with pytest.raises(RuntimeError, match=r"got values is on cpu|argument values in method"):
            torch.sparse_coo_tensor(INDICES.cuda(), [1.0, 1.0], (2, 2))

    def test_an_empty_one(self, cuda2):
        assert torch.sparse_coo_tensor((2, 2), device="cuda:1").device == torch.device("cuda:1")
