"""The tests read English, whatever the language of the machine; those about languages ask for another."""

import importlib.util
import os
from pathlib import Path

from hypothesis import settings

os.environ["SAMEDEVICE_LANG"] = "en"

# No test hangs on how fast the machine is.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Before any test imports what imports torchvision: tests/programs/torchvision_operators.py says why.
_spec = importlib.util.spec_from_file_location(
    "torchvision_operators", Path(__file__).with_name("programs") / "torchvision_operators.py"
)
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
_module.define()
