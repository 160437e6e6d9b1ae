"""What `hubgov doctor` says of an installation: one small function for each line, of the facts alone.

A line is green, amber (it works, but not as it should) or red (it does not), and names the command that mends it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import quote

from hubgov.core.policy import Policy
from hubgov.joining.scene import Scene

LEAST_MIB, LOW_MIB = 64, 1024
AHEAD_MS = 60_000
STALE_SECONDS = 120


class Colour(StrEnum):
    GREEN = "green"
    AMBER = "amber"
    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line: the check's name, its colour, the key of its sentence with the facts, the command that mends it."""

    check: str
    colour: Colour
    key: str
    facts: dict[str, object] = field(default_factory=dict)
    mend: str = ""


def _green(check: str, key: str, **facts: object) -> Line:
    return Line(check=check, colour=Colour.GREEN, key=key, facts=facts)


def _amber(check: str, key: str, mend: str, **facts: object) -> Line:
    return Line(check=check, colour=Colour.AMBER, key=key, facts=facts, mend=mend)


def _red(check: str, key: str, mend: str, **facts: object) -> Line:
    return Line(check=check, colour=Colour.RED, key=key, facts=facts, mend=mend)


def python(scene: Scene) -> Line:
    shown = ".".join(map(str, scene.python))
    if scene.python < (3, 11):
        return _red("python", "python_old", "python3.11 -m venv VENV", version=shown)
    return _green("python", "python", version=shown)


def jupyterhub(scene: Scene) -> Line:
    major = scene.jupyterhub.partition(".")[0]
    if major != "6":
        key = "jupyterhub_other" if scene.jupyterhub else "jupyterhub_none"
        return _red("jupyterhub", key, 'pip install "jupyterhub>=6,<7"', version=scene.jupyterhub)
    return _green("jupyterhub", "jupyterhub", version=scene.jupyterhub, hubgov=scene.hubgov)


def config(scene: Scene) -> Line:
    if scene.config_trouble:
        mend = (
            f"python -m jupyterhub -f {shlex.quote(scene.config)} --show-config" if scene.config else "hubgov init"
        )
        return _red("config", "config_bad", mend, path=scene.config or "-", why=scene.config_trouble)
    if not scene.seen.setups:
        return _red("config", "config_not_joined", _init(scene), path=scene.config)
    return _green("config", "config", path=scene.config)


def hub(scene: Scene) -> Line:
    if scene.hub_answers:
        return _green("hub", "hub", port=scene.seen.port)
    if scene.hub is not None:
        return _red("hub", "hub_silent", f"kill {scene.hub.pid}; {_start(scene)}", pid=scene.hub.pid)
    return _amber("hub", "hub_off", _start(scene))


def service(scene: Scene) -> Line:
    port = scene.seen.settings.get("service_port", 8083)
    if scene.health is None:
        if not scene.hub_answers:
            return _amber("service", "service_off", _start(scene))
        return _red("service", "service_silent", "journalctl -u jupyterhub | grep hubgov", port=port)
    if scene.health.get("version") != scene.hubgov:
        facts = {"running": scene.health.get("version"), "installed": scene.hubgov}
        return _red("service", "service_version", "systemctl restart jupyterhub", **facts)
    if scene.health.get("status") != "ok":
        return _red("service", "service_trouble", "hubgov doctor --json", why=scene.health.get("trouble") or "-")
    return _green("service", "service", pid=scene.health.get("pid"), version=scene.hubgov)


def port(scene: Scene) -> Line:
    number = int(scene.seen.settings.get("service_port", 8083))
    if number in (scene.seen.port, scene.seen.hub_port):
        return _red("port", "port_shared", _config_line(scene, "c.HubGov.service_port = 8084"), port=number)
    if scene.port_holder:
        return _red("port", "port_taken", f"ss -ltnp 'sport = :{number}'", port=number)
    return _green("port", "port", port=number)


def ledger(scene: Scene) -> Line:
    found = scene.ledger
    if found.trouble:
        mend = f"ls -l {shlex.quote(scene.folder.path)}"
        return _red("ledger", "ledger_trouble", mend, url=found.shown, why=found.trouble)
    if found.damage:
        return _red(
            "ledger",
            "ledger_damaged",
            f"cp LAST_BACKUP {shlex.quote(found.shown.partition('///')[2])}",
            url=found.shown,
            why=found.damage,
        )
    if not found.there or not found.revision:
        return _amber("ledger", "ledger_none", _start(scene), url=found.shown)
    if found.revision != found.head:
        return _amber("ledger", "ledger_behind", _start(scene), have=found.revision, want=found.head)
    return _green("ledger", "ledger", url=found.shown, revision=found.revision)


def leader(scene: Scene) -> Line:
    if scene.health is None:
        return _amber("leader", "leader_none", _start(scene))
    return _green("leader", "leader", pid=scene.health.get("pid"), epoch=scene.health.get("epoch"))


