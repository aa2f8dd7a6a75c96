"""The language server, as an editor sees it: a real client over the pipes of `samedevice lsp`."""

import asyncio
import sys
import time

import pytest

pytest.importorskip("pygls")

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from samedevice.linting.lint import lint_source

BUG = 'import torch\nx = torch.zeros(3, device="cuda")\ny = ("名😀", x.numpy())\n'
MENDED = BUG.replace("x.numpy()", "x.cpu().numpy()")


class Editor:
    """A client that keeps what the server publishes."""

    def __init__(self):
        self.client = LanguageClient("editor", "1")
        self.published = asyncio.Queue()
        self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self.published.put_nowait(params))
        self.client.feature(types.WINDOW_LOG_MESSAGE)(lambda params: None)

    async def __aenter__(self):
        await self.client.start_io(sys.executable, "-m", "samedevice", "lsp")
        await self.client.initialize_async(
            types.InitializeParams(capabilities=types.ClientCapabilities(), root_uri=None, process_id=None)
        )
        self.client.initialized(types.InitializedParams())
        return self

    async def __aexit__(self, *raised):
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await asyncio.wait_for(self.client.stop(), 20)

    async def open(self, uri, text):
        item = types.TextDocumentItem(uri=uri, language_id="python", version=1, text=text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return await self.diagnostics()

    async def change(self, uri, text, version):
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(uri=uri, version=version),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    async def diagnostics(self):
        return await asyncio.wait_for(self.published.get(), 20)

    async def actions(self, uri, at):
        return await self.client.text_document_code_action_async(
            types.CodeActionParams(types.TextDocumentIdentifier(uri), at, types.CodeActionContext(diagnostics=[]))
        )

    async def hover(self, uri, position):
        return await self.client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(uri), position)
        )


def edited(text, edits):
    """`text` after an editor made the edits, which are in UTF-16 units."""
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda each: (each.range.start.line, each.range.start.character), reverse=True):
        start, end = edit.range.start, edit.range.end
        before = lines[start.line].encode("utf-16-le")[: 2 * start.character].decode("utf-16-le")
        after = lines[end.line].encode("utf-16-le")[2 * end.character :].decode("utf-16-le")
        lines[start.line : end.line + 1] = (before + edit.new_text + after).split("\n")
    return "\n".join(lines)


async def session(tmp_path):
    file = tmp_path / "a.py"
    file.write_text(BUG, encoding="utf-8")
    uri = file.as_uri()
    async with Editor() as editor:
        (diagnostic,) = (await editor.open(uri, BUG)).diagnostics
        assert (diagnostic.code, diagnostic.source) == ("SD112", "samedevice")
        assert diagnostic.severity is types.DiagnosticSeverity.Error
        assert diagnostic.message == "`x` is on cuda; numpy needs it on the CPU"
        # Two of the characters before it take three UTF-16 units.
        assert diagnostic.range == types.Range(types.Position(2, 12), types.Position(2, 21))

        mend, silence = await editor.actions(uri, diagnostic.range)
        assert (mend.title, mend.kind, mend.is_preferred) == ("SD112: x.cpu()", "quickfix", True)
        assert edited(BUG, mend.edit.changes[uri]) == MENDED
        assert silence.title == "SD112: silence here"
        assert lint_source(edited(BUG, silence.edit.changes[uri])) == ()
        assert not await editor.actions(uri, types.Range(types.Position(0, 0), types.Position(0, 3)))

        hover = await editor.hover(uri, types.Position(2, 14))
        assert hover.contents.kind is types.MarkupKind.Markdown
        for part in ("**SD112 numpy-on-cuda**", "```python", "Right:"):
            assert part in hover.contents.value
        assert await editor.hover(uri, types.Position(0, 1)) is None

        started = time.monotonic()
        for version in range(2, 12):  # keystrokes: one answer for all of them
            await editor.change(uri, BUG + "#" * version, version)
        await editor.change(uri, MENDED, 12)
        published = await editor.diagnostics()
        assert (list(published.diagnostics), published.version) == ([], 12)
        assert time.monotonic() - started < 15

        await editor.change(uri, "import torch\nx = (", 13)  # between two keystrokes
        assert not (await editor.diagnostics()).diagnostics
        (tmp_path / "pyproject.toml").write_text('[tool.samedevice]\nignore = ["SD112"]\n')
        await editor.change(uri, BUG, 14)
        assert not (await editor.diagnostics()).diagnostics
        editor.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
        assert not (await editor.diagnostics()).diagnostics


def test_an_editing_session(tmp_path):
    asyncio.run(session(tmp_path))
