"""Which devices: islands, pack and spread, shares of one card, memory, labels, CPUs, several nodes."""

from __future__ import annotations

from typing import Any

import pytest
from builders import GIB, Play, PolicyBuilder, a_policy, a_state, a_workload
from hypothesis import given
from hypothesis import strategies as st

from hubgov.core.decide import choose
from hubgov.core.model import ANY_NODES
from hubgov.core.placement import offers
from hubgov.core.policy import Kind


def got(play: Play, name: str) -> list[str]:
    """`node/index` of every device it has, with the share where it isn't a whole card; [] while it waits."""
    allocation = play.allocation(name)
    shares = allocation.devices if allocation is not None else ()
    return [f"{s.node}/{s.index}" + (f":{s.milli}" if s.milli < 1000 else "") for s in shares]


def box(*islands: int, **rules: Any) -> PolicyBuilder:
    return a_policy().team("A").node("box", devices=sum(islands), islands=islands, **rules)


@pytest.mark.parametrize(
    ("islands", "taken", "gpus", "devices"),
    [
        pytest.param((4, 4), 0, 4, [0, 1, 2, 3], id="a whole island"),
        pytest.param((4, 4), 1, 4, [4, 5, 6, 7], id="an island that is whole, not the first free cards"),
        pytest.param((4, 4), 1, 3, [1, 2, 3], id="the smallest island that holds it"),
        pytest.param((4, 4), 2, 6, [2, 3, 4, 5, 6, 7], id="as few islands as possible"),
        pytest.param((2, 2, 4), 0, 2, [0, 1], id="two from an island of two"),
        pytest.param((2, 4, 2), 0, 4, [2, 3, 4, 5], id="four from the island of four"),
        pytest.param((2, 4, 2), 0, 6, [0, 1, 2, 3, 4, 5], id="the largest first, then the smallest that does"),
    ],
)
def test_islands_are_kept_together(islands: tuple[int, ...], taken: int, gpus: int, devices: list[int]) -> None:
    play = Play(box(*islands))
    if taken:
        play.submit("taken", gpus=taken)
        assert got(play, "taken") == [f"box/{i}" for i in range(taken)]
    play.submit("w", gpus=gpus)
    assert got(play, "w") == [f"box/{i}" for i in devices]


@pytest.mark.parametrize(("spread", "node"), [(False, "n1"), (True, "n2")])
def test_pack_takes_the_fullest_node_and_spread_the_emptiest(spread: bool, node: str) -> None:
    policy = a_policy().team("A").node("n1", devices=4).node("n2", devices=4)
    if spread:
        policy.spread()
    play = Play(policy)
    play.submit("first", gpus=2)
    assert got(play, "first")[0].startswith("n1"), "ties go by name"
    play.submit("w", gpus=2)
    assert {at[:2] for at in got(play, "w")} == {node}


def test_pack_leaves_the_empty_node_for_who_needs_it_whole() -> None:
    play = Play(a_policy().team("A").node("n1", devices=4).node("n2", devices=4))
    for n in range(4):
        play.submit(f"s{n}", gpus=1)
    play.submit("whole", gpus=4)
    assert got(play, "whole") == [f"n2/{i}" for i in range(4)]


@pytest.mark.parametrize(
    ("spread", "wanted"),
    [(False, ["box/0:500", "box/0:500", "box/1:500"]), (True, ["box/0:500", "box/1:500", "box/0:500"])],
)
def test_shares_are_packed_or_spread_over_cards(spread: bool, wanted: list[str]) -> None:
    play = Play(box(2).spread() if spread else box(2))
    for name in ("a", "b", "c"):
        play.submit(name, gpus=0.5)
    assert [got(play, name)[0] for name in ("a", "b", "c")] == wanted


def test_a_share_never_spans_cards() -> None:
    play = Play(box(2).spread())
    for name, gpus in (("a", 0.6), ("b", 0.6), ("c", 0.5)):
        play.submit(name, gpus=gpus, memory_mib=GIB)
    assert play.states("a", "b", "c") == {"a": "reserved", "b": "reserved", "c": "pending"}
    [blocker] = [b for b in play.why("c").blockers if b.code != "waiting_quota"]
    assert (blocker.code, blocker.need, blocker.have) == ("waiting_topology", 500, 400)


