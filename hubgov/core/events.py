"""The names of everything that is written to the journal: somebody's act or an end by rule, or the daily run.

Every `Change` bears one of these names, so that a new one has its place in the audit before it is first written.
"""

from __future__ import annotations

ACTS = frozenset(
    {
        # more time
        "extension_granted", "extension_needs_approval", "extension_denied", "extension_lapsed",
        "extension_withdrawn",
        # the end of a session or a request, by somebody or by rule
        "workload_cancelled", "retry_cancelled", "stop_hastened", "stop_asked", "allocation_cancelled",
        "allocation_stop_ordered", "allocation_grace_ended", "allocation_lease_ended", "allocation_stop_overdue",
        "allocation_start_overdue", "allocation_preempted", "allocation_spared", "allocation_node_lost",
        # what was decided of an idle session, or would have been
        "idle_kept", "idle_stop_observed", "alive_only_by_claim", "allocation_idled", "allocation_revived",
        "kernel_ended", "kernel_not_ended", "kernel_end_observed",
        # the place
        "server_start_asked", "user_departed", "policy_applied", "queue_held", "queue_released", "node_drained",
        "node_undrained",
    }
)  # fmt: skip
"""Somebody's act, or what a rule did to somebody: what the audit shows."""

DAILY = frozenset(
    {
        "workload_submitted", "workload_admitted", "workload_moved", "workload_pending", "workload_running",
        "workload_succeeded", "workload_failed", "workload_expired", "workload_culled",
        "allocation_reserved", "allocation_launched", "allocation_ready", "allocation_exited",
        "allocation_extended", "allocation_gone", "allocation_node_silent", "allocation_node_back",
        "allocation_unknown_to_engine",
        "idle_suspected", "idle_asked", "idle_keep_ended", "idle_at_work", "idle_withdrawn", "idle_rule_gone",
        "idle_grace_moved", "kernel_end_asked", "kernel_end_withdrawn",
        "decision_told", "stop_told", "warning_issued", "extension_counted", "tariff_ended",
        "server_claimed", "processes_known", "save_requested", "save_answered", "documents_saved", "node_seen",
    }
)  # fmt: skip
"""Events of the daily run, which the audit leaves out unless it is asked for all."""

UNWRITTEN = frozenset({"loaded", "what_if"})
"""Changes to a picture that no journal gets: what was read back, what is only thought through."""

KNOWN = ACTS | DAILY | UNWRITTEN
