"""Explaining among objects that raise or record whenever they are touched, in broken, huge and cyclic surroundings."""

import gc
import json
import sys
import types
import weakref
from collections import OrderedDict
from types import TracebackType

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from samedevice.explaining.explain import explain
from samedevice.explaining.frames import variables_of
from samedevice.faults import Fault, FaultOperand, attach_fault
from samedevice.findings import Report

MESSAGE = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
touched: list[str] = []


def touching(name):
    def method(self, *args, **kwargs):
        touched.append(name)
        raise AssertionError(f"{name} ran")

    return method


MAGIC = [
    *("__repr__", "__str__", "__eq__", "__ne__", "__len__", "__bool__", "__iter__", "__getattr__", "__getitem__"),
    *("__contains__", "__call__", "__format__", "__index__", "__int__", "__lt__", "__next__", "__torch_function__"),
    *("__array__", "__dir__", "__sizeof__", "__reduce_ex__", "__enter__", "__exit__", "__del_", "keys", "items", "to"),
]
BODY = {name: touching(name) for name in MAGIC}
BODY |= {"__hash__": touching("__hash__"), "__getattribute__": touching("__getattribute__")}
BODY |= {name: property(touching(name)) for name in ("__class__", "shape", "device", "data", "__dict__", "mask")}


class HostileMeta(type):
    """Answers nothing about its classes."""

    for name in ("__repr__", "__eq__", "__getattribute__", "__instancecheck__", "__subclasscheck__", "__bool__"):
        locals()[name] = touching(f"meta {name}")
    __hash__ = type.__hash__

    @property
    def __mro__(cls):
        touched.append("meta __mro__")
        raise AssertionError

    def __len__(cls):
        touched.append("meta __len__")
        raise AssertionError


class Descriptor:
    __get__ = touching("descriptor")
    __set__ = touching("descriptor set")


def hostile_things():
    plain = type("Hostile", (), dict(BODY))
    things = [
        object.__new__(plain),
        object.__new__(type.__call__(HostileMeta, "Meta", (), {})),
        type.__call__(HostileMeta, "Class", (), {}),
        type("WithDescriptor", (), {"field": Descriptor()})(),
    ]
    for base, value in (
        (dict, {"k": 1}),
        (list, [1]),
        (tuple, (1,)),
        (OrderedDict, {"k": 1}),
        (str, "secret"),
        (int, 3),
    ):
        kind = type(f"Hostile{base.__name__}", (base,), dict(BODY))
        made = base.__new__(kind, value) if base in (tuple, str, int) else base.__new__(kind)
        if base is list:
            list.append(made, things[0])
        elif base is dict:
            dict.__setitem__(made, "k", things[0])
        things.append(made)
    module = nn.Module.__new__(type("HostileModule", (nn.Module,), dict(BODY)))
    tensor = torch.zeros(2).as_subclass(
        type(
            "HostileTensor",
            (torch.Tensor,),
            {
                "__torch_function__": classmethod(touching("__torch_function__")),
                "__repr__": touching("__repr__"),
                "shape": property(touching("shape")),
            },
        )
    )
    return [*things, module, tensor]  # fmt: skip


class HostileError(RuntimeError):
    __str__ = touching("error __str__")
    __repr__ = touching("error __repr__")
    __eq__ = touching("error __eq__")
    __hash__ = touching("error __hash__")
    __getattribute__ = touching("error __getattribute__")
    __class__ = property(touching("error __class__"))
    __traceback__ = property(touching("error __traceback__"))
    __cause__ = property(touching("error __cause__"))
    __context__ = property(touching("error __context__"))
    args = property(touching("error args"))
    __dict__ = property(touching("error __dict__"))
    __notes__ = property(touching("error __notes__"))
    with_traceback = touching("with_traceback")


def raised(function, *arguments):
    try:
        function(*arguments)
    except BaseException:
        return sys.exc_info()[1]
    raise AssertionError("nothing was raised")


