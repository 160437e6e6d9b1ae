"""The policy to begin with: the five pools, cut out of the devices of one box, explained in two languages."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .notation import size
from .sample_text import HEAD, PEOPLE, QUEUES, SITE_PEOPLE, TAIL

POOLS = ("train", "prod-train", "online", "batch", "dev")
"""In this order pools get their first device: those at the end stay empty on a box with fewer than five."""

_MORE = ("dev", "train", "dev", "prod-train", "dev", "online", "dev", "batch")
"""Who gets the sixth device and those after it, over and over: people at work before anything else."""

_IN_FILE = ("dev", "train", "prod-train", "online", "batch")
_TITLES = {
    "dev": ("GPU development and test pool", "GPU 开发测试池"),
    "train": ("experiment training pool", "实验训练池"),
    "prod-train": ("production training pool", "生产训练池"),
    "online": ("online inference pool", "在线推理池"),
    "batch": ("batch inference pool", "批量推理池"),
}
_OWNERS = {
    "dev": "share: {max_per_device: 4}",
    "train": "share: {max_per_device: 4}",
    "prod-train": "project: pretrain, environment: production",
    "online": "placement: spread, team: prod-infer, project: serving, environment: production",
    "batch": "share: {max_per_device: 2}",
}

Device = tuple[int, str, str, int]
"""(index, UUID, card model, memory in MiB)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """The sign-ins of the sample: a data scientist in each team, the lead of both, the admin."""

    vision: str = "amy"
    nlp: str = "bo"
    lead: str = "lena"
    admin: str = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Card:
    flavor: str
    model: str
    memory_mib: int


def sample_policy(
    devices: Sequence[Device],
    *,
    hostname: str,
    timezone: str,
    people: People | None = None,
    groups: Sequence[str] | None = None,
    simulated: bool = False,
) -> str:
    """The YAML text of a policy for this box, valid for any number of devices, also none.

    With `groups`, those of a hub, each has a team and a project of its own, led and owned by `people.admin`, in
    place of the sample's two.
    """
    people = people or People()
    if groups is not None:
        people = replace(people, lead=people.admin)
    teams = _teams(groups) if groups is not None else {"vision": "vision", "nlp": "nlp"}
    cards = _cards(devices)
    pools = _cut(devices)
    note = " SIMULATED devices · 模拟设备" if simulated else ""
    parts = [
        HEAD.format(note=note, timezone=_quoted(timezone), admin=_quoted(people.admin)),
        _flavors(cards),
        _pools(people),
        _node(pools, cards, hostname, simulated),
        _people(people) if groups is None else _site_people(people, teams),
        QUEUES.format(notebook_pools="[dev]" if pools["dev"] or not devices else "[dev, train]"),
        _quotas(pools, cards, tuple(teams)),
        TAIL,
        _profiles(pools, cards),
    ]
    return "\n".join(parts)


def _people(people: People) -> str:
    return PEOPLE.format(
        vision=_quoted(people.vision),
        nlp=_quoted(people.nlp),
        lead=_quoted(people.lead),
        admin=_quoted(people.admin),
    )


def _site_people(people: People, teams: Mapping[str, str]) -> str:
    admin = _quoted(people.admin)
    return SITE_PEOPLE.format(
        admin=admin,
        teams="\n".join(
            f"  {team}: {{parent: research, groups: [{_quoted(group)}]}}" for team, group in teams.items()
        ),
        projects="\n".join(f"  {team}: {{team: {team}, owner: {admin}}}" for team in teams),
    )


def _teams(groups: Sequence[str]) -> dict[str, str]:
    """Team name -> group of the hub. Team names are plain; those that the sample has are not given again."""
    found: dict[str, str] = {}
    taken = {"platform", "prod-infer", "research", "lab", "sandbox", "pretrain", "serving"}
    for group in groups or ("gpu-users",):
        slug = re.sub(r"[^a-z0-9]+", "-", group.lower()).strip("-")[:40].strip("-")
        # What begins with a figure, or is one of YAML's own words, would not be read as a name.
        plain = slug[:1].isalpha() and slug not in ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
        base = slug if plain else f"team-{slug}".strip("-")
        name, number = base, 2
        while name in taken:
            name, number = f"{base}-{number}", number + 1
        taken.add(name)
        found[name] = group
    return found


def _quoted(text: str) -> str:
    """Text as a YAML double-quoted scalar, of which JSON's is a part."""
    return json.dumps(text, ensure_ascii=False)


def _clean(text: str, fallback: str, most: int) -> str:
    """The visible characters of a text that a driver or a system gave."""
    kept = "".join(
        char if unicodedata.category(char)[0] not in "CZ" else " " if char.isspace() else "" for char in text
    )
    return " ".join(kept.split())[:most].strip() or fallback


def _cards(devices: Sequence[Device]) -> dict[int, _Card]:
    """The card of each device index, equal cards under one flavor name."""
    kinds: dict[tuple[str, int], _Card] = {}
    names: set[str] = set()
    cards = {}
    for index, _, model, memory in devices:
        shown, mib = _clean(model, "unknown card", 255), max(1, memory)
        if (shown, mib) not in kinds:
            name = _flavor_name(shown, mib, names)
            names.add(name)
            kinds[shown, mib] = _Card(flavor=name, model=shown, memory_mib=mib)
        cards[index] = kinds[shown, mib]
    return cards


def _flavor_name(model: str, mib: int, taken: set[str]) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", model.lower().removeprefix("nvidia ")).strip("-")[:40].strip("-")
    base = f"{slug or 'card'}-{max(1, (mib + 512) // 1024)}g"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    return name


