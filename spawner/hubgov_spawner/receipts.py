"""The receipt of a server's last session, as its page shows it: with every text ready for the template."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hubgov import texts
from hubgov.wire import Receipt, Workload, format_span, gpus
from hubgov_spawner.client import Client, ServiceError
from hubgov_spawner.options import LANGUAGE_FIELD
from hubgov_spawner.page_texts import clock, held, number, say

PAGE_SECONDS = 2.0
"""How long a page waits for the service before it renders without."""

_BY_TIME = ("lease", "max")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One document that was saved: where, and when."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that the page of an ended session shows. `documents` are those that were saved; the others stand in
    `lost`. `returned` is empty where there was no GPU. `resume` are the fields of the form that starts it again."""

    title: str
    request: str
    documents: tuple[Line, ...]
    lost: tuple[str, ...]
    evidence: tuple[str, ...]
    returned: str
    used: str
    cost: str
    exit: str
    simulated: bool
    resume: Mapping[str, str]


async def view(
    client: Client, user: str, server: str, options: Mapping[str, Any], log: logging.Logger
) -> View | None:
    """The receipt of the last session; None when there is none, or the service doesn't tell in time."""
    try:
        async with asyncio.timeout(PAGE_SECONDS):
            receipt = await client.receipt(user, server)
    except (ServiceError, TimeoutError) as error:
        log.warning("No receipt for %s: %s", user, error or "the service is too slow")
        return None
    return as_view(receipt, client.lang, options) if receipt else None


def as_view(receipt: Receipt, lang: str, options: Mapping[str, Any]) -> View:
    """The texts of a receipt in a language. `options` are those that the server started with."""
    workload, zone = receipt.workload, receipt.timezone
    used = format_span(receipt.used_seconds * 1000)
    if workload.gpus:
        used += " · " + say("gpu_hours", lang, hours=number(receipt.gpu_seconds / 3600))
        # Rounded to the second each; what is more than that was past the end.
        if receipt.used_seconds * workload.gpus - receipt.gpu_seconds > max(2, workload.gpus):
            used += say("past_end_free", lang)
    free = receipt.devices_free_at
    returned = clock(free, zone, now=workload.now, seconds=True) if free else say("not_returned", lang)
    return View(
        title=_title(workload, lang, zone),
        request=_request(workload, lang),
        documents=tuple(
            Line(path=d.path, text=say("saved_at", lang, at=clock(d.saved_at, zone, now=workload.now)))
            for d in receipt.documents
            if d.outcome == "saved"
        ),
        lost=receipt.lost,
        evidence=receipt.evidence,
        returned=returned if workload.gpus else "",
        used=used,
        cost=texts.money(receipt.cost.amount, receipt.cost.currency),
        exit=say("exit", lang, code=workload.exit_code) if workload.exit_code else "",
        simulated=workload.simulated,
        resume=_resume(workload, options, lang),
    )


def _title(workload: Workload, lang: str, zone: str) -> str:
    reason = texts.word(texts.END_REASONS, workload.end_reason or workload.state, lang)
    if workload.end_reason in _BY_TIME and workload.lease_seconds:
        span = format_span(workload.lease_seconds * 1000)
        reason += say("limit_detail", lang, span=span, queue=workload.queue)
    return say("ended_title", lang, at=clock(workload.ended_at, zone, now=workload.now), reason=reason)


def _request(workload: Workload, lang: str) -> str:
    """What was held and for whom it was charged: `1 × A100 (box/0) · project seg · queue experiment`."""
    whose = [say("of_project", lang, project=workload.project), say("of_queue", lang, queue=workload.queue)]
    return " · ".join([held(workload, lang), *whose])


def _resume(workload: Workload, options: Mapping[str, Any], lang: str) -> dict[str, str]:
    """The same request as form fields: the profile that the hub remembers, else what the workload had."""
    if options.get("profile"):
        wanted = {"profile": options["profile"]}
    else:
        wanted = {
            "queue": workload.queue,
            "gpus": gpus(round(workload.gpus * 1000)),
            "flavor": workload.flavor,
            "memory": f"{workload.memory_mib}MiB" if workload.memory_mib else None,
            "cpus": workload.cpus,
            "ram": f"{workload.ram_mib}MiB" if workload.ram_mib else None,
        }
    lease = options.get("lease") or workload.lease_seconds
    wanted |= {"project": workload.project, "lease": lease, "resumes": workload.id, LANGUAGE_FIELD: lang}
    return {key: str(value) for key, value in wanted.items() if value is not None}