def test_no_code_of_hostile_objects_runs():
    def step(things, mask):
        first, *rest = things
        table = {"k": first, 3: rest, (1, "a"): things}
        return first, rest, table, mask.undo(things[0], table[3], first.mask, rest[0].shape, table["k"])

    def fail(things, mask):
        one, *others = things
        table = {"a": one, 3: others}
        if table:
            raise HostileError(MESSAGE)
        return step(things, mask)

    error = raised(fail, hostile_things(), torch.zeros(3))
    touched.clear()
    finding = explain(error)
    assert touched == []
    assert (finding.raised.type, finding.raised.message) == ("HostileError", MESSAGE)


def test_hostile_names_on_the_failing_line():
    class Refusing:
        def __add__(self, other):
            raise RuntimeError(MESSAGE)

        mask = property(touching("mask"))
        __getattr__ = touching("__getattr__")
        __eq__ = touching("__eq__")
        __hash__ = touching("__hash__")

    def step(box, things, x):
        key = things[0]
        return box + [x, key][0]

    error = raised(step, Refusing(), hostile_things(), torch.zeros(3))
    touched.clear()
    assert explain(error) is not None
    assert touched == []


def test_a_class_body_in_a_mapping_of_its_metaclass():
    class Names(dict):
        for name in ("__iter__", "keys", "items", "get"):
            locals()[name] = touching(f"names {name}")

    class Meta(type):
        @classmethod
        def __prepare__(mcs, *_):
            return Names()

    def fail():
        class Body(metaclass=Meta):
            mask = torch.zeros(3)
            raise RuntimeError(MESSAGE)

        return Body

    error = raised(fail)
    touched.clear()
    assert explain(error) is not None
    assert touched == []


def refuse(first, second):
    error = RuntimeError(MESSAGE)
    pairs = zip(("self", "other"), (first, second), ("cuda:0", "cpu"), strict=True)
    operands = tuple(
        FaultOperand(name, weakref.ref(t), device, tuple(t.shape), str(t.dtype)) for name, t, device in pairs
    )
    attach_fault(error, Fault("aten::add", operands))
    raise error


def test_a_function_that_goes_on_keeps_nothing_of_the_explanation():
    def train():
        x, mask = torch.zeros(3), torch.ones(3)
        watched = weakref.ref(mask)
        try:
            refuse(x, mask)
        except RuntimeError as error:
            finding = explain(error)
        del mask
        gc.collect()
        return finding, watched()

    finding, alive = train()
    assert finding.culprit.name == "mask"
    assert alive is None


def test_asking_a_frame_for_its_variables_leaves_nothing_in_it():
    def train():
        mask = torch.ones(3)
        watched = weakref.ref(mask)
        found = variables_of(sys._getframe()).f_locals
        assert found["mask"] is mask
        del mask, found
        return watched()

    assert train() is None


SECRETS = ("hunter2", "1234.5", "99887766", "tok-abcdef")


def test_nothing_secret_is_told():
    """A key is told where it is part of the way to the tensor, since it is the user's own name for it; nothing else."""

    def step(password, weights):
        token = {"tok-abcdef": password, "account": 99887766}  # noqa: F841
        values = {"mask": torch.tensor([1234.5, 6789.25]), "other": password}
        return refuse(weights, values["mask"])

    error = raised(step, "hunter2", torch.zeros(2))
    report = Report(findings=(explain(error),))
    told = json.loads(report.to_json())["findings"][0]
    told.pop("location")  # the failing line's own text
    told["culprit"].pop("source", None)
    told["fix"] = None  # the edit of that line
    text = json.dumps(told)
    assert 'values[\\"mask\\"]' in text
    assert not any(secret in text for secret in SECRETS)


def test_a_key_that_nobody_wrote_in_the_source_is_told_only_on_the_way_to_the_tensor():
    def step(weights, table):
        return refuse(weights, next(iter(table.values())))

    def told(finding):
        report = json.loads(Report(findings=(finding,)).to_json())["findings"][0]
        return json.dumps({**report, "location": None, "culprit": {**report["culprit"], "source": None}})

    finding = explain(raised(step, torch.zeros(2), {"tok-abcdef": torch.ones(2)}))
    assert finding.culprit.name == "second"
    assert "tok-abcdef" not in told(finding)

    def walk(weights, table):
        for key in table:
            refuse(weights, table[key])

    finding = explain(raised(lambda: walk(torch.zeros(2), {"tok-abcdef": torch.ones(2)})))
    assert finding.culprit.name == "table[key]"
    assert "tok-abcdef" not in told(finding)

    def shuffle(weights, key):
        table = {key: torch.ones(2)}
        for value in table.values():
            refuse(weights, value)

    finding = explain(raised(lambda: shuffle(torch.zeros(2), "tok-abcdef")))
    assert finding.culprit.name == 'table["tok-abcdef"]'
    assert told(finding).count("tok-abcdef") == told(finding).count('table[\\"tok-abcdef\\"]')


