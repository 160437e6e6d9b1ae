"""Caps that can't be lent: per user, per project and in total, of one queue and over all."""

from __future__ import annotations

from typing import Any

import pytest
from builders import Play, PolicyBuilder, a_policy

from hubgov.core.policy import Caps


def site() -> PolicyBuilder:
    return a_policy().team("A").team("B").node("box", devices=8, cpus=64).queue("other")


@pytest.mark.parametrize(
    ("caps", "first", "second", "waits"),
    [
        pytest.param({"per_user": Caps(workloads=1)}, {}, {}, True, id="one workload a user"),
        pytest.param({"per_user": Caps(workloads=1)}, {}, {"owner": "bo"}, False, id="another user has his own"),
        pytest.param({"per_user": Caps(milli_gpus=2000)}, {"gpus": 2}, {"gpus": 0.5}, True, id="cards of a user"),
        pytest.param({"per_user": Caps(milli_gpus=2000)}, {"gpus": 1}, {"gpus": 1}, False, id="up to the cap"),
        pytest.param(
            {"per_user": Caps(milli_gpus=2000)}, {"gpus": 2}, {"gpus": 0}, False, id="no card, no cap on it"
        ),
        pytest.param({"per_user": Caps(cpus=8)}, {"cpus": 5}, {"cpus": 4}, True, id="cpus of a user"),
        pytest.param({"per_project": Caps(workloads=1)}, {}, {"owner": "bo"}, True, id="one a project"),
        pytest.param(
            {"per_project": Caps(workloads=1)}, {}, {"team": "B"}, False, id="another project has its own"
        ),
        pytest.param({"total": Caps(workloads=1)}, {}, {"team": "B", "owner": "bo"}, True, id="one in all"),
        pytest.param({"total": Caps(workloads=1)}, {}, {"queue": "other"}, False, id="a queue's caps are its own"),
    ],
)
def test_caps_of_a_queue(caps: dict[str, Caps], first: dict[str, Any], second: dict[str, Any], waits: bool) -> None:
    play = Play(site().caps("train", **caps))
    play.submit("first", **first)
    play.submit("second", **second)
    assert play.states("first", "second") == {"first": "reserved", "second": "pending" if waits else "reserved"}
    if waits:
        why = play.why("second")
        [blocker] = why.blockers
        assert (why.code, blocker.code) == ("over_own_limit", "over_own_limit")
        assert [h.workload for h in blocker.held_by] == ["first"]
        assert blocker.have < blocker.need <= (blocker.limit or 0)


def test_caps_over_all_queues_count_them_together() -> None:
    play = Play(site().caps(per_user=Caps(workloads=1)))
    play.submit("first")
    play.submit("second", queue="other")
    assert play.why("second").blockers[0].scope == "caps.per_user"


def test_a_cap_is_free_again_when_the_devices_are() -> None:
    play = Play(site().caps("train", per_user=Caps(workloads=1)))
    play.run("first")
    play.submit("second")
    play.exit("first")
    assert play.state_of("second") == "pending"
    play.gone("first")
    assert play.state_of("second") == "reserved"


def test_named_and_unnamed_cards_count_under_the_same_cap() -> None:
    policy = site().node("nh", devices=2, flavor="h").caps("train", per_user=Caps(milli_gpus=2000))
    play = Play(policy)
    play.submit("any")
    play.submit("g", flavors=("g",))
    play.submit("h", flavors=("h",))
    assert play.states("any", "g", "h") == {"any": "reserved", "g": "reserved", "h": "pending"}


def test_an_elastic_request_takes_what_the_cap_leaves() -> None:
    play = Play(site().caps("train", per_user=Caps(milli_gpus=3000)))
    play.submit("first", gpus=1)
    play.submit("elastic", gpus=(1, 2, 4))
    assert play.bound("elastic").milli_gpus == 2000


def test_a_session_cap_counts_across_pools() -> None:
    policy = site().pool("dev").node("n2", devices=2, pool="dev").queue("train", pools=("p", "dev"))
    play = Play(policy.caps("train", per_user=Caps(workloads=2)))
    for n in range(3):
        play.submit(f"w{n}", gpus=1)
    assert play.state_of("w2") == "pending"
