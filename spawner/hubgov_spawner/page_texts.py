"""The words of the hub's own pages and of a spawn's progress.

Sentences about decisions aren't here: they come rendered from the service.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from hubgov import texts
from hubgov.catalogue import Texts
from hubgov.wire import Workload

COOKIE = "hubgov_lang"

PAGE = Texts(
    "spawner.PAGE",
    {
        # every page
        "home": "Home",
        "token": "Token",
        "admin": "Admin",
        "login": "Login",
        "logout": "Logout",
        "other_language": "中文",
        "simulated": "SIMULATED",
        "simulated_why": "No card is behind these numbers.",
        # progress and its page
        "requested": "Server requested",
        "queue_place": "Place {position} in queue {queue}. {headline}",
        "latest_start": "Starts by {at} as things stand now.",
        "granted": "Granted: {gpus} × {flavor}. The server is starting.",
        "granted_cpu": "Granted. The server is starting.",
        "last_stopping": "The last session is still stopping; this one follows by itself.",
        "starting_title": "Your server is starting",
        "starting_kept": (
            "You are redirected when it is ready. If it has to wait longer, this page leads to the waiting page; "
            "your place is kept."
        ),
        "log": "Event log",
        "cancel": "Cancel",
        "cancelling": "Cancelling",
        "cancelled": "Cancelled.",
        "not_cancelled": "Not cancelled: ",
        "offline": "Connection lost. Your place is kept on the server; this page retries by itself.",
        # why a spawn ended
        "in_queue": (
            "You are in the queue. The server starts by itself when it is your turn; you may close this page."
        ),
        "waiting_page": "Waiting page",
        "refused_next": "You can: {steps}.",
        "away": (
            "The service that grants GPUs does not answer, so nothing was started. Running servers go on. Try "
            "again in a minute."
        ),
        "still_stopping": (
            "The last session of this server is still stopping. Its devices are free in a minute; start again then."
        ),
        "over_meanwhile": "This request is over. {headline}",
        "too_slow": "The server did not start within {seconds} s. Nothing was charged.",
        "open_ticket": "This server waits in the queue as {id}. Cancel that first, then rename.",
        # the form
        "form_title": "Server options",
        "start": "Start",
        "for_user": "For {user}",
        "profile": "Profile",
        "time": "Time",
        "project": "Project",
        "hours": "{n} h",
        "custom": "Other",
        "minutes": "minutes",
        "at_most": "at most {span}",
        "cards": "{gpus} × {flavor}",
        "any_card": "any card",
        "no_gpu": "no GPU",
        "memory": "{size} GPU memory",
        "free": "free now {free}/{total}",
        "starts_now": "starts now",
        "waits": "waits",
        "waits_until": "waits, starts by {at} as things stand",
        "per_hour": "{price} per hour",
        "no_charge": "no charge",
        "not_possible": "not possible",
        "this_request": "This request",
        "sum": "{gpus} GPU × {span} = {total} GPU-h",
        "too_long": "more than the {span} that queue {queue} allows",
        "you": "You: {own}",
        "team_quota": "Team {team}: {used} of {guaranteed} guaranteed, {borrowed} borrowed ({flavor}, pool {pool})",
        "more_refused": "{n} more are not possible for you.",
        "empty": (
            "You are in no team yet, so there is nothing to start here. Ask an administrator of the hub to add you "
            "to the group of your team, then load this page again."
        ),
        "replaces": (
            "{id} waits in the queue for this server. What you choose here takes its place; asking for no more of "
            "anything keeps its position."
        ),
        "no_profiles": (
            "The policy offers no profile for notebooks yet. Ask an administrator to add one under spawn_profiles."
        ),
        "form_offline": (
            "Availability is unknown: the service that grants GPUs does not answer. Running servers go on. Load "
            "this page again in a minute."
        ),
        # the page of a server that isn't running, and the receipt
        "queue_title": "You are in the queue",
        "failed_title": "The server was not started",
        "stopped_title": "The server is not running",
        "stopped_named": "Server {server}",
        "try_again": "Try again",
        "start_server": "Start a new session",
        "restarts": "It is started again by itself in a moment.",
        "ended_title": "Session ended {at} — {reason}",
        "limit_detail": " ({span}, queue {queue})",
        "saved": "Saved documents",
        "saved_at": "saved {at}",
        "none_saved": "No open document was saved.",
        "was_idle": "Why it counted as idle",
        "lost": "Lost",
        "nothing_lost": "Nothing was lost.",
        "files_kept": "Files in your home are kept.",
        "request": "Request",
        "of_project": "project {project}",
        "of_queue": "queue {queue}",
        "returned": "GPU returned",
        "not_returned": "not yet: a process is still on it",
        "used": "Used",
        "gpu_hours": "{hours} GPU-h",
        "past_end_free": " (time past the end is free)",
        "cost": "Cost",
        "exit": "Exit code {code}",
        "resume": "Resume",
        "resume_note": "Same request; the saved documents open again. Variables do not come back.",
        # home
        "place": "place {position} in queue {queue}",
        "ends_at": "ends {at}",
        "stops_at": "stops {at}",
        "so_far": "{cost} so far",
        "open_server": "Open my server",
        "start_my_server": "Start my server",
        "stop_my_server": "Stop my server",
        "named_servers": "Named servers",
        "server_name": "Name",
        "last_activity": "Last activity",
        "actions": "Actions",
        "add_server": "Add a server",
        "new_name": "name of the new server",
        "stop": "stop",
        "start_named": "start",
        "delete": "delete",
        "never": "Never",
        # sign-in and errors
        "sign_in": "Sign in",
        "username": "Username:",
        "password": "Password:",
        "show_password": "Show password",
        "hide_password": "Hide password",
        "insecure": "This hub is reached over HTTP without encryption. Its administrator should enable HTTPS.",
        "wrong_password": "Invalid username or password",
        "not_found": "There is no such page.",
        "no_access": "There is nothing here that you may see. Ask the owner or an administrator if you should.",
        "not_found_status": "Not Found",
        "forbidden": "Forbidden",
        "unavailable": "Service Unavailable",
        "server_error": "Internal Server Error",
        # a server that stops
        "stopping_title": "Your server is stopping",
        "stopping_then": "You can start it again when it has stopped.",
    },
)


HUB_SAYS: Mapping[str, str] = {
    "Invalid username or password": "wrong_password",
    "No access to resources or resources not found": "no_access",
    "Not Found": "not_found_status",
    "Forbidden": "forbidden",
    "Service Unavailable": "unavailable",
    "Internal Server Error": "server_error",
}
"""Everyday sentences of the hub itself, and what they are here."""


def say(key: str, lang: str, **facts: object) -> str:
    """A text of the table with its facts."""
    return PAGE.pick(key, lang).format(**facts)


def clock(at: str | None, zone: str, *, now: str | None = None, seconds: bool = False) -> str:
    """An RFC 3339 time as the wall clock of a zone: `18:30`, on another day `03-02 18:30`; a dash for none."""
    if at is None:
        return "—"
    place = _zone(zone)
    local = datetime.fromisoformat(at).astimezone(place)
    today = datetime.fromisoformat(now).astimezone(place).date() if now else local.date()
    day = "" if local.date() == today else "%m-%d "
    return local.strftime(day + ("%H:%M:%S" if seconds else "%H:%M"))


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError):  # one that this machine hasn't got: a time in UTC beats no page
        return UTC


def held(workload: Workload, lang: str) -> str:
    """What a workload holds, or held: `1 × A100 (box/0, box/1)`, `no GPU`."""
    if not workload.gpus:
        return say("no_gpu", lang)
    cards = say("cards", lang, gpus=number(workload.gpus), flavor=workload.flavor or say("any_card", lang))
    devices = ", ".join(f"{device.node}/{device.index}" for device in workload.devices)
    return f"{cards} ({devices})" if devices else cards


def money(value: Mapping[str, Any] | None, times: float = 1) -> str:
    """An amount with its sign and two decimals, `¥74.00`; a dash when it isn't known. Multiplied exactly."""
    if value is None:
        return "—"
    return texts.money(str(Decimal(value["amount"]) * Decimal(str(times))), str(value["currency"]))


def number(value: float) -> str:
    """A number with at most three decimals and none that says nothing: `4`, `0.25`."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def language(handler: Any) -> str:
    """The reader's language: the `hubgov_lang` cookie, else Accept-Language, else English."""
    request = getattr(handler, "request", None)
    if request is None:
        return "en"
    asked = handler.get_cookie(COOKIE, "")
    return asked if asked in texts.LANGUAGES else texts.best_language(request.headers.get("Accept-Language"))