def _cyclic(depth):
    top: dict[str, object] = {}
    top["self"] = top
    inner = top
    for _ in range(depth):
        inner["next"] = inner = {}
    inner["top"] = top
    return top


class Endless:
    """Each look gives a new object."""

    @property
    def next(self):
        return Endless()


@pytest.mark.parametrize(
    "surroundings",
    [
        {index: index for index in range(300_000)},
        [[index] for index in range(100_000)],
        _cyclic(5_000),
        Endless(),
        "x" * 3_000_000,
        types.SimpleNamespace(**{f"a{index}": [index] for index in range(20_000)}),
    ],
    ids=["wide dict", "wide list", "deep cycle", "endless", "long text", "many attributes"],
)
def test_wide_and_deep_surroundings_end(surroundings):
    def step():
        kept, x, mask = surroundings, torch.zeros(2), torch.ones(2)
        return refuse(x, mask), kept

    finding = explain(raised(step))
    assert finding.culprit.name == "mask"


def test_frames_that_make_no_sense():
    def step(mask):
        raise RuntimeError(MESSAGE)

    error = raised(step, torch.zeros(3))
    frame = error.__traceback__.tb_next.tb_frame
    for instruction, line in ((0, 0), (10_000, 5), (2, 10**6), (-1, -1), (3, 1)):
        error.__traceback__ = TracebackType(None, frame, instruction, line)
        assert explain(error) is not None


def test_a_file_that_is_not_what_ran(tmp_path):
    for index, text in enumerate(("", "def f(:\n", "\x00\x01", "x = 1\n" * 3, "é" * 99, "(" * 5000)):
        path = tmp_path / f"odd_{index}.py"
        path.write_text(text, encoding="utf-8")
        code = compile("def f(x):\n    y = x\n    raise RuntimeError(text)\nf(1)", str(path), "exec")
        assert explain(raised(exec, code, {"text": MESSAGE})).location.file == str(path)


def test_chains_and_groups_in_rings_end():
    errors = [RuntimeError(f"e{index}") for index in range(500)]
    for index, error in enumerate(errors):
        error.__context__ = errors[(index + 1) % 500]
    assert explain(errors[0]) is None
    if sys.version_info >= (3, 11):
        group = ExceptionGroup("g", [RuntimeError(MESSAGE)])  # noqa: F821
        for _ in range(200):
            group = ExceptionGroup("g", [group, group])  # noqa: F821
        explain(group)


@pytest.mark.parametrize(
    "key",
    ["s" * 10_000, 10**6_000, -(10**30), ("a", ("b", 10**5_000)), b"secret", 1j],
    ids=["long text", "long number", "negative", "nested", "bytes", "complex"],
)
def test_keys_that_are_data_stay_untold(key):
    def step():
        table = {key: torch.ones(2)}
        return refuse(torch.zeros(2), next(iter(table.values())))

    told = str(explain(raised(step)))
    assert len(told) < 3_000
    assert "secret" not in told


PIECES = st.sampled_from(
    [MESSAGE, "cuda:0", "\n", 'File "', '", line 3', "Cell In[3], line", "\x1b[0m", "│", "E   ", "{", "%s"]
)


@settings(deadline=None, max_examples=60)
@given(st.lists(PIECES | st.text(max_size=20), max_size=30))
def test_any_exception_text_is_survived(pieces):
    text = "".join(pieces)
    for fault in (text, RuntimeError(text), RuntimeError(text, text), TypeError(MESSAGE + text)):
        finding = explain(fault)
        assert finding is None or str(finding)


def test_a_long_text_takes_no_time_that_grows_with_its_square():
    explain(("x" * 200 + ".py in f\n") * 2_000 + MESSAGE)
    explain('File "' * 20_000 + MESSAGE)
