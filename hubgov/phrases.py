"""Sentences that were built with values in English, said in another language.

Errors are raised where they are found, in English, with their values filled in. A table has the English with
`{blanks}` and its translation; a sentence that fits one is said with the same values. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_BLANK = re.compile(r"{(\w+)}")


class Phrases:
    """A table of (English, translation). A blank whose name ends in `_` holds a phrase of the table itself, or
    several, between semicolons."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        # The more of a sentence is fixed, the surer it is meant.
        rows = sorted(pairs, key=lambda pair: -len(_BLANK.sub("", pair[0])))
        self._rows = [(re.compile(_pattern(english), re.DOTALL), translated) for english, translated in rows]

    def say(self, text: str) -> str | None:
        """The translation of a sentence with its values; None for one that no row fits.

        A path and a colon may stand before it; they stay.
        """
        path, colon, rest = text.partition(": ")
        if colon and " " not in path and (said := self.say(rest)) is not None:
            return f"{path}：{said}"
        for pattern, translated in self._rows:
            if found := pattern.fullmatch(text):
                return self._filled(translated, found.groupdict())
        return None

    def _filled(self, translated: str, values: Mapping[str, str]) -> str:
        said = {name: self._inner(value) if name.endswith("_") else value for name, value in values.items()}
        return _BLANK.sub(lambda blank: said[blank[1]], translated)

    def _inner(self, value: str) -> str:
        """What a blank holds in the other language, phrase by phrase; a phrase without a row stays as it is."""
        parts = value.split("; ")
        said = [self.say(part) for part in parts]
        if len(parts) > 1 and any(said):
            return "；".join(known or part for known, part in zip(said, parts, strict=True))
        return self.say(value) or value


def _pattern(english: str) -> str:
    """A regular expression of the sentence; a blank that comes twice must hold the same both times."""
    parts = _BLANK.split(english)
    pattern, seen = re.escape(parts[0]), set()
    for name, fixed in zip(parts[1::2], parts[2::2], strict=True):
        pattern += f"(?P={name})" if name in seen else f"(?P<{name}>.+?)"
        pattern += re.escape(fixed)
        seen.add(name)
    return pattern
