"""The policy to begin with: right on any box, with the five pools and something for each person to do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubgov.core.policy import Kind, Policy, PriorityClass
from hubgov.policy import People, load, sample_policy

MODEL = "NVIDIA H200"


def sample(count: int, *, simulated: bool = False) -> Policy:
    devices = [(index, f"GPU-{index:04d}", MODEL, 143_771) for index in range(count)]
    text = sample_policy(devices, hostname="box", timezone="Asia/Shanghai", simulated=simulated)
    loaded = load(text)
    assert loaded.policy is not None, [str(one) for one in loaded.errors]
    assert {problem.code for problem in loaded.problems} <= {"no_devices"}
    return loaded.policy


@pytest.mark.parametrize("count", range(17))
def test_the_sample_is_right_on_a_box_of_any_size(count: int) -> None:
    policy = sample(count)
    assert set(policy.pools) == {"dev", "train", "prod-train", "online", "batch"}
    cut = policy.nodes["box"].pools
    assert set(cut) == set(policy.pools)
    assert sorted(index for indexes in cut.values() for index in indexes) == list(range(count))
    guaranteed = sum(row.guaranteed for row in policy.quotas if row.window is None)
    assert guaranteed == count * 1000
    if count:
        # Whoever works in a notebook finds a device, however small the box.
        assert any(cut[pool] for pool in policy.queues["experiment"].pools)
    if count >= 5:
        assert all(cut.values())
        assert len(cut["dev"]) == max(len(indexes) for indexes in cut.values())


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, {"train": (0,)}),
        (2, {"train": (0,), "prod-train": (1,)}),
        (4, {"train": (0,), "prod-train": (1,), "online": (2,), "batch": (3,)}),
        (6, {"dev": (0, 1), "train": (2,), "prod-train": (3,), "online": (4,), "batch": (5,)}),
        (8, {"dev": (0, 1, 2), "train": (3, 4), "prod-train": (5,), "online": (6,), "batch": (7,)}),
    ],
)
def test_pools_fill_in_order_and_the_last_stay_empty(count: int, expected: dict[str, tuple[int, ...]]) -> None:
    cut = sample(count).nodes["box"].pools
    assert {pool: indexes for pool, indexes in cut.items() if indexes} == expected


def test_the_sample_has_a_queue_for_every_kind_of_work() -> None:
    policy = sample(6)
    assert {kind for queue in policy.queues.values() for kind in queue.kinds} == set(Kind)
    assert policy.queues["inference"].class_ is PriorityClass.PROTECTED
    assert policy.queues["inference"].lease.max_ms is None
    assert policy.queues["experiment"].idle is not None
    assert policy.queues["experiment"].extension is not None
    assert {"guaranteed", "borrow"} & set(policy.quotas[-1].unset) == set()
    night = next(row for row in policy.quotas if row.window == "nights")
    assert (night.lend, night.unset) == (1000, ("guaranteed", "borrow"))


def test_the_spawn_form_offers_what_the_box_has() -> None:
    assert [profile.name for profile in sample(0).spawn_profiles] == ["cpu-only"]
    assert [profile.gpus_milli for profile in sample(1).spawn_profiles] == [0, 1000, 250]
    six = sample(6).spawn_profiles
    assert [profile.gpus_milli for profile in six] == [0, 1000, 250, 2000]
    assert all(set(profile.title) == {"en", "zh"} for profile in six)


def test_each_person_has_a_place() -> None:
    policy = sample(6)
    assert policy.projects_of("amy", frozenset({"vision"})) == ("seg",)
    assert policy.projects_of("bo", frozenset({"nlp"})) == ("chat",)
    assert set(policy.projects_of("lena", frozenset())) >= {"seg", "chat", "sandbox", "pretrain"}
    assert policy.leads_of("vision") == {"lena"}
    assert policy.defaults.owner == "admin"


def test_comments_speak_both_languages_and_simulation_is_said() -> None:
    text = sample_policy([], hostname="box", timezone="UTC", simulated=True)
    assert "SIMULATED" in text.splitlines()[0]
    comments = [line for line in text.splitlines() if line.strip().startswith("#")]
    chinese = sum(any("\u4e00" <= char <= "\u9fff" for char in line) for line in comments)
    assert chinese >= 15
    assert sample(2, simulated=True).nodes["box"].labels == {"simulated": "SIMULATED"}
    assert sample(2).nodes["box"].labels == {}


def test_other_people_can_be_named() -> None:
    people = People(vision="jo hn", nlp="o'neil", lead='"', admin="# root")
    loaded = load(sample_policy([], hostname="h", timezone="UTC", people=people))
    assert loaded.policy is not None
    assert loaded.policy.projects["seg"].owner == "jo hn"
    assert loaded.policy.defaults.owner == "# root"


def test_cards_of_several_kinds_are_several_flavors() -> None:
    devices = [(0, "a", "Card A", 81_920), (1, "b", "card-a", 81_920), (3, "c", "Card A", 40_960), (7, "d", "", 0)]
    loaded = load(sample_policy(devices, hostname="box", timezone="UTC"))
    assert loaded.policy is not None, [str(one) for one in loaded.errors]
    assert [flavor.memory_mib for flavor in loaded.policy.flavors.values()] == [81_920, 81_920, 40_960, 1]
    assert loaded.policy.nodes["box"].flavor is None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.text(max_size=80), st.integers(0, 2**20)), max_size=8),
    st.text(max_size=70),
)
def test_no_card_or_host_is_too_odd(cards: list[tuple[str, int]], hostname: str) -> None:
    devices = [(index, "", model, memory) for index, (model, memory) in enumerate(cards)]
    loaded = load(sample_policy(devices, hostname=hostname, timezone="UTC"))
    assert loaded.policy is not None, [str(one) for one in loaded.errors]
