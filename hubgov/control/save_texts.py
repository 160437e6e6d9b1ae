"""Why a document was not saved, as the server's extension says it in English, with its values."""

from __future__ import annotations

from hubgov.phrases import Phrases

REASONS: tuple[str, ...] = (
    "disk quota exceeded",
    "no space left on the disk",
    "permission denied",
    "no such file",
    "reached through something that is not a folder, such as a symbolic link",
    "reached through a symbolic link, which is not followed",
    "the disk is read-only",
    "larger than the disk or a limit allows",
    "its name is too long",
    "its name can't be written on this disk",
    "its path leads outside of the server's folder",
    "not a regular file",
    "larger than {size} MiB",
    "all copies together would be larger than {size} MiB",
    "it kept changing while it was copied",
    "the copy reads back different from what was written",
    "more than {count} documents are open",
    "JupyterLab could not save it ({why}); the copy holds what was saved before",
    "not_saved",
)
_SAID = Phrases("control.REASONS", REASONS)


def reason(text: str, lang: str) -> str:
    """The reason in the reader's language; as it came where there are no words for it."""
    return _SAID.say(text, lang) or text
