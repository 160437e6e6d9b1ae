"""What `hubgov init` would write, and the writing: nothing at all, or all of it."""

from __future__ import annotations

import difflib
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hubgov.cli.files import read_text
from hubgov.demo.checks import timezone
from hubgov.errors import Invalid
from hubgov.joining import block, finding
from hubgov.joining.finding import Devices, Running
from hubgov.joining.looking import Seen, look
from hubgov.policy import People, load, sample_policy

POLICY = "hubgov-policy.yaml"
_LONGEST_GROUP = 63

_NEW = """\
# JupyterHub's configuration; `jupyterhub --generate-config` writes one with every setting explained.
c = get_config()  # noqa: F821
c.JupyterHub.bind_url = "http://127.0.0.1:8000"
# Who may sign in: users of this machine. 可登录的用户：本机用户。
c.Authenticator.allow_all = True
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked for; None is left to what is found."""

    config: Path | None = None
    policy: Path | None = None
    state: Path | None = None
    devices: str = "auto"
    timezone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What would be written. `policy_text` is None where a policy file is there already, `after` equals `before`
    where the hub is joined already."""

    config: Path
    before: bytes | None
    after: bytes
    policy: Path
    policy_text: str | None
    state: Path
    seen: Seen
    groups: Sequence[str]
    left_out: Sequence[str]
    """Groups that no team can be named for."""
    devices: Devices | None
    hub: Running | None

    @property
    def nothing(self) -> bool:
        """Whether all is there already."""
        return self.before == self.after and self.policy_text is None

    def difference(self) -> list[str]:
        """The change of the configuration as lines of a diff."""
        old = (self.before or b"").decode("utf-8", "replace").splitlines()
        new = self.after.decode("utf-8", "replace").splitlines()
        return list(difflib.unified_diff(old, new, str(self.config), str(self.config), lineterm=""))


def plan(wish: Wish) -> Plan:
    """Look at everything, write nothing. Invalid, NotAllowed, NotFound when it can't be done."""
    config = finding.config_file(wish.config)
    before = block.read(config) if os.path.lexists(config) else None
    if before is None and not config.parent.is_dir():
        raise Invalid(f"{config.parent} is no folder", hint="make it, or name another file with --config")
    hubs = finding.running(config) if before is not None else []
    hub = hubs[0] if hubs else None
    folder = hub.folder if hub else config.parent
    seen = _looked_at(config, folder) if before is not None else Seen()
    joined = before is not None and block.block_of(before) is not None
    if not joined and seen.setups:
        raise Invalid(
            f"{config} calls hubgov.setup(c) already, outside of a block of `hubgov init`",
            hint="take that line out, or leave it as it is: the hub is joined",
        )
    if seen.internal_ssl:
        raise Invalid("JupyterHub.internal_ssl can't be used with hubgov", hint="set it to False first")
    state = (wish.state or _state_dir(config, hub)).absolute()
    policy = (wish.policy or config.with_name(POLICY)).absolute()
    if joined:
        assert before is not None
        policy = Path(str(seen.settings.get("policy_file") or policy))
        state = Path(str(seen.settings.get("state_dir") or state))
    known = finding.groups_of(seen, folder)
    fitting = [name for name in sorted(known) if len(name) <= _LONGEST_GROUP and name.isprintable()]
    found: Devices | None = None
    text: str | None = None
    if not joined or not policy.exists():
        found = finding.devices(wish.devices)
    if policy.exists():
        _refuse_bad(policy)
    elif found is not None:
        text = _policy(found, wish, seen, fitting)
    after = before if joined and before is not None else _after(before, policy, state, seen, found)
    return Plan(
        config=config,
        before=before,
        after=after,
        policy=policy,
        policy_text=text,
        state=state,
        seen=seen,
        groups=fitting,
        left_out=[name for name in known if name not in fitting],
        devices=found,
        hub=hub,
    )


def _looked_at(config: Path, folder: Path) -> Seen:
    seen = look(config, folder)
    if seen.trouble:
        where = f"{config}:{seen.line}" if seen.line else str(config)
        raise Invalid(f"{where}: {seen.trouble}", hint="mend the configuration first: the hub can't read it either")
    return seen


