"""The HTTP contract: the documents of the REST interface as frozen dataclasses, and how amounts are written.

Standard library only, so that the spawner, the Lab extension and the command line can use it without the
rest. JSON is snake_case; times are RFC 3339 UTC; durations are whole seconds; GPUs are numbers with at most
three decimals; money is `{"amount": "120.500000", "currency": "CNY"}`. What the contract names and this version
doesn't know (idle phases, checkpoints, expected starts, …) is there and empty.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

API = "/api/v1"
MAX_SPAN_MS = 10 * 365 * 24 * 3600 * 1000
"""The longest duration that is accepted anywhere: ten years."""
MAX_MILLI_GPUS = 10**6 * 1000
MAX_MEMORY_MIB = 1024**3
MAX_NAME = 63
"""Visible characters of a name."""

# --- states by what a client does with them (their words: `texts.STATES`) -----------------------------

WAITING_STATES = frozenset({"pending", "held", "lost"})
"""In line; a lost one is on its way back there."""
STARTING_STATES = frozenset({"admitted", "starting"})
FINAL_STATES = frozenset({"succeeded", "failed", "cancelled", "expired", "culled", "refused"})

# --- amounts as text ---------------------------------------------------------------------------------

_UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000}
_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.ASCII)
_ISO_SPAN = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", re.ASCII)
_SIZE = re.compile(r"(\d+)(MiB|GiB|TiB|PiB)", re.ASCII)
_SIZES_MIB = {"MiB": 1, "GiB": 1024, "TiB": 1024**2, "PiB": MAX_MEMORY_MIB}


def parse_span(text: str) -> int:
    """Milliseconds of a duration such as `90s`, `30m`, `1h30m`, `2d` or ISO 8601 `PT1H30M`; ValueError else."""
    text = text.strip()
    found = _SPAN.fullmatch(text) or _ISO_SPAN.fullmatch(text)
    if not text or not found or not any(found.groups()) or len(text) > 40:
        raise ValueError(f"{text[:40]!r} is not a duration; write 90s, 30m, 4h, 2d, 1h30m or PT1H30M")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    span = days * _UNITS_MS["d"] + hours * _UNITS_MS["h"] + minutes * _UNITS_MS["m"] + seconds * 1000
    if span > MAX_SPAN_MS:
        raise ValueError(f"{text[:40]!r} is longer than ten years")
    return span


def format_span(span_ms: int) -> str:
    """A duration in the shortest exact notation, in whole seconds: `1h30m`; `0s` for none."""
    rest = abs(span_ms) // 1000
    parts = []
    for unit in ("d", "h", "m", "s"):
        size = _UNITS_MS[unit] // 1000
        if rest >= size:
            parts.append(f"{rest // size}{unit}")
            rest %= size
    return ("-" if span_ms < 0 and parts else "") + ("".join(parts) or "0s")


def parse_memory(text: str) -> int:
    """MiB of a size such as `512MiB` or `80GiB`; ValueError else. Decimal units are refused: they mislead."""
    found = _SIZE.fullmatch(text.strip()) if len(text) <= 40 else None
    if not found:
        raise ValueError(f"{text[:40]!r} is not a memory size; write it as 512MiB, 80GiB or 1TiB")
    size = int(found[1]) * _SIZES_MIB[found[2]]
    if size > MAX_MEMORY_MIB:
        raise ValueError(f"{text[:40]!r} is larger than 1PiB")
    return size


def gpus(milli: int) -> int | float:
    """Milli-GPUs as the number that JSON shows: 1000 -> 1, 250 -> 0.25."""
    return milli // 1000 if milli % 1000 == 0 else milli / 1000


# --- documents ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    amount: str
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRef:
    """One device, or part of one, that a workload holds."""

    node: str
    index: int
    uuid: str
    slice: str | None = None
    simulated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    from_: str
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRef:
    id: str
    outcome: str
    at: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What a session is told, decided and recorded by the server: a warning, once per (lease version, threshold), a
    decision, or a stop by another (`by` whom, and the reason)."""

    id: str
    kind: str
    threshold_seconds: int
    deadline: str
    issued_at: str
    quiet_seconds: int = 0
    """Of an idle session or kernel: for how long."""
    subject: str = ""
    """The document of a kernel that was shut down."""
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What a user asked for and what became of it."""

    id: str
    version: int
    now: str
    clock_rate: int
    name: str
    kind: str
    owner: str
    team: str
    project: str
    environment: str
    queue: str
    class_: str
    priority: int
    state: str
    gpus: int | float
    model: str | None = None
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    why: str | None = None
    headline: str = ""
    end_reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    failure_class: str | None = None
    note: str = ""
    ended_by: str = ""
    """Who ended it when it wasn't its owner; `note` says why."""
    flavor: str | None = None
    nodes: int | str = 1
    memory_mib: int | None = None
    cpus: int | None = None
    ram_mib: int | None = None
    devices: tuple[DeviceRef, ...] = ()
    simulated: bool = False
    entitled: bool | None = None
    preemptible: bool = True
    submitted_at: str
    started_at: str | None = None
    ended_at: str | None = None
    expires_at: str | None = None
    grace_until: str | None = None
    hard_end_at: str | None = None
    binding_rule: str | None = None
    lease_seconds: int | None = None
    lease_version: int | None = None
    extensions_left: int | None = None
    extension_step_seconds: int | None = None
    keeps_left: int | None = None
    idle_phase: str | None = None
    idle_deadline: str | None = None
    """When it is taken back, or kept no longer."""
    idle_since: str | None = None
    """When the window of idleness began; null while it works."""
    idle_after_seconds: int | None = None
    position: int | None = None
    latest_start: str | None = None
    latest_start_basis: str = "none"
    expected_start: Range | None = None
    wait_seconds: int = 0
    attach_seconds: int | None = None
    """How long a spawn may wait attached before it goes to the waiting page; its queue's `attach`."""
    cost: Money | None = None
    attempt: int = 0
    evictions: int = 0
    url: str | None = None
    server: str | None = None
    checkpoint: CheckpointRef | None = None
    notices: tuple[Notice, ...] = ()
    save_requested: str | None = None
    """Id of the save that Lab and its server extension are asked to make now; null when none is due."""
    resume_documents: tuple[str, ...] = ()
    """Documents to open again, relative to the server's root folder: those of the workload resumed."""
    extension: Extension | None = None
    """The last request for more time."""
    command: tuple[str, ...] = ()
    """What a job runs; empty for a notebook, and for who may not read what is inside."""
    cwd: str = ""
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """What a job's owner set; shown to him and to admins."""
    timezone: str = "UTC"
    """The policy's: the hub's pages show times in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A piece of what a job wrote: answer of GET /workloads/{id}/logs. Offsets are bytes, of one attempt."""

    workload: str
    attempt: int
    offset: int
    """Where `text` begins: the offset asked for and what was left out since."""
    next_offset: int
    """What to ask for next."""
    text: str
    """UTF-8; what is none is U+FFFD. Never cut within a character."""
    left_out: int = 0
    """Bytes between the offset asked for and `offset` that weren't kept."""
    end: bool = False
    """Whether this attempt is over and nothing follows."""
    trouble: str = ""
    """Why bytes were left out, where the disk was the cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    workload: str
    owner: str
    until: str | None
    """When it is free at the latest, grace and stop included, if nobody extends."""
    ends_at: str | None = None
    """The end of its lease, as its owner sees it, while it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """One thing in the way, with the numbers compared. `have` is the room left and may be negative."""

    code: str
    need: int | float
    have: int | float
    limit: int | float | None = None
    unit: str = "gpus"
    scope: str = ""
    """Place in the quota tree or in the rules."""
    node: str | None = None
    pool: str | None = None
    flavor: str | None = None
    held_by: tuple[Holder, ...] = ()
    frees_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    change: str
    start: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One sign of work or idleness of a running session: busy, idle or unknown, with its evidence in words.

    `measured` tells use of the machine from claims, which count for `max_unverified` at most.
    """

    kind: str
    level: str
    text: str
    busy_at: str | None = None
    age_seconds: int = 0
    measured: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Granted, waiting, refused or needs_approval, with every number compared: one object on every surface."""

    outcome: str
    code: str
    headline: str
    rule: str = ""
    blockers: tuple[Blocker, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    latest_start: str | None = None
    latest_start_basis: str = "none"
    expected_start: Range | None = None
    position: int | None = None
    rank: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    cost: Money | None = None
    evaluated_at: str = ""
    policy_version: int = 0
    next_steps: tuple[str, ...] = ()
    simulated: bool = False
    """Whether the devices that it is about are made up."""
    signals: tuple[Signal, ...] = ()
    """Of a running session with an idle rule: why it counts as busy, idle or unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    id: str
    workload: str
    state: str
    by_seconds: int
    expires_at: str | None
    delays: tuple[Delay, ...] = ()
    needs: tuple[str, ...] = ()
    requested_by: str = ""
    reason: str = ""
    decided_by: str | None = None
    decided_at: str | None = None
    decision_reason: str | None = None
    decision: Decision | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Who would wait longer, by how long; `by_seconds` null: without any latest start."""

    workload: str
    team: str
    by_seconds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    team: str
    project: str | None
    pool: str
    flavor: str
    guaranteed: int | float
    borrow: int | float | None
    lend: int | float | None
    used: int | float
    borrowed: int | float
    lent: int | float
    available: int | float
    window: str | None
    next_change: str | None
    simulated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    node: str
    index: int
    uuid: str
    pool: str | None
    team: str | None
    project: str | None
    environment: str | None
    owner: str | None
    flavor: str | None
    state: str
    health: str
    workload: str | None
    used_mib: int | None
    utilisation: int | None
    unknown_because: str | None
    age_seconds: int | None
    isolation: str
    simulated: bool
    holder: str | None = None
    since: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedDocument:
    """One document at the end of a session: saved means written, fsynced and read back equal."""

    path: str
    outcome: str
    bytes: int = 0
    sha256: str = ""
    saved_at: str | None = None
    copy: str | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelReport:
    """A kernel that ended with the session, and what it was doing."""

    id: str
    name: str
    path: str
    busy: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveReport:
    """What the server extension says about one save: `asked_lab` is false when no browser answered."""

    save: str
    asked_lab: bool
    documents: tuple[SavedDocument, ...] = ()
    kernels: tuple[KernelReport, ...] = ()
    terminals: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelActivity:
    """What the server extension says of one kernel: whether it is heard, how many code requests it works on,
    whether all that it does is wait for input, how many seconds ago it last worked and its document was edited."""

    id: str
    name: str
    path: str = ""
    state: str = "alive"
    """starting, alive, restarting or dead."""
    heard: bool = True
    """Whether it could be listened to; of one that couldn't, no requests say nothing."""
    requests: int = 0
    waits: bool = False
    busy_seconds_ago: int | None = None
    edited_seconds_ago: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEnd:
    """What came of shutting a kernel down: empty, or why it was not."""

    id: str
    failed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityReport:
    """What the server extension says of its session; ages rather than times, since clocks differ."""

    kernels: tuple[KernelActivity, ...] = ()
    terminals: int = 0
    jobs: int = 0
    """Terminals in which something runs in the foreground."""
    edited_seconds_ago: int | None = None
    ended: tuple[KernelEnd, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityAnswer:
    """When the next report is due, and the kernels to shut down, their documents saved first."""

    period_seconds: int
    end_kernels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What was saved, lost, used and charged by a session that is over."""

    workload: Workload
    documents: tuple[SavedDocument, ...]
    kernels: tuple[KernelReport, ...]
    terminals: int
    saved_by_lab: bool | None
    used_seconds: int
    gpu_seconds: int
    cost: Money
    devices_free_at: str | None
    lost: tuple[str, ...]
    evidence: tuple[str, ...] = ()
    """Why it counted as idle, a line each; empty where it ended otherwise."""
    timezone: str = "UTC"
    """The policy's: pages show its times in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """What was used and what it cost, under the values of the dimensions that were asked for. GPU time of the
    team's account, at list price, what all factors take off it (negative where they add to it) and what is left; of
    these, what was borrowed; and what the pool carried: of attempts that failed to start, credited at list price,
    and of time past the end. `list_cost` - `discount` = `cost`, exactly."""

    gpu_seconds: int
    list_cost: Money
    discount: Money
    cost: Money
    borrowed_gpu_seconds: int
    failed_gpu_seconds: int
    credited: Money
    overhead_gpu_seconds: int
    team: str | None = None
    project: str | None = None
    user: str | None = None
    queue: str | None = None
    kind: str | None = None
    flavor: str | None = None
    day: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The rows of a period and their exact total, as far as the reader may see them: from `from_` up to `to`, not
    including it. `simulated_left_out`: there is usage of simulated devices that isn't counted."""

    by: tuple[str, ...]
    from_: str
    to: str
    timezone: str
    items: tuple[CostRow, ...]
    total: CostRow
    simulated: bool
    simulated_left_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRef:
    """A process that can't be mistaken for a later one with the same pid."""

    pid: int
    start_ticks: int
    boot_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What the spawner needs to start what was granted: answer of POST /workloads/{id}/launch."""

    workload: Workload
    allocation: str
    attempt: int
    device_nodes: tuple[str, ...]
    environment: Mapping[str, str]
