"""Device faults that raise nothing: found when an optimizer steps, and when a module is moved.

What is reported, always as a warning:
    - an optimizer that steps parameters which the model does not have any more, while the model's own train nowhere;
    - a parameter that a `.to()` made a plain tensor, so that no optimizer can hold it;
    - parameters that shared their values until a move made two copies of them.
What it does not see: models that no variable of the running functions reaches, and steps that no
`torch.optim.Optimizer` makes. Each claim needs the whole pattern; half of it is somebody's purpose.

Uses the global hook of optimizers (`register_optimizer_step_pre_hook`, torch 2.0 and newer) and two patched methods,
undone at the end. Steps are looked at when their count is a power of two.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import device_of, gradient_of, instance_dict, storage_key, tensors_of_module
from samedevice.explaining.operands import find_inside
from samedevice.explaining.routes import Route, search
from samedevice.explaining.where_made import Made
from samedevice.findings import Culprit, Finding, Fix, Location
from samedevice.simulation.patching import Applied, Patch
from samedevice.tracing.origins import OriginTable
from samedevice.usercode import is_user_file

__all__ = ["SilentFaults"]

_Tie: TypeAlias = "tuple[tuple[str, Any], tuple[str, Any]]"
"""Path and parameter, twice."""


class SilentFaults:
    """Looks for faults that raise nothing while it is `watching`.

    Args:
        origins: where tensors came from.
        report: called with each finding, once.
    """

    def __init__(self, origins: OriginTable, report: Callable[[Finding], None]) -> None:
        self._origins = origins
        self._report = report
        self._optimizers: weakref.WeakKeyDictionary[Any, _Constructed] = weakref.WeakKeyDictionary()
        self._reported: set[tuple[str, str | None, int | None]] = set()
        self._moving = threading.local()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Within it optimizers' steps and modules' moves are looked at."""
        handle = register_optimizer_step_pre_hook(self._before_step)
        patches = [
            Patch(torch.optim.Optimizer, "__init__", self._noting(torch.optim.Optimizer.__init__)),
            Patch(torch.nn.Module, "_apply", self._comparing(torch.nn.Module._apply)),
        ]
        try:
            with Applied(patches):
                yield
        finally:
            handle.remove()

    def _noting(self, construct: Any) -> Any:
        """`Optimizer.__init__`, with the user's line that called it kept."""

        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            construct(optimizer, *args, **kwargs)
            frame = next(_user_stack(1), None)
            self._optimizers[optimizer] = _Constructed(frame.file if frame else "", frame.line if frame else 0)

        return __init__

    def _comparing(self, apply: Any) -> Any:
        """`Module._apply`, with the ties between parameters compared before and after the outermost call."""

        def _apply(module: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(self._moving, "inside", False):
                return apply(module, *args, **kwargs)
            self._moving.inside = True
            try:
                ties = _ties(module)
                result = apply(module, *args, **kwargs)
            finally:
                self._moving.inside = False
            self._guarded(lambda: self._compare(module, ties))
            return result

        return _apply

    def _compare(self, module: Any, ties: list[_Tie]) -> None:
        for first, second in ties:
            if storage_key(first[1]) != storage_key(second[1]) and device_of(first[1]) == device_of(second[1]):
                self._untied(module, first, second)

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        known = self._optimizers.setdefault(optimizer, _Constructed("", 0))
        known.steps += 1
        if known.steps & (known.steps - 1) == 0:
            self._guarded(lambda: self._look(optimizer))

    def _guarded(self, look: Callable[[], None]) -> None:
        # What goes wrong while looking is no business of the program that is looked at.
        with contextlib.suppress(Exception):
            look()

    def _look(self, optimizer: Any) -> None:
        stack = list(_user_stack(1))
        if not stack:
            return
        modules = _modules_in(stack)
        self._stale(optimizer, stack, modules)
        self._non_leaf(stack, modules)

    def _stale(self, optimizer: Any, stack: list[UserFrame], modules: list[Route]) -> None:
        """Rule: trained parameters in no optimizer, and an optimizer that holds what nobody trains."""
        held = _parameters_of(optimizer)
        everywhere = {id(tensor) for other in list(self._optimizers) for tensor in _parameters_of(other)}
        idle = [tensor for tensor in held if gradient_of(tensor) is None]
        for route in modules:
            own = [tensor for _, kind, tensor in tensors_of_module(route.value) if kind == "parameter"]
            lost = [tensor for tensor in own if id(tensor) not in everywhere and gradient_of(tensor) is not None]
            if lost and (_replaced_in_part(held, idle, own) or _replaced_whole(held, idle, own)):
                self._say_stale(optimizer, stack, route, lost[0])
                return

    def _say_stale(self, optimizer: Any, stack: list[UserFrame], model: Route, lost: Any) -> None:
        frame = stack[0]
        found = next((route for each in stack for route in search(each, lambda value: value is optimizer)), None)
        name = found.text if found is not None else "optimizer"
        constructed = self._optimizers[optimizer]
        path = _path_in(model, lost)
        self._add(
            code="SD202",
            cause="optimizer-stale-params",
            message=f"{name} steps parameters that {model.text} does not have any more; {path} is in no optimizer",
            location=_location(frame),
            culprit=_culprit(name, Made(constructed.file, constructed.line), device_of(lost)),
            operation=None,
            reasons=(
                f"{path} has a gradient and no optimizer holds it",
                f"{name} holds parameters without a gradient that belong to no module in use",
            ),
            fix=Fix("construct the optimizer after the model has its final parameters"),
        )

    def _non_leaf(self, stack: list[UserFrame], modules: list[Route]) -> None:
        """Rule: a module's plain tensor that is a moved copy of a parameter which nothing else holds."""
        registered = {id(tensor) for route in modules for _, _, tensor in tensors_of_module(route.value)}
        registered |= {id(tensor) for other in list(self._optimizers) for tensor in _parameters_of(other)}
        for route in modules:
            for owner in _with_children(route):
                for key, value in list(instance_dict(owner.value).items()):
                    leaf = _moved_parameter(value)
                    if leaf is not None and id(leaf) not in registered:
                        self._say_non_leaf(stack[0], owner, key, value)

    def _say_non_leaf(self, frame: UserFrame, owner: Route, key: str, value: torch.Tensor) -> None:
        name = f"{owner.text}.{key}"
        origin = self._origins.origin_of(value)
        made = Made(origin.file, origin.line) if origin is not None else None
        self._add(
            code="SD103",
            cause="plain-attribute",
            message=f"{name} is a moved copy of a parameter, no parameter itself: no optimizer trains it",
            location=_location(frame),
            culprit=_culprit(name, made, device_of(value), value),
            operation=None,
            reasons=("a tensor's `.to()` returns a plain tensor, so the module registers no parameter",),
            fix=Fix("make the parameter of the moved tensor: nn.Parameter(x.to(device))"),
        )

    def _untied(self, module: Any, first: tuple[str, Any], second: tuple[str, Any]) -> None:
        """Rule: two parameters over the same values, which the move copied one by one."""
        frame = next(_user_stack(1), None)
        if frame is None:
            return
        found = next(search(frame, lambda value: value is module), None)
        root = found.text if found is not None else type(module).__name__
        names = sorted((f"{root}.{first[0]}", f"{root}.{second[0]}"))
        made = _made_in_class(module, (first[0], second[0]), frame)
        self._add(
            code="SD900",
            cause="other",
            message=f"the move made two copies of the values that {names[0]} and {names[1]} shared",
            location=_location(frame),
            culprit=_culprit(names[0], made, device_of(first[1]), first[1]),
            operation=None,
            reasons=(
                "two Parameter objects over one storage are moved one by one; only one and the same Parameter stays tied",
            ),
            fix=Fix("share the Parameter itself: self.embed.weight = self.generator.weight"),
        )

    def _add(self, **fields: Any) -> None:
        culprit, location = fields["culprit"], fields["location"]
        key = (fields["cause"], culprit.name, location.line)
        if key not in self._reported:
            self._reported.add(key)
            self._report(Finding(severity="warning", **fields))


class _Constructed:
    """Where an optimizer was constructed, and how often it has stepped."""

    def __init__(self, file: str, line: int) -> None:
        self.file, self.line, self.steps = file, line, 0


def _replaced_in_part(held: list[Any], idle: list[Any], own: list[Any]) -> bool:
    """The optimizer holds the model's other parameters, and beside them some that no living module has."""
    mine = {id(tensor) for tensor in own}
    if not any(id(tensor) in mine for tensor in held):
        return False
    orphans = [tensor for tensor in idle if id(tensor) not in mine]
    return bool(orphans) and not _in_a_living_module(orphans)


def _replaced_whole(held: list[Any], idle: list[Any], own: list[Any]) -> bool:
    """Nothing that the optimizer holds got a gradient, and it was made for a model of these very shapes."""
    if not held or len(idle) < len(held):
        return False
    return Counter(tuple(tensor.shape) for tensor in held) <= Counter(tuple(tensor.shape) for tensor in own)


def _in_a_living_module(tensors: Iterable[Any]) -> bool:
    """Whether any module of the process holds one of them; asked only when everything else speaks for a fault."""
    import gc

    wanted = {id(tensor) for tensor in tensors}
    for each in gc.get_objects():
        if torch.nn.Module in type(each).__mro__:
            held = instance_dict(each).get("_parameters")
            if isinstance(held, dict) and any(id(tensor) in wanted for tensor in held.values()):
                return True
    return False


def _moved_parameter(value: Any) -> Any:
    """The parameter that `value` is a moved copy of, by its autograd history; None for anything else."""
    if type(value) is not torch.Tensor or value.is_leaf or value.grad_fn is None:
        return None
    node = value.grad_fn
    for _ in range(3):
        following = [each for each, _ in node.next_functions if each is not None]
        if len(following) != 1:
            return None
        node = following[0]
        if hasattr(node, "variable"):
            return node.variable
        if "Copy" not in node.name() and "Clone" not in node.name():
            return None
    return None


def _ties(module: Any) -> list[_Tie]:
    """Pairs of different parameters that are the same values: same memory, same shape."""
    first: dict[tuple[Any, ...], tuple[str, Any]] = {}
    pairs = []
    for path, kind, tensor in tensors_of_module(module):
        if kind != "parameter" or tensor.layout is not torch.strided or tensor.numel() == 0:
            continue
        key = (storage_key(tensor), tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
        known = first.setdefault(key, (path, tensor))
        if known[1] is not tensor and key[0] is not None:
            pairs.append((known, (path, tensor)))
    return pairs


def _user_stack(depth: int) -> Iterator[UserFrame]:
    """The user's frames of this thread's stack, innermost first."""
    frame = sys._getframe(depth)
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            yield UserFrame(frame, frame.f_lineno, None)
        frame = frame.f_back  # type: ignore[assignment]


def _modules_in(stack: list[UserFrame]) -> list[Route]:
    found: list[Route] = []
    for frame in stack:
        for route in search(frame, lambda value: torch.nn.Module in type(value).__mro__):
            if not any(route.value is known.value for known in found):
                found.append(route)
    return found


def _with_children(route: Route) -> Iterator[Route]:
    yield route
    yield from (
        Route(route.frame, route.base, route.scope, (*route.steps, *_steps(route.value, path)), child)
        for path, child in torch.nn.Module.named_modules(route.value) if path
    )  # fmt: skip


def _steps(module: Any, path: str) -> list[Any]:
    from samedevice.explaining.routes import Step

    steps = []
    for name in path.split("."):
        steps.append(Step(module, "submodule", name))
        module = module._modules[name]
    return steps


def _path_in(model: Route, tensor: Any) -> str:
    found = find_inside(model, tensor)
    return found.text if found is not None else model.text


def _parameters_of(optimizer: Any) -> list[Any]:
    groups = instance_dict(optimizer).get("param_groups") or ()
    return [tensor for group in groups for tensor in group["params"]]


def _made_in_class(module: Any, paths: tuple[str, str], frame: UserFrame) -> Made | None:
    """Where the class ties the two: the later of the assignments of the two submodules."""
    from samedevice.explaining.flow import Suspect
    from samedevice.explaining.routes import Step
    from samedevice.explaining.where_made import in_source

    found = []
    for path in paths:
        step = Step(module, "submodule", path.partition(".")[0])
        route = Route(frame, "self", "local", (step,), None)
        made = in_source(Suspect(route.text, frame, None, "", route))
        found.extend([made] if made is not None else [])
    return max(found, key=lambda made: made.line, default=None)


def _location(frame: UserFrame) -> Location:
    return Location(frame.file, frame.line, frame.function, source=frame.source.line(frame.line) or None)


def _culprit(name: str, made: Made | None, device: str, tensor: Any = None) -> Culprit:
    shape = tuple(tensor.shape) if tensor is not None else None
    dtype = str(tensor.dtype) if tensor is not None else None
    line = made.line if made is not None and made.line else None
    file = made.file if made is not None and made.line else None
    return Culprit(name, file, line, device or None, shape, dtype, (made.text or None) if made is not None else None)
