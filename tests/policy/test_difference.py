"""What an edit changes, in the words of the file, and what it would take from work that is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubgov.cli.verbs.policy import edit_line
from hubgov.core.policy import Policy
from hubgov.policy import InUse, Usage, diff, in_use, load

EXAMPLE = (Path(__file__).parent / "data" / "example.yaml").read_text("utf-8")


def policy_of(text: str) -> Policy:
    loaded = load(text)
    assert loaded.policy is not None, [str(one) for one in loaded.problems]
    return loaded.policy


def edited(*changes: tuple[str, str]) -> Policy:
    text = EXAMPLE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return policy_of(text)


def test_the_same_policy_has_no_difference() -> None:
    assert diff(policy_of(EXAMPLE), policy_of("# another comment\n" + EXAMPLE)) == ()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("max: 12h}", "max: 1d}", ["~ queues.experiment.lease.max: 12h -> 1d"]),
        ("18.50", "18.75", ["~ flavors.a100-80g.price_per_hour: 18.5 -> 18.75"]),
        ("min_memory: 20GiB", "min_memory: 512MiB", ["~ flavors.a100-80g.fit_guard.min_memory: 20GiB -> 512MiB"]),
        ("max_per_device: 4", "max_per_device: 2", ["~ pools.dev.share.max_per_device: 4 -> 2"]),
        ("owner: wei}\n  train", "owner: ann}\n  train", ["~ pools.dev.owner: wei -> ann"]),
        ("count: 2, step: 2h", "count: 3, step: 1h30m", [
            "~ queues.experiment.extension.self_serve.count: 2 -> 3",
            "~ queues.experiment.extension.self_serve.step: 2h -> 1h30m",
        ]),
        ("reason: required", "reason: optional", ["~ queues.experiment.extension.reason: required -> optional"]),
        ("keep: {count: 2, for: 1h}", "keep: {count: 1, for: 1h}", ["~ queues.experiment.idle.keep.count: 2 -> 1"]),
        ("warn: [30m, 10m, 2m]", "warn: [10m]", ["~ queues.experiment.warn: [30m, 10m, 2m] -> [10m]"]),
        ("per_user: {gpus: 2,", "per_user: {gpus: 0.5,", ["~ queues.experiment.caps.per_user.gpus: 2 -> 0.5"]),
        ("max_wait: null", "max_wait: 1d", ["~ queues.experiment.max_wait: null -> 1d"]),
        ("lend: 4}", "lend: 0}", ["~ quotas[team vision, pool train, flavor a100-80g].lend: 4 -> 0"]),
        ("window: nights}", "borrow: 0, window: nights}", [
            "~ quotas[team vision, pool train, flavor a100-80g, window nights].borrow: as outside the window -> 0"
        ]),
        ("days: mon-sun", "days: [sat, sun]", [
            "~ windows.nights.days: [mon, tue, wed, thu, fri, sat, sun] -> [sat, sun]"
        ]),
        ("borrowed: 0.7", "borrowed: 1", ["~ costs.borrowed: 0.7 -> 1"]),
        ("opportunistic: 0.7", "opportunistic: 0.5", ["~ costs.class.opportunistic: 0.7 -> 0.5"]),
        ("period: 10s", "period: 5s", ["~ telemetry.period: 10s -> 5s"]),
        ("amount: 20000", "amount: 100", ["~ projects.seg.budget.amount: 20000 -> 100"]),
        ("logs_after: 30d", "logs_after: null", ["~ archive.logs_after: 30d -> null"]),
        ("dev: [0]", "dev: [0, 8]", ["~ nodes.box.pools.dev: [0] -> [0, 8]"]),
        ("mode: enforce", "mode: observe", ["~ mode: enforce -> observe"]),
        ("gpus: 1,", "gpus: 0.25,", ["~ spawn_profiles.one-gpu.gpus: 1 -> 0.25"]),
        ("  platform: {}", "  platform: {retired: true}", ["~ teams.platform.retired: false -> true"]),
        ("channels: []", "channels: [mail]", ["~ notify.channels: [] -> [mail]"]),
    ],
)  # fmt: skip
def test_a_changed_value_is_told_in_the_words_of_the_file(old: str, new: str, expected: list[str]) -> None:
    assert [edit_line(edit) for edit in diff(policy_of(EXAMPLE), edited((old, new)))] == expected


def test_a_rule_switched_off_and_an_entry_added_are_one_edit_each() -> None:
    idle = next(line for line in EXAMPLE.splitlines() if line.strip().startswith("idle:"))
    new = edited((idle, "    idle: null"), ("  research: {}", "  research: {}\n  nlp: {parent: research}"))
    edits = diff(policy_of(EXAMPLE), new)
    assert [edit.path for edit in edits] == ["projects.nlp", "queues.experiment.idle", "teams.nlp"]
    assert edits[1].after == "null"
    assert "keep: {count: 2, for: 1h}" in (edits[1].before or "")
    assert edits[2].before is None
    assert "parent: research" in edit_line(edits[2])
    assert edit_line(diff(new, policy_of(EXAMPLE))[2]).startswith("- teams.nlp: {")


def test_the_order_of_flavors_is_a_difference() -> None:
    lines = EXAMPLE.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("  l40s-48g"))
    lines[first], lines[first + 1] = lines[first + 1], lines[first]
    edits = diff(policy_of(EXAMPLE), policy_of("\n".join(lines)))
    assert [edit_line(edit) for edit in edits] == [
        "~ flavors (order): a100-80g, l40s-48g, ascend-910b -> a100-80g, ascend-910b, l40s-48g"
    ]


USED = Usage(
    teams={"vision": ("w1",)},
    projects={"seg": ("w1",)},
    queues={"experiment": ("w2", "w1")},
    pools={"online": ("w3",)},
    flavors={"ascend-910b": ("w4",), "l40s-48g": ()},
    nodes={"gpu-b-3": ("w5",), "gpu-b-0": ("w6",)},
    devices={("gpu-a", 7): ("w7",), ("gpu-a", 0): ("w8",), ("gpu-b-3", 0): ("w5",)},
)
SEG = EXAMPLE[EXAMPLE.index("  seg: ") : EXAMPLE.index("queues:\n")]


def test_what_is_in_use_cannot_be_removed() -> None:
    flavors = [line for line in EXAMPLE.splitlines(True) if line.startswith(("  ascend-910b", "  l40s-48g"))]
    online = next(line for line in EXAMPLE.splitlines(True) if line.startswith("  online:"))
    new = edited(
        (SEG, ""),
        *((line, "") for line in flavors),
        (online, ""),
        ("online: [6], ", ""),
        ("count: 4}", "count: 3}"),
        ("devices: 8, islands: [4, 4]", "devices: 4"),
    )
    assert in_use(policy_of(EXAMPLE), new, USED) == (
        InUse(kind="device", name="gpu-a/7", workloads=("w7",), way_out="wait until these have ended"),
        InUse(kind="flavor", name="ascend-910b", workloads=("w4",)),
        InUse(kind="node", name="gpu-b-3", workloads=("w5",)),
        InUse(kind="pool", name="online", workloads=("w3",)),
        InUse(kind="project", name="seg", workloads=("w1",)),
    )


def test_what_nobody_uses_can_be_removed() -> None:
    assert in_use(policy_of(EXAMPLE), edited((SEG, "")), Usage()) == ()


def test_what_is_retired_stays_until_it_is_empty() -> None:
    retired = edited(("owner: ann,", "owner: ann, retired: true,"))
    assert in_use(policy_of(EXAMPLE), retired, USED) == ()
    found = in_use(retired, edited((SEG, "")), USED)
    assert [str(one) for one in found] == ["project seg is in use by w1; mark it retired: true first"]


def test_a_queue_renamed_is_a_queue_removed() -> None:
    new = edited(("  experiment:\n", "  notebooks:\n"), ("queue: experiment", "queue: notebooks"))
    assert in_use(policy_of(EXAMPLE), new, USED) == (
        InUse(kind="queue", name="experiment", workloads=("w1", "w2")),
    )


def test_a_matched_node_is_known_by_its_rule_and_by_its_host() -> None:
    used = Usage(nodes={"box": ("w",)}, devices={("box", 7): ("w",)})
    box = next(line for line in EXAMPLE.splitlines(True) if line.startswith("  box:"))
    assert [one.kind for one in in_use(policy_of(EXAMPLE), edited((box, "")), used)] == ["node"]
    fewer = edited(("[1-5, 7]", "[1-5]"))
    assert [one.name for one in in_use(policy_of(EXAMPLE), fewer, used)] == ["box/7"]
