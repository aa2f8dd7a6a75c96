"""Which operator a wrapper's name in a message stands for: "wrapper_CUDA__index_select" is `index_select`."""

from __future__ import annotations

__all__ = ["operator_of"]

_KEYS = (
    "CUDA",
    "XPU",
    "MPS",
    "SparseCUDA",
    "SparseCsrCUDA",
    "NestedTensorCUDA",
    "QuantizedCUDA",
    "SparseXPU",
    "PrivateUse1",
)
# Words that only occur in overload names (torchgen joins name and overload with "_" and gives no sign of the seam).
_OVERLOAD_WORDS = frozenset(
    {"Tensor", "Scalar", "ScalarList", "IntList", "self", "out", "src", "value", "values", "output", "grad", "names"}
    | {"correction", "stable", "start", "step", "two", "X", "tensor", "lr", "atol", "rtol", "qparams"}
)
_OVERLOADS = ("grad_input", "dim_max", "dim_min", "int_out", "tensor_lr", "dim_IntList", "upper")


def operator_of(method: str) -> str:
    """The operator's name without overload, e.g. "clamp" for "wrapper_CUDA_clamp_Tensor".

    Args:
        method: The name after "in method" in PyTorch's message; older ones are like "wrapper__index_select".

    Returns:
        The base name; in-place operators keep their "_". Best effort: the name alone does not tell where the overload
        begins, so an overload whose words look like a name stays on.
    """
    words = _without_prefix(method)
    if words.startswith("_"):
        # An empty overload comes first in unstructured operators: what follows its "_" is the name (and out).
        return _without_overload_after(words[1:])
    return _without_overload_after(_without_overload_before(words))


def _without_prefix(method: str) -> str:
    rest = method.removeprefix("wrapper_")
    for key in _KEYS:
        if rest.startswith(f"{key}_"):
            return rest[len(key) + 1 :]
    return rest


def _without_overload_before(text: str) -> str:
    head, _, tail = text.partition("_")
    while tail and head in _OVERLOAD_WORDS:
        text = tail
        head, _, tail = text.partition("_")
    return text


def _without_overload_after(text: str) -> str:
    for overload in _OVERLOADS:
        text = text.removesuffix(f"_{overload}")
    head, _, tail = text.rpartition("_")
    while head.strip("_") and tail in _OVERLOAD_WORDS:
        text = head
        head, _, tail = text.rpartition("_")
    return text
