"""Checkpoints of every kind that PyTorch writes are read; hostile and damaged ones are refused, and nothing is run."""

import collections
import contextlib
import datetime
import enum
import functools
import json
import os
import pickle
import re
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from samedevice import checkpoints
from samedevice.checkpoints import inspect
from samedevice.errors import SameDeviceError, UnreadableCheckpoint, UnsafeCheckpoint


@pytest.fixture
def saved(tmp_path):
    def save(value, **options):
        file = str(tmp_path / "checkpoint.pt")
        torch.save(value, file, **options)
        return file

    return save


def by_path(file):
    return {entry.path: entry for entry in inspect(file).entries}


@pytest.mark.parametrize("zipped", [True, False])
def test_a_training_checkpoint(saved, zipped):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.rand(5, 3)).sum().backward()
    optimizer.step()
    file = saved(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "name": "x"},
        _use_new_zipfile_serialization=zipped,
    )
    found = by_path(file)
    assert inspect(file).format == ("zip" if zipped else "legacy")
    assert found['["model"]["0.weight"]'].shape == (4, 3)
    assert found['["model"]["0.weight"]'].bytes == 4 * 3 * 4
    assert found['["model"]["1.num_batches_tracked"]'].dtype == "int64"
    assert found['["optimizer"]["state"][0]["exp_avg"]'].device == "cpu"
    assert len(found) == 7 + 4 * 3
    assert inspect(file).classes == ()


TENSORS = {
    "bfloat16": lambda: torch.ones(2, dtype=torch.bfloat16),
    "uint16": lambda: torch.zeros(2, dtype=torch.uint16),
    "complex64": lambda: torch.zeros(2, dtype=torch.complex64),
    "float8_e4m3fn": lambda: torch.zeros(2).to(torch.float8_e4m3fn),
    "bool": lambda: torch.zeros(2, dtype=torch.bool),
    "float32": lambda: torch.eye(3).to_sparse(),
    "float64": lambda: torch.eye(3, dtype=torch.float64).to_sparse_csr(),
}


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize("dtype", TENSORS)
def test_each_kind_of_tensor(saved, dtype):
    tensor = TENSORS[dtype]()
    (entry,) = inspect(saved([tensor])).entries
    assert (entry.path, entry.shape, entry.dtype) == ("[0]", tuple(tensor.shape), dtype)


def test_devices_are_those_it_was_saved_from(saved):
    assert inspect(saved({"a": torch.empty(3, device="meta"), "b": torch.ones(2)})).devices == ("meta", "cpu")


def test_cuda_tags_are_read_without_cuda(saved):
    """A checkpoint written on a GPU holds the location as text; here the text is put in by the pickle's own means."""
    tensor = torch.ones(2)
    file = saved([tensor])
    data = "checkpoint/data.pkl"
    with zipfile.ZipFile(file) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    assert b"X\x03\x00\x00\x00cpu" in records[data]
    records[data] = records[data].replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:3")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in records.items():
            archive.writestr(name, content)
    assert inspect(file).devices == ("cuda:3",)


def test_shared_storages_count_once_and_views_show_what_they_keep(saved):
    base = torch.zeros(1000)
    checkpoint = inspect(saved({"a": base, "b": base[:3], "c": base}))
    assert checkpoint.bytes == 4000
    assert [(entry.bytes, entry.storage_bytes) for entry in checkpoint.entries] == [
        (4000, 4000),
        (12, 4000),
        (4000, 4000),
    ]


def test_a_whole_model_names_the_classes_that_it_needs(saved):
    checkpoint = inspect(saved(nn.Sequential(nn.Linear(3, 4))))
    assert checkpoint.classes == ("torch.nn.modules.container.Sequential", "torch.nn.modules.linear.Linear")
    assert checkpoint.entries[0].path == '._modules["0"]._parameters["weight"]'
    assert checkpoint.entries[0].kind == "parameter"


Pair = collections.namedtuple("Pair", "first second")


