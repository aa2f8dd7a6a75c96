"""The reader of native_functions.yaml against torchgen's own parse."""

import functools

import pytest
import torch

from samedevice.simulation.native_functions import native_function, native_functions

torchgen_gen = pytest.importorskip("torchgen.gen")
pytest.importorskip("yaml")


@functools.cache
def _parsed():
    from pathlib import Path

    folder = Path(torchgen_gen.__file__).parent / "packaged" / "ATen" / "native"
    return torchgen_gen.parse_native_yaml(
        str(folder / "native_functions.yaml"), str(folder / "tags.yaml"), skip_native_fns_gen=True
    )


def test_every_operator_is_read_as_torchgen_reads_it():
    parsed = _parsed()
    kernels = {}
    for key, index in parsed.backend_indices.items():
        for name in index.index:
            kernels.setdefault(str(name), set()).add(key.name)
    by_name = {str(function.func.name): function for function in parsed.native_functions}
    for name, function in by_name.items():
        ours = native_function(name)
        assert ours is not None, name
        assert ours.checked == (function.device_check.name == "ExactSame"), name
        assert ours.structured == (function.structured or function.structured_delegate is not None), name
        delegate = function.structured_delegate
        expected = kernels.get(name, set()) | (kernels.get(str(delegate), set()) if delegate else set())
        # torchgen writes down that what has no kernel at all is made of other operators.
        assert ours.keys == expected or (not ours.keys and expected == {"CompositeImplicitAutograd"}), name
        source = by_name[str(delegate)] if delegate else function
        assert ours.inherits_iterator == (source.structured_inherits == "TensorIteratorBase"), name
    assert len(by_name) > 2000


def test_operators_made_up_by_torchgen_are_known_and_unchecked():
    made_up = [str(name) for function in _parsed().native_functions for name in function.autogen]
    assert made_up
    for name in made_up:
        assert native_function(name) is not None, name
        assert name in native_functions()


def test_iterators_are_known_by_inheritance_and_by_remark():
    assert native_function("add.Tensor").iterator
    assert native_function("add.Tensor").inherits_iterator
    assert native_function("where.self").iterator
    assert not native_function("where.self").inherits_iterator
    assert not native_function("mm").iterator


def test_operators_of_others_are_unknown():
    assert native_function("roi_align") is None


def test_a_build_without_the_file_is_told_plainly(monkeypatch):
    from samedevice.errors import NotSimulated
    from samedevice.simulation import native_functions as module

    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NotSimulated, match=r"carries no torchgen/packaged/ATen/native/native_functions\.yaml"):
        module._yaml_text()


def test_every_operator_of_this_build_has_a_rule():
    """No operator stumbles over its schema or name: a rule is found for all of them, on each kind of kernel."""
    from samedevice.simulation.operator_kernels import has_kernel
    from samedevice.simulation.operator_rules import rule_of

    count = 0
    for name in native_functions():
        base, _, overload = name.partition(".")
        packet = getattr(torch.ops.aten, base, None)
        func = getattr(packet, overload or "default", None)
        if func is not None:
            count += 1
            assert isinstance(has_kernel(func, "CUDA"), bool)
            for key in ("CUDA", "XPU", "SparseCUDA", "SparseCsrCUDA"):
                assert callable(rule_of(func, key)), name
    assert count > 2000
