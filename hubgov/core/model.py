"""The records that the ledger keeps and the core reasons about: immutable values, ids as their own types.

Units: GPUs in thousandths (`milli`), memory in MiB, instants and spans in milliseconds (`clock.Instant`).
A record is never changed in place; a `Change` carries the one before and the one after.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NewType

from hubgov.clock import Instant
from hubgov.core.devices import DeviceKey, SeenNode
from hubgov.core.events import KNOWN
from hubgov.core.idleness import Idleness, KernelEnding
from hubgov.core.policy import Kind, Policy
from hubgov.core.states import CHARGED, AllocationState, WorkloadState

WorkloadId = NewType("WorkloadId", str)
AllocationId = NewType("AllocationId", str)
ExtensionId = NewType("ExtensionId", str)

ANY_NODES = 0
"""`Request.nodes` of a workload that may be spread over whatever fits."""


# --- workloads ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a workload asks for. Frozen at submit; a change of mind is another request.

    `milli_gpus` are the counts that would do, ascending; (0,) asks for no device. `memory_mib` is per device.
    `lease_ms` None takes the queue's default.
    """

    milli_gpus: tuple[int, ...]
    flavors: tuple[str, ...] = ()
    memory_mib: int | None = None
    cpus: int | None = None
    ram_mib: int | None = None
    need: Mapping[str, str] = field(default_factory=dict)
    nodes: int = 1
    lease_ms: int | None = None
    preemptible: bool = True
    override: str | None = None
    retry_max: int | None = None
    start_deadline_ms: int | None = None
    after: tuple[WorkloadId, ...] = ()
    model: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    server: str = ""
    """Name of the notebook server; empty for a user's default one."""
    profile: str | None = None
    resumes: WorkloadId | None = None
    resume_documents: tuple[str, ...] = ()
    """Documents that the resumed session had saved, to be opened again."""
    command: tuple[str, ...] = ()
    """Program and arguments of a job; a notebook has none."""
    cwd: str = ""
    """Where it runs, from its owner's home; empty for the home itself."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables on top of those that hubgov sets; the owner's, values are shown to nobody else but admins."""

    @property
    def smallest(self) -> int:
        """The fewest milli-GPUs that would do."""
        return self.milli_gpus[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A request and what became of it. `seq` is the order of submission; `eligible_since` its place in line."""

    id: WorkloadId
    seq: int
    name: str
    kind: Kind
    owner: str
    team: str
    project: str
    environment: str
    queue: str
    priority: int
    request: Request
    submitted_at: Instant
    eligible_since: Instant
    state: WorkloadState = WorkloadState.PENDING
    version: int = 1
    attempt: int = 0
    evictions: int = 0
    retries: int = 0
    allocation: AllocationId | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None
    ran_ms: int = 0
    """Running time of the attempts that are over; of the time limit, not of the charge."""
    waited_ms: int = 0
    """Time pending of the attempts that are over; the current wait is on top."""
    pending_since: Instant | None = None
    end_reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    failure_class: str | None = None
    """What went wrong, one of `texts.FAILURES`; None for what didn't fail."""
    note: str = ""
    ended_by: str = ""
    """Who ended it when it wasn't its owner; `note` says why."""
    not_before: Instant | None = None
    """Back-off: not eligible before this."""
    extensions_used: int = 0

    @property
    def live(self) -> bool:
        return not self.state.final


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceShare:
    """A device, or part of one, bound to an allocation. A whole card has 1000 milli and its full memory."""

    node: str
    index: int
    uuid: str
    milli: int
    memory_mib: int
    simulated: bool = False

    @property
    def key(self) -> DeviceKey:
        return (self.node, self.uuid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The term of an allocation. None for `expires_at` = no end (protected only), or not running yet.

    `version` moves with each extension, so that an expiry and an extension can be told apart. `rule` names
    what the end comes from: lease, extension, lease_max, max_total, window.
    """

    length_ms: int | None
    expires_at: Instant | None = None
    hard_end_at: Instant | None = None
    granted_at: Instant | None = None
    """When it began or was last extended: warnings due before that are not given again."""
    grace_ms: int
    warn_ms: tuple[int, ...]
    """Grace and warnings as they were when it was granted: no later policy takes them away."""
    version: int = 1
    rule: str = "lease"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessId:
    """A process that a later one with the same pid can't be mistaken for."""

    pid: int
    start_ticks: int
    boot_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """What a span of an allocation costs by: price in millionths of the currency an hour, factors in millionths."""

    class_: str
    price_micro_per_hour: int
    currency: str
    queue_factor_micro: int
    class_factor_micro: int
    borrowed_factor_micro: int
    borrowed: bool
    until: Instant | None = None
    """When an edit of the policy ended it; None for the one in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Devices bound to a workload for one attempt; the only thing that carries a charge."""

    id: AllocationId
    workload: WorkloadId
    attempt: int
    pool: str
    flavor: str | None
    """None for work without a device."""
    milli_gpus: int
    devices: tuple[DeviceShare, ...]
    node: str
    cpus: int
    ram_mib: int
    lease: Lease
    reserved_at: Instant
    policy_version: int
    state: AllocationState = AllocationState.RESERVED
    since: Instant = Instant(0)
    """When it entered its state."""
    launched_at: Instant | None = None
    started_at: Instant | None = None
    stop_at: Instant | None = None
    """When the stop is sent at the latest, while in a grace or saving before a stop; afterwards when it was."""
    asked_at: Instant | None = None
    """When its present grace began, or its stop where it had none: from then on a job is asked to end, once."""
    halted_at: Instant | None = None
    """When it stopped computing: its process ended or the stop was sent."""
    ended_at: Instant | None = None
    """When its devices were free again."""
    outcome: WorkloadState | None = None
    """What the workload becomes once the devices are free; None = it waits again (evicted, lost)."""
    end_reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    failure_class: str | None = None
    last_try: bool = False
    """It ended when its end had begun, so that no other try is made of it, however it ended."""
    main: ProcessId | None = None
    init: ProcessId | None = None
    uid: int | None = None
    """Whose the main process was where there is no box: what carries the allocation's mark may be this user's."""
    save: str | None = None
    """Id of the save that Lab is asked for; moves on when another is due."""
    save_answered: str | None = None
    url: str | None = None
    unattended: bool = False
    """The service starts it, since nobody was attached when it was granted."""
    claim_by: Instant | None = None
    """Started with nobody attached: released unless somebody opens it before this."""
    stop_now: bool = False
    """The stop was asked for without grace."""
    kill_at: Instant | None = None
    """When a job in STOPPING is killed if it didn't go by itself; None: `term_ms` after the stop was sent."""
    stop_by: str = ""
    stop_reason: str = ""
    """Who, not its owner, had it stopped, and why: told in the receipt."""
    tariffs: tuple[Tariff, ...] = ()
    """Those that edits of the policy ended while it lived, oldest first; the one in force is the policy's."""
    idle: Idleness = Idleness()
    kernels_ending: tuple[KernelEnding, ...] = ()

    @property
    def charged(self) -> bool:
        return self.state in CHARGED and self.milli_gpus > 0

    @property
    def charge_key(self) -> ChargeKey | None:
        return (self.pool, self.flavor) if self.flavor is not None else None


ChargeKey = tuple[str, str]
"""(pool, flavor): what quota is counted on."""


# --- the rest of the record --------------------------------------------------------------------------


class ExtensionState(StrEnum):
    GRANTED = "granted"
    NEEDS_APPROVAL = "needs_approval"
    DENIED = "denied"
    LAPSED = "lapsed"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionRequest:
    """One request for more time and its outcome."""

    id: ExtensionId
    workload: WorkloadId
    by_ms: int
    reason: str
    requested_by: str
    requested_at: Instant
    state: ExtensionState
    code: str
    lease_version: int
    expires_at: Instant | None = None
    decided_by: str | None = None
    decided_at: Instant | None = None
    decision_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What a session is told, recorded before it is shown: a warning that was due (once per allocation, lease
    version and threshold), a decision, a stop by another."""

    id: str
    allocation: AllocationId
    workload: WorkloadId
    kind: str
    threshold_ms: int
    lease_version: int
    deadline: Instant
    issued_at: Instant
    quiet_ms: int = 0
    """Of an idle session or kernel: for how long."""
    subject: str = ""
    """What it is about besides the session: the document of a kernel."""
    by: str = ""
    reason: str = ""
    """Of a stop by another: who, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedDocument:
    path: str
    outcome: str
    bytes: int
    sha256: str
    saved_at: Instant | None
    copy: str | None
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSeen:
    id: str
    name: str
    path: str
    busy: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveRecord:
    """What a session reported of one save; the receipt is built from the last."""

    id: str
    allocation: AllocationId
    workload: WorkloadId
    at: Instant
    asked_lab: bool
    documents: tuple[SavedDocument, ...]
    kernels: tuple[KernelSeen, ...]
    terminals: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueHold:
    """A queue that starts nothing. `closed` also refuses new work. Record keyed by the queue."""

    queue: str
    held: bool
    closed: bool
    by: str
    reason: str
    at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A user whom the hub deleted: who has the name afterwards is somebody else. Record keyed by the name."""

    name: str
    at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyText:
    """One applied version of the policy: its text as written, and the values read from it."""

    version: int
    text: str
    applied_at: Instant
    applied_by: str
    policy: Policy


Record = (
    Workload | Allocation | ExtensionRequest | Notice | SaveRecord | QueueHold | SeenNode | Departure | PolicyText
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One record written: what it was (None = new), what it is now, by whom and why.

    `event` names it in the past tense for the journal, one of `events.KNOWN`. Turning `before` and `after` round
    undoes it.
    """

    event: str
    before: Record | None
    after: Record | None
    actor: str
    reason: str = ""

    def __post_init__(self) -> None:
        if self.event not in KNOWN:
            raise ValueError(f"{self.event} has no place among the events of the journal")

    @property
    def undone(self) -> Change:
        return replace(self, before=self.after, after=self.before)
