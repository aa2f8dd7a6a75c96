"""Ranks and other child processes of a simulated run: each on its own device, and what ends one is explained."""

import json
import os
import subprocess
import sys

import pytest
import torch.distributed as dist

from samedevice.running import children

needs_gloo = pytest.mark.skipif(not dist.is_available() or not dist.is_gloo_available(), reason="needs gloo")

TRAINING = """\
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def train(rank, size):
    os.environ.update(MASTER_ADDR="localhost", RANK=str(rank), WORLD_SIZE=str(size))
    dist.init_process_group("nccl", init_method="env://" if "TORCHELASTIC_RUN_ID" in os.environ else sys.argv[2],
                            rank=rank, world_size=size)
    torch.cuda.set_device(rank)
    torch.manual_seed(rank)
    model = DistributedDataParallel(torch.nn.Linear(4, 1).to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    target = torch.ones(8, 1)
    if sys.argv[1] == "right" or rank != 1:
        target = target.to(rank)
    loss = (model(torch.randn(8, 4)) - target).square().mean()
    loss.backward()
    optimizer.step()
    weights = [torch.empty_like(model.module.weight) for _ in range(size)]
    dist.all_gather(weights, model.module.weight.data)
    print(f"rank {rank} on {loss.device}, alike: {torch.equal(*weights)}\\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    if "LOCAL_RANK" in os.environ:
        train(int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"]))
    else:
        mp.spawn(train, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
"""
LINE = TRAINING.splitlines().index("    loss = (model(torch.randn(8, 4)) - target).square().mean()") + 1
LAUNCHER = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone")
SIMULATED = ("-m", "samedevice", "run", "--simulate", "cuda:2", "--json", "report.json")


@pytest.fixture
def python(tmp_path):
    """Calls python on the training script."""
    (tmp_path / "train.py").write_text(TRAINING)

    def call(*words, kind):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "SAMEDEVICE_LANG": "en"}
        command = [sys.executable, *words, "train.py", kind, f"file://{tmp_path}/group"]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)

    return call


WAYS = {
    "spawned": SIMULATED,
    "launched inside": (*SIMULATED, *LAUNCHER),
    "launched outside": (*LAUNCHER, "--no-python", sys.executable, "-m", "samedevice", "run", "--simulate", "cuda:2"),
}


@needs_gloo
@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_each_rank_trains_on_its_own_device(python, way):
    done = python(*way, kind="right")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == ["", "rank 0 on cuda:0, alike: True", "rank 1 on cuda:1, alike: True"]


@needs_gloo
@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_fault_in_one_rank_is_explained(python, way, tmp_path):
    done = python(*way, kind="wrong")
    assert done.returncode == 1
    assert done.stderr.count("sub: target is on cpu, expected on cuda:1\n") == 1
    assert f"  at train.py:{LINE} in train: " in done.stderr
    assert "1 device fault in " in done.stderr
    if way is not WAYS["launched outside"]:
        assert "\n  met in rank 1 of 2\n" in done.stderr
        report = json.loads((tmp_path / "report.json").read_text())
        (finding,) = report["findings"]
        assert (report["outcome"], finding["location"]["line"], finding["culprit"]["name"]) == (
            "finding",
            LINE,
            "target",
        )
        assert finding["code"] == "SD106"


OWN = ["--simulate", "cuda:2"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["-u", "train.py", "-c", "3"], ["-u", "-m", "samedevice", "run", *OWN, "train.py", "-c", "3"]),
        (["-m", "package.train"], ["-m", "samedevice", "run", *OWN, "-m", "package.train"]),
        (["-W", "error", "-X", "dev", "t.py"], ["-W", "error", "-X", "dev", "-m", "samedevice", "run", *OWN, "t.py"]),
        (["-c", "print()"], None),
        (["-"], None),
        ([], None),
        (["-m", "samedevice", "run", "--simulate", "mps", "t.py"], None),
    ],
)
def test_a_ranks_command_becomes_a_run(command, expected):
    made = children._as_run([sys.executable, *command], OWN)
    assert made == (expected and [sys.executable, *expected])


@pytest.mark.parametrize("command", [["ls", "train.py"], ["no such program", "train.py"], "python train.py", []])
def test_other_commands_stay(command):
    assert children._as_run(command, OWN) is None


def test_only_commands_for_another_rank_are_changed(monkeypatch, tmp_path):
    script = tmp_path / "argv.py"
    script.write_text("import sys\nprint(len(sys.orig_argv))\n")

    def words(**environment):
        command = [sys.executable, str(script)]
        return int(subprocess.run(command, env={**os.environ, **environment}, capture_output=True, check=True).stdout)

    before = subprocess.Popen.__init__, children.multiprocessing.process.BaseProcess.run
    with children.taking_part("cuda:2", None):
        assert words() == 2
        monkeypatch.setenv("LOCAL_RANK", "0")
        assert words() == 2
    assert (subprocess.Popen.__init__, children.multiprocessing.process.BaseProcess.run) == before