def test_containers(saved):
    value = collections.OrderedDict(a=[torch.ones(1), (torch.ones(1),)], b=Pair(torch.ones(1), {1: torch.ones(1)}))
    value["d"] = collections.defaultdict(list, {"x": [torch.ones(1)]})
    assert list(by_path(saved(value))) == ['["a"][0]', '["a"][1][0]', '["b"][0]', '["b"][1][1]', '["d"]["x"][0]']


def test_cycles_end(saved):
    value = {"a": torch.ones(1)}
    value["self"] = value
    assert list(by_path(saved(value))) == ['["a"]']


def test_data_of_other_libraries_is_passed_by(saved):
    assert list(by_path(saved({"n": np.arange(3), "f": np.float32(1), "t": torch.ones(1), "s": {1, 2}}))) == ['["t"]']


def test_a_plain_pickle_of_tensors(tmp_path):
    file = tmp_path / "x.pkl"
    file.write_bytes(pickle.dumps({"x": torch.ones(3), "p": nn.Parameter(torch.ones(2))}))
    checkpoint = inspect(str(file))
    assert checkpoint.format == "pickle"
    assert [(entry.path, entry.shape, entry.kind) for entry in checkpoint.entries] == [
        ('["x"]', (3,), "tensor"),
        ('["p"]', (2,), "parameter"),
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript(tmp_path):
    file = str(tmp_path / "script.pt")
    torch.jit.script(nn.Linear(3, 4)).save(file)
    assert inspect(file).format == "torchscript"
    assert list(by_path(file)) == [".weight", ".bias"]


def safetensors(header, data=b""):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def test_safetensors(tmp_path):
    file = tmp_path / "x.safetensors"
    header = {"__metadata__": {"a": "b"}, "w": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}
    file.write_bytes(safetensors(header, b"\0" * 12))
    (entry,) = inspect(str(file)).entries
    assert (entry.path, entry.device, entry.shape, entry.dtype, entry.bytes) == ('["w"]', None, (2, 3), "bfloat16", 12)


# ---- hostile


class Calls:
    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


HOSTILE = {
    "posix.system" if os.name == "posix" else "nt.system": Calls(os.system, "touch pwned"),
    "builtins.exec": Calls(exec, "open('pwned', 'w')"),
    "builtins.eval": Calls(eval, "open('pwned', 'w')"),
    "builtins.getattr": Calls(getattr, os, "system"),
    "torch.hub.load": Calls(torch.hub.load, "someone/something"),
    "torch.serialization.load": Calls(torch.load, "other.pt"),
    "numpy.fromfile": Calls(np.fromfile, "x"),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_that_would_run_code_is_refused_and_named(tmp_path, monkeypatch, saved, name, zipped):
    monkeypatch.chdir(tmp_path)
    if name == "builtins.getattr":
        HOSTILE[name].arguments = ("os", "system")
    file = saved({"model": HOSTILE[name]}, _use_new_zipfile_serialization=zipped)
    with pytest.raises(UnsafeCheckpoint) as caught:
        inspect(file)
    assert name in str(caught.value)
    assert "It was not run." in str(caught.value)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    "pickled",
    [
        b"cos\nsystem\n(S'touch pwned'\ntR.",  # GLOBAL, REDUCE
        b"(S'touch pwned'\nios\nsystem\n.",  # INST
        b"(cos\nsystem\nS'touch pwned'\no.",  # OBJ
        b"\x80\x04\x8c\x05torch\x8c\x09os.system\x93\x8c\x0btouch pwned\x85R.",  # a dotted name through torch
        b"c__main__\nrun\n(tR.",  # a function of one's own
        b"cnumpy.testing._private.utils\nrunstring\n(tR.",
    ],
)
def test_every_way_to_call_is_refused(tmp_path, monkeypatch, pickled):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.pkl").write_bytes(pickled)
    with pytest.raises(UnsafeCheckpoint):
        inspect("x.pkl")
    assert not (tmp_path / "pwned").exists()


def test_naming_a_class_imports_nothing(tmp_path):
    (tmp_path / "x.pkl").write_bytes(b"\x80\x02cantigravity\nThing\n)\x81.")
    before = set(sys.modules)
    assert inspect(str(tmp_path / "x.pkl")).classes == ("antigravity.Thing",)
    assert set(sys.modules) == before


# ---- damaged


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"hello world, how are you", "it is no checkpoint that PyTorch writes"),
        (b"PK\x03\x04" + b"\0" * 100, "the zip archive is cut short or damaged"),
        (b"\x80\x02}q\x00(X", "its pickle"),
        (struct.pack("<Q", 10**9) + b"{}", "cut short or damaged: its header claims 1000000000 bytes"),
        (safetensors({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}), "it is cut short"),
        (safetensors({"w": {"shape": [4]}}), "its safetensors header is damaged"),
    ],
)
def test_a_damaged_file_is_told_so(tmp_path, content, message):
    file = tmp_path / "x.pt"
    file.write_bytes(content)
    with pytest.raises(UnreadableCheckpoint) as caught:
        inspect(str(file))
    assert message in str(caught.value)
    assert str(file) in str(caught.value)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(UnreadableCheckpoint, match="No such file"):
        inspect(str(tmp_path / "none.pt"))
    with pytest.raises(UnreadableCheckpoint, match="folder"):
        inspect(str(tmp_path))