def test_a_whole_card_is_whole() -> None:
    play = Play(box(2))
    play.submit("half", gpus=0.5)
    play.submit("whole", gpus=1)
    play.submit("two", gpus=2)
    assert got(play, "whole") == ["box/1"]
    assert got(play, "two") == []
    play.submit("late", gpus=0.5)
    assert got(play, "late") == ["box/0:500"]


@pytest.mark.parametrize(("most", "running"), [(1, 2), (2, 4), (3, 6), (None, 8)])
def test_how_many_may_share_one_card(most: int | None, running: int) -> None:
    play = Play(box(2).pool("p", max_shares_per_device=most))
    for n in range(9):
        play.submit(f"w{n}", gpus=0.25)
    assert len(play.holding()) == running


def test_shares_must_fit_on_one_card_in_memory_too() -> None:
    """Two cards of 48 GiB, three halves with 30 GiB each: 36 GiB free in sum, 18 on each."""
    play = Play(
        a_policy().team("A", guaranteed=0).quota("A", flavor="h", guaranteed=2).node("box", devices=2, flavor="h")
    )
    for name in ("w1", "w2", "w3"):
        play.submit(name, gpus=0.5, memory_mib=30 * GIB)
    assert play.holding() == {"w1", "w2"}
    assert play.why("w3").code == "waiting_devices"
    play.start("w1")
    play.finish("w1")
    assert play.holding() == {"w2", "w3"}


def test_sixteen_halves_in_one_breath_are_two_a_card() -> None:
    play = Play(box(8))
    play.hold()
    for n in range(17):
        play.submit(f"w{n}", gpus=0.5, memory_mib=30 * GIB)
    play.release()
    assert len(play.holding()) == 16
    assert play.usage("A") == 8000


def test_a_share_without_memory_gets_its_fraction_and_one_with_memory_what_it_asked() -> None:
    play = Play(box(1))
    play.submit("a", gpus=0.25)
    play.submit("b", gpus=0.25, memory_mib=50 * GIB)
    play.submit("c", gpus=0.25)
    assert [play.bound(n).devices[0].memory_mib for n in ("a", "b")] == [20 * GIB, 50 * GIB]
    assert play.state_of("c") == "pending", "10 of 80 GiB are left, a quarter is 20"


def test_a_whole_card_gets_all_its_memory_whatever_was_asked() -> None:
    play = Play(box(1))
    play.submit("a", gpus=1, memory_mib=GIB)
    assert play.bound("a").devices[0].memory_mib == 80 * GIB


def test_a_card_with_too_little_memory_is_passed_over() -> None:
    play = Play(box(1).node("small", devices=1, flavor="h"))
    play.submit("a", gpus=1, memory_mib=60 * GIB)
    play.submit("b", gpus=1)
    assert (got(play, "a"), got(play, "b")) == (["box/0"], ["small/0"])


def test_a_sick_card_on_each_node_leaves_no_room_for_a_pair() -> None:
    play = Play(a_policy().team("A").node("n1", devices=2).node("n2", devices=2))
    play.node_is("n1", sick=(0,))
    play.node_is("n2", sick=(1,))
    play.submit("pair", gpus=2)
    play.submit("one", gpus=1)
    assert (got(play, "pair"), got(play, "one")) == ([], ["n1/1"])
    play.node_is("n2")
    assert got(play, "pair") == ["n2/0", "n2/1"]


@pytest.mark.parametrize("how", [{"drained": True}, {"reachable": False}, {"sick": (0, 1)}])
def test_a_node_that_is_out_gets_nothing_new_and_keeps_what_runs(how: dict[str, Any]) -> None:
    play = Play(box(2))
    play.run("a", gpus=1)
    play.node_is("box", **how)
    play.submit("b", gpus=1)
    assert play.states("a", "b") == {"a": "running", "b": "pending"}
    assert play.why("b").code == "waiting_devices"
    play.node_is("box")
    assert play.state_of("b") == "reserved"


def test_a_fenced_card_is_not_handed_on_before_its_process_is_gone() -> None:
    play = Play(box(1))
    play.run("old", gpus=1, kind=Kind.NOTEBOOK)
    play.submit("new", gpus=1)
    play.cancel("old")
    play.tick(76_000)
    assert play.states("old", "new") == {"old": "quarantined", "new": "pending"}
    assert play.usage("A") == 0
    play.tick(86_400_000)
    assert play.state_of("new") == "pending"
    play.gone("old")
    assert play.states("old", "new") == {"old": "cancelled", "new": "reserved"}


