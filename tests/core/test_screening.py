"""What is refused at submit, with the numbers; and what may wait, told apart."""

from __future__ import annotations

from typing import Any

import pytest
from builders import GIB, HOUR_MS, START, Play, PolicyBuilder, a_policy, a_state, a_workload

from hubgov.core.decision import Decision
from hubgov.core.model import QueueHold
from hubgov.core.policy import Caps, Kind, PriorityClass
from hubgov.core.screening import refusal
from hubgov.wire import MAX_SPAN_MS


def site() -> PolicyBuilder:
    """Two nodes of four cards g, one of two cards h; team A has two g guaranteed, its rest is borrowed."""
    policy = (
        a_policy()
        .team("A", guaranteed=2)
        .team("B", data_access="internal")
        .lease(default_ms=HOUR_MS, max_ms=12 * HOUR_MS)
    )
    policy.node("n1", devices=4, cpus=32, ram_mib=256 * GIB).node("n2", devices=4, cpus=64, ram_mib=128 * GIB)
    policy.node("n3", devices=2, flavor="h", labels={"net": "ib"})
    policy.queue("online", class_=PriorityClass.PROTECTED)
    return policy


def judged(policy: PolicyBuilder | None = None, **words: Any) -> Decision | None:
    return refusal(a_state(policy or site()), a_workload(**words), START)


@pytest.mark.parametrize(
    ("words", "code", "numbers"),
    [
        pytest.param({"gpus": 1_000_001}, "above_maximum", (1_000_001_000, 1_000_000_000, "milli_gpus"), id="gpus"),
        pytest.param({"memory_mib": 2**30 + 1}, "above_maximum", (2**30 + 1, 2**30, "mib"), id="memory"),
        pytest.param({"ram_mib": 2**30 + 1}, "above_maximum", (2**30 + 1, 2**30, "mib"), id="ram"),
        pytest.param({"cpus": 10**6 + 1}, "above_maximum", (10**6 + 1, 10**6, "cpus"), id="cpus"),
        pytest.param({"nodes": 10**5 + 1}, "above_maximum", (10**5 + 1, 10**5, "nodes"), id="nodes"),
        pytest.param({"lease_ms": 10**20}, "above_maximum", (10**20, MAX_SPAN_MS, "ms"), id="lease"),
        pytest.param({"start_deadline_ms": 10**20}, "above_maximum", (10**20, MAX_SPAN_MS, "ms"), id="deadline"),
        pytest.param({"name": "x" * 64}, "above_maximum", (64, 63, "characters"), id="name"),
        pytest.param(
            {"lease_ms": 13 * HOUR_MS},
            "above_maximum",
            (13 * HOUR_MS, 12 * HOUR_MS, "ms"),
            id="beyond the queue's lease",
        ),
    ],
)
def test_above_a_maximum(words: dict[str, Any], code: str, numbers: tuple[int, int, str]) -> None:
    decision = judged(**words)
    assert decision is not None
    [blocker] = decision.blockers
    assert (decision.outcome, decision.code) == ("refused", code)
    assert (blocker.need, blocker.limit, blocker.unit) == numbers
    assert (decision.facts["asked"], decision.facts["limit"], decision.facts["unit"]) == numbers


@pytest.mark.parametrize(
    ("words", "field"),
    [
        pytest.param({"gpus": -1}, "gpus", id="a negative request would be a credit"),
        pytest.param({"gpus": 1.5}, "gpus", id="one and a half cards"),
        pytest.param({"gpus": (0, 1)}, "gpus", id="none, or one: which quota would that be"),
        pytest.param({"memory_mib": -1}, "memory", id="negative memory"),
        pytest.param({"memory_mib": 0}, "memory", id="no memory"),
        pytest.param({"cpus": -4}, "cpus", id="negative cpus"),
        pytest.param({"ram_mib": -4}, "ram", id="negative ram"),
        pytest.param({"lease_ms": 0}, "lease", id="a lease of no time"),
        pytest.param({"start_deadline_ms": -1}, "start_deadline", id="a deadline in the past"),
        pytest.param({"nodes": -1}, "nodes", id="negative nodes"),
        pytest.param({"gpus": 3, "nodes": 2}, "nodes", id="three cards on two nodes"),
        pytest.param({"gpus": 0.5, "nodes": 2}, "nodes", id="half a card on two nodes"),
    ],
)
def test_what_makes_no_sense_is_invalid(words: dict[str, Any], field: str) -> None:
    decision = judged(**words)
    assert decision is not None
    assert (decision.code, decision.facts["field"]) == ("invalid", field)