def _cut(devices: Sequence[Device]) -> dict[str, list[int]]:
    """Which device indexes each pool gets, neighbours together."""
    indexes = sorted(index for index, *_ in devices)
    shares = dict.fromkeys(POOLS, 0)
    for turn in range(len(indexes)):
        pool = POOLS[turn] if turn < len(POOLS) else _MORE[(turn - len(POOLS)) % len(_MORE)]
        shares[pool] += 1
    pools, start = {}, 0
    for pool in _IN_FILE:
        pools[pool] = indexes[start : start + shares[pool]]
        start += shares[pool]
    return pools


def _flavors(cards: dict[int, _Card]) -> str:
    lines = [
        "# Card types. Prices are examples: put in what an hour of the card costs you.",
        "# 卡型。价格为示例：请改为每卡每小时的实际成本。",
    ]
    kinds = {card.flavor: card for card in cards.values()}
    if not kinds:
        return "\n".join([*lines, "flavors: {}", ""])
    lines.append("flavors:")
    for card in kinds.values():
        price = max(1, card.memory_mib // 8192)
        vendor = "nvidia" if "ascend" not in card.model.lower() else "huawei"
        lines.append(
            f"  {card.flavor}: {{vendor: {vendor}, model: {_quoted(card.model)}, "
            f"memory: {size(card.memory_mib)}, price_per_hour: {price}}}"
        )
    return "\n".join([*lines, ""])


def _pools(people: People) -> str:
    lines = [
        "# Pools: devices kept for a purpose. Whatever a pool leaves out it has from `defaults`.",
        "# 资源池：按用途划分的设备。未写明的归属取自 defaults。",
        "pools:",
    ]
    for pool in _IN_FILE:
        english, chinese = _TITLES[pool]
        owner = people.lead if pool == "train" else people.admin
        lines.append(f"  # {english} · {chinese}")
        lines.append(f"  {pool}: {{engine: local, owner: {_quoted(owner)}, {_OWNERS[pool]}}}")
    return "\n".join([*lines, ""])


def _node(pools: dict[str, list[int]], cards: dict[int, _Card], hostname: str, simulated: bool) -> str:
    cut = ", ".join(f"{pool}: {pools[pool]}" for pool in _IN_FILE)
    flavors = {card.flavor for card in cards.values()}
    lines = [
        "# This box, cut into the pools by device index. With fewer than five devices some pools stay empty.",
        "# 本机：按设备序号划入各池。设备少于五张时，部分池为空。",
        "nodes:",
        "  box:",
        f"    match: {{hostname: {_quoted(_clean(hostname, 'localhost', 255))}}}",
        f"    pools: {{{cut}}}",
    ]
    if len(flavors) == 1:
        lines.append(f"    flavor: {flavors.pop()}")
    if simulated:
        lines.append("    labels: {simulated: SIMULATED}")
    return "\n".join([*lines, ""])


def _quotas(pools: dict[str, list[int]], cards: dict[int, _Card], teams: Sequence[str]) -> str:
    lines = [
        "# Quotas: what a team or project can count on (guaranteed), how much more it may take while others",
        "# leave it idle (borrow), how much of its own idle part others may take (lend). Lent devices come back.",
        "# 配额：guaranteed 为保障份额；borrow 为他人闲置时最多可多借；lend 为自身闲置时最多可借出。",
        "# 借出的卡在需要时会收回。",
    ]
    rows: list[str] = []
    for pool in _IN_FILE:
        counts: dict[str, int] = {}
        for index in pools[pool]:
            flavor = cards[index].flavor
            counts[flavor] = counts.get(flavor, 0) + 1
        for flavor, count in counts.items():
            rows.extend(_rows(pool, flavor, count, teams))
    if not rows:
        return "\n".join([*lines, "quotas: []", ""])
    return "\n".join([*lines, "quotas:", *(f"  - {{{row}}}" for row in rows), ""])


def _rows(pool: str, flavor: str, count: int, teams: Sequence[str]) -> list[str]:
    """The quota rows for `count` cards of one flavor in one pool; together they guarantee just these."""
    what = f"pool: {pool}, flavor: {flavor}"
    if pool in ("dev", "train"):
        share = count // len(teams)
        rows = [f"team: {team}, {what}, guaranteed: {share}, borrow: {count - share}" for team in teams]
        return [f"team: research, {what}, guaranteed: {count - share * len(teams)}", *rows]
    if pool == "prod-train":
        return [f"project: pretrain, {what}, guaranteed: {count}, borrow: 0"]
    if pool == "online":
        return [
            f"team: prod-infer, {what}, guaranteed: {count}, borrow: 0, lend: 0",
            f"team: prod-infer, {what}, lend: {count}, window: nights",
        ]
    return [f"team: research, {what}, guaranteed: {count}"]


def _profiles(pools: dict[str, list[int]], cards: dict[int, _Card]) -> str:
    """The cards of the spawn form: what a notebook can ask for on this box."""
    own = pools["dev"] or pools["train"]
    profiles = [("cpu-only", "0", "CPU only", "仅 CPU")]
    if own:
        profiles.append(("one-gpu", "1", "One GPU", "单卡"))
        profiles.append(("quarter-gpu", "0.25", "A quarter of a GPU", "四分之一卡"))
    most = max((sum(cards[i].flavor == cards[j].flavor for j in own) for i in own), default=0)
    if most >= 2:
        profiles.append(("two-gpus", "2", "Two GPUs", "双卡"))
    lines = [
        "# What the spawn form offers.",
        "# 启动表单中的选项。",
        "spawn_profiles:",
        *(
            f"  - {{name: {name}, queue: experiment, gpus: {gpus}, title: {{en: {english}, zh: {chinese}}}}}"
            for name, gpus, english, chinese in profiles
        ),
    ]
    return "\n".join([*lines, ""])
