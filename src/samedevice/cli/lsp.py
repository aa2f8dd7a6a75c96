"""`samedevice lsp`: the linter for editors, over standard input and output."""

from __future__ import annotations

import importlib.util

from samedevice.cli.arguments import Parser
from samedevice.errors import UsageError
from samedevice.texts import say

__all__ = ["main"]

_EXAMPLES = say(
    """\
  samedevice lsp        what an editor starts; it speaks the Language Server Protocol on standard input and output

Neovim:  vim.lsp.config.samedevice = {{ cmd = {{ "samedevice", "lsp" }}, filetypes = {{ "python" }} }}
         vim.lsp.enable("samedevice")
Helix:   [language-server.samedevice]
         command = "samedevice"
         args = ["lsp"]"""
)


def main(argv: list[str]) -> int:
    """Serve until the editor ends it; see `samedevice lsp --help`."""
    Parser("lsp", say("Diagnostics, quick fixes and explanations while a file is edited."), _EXAMPLES).parse_args(argv)
    if importlib.util.find_spec("pygls") is None:
        raise UsageError(say("pygls is not installed; `pip install 'samedevice[lsp]'` brings it"))
    from samedevice.linting.language_server import make_server

    make_server().start_io()
    return 0
