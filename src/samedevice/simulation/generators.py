"""Random number generators of simulated devices: `torch.Generator(device="cuda")`, seeds and generator states.

Note [One stream of random numbers]
A simulated device computes on the CPU. As long as a script seeds everything alike
(`torch.manual_seed`), its devices draw from PyTorch's default CPU generator, so that a simulated run gives bit for
bit the values of a plain run. A device gets a stream of its own where the script gives it one:
`torch.cuda.manual_seed` or `torch.cuda.set_rng_state` with anything but what the CPU's generator holds at that
moment. `torch.manual_seed` joins them again. So a state that was saved can be restored, a seed that was repeated
repeats its numbers, and nobody who did neither sees a difference.

Must not know any operator: `draw` is all that the interception of operators needs.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from samedevice.simulation.generator_states import KINDS, States
from samedevice.simulation.patching import Patch, Undoable
from samedevice.simulation.stand_ins import Remembered

if TYPE_CHECKING:
    from samedevice.simulation.machine import Machine

__all__ = ["Randomness", "active", "check_state", "device_of", "draw", "patches"]

_RealGenerator: Any = torch._C.Generator


# C++ hands an operator's generator over as a new Python object for the same address.
_by_address: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


class _GeneratorType(type(_RealGenerator)):  # type: ignore[misc]
    """Makes `isinstance(g, torch.Generator)` true for generators that PyTorch itself made, as
    `torch.default_generator`.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _RealGenerator) if cls.accepts_any else super().__instancecheck__(instance)

    accepts_any = False


class _Generator(_RealGenerator, metaclass=_GeneratorType):  # type: ignore[misc]
    """`torch.Generator`: for a simulated device a CPU generator that says it is there, else PyTorch's own."""

    machine: ClassVar[Machine]
    states: ClassVar[States | None]
    """For kinds whose states are not those of the CPU."""
    _device: torch.device | None

    def __new__(cls, device: Any = "cpu") -> Any:
        device = torch.device(device)
        away = device.type == cls.machine.kind
        self = super().__new__(cls) if away else super().__new__(cls, device)
        self._device = device if away else None
        _by_address[self._cdata] = self
        return self

    @property
    def device(self) -> torch.device:
        return self._device or _RealGenerator.device.__get__(self)

    def get_state(self) -> torch.Tensor:
        """The state, as a generator of that device tells it."""
        state = self.real_state()
        if self._device is None or self.states is None:
            return state
        return self.states.shown(state, self.initial_seed())

    def set_state(self, new_state: torch.Tensor) -> Any:
        """Restore a state.

        Args:
            new_state: what `get_state` returned; one that is unknown in this process is read as its seed.

        Raises:
            TypeError: the state is no ByteTensor on the CPU. RuntimeError: it has the wrong size.

        Source: aten/src/ATen/CPUGeneratorImpl.cpp and CUDAGeneratorImpl.cpp, `check_rng_state`.
        """
        check_state(new_state)
        if self._device is None or self.states is None:
            if self._device is not None and new_state.numel() != self.real_state().numel():
                raise RuntimeError("RNG state is wrong size")
            return self.set_real_state(new_state)
        hidden = self.states.hidden(new_state)
        return self.manual_seed(States.seed(new_state)) if hidden is None else self.set_real_state(hidden)

    def real_state(self) -> torch.Tensor:
        """The state of the CPU generator that this one is."""
        state: torch.Tensor = super().get_state()
        return state

    def set_real_state(self, state: torch.Tensor) -> Any:
        """Restore what `real_state` returned."""
        super().set_state(state)
        return self

    def clone_state(self) -> Any:
        """A new generator on the same device, in the same state."""
        clone = type(self)(self.device)
        clone.set_real_state(self.real_state())
        return clone

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _rebuild, (str(self.device), self.real_state())


class _DefaultGenerator(_Generator):
    """One of `torch.cuda.default_generators`; see Note [One stream of random numbers]."""

    shares = True
    """Whether it draws from the CPU's default generator."""

    unknown: torch.Tensor | None = None
    """The state of another process that was set last: it may be that of the CPU's generator."""

    def manual_seed(self, seed: int) -> Any:
        super().manual_seed(seed)
        self._compare()
        return self

    def seed(self) -> int:
        self.shares = False
        return int(super().seed())

    def initial_seed(self) -> int:
        return torch.default_generator.initial_seed() if self.shares else super().initial_seed()

    def real_state(self) -> torch.Tensor:
        return torch.default_generator.get_state() if self.shares else super().real_state()

    def set_state(self, new_state: torch.Tensor) -> Any:
        super().set_state(new_state)
        known = self.states is None or self.states.hidden(new_state) is not None
        self.unknown = None if known else new_state
        self.recognise()
        return self

    def set_real_state(self, state: torch.Tensor) -> Any:
        super().set_real_state(state)
        self._compare()
        return self

    def recognise(self) -> None:
        """Share the CPU's generator if that is in the state which was set here."""
        if self.unknown is not None:
            default = torch.default_generator
            if bytes(self.unknown.tolist()) == States.token(default.get_state(), default.initial_seed()):
                self.shares = True

    def _compare(self) -> None:
        self.unknown = None
        self.shares = torch.equal(super().real_state(), torch.default_generator.get_state())


