from hypothesis import given
from hypothesis import strategies as st

from samedevice.linting.devices.memory import Memory
from samedevice.linting.devices.places import CPU, CUDA, Cell
from samedevice.linting.devices.values import Constant, Tensor

writes = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=8)


def write_all(memory, scope, pairs):
    for name, number in pairs:
        memory.write(scope, name, Constant(number))


def numbers(scope):
    return {name: value.value for name, value in scope.items()}


@given(writes, writes)
def test_rewind_restores_and_replay_repeats(before, inside):
    memory, scope = Memory(), {}
    write_all(memory, scope, before)
    was = numbers(scope)
    mark = memory.mark()
    write_all(memory, scope, inside)
    became = numbers(scope)
    undone = memory.rewind(mark)
    assert numbers(scope) == was
    memory.replay(undone)
    assert numbers(scope) == became


@given(writes, writes, writes)
def test_nested_branches_undo_from_the_outside(before, first, second):
    memory, scope = Memory(), {}
    write_all(memory, scope, before)
    was = numbers(scope)
    outer = memory.mark()
    write_all(memory, scope, first)
    inner = memory.mark()
    write_all(memory, scope, second)
    memory.keep(inner)
    memory.rewind(outer)
    assert numbers(scope) == was


def branch(memory, first, second):
    mark = memory.mark()
    first()
    undone = memory.rewind(mark)
    mark = memory.mark()
    second()
    memory.join(undone, memory.keep(mark))


def test_join_keeps_what_both_branches_agree_on():
    memory, scope, tensor = Memory(), {"x": Constant(0)}, Tensor(CPU)
    branch(memory, lambda: memory.write(scope, "x", Constant(1)), lambda: memory.write(scope, "x", Constant(1)))
    assert scope["x"].value == 1
    branch(memory, lambda: memory.assign(tensor, "place", CUDA), lambda: memory.assign(tensor, "place", CUDA))
    assert tensor.place == CUDA


def test_a_place_that_depends_on_the_branch_is_not_known():
    memory, tensor = Memory(), Tensor(CPU)
    branch(memory, lambda: memory.assign(tensor, "place", CUDA), lambda: None)
    assert isinstance(tensor.place, Cell)


def test_a_name_that_one_branch_binds_is_taken_to_be_bound():
    memory, scope = Memory(), {}
    branch(memory, lambda: memory.write(scope, "x", Constant(1)), lambda: None)
    assert scope["x"].value == 1
