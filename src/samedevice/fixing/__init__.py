"""Making the edits that findings propose: in texts and files (`files`), in a program until it runs clean (`script`).

A file is written by a temporary file and a rename, and only with a text that parses. An edit stays only where the
linter or a run has seen that it helps.
"""

from samedevice.fixing.edits import Change, apply_edits
from samedevice.fixing.files import fix_files, fix_text, fixed_bytes, proposed_changes
from samedevice.fixing.made import Made
from samedevice.fixing.script import FixOptions, FixResult, fix_script

__all__ = [
    "Change",
    "FixOptions",
    "FixResult",
    "Made",
    "apply_edits",
    "fix_files",
    "fix_script",
    "fix_text",
    "fixed_bytes",
    "proposed_changes",
]