@pytest.mark.parametrize(
    ("policy", "words", "code", "rule"),
    [
        pytest.param(site(), {"kind": Kind.DATA}, "not_allowed", "queues.train.kinds", id="kind"),
        pytest.param(site().queue("train", retired=True), {}, "not_allowed", "retired", id="retired queue"),
        pytest.param(site().project("A", team="A", retired=True), {}, "not_allowed", "retired", id="project"),
        pytest.param(site(), {"priority": 1}, "not_allowed", "queues.train.priority_range", id="priority"),
        pytest.param(site(), {"override": "mine"}, "not_allowed", "queues.train.allow", id="override"),
        pytest.param(site(), {"preemptible": False}, "not_allowed", "queues.train.allow", id="non-preemptible"),
        pytest.param(
            site().pool("p", data_access=("secret",)), {"team": "B"}, "data_access", "data_access", id="data access"
        ),
        pytest.param(
            site().flavor("g", guard_min_memory_mib=40 * GIB).queue("train", flavors=("g",)),
            {"gpus": 0.25}, "fit_guard", "flavors.g.fit_guard", id="fit guard",
        ),
        pytest.param(
            site().queue("train", flavors=("g",)), {"flavors": ("h",)}, "impossible", "queues.train.flavors",
            id="a card type that the queue doesn't have",
        ),
    ],
)  # fmt: skip
def test_what_the_rules_forbid(policy: PolicyBuilder, words: dict[str, Any], code: str, rule: str) -> None:
    decision = judged(policy, **words)
    assert decision is not None
    assert (decision.code, decision.rule) == (code, rule)
    assert decision.next_steps


@pytest.mark.parametrize(
    "words",
    [
        pytest.param({"override": "mine"}, id="override"),
        pytest.param({"preemptible": False}, id="non-preemptible"),
        pytest.param({"priority": 3}, id="priority"),
    ],
)
def test_what_a_queue_allows(words: dict[str, Any]) -> None:
    policy = site().queue("train", allow=("override", "non_preemptible"), priority_range=(0, 5))
    assert judged(policy, **words) is None


def test_protected_work_is_non_preemptible_without_asking() -> None:
    assert judged(queue="online", preemptible=False) is None


@pytest.mark.parametrize(("closed", "code"), [(True, "held"), (False, None)])
def test_a_closed_queue_refuses_and_a_held_one_lets_wait(closed: bool, code: str | None) -> None:
    hold = QueueHold(queue="train", held=True, closed=closed, by="ops", reason="upkeep", at=START)
    decision = refusal(a_state(site(), hold), a_workload(), START)
    assert (decision.code if decision else None) == code


@pytest.mark.parametrize(
    ("words", "need", "most", "unit"),
    [
        pytest.param({"gpus": 5}, 5000, 4000, "milli_gpus", id="more than one node has"),
        pytest.param(
            {"gpus": 12, "nodes": 3}, 12000, 0, "milli_gpus", id="three nodes of one card type there aren't"
        ),
        pytest.param({"gpus": 10, "nodes": 2}, 10000, 8000, "milli_gpus", id="five on each of two nodes"),
        pytest.param({"gpus": 9, "nodes": 0}, 9000, 8000, "milli_gpus", id="more than all nodes have"),
        pytest.param({"memory_mib": 81 * GIB}, 81 * GIB, 80 * GIB, "mib", id="more memory than any card"),
        pytest.param({"gpus": 3, "flavors": ("h",)}, 3000, 2000, "milli_gpus", id="of the one card type"),
        pytest.param({"need": {"net": "gold"}}, 1000, 0, "milli_gpus", id="a label that no node has"),
        pytest.param({"gpus": 3, "need": {"net": "ib"}}, 3000, 2000, "milli_gpus", id="labels: two cards there"),
        pytest.param({"gpus": 0, "need": {"net": "gold"}}, 1, 0, "nodes", id="no device, and no such node"),
        pytest.param(
            {"gpus": 4, "cpus": 65, "flavors": ("g",)}, 4000, 0, "milli_gpus", id="no node with g has those"
        ),
        pytest.param({"gpus": 4, "cpus": 60, "ram_mib": 200 * GIB}, 4000, 2000, "milli_gpus", id="not on one node"),
        pytest.param(
            {"gpus": 3, "queue": "online"}, 3000, 2000, "milli_gpus", id="protected: its guarantee at most"
        ),
    ],
)
def test_what_can_never_start_is_impossible(words: dict[str, Any], need: int, most: int, unit: str) -> None:
    decision = judged(**words)
    assert decision is not None
    assert (decision.code, decision.facts["asked"], decision.facts["most"], decision.facts["unit"]) == (
        "impossible", need, most, unit,
    )  # fmt: skip
    assert decision.blockers


