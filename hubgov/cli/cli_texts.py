"""What the command line itself says; sentences about work come from the service."""

from __future__ import annotations

from collections.abc import Mapping

from hubgov.catalogue import Texts

TEXTS = Texts(
    "cli.TEXTS",
    {
        "about": "GPU governance: what runs, why something waits, who holds which device until when.",
        "commands": "Commands",
        "example": "Example:",
        "environment": (
            "HUBGOV_URL and HUBGOV_TOKEN name the service and who asks; without them it is what `hubgov login` "
            "kept. Exit codes: 0 done, 1 failed, 2 usage, 3 denied, 4 still waiting, 5 service unreachable, 6 "
            "needs approval."
        ),
        "hint": "hint: {what}",
        "usage": "{message}",
        "no_verb": "there is no command {verb!r}.",
        "near": " Did you mean {word!r}?",
        "until": "{at} · {left} left",
        "until_with_grace": "{at}, grace to {grace} · {left} left",
        "holder": "{who} (end {end})",
        "ago": "{span} ago",
        "stale": "stale, {span} ago",
        "none_workloads": "No workloads here yet. `hubgov queues` shows where work can go.",
        "left_out": "Left out for lack of room: {columns}. A wider terminal or a pipe has them.",
        "nothing": "Nothing here.",
        "more": "{more} more: --limit {total}",
        "quota_line": "Quota of team {team}: {rows}",
        "quota_part": "{pool} {flavor} {used} of {guaranteed} used, {available} available",
        "quota_borrowed": " ({borrowed} borrowed)",
        "no_limit": "no limit",
        "simulated": "SIMULATED",
        "simulated_left_out": "Usage of simulated devices is left out; --include-simulated counts it.",
        "cost_period": "{start} to {end}",
        "total": "Total",
        "simulated_why": "SIMULATED: no card is behind these numbers.",
        "yes": "yes",
        "no": "no",
        "next": "next: {steps}",
        "costs": "Estimated cost: {cost}",
        "latest_start": "Starts by {at} as things stand now.",
        "place": "Place in line: {position}",
        "still_waiting": "{id} still waits after {span}: {why}",
        "not_over": "{id} is not over after {span}: {why}",
        "hint_logs": "hubgov logs {id} -f",
        "submitted": "{id}: {headline}",
        "next_attempt": "{id}, attempt {attempt}",
        "log_gap": "{bytes} bytes were left out here{why}",
        "hint_why": "hubgov why {id}",
        "cancelled": "{id}: {state}",
        "kept": "{id}: kept until {until}; keeps left: {left}",
        "was_idle": "idle: {what}",
        "stop_ordered": "{id} stops at {at}; its owner is told",
        "decided": "{id}: {state}",
        "decided_until": "{id}: {state}, until {at}",
        "of_team": "team {team}",
        "without_end": "without end",
        "lost": "lost: {what}",
        "nothing_lost": "Nothing was lost.",
        "held_now": "Queue {queue} is on hold: {reason}",
        "closed_now": "Queue {queue} is on hold and closed for new work: {reason}",
        "released_now": "Queue {queue} goes on.",
        "drained_now": "Nothing new starts on {node}; what runs goes on.",
        "undrained_now": "{node} takes work again.",
        "signed_in": "Signed in as {user} at {url} until {until}.",
        "password": "Password of {user} at {url}: ",
        "for_ever": "it is revoked",
        "policy_fine": "{file}: no errors",
        "policy_same": "The file says what is in force (version {version}).",
        "policy_no_edits": "No value differs from version {version}; only the text does.",
        "policy_head": "# version {version}, applied {at} by {by}",
        "policy_ask": "Put this in force now? [y/N] ",
        "policy_left": "Nothing was applied.",
        "policy_applied": "Version {version} is in force.",
    },
)

COLUMNS = Texts(
    "cli.COLUMNS",
    {
        "delays": "DELAYS", "id": "ID", "name": "NAME", "state": "STATE", "position": "POSITION", "why": "WHY",
        "device": "DEVICE", "util": "UTIL", "mem": "MEM", "stops_at": "LEASE ENDS", "left": "LEFT", "cost": "COST",
        "owner": "OWNER", "team": "TEAM", "project": "PROJECT", "environment": "ENVIRONMENT", "queue": "QUEUE",
        "kind": "KIND", "gpus": "GPUS", "flavor": "FLAVOR", "submitted": "SUBMITTED", "started": "STARTED",
        "ended": "ENDED", "waited": "WAITED", "headline": "HEADLINE", "evictions": "EVICTIONS",
        "attempt": "ATTEMPT", "extensions_left": "EXTENSIONS LEFT", "latest_start": "STARTS BY",
        "end_reason": "END REASON", "exit_code": "EXIT CODE", "url": "URL", "signal": "SIGNAL",
        "command": "COMMAND", "cwd": "FOLDER", "env": "VARIABLES", "note": "NOTE", "memory": "MEMORY",
        "pool": "POOL", "guaranteed": "GUARANTEED", "used": "USED", "borrowed": "BORROWED", "lent": "LENT",
        "available": "AVAILABLE", "borrow": "BORROW", "lend": "LEND", "window": "WINDOW",
        "next_change": "NEXT CHANGE", "workload": "WORKLOAD", "holder": "HOLDER", "since": "SINCE",
        "until": "LEASE ENDS", "isolation": "ISOLATION", "reading": "READING", "engine": "ENGINE",
        "devices": "DEVICES", "free": "FREE", "placement": "PLACEMENT", "kinds": "KINDS", "pools": "POOLS",
        "class": "CLASS", "priority": "PRIORITY", "order": "ORDER", "lease": "LEASE", "max_lease": "MAX LEASE",
        "held": "HELD", "pending": "WAITING", "running": "RUNNING", "code": "CODE", "need": "NEED", "have": "HAVE",
        "limit": "LIMIT", "unit": "UNIT", "where": "WHERE", "held_by": "HELD BY", "frees_at": "CHANGES BY",
        "outcome": "OUTCOME", "by": "BY", "expires_at": "NEW END", "requested_by": "REQUESTED BY",
        "reason": "REASON", "decided_by": "DECIDED BY", "at": "AT", "actor": "ACTOR", "event": "EVENT",
        "record": "RECORD", "from": "FROM", "to": "TO", "path": "PATH", "bytes": "BYTES", "saved_at": "SAVED AT",
        "gpu_hours": "GPU HOURS", "lost": "LOST", "rule": "RULE", "user": "USER", "day": "DAY",
        "list_cost": "LIST COST", "discount": "DISCOUNT", "credited": "CREDITED",
        "borrowed_hours": "BORROWED HOURS", "failed_hours": "FAILED HOURS", "overhead_hours": "OVERHEAD HOURS",
        "sign": "SIGN", "level": "LEVEL", "evidence": "EVIDENCE", "last_busy": "LAST BUSY", "age": "AGE",
        "idle_phase": "IDLE", "idle_deadline": "IDLE DEADLINE", "keeps_left": "KEEPS LEFT",
        "needs": "NEEDS A YES OF",
    },
)  # fmt: skip

