"""A second model beside the trained one, and copies of its weights: told by their name, unless the source denies it."""

from __future__ import annotations

import ast
import itertools

from samedevice.explaining.diagnosing.evidence import Evidence
from samedevice.explaining.live import device_of, is_parameter
from samedevice.explaining.making import factory_call, from_data
from samedevice.explaining.syntax import call_name
from samedevice.explaining.words import words_of

__all__ = ["is_called_second", "is_copied", "keeps_weights"]

_AVERAGED = frozenset({"ema", "shadow", "teacher", "average", "averaged", "slow"})
_TARGET = frozenset({"net", "network", "model", "critic", "policy", "q", "params", "weights"})
_MODELS = _AVERAGED | frozenset(
    {"teachers", "target", "targets", "momentum", "discriminator", "discriminators", "critic", "critics", "d", "frozen"}
)
_WEIGHTS = ("parameters", "named_parameters", "buffers", "named_buffers", "state_dict")


def is_called_second(name: str) -> bool:
    """Whether what holds modules is called like other models than the trained one: "teachers", "ref_model"."""
    words = words_of(name)
    reference = {"ref", "reference"} & set(words) and {"model", "models", "net", "network"} & set(words)
    return bool(reference) or bool(_MODELS & set(words) - {"d"}) or words[-1:] == ["d"]


def keeps_weights(evidence: Evidence, *names: str) -> bool:
    """Whether the tensor is called like averaged or target weights, and no line says that it is anything else.

    Args:
        evidence: what was read.
        names: of the variable, the attribute or the class that holds it.
    """
    return any(map(_says_copies, names)) and not _is_of_no_model(evidence)


def _says_copies(name: str) -> bool:
    words = words_of(name)
    if _AVERAGED & set(words):
        return True
    return any(word == "target" and following in _TARGET for word, following in itertools.pairwise(words))


def is_copied(evidence: Evidence) -> bool:
    """Whether it is recorded as the copy of a parameter that is where the work is done."""
    if evidence.origins is None or evidence.made is None or evidence.made.event != "copied":
        return False
    source = evidence.origins.source_of(evidence.value)
    return source is not None and is_parameter(source) and device_of(source) == evidence.expected


def _is_of_no_model(evidence: Evidence) -> bool:
    """Whether the line that made it makes new values, or reads them from a file, and names no model's weights."""
    made = evidence.made
    if made is None or made.statement is None:
        return False
    if any(isinstance(node, ast.Call) and call_name(node) in _WEIGHTS for node in ast.walk(made.statement)):
        return False
    fresh = factory_call(made.statement, made.source) or from_data(made.statement, made.source)
    return fresh is not None and made.event in ("", "made")