def test_cpus_beyond_every_node_are_named_as_such() -> None:
    policy = (
        a_policy().team("A").node("n1", devices=1, cpus=8, ram_mib=64).node("n2", devices=1, cpus=16, ram_mib=32)
    )
    for words, numbers in (
        ({"cpus": 17}, ("cpus", 17, 16)),
        ({"ram_mib": 65}, ("mib", 65, 64)),
        ({"cpus": 12, "ram_mib": 40}, ("mib", 40, 32)),
    ):
        for gpus in (0, 1):
            decision = judged(policy, gpus=gpus, **words)
            assert decision is not None
            [blocker] = decision.blockers
            assert (blocker.unit, blocker.need, blocker.have) == numbers


@pytest.mark.parametrize("how", [{"drained": True}, {"reachable": False}, {"sick": (0, 1, 2, 3)}])
def test_what_is_down_or_drained_still_counts(how: dict[str, Any]) -> None:
    play = Play(a_policy().team("A").node("box", devices=4))
    play.node_is("box", **how)
    assert play.submit("w", gpus=4) is None
    assert play.state_of("w") == "pending"


def test_no_quota_in_any_window_is_impossible_and_one_at_night_lets_wait() -> None:
    closed = (
        a_policy().team("A", borrow=0, guaranteed=1).node("box", devices=4).window("night", opens=1320, closes=480)
    )
    decision = judged(closed, gpus=2)
    assert decision is not None
    assert (decision.code, decision.facts["most"], decision.blockers[0].scope) == ("impossible", 1000, "quota")
    assert judged(closed.quota("A", guaranteed=4, window="night", unset=("borrow", "lend")), gpus=2) is None


def test_protected_work_of_a_project_with_a_row_gets_that_rows_guarantee_only() -> None:
    policy = site().project("seg", team="A").quota(project="seg", guaranteed=1)
    decision = judged(policy, queue="online", project="seg", gpus=2)
    assert decision is not None
    assert (decision.code, decision.facts["most"]) == ("impossible", 1000)


@pytest.mark.parametrize(
    ("caps", "words", "scope", "numbers"),
    [
        (
            {"per_user": Caps(milli_gpus=2000)},
            {"gpus": 3},
            "queues.train.caps.per_user",
            (3000, 2000, "milli_gpus"),
        ),
        ({"per_project": Caps(cpus=4)}, {"cpus": 5}, "queues.train.caps.per_project", (5, 4, "cpus")),
        ({"total": Caps(workloads=0)}, {}, "queues.train.caps.total", (1, 0, "workloads")),
    ],
)
def test_a_single_request_above_a_cap(
    caps: dict[str, Caps], words: dict[str, Any], scope: str, numbers: tuple[int, int, str]
) -> None:
    decision = judged(site().caps("train", **caps), **words)
    assert decision is not None
    [blocker] = decision.blockers
    assert (decision.code, blocker.scope) == ("above_maximum", scope)
    assert (blocker.need, blocker.limit, blocker.unit) == numbers


def test_an_elastic_request_is_judged_by_its_smallest_count() -> None:
    assert judged(site().caps("train", per_user=Caps(milli_gpus=2000)), gpus=(1, 4)) is None


def test_a_pending_cap_refuses_the_next_in_line_only() -> None:
    play = Play(site().caps("train", per_user=Caps(pending=1)))
    play.hold()
    assert play.submit("a") is None
    refused = play.submit("b")
    assert refused is not None
    assert (refused.code, refused.blockers[0].need, refused.blockers[0].have) == ("too_many_pending", 1, 0)
    assert play.submit("c", owner="bo") is None


def test_the_order_of_the_checks_is_bounds_then_queue_then_caps_then_impossible() -> None:
    """One request that breaks them all hears of the bound first, and of the next as each is mended."""
    policy = site().queue("train", kinds=(Kind.NOTEBOOK,)).caps("train", per_user=Caps(milli_gpus=5000))
    heard = []
    for words in (
        {"gpus": 2_000_000, "lease_ms": 20 * HOUR_MS},
        {"gpus": 6, "lease_ms": 20 * HOUR_MS},
        {"gpus": 6, "lease_ms": 20 * HOUR_MS, "kind": Kind.NOTEBOOK},
        {"gpus": 6, "kind": Kind.NOTEBOOK},
        {"gpus": 5, "kind": Kind.NOTEBOOK},
        {"gpus": 4, "kind": Kind.NOTEBOOK},
    ):
        decision = judged(policy, **words)
        heard.append((decision.code, decision.rule.split(".")[-1]) if decision else None)
    assert heard == [
        ("above_maximum", "gpus"),
        ("not_allowed", "kinds"),
        ("above_maximum", "max"),
        ("above_maximum", "per_user"),
        ("impossible", "devices"),
        None,
    ]
