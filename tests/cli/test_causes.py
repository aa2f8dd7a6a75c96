from samedevice.causes.catalogue import all_causes, all_smells
from samedevice.cli.main import main


def test_all_of_them(capsys):
    assert main(["causes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [line.split()[:2] for line in lines if not line.startswith(" ")]
    assert heads == [[cause.code, cause.slug] for cause in (*all_causes(), *all_smells())]
    assert max(map(len, lines)) <= 100


def test_one_with_its_examples(capsys):
    assert main(["causes", "plain-attribute"]) == 0
    printed = capsys.readouterr().out
    for heading in (
        "SD103 plain-attribute",
        "Why it fails",
        "Wrong",
        "Right",
        "How safe the fix is",
        "Source: https://",
    ):
        assert heading in printed
    assert "        self.table = torch.randn(length, width)  # !" in printed


def test_every_cause_prints(capsys):
    for cause in (*all_causes(), *all_smells()):
        assert main(["causes", cause.code]) == 0
    assert "\x1b" not in capsys.readouterr().out
