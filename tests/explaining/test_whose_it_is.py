"""A name, a mend and a moving line are claimed only of what the failing call and the source show."""

import textwrap

import pytest

BUILD = "def build(): return nn.Linear(2, 2).cuda()\n"
ROWS = {
    "a layer that a function returns": BUILD + "build()(torch.ones(1, 2))",
    "in parentheses, beside another layer": "other = nn.Linear(7, 7).cuda()\n" + BUILD + "(build())(torch.ones(1, 2))",
    "a layer made and moved in the call": "nn.Linear(2, 2).cuda()(torch.ones(1, 2))",
    "a layer of layers": (
        "def build(): return nn.Sequential(nn.Linear(2, 2), nn.ReLU()).cuda()\nbuild()(torch.ones(1, 2))"
    ),
    "weights that functions return": (
        'def w(): return torch.ones(2, 2, device="cuda")\n'
        'def b(): return torch.ones(2, device="cuda")\n'
        "F.linear(torch.ones(1, 2), w(), b())"
    ),
}


@pytest.mark.parametrize("origins", [True, False])
@pytest.mark.parametrize("row", ROWS)
def test_a_layers_own_parameter_takes_no_arguments_name(row, origins, run_script):
    ran = run_script(ROWS[row], origins=origins)
    assert ran.finding.culprit.name == "torch.ones(1, 2)"
    assert ran.finding.culprit.device == "cpu"
    assert ran.finding.cause in ("input-not-moved", "factory-default-device")


@pytest.mark.parametrize("origins", [True, False])
def test_a_module_that_the_call_does_not_use_lends_no_device(origins, run_script):
    ran = run_script("other = nn.Linear(2, 2).cuda()\nnn.Linear(2, 2).cuda()(torch.ones(1, 2))", origins=origins)
    (edit,) = ran.finding.fix.edits
    assert edit.new == 'nn.Linear(2, 2).cuda()(torch.ones(1, 2).to("cuda"))'


def test_a_module_that_made_an_argument_lends_its_device(run_script):
    ran = run_script(
        """
        def main():
            other = nn.Linear(2, 2).cuda()
            used = nn.Linear(2, 2).cuda()
            outs = [used(torch.ones(1, 2, device="cuda"))]
            return F.mse_loss(outs[0] * 1, torch.ones(1, 2) * 1)
        main()
        """
    )
    assert ran.finding.fix is not None
    assert "other" not in str(ran.finding.fix)


UNMOVED = """
def main():
    batch = {"x": torch.ones(1, 2)}
    model = nn.Linear(2, 2)
    model = model.to("cuda:1")
    return model(batch["x"])
main()
"""
MOVED = {
    "a comprehension": 'batch = {k: v.to("cuda:1") if k != "x" else v for k, v in batch.items()}',
    "a helper of the file": "batch = as_needed(batch)",
    "a helper from elsewhere that is told a device": "batch = elsewhere.put(batch, device)",
    "a helper from elsewhere that says so": "batch = elsewhere.batch_to_device(batch)",
    "a helper in capitals": "batch = elsewhere.moveToDevice(batch)",
}
NOT_MOVED = {
    "a helper of the file that moves nothing": "batch = put(batch)",
    "what is sent elsewhere": "elsewhere.send_email(batch)",
    "a list of it": "elsewhere.to_list(batch)",
    "what is written into it": "elsewhere.put_text(batch, 'x')",
    "a question": "elsewhere.get_device(batch)",
    "what is prepared": "elsewhere.prepare_data(batch)",
}
HELPERS = """
import types
device = torch.device("cuda")
same = lambda batch, *_: batch
elsewhere = types.SimpleNamespace(
    put=same, batch_to_device=same, moveToDevice=same, send_email=same, to_list=same, put_text=same,
    get_device=same, prepare_data=same,
)
def as_needed(batch):
    return {key: value.to(device) if key == "mask" else value for key, value in batch.items()}
def put(batch):
    return dict(batch)
"""


@pytest.mark.parametrize("origins", [True, False])
def test_no_line_moves_an_entry_that_nothing_moved(origins, run_script):
    ran = run_script(UNMOVED, origins=origins)
    assert ran.finding.cause == "factory-default-device"


def with_line(line):
    return HELPERS + textwrap.dedent(UNMOVED).replace("    model = nn", f"    {line}\n    model = nn", 1)


@pytest.mark.parametrize("row", MOVED)
def test_a_line_that_moves_the_batch_is_told(row, run_script):
    ran = run_script(with_line(MOVED[row]), origins=False)
    assert ran.finding.cause == "nested-batch"
    assert "batch" in str(ran.finding)


@pytest.mark.parametrize("row", NOT_MOVED)
def test_a_line_that_moves_nothing_is_not_told(row, run_script):
    ran = run_script(with_line(NOT_MOVED[row]), origins=False)
    assert ran.finding.cause != "nested-batch"
