"""Families of `torch_geometric`: convolutions over a graph's edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F


def _graph() -> dict[str, Any]:
    return {"x": torch.randn(7, 4), "edge_index": torch.randint(7, (2, 20))}


def _labels(output: Any) -> torch.Tensor:
    return F.cross_entropy(output, torch.arange(len(output), device=output.device) % 3)


def _make(name: str, **more: Any) -> Callable[[], Any]:
    def make() -> Any:
        from torch_geometric import nn

        return getattr(nn, name)(4, 8, 2, 3, dropout=0.2, **more)

    return make


def _entry(name: str, make: Any, behind: str, operation: str, words: str, part: str) -> dict[str, Any]:
    entry = {"name": f"torch_geometric {name}", "package": "torch_geometric", "make": make, "batch": _graph}
    planted = {"behind": behind, "operation": operation, "words": words, "part": part}
    return {**entry, **planted, "loss": _labels}


MATRIX = ("aten::mm", "mat2 is on cuda:1, different from other tensors on cpu")
INDEX = "index is on cpu, different from other tensors on cuda:1"

FAMILIES = [
    _entry("gcn", _make("GCN"), "x", *MATRIX, "convs.1"),
    _entry("gat", _make("GAT", heads=2), "x", *MATRIX, "convs.0"),
    _entry("graphsage", _make("GraphSAGE"), "edge_index", "aten::index_select", INDEX, "convs.1.lin_l"),
    _entry("gin", _make("GIN"), "edge_index", "aten::index_select", INDEX, "convs.0.nn.lins.1"),
    _entry("edgecnn", _make("EdgeCNN"), "edge_index", "aten::index_select", INDEX, "convs.1.nn.lins.0"),
]
