"""PyTorch's device texts, word for word, in every version's wording that is known.

Data only. One row a wording, rows of one kind newest first. A version stands where it is known from the texts inside
the wheels or from a report; a row without one is spoken by all versions. Sources name PyTorch's own files.
"""

from __future__ import annotations

from samedevice.messages.library_texts import LIBRARY_TEXTS
from samedevice.messages.older_texts import OLDER_TEXTS
from samedevice.messages.operator_texts import OPERATOR_TEXTS
from samedevice.messages.runtime_texts import RUNTIME_TEXTS
from samedevice.messages.template import Template

__all__ = ["TEMPLATES"]

TEMPLATES: tuple[Template, ...] = (*OPERATOR_TEXTS, *RUNTIME_TEXTS, *LIBRARY_TEXTS, *OLDER_TEXTS)
