"""What can be wrong with a submitted form, or with options from REST: a row a message and hint."""

from __future__ import annotations

from hubgov.phrases import Phrases

MESSAGES: tuple[str, ...] = (
    "options must be an object",
    "has {length} characters",
    "has an invisible character ({name})",
    "has a blank at an end ({name})",
    "the user name {wrong_}; hubgov takes at most {most} visible characters with no blank at either end",
    "unknown option {name}",
    "field {name} must be there once, as text",
    "no profile {name}",
    "no profile is set up",
    "{value} is no name of 1 to {most} visible characters",
    "{value} is not a whole number from {least} to {most}",
    "{value} is not a number of GPUs from 0 to {most}",
    "{value} is not a time from 1 s to ten years",
    "{value} is not a memory size; write it as {example}",
    "{value} is larger than 1PiB",
)

HINTS: tuple[str, ...] = (
    "known options: {names}",
    "an administrator can rename the user in the hub; the home stays",
    "profiles: {names}",
    "add one to the policy's spawn profiles",
    "send the form as this page shows it",
    "write it without blanks around it",
    "write it in digits, such as {example}",
    "write 1, or 0.25 for a quarter of a card",
    "write seconds, or a text such as 4h or 1h30m",
    "such as 20GiB",
)

_MESSAGES, _HINTS = Phrases("spawner.MESSAGES", MESSAGES), Phrases("spawner.HINTS", HINTS)


def told(message: str, hint: str, lang: str) -> tuple[str, str]:
    """(message, hint) of a mistake in a language; as they were raised where there are no words for them."""
    return _MESSAGES.say(message, lang) or message, _HINTS.say(hint, lang) or hint