class Randomness:
    """The default generators of a machine's devices."""

    def __init__(self, machine: Machine) -> None:
        self._kind = machine.kind
        states = States() if machine.kind in KINDS else None
        bound = {"machine": machine, "states": states, "__module__": "torch"}
        self.type: Any = _GeneratorType("Generator", (_Generator,), {**bound, "accepts_any": True})
        default = _GeneratorType("Generator", (_DefaultGenerator,), bound)
        self.default_generators = tuple(default(device) for device in machine.devices)

    def recognise(self) -> None:
        """The CPU's generator has been set: devices may have been set to the same state before."""
        for generator in self.default_generators:
            generator.recognise()

    def share(self) -> None:
        """Every device draws from the CPU's default generator from now on, as after `torch.manual_seed`."""
        for generator in self.default_generators:
            generator.shares = True

    def draw(self, call: Callable[..., Any], device: torch.device | None, args: Any, kwargs: dict[str, Any]) -> Any:
        """Call an operator, with the default generators in the place of their stand-ins."""
        given = kwargs.get("generator")
        default = self._default_generator(device) if given is None else _ours(given)
        if not isinstance(default, _DefaultGenerator):
            return call(*args, **kwargs)
        if given is not None:
            kwargs = {**kwargs, "generator": None}
        with contextlib.nullcontext() if default.shares else _drawing_from(default):
            return call(*args, **kwargs)

    def _default_generator(self, device: torch.device | None) -> Any:
        if device is None or device.type != self._kind:
            return None
        return self.default_generators[device.index]


def draw(call: Callable[..., Any], device: torch.device | None, args: Any, kwargs: dict[str, Any]) -> Any:
    """Call an operator that draws random numbers.

    Args:
        call: the operator, for the CPU.
        device: where the numbers go, None for the CPU.
        args: its arguments.
        kwargs: its arguments; "generator" may be any generator.

    Returns:
        What the operator returns.
    """
    return call(*args, **kwargs) if active is None else active.draw(call, device, args, kwargs)


def device_of(generator: Any) -> torch.device:
    """Where a generator is said to be, also one that came through C++ and lost its Python object on the way."""
    ours = _ours(generator)
    device: torch.device = _RealGenerator.device.__get__(generator) if ours is None else ours.device
    return device


def _ours(generator: Any) -> Any:
    return generator if isinstance(generator, _Generator) else _by_address.get(generator._cdata)


@contextlib.contextmanager
def _drawing_from(generator: _DefaultGenerator) -> Iterator[None]:
    """Within it PyTorch's default generator goes on where `generator` is."""
    default = torch.default_generator
    kept = default.get_state()
    default.set_state(generator.real_state())
    try:
        yield
    finally:
        _RealGenerator.set_state(generator, default.get_state())
        default.set_state(kept)


active: Randomness | None = None
"""The running simulation's, for the interception of operators."""


def patches(machine: Machine) -> Iterator[Undoable]:
    """`torch.Generator`, `torch.manual_seed`, `torch.set_rng_state`, and the functions of `torch.cuda.random` and its
    kin.
    """
    randomness = Randomness(machine)
    yield Patch(sys.modules[__name__], "active", randomness)
    yield Patch(torch, "Generator", randomness.type)
    yield Patch(torch.random, "_seed_custom_device", _sharing(randomness, torch.random._seed_custom_device))
    for owner in (torch, torch.random):
        yield Patch(owner, "set_rng_state", _checking(torch.random.set_rng_state, randomness))
    if machine.kind == "mps":
        yield Patch(torch.mps, "_default_mps_generator", randomness.default_generators[0])
    elif machine.kind in ("cuda", "xpu"):
        module = getattr(torch, machine.kind)
        # Filled at the first use, as in PyTorch.
        yield Remembered(module, "default_generators", ())
        yield from _immediate(module, randomness)


def _sharing(randomness: Randomness, seed_others: Callable[[int], None]) -> Callable[[int], None]:
    """`torch.manual_seed` and `torch.seed` call this once the devices have been seeded and before the CPU is; 2.6 to
    2.14.
    """

    def seed_custom_device(seed: int) -> None:
        seed_others(seed)
        randomness.share()

    return seed_custom_device


def _checking(set_rng_state: Callable[[torch.Tensor], None], randomness: Randomness) -> Callable[[torch.Tensor], None]:
    @functools.wraps(set_rng_state)
    def checked(new_state: torch.Tensor) -> None:
        check_state(new_state)
        set_rng_state(new_state)
        randomness.recognise()

    return checked


def _immediate(module: Any, randomness: Randomness) -> Iterator[Undoable]:
    """Seeding takes effect when it is called, not at the device's first use: only then is it known what it changes."""

    def call_now(function: Callable[[], None], **when: bool) -> None:
        # As PyTorch does for what waited: this is no first use by itself.
        nested = hasattr(module._tls, "is_initializing")
        before, module.default_generators = module.default_generators, randomness.default_generators
        module._tls.is_initializing = True
        try:
            function()
        finally:
            if not module._initialized:
                module.default_generators = before
            if not nested:
                del module._tls.is_initializing

    for owner in (module, module.random):
        if hasattr(owner, "_lazy_call"):
            yield Patch(owner, "_lazy_call", call_now)


def check_state(state: torch.Tensor) -> None:
    """Refuse a generator state that is no ByteTensor on the CPU, in PyTorch's words.

    Source: aten/src/ATen/core/Generator.h, `check_rng_state`, 2.6 to 2.14.
    """
    if state.device.type != "cpu" or state.dtype is not torch.uint8 or state.layout is not torch.strided:
        raise TypeError("RNG state must be a torch.ByteTensor")


def _rebuild(device: str, state: torch.Tensor) -> torch.Generator:
    generator = torch.Generator(device)
    if isinstance(generator, _Generator):
        generator.set_real_state(state)
    elif generator.device.type == "cpu":
        generator.set_state(state)
    return generator
