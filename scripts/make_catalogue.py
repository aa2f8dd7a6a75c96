"""Bring the catalogues of translations up to date with the sentences of the source, and compile them.

    python scripts/make_catalogue.py

Reads every `say(…)` and `say_number(…)` under src/, adds new sentences to each `samedevice.po`, takes away those that
are gone, and writes the `samedevice.mo` beside it, which is what the package reads. A changed sentence is a new one: it
never inherits a guess. What lacks a translation is printed, and the exit status is then 1.
"""

from __future__ import annotations

import ast
import io
import string
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "samedevice"
FUNCTIONS = {"say": 1, "say_number": 2}
"""The functions that sentences are arguments of, and how many of their first arguments are sentences."""


@dataclass(frozen=True, slots=True)
class Message:
    """One call: its sentences (one, or one for 1 and one for other numbers), and the names of its values."""

    file: str
    line: int
    sentences: tuple[str, ...]
    values: frozenset[str]


class NotLiteral(Exception):
    """A sentence that is no literal, such as an f-string: it could not be looked up."""


def main() -> int:
    """Update and compile every catalogue; 1 where a translation is missing."""
    template, missing = catalogue_of(all_messages()), 0
    for file in sorted(SOURCE.glob("locale/*/LC_MESSAGES/samedevice.po")):
        catalogue = read(file)
        update(catalogue, template)
        file.write_bytes(written(catalogue))
        file.with_suffix(".mo").write_bytes(compiled(catalogue))
        for entry in untranslated(catalogue):
            missing += 1
            print(f"{file.relative_to(ROOT)}: no translation of {entry!r}")
        print(f"{file.relative_to(ROOT)}: {len(catalogue)} sentences, {missing} without a translation")
    return 1 if missing else 0


def all_messages() -> list[Message]:
    """Every sentence of the package, in the order of files and lines."""
    files = sorted(SOURCE.rglob("*.py"))
    return [
        m for file in files for m in messages_in(file.read_text(encoding="utf-8"), file.relative_to(SOURCE).as_posix())
    ]


def messages_in(text: str, file: str) -> Iterator[Message]:
    """The sentences of one file.

    Raises:
        NotLiteral: one is put together instead of written out.
    """
    for node in ast.walk(ast.parse(text)):
        name = _called(node)
        if isinstance(node, ast.Call) and name in FUNCTIONS:
            yield Message(file, node.lineno, _sentences(node, FUNCTIONS[name], file), _values(node))


def placeholders(sentence: str) -> frozenset[str]:
    """The names in braces, each with its conversion and format: "{name!r}" gives "name!r"."""
    fields = string.Formatter().parse(sentence)
    return frozenset(
        f"{name}{f'!{conversion}' if conversion else ''}{f':{form}' if form else ''}"
        for _, name, form, conversion in fields
        if name is not None
    )


def names(sentence: str) -> frozenset[str]:
    """The names in braces alone."""
    return frozenset(name for _, name, _, _ in string.Formatter().parse(sentence) if name is not None)


def catalogue_of(messages: list[Message]) -> Catalog:
    """A catalogue with every sentence and no translation."""
    template = Catalog()
    for message in messages:
        key = message.sentences if len(message.sentences) > 1 else message.sentences[0]
        template.add(key, locations=[(message.file, 0)])
    return template


def read(file: Path) -> Catalog:
    """A catalogue as it stands in its file."""
    return read_po(io.BytesIO(file.read_bytes()), locale=file.parts[-3])


def update(catalogue: Catalog, template: Catalog) -> None:
    """Give `catalogue` the sentences of `template`, without guesses and without what is gone."""
    catalogue.update(template, no_fuzzy_matching=True, update_header_comment=False, update_creation_date=False)
    catalogue.obsolete.clear()


def untranslated(catalogue: Catalog) -> list[str | tuple[str, ...]]:
    """The sentences whose translation is empty or only a guess."""
    return [entry.id for entry in catalogue if entry.id and (entry.fuzzy or not _all(entry.string))]


def written(catalogue: Catalog) -> bytes:
    """The text form, sorted by file so that a translator has together what belongs together."""
    buffer = io.BytesIO()
    write_po(buffer, catalogue, width=110, sort_by_file=True, include_lineno=False)
    return buffer.getvalue()


def compiled(catalogue: Catalog) -> bytes:
    """The form that `gettext` reads."""
    buffer = io.BytesIO()
    write_mo(buffer, catalogue)
    return buffer.getvalue()


def _called(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def _sentences(call: ast.Call, count: int, file: str) -> tuple[str, ...]:
    first = call.args[:count]
    if len(first) < count or not all(isinstance(node, ast.Constant) and isinstance(node.value, str) for node in first):
        raise NotLiteral(f"{file}:{call.lineno}: a sentence must be a literal: {ast.unparse(call)}")
    return tuple(node.value for node in first if isinstance(node, ast.Constant))


def _values(call: ast.Call) -> frozenset[str]:
    number = {"number"} if _called(call) == "say_number" else set()
    return frozenset({keyword.arg or "**" for keyword in call.keywords} | number)


def _all(string_: str | tuple[str, ...] | list[str]) -> bool:
    return bool(string_) if isinstance(string_, str) else bool(string_) and all(string_)


if __name__ == "__main__":
    sys.exit(main())
