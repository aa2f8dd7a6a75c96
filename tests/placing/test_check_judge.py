"""`judge` is pure: it is tried on made-up placements that no real model would show."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from samedevice.findings import Placement
from samedevice.placing.cover import cover
from samedevice.placing.judge import Flow, judge

DEVICES = ["cpu", "cuda:0", "cuda:1", "meta"]
STEPS = ["model", "batch", "criterion", "optimizer"]
PASSED_BY = ["plain attribute", "container tensor", "container parameter", "helper tensor", "self-moved attribute"]
KINDS = {
    "model": ["parameter", "buffer", *PASSED_BY],
    "batch": ["input", "length"],
    "criterion": ["parameter", "buffer", "argument", *PASSED_BY],
    "optimizer": ["state", "host state", "group tensor", "attribute"],
}


ANY_DEVICE = st.sampled_from(DEVICES)
ANY_ROLE = st.sampled_from(STEPS)
some = settings(max_examples=60, deadline=None)


@st.composite
def placements(draw, devices=ANY_DEVICE, roles=ANY_ROLE):
    found = []
    for number in range(draw(st.integers(0, 8))):
        role = draw(roles)
        kind = draw(st.sampled_from(KINDS[role]))
        path = f"{role}{draw(st.sampled_from(['.a', '.b.c', '[0]', '[1].d', '']))}.x{number}"
        shape = draw(st.sampled_from([(), (3,), (2, 3)]))
        owner = draw(devices) if role == "optimizer" or draw(st.booleans()) else None
        holder = path.rpartition(".")[0] if kind in PASSED_BY else None
        found.append(Placement(role, path, draw(devices), shape, "torch.float32", kind, owner, holder))
    return found


flows = st.builds(
    Flow,
    device=st.sampled_from([None, *DEVICES]),
    multi_device=st.sampled_from([None, True, False]),
    moves_inputs=st.booleans(),
)


def step_of(finding):
    return STEPS.index(finding.culprit.name.partition(".")[0].partition("[")[0])


@some
@given(placements(), flows)
def test_findings_follow_the_flow_and_blame_only_what_is_elsewhere(found, flow):
    findings = judge(found, flow)
    assert [step_of(f) for f in findings] == sorted(step_of(f) for f in findings)
    paths = {placement.path: placement for placement in found}
    for finding in findings:
        assert finding.message.endswith(".")
        assert finding.fix
        assert finding.operands
        for operand in finding.operands:
            assert paths[operand.name].device == operand.device
            # Only the warning about what will not move speaks of tensors that are in place.
            assert finding.expected_device is None or operand.device != finding.expected_device or flow.device is None


@some
@given(placements(devices=st.just("cuda:0")))
def test_one_accelerator_for_all_is_right(found):
    at_home = [placement for placement in found if placement.kind != "host state"]
    assert judge(at_home) == ()
    assert judge(at_home, Flow(device="cuda:0")) == ()


@some
@given(placements(devices=st.just("cpu")))
def test_on_the_cpu_only_what_will_not_move_is_told_and_only_while_it_may_move(found):
    assert judge(found, Flow(device="cpu")) == ()
    assert {finding.severity for finding in judge(found)} <= {"warning"}


@some
@given(placements(roles=st.sampled_from(["model", "batch", "optimizer"])))
def test_whatever_is_not_on_the_device_that_was_asked_for_is_named(found):
    findings = judge(found, Flow(device="cuda:0", multi_device=False))
    named = {operand.name for finding in findings for operand in finding.operands}
    for placement in found:
        joins = placement.device == "cpu" and placement.shape == () and "parameter" not in placement.kind
        registered = placement.kind in ("parameter", "buffer", "input")
        if registered and not joins:
            assert (placement.path in named) == (placement.device != "cuda:0")
        if placement.role == "optimizer":
            assert (placement.path in named) == (placement.device != placement.owner_device)


PATHS = ["a.b", "a.c", "a.d.e", "a.d.f", "a[0]", "a[1].g", "a[1].h", "b['x.y'].z"]


@some
@given(st.lists(st.sampled_from(PATHS), min_size=1, unique=True))
def test_a_cover_names_all_of_some_and_nothing_else(names):
    prefixes = cover(names, PATHS)
    below = {path for path in PATHS if any(path == p or path.startswith((p + ".", p + "[")) for p in prefixes)}
    assert below == set(names)
    assert len(prefixes) <= len(names)


def model(*devices, kind="parameter"):
    return [Placement("model", f"model.layer{i}.weight", device, (2,), "", kind) for i, device in enumerate(devices)]


def causes(found, **flow):
    return [finding.cause for finding in judge(found, Flow(**flow))]


def test_the_model_is_blamed_where_the_inputs_are_there_already():
    batch = [Placement("batch", 'batch["x"]', "cuda:0", (2,), kind="input")]
    (finding,) = judge([*model("cpu", "cpu"), *batch])
    assert (finding.cause, finding.culprit.name, finding.expected_device) == ("model-not-moved", "model", "cuda:0")


def test_the_inputs_are_blamed_where_the_model_is_there_already():
    batch = [Placement("batch", f'batch["{name}"]', "cpu", (2,), kind="input") for name in "xy"]
    (finding,) = judge([*model("cuda:0"), *batch])
    assert (finding.cause, finding.culprit.name) == ("input-not-moved", "batch")


def test_a_part_of_the_batch_is_named_by_what_its_tensors_share():
    batch = [
        Placement("batch", 'batch["x"]', "cuda:0", (2,), kind="input"),
        *(Placement("batch", f'batch["targets"][{i}].boxes', "cpu", (2,), kind="input") for i in range(64)),
    ]
    (finding,) = judge([*model("cuda:0"), *batch])
    assert (finding.cause, finding.culprit.name) == ("nested-batch", 'batch["targets"]')
    assert finding.message == 'batch["targets"] is on cpu, the model is on cuda:0.'


def test_a_split_between_cpu_and_one_accelerator_is_a_fault_and_between_accelerators_is_not():
    (finding,) = judge(model("cuda:0", "cpu", "cuda:0"))
    assert (finding.cause, finding.culprit.name) == ("split-model", "model.layer1")
    assert causes(model("cuda:0", "cpu"), multi_device=True) == []
    assert causes(model("cuda:0", "cuda:1", "cpu")) == []
    assert causes(model("cuda:0", "cuda:1"), multi_device=False, device="cuda:0") == ["split-model"]


def test_the_second_of_two_models_is_named_as_such():
    pair = [
        Placement("model", f"model[{i}].weight", device, (2,), kind="parameter")
        for i, device in [(0, "cuda:0"), (1, "cpu")]
    ]
    assert causes(pair, models=("model[0]", "model[1]")) == ["second-model-not-moved"]


def test_zero_dimensional_cpu_tensors_join_an_accelerator():
    counter = Placement("model", "model.num_batches_tracked", "cpu", (), "torch.int64", "buffer")
    assert causes([*model("cuda:0"), counter]) == []
    # A 0-dim parameter is no number that joins: its gradient would come back to the CPU.
    temperature = Placement("model", "model.temperature", "cpu", (), "torch.float32", "parameter")
    assert causes([*model("cuda:0"), temperature]) == ["split-model"]


def test_data_parallel_wants_its_module_on_its_first_device():
    assert causes(model("cuda:1"), starts_from="cuda:0") == ["dataparallel-misplaced"]
    assert causes(model("cuda:0"), starts_from="cuda:0") == []


def test_step_is_read_on_the_cpu():
    step = Placement(
        "optimizer", 'optimizer.state[model.w]["step"]', "cuda:0", (), kind="host state", owner_device="cpu"
    )
    (finding,) = judge([step])
    assert (finding.cause, finding.severity) == ("optimizer-state", "warning")


def test_an_optimizer_of_another_model():
    found = [
        Placement("optimizer", 'optimizer.param_groups[0]["params"][0]', "cpu", (2,), kind="stale parameter"),
        Placement("optimizer", "model.weight", "cpu", (2,), kind="unheld parameter"),
    ]
    (finding,) = judge(found)
    assert (finding.cause, finding.culprit.name) == ("optimizer-stale-params", "optimizer")
    assert finding.message == "the optimizer has none of the model's parameters."
    assert "model.weight" in finding.reasons[1]


def test_an_unheld_parameter_alone_is_a_warning():
    found = [
        Placement("optimizer", "model.a", "cpu", (2,), kind="held parameter"),
        Placement("optimizer", "model.b", "cpu", (2,), kind="unheld parameter"),
    ]
    (finding,) = judge(found)
    assert (finding.cause, finding.severity, finding.culprit.name) == ("optimizer-stale-params", "warning", "model.b")


def test_a_model_on_meta_is_what_is_wrong_and_not_the_batch():
    placements = [Placement("model", "model.weight", "meta", (2,), "", "parameter")]
    placements += [Placement("batch", "batch", "cpu", (2,), "", "input")]
    (finding,) = judge(placements)
    assert (finding.code, finding.expected_device) == ("SD102", "cpu")
    assert finding.fix.summary == 'model.to_empty(device="cpu"), then load its weights: on meta it has none'
    assert judge([placements[0], Placement("batch", "batch", "meta", (2,), "", "input")]) == ()