def _state_dir(config: Path, hub: Running | None) -> Path:
    """Where the hub's own user can keep what is private to him: that of the hub that runs, else who calls."""
    if (hub.uid if hub else os.geteuid()) == 0:
        return Path("/var/lib/hubgov")
    return (hub.folder if hub else config.parent) / "hubgov-state"


def _refuse_bad(policy: Path) -> None:
    loaded = load(read_text(str(policy)), name=str(policy))
    if loaded.policy is None:
        raise Invalid(str(loaded.errors[0]), hint=f"hubgov policy check {policy}")


def _policy(found: Devices, wish: Wish, seen: Seen, groups: Sequence[str]) -> str:
    return sample_policy(
        found.found,
        hostname=socket.gethostname(),
        timezone=timezone(wish.timezone),
        people=People(admin=seen.admins[0] if seen.admins else "admin"),
        groups=groups,
        simulated=found.simulated,
    )


def _after(before: bytes | None, policy: Path, state: Path, seen: Seen, found: Devices | None) -> bytes:
    return block.joined(_NEW.encode() if before is None else before, lines(policy, state, seen, found, before))


def lines(policy: Path, state: Path, seen: Seen, found: Devices | None, before: bytes | None) -> str:
    """The lines of the block."""
    port = finding.free_port()
    rows = [
        "# Written by `hubgov init`; `hubgov init --remove` takes it away. 由 hubgov init 写入，--remove 可移除。",
        "import hubgov",
        "",
        "c = get_config()  # noqa: F821",
        f"c.HubGov.state_dir = {str(state)!r}",
        f"c.HubGov.policy_file = {str(policy)!r}",
    ]
    if found is not None:
        rows.append(f"c.HubGov.devices = {'simulated' if found.simulated else 'real'!r}")
    if port != 8083:
        rows.append(f"c.HubGov.service_port = {port}")
    if before is not None and not seen.spawner_set:
        rows += [
            "# As before. Without this line each server runs in a box with its own devices, in a new home.",
            "# 与原来一致。去掉此行后，每个服务器在独立沙箱中运行，主目录为新目录。",
            "c.JupyterHub.spawner_class = 'jupyterhub.spawner.LocalProcessSpawner'",
        ]
    admins = f", admins={tuple(seen.admins)!r}" if seen.admins else ""
    return "\n".join([*rows, f"hubgov.setup(c{admins})", ""])


def carry_out(made: Plan) -> Path | None:
    """Write it: the policy, then the configuration in one step. The backup's path; None where nothing was there.

    The new configuration is tried before it counts. What was written is taken back when a later step fails.
    """
    drafted = block.draft(made.config, made.after, like=made.config if made.before is not None else None)
    written: list[Path] = []
    try:
        tried = look(drafted, made.hub.folder if made.hub else made.config.parent)
        if tried.trouble or tried.setups != 1:
            raise Invalid(
                f"the hub could not read the new {made.config.name}: {tried.trouble or 'setup is not called once'}",
                hint="nothing was written; add the lines by hand where they fit",
            )
        if made.policy_text is not None:
            new_file(made.policy, made.policy_text)
            written.append(made.policy)
        kept = block.keep(made.config, made.before) if made.before is not None else None
        written += [kept] if kept else []
        block.put(drafted, made.config, made.before)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    finally:
        drafted.unlink(missing_ok=True)
    return kept


def new_file(path: Path, text: str) -> None:
    """The file, which must not be there: not over another's, not through a link."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def remove(config: Path, *, write: bool) -> tuple[list[str], Path | None]:
    """Take the block away: (the diff, the backup's path once written). No lines where there is no block."""
    before = block.read(config)
    after = block.parted(before)
    old, new = (text.decode("utf-8", "replace").splitlines() for text in (before, after))
    shown = list(difflib.unified_diff(old, new, str(config), str(config), lineterm=""))
    if before == after or not write:
        return shown, None
    drafted = block.draft(config, after, like=config)
    try:
        kept = block.keep(config, before)
        block.put(drafted, config, before)
        return shown, kept
    finally:
        drafted.unlink(missing_ok=True)


def interpreter_differs(made: Plan) -> bool:
    """Whether the hub that runs has another Python than this one: hubgov must be installed there."""
    if made.hub is None:
        return False
    program = Path(made.hub.program)
    return program.is_absolute() and program.parent.resolve() != Path(sys.executable).parent.resolve()
