"""What a refusal says, word by word, in both languages: the number that is in the way, and nothing in the other
language between the words."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from builders import GIB, Play, PolicyBuilder, a_policy

from hubgov.control import policies, submit
from hubgov.control.actor import Actor
from hubgov.core.decision import Decision
from hubgov.core.model import Request
from hubgov.core.policy import Kind
from hubgov.policy import Usage, in_use
from hubgov.service.error_texts import told
from hubgov.service.sentences import Reader

EVERY = frozenset(Kind)


def site() -> PolicyBuilder:
    policy = a_policy().team("A").team("B")
    policy.teams = {name: replace(team, groups=("staff",)) for name, team in policy.teams.items()}
    policy.flavor("huge", memory_mib=999 * GIB)
    return policy.node("box", devices=4, cpus=8, ram_mib=64 * GIB)


STAFF = Actor(name="ann", groups=frozenset({"staff"}))


def read(play: Play, decision: Decision, lang: str = "en") -> str:
    return Reader(Actor(name="ann"), play.state.policy, lang, play.now).headline(decision)


def refused(policy: PolicyBuilder, lang: str, **words: object) -> str:
    play = Play(policy)
    decision = play.submit("w", **words)
    assert decision is not None
    return read(play, decision, lang)


def drafted(policy: PolicyBuilder, who: Actor, **fields: object) -> tuple[Play, Decision]:
    play = Play(policy)
    draft = submit.Draft(queue="train", request=Request(milli_gpus=(1000,)), **fields)
    with pytest.raises(submit.Refused) as raised:
        submit.draw_up(play.state, draft, who, play.now, EVERY)
    return play, raised.value.decision


@pytest.mark.parametrize(
    ("words", "english", "chinese"),
    [
        (
            {"memory_mib": 81 * GIB},
            "no card that queue train could give has 81GiB of memory; the largest, g, has 80GiB.",
            "队列 train 可提供的卡中没有 81GiB 显存的，最大的 g 为 80GiB。",
        ),
        (
            {"ram_mib": 65 * GIB},
            "the most that queue train could give is 64GiB of RAM, this request asks for 65GiB.",
            "队列 train 最多可提供 64GiB 内存，本次请求 65GiB。",
        ),
        (
            {"cpus": 9},
            "the most that queue train could give is 8 CPUs, this request asks for 9.",
            "队列 train 最多可提供 8 个 CPU，本次请求 9。",
        ),
        (
            {"gpus": 5},
            "the most that queue train could give is 4 GPUs, this request asks for 5.",
            "队列 train 最多可提供 4 张 GPU，本次请求 5。",
        ),
    ],
    ids=["memory", "ram", "cpus", "gpus"],
)
def test_what_can_never_start_names_what_is_too_small(words: dict[str, object], english: str, chinese: str) -> None:
    assert refused(site(), "en", **words) == f"Can never start: {english}"
    assert refused(site(), "zh", **words) == f"无法满足：{chinese}"
    # What was taken in line before the card or node went says the same numbers.
    play = Play(site().node("large", devices=6, flavor="huge", cpus=99, ram_mib=999 * GIB))
    play.hold()
    assert play.submit("w", **words) is None
    play.edit(site())
    assert read(play, play.why("w")) == f"Can never start: {english}"


@pytest.mark.parametrize(
    ("policy", "words", "english", "chinese"),
    [
        (site().queue("train", retired=True), {}, "queue train. Allowed: none.", "队列 train。允许：无。"),
        (
            site().project("A", team="A", retired=True), {}, "project A. Allowed: none.", "项目 A。允许：无。",
        ),
        (
            site().queue("train", priority_range=(0, 3)), {"priority": 5}, "priority 5. Allowed: 0 to 3.",
            "优先级 5。允许：0 到 3。",
        ),
    ],
    ids=["retired queue", "retired project", "priority"],
)  # fmt: skip
def test_what_is_not_allowed_is_named_in_the_readers_language(
    policy: PolicyBuilder, words: dict[str, object], english: str, chinese: str
) -> None:
    assert refused(policy, "en", **words).endswith(english)
    said = refused(policy, "zh", **words)
    assert said.endswith(chinese)
    assert not re.search(r"\b(queue|project|team|priority|to)\b", said.replace("queues.", ""))


def test_another_teams_name_is_said_in_the_readers_language() -> None:
    play, decision = drafted(site(), STAFF, project="A", team="B")
    assert (decision.code, read(play, decision)) == ("not_allowed", "Not allowed by team: team B. Allowed: A.")
    assert "团队 B" in read(play, decision, "zh")


def test_who_has_no_project_is_told_whom_to_ask_and_who_has_several_which_to_name() -> None:
    stranger, member = Actor(name="nobody"), STAFF
    for fields in ({}, {"project": "X"}):
        play, decision = drafted(site(), stranger, **fields)
        assert decision.code == "unknown_project"
        said = read(play, decision)
        assert said.startswith("You are in no team, and every request is charged to a project of one.")
        assert "none" in said
        assert read(play, decision, "zh").startswith("你不属于任何团队")
        assert decision.next_steps == ("ask_lead",)
    play, decision = drafted(site(), member)
    assert read(play, decision) == "The project to charge is not named. Your projects: A, B."
    play, decision = drafted(site(), member, project="X")
    assert read(play, decision) == "No project X for you. Your projects: A, B."


def test_work_that_waits_for_other_work_says_so_in_both_languages() -> None:
    play = Play(site())
    play.run("first")
    play.submit("then", after=("first",))
    assert read(play, play.why("then")) == "Waiting for first to end."
    assert read(play, play.why("then"), "zh") == "等待 任务 first 结束。"


def test_a_device_in_use_is_not_said_to_be_retirable() -> None:
    old = site().build()
    new = a_policy().team("A").team("B").node("box", devices=2).build()
    [taken] = in_use(old, new, Usage(devices={("box", 3): ("nb-1",)}))
    assert str(taken) == "device box/3 is in use by nb-1; wait until these have ended"
    both = f"{taken}; queue q is in use by w; mark it retired: true first"
    said = told(f"the new policy takes away what work still needs: {both}", "", "zh")[0]
    assert said.partition("：")[2] == (
        "设备 box/3 正由 nb-1 使用；请等它们结束；队列 q 正由 w 使用；请先标为 retired: true"
    )


def test_what_an_edit_may_not_take_is_said_in_chinese_phrase_by_phrase() -> None:
    play = Play(site())
    play.run("w", gpus=1)
    moved = site().pool("q").node("box", devices=4, pool="q")
    taken = policies._held_elsewhere(play.state, moved.build())
    assert taken
    for sentence in taken:
        said = told(f"the new policy takes away what work still needs: {sentence}", "", "zh")[0]
        assert "设备 box/0 由 w 占用；不能改到资源池 q 作为 g" in said