def test_a_zip_of_something_else(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(UnreadableCheckpoint, match=r"without a data\.pkl"):
        inspect(str(tmp_path / "x.zip"))


def test_a_missing_record(saved):
    file = saved([torch.ones(3), torch.ones(4)])
    with zipfile.ZipFile(file) as archive:
        kept = {name: archive.read(name) for name in archive.namelist() if not name.endswith("data/1")}
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in kept.items():
            archive.writestr(name, content)
    with pytest.raises(UnreadableCheckpoint, match="data/1 is missing"):
        inspect(file)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_file_cut_anywhere_is_told_so(tmp_path, saved, zipped):
    file = saved({"a": torch.ones(30), "b": [torch.ones(4)]}, _use_new_zipfile_serialization=zipped)
    whole = Path(file).read_bytes()
    cut = tmp_path / "cut.pt"
    for length in range(0, len(whole), max(1, len(whole) // 60)):
        cut.write_bytes(whole[:length])
        with pytest.raises(UnreadableCheckpoint):
            inspect(str(cut))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_flipped_bytes_never_escape(tmp_path_factory, data):
    """Whatever the bytes, the answer is a checkpoint or one of two errors, and nothing is run."""
    folder = tmp_path_factory.getbasetemp()
    file = folder / "flipped.pt"
    torch.save({"a": torch.ones(3), "b": [1, "x"]}, file, _use_new_zipfile_serialization=data.draw(st.booleans()))
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, min(len(content), 700) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(bytes(content))
    with contextlib.suppress(SameDeviceError):
        assert isinstance(inspect(str(file)), checkpoints.Checkpoint)


# ---- what honest checkpoints hold besides tensors, and what dishonest ones do


class Colour(enum.Enum):
    RED = 1


class Settings(collections.OrderedDict):
    pass


@pytest.mark.parametrize(
    "value",
    [
        Colour.RED,
        ValueError("x"),
        Settings(a=1),
        collections.deque([1], 3),
        range(3),
        int,
        ...,
        torch.relu,
        functools.partial(torch.relu),
        re.compile("a"),
        np.ma.array([1, 2], mask=[0, 1]),
        np.random.default_rng(0),
        nn.LazyLinear(2),
        datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc),
        Path("a/b"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_what_honest_checkpoints_hold(tmp_path, value, protocol):
    file = tmp_path / "checkpoint.pt"
    torch.save({"value": value, "weight": torch.ones(2)}, file, pickle_protocol=protocol)
    assert '["weight"]' in by_path(str(file))


def test_tensors_in_a_deque_and_in_a_jagged_tensor_are_listed(saved):
    jagged = torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged)
    found = by_path(saved({"queue": collections.deque([torch.ones(2)]), "jagged": jagged}))
    assert found['["queue"][0]'].shape == (2,)
    assert any(path.startswith('["jagged"]') for path in found)


@pytest.mark.parametrize(
    ("pickled", "message"),
    [
        (b"\x80\x04\x8c\x07pathlib\x8c\x0fPath.write_text\x93\x8c\x01x\x85R.", "call pathlib.Path.write_text"),
        (b"\x80\x04\x8c\x0apsutil.sub\x8c\x03run\x93)R.", "call psutil.sub.run"),
        (b"\x80\x04\x8c\x07zipfile\x8c\x07ZipFile\x93\x8c\x01x\x8c\x01w\x86R.", "call zipfile.ZipFile"),
        (b"\x80\x04\x8c\x13torch.serialization\x8c\x02os\x93.", "names torch.serialization.os"),
        (
            b"\x80\x04\x8c\x08builtins\x8c\x07getattr\x93\x8c\x05torch\x8c\x03nnn\x93\x8c\x02os\x86R.",
            "names torch.nnn.os",
        ),
        (b"\x80\x04\x8c\x08builtins\x8c\x07getattr\x93\x8c\x01a\x8c\x01b\x86R.", "call builtins.getattr"),
        (b"\x80\x04\x8c\x09functools\x8c\x07partial\x93)R)R.", "call a partial"),
    ],
)
def test_what_dishonest_checkpoints_do(tmp_path, pickled, message):
    file = tmp_path / "evil.pkl"
    file.write_bytes(pickled)
    with pytest.raises(UnsafeCheckpoint, match=re.escape(message)):
        inspect(str(file))


def test_an_archive_that_fills_the_memory_or_says_two_things_is_refused(tmp_path):
    bomb, double = tmp_path / "bomb.pt", tmp_path / "double.pt"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", b"\x80\x02X\x00\x00\x10\x00" + b"a" * 2**20 + b".")
    with zipfile.ZipFile(double, "w") as archive:
        archive.writestr("a/DATA.pkl", b"\x80\x02}.")
        archive.writestr("a/data.pkl", b"\x80\x02}.")
    with pytest.raises(UnsafeCheckpoint, match="unpack to 1048584"):
        inspect(str(bomb))
    with pytest.raises(UnsafeCheckpoint, match="two records of one name"):
        inspect(str(double))


@pytest.mark.parametrize(
    "entry",
    [
        '{"dtype":"F32","shape":[1],"data_offsets":[0,Infinity]}',
        '{"dtype":"F32","shape":[-2],"data_offsets":[8,0]}',
        '{"dtype":"F32","shape":[200],"data_offsets":[0,8]}',
        '{"dtype":"F32","shape":"12","data_offsets":"08"}',
        '{"dtype":"F32","shape":[' + ",".join(["4611686018427387904"] * 400) + '],"data_offsets":[0,8]}',
        "[" * 100_000,
    ],
    ids=["infinite", "negative", "too little data", "strings", "huge", "deep"],
)
def test_a_safetensors_header_that_makes_no_sense(tmp_path, entry):
    header = f'{{"a":{entry}}}'.encode()
    file = tmp_path / "model.safetensors"
    file.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    with pytest.raises(UnreadableCheckpoint, match="header is damaged"):
        inspect(str(file))


def test_elements_of_half_a_byte(tmp_path):
    header = b'{"a":{"dtype":"F4","shape":[16],"data_offsets":[0,8]}}'
    file = tmp_path / "model.safetensors"
    file.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    assert inspect(str(file)).entries[0].bytes == 8


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        (b"<!DOCTYPE html><html>404", "web page"),
        (b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "compressed with gzip"),
        (bytes(257) + b"ustar  ", "tar archive"),
    ],
)
def test_what_is_often_taken_for_a_checkpoint_is_named(tmp_path, content, message):
    file = tmp_path / "model.pt"
    file.write_bytes(content)
    with pytest.raises(UnreadableCheckpoint, match=message):
        inspect(str(file))