def policy(scene: Scene) -> Line:
    if scene.policy_problems:
        file = str(scene.seen.settings.get("policy_file") or "FILE")
        return _red(
            "policy", "policy_bad", f"hubgov policy check {shlex.quote(file)}", why=scene.policy_problems[0]
        )
    if scene.policy is None:
        return _amber("policy", "policy_none", "hubgov policy init policy.yaml")
    if scene.policy.mode.value == "observe":
        return _amber("policy", "policy_observe", "hubgov policy apply FILE  # mode: enforce")
    return _green("policy", "policy", zone=scene.policy.timezone)


def devices(scene: Scene) -> Line:
    found = scene.devices
    if found is None or not found.found:
        return _red("devices", "devices_none", "nvidia-smi", why=found.why if found else "-")
    count = len(found.found)
    if found.simulated and scene.nvidia_nodes:
        facts = {"simulated": count, "nodes": scene.nvidia_nodes, "why": found.why}
        return _red("devices", "devices_hidden", "nvidia-smi", **facts)
    if found.simulated:
        line = _config_line(scene, "c.HubGov.devices = 'real'")
        return _amber("devices", "devices_simulated", line, real=0, simulated=count, why=found.why)
    return _green("devices", "devices", real=count, simulated=0, why=found.why)


def isolation(scene: Scene) -> Line:
    if not scene.seen.boxed:
        line = _config_line(scene, "c.JupyterHub.spawner_class = 'hubgov_spawner.HubGovSpawner'")
        return _amber("isolation", "isolation_spawner", line, spawner=scene.seen.spawner.rpartition(".")[2])
    if scene.isolation == "broken":
        return _red("isolation", "isolation_broken", "apt-get install bubblewrap", why=scene.isolation_why)
    if scene.isolation == "root":
        return _green("isolation", "isolation_root")
    if scene.isolation == "userns":
        return _amber("isolation", "isolation_userns", f"sudo {_start(scene)}")
    return _amber("isolation", "isolation_none", "apt-get install bubblewrap", why=scene.isolation_why or "-")


def proxy(scene: Scene) -> Line:
    if not scene.seen.proxy.rpartition(".")[2].lower().startswith(("configurablehttp", "configurable-http")):
        return _green("proxy", "proxy_other", name=scene.seen.proxy)
    if scene.proxy.startswith("old"):
        return _red("proxy", "proxy_old", "npm install -g configurable-http-proxy", path=scene.proxy[4:])
    if not scene.proxy.startswith("configurable"):
        return _red("proxy", "proxy_none", "npm install -g configurable-http-proxy")
    return _green("proxy", "proxy", name=scene.proxy)


def private_files(scene: Scene) -> Line:
    folder, token = scene.folder, scene.token
    if folder.mode is None:
        return _amber("private_files", "folder_none", _start(scene), path=folder.path)
    for found, wanted in ((folder, 0o700), (token, 0o600)):
        if found.mode is not None and found.mode & 0o077:
            mend = f"chmod {wanted:o} {shlex.quote(found.path)}"
            return _red("private_files", "file_open", mend, path=found.path, mode=f"{found.mode:o}")
    if folder.uid != scene.me and scene.me != 0:
        mend = f"sudo hubgov doctor --config {shlex.quote(scene.config)}"
        return _amber("private_files", "folder_anothers", mend, path=folder.path, uid=folder.uid)
    return _green("private_files", "private_files", path=folder.path)


def cullers(scene: Scene) -> Line:
    if scene.seen.cullers:
        mend = f"${{EDITOR:-vi}} {shlex.quote(scene.config)}"
        return _amber("cullers", "cullers", mend, names=", ".join(scene.seen.cullers))
    return _green("cullers", "cullers_none")


def lab(scene: Scene) -> Line:
    if scene.lab:
        return _red("lab", "lab_missing", "pip install --force-reinstall hubgov", what=scene.lab)
    return _green("lab", "lab")


