"""Sentences that were built with values in English, said in another language.

Errors are raised where they are found, in English, with their values filled in. A table has the English with
`{blanks}`, the catalogue its translation; a sentence that fits a row is said with the same values. Standard library
only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cached_property

from hubgov.catalogue import LOCALES, translated
from hubgov.texts import JOINTS, joined

_BLANK = re.compile(r"{(\w+)}")


class Phrases:
    """English rows; their translations have the context `name`, and no other table has that name.

    A blank whose name ends in `_` holds a phrase of the table itself, or several, between semicolons.
    """

    def __init__(self, name: str, rows: Collection[str]) -> None:
        self.name = name
        self._english = rows

    @cached_property
    def _rows(self) -> list[tuple[re.Pattern[str], str]]:
        """Each row's pattern and English: the more of a sentence is fixed, the surer it is meant."""
        rows = sorted(self._english, key=lambda english: -len(_BLANK.sub("", english)))
        return [(re.compile(_pattern(english), re.DOTALL), english) for english in rows]

    def say(self, text: str, lang: str) -> str | None:
        """A sentence with its values in another language; None for one that no row fits, and for English.

        A path and a colon may stand before it; they stay.
        """
        if lang not in LOCALES:
            return None
        path, colon, rest = text.partition(": ")
        if colon and " " not in path and (said := self.say(rest, lang)) is not None:
            return JOINTS.pick("path", lang).format(path=path, said=said)
        for pattern, english in self._rows:
            if found := pattern.fullmatch(text):
                return self._filled(translated(self.name, english, lang), found.groupdict(), lang)
        return None

    def _filled(self, translation: str, values: Mapping[str, str], lang: str) -> str:
        said = {name: self._inner(value, lang) if name.endswith("_") else value for name, value in values.items()}
        return _BLANK.sub(lambda blank: said[blank[1]], translation)

    def _inner(self, value: str, lang: str) -> str:
        """What a blank holds in the other language, phrase by phrase; a phrase without a row stays as it is."""
        parts = value.split("; ")
        said = [self.say(part, lang) for part in parts]
        if len(parts) > 1 and any(said):
            return joined((known or part for known, part in zip(said, parts, strict=True)), lang)
        return self.say(value, lang) or value


def _pattern(english: str) -> str:
    """A regular expression of the sentence; a blank that comes twice must hold the same both times."""
    parts = _BLANK.split(english)
    pattern, seen = re.escape(parts[0]), set()
    for name, fixed in zip(parts[1::2], parts[2::2], strict=True):
        pattern += f"(?P={name})" if name in seen else f"(?P<{name}>.+?)"
        pattern += re.escape(fixed)
        seen.add(name)
    return pattern
