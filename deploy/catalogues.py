"""The catalogues of translations: made from the sources, compiled for the programs. Called by deploy/texts.

Two of them: `hubgov` of the Python tables, its context `TABLE.key` or `TABLE`; `hubgov_lab` of the extension's
`__('…')`. A template (.pot) is made from the sources, a catalogue (.po) is translated by people, and what programs
read (.mo, .json) is made from it. Lines are not wrapped and no dates are kept: two changes seldom meet.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import io
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parents[1]
LOCALE = "zh_CN"
SOURCES = ("hubgov", "spawner/hubgov_spawner", "extensions/hubgov_lab")
LAB = "extensions/lab"
_HEAD = {"project": "hubgov", "version": "texts", "fuzzy": False}
_NO_HEAD = tuple(
    f'"{name}:'.encode()
    for name in (
        "POT-Creation-Date",
        "PO-Revision-Date",
        "Generated-By",
        "Last-Translator",
        "Language-Team",
        "Report-Msgid-Bugs-To",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One text to translate, and the file that says it."""

    english: str
    file: str
    context: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Where a domain's template, catalogue and compiled catalogue are, below a root."""

    pot: str
    po: str
    compiled: str


DOMAINS = {
    "hubgov": Files(
        pot="hubgov/locale/hubgov.pot",
        po=f"hubgov/locale/{LOCALE}/LC_MESSAGES/hubgov.po",
        compiled=f"hubgov/locale/{LOCALE}/LC_MESSAGES/hubgov.mo",
    ),
    "hubgov_lab": Files(
        pot=f"{LAB}/locale/hubgov_lab.pot",
        po=f"{LAB}/locale/{LOCALE}.po",
        compiled=f"{LAB}/locale/{LOCALE}.json",
    ),
}


def texts(domain: str, root: Path = ROOT) -> Iterator[Text]:
    """Every text of a domain, in the order of the sources."""
    if domain == "hubgov_lab":
        yield from _of_lab(root)
        return
    for folder in SOURCES:
        for path in sorted((root / folder).rglob("*.py")):
            yield from _of_module(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())


def _of_module(source: str, file: str) -> Iterator[Text]:
    """The texts of its tables: `Texts(NAME, {…})`, `Phrases(NAME, ROWS)` and the verbs of the command line."""
    if not any(name in source for name in ("Texts(", "Phrases(")):
        return
    tree = ast.parse(source)
    values = {
        node.target.id: node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
    }
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        match call:
            case ast.Call(func=ast.Name("Texts"), args=[name, ast.Dict() as rows]):
                for key, english in ast.literal_eval(rows).items():
                    yield Text(english=english, file=file, context=f"{ast.literal_eval(name)}.{key}")
            case ast.Call(func=ast.Name("Phrases"), args=[name, ast.Name(rows)]):
                for english in ast.literal_eval(values[rows]):
                    yield Text(english=english, file=file, context=ast.literal_eval(name))
            case ast.Call(func=ast.Name("Texts" | "Phrases")):
                raise SystemExit(f"{file}:{call.lineno}: a table must be written out: a name, and its texts")
    match values.get("VERBS"):
        case ast.Dict(keys=names, values=verbs):
            for verb, call in zip(names, verbs, strict=True):
                yield from _of_verb(f"cli.VERBS.{ast.literal_eval(verb)}", call, file)  # type: ignore[arg-type]


def _of_verb(context: str, call: ast.expr, file: str) -> Iterator[Text]:
    assert isinstance(call, ast.Call)
    yield Text(english=ast.literal_eval(call.args[1]), file=file, context=context)
    for keyword in call.keywords:
        if keyword.arg == "more":
            yield Text(english=ast.literal_eval(keyword.value), file=file, context=f"{context}.more")


def _of_lab(root: Path) -> Iterator[Text]:
    for path in sorted((root / LAB / "src").glob("*.ts")):
        with path.open("rb") as file:
            for _, said, _, _ in extract("javascript", file, keywords={"__": None, "say": None}):
                english = said if isinstance(said, str) else said[0]
                yield Text(english=english, file=path.relative_to(root).as_posix())


def template(domain: str, root: Path = ROOT) -> Catalog:
    """A domain's catalogue without translations."""
    made = Catalog(domain=domain, **_HEAD)
    made.header_comment = f"# Made from the sources by `deploy/texts update`; do not edit.\n# Domain {domain}."
    for text in texts(domain, root):
        if text.english:
            made.add(text.english, context=text.context, locations=[(text.file, 0)])
    return made


