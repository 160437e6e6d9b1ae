"""The words of the service's own pages."""

from __future__ import annotations

from hubgov.catalogue import Texts

PAGE = Texts(
    "service.PAGE",
    {
        "title": "GPU sessions",
        "other_language": "中文",
        "back": "Hub home",
        "waiting_title": "Waiting for a GPU",
        "position": "Place {position} in queue {queue}",
        "in_queue": "In queue {queue}",
        "why": "Why",
        "latest_start": "Starts by",
        "as_things_stand": "as things stand: others' extensions, early ends and requests can move it",
        "to_receipt": "Receipt, and start it again",
        "job_runs": "It runs.",
        "job_starts": "It is starting.",
        "job_log": "What it writes:",
        "not_known": "not known",
        "request": "Request",
        "waited": "Waited",
        "kept": "Your place is kept. You may close this page; the server starts by itself.",
        "cancel": "Cancel",
        "open": "Open the notebook",
        "starting": "Granted. The server is starting; this page opens it by itself.",
        "granted_other": "Granted. It is for {owner} to open.",
        "is_running": "The server runs.",
        "is_preempting": (
            "Its devices are needed for work that is guaranteed them. It is stopped after its grace, and then "
            "waits again at its old place."
        ),
        "stops_at": "Stops at",
        "is_stopping": "It is being stopped: its documents are saved first, then its devices are freed.",
        "is_quarantined": (
            "It is stopped, and its team is no longer charged; a process of it is not gone yet, so its devices "
            "stay fenced until it is."
        ),
        "is_suspect": (
            "Its node doesn't answer. If it comes back in time the session goes on; if not, it waits again at its "
            "old place."
        ),
        "offline": "Connection lost. Your place is kept on the server; this page retries every 10 s.",
        "blockers": "What is in the way",
        "need": "needs",
        "have": "left",
        "held_by": "held by",
        "free_at": "free at the latest",
        "end_is": "end",
        "next": "You can",
        "simulated": "SIMULATED",
        "mine": "My sessions and requests",
        "nothing": "Nothing runs and nothing waits.",
        "start_one": "Start a notebook",
        "quota": "Quota",
        "devices": "Devices",
        "no_devices": "No devices yet.",
        "team": "Team",
        "project": "Project",
        "pool": "Pool",
        "card": "Card",
        "guaranteed": "Guaranteed",
        "used": "In use",
        "borrowed": "Borrowed",
        "available": "Available",
        "node": "Node",
        "owner": "Responsible",
        "environment": "Environment",
        "state": "State",
        "use": "Use",
        "session": "Session",
        "ends": "Lease ends",
        "grace_to": "grace to {at}",
        "cost": "Cost so far",
        "missing": "No request {what}, or none of yours.",
    },
)
