"""The spawn form: what it shows, what it escapes, and what comes back from it."""

from __future__ import annotations

import asyncio
import logging
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hubgov_spawner import choices, option_texts, options, options_form, page_texts, refusals
from hubgov_spawner.choices import Choice
from hubgov_spawner.client import Client
from jupyterhub.spawner import SpawnException
from spawner.governing import close
from spawner.standin import TOKEN, Standin, decision, profile
from spawner.standin import options as answer
from spoken import blanks, calls, sentences, spoken, untranslated

from hubgov.catalogue import translated

HOSTILE = "<img src=x onerror=alert(1)>\"'{}"


class Fields(HTMLParser):
    """The fields of a form and their values, as a browser without scripts sees them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.inputs: list[dict[str, str | None]] = []
        self.options: list[dict[str, str | None]] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "input":
            self.inputs.append(dict(attrs))
        if tag == "option":
            self.options.append(dict(attrs))

    def handle_data(self, data: str) -> None:
        self.text += data

    def checked(self, name: str) -> list[str | None]:
        return [i["value"] for i in self.inputs if i["name"] == name and "checked" in i]

    def values(self, name: str) -> list[str | None]:
        return [i["value"] for i in self.inputs if i["name"] == name]


def test_the_form_says_what_a_new_choice_takes_the_place_of() -> None:
    assert "nb-7 waits in the queue for this server" in options_form.form(answer(waiting="nb-7"), "en")
    assert "该服务器已有请求 nb-7 在排队" in options_form.form(answer(waiting="nb-7"), "zh")
    assert "waits in the queue for this server" not in options_form.form(answer(waiting=None), "en")


def test_the_form_shows_what_is_free_what_it_costs_and_what_is_used() -> None:
    quota = {"team": "vision", "guaranteed": 8, "used": 6, "borrowed": 0, "flavor": "A100", "pool": "dev"}
    fields = Fields(options_form.form(answer(quota=[quota]), "en"))
    for text in (
        "1 × A100 · 40 GiB GPU memory · free now 3/8 · starts now · ¥18.50 per hour · at most 8h",
        "1 GPU × 4 h = 4 GPU-h, ¥74.00",
        "You: 1 of 2 GPUs in queue lab",
        "Team vision: 6 of 8 guaranteed, 0 borrowed (A100, pool dev)",
    ):
        assert text in fields.text
    assert "SIMULATED" not in fields.text
    assert "script" not in fields.tags


def test_the_form_is_filled_in_as_chosen_last() -> None:
    last = {"profile": "two", "project": "b", "lease_seconds": 7200}
    projects = [{"name": n, "team": "t", "environment": "e"} for n in "ab"]
    found = answer(profiles=[profile("one"), profile("two")], projects=projects, last=last)
    fields = Fields(options_form.form(found, "en"))
    assert (fields.checked("profile"), fields.checked("hours")) == (["two"], ["2"])
    assert [o["value"] for o in fields.options if "selected" in o] == ["b"]


def test_without_a_choice_the_first_possible_profile_and_its_time_are_taken() -> None:
    refused = profile("no", decision=decision("refused", headline="Above the maximum."))
    found = answer(profiles=[refused, profile("two", lease_default_seconds=5400)])
    fields = Fields(options_form.form(found, "en"))
    assert fields.checked("profile") == ["two"]
    assert (fields.checked("hours"), fields.values("minutes")) == (["custom"], ["90"])
    assert [i["value"] for i in fields.inputs if "disabled" in i] == ["no"]
    assert "Above the maximum." in fields.text


def test_profiles_that_are_not_possible_are_shown_up_to_three() -> None:
    refused = [profile(f"no{n}", decision=decision("refused")) for n in range(5)]
    fields = Fields(options_form.form(answer(profiles=[profile(), *refused]), "en"))
    assert len(fields.values("profile")) == 4
    assert "2 more are not possible for you." in fields.text


def test_times_beyond_the_longest_are_not_offered() -> None:
    short, long = profile("s", lease_max_seconds=3600), profile("l", lease_max_seconds=4 * 3600)
    fields = Fields(options_form.form(answer(profiles=[short, long]), "en"))
    assert fields.values("hours") == ["1", "2", "4", "custom"]
    assert "Profile s: more than the 1h that queue lab allows" in fields.text


def test_who_waits_sees_until_when() -> None:
    waits = decision("waiting", headline="Waiting for quota.", latest_start="2026-03-02T10:30:00Z")
    found = answer(profiles=[profile(decision=waits)], now="2026-03-02T09:00:00Z")
    text = Fields(options_form.form(found, "en")).text
    assert "waits, starts by 18:30 as things stand" in text
    assert "Waiting for quota." in text


def test_simulated_cards_are_said_to_be() -> None:
    assert "SIMULATED" in options_form.form(answer(simulated=True), "en")


@pytest.mark.parametrize(
    ("change", "told"),
    [({"profiles": []}, "add one under spawn_profiles"), ({"projects": []}, "add you to the group of your team")],
)
def test_who_has_nothing_is_told_whom_to_ask(change: dict[str, Any], told: str) -> None:
    fields = Fields(options_form.form(answer(**change), "en"))
    assert fields.inputs == []
    assert "Ask an administrator" in fields.text
    assert told in fields.text


def test_every_name_is_escaped() -> None:
    hostile = profile(
        HOSTILE,
        title=HOSTILE,
        queue=HOSTILE,
        flavor=HOSTILE,
        own=HOSTILE,
        decision=decision("waiting", headline=HOSTILE),
    )
    projects = [{"name": HOSTILE + n, "team": HOSTILE, "environment": HOSTILE} for n in "ab"]
    quota = [{"team": HOSTILE, "guaranteed": HOSTILE, "used": 1, "borrowed": 0, "flavor": HOSTILE}]
    fields = Fields(options_form.form(answer(profiles=[hostile], projects=projects, quota=quota), "en"))
    assert fields.tags <= {
        "div",
        "style",
        "fieldset",
        "legend",
        "label",
        "input",
        "strong",
        "small",
        "select",
        "option",
        "aside",
        "h2",
        "p",
    }
    assert fields.values("profile") == [HOSTILE]
    assert [o["value"] for o in fields.options] == [HOSTILE + n for n in "ab"]


def test_both_languages_say_all() -> None:
    for key, english in page_texts.PAGE.items():
        pair = (english, page_texts.PAGE.pick(key, "zh"))
        assert all(pair), key
        names = [
            sorted(part[1] for part in __import__("string").Formatter().parse(text) if part[1]) for text in pair
        ]
        assert names[0] == names[1], key
    text = Fields(options_form.form(answer(simulated=True), "zh")).text
    assert "空闲 3/8" in text
    assert "模拟" in text


# --- after a refusal -----------------------------------------------------------------------------------


def refilled(fields: dict[str, str], **answers: Any) -> Fields:
    """The form after one with these fields was refused."""
    return Fields(options_form.form(answer(**answers), "en", Choice(fields=fields)))


def test_what_was_chosen_beats_what_was_chosen_last() -> None:
    projects = [{"name": n, "team": "t", "environment": "e"} for n in "ab"]
    last = {"profile": "one", "project": "a", "lease_seconds": 3600}
    chosen = {"profile": "two", "project": "b", "hours": "8"}
    fields = refilled(chosen, profiles=[profile("one"), profile("two")], projects=projects, last=last)
    assert (fields.checked("profile"), fields.checked("hours")) == (["two"], ["8"])
    assert [o["value"] for o in fields.options if "selected" in o] == ["b"]


@pytest.mark.parametrize(
    ("fields", "hours", "minutes"),
    [
        ({"hours": "custom", "minutes": "2880"}, "custom", "2880"),
        ({"hours": "custom", "minutes": "soon"}, "custom", "soon"),
        ({"hours": "48"}, "custom", "2880"),
        ({"lease": "7200"}, "2", ""),
        ({"minutes": "30"}, "4", ""),
    ],
)
def test_the_time_stays_as_it_was_chosen_however_long(fields: dict[str, str], hours: str, minutes: str) -> None:
    found = refilled(fields)
    assert (found.checked("hours"), found.values("minutes")) == ([hours], [minutes])


def test_a_chosen_profile_that_is_not_possible_stays_with_its_reason() -> None:
    refused = [profile(f"no{n}", decision=decision("refused", headline=f"Rule {n}.")) for n in range(5)]
    fields = refilled({"profile": "no4"}, profiles=[profile(), *refused])
    assert fields.checked("profile") == ["no4"]
    assert "Rule 4." in fields.text
    assert [i["value"] for i in fields.inputs if "disabled" in i] == ["no0", "no1", "no2"]
    assert refilled({"profile": "gone"}).checked("profile") == ["one"]


def test_a_refused_choice_is_kept_for_its_server_until_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    user = "pia"

    async def refused() -> None:
        options_form.options_from_form({"profile": ["two"], "hours": ["8"]})
        choices.refuse(user, "second", "<strong>No.</strong>", "zh")

    asyncio.run(refused())
    found = choices.kept(user, "second")
    assert found is not None
    assert (found.fields, found.reason, found.lang) == (
        {"profile": "two", "hours": "8"},
        "<strong>No.</strong>",
        "zh",
    )
    assert choices.kept(user, "") is None
    assert choices.kept("ben", "second") is None
    assert choices.submitted() is None, "a form belongs to its request alone"
    with monkeypatch.context() as changed:
        changed.setattr(choices, "KEPT_SECONDS", -1.0)
        assert choices.kept(user, "second") is None
    assert choices.reason_once(user, "second") == "<strong>No.</strong>"
    assert choices.reason_once(user, "second") == "", "a form that is opened anew tells nothing old"
    kept = choices.kept(user, "second")
    assert kept is not None
    assert kept.fields == found.fields, "what was chosen stays"
    choices.forget(user, "second")
    assert choices.kept(user, "second") is None
    assert choices.reason_once(user, "second") == ""


def test_a_session_without_a_gpu_is_free_of_charge() -> None:
    cpu = profile("cpu", gpus=0, flavor=None, flavors=[], memory_mib=None, price_per_hour=None)
    text = Fields(options_form.form(answer(profiles=[cpu]), "en")).text
    assert "Profile cpu: 4 h, no charge" in text
    assert "Profile cpu: no charge" in text
    assert "—" not in text


def test_a_start_that_no_form_asked_for_keeps_nothing() -> None:
    choices.refuse("rob", "", "No.", "en")
    assert choices.kept("rob", "") is None


# --- what comes back ------------------------------------------------------------------------------------


def test_a_submitted_form_becomes_options() -> None:
    form = {"profile": ["one"], "project": ["seg"], "hours": ["2"], "minutes": [""], "_xsrf": ["x"]}
    assert options_form.options_from_form(form) == {"profile": "one", "project": "seg", "lease": 7200}
    assert options_form.options_from_form({"hours": ["custom"], "minutes": ["45"]}) == {"lease": 2700}
    assert options_form.options_from_form({}) == {}


def test_a_form_that_resumes_carries_the_whole_request() -> None:
    form = {"queue": ["lab"], "gpus": ["0.25"], "memory": ["10240MiB"], "lease": ["3600"], "resumes": ["nb-1"]}
    assert options_form.options_from_form(form) == {
        "queue": "lab",
        "gpus": 0.25,
        "memory": "10240MiB",
        "lease": 3600,
        "resumes": "nb-1",
    }


@pytest.mark.parametrize(
    "form",
    [
        {"cmd": ["sh"]},
        {"profile": ["one", "two"]},
        {"profile": []},
        {"profile_file": [{"filename": "x", "body": b""}]},
        {"hours": ["custom"], "minutes": [""]},
        {"hours": ["-2"]},
        {"hours": ["٣"]},
        {"hours": ["9" * 30]},
        {"gpus": ["nan."]},
        {"memory": ["80GB"]},
        {"profile": ["x" * 64]},
    ],
    ids=repr,
)
def test_a_form_that_is_not_ours_is_turned_down(form: dict[str, list[Any]]) -> None:
    with pytest.raises(SpawnException) as raised:
        options_form.options_from_form(form)
    assert (raised.value.reason, raised.value.status_code) == ("invalid", 422)


NUMBERS = {
    "hours": ("1", "87600", [], "1 to 87600"),
    "minutes": ("1", "5256000", [], "1 to 5256000"),
    "lease": ("1", "315360000", [], "1 to 315360000"),
    "cpus": ("0", "1000000", [], "0 to 1000000"),
    "gpus": ("0", "1000000", ["0.25"], "0 to 1000000"),
}
"""The least and the most of each number of a form, what else is one, and how its bounds are said."""
NO_NUMBERS = (
    "-1",
    "nan",
    "inf",
    "1_0",
    "1e3",
    "0x10",
    "٣",
    "²",
    "1 0",
    "+1",
    "1.",
    ".5",
    "9" * 13,
    "9" * 999,
    "4h",
)


@pytest.mark.parametrize("field", NUMBERS)
def test_a_number_of_a_form_is_written_in_digits_and_within_its_bounds(field: str) -> None:
    least, most, others, bounds = NUMBERS[field]

    def form(text: str, lang: str = "en") -> dict[str, list[str]]:
        return {field: [text], "hubgov_lang": [lang], **({"hours": ["custom"]} if field == "minutes" else {})}

    for text in (least, most, *others):
        assert options_form.options_from_form(form(text))
    beyond = [str(int(most) + 1), str(int(least) - 1)]
    for text in (*NO_NUMBERS, *beyond):
        with pytest.raises(SpawnException) as raised:
            options_form.options_from_form(form(text))
        said = raised.value.message
        assert said.startswith(f"{field}: '{text[:39]}"), said
        assert bounds in said
        assert "; write " in said
        with pytest.raises(SpawnException) as raised:
            options_form.options_from_form(form(text, "zh"))
        said = raised.value.message
        assert said.startswith(f"{field}：'{text[:39]}"), said
        assert bounds.replace(" to ", " 到 ") in said
        assert not re.search("[a-z]{2,} [a-z]{2,}", said), said


def test_a_mistake_is_told_in_the_language_of_the_form_else_of_the_reader() -> None:
    chinese = SimpleNamespace(
        request=SimpleNamespace(headers={"Accept-Language": "zh"}), get_cookie=lambda name, default: ""
    )
    for field, spawner, expected in (
        ({"hubgov_lang": ["zh"]}, None, "没有选项 'cmd'"),
        ({"hubgov_lang": ["en"]}, SimpleNamespace(handler=chinese), "unknown option 'cmd'"),
        ({}, SimpleNamespace(handler=chinese), "没有选项 'cmd'"),
        ({"hubgov_lang": []}, SimpleNamespace(handler=None), "unknown option 'cmd'"),
        ({"hubgov_lang": ["fr"]}, None, "unknown option 'cmd'"),
    ):
        with pytest.raises(SpawnException) as raised:
            options_form.options_from_form({"cmd": ["sh"], **field}, spawner)
        assert raised.value.message.startswith(expected)
    assert '<input type="hidden" name="hubgov_lang" value="zh">' in options_form.form(answer(), "zh")


def test_every_mistake_has_chinese(tmp_path: Path) -> None:
    # The rest of the package says what an administrator set up wrongly.
    (tmp_path / "options.py").write_text(Path(options.__file__).read_text("utf-8"), "utf-8")
    messages: set[str] = set()
    hints: set[str] = set()
    for call in calls(tmp_path, {"Invalid"}):
        messages.update(sentences(call.args[0]))
        hints.update(s for keyword in call.keywords if keyword.arg == "hint" for s in sentences(keyword.value))
    assert len(messages) > 7
    worded = {m for m in messages if re.search("[a-z]{3,}", re.sub(r"^[\w-]+: |X\d", "", m))}
    assert untranslated(worded, option_texts._MESSAGES) == []
    assert untranslated({h for h in hints if spoken(h)}, option_texts._HINTS) == []
    for name, rows in (("spawner.MESSAGES", option_texts.MESSAGES), ("spawner.HINTS", option_texts.HINTS)):
        for english in rows:
            assert blanks(english) == blanks(translated(name, english, "zh")), english
    for memory in ("80GB", "2000TiB"):
        with pytest.raises(SpawnException) as raised:
            options_form.options_from_form({"memory": [memory], "hubgov_lang": ["zh"]})
        assert "：" in raised.value.message
        assert "例如 20GiB" in raised.value.message


def test_a_refusal_is_one_line_of_the_hubs_log_and_a_fault_keeps_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = logging.getLogger("hub of a test")
    for _ in range(3):
        log.addFilter(refusals.EVERYDAY)
    ours, theirs = refusals.invalid("100% wrong\nin two lines", "", "en"), SpawnException("theirs", reason="r")
    for error in (ours, theirs, OSError()):
        try:
            raise error
        except Exception:
            log.error("Failed to spawn %s with form", "amy", exc_info=True)
    first, second, third = caplog.records
    assert first.getMessage() == "Failed to spawn amy with form: invalid: 100% wrong in two lines"
    assert first.exc_info is None
    assert second.exc_info
    assert third.exc_info


def test_options_must_be_an_object() -> None:
    with pytest.raises(ValueError, match="must be an object"):
        options.checked(["a"])


# --- with the service -----------------------------------------------------------------------------------


def rendered(url: str, cookie: str = "", accept: str = "en") -> str:
    """The form of amy, who is in the group vision."""
    handler = SimpleNamespace(
        request=SimpleNamespace(headers={"Accept-Language": accept}), get_cookie=lambda name, default: cookie
    )
    spawner = SimpleNamespace(
        handler=handler,
        user=SimpleNamespace(name="amy", groups=[SimpleNamespace(name="vision")]),
        name="",
        log=logging.getLogger("test"),
        hubgov_client=lambda lang: Client(url=url, token=TOKEN, lang=lang),
    )

    async def scenario() -> str:
        try:
            return await options_form.options_form(spawner)
        finally:
            await close()

    return asyncio.run(scenario())


def test_the_form_speaks_the_readers_language() -> None:
    service = Standin()
    try:
        assert "空闲 3/8" in rendered(service.url, accept="zh-CN,en;q=0.5")
        assert "free now 3/8" in rendered(service.url, cookie="en", accept="zh-CN")
        assert service.languages == ["zh", "en"]
    finally:
        service.close()


def test_without_the_service_the_form_says_what_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options_form, "FORM_SECONDS", 0.1)
    html = rendered("http://127.0.0.1:1")
    assert "Availability is unknown" in html
    assert "Running servers go on" in html