def written(catalog: Catalog) -> bytes:
    """The text of a .pot or .po, without what changes when nothing did."""
    for message in catalog:
        message.flags.discard("python-format")  # which is guessed from a mere per cent sign
    out = io.BytesIO()
    write_po(out, catalog, width=0, ignore_obsolete=True, include_lineno=False, include_previous=True)
    return b"".join(line for line in out.getvalue().splitlines(keepends=True) if not line.startswith(_NO_HEAD))


def read(domain: str, root: Path = ROOT) -> Catalog:
    """A domain's translations as they are kept; none where there is no such file yet."""
    path = root / DOMAINS[domain].po
    if not path.exists():
        return Catalog(LOCALE, domain=domain, **_HEAD)
    with path.open("rb") as file:
        return read_po(file, locale=LOCALE, domain=domain)


def updated(domain: str, root: Path = ROOT) -> Catalog:
    """The translations brought up to the sources: new texts empty, changed ones fuzzy, what is gone left out."""
    found, wanted = read(domain, root), template(domain, root)
    made = Catalog(LOCALE, domain=domain, **_HEAD)
    made.header_comment = f"# {LOCALE} of domain {domain}. Brought up to the sources by `deploy/texts update`."
    gone = [m for m in found if m.id and m.string and wanted.get(m.id, m.context) is None]
    keyed = {context for context, many in Counter(m.context for m in wanted).items() if context and many == 1}
    for message in (m for m in wanted if m.id):
        before = found.get(message.id, message.context)
        if before is not None:
            said, flags, previous = before.string, before.flags, before.previous_id
        elif (changed := _changed(message, gone, keyed)) is not None:
            said, flags, previous = changed.string, {"fuzzy"}, changed.id
        else:
            said, flags, previous = "", set(), ""
        made.add(message.id, said, message.locations, flags, previous_id=previous, context=message.context)
    return made


def _changed(message: Message, gone: list[Message], keyed: set[str]) -> Message | None:
    """The translation whose English was probably this one's before: of the same key, or nearly the same."""
    of_context = {m.id: m for m in gone if m.context == message.context}
    if message.context in keyed and len(of_context) == 1:
        return next(iter(of_context.values()))
    near = difflib.get_close_matches(message.id, of_context, n=1)
    return of_context[near[0]] if near else None


def compiled(domain: str, root: Path = ROOT) -> bytes:
    """What programs read of a domain's translations."""
    if domain == "hubgov_lab":
        rows = {m.id: m.string for m in read(domain, root) if m.id and m.string and not m.fuzzy}
        return (json.dumps(rows, ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode()
    catalog = read(domain, root)
    catalog.creation_date = catalog.revision_date = datetime(2000, 1, 1, tzinfo=UTC)  # made twice, it is the same
    out = io.BytesIO()
    write_mo(out, catalog)
    return out.getvalue()


def put(path: Path, content: bytes) -> None:
    """Write a file where it differs. Made anew beside it, so that nobody reads half of it."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_bytes(content)
        fresh.replace(path)
        print(f"hubgov: {path.name} made", file=sys.stderr)
    else:
        path.touch()  # newer than the catalogue it was made from


def update(root: Path = ROOT) -> int:
    """Bring templates and catalogues up to the sources; the exit code, 1 where something is left to translate."""
    left = 0
    for domain, files in DOMAINS.items():
        put(root / files.pot, written(template(domain, root)))
        now = updated(domain, root)
        put(root / files.po, written(now))
        for message in (m for m in now if m.id and (m.fuzzy or not m.string)):
            left += 1
            print(
                f"{files.po}: {message.context or ''}: {'fuzzy' if message.fuzzy else 'untranslated'}: {message.id}"
            )
    return min(left, 1)


def compile_(root: Path = ROOT) -> int:
    """Make what programs read."""
    for domain, files in DOMAINS.items():
        if (root / files.po).exists():  # a source archive may leave the extension's out
            put(root / files.compiled, compiled(domain, root))
    return 0


def main(arguments: list[str]) -> int:
    """The exit code of `deploy/texts update|compile`."""
    parser = argparse.ArgumentParser(prog="deploy/texts", description=__doc__)
    parser.add_argument("act", choices=("update", "compile"))
    return {"update": update, "compile": compile_}[parser.parse_args(arguments).act]()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
