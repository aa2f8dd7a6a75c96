"""`simulate("cuda:2")`: within it this process is a machine with two CUDA devices; after it, all is as it was.

Installs what the other modules of this package contribute, in one table, and undoes it however the block ends. It
decides nothing about devices itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from samedevice.errors import UsageError
from samedevice.simulation import (
    device_api,
    device_guard,
    device_type,
    direct_calls,
    dlpack,
    factories,
    function_checks,
    gradients,
    higher_order,
    mps,
    scripting,
    storages,
    tensors,
    threads,
    tracebacks,
    warned,
    wrappers,
)
from samedevice.simulation import labels as labels_module
from samedevice.simulation import machine as machine_module
from samedevice.simulation.gradients import CrossDeviceEdges
from samedevice.simulation.importing import imports_of_torch
from samedevice.simulation.initialisation import Initialisation
from samedevice.simulation.labels import LabelTable
from samedevice.simulation.machine import Machine, parse_machine
from samedevice.simulation.moves import Mover
from samedevice.simulation.operators import DeviceMode
from samedevice.simulation.patching import Applied, Undoable
from samedevice.simulation.plugin_name import PluginName
from samedevice.texts import say

__all__ = ["simulate"]


@contextlib.contextmanager
def simulate(machine: str = "cuda") -> Iterator[Machine]:
    """Pretend that this machine has accelerators; none is needed, and real ones are left alone.

        with samedevice.simulate("cuda:2"):
            x = torch.zeros(2, 3, device="cuda")      # x.device is cuda:0
            x + torch.zeros(2, 3)                     # RuntimeError, as on a real machine

    Args:
        machine: the kind of device, with how many after a colon: "cuda", "cuda:2", "mps", "xpu".

    Yields:
        The machine.

    Raises:
        UsageError: a kind that cannot be simulated, or a simulation is running already.
    """
    if not isinstance(machine, str):
        raise UsageError(
            say("cannot simulate {given}: give a kind of device as text, such as 'cuda:2'", given=repr(machine))
        )
    name = PluginName()
    if machine.partition(":")[0] == "npu":
        name.claim()
    try:
        with _running(parse_machine(machine), machine) as made:
            yield made
    finally:
        name.release()


@contextlib.contextmanager
def _running(made: Machine, machine: str) -> Iterator[Machine]:
    """The simulation of a machine that was described as `machine`."""
    if (running := machine_module.active()) is not None:
        raise UsageError(
            say(
                "cannot simulate {machine!r}: {names} are being simulated already. Mend: leave the other "
                "simulate() first.",
                machine=machine,
                names=", ".join(running.names),
            )
        )
    labels = LabelTable()
    if made.kind == "mps":
        labels.refuse = mps.refuse_double(labels)
    edges = CrossDeviceEdges(labels)
    mode = DeviceMode(made, labels, edges)
    machine_module.activate(made)
    labels_module.activate(labels)
    try:
        with (
            # Not among the suspended: other threads go on while one imports.
            Applied([labels.default, device_type.DefaultDevice(made.kind)]),
            Applied(_patches(made, labels, edges, mode)) as patches,
            imports_of_torch(patches),
            mode.entered(),
        ):
            yield made
    finally:
        mode.end()
        machine_module.activate(None)
        labels_module.activate(None)


def _patches(machine: Machine, labels: LabelTable, edges: CrossDeviceEdges, mode: DeviceMode) -> Iterator[Undoable]:
    """Everything that a simulation changes, in the order of installation."""
    mover = Mover(labels, mode)
    yield Initialisation(machine.kind)
    yield from device_guard.patches(machine.kind)
    yield from device_api.patches(machine)
    yield from storages.patches(machine, labels)
    yield from tensors.patches(machine, labels, mover)
    yield from factories.patches(machine, labels, mover)
    yield from wrappers.patches(machine, labels)
    yield from dlpack.patches(machine, labels)
    yield from function_checks.patches(labels.device_of)
    if machine.kind == "mps":
        yield from mps.patches(labels)
    yield from gradients.patches(labels, edges)
    yield from device_type.patches(machine, labels)
    yield from threads.patches(mode)
    yield from scripting.patches(machine, labels, mode)
    yield from direct_calls.patches(mode)
    yield from higher_order.patches()
    yield from tracebacks.patches()
    yield from warned.patches()
