"""What a policy says: every key of the documented example, every default, and the public scenarios."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from hubgov.core.policy import (
    HOUR_MS,
    MICRO,
    MINUTE_MS,
    Artefacts,
    Budget,
    Caps,
    CapSet,
    Costs,
    ExtensionRule,
    Fairness,
    Flavor,
    IdleRule,
    Kind,
    LeaseRule,
    Mode,
    NodeRule,
    Order,
    Ownership,
    Placement,
    Policy,
    Pool,
    PriorityClass,
    Project,
    Queue,
    QuotaRow,
    Reclaim,
    RetryRule,
    SpawnProfile,
    Team,
    Tier,
    Window,
)
from hubgov.policy import load, schema

DATA = Path(__file__).parent / "data"
DAY_MS = 24 * HOUR_MS


def policy_of(text: str, version: int = 0) -> Policy:
    loaded = load(text, version=version)
    assert loaded.policy is not None, [str(one) for one in loaded.problems]
    return loaded.policy


@pytest.fixture(scope="module")
def documented() -> Policy:
    return policy_of((DATA / "example.yaml").read_text("utf-8"), version=7)


def test_the_example_s_top_is_read(documented: Policy) -> None:
    assert (documented.version, documented.timezone, documented.currency) == (7, "Asia/Shanghai", "CNY")
    assert documented.mode is Mode.ENFORCE
    assert documented.defaults == Ownership(
        team="platform", project=None, environment="experiment", owner="platform"
    )
    assert documented.caps == CapSet(per_user=Caps(milli_gpus=8000))
    assert documented.fairness == Fairness(half_life_ms=7 * DAY_MS, fair_reclaim=False, sheltered=1)
    assert documented.reclaim == Reclaim(
        quota_cut_delay_ms=None,
        hold_timeout_ms=15 * MINUTE_MS,
        stop_timeout_ms=MINUTE_MS,
        lost_after_ms=10 * MINUTE_MS,
    )
    assert documented.costs == Costs(
        class_factor_micro={PriorityClass.OPPORTUNISTIC: 700_000}, borrowed_factor_micro=700_000
    )
    assert (documented.telemetry_period_ms, documented.max_attached) == (10_000, 20)
    assert documented.archive == {
        "logs_after_ms": 30 * DAY_MS,
        "checkpoints_after_ms": 14 * DAY_MS,
        "to": "archive",
    }
    assert documented.notify_channels == ()


def test_the_example_s_devices_are_read(documented: Policy) -> None:
    assert list(documented.flavors.values()) == [
        Flavor(
            name="a100-80g",
            vendor="nvidia",
            model="NVIDIA A100-SXM4-80GB",
            memory_mib=80 * 1024,
            price_micro_per_hour=18_500_000,
            guard_min_memory_mib=20 * 1024,
        ),
        Flavor(
            name="l40s-48g",
            vendor="nvidia",
            model="NVIDIA L40S",
            memory_mib=48 * 1024,
            price_micro_per_hour=9_000_000,
        ),
        Flavor(
            name="ascend-910b",
            vendor="huawei",
            model="Ascend 910B",
            memory_mib=64 * 1024,
            price_micro_per_hour=12_000_000,
        ),
    ]


def test_the_example_s_pools_and_nodes_are_read(documented: Policy) -> None:
    shared: dict[str, Any] = {"team": "platform", "project": None, "owner": "platform"}
    assert list(documented.pools.values()) == [
        Pool(
            name="dev",
            engine="local",
            ownership=Ownership(team="platform", project="lab", environment="experiment", owner="wei"),
            max_shares_per_device=4,
        ),
        Pool(
            name="train",
            engine="local",
            ownership=Ownership(environment="experiment", **shared),
            data_access=("internal", "restricted"),
        ),
        Pool(
            name="online",
            engine="local",
            ownership=Ownership(environment="production", **shared),
            placement=Placement.SPREAD,
            site="sh",
        ),
    ]
    assert list(documented.nodes.values()) == [
        NodeRule(
            name="gpu-a",
            pool="train",
            flavor="a100-80g",
            devices=8,
            islands=(4, 4),
            cpus=64,
            ram_mib=512 * 1024,
            labels={"net": "ib"},
        ),
        NodeRule(name="gpu-b", pool="train", flavor="a100-80g", devices=8, count=4),
        NodeRule(
            name="box", match_hostname="box", pools={"dev": (0,), "online": (6,), "train": (1, 2, 3, 4, 5, 7)}
        ),
    ]
    assert documented.nodes["gpu-b"].names == ("gpu-b-0", "gpu-b-1", "gpu-b-2", "gpu-b-3")


def test_the_example_s_people_are_read(documented: Policy) -> None:
    assert dict(documented.teams) == {
        "platform": Team(name="platform"),
        "research": Team(name="research"),
        "vision": Team(name="vision", parent="research", groups=("vision",), leads=("wei",), weight=1),
    }
    assert dict(documented.projects) == {
        "lab": Project(name="lab", team="platform", environment="experiment", owner="wei"),
        "seg": Project(
            name="seg",
            team="vision",
            environment="experiment",
            owner="ann",
            tier=Tier.NORMAL,
            budget=Budget(amount_micro=20_000 * MICRO, period="month"),
            data_access="internal",
            artefacts=(Artefacts(path="runs/", after_ms=30 * DAY_MS, by="last_use"),),
        ),
        # The only team without a project has one of its own name.
        "research": Project(name="research", team="research", environment="experiment", owner="platform"),
    }


def test_the_example_s_queue_is_read(documented: Policy) -> None:
    assert documented.queues["experiment"] == Queue(
        name="experiment",
        kinds=(Kind.NOTEBOOK,),
        pools=("dev",),
        flavors=None,
        class_=PriorityClass.STANDARD,
        priority=50,
        priority_range=(0, 0),
        allow=(),
        order=Order.FAIR,
        default_memory_mib=None,
        lease=LeaseRule(default_ms=4 * HOUR_MS, max_ms=12 * HOUR_MS),
        extension=ExtensionRule(
            self_serve_count=2,
            step_ms=2 * HOUR_MS,
            approvers=("team-lead", "admin"),
            max_total_ms=24 * HOUR_MS,
            reason_required=True,
            bridge_ms=0,
        ),
        idle=IdleRule(
            kernel_after_ms=30 * MINUTE_MS,
            after_ms=30 * MINUTE_MS,
            confirm_ms=15 * MINUTE_MS,
            grace_ms=15 * MINUTE_MS,
            keep_count=2,
            keep_for_ms=HOUR_MS,
            max_unverified_ms=4 * HOUR_MS,
        ),
        warn_ms=(30 * MINUTE_MS, 10 * MINUTE_MS, 2 * MINUTE_MS),
        grace_ms=5 * MINUTE_MS,
        checkpoint="best_effort",
        checkpoint_budget_ms=2 * MINUTE_MS,
        min_runtime_ms=10 * MINUTE_MS,
        max_bypass_ms=2 * HOUR_MS,
        max_wait_ms=None,
        attach_ms=MINUTE_MS,
        claim_ms=15 * MINUTE_MS,
        start_deadline_ms=15 * MINUTE_MS,
        environments=None,
        caps=CapSet(per_user=Caps(milli_gpus=2000, workloads=3, pending=20)),
        retry=RetryRule(max=0, backoff_ms=MINUTE_MS),
        cost_factor_micro=MICRO,
    )


def test_the_example_s_quotas_are_read(documented: Policy) -> None:
    row: dict[str, Any] = {"team": "vision", "project": None, "pool": "train", "flavor": "a100-80g"}
    assert documented.quotas == (
        QuotaRow(**row, guaranteed=8000, borrow=8000, lend=4000),
        QuotaRow(**row, guaranteed=16000, window="nights", unset=("borrow", "lend")),
    )
    assert dict(documented.windows) == {
        "nights": Window(name="nights", days=(0, 1, 2, 3, 4, 5, 6), opens=22 * 60, closes=8 * 60)
    }
    assert documented.spawn_profiles == (
        SpawnProfile(name="one-gpu", queue="experiment", gpus_milli=1000, title={"en": "One GPU", "zh": "单卡"}),
    )


SMALL = """\
defaults: {environment: e, owner: o, team: t}
teams: {t: {}}
pools: {p: {engine: local}}
queues:
  q: {kinds: [training], pools: [p]%s}
