"""What people read: one closed table each of sentences, states, next steps; the Chinese is in the catalogue.

No surface writes a sentence of its own: hub pages, the service, the command line and Lab show these. A sentence
follows one order: what, the rule, limit / in use / this request, when it changes by itself. Standard library
only, so that the command line may use it.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

from hubgov.catalogue import LOCALES, Texts

LANGUAGES = ("en", *LOCALES)

SENTENCES = Texts(
    "SENTENCES",
    {
        # waiting
        "waiting_quota": (
            "Waiting for quota: {scope} has {have} of {limit} {unit} left on {flavor} in pool {pool}, this request "
            "needs {need}.{frees}"
        ),
        "waiting_devices": (
            "Waiting for devices: {have} of {limit} {unit} of {flavor} in pool {pool} can be used now, this "
            "request needs {need}.{frees}"
        ),
        "waiting_topology": (
            "Waiting for devices on one node: {need} {unit} of {flavor} are free in pool {pool} but not together; "
            "the most on one node is {have}.{frees}"
        ),
        "over_own_limit": (
            "Waiting for your own limit: {scope} allows {limit} {unit}, {have} left, this request {need}.{frees}"
        ),
        "held": "Queue {queue} is on hold ({reason}); nothing in it starts until it is released.",
        "engine_away": (
            "What starts this kind of work (JupyterHub, for notebooks) does not answer. The place in line is kept; "
            "it goes on by itself."
        ),
        "waiting_dependency": "Waiting for {scope} to end.",
        "waiting_window": (
            "Waiting for its hours: {scope} gives {have} of {limit} {unit} of {flavor} in pool {pool} at this "
            "hour, this request needs {need}. The quota changes {at}."
        ),
        "over_budget": "Waiting for budget: {scope} has {have} of {limit} left, this request needs {need}.",
        "waiting_victims": (
            "Its devices are promised and being vacated: {need} {unit} of {flavor} in pool {pool}.{frees}"
        ),
        "sheltered_behind": (
            "Waiting behind {scope}, whose start is promised: {need} {unit} of {flavor} in pool {pool} would delay "
            "it."
        ),
        "misconfigured": "The policy or the devices changed in a way that leaves no place for it: {scope}.",
        "backoff": "Trying again {at} after a failed start.",
        "starting": "Starting.",
        "running": "Running.",
        "running_busy": "Running and at work: {signs}.",
        "running_settling": "Running, quiet since {since}. If nothing happens you are asked about it at {full_at}.",
        "running_idle": "Running, and idle since {since} by every sign.",
        "running_unknown": "Running; whether it is idle isn't known ({signs}), so nothing is done about it.",
        "running_unseen": "Running; it is about to be looked at.",
        "running_suspect": "Running, and idle since {since}. The policy only observes, so nothing is stopped.",
        "running_asked": (
            "Running, and idle since {since}. It is returned at {deadline} unless something runs in it or you "
            "choose Keep. Keeps left: {left}."
        ),
        "running_kept": "Running. You kept it until {deadline}; keeps left: {left}.",
        "running_grace": (
            "Idle since {since} and about to stop at {deadline}, unless something runs in it or you choose Keep. "
            "Keeps left: {left}."
        ),
        "fits_now": "Can start now in pool {pool}: {flavor}.",
        "ended": "Ended: {reason}.",
        # refused
        "impossible": (
            "Can never start: the most that queue {queue} could give is {most} {unit}, this request asks for "
            "{asked}."
        ),
        "impossible_memory": (
            "Can never start: no card that queue {queue} could give has {asked} of memory; the largest, {flavor}, "
            "has {most}."
        ),
        "above_maximum": "Above the maximum: {rule} allows {limit}, this request asks for {asked}.",
        "too_many_pending": "Too many waiting requests: {rule} allows {limit}.",
        "invalid": "Not valid: {field} is {asked}.",
        "unknown_queue": "No queue {what}. Queues: {allowed}.",
        "unknown_project": "No project {what} for you. Your projects: {allowed}.",
        "name_project": "The project to charge is not named. Your projects: {allowed}.",
        "no_project": (
            "You are in no team, and every request is charged to a project of one. Your groups at the hub: "
            "{groups}."
        ),
        "unknown_flavor": "No card type {what}. Card types: {allowed}.",
        "not_allowed": "Not allowed by {rule}: {what}. Allowed: {allowed}.",
        "data_access": "Data access level {level} may not enter {pools}.",
        "fit_guard": "Too small for {flavors}: these cards are kept for requests of at least {least} memory.",
        # extensions
        "extended": "Extended to {expires_at} (+{by}). Extensions left: {left}.",
        "beyond_self_serve": (
            "Not extended yet: {rule} allows {limit} without approval, {have} left, this request +{by}. It needs "
            "the yes of {approvers}."
        ),
        "max_total": "Not extended: queue {queue} allows {limit} in all ({rule}), {have} left, this request +{by}.",
        "no_extension": "Not extended: queue {queue} has no extensions ({rule}).",
        "no_end": "Nothing to extend: this lease has no end.",
        "expired_meanwhile": "Not extended: +{by} would lie in the past; the lease ended {have_ago} ago.",
        # keep
        "no_keep": "Not kept: queue {queue} has no Keep ({rule}). What runs in the session keeps it.",
        "keep_used_up": (
            "Not kept: {rule} allows {limit} {unit} without work in between, all used. What runs in the session "
            "keeps it."
        ),
        "stale": "It changed since you looked.",
    },
)

STEPS = Texts(
    "STEPS",
    {
        "wait": "Wait: your place is kept",
        "change_request": "Change the request",
        "other_queue": "Choose another queue or profile",
        "whole_gpus": "A share is below 1 GPU; more are whole numbers, equal on every node",
        "smaller_request": "Ask for fewer GPUs or another card",
        "cancel_another": "Stop or cancel one of your own",
        "cancel": "Cancel",
        "ask_memory": "Say how much device memory you need",
        "override": "Ask with an override and a reason, where the queue allows it",
        "save_work": "Save your work before the end",
        "submit_batch": "Submit the rest as a batch job",
        "shorter_extension": "Ask for a shorter extension",
        "longer_extension": "Ask for a longer extension",
        "keep": "Keep it for a while",
        "run_something": "Run something in it",
        "extend": "Extend it",
        "ask_lead": "Ask an administrator of the hub to add you to the group of your team, then start again",
        "ask_approver": "Ask {approvers}",
    },
)

REASONS = Texts(
    "REASONS",
    {
        "impossible": "never possible",
        "misconfigured": "misconfigured",
        "held": "queue on hold",
        "waiting_dependency": "waits for another",
        "over_own_limit": "your own limit",
        "over_budget": "budget",
        "waiting_window": "quota window",
        "waiting_victims": "devices on their way back",
        "waiting_quota": "quota",
        "waiting_devices": "devices",
        "waiting_topology": "devices on one node",
        "sheltered_behind": "kept for one that waited longer",
        "backoff": "trying again later",
        "starting": "starting",
    },
)
"""The reasons to wait in a word or two, for tables; the sentence is in SENTENCES."""

STATES = Texts(
    "STATES",
    {
        "pending": "waiting",
        "held": "queue on hold",
        "admitted": "admitted",
        "starting": "starting",
        "running": "running",
        "expiring": "ending",
        "preempting": "being reclaimed",
        "stopping": "stopping",
        "quarantined": "stopped, process not gone",
        "suspect": "node not answering",
        "succeeded": "succeeded",
        "failed": "failed",
        "cancelled": "cancelled",
        "expired": "ended by its time limit",
        "culled": "ended when idle",
        "lost": "lost",
        "refused": "refused",
    },
)

END_REASONS = Texts(
    "END_REASONS",
    {
        "completed": "it ended by itself",
        "failed": "its process ended with an error or was killed",
        "start_failed": "it could not be started; nothing was charged",
        "start_deadline": "it did not start in time; nothing was charged",
        "environment_unavailable": "its environment is not available",
        "cancelled": "its owner stopped it",
        "replaced": "its owner asked for something else instead",
        "max_wait": "it waited longer than the queue allows",
        "admin": "an admin or lead stopped it",
        "lease": "time limit",
        "max": "the longest time that extensions allow",
        "window": "its quota window closed",
        "idle": "it was idle",
        "unclaimed": "nobody opened it",
        "preempted": "its devices were needed",
        "node_lost": "its node was lost",
    },
)

FAILURES = Texts(
    "FAILURES",
    {
        "command_not_found": (
            "The command {command} was not found; commands are looked for on the PATH, files from the folder {cwd}."
        ),
        "command_not_executable": (
            "{command} can't be executed: it is a folder, not marked executable (chmod +x), or its interpreter is "
            "missing."
        ),
        "command_failed": "The system could not execute {command}; see the log.",
        "directory_missing": "There is no folder {cwd} in the owner's home.",
        "directory_closed": (
            "The folder {cwd} can't be entered: it must lie in the owner's home, with no link on the way."
        ),
        "owner_departed": "The hub deleted the user who had asked for it.",
        "no_home": "The hub gives its owner no home on this machine; the hub's log says why.",
        "box_failed": "Its box could not be made; see the log.",
        "unsupervised": "Who stood by it was killed, so how it ended is not known.",
        "exit_code": "The command ended with an error; see the log.",
        "signal": "The command was ended by signal {signal}.",
    },
)
"""Classes of failure of a job, as its owner reads them."""

NOTES = Texts(
    "NOTES",
    {
        "user_departed": "the hub deleted the user",
    },
)
"""Why hubgov itself ended something, where no person wrote a reason."""

WORDS = Texts(
    "WORDS",
    {
        "GPUs": "GPUs",
        "workloads": "sessions",
        "cpus": "CPUs",
        "mib": "of RAM",
        "pending": "waiting requests",
        "times": "times",
        "nodes": "nodes",
        "frees": " The first is free at the latest {at} ({who}).",
        "frees_after_end": " The first is free at the latest {at} ({who}: end {end} + grace + stop).",
        "yours": "your {id}",
        "team_mate": "{owner}'s {id}",
        "other_team": "another team",
        "none": "none",
        "root": "the shared part",
        "team": "team {name}",
        "project": "project {name}",
        "pool": "pool {name}",
        "node": "node {name}",
        "queue": "queue {name}",
        "pools": "pools {name}",
        "workload": "{name}",
        "priority": "priority {name}",
        "idle_evidence": "{kind}: {text}",
        "idle_evidence_since": "{kind}: {text}, last busy {at}",
        "from_to": "{low} to {high}",
        "no_probe": "no probe reads this node",
        "cpu_only": "no GPU",
        "nobody": "nobody that the queue names",
        "own_use": "{held} of {limit} GPUs in queue {queue}",
        "no_limit": "any number",
        "stopped_by": " (by {who}: {why})",
    },
)

EXTENSION_STATES = Texts(
    "EXTENSION_STATES",
    {
        "granted": "granted",
        "needs_approval": "needs approval",
        "denied": "denied",
        "lapsed": "lapsed",
        "withdrawn": "withdrawn",
    },
)

DEVICE_STATES = Texts(
    "DEVICE_STATES",
    {
        "free": "free",
        "partly": "partly in use",
        "held": "in use",
        "fenced": "fenced: its process is not gone",
        "sick": "sick",
        "unknown": "not answering",
        "drained": "drained",
        "unassigned": "in no pool",
    },
)

SIGNALS = Texts(
    "SIGNALS",
    {
        "gpu": "GPU use",
        "cpu": "CPU use",
        "io": "disk",
        "kernel": "kernels",
        "terminal": "terminals",
        "child": "processes",
        "human": "people",
    },
)
"""What a sign of work or idleness comes from."""

LEVELS = Texts(
    "LEVELS",
    {
        "busy": "busy",
        "idle": "idle",
        "unknown": "unknown",
    },
)

EVIDENCE = Texts(
    "EVIDENCE",
    {
        "no_card": "no GPU",
        "card_duty": "card {index} at {percent} %",
        "card_power": "card {index} draws {watts} W, more than when idle",
        "card_shared": "card {index} works, and whose work it is can't be told",
        "card_unknown": "card {index} can't be read",
        "cpu": "{percent} % of a core",
        "io": "{kib} KiB a minute",
        "children": "{count} started by kernels",
        "no_children": "none beside the kernels",
        "jobs": "{count} run in terminals",
        "no_jobs": "nothing runs in terminals",
        "terminals": "{count} open, nothing runs in them",
        "kernel_busy": "{path} works on {count} cells",
        "kernel_waits": "{path} waits for input",
        "kernel_unheard": "whether {path} works can't be heard",
        "kernels_idle": "{count} kernels, none works",
        "no_kernels": "no kernel",
        "edited": "last edit",
        "no_edit": "no edit yet",
        "not_of_jobs": "not asked of this kind of work",
        "no_report": "the session says nothing",
        "no_processes": "its processes are not seen",
        "not_read": "not read yet",
    },
)
"""What a signal rests on."""

LOST = Texts(
    "LOST",
    {
        "variables": "variables of kernel {name} ({path})",
        "cell": "the cell that was running in {path}",
        "terminals": "{count} terminals",
        "document": "{path}: not saved: {error}",
        "unknown": "no report came from the session: what was not on disk is lost",
    },
)
"""What a session that is over has lost, a line each."""

HTTP_ERRORS = Texts(
    "HTTP_ERRORS",
    {
        "invalid": "the request can't be read",
        "unauthorized": "no valid token of the hub",
        "not_allowed": "not allowed",
        "not_found": "no such thing here",
        "method_not_allowed": "this can't be done here",
        "too_large": "too large",
        "error": "unexpected failure",
    },
)
"""What is wrong with a request that reached no handler's own check, by its code."""

