"""Names, addresses and words of the service that need no running service."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import HOUR_MS, Play, a_policy, a_workload
from hubgov_spawner import refusals
from hubgov_spawner.client import ServiceError
from spoken import blanks, calls, sentences, spoken, untranslated

import hubgov
from hubgov.catalogue import translated
from hubgov.control.actor import ADMIN, APPROVE, Actor, approvers, may_change, may_see
from hubgov.core.events import ACTS, DAILY, KNOWN, UNWRITTEN
from hubgov.core.model import Change, ExtensionState
from hubgov.core.policy import Caps
from hubgov.core.states import Event, WorkloadState
from hubgov.service.auth import actor_of
from hubgov.service.documents import server_url
from hubgov.service.error_texts import _HINTS, _MESSAGES, HINTS, MESSAGES, told
from hubgov.service.sentences import Reader


def _written() -> Iterator[str]:
    """Every text in the sources that change records: a name of an event that nobody writes is not among them."""
    root = Path(hubgov.__file__).parent
    for path in (p for folder in ("core", "control") for p in (root / folder).glob("*.py")):
        if path.name != "events.py":
            yield from (
                node.value
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
            )


def test_every_event_has_one_place_in_the_audit_and_none_is_left_over() -> None:
    composed = {f"allocation_{e.value}" for e in Event} | {f"extension_{s.value}" for s in ExtensionState}
    composed |= {f"workload_{s.value}" for s in WorkloadState}
    assert set() == ACTS & DAILY
    assert composed <= KNOWN
    assert KNOWN - composed - set(_written()) - UNWRITTEN == set()
    idle = {"idle_kept", "allocation_idled", "allocation_revived", "alive_only_by_claim", "idle_stop_observed"}
    assert idle | {"kernel_ended", "stop_asked", "retry_cancelled", "allocation_start_overdue"} <= ACTS


def test_a_change_without_a_place_in_the_audit_cannot_be_made() -> None:
    record = a_workload()
    with pytest.raises(ValueError, match="idle_forgotten has no place"):
        Change(event="idle_forgotten", before=record, after=record, actor="hubgov")


@pytest.mark.parametrize(
    ("owner", "server", "path"),
    [
        ("amy", None, "user/amy/"),
        ("amy", "", "user/amy/"),
        ("amy", "two", "user/amy/two/"),
        ("a#b?c%d", "s#1", "user/a%23b%3Fc%25d/s%231/"),
        ("ann@example.org", "x y", "user/ann@example.org/x%20y/"),
        ("李雷", None, "user/%E6%9D%8E%E9%9B%B7/"),
        ("a/b", None, "user/a%2Fb/"),
    ],
)
def test_the_address_of_a_server_is_escaped_as_the_hubs(owner: str, server: str | None, path: str) -> None:
    assert server_url("/hub-base/", owner, server) == f"/hub-base/{path}"


@pytest.mark.parametrize(
    ("status", "reason", "shown"),
    [(401, "governor", 503), (403, "policy", 403), (429, "queue", 429)],
)
def test_an_answer_of_the_service_is_no_silence(status: int, reason: str, shown: int) -> None:
    error = refusals.of_service(ServiceError("not <so>", code="x", status=status, hint="do this"), "en")
    assert (error.reason, error.status_code) == (reason, shown)
    assert error.jupyterhub_message == "not <so>; do this"
    assert error.jupyterhub_html_message == "not &lt;so&gt;; do this"


def test_errors_in_chinese_keep_what_was_said_and_others_stay() -> None:
    taken = "the new policy takes away what work still needs: nb-1 {x}"
    assert told(taken, "try again", "zh") == ("新策略会移除仍在使用的内容：nb-1 {x}", "请重试")
    assert told(taken, "try again", "en") == (taken, "try again")
    assert told("odd", "h", "zh") == ("odd", "h")
    assert told("lease: '4 hours' is not a duration; write 4h", "", "zh") == (
        "lease：'4 hours' 不是时长；请写 4h",
        "",
    )


def test_every_error_that_the_service_raises_has_chinese() -> None:
    errors = {"Invalid", "NotFound", "NotAllowed", "Conflict", "Ended", "PolicyMoved", "KeyReused", "TooMany"}
    errors |= {"Unavailable", "_Unauthorized"}
    messages: set[str] = set()
    hints: set[str] = set()
    for name in ("service", "service/handlers", "service/panel", "control"):
        for call in calls(Path(hubgov.__file__).parent / name, errors):
            messages.update(sentences(call.args[0]))
            hints.update(s for keyword in call.keywords if keyword.arg == "hint" for s in sentences(keyword.value))
    assert len(messages) > 40
    assert len(hints) > 30
    # What has no word of its own but a value: "until: …".
    worded = {m for m in messages if re.search("[a-z]{3,}", re.sub(r"^[\w-]+: |X\d", "", m))}
    assert untranslated(worded, _MESSAGES) == []
    assert untranslated({h for h in hints if spoken(h)}, _HINTS) == []


def test_no_row_of_the_errors_is_left_over() -> None:
    for name, rows in (("service.MESSAGES", MESSAGES), ("service.HINTS", HINTS)):
        assert len(set(rows)) == len(rows)
        for english in rows:
            assert blanks(english) == blanks(translated(name, english, "zh")), english


@pytest.mark.parametrize(
    ("lang", "running", "starting"),
    [
        (
            "en",
            "this request 1. The first is free at the latest {free} (your first: end {end} + grace + stop).",
            "The first is free at the latest {free} (your first).",
        ),
        (
            "zh",
            "本次请求 1。最早一个最迟 {free} 释放（你的 first：{end} 到期 + 宽限 + 停止）。",
            "最早一个最迟 {free} 释放（你的 first）。",
        ),
    ],
)
def test_who_waits_reads_when_a_lease_ends_and_when_its_devices_are_free(
    lang: str, running: str, starting: str
) -> None:
    for begin, sentence in (("run", running), ("submit", starting)):
        play = Play(a_policy().team("A").node("box", devices=4).caps("train", per_user=Caps(workloads=1)))
        getattr(play, begin)("first", lease_ms=HOUR_MS)
        play.submit("second")
        decision = play.why("second")
        [holder] = decision.blockers[0].held_by
        reader = Reader(Actor(name="ann"), play.state.policy, lang, play.now)
        facts = {"free": reader.clock(holder.until or play.now), "end": reader.clock(holder.ends_at or play.now)}
        assert facts["free"] != facts["end"]
        assert reader.headline(decision).endswith(sentence.format(**facts))


def test_a_service_named_like_a_user_is_somebody_else() -> None:
    policy, mine = a_policy().team("A").build(), a_workload(owner="ann")
    person = Actor(name="ann")
    service = actor_of({"name": "ann", "kind": "service", "scopes": [APPROVE]})
    assert (person.principal, service.principal) == ("ann", "service:ann")
    assert may_see(person, policy, mine)
    assert may_change(person, policy, mine)
    assert not may_see(service, policy, mine)
    assert not may_change(service, policy, mine)
    assert may_change(actor_of({"name": "ann", "kind": "service", "scopes": [ADMIN]}), policy, mine)


def test_nobody_agrees_to_his_own_request() -> None:
    policy = a_policy().team("A").extension(approvers=("team-lead", "ann", "admin")).build()
    assert approvers(policy, a_workload(), "ann") == ("admin",)
    assert approvers(policy, a_workload(), "bo") == ("ann", "admin")
    assert approvers(a_policy().team("A").build(), a_workload(), "bo") == ()
