"""The linter as a language server: diagnostics while a file is edited, quick fixes, and the catalogue on hovering.

The protocol is pygls's; what is found, where and how it is mended is the linter's, as values. Nothing is written: an
editor makes the edits that it is offered. Text that is no Python, as it is between two keystrokes, is left to the
editor's own tools.

Source: Language Server Protocol 3.17, "Text Documents" and "Language Features"; pygls 2.0 to 2.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

import samedevice
from samedevice.causes.catalogue import by_code
from samedevice.config import Config, load
from samedevice.errors import UsageError
from samedevice.findings import Edit, Finding, Location
from samedevice.linting.lint import lint_source
from samedevice.linting.source import SourceError, lines_of, mentions_torch
from samedevice.reports.wording import mend
from samedevice.texts import say, shown

__all__ = ["make_server"]

_PAUSE = 0.2
"""Seconds without a keystroke before a file is looked at again."""
_NAME = "samedevice"


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was found in one state of a document."""

    text: str
    findings: tuple[Finding, ...] = ()


class _Server(LanguageServer):
    """A pygls server that remembers what it has published."""

    def __init__(self) -> None:
        super().__init__(_NAME, f"v{samedevice.__version__}")
        self.seen: dict[str, _Seen] = {}

    def current(self, uri: str) -> _Seen:
        """What was found in the document as it is now."""
        text = self.workspace.get_text_document(uri).source
        seen = self.seen.get(uri)
        if seen is None or seen.text != text:
            seen = self.seen[uri] = _Seen(text, self._found(uri, text))
        return seen

    def publish(self, uri: str) -> None:
        """Send the editor what was found."""
        document = self.workspace.get_text_document(uri)
        found = [_diagnostic(finding, document) for finding in self.current(uri).findings if finding.location]
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=found, version=document.version)
        )

    def _found(self, uri: str, text: str) -> tuple[Finding, ...]:
        if not mentions_torch(text.encode(errors="replace")):
            return ()
        name = uris.to_fs_path(uri) or uri
        try:
            return lint_source(text, name, config=self._config(name))
        except SourceError:
            return ()
        except Exception as error:  # a fault of the linter itself must not end the server
            self._say(f"the linter failed in {name} ({type(error).__name__}: {error}); please report it")
            return ()

    def _config(self, name: str) -> Config:
        try:
            return load(name)
        except UsageError as error:
            self._say(str(error))
            return Config()

    def _say(self, text: str) -> None:
        self.window_log_message(types.LogMessageParams(type=types.MessageType.Error, message=text))


def make_server() -> LanguageServer:
    """A server that is ready to be started, e.g. by `.start_io()`."""
    server = _Server()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        server.publish(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        server.seen.pop(params.text_document.uri, None)  # the settings may have changed, or what the file imports
        server.publish(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        await asyncio.sleep(_PAUSE)
        if server.workspace.get_text_document(uri).version == version:
            server.publish(uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.seen.pop(uri, None)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=[]))

    kinds = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)
    def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        document = server.workspace.get_text_document(params.text_document.uri)
        findings = _touching(server.current(document.uri).findings, document, params.range)
        return [action for finding in findings for action in _actions(finding, document)]

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = server.workspace.get_text_document(params.text_document.uri)
        at = types.Range(params.position, params.position)
        finding = next(_touching(server.current(document.uri).findings, document, at), None)
        if finding is None:
            return None
        text = types.MarkupContent(types.MarkupKind.Markdown, _explained(finding))
        return types.Hover(text, _range(finding.location, document) if finding.location else None)

    return server


def _touching(findings: Sequence[Finding], document: TextDocument, asked: types.Range) -> Iterator[Finding]:
    """The findings whose place overlaps a range, or meets it."""
    for finding in findings:
        if finding.location:
            place = _range(finding.location, document)
            if place.start <= asked.end and asked.start <= place.end:
                yield finding


def _diagnostic(finding: Finding, document: TextDocument) -> types.Diagnostic:
    assert finding.location is not None
    error = finding.severity == "error"
    return types.Diagnostic(
        range=_range(finding.location, document),
        message=shown(finding.message),
        severity=types.DiagnosticSeverity.Error if error else types.DiagnosticSeverity.Warning,
        code=finding.code,
        source=_NAME,
    )


def _range(location: Location, document: TextDocument) -> types.Range:
    lines = lines_of(document.source)
    end = location.end_line or location.line
    return types.Range(
        _position(lines, location.line, (location.column or 1) - 1, document),
        _position(lines, end, (location.end_column or 1) - 1, document),
    )


def _position(lines: Sequence[str], line: int, characters: int, document: TextDocument) -> types.Position:
    """Line and column as the editor counts: lines from 0, columns in the units agreed on, UTF-16 by default."""
    before = lines[line - 1][:characters] if line <= len(lines) else ""
    return types.Position(line - 1, document.position_codec.client_num_units(before))


def _actions(finding: Finding, document: TextDocument) -> Iterator[types.CodeAction]:
    diagnostic = _diagnostic(finding, document)
    lines = lines_of(document.source)
    fix = finding.fix
    if fix and fix.edits and all(_fits(edit, lines) for edit in fix.edits):
        edits = [_text_edit(edit, lines, document) for edit in fix.edits]
        yield _action(f"{finding.code}: {shown(mend(fix))}", edits, diagnostic, document, preferred=fix.safe)
    if finding.location and finding.cause != "unused-silencing":
        line = finding.location.line
        end = _position(lines, line, len(lines[line - 1]), document)
        comment = types.TextEdit(types.Range(end, end), f"  # samedevice: ignore[{finding.cause}]")
        if not lines[line - 1].endswith("\\") and "#" not in lines[line - 1]:
            title = shown(say("{code}: silence here", code=finding.code))
            yield _action(title, [comment], diagnostic, document, preferred=False)


def _action(
    title: str,
    edits: Sequence[types.TextEdit],
    diagnostic: types.Diagnostic,
    document: TextDocument,
    *,
    preferred: bool,
) -> types.CodeAction:
    return types.CodeAction(
        title=title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        is_preferred=preferred,
        edit=types.WorkspaceEdit(changes={document.uri: list(edits)}),
    )


def _fits(edit: Edit, lines: Sequence[str]) -> bool:
    return "\n".join(lines[edit.line - 1 : edit.end_line]) == edit.old


def _text_edit(edit: Edit, lines: Sequence[str], document: TextDocument) -> types.TextEdit:
    start = types.Position(edit.line - 1, 0)
    if not edit.new:
        return types.TextEdit(types.Range(start, types.Position(edit.end_line, 0)), "")
    return types.TextEdit(
        types.Range(start, _position(lines, edit.end_line, len(lines[edit.end_line - 1]), document)), edit.new
    )


def _explained(finding: Finding) -> str:
    """The finding with its cause's page, as Markdown."""
    cause = by_code(finding.code)
    parts = [f"**{cause.code} {cause.slug}**: {shown(finding.message)}", shown(cause.summary), shown(cause.why)]
    if cause.examples:
        example = cause.examples[0]
        parts += [
            f"{shown(say('Wrong'))}:\n```python\n{example.wrong.strip()}\n```",
            f"{shown(say('Right'))}:\n```python\n{example.right.strip()}\n```",
        ]
    return "\n\n".join([*parts, f"{shown(say('How safe the fix is'))}: {shown(cause.fix_safety)}"])