@pytest.mark.parametrize(
    ("nodes", "sizes", "gpus", "wanted"),
    [
        pytest.param(2, (4, 4), 8, {"n0": 4, "n1": 4}, id="half on each"),
        pytest.param(2, (4, 3), 8, {}, id="one too few on the second: nothing at all"),
        pytest.param(2, (8, 2, 2), 4, {"n1": 2, "n2": 2}, id="packed onto the fullest"),
        pytest.param(4, (8,), 4, {}, id="four nodes are four nodes"),
        pytest.param(ANY_NODES, (4, 3), 7, {"n0": 4, "n1": 3}, id="any: whatever fits"),
        pytest.param(ANY_NODES, (4, 3), 8, {}, id="any: all or none"),
        pytest.param(ANY_NODES, (4, 2), 2, {"n1": 2}, id="any: the fullest first"),
        pytest.param(1, (4, 4), 8, {}, id="one node is one node"),
    ],
)
def test_several_nodes_all_or_none(nodes: int, sizes: tuple[int, ...], gpus: int, wanted: dict[str, int]) -> None:
    policy = a_policy().team("A")
    for n, size in enumerate(sizes):
        policy.node(f"n{n}", devices=size)
    state = a_state(policy)
    chosen = choose(state, a_workload(gpus=gpus, nodes=nodes), state.policy_text.applied_at)  # type: ignore[union-attr]
    found: dict[str, int] = {}
    for share in chosen.fit.devices if chosen else ():
        found[share.node] = found.get(share.node, 0) + 1
    assert found == wanted


def test_a_share_may_say_any_nodes_and_still_takes_one_card() -> None:
    play = Play(box(1))
    play.submit("a", gpus=0.5)
    play.submit("b", gpus=0.5, nodes=ANY_NODES)
    assert got(play, "b") == ["box/0:500"]


def test_a_gang_starts_whole_as_soon_as_the_last_one_gave_back_all() -> None:
    play = Play(a_policy().team("A", guaranteed=8).node("n1", devices=4).node("n2", devices=4))
    play.run("g1", gpus=8, nodes=2)
    play.submit("g2", gpus=8, nodes=2)
    play.finish("g1")
    assert len(got(play, "g2")) == 8


def test_labels_must_be_there() -> None:
    policy = a_policy().team("A").node("plain", devices=4).node("ib", devices=1, labels={"net": "ib"})
    play = Play(policy)
    play.submit("w", gpus=1, need={"net": "ib"})
    play.submit("next", gpus=1, need={"net": "ib"})
    assert (got(play, "w"), got(play, "next")) == (["ib/0"], [])


@pytest.mark.parametrize(("field", "unit"), [("cpus", "cpus"), ("ram_mib", "mib")])
def test_cpus_and_ram_of_a_node_limit_it_too(field: str, unit: str) -> None:
    play = Play(box(4, cpus=8, ram_mib=8))
    play.submit("a", gpus=1, **{field: 6})
    play.submit("b", gpus=1, **{field: 3})
    play.submit("c", gpus=1, **{field: 2})
    assert play.states("a", "b", "c") == {"a": "reserved", "b": "pending", "c": "reserved"}
    [blocker] = play.why("b").blockers
    assert (blocker.unit, blocker.need, blocker.have, blocker.limit) == (unit, 3, 0, 8)
    assert {h.workload for h in blocker.held_by} == {"a", "c"}


def test_a_gang_uses_the_cpus_of_each_of_its_nodes() -> None:
    play = Play(a_policy().team("A").node("n1", devices=4, cpus=8).node("n2", devices=4, cpus=8))
    play.submit("gang", gpus=4, nodes=2, cpus=6)
    play.submit("one", gpus=1, cpus=4)
    assert play.state_of("one") == "pending"


def test_work_without_a_device_needs_a_node_only() -> None:
    play = Play(box(1, cpus=4))
    play.submit("a", gpus=0, cpus=3)
    play.submit("b", gpus=0, cpus=2)
    assert play.states("a", "b") == {"a": "reserved", "b": "pending"}
    assert (play.bound("a").node, play.bound("a").flavor, play.usage("A")) == ("box", None, 0)
    play.node_is("box", drained=True)
    [blocker] = play.why("b").blockers
    assert (blocker.unit, blocker.need, blocker.have) == ("nodes", 1, 0)


# --- which card type ----------------------------------------------------------------------------------


