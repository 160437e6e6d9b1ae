"""Where the other language of a text is: the sources have the English, a compiled catalogue has the Chinese.

A text is looked up by its context (its table, and its key where it has one) and by its English, so that a
translation never stands for an English that has changed since. Standard library only; the catalogue is read once,
when the first text in its language is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gettext import NullTranslations

DOMAIN = "hubgov"
LOCALES: Mapping[str, str] = {"zh": "zh_CN"}
"""The languages beside English, each with the name of its folder."""
FOLDER = Path(__file__).parent / "locale"


class Texts(Mapping[str, str]):
    """English texts by key. Their translations have the context `NAME.key`; no two tables share a name."""

    __slots__ = ("_english", "name")

    def __init__(self, name: str, english: Mapping[str, str]) -> None:
        self.name = name
        self._english = english

    def __getitem__(self, key: str) -> str:
        return self._english[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._english)

    def __len__(self) -> int:
        return len(self._english)

    def pick(self, key: str, lang: str) -> str:
        """The text of a key in a language; English for one we don't have. KeyError for a key it hasn't got."""
        english = self._english[key]
        return translated(f"{self.name}.{key}", english, lang) if lang in LOCALES else english


def translated(context: str, english: str, lang: str) -> str:
    """A text of a context in a language; the English itself where there is no translation."""
    # An empty text is none; the catalogue has its own head under it.
    return _catalogue(LOCALES[lang]).pgettext(context, english) if english and lang in LOCALES else english


@cache
def _catalogue(locale: str) -> NullTranslations:
    """The catalogue of a language. What is missing in it, or all of it, is English, and the log says so once."""
    import gettext
    import struct

    path = FOLDER / locale / "LC_MESSAGES" / f"{DOMAIN}.mo"
    try:
        with path.open("rb") as file:
            found = gettext.GNUTranslations(file)
    except (OSError, ValueError, LookupError, struct.error) as error:
        _warn("event=catalogue_unreadable locale=%s error=%r hint=deploy/texts_compile", locale, str(error))
        return gettext.NullTranslations()
    found.add_fallback(_untranslated(locale))
    return found


def _untranslated(locale: str) -> NullTranslations:
    """What stands behind a catalogue: English, said to the log when it is asked for the first time."""
    import gettext

    class Untranslated(gettext.NullTranslations):
        told = False

        def pgettext(self, context: str, message: str) -> str:
            if not self.told:
                self.told = True
                _warn("event=catalogue_outdated locale=%s context=%r", locale, context)
            return message

    return Untranslated()


def _warn(message: str, *values: object) -> None:
    import logging

    logging.getLogger("hubgov").warning(message, *values)
