"""The flowchart's path shows which step failed."""

from __future__ import annotations

from samedevice.findings import Culprit, Finding, Placement, Report


def placement(role, path, device="cuda:0", kind="parameter"):
    return Placement(role, path, device, (2,), "torch.float32", kind)


def finding(code, name, device="cpu", severity="error"):
    return Finding(code, "cause", "message.", None, severity, culprit=Culprit(name, device=device))


PLACEMENTS = (
    placement("model", "model.a"),
    placement("model", "model.b", "cpu", "plain attribute"),
    placement("batch", 'batch["x"]', kind="input"),
    placement("optimizer", "model.a", kind="held parameter"),
    placement("optimizer", 'optimizer.state[model.a]["exp_avg"]', kind="state"),
)


def lines(report):
    return [line.strip() for line in report.to_mermaid().splitlines()]


def test_the_whole_chart():
    report = Report((finding("SD108", 'batch["x"]<b>#1', "cpu"),), "finding", placements=PLACEMENTS)
    assert report.to_mermaid() == (
        "flowchart LR\n"
        '    model["<b>model</b><br/>1 on cuda:0<br/>1 on cpu"]:::ok\n'
        '    inputs["<b>inputs</b><br/>1 on cuda:0<br/>'
        'SD108 batch[#quot;x#quot;]#lt;b#gt;#35;1 on cpu"]:::failed\n'
        '    optimizer["<b>optimizer</b><br/>1 on cuda:0"]:::ok\n'
        "    model --> inputs\n"
        "    inputs -.-> optimizer\n"
        "    classDef ok fill:#e6f4ea,stroke:#1b6e3c,color:#1b6e3c\n"
        "    classDef warned fill:#fff4d6,stroke:#b98a00,color:#5c4500\n"
        "    classDef failed fill:#fdecea,stroke:#b3261e,color:#b3261e,stroke-width:3px\n"
        "    classDef unseen fill:#f6f7f9,stroke:#5b6675,color:#5b6675,stroke-dasharray:4\n"
    )


def test_a_step_that_nobody_gave_is_not_called_right():
    chart = lines(Report(placements=PLACEMENTS[:1]))
    assert 'model["<b>model</b><br/>1 on cuda:0"]:::ok' in chart
    assert 'optimizer["<b>optimizer</b>"]:::unseen' in chart


def test_the_criterion_is_a_step_where_there_is_one():
    criterion = placement("criterion", "criterion.weight", kind="buffer")
    report = Report((finding("SD122", "criterion.weight"),), placements=(*PLACEMENTS, criterion))
    assert 'criterion["<b>criterion</b><br/>1 on cuda:0<br/>SD122 criterion.weight on cpu"]:::failed' in lines(report)
    assert "criterion -.-> optimizer" in lines(report)


def test_a_warning_does_not_break_the_path():
    report = Report((finding("SD103", "model.b", severity="warning"),), placements=PLACEMENTS)
    assert "model --> inputs" in lines(report)
    assert lines(report)[1].endswith(":::warned")


def test_a_fault_of_a_run_finds_its_step_by_its_cause():
    report = Report((finding("SD101", "images"), finding("SD201", "state"), finding("SD103", "self.pe")), "finding")
    model, inputs, optimizer = lines(report)[1:4]
    assert "SD103 self.pe on cpu" in model
    assert "SD101 images on cpu" in inputs
    assert "SD201 state on cpu" in optimizer


def test_many_faults_of_one_step_are_counted():
    report = Report(tuple(finding("SD103", f"model.a{i}") for i in range(5)), placements=PLACEMENTS)
    assert "model.a2 on cpu<br/>and 2 more" in lines(report)[1]
    assert "model.a3" not in lines(report)[1]
