"""What the audit shows of an event and of the states before and after it."""

from __future__ import annotations

from hubgov.catalogue import Texts
from hubgov.texts import EXTENSION_STATES, STATES, having, word

EVENTS = Texts(
    "EVENTS",
    {
        # a request
        "workload_submitted": "submitted",
        "workload_admitted": "admitted",
        "workload_moved": "updated",
        "workload_pending": "back in the queue",
        "workload_running": "runs",
        "workload_succeeded": "succeeded",
        "workload_failed": "failed",
        "workload_cancelled": "cancelled",
        "workload_expired": "ended by its time limit",
        "workload_culled": "ended when idle or unopened",
        "retry_cancelled": "no further try",
        # its devices
        "allocation_reserved": "devices reserved",
        "allocation_launched": "start begun",
        "allocation_ready": "ready, lease begins",
        "allocation_exited": "process ended",
        "allocation_lease_ended": "lease ended",
        "allocation_extended": "end moved",
        "allocation_preempted": "devices being reclaimed",
        "allocation_spared": "not reclaimed after all",
        "user_departed": "the hub deleted the user",
        "allocation_grace_ended": "grace ended, told to stop",
        "allocation_cancelled": "told to stop",
        "allocation_stop_ordered": "stop ordered, grace begins",
        "stop_told": "stop told to the session",
        "allocation_start_overdue": "did not start in time",
        "allocation_gone": "devices given back",
        "allocation_stop_overdue": "did not stop in time, devices fenced",
        "allocation_node_silent": "node does not answer",
        "allocation_node_back": "node answers again",
        "allocation_node_lost": "node given up",
        "allocation_unknown_to_engine": "engine knows nothing of it",
        # idle
        "allocation_idled": "idle and not kept, grace begins",
        "allocation_revived": "goes on after all",
        "idle_suspected": "idle, only observed",
        "idle_asked": "idle, owner asked",
        "idle_kept": "kept by its owner",
        "idle_keep_ended": "kept no longer",
        "idle_at_work": "at work again",
        "idle_withdrawn": "not idle after all",
        "idle_rule_gone": "no idle rule any more",
        "idle_grace_moved": "idle grace begun anew after a restart",
        "idle_stop_observed": "would have been stopped as idle",
        "alive_only_by_claim": "alive only by what it says of itself",
        "kernel_end_asked": "idle kernel to be shut down",
        "kernel_end_observed": "idle kernel, only observed",
        "kernel_end_withdrawn": "kernel is not shut down after all",
        "kernel_ended": "idle kernel shut down",
        "kernel_not_ended": "idle kernel not shut down",
        # more time
        "decision_told": "decision told to the session",
        "extension_granted": "extension granted",
        "extension_needs_approval": "extension asked for",
        "extension_denied": "extension denied",
        "extension_lapsed": "extension request lapsed",
        "extension_withdrawn": "extension request withdrawn",
        "extension_counted": "extension counted",
        # the server
        "server_start_asked": "server start asked for",
        "server_claimed": "opened",
        "stop_hastened": "stop without further waiting",
        "stop_asked": "stop asked for at the hub",
        "processes_known": "processes recorded",
        "warning_issued": "warning issued",
        "save_requested": "save asked for",
        "save_answered": "save answered",
        "documents_saved": "documents saved",
        # the place
        "tariff_ended": "usage goes on at another price",
        "policy_applied": "policy applied",
        "queue_held": "queue put on hold",
        "queue_released": "queue goes on",
        "node_seen": "node seen",
        "node_drained": "node drained",
        "node_undrained": "node takes work again",
    },
)

RECORD_STATES = Texts(
    "RECORD_STATES",
    {
        "reserved": "reserved",
        "releasing": "process ended, devices not yet free",
        "released": "released",
    },
)


def event_word(event: str, lang: str) -> str:
    """An event in words; its code where a newer service has one more."""
    return word(EVENTS, event, lang)


def state_word(state: str | None, lang: str) -> str | None:
    """The state of a record before or after an event in words."""
    return None if state is None else word(having(state, RECORD_STATES, EXTENSION_STATES, STATES), state, lang)
