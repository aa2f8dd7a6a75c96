"""The sentences that people read, in English or in the reader's language, from one catalogue (gettext).

`say("{name} is on {device}", name=…, device=…)` gives a `Text`: a `str` that *is* the English sentence and remembers
how it was made. Whatever stores or compares it (JSON, SARIF, tests, `==`) has English; what is for a person goes
through `shown`, which looks the sentence up with its placeholders, as a whole: every language keeps its word order.

Nothing here decides what is said or where it is printed. Never translated: PyTorch's own messages, names of exceptions,
code, devices, codes and slugs of causes. `gettext` is imported when the first sentence is shown in another language
than English.
"""

from __future__ import annotations

import functools
import os
import sys

TYPE_CHECKING = False  # as type checkers know it: every command starts with this module, and few need typing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from gettext import GNUTranslations
    from typing import Any, TypeAlias

__all__ = [
    "Text",
    "language",
    "listed",
    "packed",
    "say",
    "say_number",
    "shown",
    "unpacked",
    "with_parts",
    "with_values",
]

ENGLISH = "en"
SIMPLIFIED_CHINESE = "zh_CN"
_VARIABLES = ("SAMEDEVICE_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
"""Where a language is asked for; the first that is set counts. The last three are POSIX's, in its order."""
_CHARACTERS = {ENGLISH: "", SIMPLIFIED_CHINESE: "张量：设备…"}
"""Some that a console must have for a language; English does without those that are missing."""
_SIMPLIFIED = ("zh", "zh_cn", "zh_sg", "zh_my", "zh_hans")

Value: TypeAlias = str | int | float


class Text(str):
    """An English sentence that can be shown in other languages. Made by `say` and `say_number`."""

    __slots__ = ("many", "number", "template", "values")

    template: str
    many: str | None
    """The template for other numbers than 1, where there is a number."""
    number: int
    values: dict[str, Value]

    def __reduce__(self) -> tuple[object, ...]:
        return _text, (self.template, self.many, self.number, self.values)


def say(template: str, /, **values: Value) -> Text:
    """A sentence for a person.

        say("{name} is on {device}", name="self.pe", device="cpu")

    Args:
        template: a whole sentence in English, as a literal, so that `scripts/make_catalogue.py` finds it.
            Placeholders are those of `str.format`, by name.
        values: what stands at the placeholders; a `Text` among them is translated in its turn.

    Returns:
        The English sentence, which `shown` can translate.
    """
    return _text(template, None, 1, values)


def say_number(one: str, many: str, number: int, /, **values: Value) -> Text:
    """A sentence that depends on a number.

        say_number("{number} file", "{number} files", len(files))

    Args:
        one: the sentence for 1.
        many: the sentence for every other number.
        number: which stands at `{number}`, where that is in the sentence.
        values: as for `say`.

    Returns:
        The English sentence, which `shown` can translate with that language's own plurals.
    """
    return _text(one, many, number, {"number": number, **values})


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Names for a sentence: "a", "a and b", "a, b, c and 4 more".

    Args:
        names: in the order in which they are named.
        most: how many are named; all of them where it is left out.
    """
    named = names if most is None else names[:most]
    if len(named) < len(names):
        return say("{names} and {number} more", names=", ".join(named), number=len(names) - len(named))
    if len(named) > 1:
        return say("{names} and {last}", names=", ".join(named[:-1]), last=named[-1])
    return "".join(named)


def shown(text: str) -> str:
    """`text` as the reader is to see it.

    Args:
        text: a sentence of `say`; any other string, such as a line of code, stays as it is.

    Returns:
        A plain string: in the reader's language where the catalogue has the sentence, else in English.
    """
    if not isinstance(text, Text):
        return text
    catalogue = _catalogue(language())
    if catalogue is None:
        return str(text)
    try:
        return _translated(text, catalogue)
    except Exception:  # a damaged entry must not take the sentence away
        return str(text)


def with_values(text: str, **values: Value) -> str:
    """`text` with other values at some of its placeholders; any string that is no sentence comes back as it is."""
    if not isinstance(text, Text):
        return text
    return _text(text.template, text.many, text.number, {**text.values, **values})


def with_parts(text: str, change: Callable[[Text], Text]) -> str:
    """`text` with each sentence inside it changed.

    Args:
        text: a sentence of `say`; any other string comes back as it is.
        change: gets every `Text` among the values, the innermost first, and gives what is to stand there.
    """
    if not isinstance(text, Text):
        return text
    values = {name: change(_with(v, change)) if isinstance(v, Text) else v for name, v in text.values.items()}
    return _text(text.template, text.many, text.number, values)


def packed(text: str) -> Any:
    """`text` as JSON can hold it, with what a translation needs; `unpacked` gives it back."""
    if not isinstance(text, Text):
        return text
    values = {name: packed(value) if isinstance(value, str) else value for name, value in text.values.items()}
    return [text.template, text.many, text.number, values]


def unpacked(data: Any) -> str:
    """What `packed` was given.

    Raises:
        ValueError, TypeError, LookupError: `data` is nothing of `packed`.
    """
    if isinstance(data, str):
        return data
    template, many, number, values = data
    return _text(template, many, number, {name: _value(value) for name, value in values.items()})


def language() -> str:
    """The reader's language: "en" or "zh_CN", as the environment asks for it and the console can show it."""
    asked = next((value for name in _VARIABLES if (value := os.environ.get(name))), None)
    found = _known(_of_windows() if asked is None else asked)
    return found if all(_can_show(found, encoding) for encoding in _encodings()) else ENGLISH


def _text(template: str, many: str | None, number: int, values: dict[str, Value]) -> Text:
    text = Text(_form(template, many, number).format_map(values))
    text.template, text.many, text.number, text.values = template, many, number, values
    return text


def _with(text: Text, change: Callable[[Text], Text]) -> Text:
    changed = with_parts(text, change)
    assert isinstance(changed, Text)  # as `text` is one
    return changed


def _value(data: Any) -> Value:
    return unpacked(data) if isinstance(data, str | list) else data


def _form(template: str, many: str | None, number: int) -> str:
    return template if many is None or number == 1 else many


def _translated(text: Text, catalogue: GNUTranslations) -> str:
    if text.many is None:
        template = catalogue.gettext(text.template)
    else:
        template = catalogue.ngettext(text.template, text.many, text.number)
    return template.format_map({name: shown(v) if isinstance(v, str) else v for name, v in text.values.items()})


@functools.cache
def _of_windows() -> str:
    """The language that Windows shows itself in: none of the variables is usually set there; "" on other systems.

    Source: Microsoft's documentation of `GetUserDefaultUILanguage`.
    """
    if sys.platform != "win32":
        return ""
    import ctypes
    import locale

    return locale.windows_locale.get(ctypes.windll.kernel32.GetUserDefaultUILanguage(), "")


@functools.cache
def _known(asked: str) -> str:
    """The language of a locale's name, e.g. "zh_CN.UTF-8"; English for what has no catalogue."""
    name = asked.partition(".")[0].partition("@")[0].replace("-", "_").lower()
    return SIMPLIFIED_CHINESE if name in _SIMPLIFIED or name.startswith("zh_hans_") else ENGLISH


def _encodings() -> list[str]:
    """Those of the process's own streams; what a program put in their place is not asked."""
    return [stream.encoding for stream in (sys.__stdout__, sys.__stderr__) if stream is not None and stream.encoding]


@functools.cache
def _can_show(wanted: str, encoding: str) -> bool:
    try:
        _CHARACTERS[wanted].encode(encoding)
    except (UnicodeError, LookupError):
        return False
    return True


@functools.cache
def _catalogue(wanted: str) -> GNUTranslations | None:
    if wanted == ENGLISH:
        return None
    import gettext
    import io
    import pkgutil

    try:
        data = pkgutil.get_data("samedevice", f"locale/{wanted}/LC_MESSAGES/samedevice.mo")  # also from a zip file
        return None if data is None else gettext.GNUTranslations(io.BytesIO(data))
    except Exception:  # missing, cut short, damaged: English is always there
        return None