def both(**quota: Any) -> PolicyBuilder:
    policy = a_policy().team("A").node("ng", devices=2, flavor="g").node("nh", devices=2, flavor="h")
    for flavor, guaranteed in quota.items():
        policy.quota("A", flavor=flavor, guaranteed=guaranteed)
    return policy


@pytest.mark.parametrize(
    ("policy", "asked", "flavor"),
    [
        pytest.param(both(), (), "h", id="both borrowed: the cheaper"),
        pytest.param(both(g=1), (), "g", id="entitled before cheaper"),
        pytest.param(both(g=1, h=1), (), "h", id="both entitled: the cheaper"),
        pytest.param(both(), ("g",), "g", id="the one asked for"),
        pytest.param(both().queue("train", flavors=("g",)), (), "g", id="the queue has one only"),
        pytest.param(both().flavor("h", retired=True), (), "g", id="a retired one gets nothing new"),
        pytest.param(both().flavor("h", price_micro_per_hour=10**7), (), "g", id="the same price: declared order"),
        pytest.param(
            both().flavor("h", guard_min_memory_mib=20 * GIB), (), "h", id="a whole card passes the guard"
        ),
    ],
)
def test_the_best_card_type(policy: PolicyBuilder, asked: tuple[str, ...], flavor: str) -> None:
    play = Play(policy)
    play.submit("w", gpus=1, flavors=asked)
    assert play.bound("w").flavor == flavor


@pytest.mark.parametrize(
    ("words", "passes"),
    [
        ({"gpus": 0.25}, True),
        ({"gpus": 0.2}, False),
        ({"gpus": 0.2, "memory_mib": 20 * GIB}, True),
        ({"gpus": 1, "memory_mib": 10 * GIB}, False),
        ({"gpus": 1}, True),
        ({"gpus": 0.2, "override": "a demo"}, True),
    ],
)
def test_the_fit_guard_keeps_small_requests_off_big_cards(words: dict[str, Any], passes: bool) -> None:
    policy = box(1).flavor("g", guard_min_memory_mib=20 * GIB)
    state = a_state(policy)
    found = [o.flavor for o in offers(state.policy, a_workload(**words))]
    assert found == (["g", "h"] if passes else ["h"])


def test_a_queues_default_memory_stands_for_what_was_not_said() -> None:
    state = a_state(box(1).flavor("g", guard_min_memory_mib=20 * GIB).queue("train", default_memory_mib=8 * GIB))
    assert [o.flavor for o in offers(state.policy, a_workload(gpus=1))] == ["h"]


def test_data_access_opens_and_closes_pools() -> None:
    policy = a_policy().pool("secret", data_access=("restricted",)).queue("train", pools=("secret", "p"))
    policy.team("A", data_access="internal").team("B", data_access="restricted").team("C")
    state = a_state(policy)
    pools = {t: {o.pool for o in offers(state.policy, a_workload(team=t))} for t in ("A", "B", "C")}
    assert pools == {"A": {"p"}, "B": {"p", "secret"}, "C": {"p", "secret"}}


def test_elastic_takes_the_largest_count_that_fits() -> None:
    play = Play(box(4))
    play.submit("a", gpus=(1, 2, 8))
    play.submit("b", gpus=(1, 2, 4))
    play.submit("c", gpus=(1, 2, 4))
    assert [len(got(play, n)) for n in ("a", "b", "c")] == [2, 2, 0]


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=6),
    st.sampled_from([250, 500, 1000, 2000, 3000]),
)
def test_it_fits_where_a_search_by_hand_finds_room(
    sizes: list[int], taken: list[tuple[int, int]], milli: int
) -> None:
    """Against counting free cards: whole ones on one node, or one card with that share free."""
    policy = a_policy().team("A").team("Z")
    for n, size in enumerate(sizes):
        policy.node(f"n{n}", devices=size)
    play = Play(policy)
    for n, (quarter, _) in enumerate(taken):
        play.submit(f"t{n}", team="Z", gpus=(quarter + 1) / 4)
    free = {(n, i): 1000 for n, size in enumerate(sizes) for i in range(size)}
    for allocation in play.state.allocations.values():
        for share in allocation.devices:
            free[int(share.node[1:]), share.index] -= share.milli
    if milli < 1000:
        wanted = any(room >= milli for room in free.values())
    else:
        whole = [n for (n, _), room in free.items() if room == 1000]
        wanted = any(whole.count(n) * 1000 >= milli for n in range(len(sizes)))
    assert (choose(play.state, a_workload(gpus=milli / 1000), play.now) is not None) == wanted
