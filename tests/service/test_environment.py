"""What a server is told of its cards, whatever their vendor, and of the session that it resumes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import Play, a_policy

from hubgov.core.model import WorkloadId
from hubgov.service import environment

DEVICES = {"CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"}


def told(play: Play, name: str) -> dict[str, str]:
    policy, workload = play.state.policy, play.workload(name)
    return environment.variables(
        policy, workload, play.bound(name), service_url="http://127.0.0.1:8083/services/hubgov", site="here"
    )


@pytest.mark.parametrize(
    ("vendor", "variable"),
    [
        ("nvidia", "CUDA_VISIBLE_DEVICES"),
        ("huawei", "ASCEND_RT_VISIBLE_DEVICES"),
        ("Ascend", "ASCEND_RT_VISIBLE_DEVICES"),
        ("amd", "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_cards_are_named_in_their_vendors_variable_and_the_other_is_empty(vendor: str, variable: str) -> None:
    policy = a_policy().team("A").node("box", devices=4)
    policy.flavors["g"] = replace(policy.flavors["g"], vendor=vendor)
    play = Play(policy)
    play.run("w", gpus=2)
    play.run("none", gpus=0)
    found = told(play, "w")
    assert found[variable].split(",") == [share.uuid for share in play.bound("w").devices]
    assert {found[name] for name in DEVICES - {variable}} == {""}
    assert {name: told(play, "none")[name] for name in DEVICES} == dict.fromkeys(DEVICES, "")


def test_which_session_is_resumed_is_told_where_one_is() -> None:
    play = Play(a_policy().team("A").node("box", devices=4))
    play.run("w")
    play.run("again", resumes=WorkloadId("nb-7"))
    assert "HUBGOV_RESUME_FROM" not in told(play, "w")
    assert told(play, "again")["HUBGOV_RESUME_FROM"] == "nb-7"