HTTP_HINTS = Texts(
    "HTTP_HINTS",
    {
        "invalid": "see /openapi.json for what may be sent",
        "unauthorized": "get one at /hub/token",
        "not_allowed": "load the page again and repeat it, or sign in anew",
        "not_found": "see /openapi.json for the addresses",
        "method_not_allowed": "the Allow header names what can be done",
        "too_large": "send at most 2 MiB",
        "error": "nothing was changed; see the service's log",
    },
)

JOINTS = Texts(
    "JOINTS",
    {
        "path": "{path}: {said}",
        "parts": "; ",
    },
)
"""What stands between the parts of a sentence."""

_SIGNS = {"CNY": "¥", "USD": "$", "EUR": "€", "GBP": "£"}


def money(amount: str, currency: str) -> str:
    """An amount to the cent with its sign, `¥1,074.00`; with the currency's name where it has none."""
    try:
        shown = f"{Decimal(amount):,.2f}"
    except InvalidOperation:
        shown = amount
    sign = _SIGNS.get(currency)
    return f"{sign}{shown}" if sign else f"{shown} {currency}"


_PLACES = ("root", "team", "project", "pool", "pools", "node", "queue", "workload", "priority")
"""What `place` knows, each a word of WORDS."""


def say(code: str, lang: str, **facts: object) -> str:
    """The sentence of a code with its facts filled in. A fact it needs and doesn't get shows as a dash."""
    return SENTENCES.pick(code, lang).format_map(_Facts(facts))


def place(scope: str, lang: str) -> str:
    """A place of the quota tree, or a thing of the policy, in words; a rule's path as it stands in the policy."""
    level, _, name = scope.partition(" ")
    return word(WORDS, level, lang, name=name) if level in _PLACES else scope


def word(table: Texts, key: str, lang: str, **facts: object) -> str:
    """A word of a table, with its facts filled in; the key itself when the table hasn't got it."""
    return table.pick(key, lang).format_map(_Facts(facts)) if key in table else key


def having(key: str, *tables: Texts) -> Texts:
    """The first of the tables that has a key; the last one where none has."""
    return next((table for table in tables if key in table), tables[-1])


def joined(parts: Iterable[str], lang: str) -> str:
    """Several parts as one sentence."""
    return JOINTS.pick("parts", lang).join(parts)


class _Facts(dict[str, object]):
    def __missing__(self, key: str) -> str:
        return "—"


def best_language(accept: str | None, default: str = "en") -> str:
    """The language of an Accept-Language header that we have: its first known one, else `default`."""
    for part in (accept or "").split(","):
        tag = part.split(";")[0].strip().lower()
        if tag[:2] in LANGUAGES:
            return tag[:2]
    return default
