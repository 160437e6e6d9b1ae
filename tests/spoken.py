"""Finds in the sources the sentences that people read, with something in place of each value."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from hubgov.phrases import Phrases

_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def calls(folder: Path, names: Collection[str]) -> Iterator[ast.Call]:
    """Every call of a function or class of one of these names in the modules of a folder."""
    for path in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", "") or getattr(node.func, "attr", "")
                if name in names and (node.args or node.keywords):
                    yield node


def sentences(node: ast.expr) -> Iterator[str]:
    """The texts that an expression may be, `X1`, `X2`, … for what is filled in; none for a mere name."""
    match node:
        case ast.Constant(value=str(text)) if text:
            yield text
        case ast.JoinedStr(values=parts):
            numbers = iter(range(1, 100))
            yield "".join(str(p.value) if isinstance(p, ast.Constant) else f"X{next(numbers)}" for p in parts)
        case ast.IfExp(body=first, orelse=second):
            yield from sentences(first)
            yield from sentences(second)
        case ast.BoolOp(values=parts):
            for part in parts:
                yield from sentences(part)
        case ast.BinOp(left=left, op=ast.Add()):
            yield from (text + "X9" for text in sentences(left))


def spoken(text: str) -> bool:
    """Whether a text is one to say in another language, not an example or a command."""
    return bool(re.search(r"[a-z]{2,} [a-z]{2,}", text)) and not text.startswith("hubgov ")


def blanks(text: str) -> list[str]:
    """The names of its blanks."""
    return sorted(set(re.findall(r"{(\w+)}", text)))


def untranslated(texts: Iterable[str], phrases: Phrases) -> list[str]:
    """The texts that no row says in Chinese with every value that was filled in."""
    missing = []
    for text in sorted(texts):
        said = phrases.say(text, "zh") or ""
        if not _CHINESE.search(said) or any(value not in said for value in re.findall(r"X\d", text)):
            missing.append(text)
    return missing
