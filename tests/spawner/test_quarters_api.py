"""Who is told where jobs run, and what the answer is when it can't be said."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from hubgov_spawner.client import ServiceError
from hubgov_spawner.quarters_api import QuartersHandler
from jupyterhub import orm
from tornado import web

from hubgov import errors

SERVICE = orm.Service(name="hubgov")


def asked(by: Any, trouble: Exception | None = None, *, homes: bool = True) -> tuple[int, Any]:
    """(status, body) of the answer to who got past the check of scopes."""
    written: list[Any] = []

    async def quarters() -> Any:
        if trouble is not None:
            raise trouble
        return SimpleNamespace(to_json=lambda: {"account": "hgu1"})

    spawner = SimpleNamespace(quarters=quarters) if homes else SimpleNamespace()
    handler = SimpleNamespace(
        current_user=by, find_user=lambda name: SimpleNamespace(spawner=spawner) if name == "amy" else None,
        log=logging.getLogger("hubgov.test"), write=written.append,
    )  # fmt: skip
    try:
        asyncio.run(QuartersHandler.post.__wrapped__(handler, "amy"))
    except web.HTTPError as error:
        return error.status_code, None
    return 200, written[0]


def test_a_service_is_told() -> None:
    assert asked(SERVICE) == (200, {"account": "hgu1"})
    assert asked(SERVICE, homes=False) == (501, None)


def test_no_person_is_told_not_even_of_himself() -> None:
    assert asked(SimpleNamespace(name="amy", kind="user", admin=True)) == (403, None)


@pytest.mark.parametrize(
    ("trouble", "status"),
    [
        (errors.Invalid("no uid left"), 409),
        (errors.Unavailable("the register can't be read"), 503),
        (OSError(28, "No space left on device"), 503),
        (PermissionError(13, "denied"), 503),
        (ServiceError("no answer", code="unavailable"), 503),
    ],
)
def test_what_may_pass_is_asked_again(trouble: Exception, status: int) -> None:
    assert asked(SERVICE, trouble) == (status, None)