"""


def queue_with(extra: str) -> Queue:
    return policy_of(SMALL % (f", {extra}" if extra else "")).queues["q"]


def test_a_policy_of_almost_nothing_has_every_default() -> None:
    policy = policy_of(SMALL % "", version=3)
    assert policy == Policy(
        version=3,
        timezone="UTC",
        currency="CNY",
        mode=Mode.ENFORCE,
        defaults=Ownership(team="t", project=None, environment="e", owner="o"),
        flavors={},
        pools={
            "p": Pool(
                name="p",
                engine="local",
                ownership=Ownership(team="t", project=None, environment="e", owner="o"),
            )
        },
        nodes={},
        teams={"t": Team(name="t")},
        projects={"t": Project(name="t", team="t", environment="e", owner="o")},
        queues={"q": Queue(name="q", kinds=(Kind.TRAINING,), pools=("p",))},
    )


IDLE = IdleRule(
    kernel_after_ms=None,
    after_ms=30 * MINUTE_MS,
    confirm_ms=15 * MINUTE_MS,
    grace_ms=15 * MINUTE_MS,
    keep_count=0,
    keep_for_ms=0,
    max_unverified_ms=4 * HOUR_MS,
)
EXTENSION = ExtensionRule(
    self_serve_count=2,
    step_ms=2 * HOUR_MS,
    approvers=("team-lead", "admin"),
    max_total_ms=24 * HOUR_MS,
    reason_required=True,
)


@pytest.mark.parametrize(
    ("extra", "field", "value"),
    [
        ("", "class_", PriorityClass.STANDARD),
        ("", "priority", 0),
        ("", "order", Order.FAIR),
        ("", "lease", LeaseRule(default_ms=4 * HOUR_MS, max_ms=12 * HOUR_MS)),
        ("lease: {}", "lease", LeaseRule(default_ms=4 * HOUR_MS, max_ms=12 * HOUR_MS)),
        ("lease: {default: 1h}", "lease", LeaseRule(default_ms=HOUR_MS, max_ms=12 * HOUR_MS)),
        ("lease: {max: 24h}", "lease", LeaseRule(default_ms=4 * HOUR_MS, max_ms=24 * HOUR_MS)),
        ("class: protected, lease: null", "lease", LeaseRule(default_ms=None, max_ms=None)),
        ("class: protected, lease: {max: null}", "lease", LeaseRule(default_ms=4 * HOUR_MS, max_ms=None)),
        ("", "extension", None),
        ("extension: null", "extension", None),
        ("extension: {}", "extension", EXTENSION),
        ("extension: {self_serve: null, approvers: [], max_total: null, reason: optional}", "extension",
         ExtensionRule()),
        ("extension: {self_serve: {count: 5}, approvers: null, bridge: 5m}", "extension",
         ExtensionRule(self_serve_count=5, step_ms=2 * HOUR_MS, max_total_ms=24 * HOUR_MS, reason_required=True,
                       bridge_ms=5 * MINUTE_MS)),
        ("", "idle", None),
        ("idle: null", "idle", None),
        ("idle: {}", "idle", IDLE),
        ("idle: {keep: null}", "idle", IDLE),
        ("", "warn_ms", (30 * MINUTE_MS, 10 * MINUTE_MS, 2 * MINUTE_MS)),
        ("warn: []", "warn_ms", ()),
        ("", "grace_ms", 5 * MINUTE_MS),
        ("", "checkpoint", "best_effort"),
        ("", "checkpoint_budget_ms", 2 * MINUTE_MS),
        # What is left out never outgrows the grace it has to fit into.
        ("grace: 30s", "checkpoint_budget_ms", 30_000),
        ("", "min_runtime_ms", 0),
        ("", "max_bypass_ms", 2 * HOUR_MS),
        ("", "max_wait_ms", None),
        ("max_wait: 1d", "max_wait_ms", DAY_MS),
        ("", "start_deadline_ms", 15 * MINUTE_MS),
        ("start_deadline: PT1H30M", "start_deadline_ms", 90 * MINUTE_MS),
        ("", "caps", CapSet()),
        ("caps: null", "caps", CapSet()),
        ("caps: {}", "caps", CapSet()),
        ("caps: {per_user: null, total: {gpus: 0.25, cpus: 0}}", "caps",
         CapSet(total=Caps(milli_gpus=250, cpus=0))),
        ("", "retry", RetryRule(max=0, backoff_ms=MINUTE_MS)),
        ("retry: null", "retry", RetryRule(max=0, backoff_ms=MINUTE_MS)),
        ("retry: {max: 3}", "retry", RetryRule(max=3, backoff_ms=MINUTE_MS)),
        ("", "cost_factor_micro", MICRO),
        ("cost_factor: 0.333333", "cost_factor_micro", 333_333),
        ("retired: true", "retired", True),
        ("environments: [python3, 'repo/image:tag']", "environments", ("python3", "repo/image:tag")),
        ("flavors: []", "flavors", ()),
    ],
)  # fmt: skip
def test_what_is_left_out_of_a_queue_has_its_default(extra: str, field: str, value: object) -> None:
    assert getattr(queue_with(extra), field) == value


@pytest.mark.parametrize(
    ("pool", "shares"),
    [
        ("{engine: local}", None),
        ("{engine: local, share: {}}", None),
        ("{engine: local, share: null}", 1),
        ("{engine: local, share: {max_per_device: 4}}", 4),
    ],
)
def test_sharing_a_device_is_free_unless_bounded_or_off(pool: str, shares: int | None) -> None:
    policy = policy_of((SMALL % "").replace("{engine: local}", pool))
    assert policy.pools["p"].max_shares_per_device == shares


def test_an_archive_given_in_part_keeps_the_rest() -> None:
    assert policy_of("archive: {logs_after: 1d}").archive == {
        "logs_after_ms": DAY_MS,
        "checkpoints_after_ms": 14 * DAY_MS,
        "to": "archive",
    }
    assert policy_of("archive: null").archive == {}


def test_a_project_belongs_to_its_team_s_first_lead_when_nothing_says_more() -> None:
    text = (
        "defaults: {environment: e, owner: o, team: t}\n"
        "teams: {t: {}, u: {leads: [ann, bo]}, gone: {retired: true}}\n"
        "projects: {x: {team: u}, y: {}}\n"
        "pools: {p: {engine: local, project: x}}\n"
    )
    policy = policy_of(text)
    assert {name: (p.team, p.owner) for name, p in policy.projects.items()} == {
        "x": ("u", "ann"),
        "y": ("t", "o"),
        "gone": ("gone", "o"),
    }
    assert policy.projects["gone"].retired
    assert policy.pools["p"].ownership == Ownership(team="u", project="x", environment="e", owner="o")


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        ("mon-sun", (0, 1, 2, 3, 4, 5, 6)),
        ("sat,sun", (5, 6)),
        ("[mon-wed, fri]", (0, 1, 2, 4)),
        ("fri-mon", (0, 4, 5, 6)),
        ("Tue", (1,)),
    ],
)
def test_days_are_named_one_by_one_or_as_spans(days: str, expected: tuple[int, ...]) -> None:
    policy = policy_of(f"windows:\n  w:\n    days: {days}\n    from: 00:00\n    to: 24:00\n")
    assert policy.windows["w"] == Window(name="w", days=expected, opens=0, closes=0)


@pytest.mark.parametrize("path", sorted(DATA.glob("*-*.yaml")), ids=lambda path: path.stem)
def test_a_scenario_s_policy_is_right(path: Path) -> None:
    block = re.search(r"^policy:\n((?: .*\n|\n)+)", path.read_text("utf-8"), re.MULTILINE)
    assert block is not None
    loaded = load(textwrap.dedent(block[1]), name=path.name)
    assert loaded.problems == ()
    assert loaded.policy is not None
    assert loaded.policy.projects["A"] == Project(name="A", team="A", environment="experiment", owner="ops")


def test_the_schema_names_every_key_as_the_file_does() -> None:
    made = schema()
    assert set(made["properties"]) >= {"queues", "quotas", "spawn_profiles"}
    assert "class" in made["$defs"]["QueueShape"]["properties"]
    assert made["$defs"]["KeepShape"]["properties"]["for"]["type"] == "string"
    assert made["additionalProperties"] is False


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "---\n", "null\n", "5\n", "[]\n"])
def test_a_file_without_a_policy_is_refused_with_its_line(text: str) -> None:
    loaded = load(text, name="p.yaml")
    assert loaded.policy is None
    assert loaded.problems
    assert all(problem.line >= 1 for problem in loaded.problems)


@pytest.mark.parametrize(("levels", "codes"), [(32, []), (33, ["too_deep"]), (3000, ["too_deep"])])
def test_the_tree_of_teams_has_a_depth_that_can_be_walked(levels: int, codes: list[str]) -> None:
    teams = {f"t{n}": {"parent": f"t{n - 1}"} if n else {} for n in range(levels)}
    text = (
        (DATA / "example.yaml")
        .read_text()
        .replace(
            "teams:\n",
            "teams:\n"
            + "".join(
                f"  {name}: {{{', '.join(f'{k}: {v}' for k, v in team.items())}}}\n" for name, team in teams.items()
            ),
            1,
        )
    )
    assert [problem.code for problem in load(text).errors] == codes
