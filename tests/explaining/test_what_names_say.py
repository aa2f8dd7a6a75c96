"""Names that hold another word (`email`, `Glossary`) decide no cause; a name that says one is believed if it may be."""

import pytest

from samedevice.explaining.vocabulary import LOSS
from samedevice.explaining.words import words_of


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("EMAHelper", "ema helper"),
        ("ema_helper", "ema helper"),
        ("emaHelper", "ema helper"),
        ("Email", "email"),
        ("target_net", "target net"),
        ("TargetQ2", "target q 2"),
        ("self.shadow[0]", "self shadow 0"),
        ("LSTM", "lstm"),
        ("", ""),
    ],
)
def test_words(name, words):
    assert words_of(name) == words.split()


@pytest.mark.parametrize(
    "name", ["FocalLoss", "loss_fn", "BCEWithLogitsLoss", "MyCriterion", "losses", "DICE_LOSS", "Focalloss", "Loss2"]
)
def test_losses(name):
    assert LOSS.search(name)


@pytest.mark.parametrize("name", ["Glossary", "Blossom", "Lossless", "GlossEncoder", "Closset", "Floss", "Gloss"])
def test_no_losses(name):
    assert not LOSS.search(name)


# The cause, and a script in which a name holds another word, or says it.
CASES = {
    "an object called email": (
        "plain-attribute",
        """
        class EmailReader:
            def __init__(self):
                self.weights = torch.ones(3)
        reader = EmailReader()
        torch.ones(3).cuda() + reader.weights
        """,
    ),
    "a dict called slow": (
        "global-tensor",
        """
        slow = {"mask": torch.ones(3)}
        def work():
            return torch.ones(3).cuda() + slow["mask"]
        work()
        """,
    ),
    "a dict of averages": (
        "second-model-not-moved",
        """
        net = nn.Linear(2, 2)
        ema = {name: parameter.detach().clone() for name, parameter in net.named_parameters()}
        net.cuda()
        for name, parameter in net.named_parameters():
            ema[name].mul_(0.9).add_(parameter.detach(), alpha=0.1)
        """,
    ),
    "averages that begin at zero": (
        "second-model-not-moved",
        """
        net = nn.Linear(2, 2)
        class Averages:
            def __init__(self, net):
                self.shadow = {name: torch.zeros(p.shape) for name, p in net.named_parameters()}
            def update(self, net):
                for name, p in net.named_parameters():
                    self.shadow[name] = self.shadow[name] * 0.9 + p.detach() * 0.1
        averages = Averages(net)
        net.cuda()
        averages.update(net)
        """,
    ),
    "a module called Glossary": (
        "plain-attribute",
        """
        class Glossary(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = torch.ones(3)
            def forward(self, x):
                return x + self.table
        glossary = Glossary()
        glossary(torch.ones(3).cuda())
        """,
    ),
    "a module called Blossom that was not moved": (
        "model-not-moved",
        """
        class Blossom(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)
            def forward(self, x):
                return self.fc(x)
        blossom = Blossom()
        blossom(torch.ones(3).cuda())
        """,
    ),
    "layers in a list called schemata": (
        "plain-container",
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(3, 3)
                self.schemata = [nn.Linear(3, 3)]
            def forward(self, x):
                return self.schemata[0](self.first(x))
        Net().cuda()(torch.ones(3).cuda())
        """,
    ),
    "a hidden mask in a model without recurrence": (
        "factory-default-device",
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)
            def forward(self, x):
                hidden_mask = torch.ones(3)
                return self.fc(x) * hidden_mask
        Net().cuda()(torch.ones(3).cuda())
        """,
    ),
    "a state that a cell of one's own carries on": (
        "hidden-state",
        """
        class Cell(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner, self.outer = nn.Linear(3, 3), nn.Linear(3, 3)
            def forward(self, x, hidden):
                return torch.tanh(self.inner(x) + self.outer(hidden))
        def main():
            cell = Cell().cuda()
            hidden = torch.zeros(1, 3)
            for x in torch.ones(4, 1, 3).cuda():
                hidden = cell(x, hidden)
        main()
        """,
    ),
    "a state that a layer of one's own hands back": (
        "hidden-state",
        """
        class CharNet(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner, self.outer = nn.Linear(6, 3), nn.Linear(6, 3)
            def forward(self, x, hidden):
                both = torch.cat((x, hidden), 1)
                hidden = self.inner(both)
                return self.outer(both), hidden
        def main():
            net = CharNet().cuda()
            hidden = torch.zeros(1, 3)
            output, next_hidden = net(torch.ones(1, 3).cuda(), hidden)
        main()
        """,
    ),
    "a total in an asynchronous loop": (
        "metric-state",
        """
        import asyncio
        async def batches():
            yield torch.ones(3).cuda()
        async def main():
            total = torch.zeros(3)
            async for batch in batches():
                total += batch
        asyncio.run(main())
        """,
    ),
}


@pytest.mark.parametrize("origins", [True, False], ids=["recorded", "bare"])
@pytest.mark.parametrize("case", CASES)
def test_the_cause(case, origins, run_script):
    cause, script = CASES[case]
    ran = run_script(script, "cuda:1", origins=origins)
    assert ran.finding is not None, ran.error
    assert ran.finding.cause == cause


@pytest.mark.parametrize("origins", [True, False], ids=["recorded", "bare"])
def test_what_no_layer_hands_back_is_no_state(origins, run_script):
    ran = run_script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)
            def forward(self, x, hidden):
                hidden = hidden.bool()
                return self.fc(x) * hidden
        def main():
            net = Net().cuda()
            hidden = torch.ones(1, 3)
            return net(torch.ones(1, 3).cuda(), hidden)
        main()
        """,
        "cuda:1",
        origins=origins,
    )
    assert ran.finding.cause != "hidden-state"
