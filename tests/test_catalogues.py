"""The translations: complete, up to the sources, compiled; and what a reader gets where they are not."""

from __future__ import annotations

import ast
import logging
import os
import re
import shutil
import string
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import util
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import read_mo
from babel.messages.pofile import read_po

from hubgov import catalogue, texts
from hubgov.phrases import Phrases

ROOT = Path(__file__).parents[1]
_SPEC = util.spec_from_file_location("hubgov_catalogues", ROOT / "deploy" / "catalogues.py")
assert _SPEC is not None
assert _SPEC.loader is not None
catalogues = util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = catalogues
_SPEC.loader.exec_module(catalogues)

DOMAINS = tuple(catalogues.DOMAINS)
CHINESE = re.compile(r"[\u4e00-\u9fff]")
RUN_UPDATE = "run ./deploy/texts update, translate what it names, and ./deploy/texts compile"


def catalog(domain: str) -> Catalog:
    with (ROOT / catalogues.DOMAINS[domain].po).open("rb") as file:
        return read_po(file, locale="zh_CN", domain=domain)


def messages(domain: str) -> list[Message]:
    return [message for message in catalog(domain) if message.id]


def blanks(text: str) -> list[str]:
    """What is filled in: `{name}`, `{name!r}` and Lab's `%1`."""
    fields = [f"{name}!{how}" if how else name for _, name, _, how in string.Formatter().parse(text) if name]
    return sorted({*fields, *re.findall(r"%\d", text)})


# --- complete and up to the sources -------------------------------------------------------------------


@pytest.mark.parametrize(("domain", "least"), [("hubgov", 1200), ("hubgov_lab", 100)])
def test_the_template_is_made_from_the_sources(domain: str, least: int) -> None:
    made = catalogues.written(catalogues.template(domain)).decode()
    assert made.count("\nmsgid ") > least
    kept = (ROOT / catalogues.DOMAINS[domain].pot).read_text(encoding="utf-8")
    assert kept == made, RUN_UPDATE


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_text_is_translated_and_nothing_is_left_over(domain: str) -> None:
    found = messages(domain)
    assert [m.id for m in found if not m.string] == [], RUN_UPDATE
    assert [m.id for m in found if m.fuzzy] == [], RUN_UPDATE
    assert list(catalog(domain).obsolete) == []
    kept = (ROOT / catalogues.DOMAINS[domain].po).read_text(encoding="utf-8")
    assert kept == catalogues.written(catalogues.updated(domain)).decode(), RUN_UPDATE


@pytest.mark.parametrize("domain", DOMAINS)
def test_both_languages_fill_in_the_same(domain: str) -> None:
    for message in messages(domain):
        if message.id == "{message}":  # English as it was raised; the Chinese may leave that out
            continue
        assert blanks(message.id) == blanks(message.string), (message.context, message.id)


@pytest.mark.parametrize("domain", DOMAINS)
def test_what_is_a_sentence_in_english_is_chinese_in_chinese(domain: str) -> None:
    for message in messages(domain):
        if message.id == "Invalid value for '{name}': {what_}":  # the Chinese needs no word for it
            continue
        said = re.sub(r"{\w+(!r)?}|%\d|\$?--?\w+|hubgov \w+|chmod|[A-Z_]{3,}", "", message.id)
        if re.search(r"[a-z]{2,} [a-z]{2,}", said):
            assert CHINESE.search(message.string), (message.context, message.id)


def test_no_two_tables_share_a_name() -> None:
    by_context: dict[str, set[str]] = {}
    for text in catalogues.texts("hubgov"):
        by_context.setdefault(text.context, set()).add(text.file)
    assert {context: files for context, files in by_context.items() if len(files) > 1} == {}
    rows = Counter((text.context, text.english) for text in catalogues.texts("hubgov"))
    assert [row for row, many in rows.items() if many > 1] == []


