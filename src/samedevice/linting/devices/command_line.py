"""What `argparse` gives a program: the defaults of its options, which often name a device."""

from __future__ import annotations

import ast

from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.sequences import sequence
from samedevice.linting.devices.values import UNKNOWN, Constant, Instance, Value

__all__ = ["Parser", "made", "method"]


def made(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`argparse.ArgumentParser(…)`."""
    return Parser({})


class Parser(Value):
    """An argparse.ArgumentParser: the defaults that tell a device or its index."""

    __slots__ = ("defaults",)

    def __init__(self, defaults: dict[str, Value]) -> None:
        self.defaults = defaults


def method(machine: Machine, parser: Parser, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """`parser.add_argument` and `parser.parse_args`."""
    if name == "add_argument":
        _add_argument(parser, arguments)
    elif name in ("parse_args", "parse_known_args"):
        made = Instance(None, dict(parser.defaults), open=True)
        return made if name == "parse_args" else sequence([made, UNKNOWN], mutable=False)
    elif name in ("add_argument_group", "add_mutually_exclusive_group"):
        return parser
    return UNKNOWN


def _add_argument(parser: Parser, arguments: Arguments) -> None:
    names = [
        value.value for value in arguments.positional if isinstance(value, Constant) and isinstance(value.value, str)
    ]
    destination = arguments.keywords.get("dest")
    if isinstance(destination, Constant) and isinstance(destination.value, str):
        name = destination.value
    elif names:
        name = max(names, key=lambda text: text.startswith("--")).lstrip("-").replace("-", "_")
    else:
        return
    default = arguments.keywords.get("default")
    if default is not None and "action" not in arguments.keywords:
        parser.defaults[name] = default
