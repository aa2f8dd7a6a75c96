"""The tests read English, whatever the language of the machine; those about languages ask for another."""

import os

os.environ["SAMEDEVICE_LANG"] = "en"
