"""Why a spawn ends without a server, as the hub wants it: one SpawnException a reason.

Its `reason` is a label of the hub's metrics, so the words are few: invalid, policy, queue, stopping, over,
governor, timeout. With any other exception the hub counts a failure of its own and ends itself after some.
"""

from __future__ import annotations

import logging

from jupyterhub.spawner import SpawnException
from markupsafe import Markup, escape

from hubgov.wire import Decision, Workload
from hubgov_spawner import option_texts
from hubgov_spawner.client import ServiceError
from hubgov_spawner.page_texts import say

_FORBIDDEN = ("not_allowed", "data_access")
_ANSWERED = {401: "governor", 403: "policy", 429: "queue"}
"""Statuses by which the service says no itself, with the label of each: it does answer."""


class Everyday(logging.Filter):
    """Has the hub write a refusal as one line. It logs whatever ends the start that a form asked for as a failure
    with a traceback, of which no type of exception is exempt."""

    def filter(self, record: logging.LogRecord) -> bool:
        """True: the record is kept, without the traceback of an exception of ours."""
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if isinstance(error, SpawnException) and hasattr(error, "jupyterhub_message"):
            said = " ".join(str(error.log_message or error.message).split())
            record.msg, record.args = "%s: %s: %s", (record.getMessage(), error.reason, said)
            record.exc_info = record.exc_text = None
        return True


EVERYDAY = Everyday()


def shown(error: SpawnException) -> SpawnException:
    """The same exception, shown on every page: the pending page reads these two attributes only."""
    if not hasattr(error, "jupyterhub_message"):
        error.jupyterhub_message = error.message
        error.jupyterhub_html_message = error.message_html or str(escape(error.message))
    return error


def invalid(message: str, hint: str, lang: str) -> SpawnException:
    """What was asked for can't be read."""
    message, hint = option_texts.told(message, hint, lang)
    text = f"{message}; {hint}" if hint else message
    return shown(SpawnException(text, reason="invalid", status_code=422))


def refused(decision: Decision, lang: str) -> SpawnException:
    """The policy says no, with its rule and what can be done."""
    status = 403 if decision.code in _FORBIDDEN else 422
    text, html = decision.headline, Markup("<strong>{}</strong>").format(decision.headline)
    if decision.next_steps:
        text += " " + say("refused_next", lang, steps="; ".join(decision.next_steps))
        steps = Markup("").join(Markup("<li>{}</li>").format(step) for step in decision.next_steps)
        html += Markup('<ul class="list-unstyled mb-0">{}</ul>').format(steps)
    return shown(SpawnException(text, reason="policy", message_html=str(html), status_code=status))


def queued(workload: Workload, waiting_url: str, lang: str) -> SpawnException:
    """It isn't the user's turn yet: the ticket stays, and the spawn leads to its waiting page."""
    address = f"{waiting_url.rstrip('/')}/{workload.id}"
    text = f"{say('in_queue', lang)} {workload.headline}".strip()
    # The pending page follows a link of this class by itself.
    link = Markup('<a class="hubgov-waiting" href="{}">{}</a>').format(address, say("waiting_page", lang))
    html = Markup("{} {}").format(text, link)
    error = SpawnException(f"{text} {address}", reason="queue", message_html=str(html), status_code=503)
    error.hubgov_waiting = address  # pages that get the exception itself go there too
    return shown(error)


def away(error: ServiceError, lang: str) -> SpawnException:
    """The service doesn't answer: nothing was started."""
    log = f"the governing service: {error.message}"
    return shown(SpawnException(say("away", lang), reason="governor", status_code=503, log_message=log))


def still_stopping(lang: str) -> SpawnException:
    """The last session of the server holds its devices yet."""
    return shown(SpawnException(say("still_stopping", lang), reason="stopping", status_code=409))


def over(headline: str, lang: str) -> SpawnException:
    """The ticket ended while the spawn waited: cancelled elsewhere, or waited for too long."""
    text = say("over_meanwhile", lang, headline=headline)
    return shown(SpawnException(text, reason="over", status_code=409))


def too_slow(seconds: float, lang: str) -> SpawnException:
    """The server wasn't up in time."""
    text = say("too_slow", lang, seconds=round(seconds))
    return shown(SpawnException(text, reason="timeout", status_code=504))


def of_service(error: ServiceError, lang: str) -> SpawnException:
    """Whatever the service answered, in the hub's words."""
    if error.away:
        return away(error, lang)
    if error.decision is not None:
        return refused(error.decision, lang)
    if error.code == "still_stopping":
        return still_stopping(lang)
    if error.status in (404, 409):  # it says itself what is over, or isn't there
        text = f"{error.message}; {error.hint}" if error.hint else error.message
        return shown(SpawnException(text, reason="over", status_code=error.status))
    if error.status in (400, 422):
        return invalid(error.message, error.hint, lang)
    log = f"the governing service answers {error.status} {error.code}: {error.message}; {error.hint}"
    if (reason := _ANSWERED.get(error.status)) is not None:
        text = f"{error.message}; {error.hint}" if error.hint else error.message
        status = 503 if error.status == 401 else error.status  # the hub's own token is wrong, not the user's
        return shown(SpawnException(text, reason=reason, status_code=status, log_message=log))
    return shown(SpawnException(say("away", lang), reason="governor", status_code=503, log_message=log))


def open_ticket(workload: str, lang: str) -> SpawnException:
    """A server can't be renamed while it waits in the queue."""
    text = say("open_ticket", lang, id=workload)
    return shown(SpawnException(text, reason="queue", status_code=409))
