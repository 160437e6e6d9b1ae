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
from hubgov.control.actor import ADMIN, APPROVE, Actor, approvers, may_change, may_see
from hubgov.core.model import ExtensionState
from hubgov.core.policy import Caps
from hubgov.core.states import Event
from hubgov.service.audit import AUDIT
from hubgov.service.auth import actor_of
from hubgov.service.documents import server_url
from hubgov.service.error_texts import HINTS, MESSAGES, told
from hubgov.service.sentences import Reader

DAILY = {
    "workload_submitted", "workload_admitted", "workload_moved", "allocation_reserved", "server_claimed",
    "processes_known", "documents_saved", "save_requested", "save_answered", "warning_issued",
    "extension_counted", "node_seen", "decision_told", "stop_told", "tariff_ended",
}  # fmt: skip
"""Events of the daily run, which the audit leaves out."""


def _events() -> Iterator[str]:
    """Every event that the sources of core and control write, but for those that the states' own words name."""
    root = Path(hubgov.__file__).parent
    for path in (p for folder in ("core", "control") for p in (root / folder).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Change":
                for keyword in node.keywords:
                    if keyword.arg == "event" and isinstance(keyword.value, ast.Constant):
                        yield str(keyword.value.value)


def test_every_event_is_audited_or_of_the_daily_run() -> None:
    assert set(_events()) - DAILY - {"what_if"} <= set(AUDIT)
    assert {"stop_asked", "retry_cancelled", "allocation_start_overdue", "server_start_asked"} <= set(AUDIT)
    assert len(AUDIT) == len(set(AUDIT))
    known = {f"allocation_{e.value}" for e in Event} | {f"extension_{s.value}" for s in ExtensionState}
    assert {e for e in AUDIT if e.startswith(("allocation_", "extension_"))} <= known
    root = Path(hubgov.__file__).parent
    written = "".join(path.read_text() for folder in ("core", "control") for path in (root / folder).glob("*.py"))
    assert [e for e in AUDIT if e not in known and f'"{e}"' not in written] == []


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
    for name in ("service", "service/handlers", "control"):
        for call in calls(Path(hubgov.__file__).parent / name, errors):
            messages.update(sentences(call.args[0]))
            hints.update(s for keyword in call.keywords if keyword.arg == "hint" for s in sentences(keyword.value))
    assert len(messages) > 40
    assert len(hints) > 30
    # What has no word of its own but a value: "until: …".
    worded = {m for m in messages if re.search("[a-z]{3,}", re.sub(r"^[\w-]+: |X\d", "", m))}
    assert untranslated(worded, MESSAGES) == []
    assert untranslated({h for h in hints if spoken(h)}, HINTS) == []


def test_no_row_of_the_errors_is_left_over() -> None:
    for rows in (MESSAGES, HINTS):
        assert len({english for english, _ in rows}) == len(rows)
        for english, chinese in rows:
            assert blanks(english) == blanks(chinese), english


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
