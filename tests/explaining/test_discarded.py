"""A move whose result nothing keeps is blamed where it would have helped, and only there."""

import pytest

# The device of the dropped move, in the words of the script, and whether it would have helped.
MOVES = {
    'x.to("cuda:0")': True,
    'x.to("cuda")': True,
    "x.cuda()": True,
    "x.to(device)": True,
    "x.to(y.device)": True,
    "x.cuda(0)": True,
    "x.to(y)": True,
    'x.to("cuda:1")': False,
    "x.cuda(1)": False,
    'x.to(torch.device("cuda", 1))': False,
    "x.to(other)": False,
    "x.cpu()": False,
}


@pytest.mark.parametrize("origins", [True, False], ids=["recorded", "bare"])
@pytest.mark.parametrize("move", MOVES)
def test_a_dropped_move_is_blamed_where_it_would_have_helped(move, origins, run_script):
    ran = run_script(
        f"""
        device, other = torch.device("cuda:0"), torch.device("cuda:1")
        def main(x):
            y = torch.ones(3, device=device)
            {move}  # move
            return y + x
        main(torch.arange(3.0).sqrt())
        """,
        origins=origins,
    )
    assert (ran.finding.cause == "result-discarded") == MOVES[move]
    if MOVES[move]:
        assert ran.finding.culprit.line == ran.line("move")


@pytest.mark.parametrize("origins", [True, False], ids=["recorded", "bare"])
@pytest.mark.parametrize(("device", "helps"), [("cuda:0", True), ("cuda:1", False)])
def test_an_entry_beside_its_attribute(device, helps, origins, run_script):
    ran = run_script(
        f"""
        class Batch(dict):
            pass
        def main():
            batch = Batch(x=torch.ones(3), y=torch.ones(3, device="cuda:0"))
            batch.x = batch["x"].to("{device}")  # move
            return batch["y"] + batch["x"]
        main()
        """,
        origins=origins,
    )
    assert (ran.finding.cause == "result-discarded") == helps
