"""PyTorch's device texts: a simulated device raises them, an explanation recognises them.

    >>> text = messages.format("rnn-hidden", input_device="cuda:0", hidden_device="cpu")
    >>> messages.recognise("RuntimeError: " + text).places
    {'input': 'cuda:0', 'hidden': 'cpu'}

The texts are data in `templates.py`, one row a wording; nothing here imports torch or decides who is at fault.
"""

from __future__ import annotations

from samedevice.messages.naming import operator_of
from samedevice.messages.recognise import Recognised, recognise
from samedevice.messages.templates import TEMPLATES

__all__ = ["Recognised", "exception_name", "format", "kinds", "operator_of", "recognise"]

# Newer than any release: the newest wording.
_NEWEST = (99, 0)


def format(kind: str, *, version: tuple[int, int] = _NEWEST, **values: object) -> str:  # noqa: A001
    """The text of a message as one version of torch words it.

    Where a kind has several wordings in one version, the values decide: the first whose places they fill exactly.

    Args:
        kind: What happened, e.g. "same-device".
        version: Major and minor version of torch; by default the newest wording known.
        values: What stands in the message's places.

    Returns:
        The text, without the exception's type.

    Raises:
        LookupError: No wording of that kind and version has exactly these places.
    """
    for template in TEMPLATES:
        if template.kind == kind and template.spoken_by(version) and set(template.names) == set(values):
            return template.fill(values)
    raise LookupError(f"no message {kind!r} with the values {sorted(values)} in torch {version[0]}.{version[1]}")


def exception_name(kind: str, *, version: tuple[int, int] = _NEWEST) -> str:
    """The name of the exception's type, e.g. "RuntimeError" or "AcceleratorError".

    Raises:
        LookupError: There is no such kind in that version.
    """
    for template in TEMPLATES:
        if template.kind == kind and template.spoken_by(version):
            return template.exception
    raise LookupError(f"no message {kind!r} in torch {version[0]}.{version[1]}")


def kinds() -> tuple[str, ...]:
    """The stable names of all messages."""
    return tuple(dict.fromkeys(template.kind for template in TEMPLATES))
