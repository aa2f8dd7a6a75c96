"""The same report for readers of English and of Chinese; what machines read is the same for both."""

import json
from dataclasses import replace

import pytest

from samedevice.findings import Edit, Fix, Operand, Placement, Report, Transfer
from samedevice.reports import RENDERERS, to_github, to_html, to_json, to_mermaid, to_sarif, to_text
from samedevice.reports.columns import width
from samedevice.texts import say


@pytest.fixture
def said(met):
    """A finding with sentences that are in the catalogue."""
    return replace(
        met,
        message=say(
            "{name} is on {device}, the module that holds it is on {expected}.",
            name="self.pe",
            device="cpu",
            expected="cuda:0",
        ),
        reasons=(say("A tensor that is a plain attribute is no buffer, so `.to()` passes it by."),),
    )


@pytest.fixture
def report(said):
    return Report(
        (said,), "finding", "train.py", ("cuda:0",), notes=(say("Moved to {device}: the batch.", device="x"),)
    )


@pytest.fixture
def chinese(monkeypatch):
    monkeypatch.setenv("SAMEDEVICE_LANG", "zh_CN")


def test_english(report):
    assert (
        to_text(report)
        == """\
self.pe is on cpu, the module that holds it is on cuda:0.
  at train.py:31 in forward: return x + self.pe[:, : x.size(1)]
  self.pe: cpu, float32[1, 512, 64]; from train.py:12: self.pe = pe
  A tensor that is a plain attribute is no buffer, so `.to()` passes it by.
Mend: train.py:12
  -         self.pe = pe
  +         self.register_buffer("pe", pe, persistent=False)
Cause SD103 plain-attribute; `samedevice causes SD103` tells more

Note: Moved to x: the batch.
1 device fault in train.py on simulated cuda:0
"""
    )


def test_chinese(chinese, report):
    assert (
        to_text(report)
        == """\
self.pe 在 cpu 上，而持有它的模块在 cuda:0 上。
  位置 train.py:31，forward 内：return x + self.pe[:, : x.size(1)]
  self.pe：cpu, float32[1, 512, 64]；来自 train.py:12：self.pe = pe
  作为普通属性的张量不是缓冲区，所以 `.to()` 不会移动它。
修复：train.py:12
  -         self.pe = pe
  +         self.register_buffer("pe", pe, persistent=False)
原因 SD103 plain-attribute；详见 `samedevice causes SD103`

说明：已移到 x：批次。
train.py 在模拟设备 cuda:0 上：发现 1 个设备问题
"""
    )


def test_machines_read_english_whatever_the_reader_reads(report, monkeypatch):
    english = [to_json(report), to_sarif(report)]
    monkeypatch.setenv("SAMEDEVICE_LANG", "zh_CN")
    assert [to_json(report), to_sarif(report)] == english
    assert json.loads(english[0])["findings"][0]["message"].startswith("self.pe is on cpu")


def test_people_read_their_language_in_every_other_form(chinese, report):
    placements = (Placement("model", "model.weight", "cuda:0", kind="parameter"),)
    full = replace(report, placements=placements, transfers=(Transfer("a.py", 1, "cpu", "cuda:0", 2, 8),))
    page = to_html(full)
    assert '<html lang="zh-CN">' in page
    for heading in ("位置", "什么不在正确的设备上", "参与的张量", "为什么", "如何修复", "PyTorch 的报错", "说明"):
        assert f"<h3>{heading}</h3>" in page
    assert "模型：1 个参数在 cuda:0 上" in page
    assert "self.pe 在 cpu 上，而持有它的模块在 cuda:0 上。%0A修复：self.register_buffer" in to_github(report)
    (finding,) = report.findings
    in_cell = replace(finding, location=replace(finding.location, line=2, cell=3))
    assert "::单元格 3 第 2 行：self.pe 在 cpu 上" in to_github(replace(report, findings=(in_cell,)))
    assert "self.pe 在 cpu 上" in to_mermaid(full)
    assert "<b>模型</b><br/>1 个在 cuda:0 上" in to_mermaid(full)


@pytest.mark.parametrize("name", RENDERERS)
def test_pytorchs_words_and_the_users_stay_as_they_are(chinese, report, name):
    (finding,) = report.findings
    rendered = RENDERERS[name](report)
    if name in ("json", "html"):
        assert finding.raised.message.split(",")[0] in rendered
    if name in ("text", "json", "html"):
        assert "self.pe = pe" in rendered
    assert finding.code in rendered


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_long_code_and_long_sentences_keep_to_a_hundred_columns(monkeypatch, said, language):
    monkeypatch.setenv("SAMEDEVICE_LANG", language)
    line = "        logits = self.classifier(" + ", ".join(f"features[{number}]" for number in range(12)) + ")"
    long = replace(
        said,
        location=replace(said.location, source=line.strip()),
        culprit=None,
        operands=tuple(Operand(f"features[{number}]", "cpu") for number in range(12)),
        reasons=(say("The optimizer steps on tensors that the model no longer uses; nothing is raised."),) * 3,
        fix=Fix(line.strip(), (Edit("train.py", 4, 4, line, line.replace("logits", "x = 1")),)),
    )
    lines = to_text(Report((long,), "finding")).splitlines()
    assert len(lines) <= 17
    assert all(width(line) <= 100 for line in lines if "  + " not in line)