def test_compiled_is_what_was_translated() -> None:
    files = catalogues.DOMAINS["hubgov"]
    assert (ROOT / files.compiled).exists(), "run ./deploy/texts compile"
    with (ROOT / files.compiled).open("rb") as file:
        compiled = {(m.context, m.id): m.string for m in read_mo(file) if m.id}
    assert compiled == {(m.context, m.id): m.string for m in messages("hubgov")}, "run ./deploy/texts compile"


# --- no text outside of the tables --------------------------------------------------------------------

BOTH_LANGUAGES = {"hubgov/policy/sample.py", "hubgov/policy/sample_text.py", "hubgov/joining/plan.py"}
"""What is written into a file of the administrator's is explained in both languages there."""
KNOWN = {
    "hubgov/cli/flags.py": {r"see /openapi\.json for the fields and their limits|字段及其上限见 /openapi\.json"},
    "hubgov/cli/local/init.py": {"是"},
    "hubgov/cli/verbs/policy.py": {"是"},
    "hubgov/service/page_texts.py": {"中文"},
    "spawner/hubgov_spawner/page_texts.py": {"中文"},
}
"""What is read, not said; and the name of the other language in that language."""


def constants(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_the_sources_are_in_english() -> None:
    looked_at = 0
    for folder in catalogues.SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name in BOTH_LANGUAGES:
                continue
            looked_at += 1
            found = {text for text in constants(path.read_text(encoding="utf-8")) if CHINESE.search(text)}
            assert found == KNOWN.get(name, set()), name
    assert looked_at > 150


SHOWN_ATTRIBUTES = re.compile(r'\b(?:title|placeholder|alt|aria-label|content)="([^"{}]*[A-Za-z]{2,}[^"{}]*)"')
NAMES = {"hubgov", "JupyterHub", "GPU", "URL"}
"""Words of a template that are names in every language."""


def shown(template: str) -> str:
    """The words that a template shows of its own: no markup, scripts, styles, commands, blanks and statements."""
    text = re.sub(r"{#.*?#}|<!--.*?-->|<(script|style|code)\b.*?</\1>", " ", template, flags=re.DOTALL)
    text = re.sub(r"{% block (topics|main_class) %}.*?{% endblock %}", " ", text)  # of attributes
    text = re.sub(r"{%.*?%}|{{.*?}}", " ", text, flags=re.DOTALL)
    attributes = [found for found in SHOWN_ATTRIBUTES.findall(text) if "=" not in found]
    text = re.sub(r"<[^>]*>", " ", text)
    return " ".join([text, *attributes])


@pytest.mark.parametrize(
    "path",
    [p for folder in catalogues.SOURCES for p in sorted((ROOT / folder).rglob("*.html")) if "templates" in p.parts],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_template_has_no_words_of_its_own(path: Path) -> None:
    words = re.findall(r"&\w+;|[A-Za-z\u4e00-\u9fff]{2,}", shown(path.read_text(encoding="utf-8")))
    assert [word for word in words if word not in NAMES and not word.startswith("&")] == []


QUOTED = re.compile(r"""'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`([^`]*)`""")


def test_a_script_of_a_page_has_no_words_of_its_own() -> None:
    scripts = [path for folder in ("hubgov", "spawner") for path in (ROOT / folder).rglob("*.js")]
    assert len(scripts) >= 2
    for path in scripts:
        source = re.sub(r"/\*.*?\*/|(?m:^\s*//[^\n]*$)", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        said = ["".join(found) for found in QUOTED.findall(source)]
        assert said, path.name
        words = [text for text in said if re.search(r"^[^#.\[]*[A-Za-z]{2,} [a-z]{2,}|^[A-Z][a-z]+$", text)]
        assert words in ([], ["use strict"]), path.name


def test_words_of_a_template_are_found() -> None:
    assert "Hello" in shown("<p>{# no #}Hello {{ t('x', lang) }}</p>")
    assert "there" in shown('<input placeholder="there">')
    assert shown("{% if a %}<b class='x'>{{ t('a') }}</b><script>var word</script>{% endif %}").strip() == ""


# --- what a reader gets -------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of catalogues that has nothing yet."""
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    catalogue._catalogue.cache_clear()
    yield tmp_path
    catalogue._catalogue.cache_clear()


def with_texts(folder: Path, *rows: tuple[str, str, str]) -> None:
    """Compiles a catalogue of (context, English, Chinese) into a folder."""
    from babel.messages.mofile import write_mo

    made = Catalog("zh_CN")
    for context, english, chinese in rows:
        made.add(english, chinese, context=context)
    path = folder / "zh_CN" / "LC_MESSAGES" / "hubgov.mo"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_mo(file, made)


def test_a_text_is_looked_up_by_its_table_and_key(folder: Path) -> None:
    with_texts(folder, ("ONE.a", "open", "打开"), ("TWO.a", "open", "开放"))
    one, two = catalogue.Texts("ONE", {"a": "open", "b": ""}), catalogue.Texts("TWO", {"a": "open"})
    assert (one.pick("a", "zh"), two.pick("a", "zh"), one.pick("a", "en")) == ("打开", "开放", "open")
    assert one.pick("a", "fr") == "open"
    assert one.pick("b", "zh") == "", "an empty text is not the head of the catalogue"
    assert texts.word(one, "none_such", "zh") == "none_such"


def test_a_phrase_is_looked_up_whole_then_behind_its_path(folder: Path) -> None:
    with_texts(
        folder,
        ("P", "{a} is {b_}", "{a} 是{b_}"),
        ("P", "red", "红"),
        ("P", "no day is named", "没有日期"),
        ("JOINTS.path", "{path}: {said}", "{path}：{said}"),
        ("JOINTS.parts", "; ", "；"),
    )
    phrases = Phrases("P", ("{a} is {b_}", "red", "no day is named"))
    assert phrases.say("x is red", "zh") == "x 是红"
    assert phrases.say("x is red; red", "zh") == "x 是红；红"
    assert phrases.say("x is blue", "zh") == "x 是blue"
    assert phrases.say("days: no day is named", "zh") == "days：没有日期"
    assert phrases.say("many words before: no day is named", "zh") == "many words before: no day 是named"
    assert phrases.say("nothing", "zh") is None
    assert phrases.say("x is red", "en") is None


MAGIC = b"\xde\x12\x04\x95"


@pytest.mark.parametrize("content", [None, b"", b"no catalogue", MAGIC + b"\0", MAGIC + b"\xff" * 24])
def test_without_a_catalogue_readers_get_english_and_the_log_one_line(
    folder: Path, content: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    if content is not None:
        path = folder / "zh_CN" / "LC_MESSAGES" / "hubgov.mo"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert texts.say("starting", "zh") == "Starting."
            assert texts.word(texts.STATES, "running", "zh") == "running"
    assert [r.getMessage().split(" ")[0] for r in caplog.records] == ["event=catalogue_unreadable"]


def test_of_an_older_catalogue_readers_get_what_it_has(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with_texts(
        folder, ("SENTENCES.starting", "Starting.", "正在启动。"), ("SENTENCES.running", "It runs.", "在运行。")
    )
    with caplog.at_level(logging.WARNING):
        assert texts.say("starting", "zh") == "正在启动。"
        assert caplog.records == []
        assert texts.say("running", "zh") == "Running.", "the Chinese of what the English was before is not shown"
        assert texts.say("running", "zh") == "Running."
    assert [r.getMessage() for r in caplog.records] == [
        "event=catalogue_outdated locale=zh_CN context='SENTENCES.running'"
    ]


@pytest.mark.parametrize(("lang", "read"), [("en", 0), ("zh", 1)])
def test_only_chinese_reads_the_catalogue(lang: str, read: int) -> None:
    code = (
        "from hubgov.cli.running import run; from hubgov import catalogue\n"
        f"run(['--help', '--lang', '{lang}']); print('READ', catalogue._catalogue.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == f"READ {read}"


# --- the tool -----------------------------------------------------------------------------------------


def project(root: Path, *, sentence: str, rows: str = '"{a} is late", "the disk is full",') -> None:
    """A small project with one table, one list of phrases and one extension."""
    (root / "hubgov").mkdir(exist_ok=True)
    (root / "hubgov" / "some_texts.py").write_text(
        "from hubgov.catalogue import Texts\nfrom hubgov.phrases import Phrases\n"
        f'SAID = Texts("SAID", {{"one": "{sentence}", "none": ""}})\n'
        f'ROWS: tuple[str, ...] = ({rows})\n_SAID = Phrases("some.ROWS", ROWS)\n'
    )
    (root / "extensions" / "lab" / "src").mkdir(parents=True, exist_ok=True)
    (root / "extensions" / "lab" / "src" / "a.ts").write_text("const x = __('Extend to %1', at); say('%1 h', h);\n")


def translate(root: Path, chinese: dict[str, str]) -> None:
    for domain, files in catalogues.DOMAINS.items():
        found = catalogues.read(domain, root)
        for message in found:
            if message.id in chinese:
                message.string = chinese[message.id]
                message.flags.discard("fuzzy")
        (root / files.po).write_bytes(catalogues.written(found))


def test_the_tool_finds_new_changed_and_dropped_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project(tmp_path, sentence="All is well here.")
    assert catalogues.update(tmp_path) == 1
    said = capsys.readouterr().out
    assert "SAID.one: untranslated: All is well here." in said
    assert said.count("untranslated") == 5
    translate(
        tmp_path,
        {
            "All is well here.": "一切正常。",
            "{a} is late": "{a} 迟了",
            "the disk is full": "磁盘已满",
            "Extend to %1": "延长至 %1",
            "%1 h": "%1 小时",
        },
    )
    assert catalogues.update(tmp_path) == 0
    assert capsys.readouterr().out == ""

    project(tmp_path, sentence="Something went wrong.", rows='"{a} is late today",')
    assert catalogues.update(tmp_path) == 1
    assert "SAID.one: fuzzy: Something went wrong." in capsys.readouterr().out
    rows = {m.id: m for m in catalogues.read("hubgov", tmp_path) if m.id}
    assert set(rows) == {"Something went wrong.", "{a} is late today"}
    assert [(m.string, m.fuzzy) for m in rows.values()] == [("一切正常。", True), ("{a} 迟了", True)]
    before = (tmp_path / catalogues.DOMAINS["hubgov"].po).read_text(encoding="utf-8")
    assert '#| msgid "All is well here."\n' in before
    assert '#| msgid "{a} is late"\n' in before
    catalogues.compile_(tmp_path)
    with (tmp_path / catalogues.DOMAINS["hubgov"].compiled).open("rb") as file:
        assert [m.id for m in read_mo(file) if m.id] == [], "what is fuzzy is not shown"
    assert "延长至 %1" in (tmp_path / catalogues.DOMAINS["hubgov_lab"].compiled).read_text(encoding="utf-8")


def test_a_table_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "hubgov").mkdir()
    (tmp_path / "hubgov" / "x.py").write_text('from hubgov.catalogue import Texts\nT = Texts("T", dict(a="b"))\n')
    with pytest.raises(SystemExit, match=r"hubgov/x\.py:2: a table must be written out"):
        catalogues.update(tmp_path)


def test_an_installation_compiles_what_is_newer(tmp_path: Path) -> None:
    for folder in ("hubgov/locale", "extensions/lab/locale", "deploy"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.mo", "*.json"))
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    po, mo = (tmp_path / catalogues.DOMAINS["hubgov"].po), (tmp_path / catalogues.DOMAINS["hubgov"].compiled)
    script = '. "$1/deploy/install.sh" && build_texts "$1"'

    def build() -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script, "_", str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stderr

    assert not mo.exists()
    assert "compiling the translations" in build()
    assert mo.read_bytes() == catalogues.compiled("hubgov")
    assert (tmp_path / catalogues.DOMAINS["hubgov_lab"].compiled).exists()
    assert build() == ""
    po.write_text(po.read_text(encoding="utf-8").replace("正在启动。", "启动中。"), encoding="utf-8")
    later = mo.stat().st_mtime + 5
    os.utime(po, (later, later))
    assert "compiling the translations" in build()
    assert "启动中。".encode() in mo.read_bytes()