def clock(scene: Scene) -> Line:
    newest = scene.ledger.newest_at
    if (
        newest is not None
        and int(scene.seen.settings.get("clock_rate", 1)) == 1
        and newest - scene.now_ms > AHEAD_MS
    ):
        return _red("clock", "clock_behind", "timedatectl set-ntp true", seconds=(newest - scene.now_ms) // 1000)
    if int(scene.seen.settings.get("clock_rate", 1)) > 1:
        line = _config_line(scene, "c.HubGov.clock_rate = 1")
        return _amber("clock", "clock_fast", line, rate=scene.seen.settings["clock_rate"])
    probes = (scene.health or {}).get("probes") or {}
    stale = [name for name, probe in probes.items() if int(probe.get("age_seconds", 0)) > STALE_SECONDS]
    if stale:
        return _amber("clock", "probe_stale", "nvidia-smi", names=", ".join(stale))
    return _green("clock", "clock", zone=scene.policy.timezone if scene.policy else "UTC")


def disk(scene: Scene) -> Line:
    if scene.network_disk and scene.ledger.shown.startswith("sqlite"):
        mend = _config_line(scene, "c.HubGov.state_dir = '/var/lib/hubgov'")
        return _red("disk", "disk_network", mend, path=scene.folder.path, kind=scene.network_disk)
    mend = f"df -h {shlex.quote(scene.folder.path)}"
    if scene.free_mib < LEAST_MIB:
        return _red("disk", "disk_full", mend, free=scene.free_mib, path=scene.folder.path)
    if scene.free_mib < LOW_MIB:
        return _amber("disk", "disk_low", mend, free=scene.free_mib, path=scene.folder.path)
    return _green("disk", "disk", free=scene.free_mib)


def spawns(scene: Scene) -> Line:
    """A spawn that waits attached counts as one of the hub's: it must not take all of them."""
    attached = scene.policy.max_attached if scene.policy else 20
    limit = scene.seen.concurrent_spawns
    if limit and limit <= attached:
        line = _config_line(scene, f"c.JupyterHub.concurrent_spawn_limit = {attached * 3}")
        return _amber("spawns", "spawns_few", line, limit=limit, attached=attached)
    return _green("spawns", "spawns", limit=limit or "-", attached=attached)


def named_servers(scene: Scene) -> Line:
    """How many servers one user may have is the policy's matter; the hub's own limit may be in its way."""
    limit = scene.seen.named_servers
    caps = [
        queue.caps.per_user.workloads
        for queue in (scene.policy.queues.values() if scene.policy else ())
        if queue.caps.per_user.workloads is not None
    ]
    most = max(caps, default=0)
    if limit and most and limit < most - 1:
        line = _config_line(scene, f"c.JupyterHub.named_server_limit_per_user = {most}")
        return _amber("named_servers", "named_few", line, limit=limit, most=most)
    return _green("named_servers", "named", limit=limit or "-")


def groups(scene: Scene) -> Line:
    """Groups of the policy that the hub doesn't know, and users who are in no team."""
    if scene.policy is None:
        return _amber("groups", "policy_none", "hubgov policy init policy.yaml")
    if not (scene.groups or scene.users):
        return _amber("groups", "groups_unseen", _ask(scene, "GET", "groups"))
    wanted = {group for team in scene.policy.teams.values() for group in team.groups}
    unknown = sorted(wanted - set(scene.groups)) if not scene.seen.manage_groups else []
    if unknown:
        mend = _ask(scene, "POST", f"groups/{unknown[0]}")
        return _amber("groups", "groups_unknown", mend, names=", ".join(unknown))
    without = _in_no_team(scene, scene.policy)
    if without:
        group = next(iter(sorted(wanted)), "GROUP")
        mend = _ask(scene, "POST", f"groups/{group}/users", json.dumps({"users": without}))
        shown = ", ".join(without[:5]) + (" …" if len(without) > 5 else "")
        return _amber("groups", "groups_without", mend, names=shown, count=len(without))
    return _green("groups", "groups", count=len(wanted))


def _in_no_team(scene: Scene, policy: Policy) -> list[str]:
    of = {user: frozenset(g for g, members in scene.groups.items() if user in members) for user in scene.users}
    return [user for user in scene.users if not policy.projects_of(user, of[user])]


def _init(scene: Scene) -> str:
    return f"hubgov init --config {shlex.quote(scene.config)} --apply"


def _ask(scene: Scene, method: str, path: str, body: str = "") -> str:
    """A call of the hub's REST interface with an administrator's token."""
    url = f"http://127.0.0.1:{scene.seen.port}{scene.seen.base_url}hub/api/{quote(path)}"
    data = f" -d {shlex.quote(body)}" if body else ""
    return f'curl -X {method} -H "Authorization: token $TOKEN" {shlex.quote(url)}{data}'


def _start(scene: Scene) -> str:
    return f"python -m jupyterhub -f {shlex.quote(scene.config)}"


def _config_line(scene: Scene, line: str) -> str:
    return f"{line}  # {scene.config}"


ALWAYS: Sequence[Callable[[Scene], Line]] = (python, jupyterhub, config)
"""Checks that need no configuration that can be read."""

JOINED: Sequence[Callable[[Scene], Line]] = (
    hub, service, leader, port, ledger, policy, devices, isolation, proxy, private_files, cullers, lab, clock, disk,
    spawns, named_servers, groups,
)  # fmt: skip
"""Checks of a hub whose configuration could be read."""


def all_of(scene: Scene) -> list[Line]:
    """Every line, in the order in which they are worth mending."""
    wanted = ALWAYS if scene.config_trouble else (*ALWAYS, *JOINED)
    return [check(scene) for check in wanted]