OUTCOMES = Texts(
    "cli.OUTCOMES",
    {
        "granted": "can start",
        "waiting": "waiting",
        "refused": "refused",
        "needs_approval": "needs approval",
    },
)

IDLE_PHASES = Texts(
    "cli.IDLE_PHASES",
    {
        "active": "no",
        "suspect": "yes, only observed",
        "asked": "yes, owner asked",
        "kept": "kept",
        "grace": "yes, about to stop",
    },
)

DOCUMENTS = Texts(
    "cli.DOCUMENTS",
    {
        "saved": "saved",
        "not_saved": "not saved",
    },
)
"""What became of an open document, by its outcome."""

UNITS = Texts(
    "cli.UNITS",
    {
        "gpus": "GPUs",
        "seconds": "time",
        "workloads": "sessions",
        "cpus": "CPUs",
        "mib": "MiB",
        "pending": "waiting requests",
        "times": "times",
        "nodes": "nodes",
    },
)

FAILURES = Texts(
    "cli.FAILURES",
    {
        "bad_span": "{option}: {value!r} is not a duration; write 90s, 30m, 4h, 2d or 1h30m",
        "bad_memory": "{option}: {value!r} is not a memory size; write 512MiB, 80GiB or 1TiB",
        "bad_gpus": "--gpus: {value!r} is not a number of GPUs; write 1, 0.25 or 1,2,4",
        "bad_pair": "{option}: {value!r} is not of the form name=value",
        "bad_word": "{option}: {value!r} is none of {known}",
        "bad_number": "{option}: {value!r} is out of bounds ({least} to {most})",
        "not_text": "{value!r} is not text in UTF-8",
        "password_not_text": "the password is not text in UTF-8",
        "no_password": "there is no terminal to ask for the password",
        "unreachable": "{url} does not answer: {why}",
        "away": "{url} is away (status {status})",
        "not_hubgov": "what answers at {url} is not hubgov (status {status})",
        "no_service": "no hubgov service is known here",
        "no_token": "not signed in at {url}",
        "login_readable": "{file} can be read by others; the token in it is not used",
        "login_unreadable": "{message}",
        "wrong_password": "the hub did not accept user and password",
        "no_access": "{message}",
        "no_file": "{file} can't be read: {why}",
        "not_utf8": "{file}:{line}: not_utf8: the file is not UTF-8 text",
        "bad_url": "{message}",
        "bad_name": "{message}",
        "bad_answer": "{message}",
        "unauthorized": "{message}",
        "unavailable": "{message}",
    },
)

HINTS = Texts(
    "cli.HINTS",
    {
        "bad_span": "{option} 2h",
        "bad_memory": "{option} 20GiB",
        "bad_gpus": "--gpus 1",
        "bad_pair": "{option} net=ib",
        "bad_word": "choose one of them",
        "bad_number": "{option} {least}",
        "not_text": "type it anew",
        "password_not_text": "give it in UTF-8, as the hub's sign-in page would take it",
        "bad_url": "such as http://127.0.0.1:8000/services/hubgov",
        "no_password": "--password-stdin reads it from stdin",
        "unreachable": "what runs goes on; try again in a moment, or check HUBGOV_URL",
        "away": "what runs goes on; try again in a moment",
        "not_hubgov": "check HUBGOV_URL",
        "no_service": "hubgov login --url URL, or set HUBGOV_URL and HUBGOV_TOKEN",
        "no_token": "hubgov login --url {url}, or set HUBGOV_TOKEN",
        "login_readable": "chmod 600 {file}, or hubgov login again",
        "login_unreadable": "hubgov login writes it anew",
        "wrong_password": "try again",
        "no_access": "ask an admin of the hub for access to the service",
        "no_file": "name a file that is there, or - for stdin",
        "not_utf8": "save it as UTF-8",
        "unauthorized": "hubgov login",
    },
)


def text(key: str, lang: str, **facts: object) -> str:
    """A sentence with its facts."""
    return fill(TEXTS, key, lang, facts)


def fill(table: Texts, key: str, lang: str, facts: Mapping[str, object]) -> str:
    """The text of a key with its facts; one that is missing shows as a dash."""
    return table.pick(key, lang).format_map(_Facts(facts))


class _Missing:
    def __repr__(self) -> str:
        return "—"


class _Facts(dict[str, object]):
    def __missing__(self, key: str) -> object:
        return _Missing()
