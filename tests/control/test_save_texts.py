"""Reasons for documents that were not saved, as the receipt says them."""

from __future__ import annotations

import ast
import inspect

import pytest
from hubgov_lab import documents

from hubgov.control.save_texts import reason


def _said() -> list[str]:
    """Every reason that the server's extension can give, with values filled in."""
    found = list(documents._REASONS.values())
    for node in ast.walk(ast.parse(inspect.getsource(documents))):
        call = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("NotSaved", "_failed")
        for argument in node.args if call else ():  # type: ignore[attr-defined]
            if isinstance(argument, ast.Constant):
                found.append(str(argument.value))
            elif isinstance(argument, ast.JoinedStr):
                found.append(
                    "".join(
                        str(getattr(part, "value", 7)) if isinstance(part, ast.Constant) else "7"
                        for part in argument.values
                    )
                )
    return found


@pytest.mark.parametrize("text", _said())
def test_every_reason_has_chinese_words(text: str) -> None:
    assert reason(text, "en") == text
    assert any("\u4e00" <= letter <= "\u9fff" for letter in reason(text, "zh")), text


def test_values_and_what_is_unknown_stay() -> None:
    assert reason("larger than 64 MiB", "zh") == "超过 64 MiB"
    assert reason("something of a later version", "zh") == "something of a later version"
