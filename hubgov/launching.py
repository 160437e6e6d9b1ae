"""How jobs are started here: account and home by the hub's word, the box as a notebook's, the environment by list.

Composition: the engine runs orders and knows neither hub nor boxes; the spawner's package knows boxes and no jobs.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

import httpx
from hubgov_spawner import isolation
from hubgov_spawner.quarters import Quarters

from hubgov import processes
from hubgov.core.model import Allocation, Workload
from hubgov.core.state import State
from hubgov.engines.base import CannotStart, mark
from hubgov.engines.job_folder import DEADLINE
from hubgov.engines.local import ENTRY, FIRST_FREE_FD, GO_FD, INFO_FD, PLAIN_PYTHON, REPORTS_FD, Order
from hubgov.errors import Unavailable
from hubgov.service import environment

_REFUSED = (404, 409, 501)
"""Answers of the hub after which it is of no use to ask again."""
_NOT_LET_IN = (401, 403)
"""It doesn't take the service's own token: no fault of the job, and mended by who runs the hub."""


class BoxLauncher:
    """Asks one hub, by its API's address and the service's token."""

    def __init__(
        self,
        api_url: str,
        token: str,
        *,
        state: Callable[[], State],
        site: str,
        service_url: str,
        log: logging.Logger,
    ) -> None:
        self._state, self._site, self._service_url, self._log = state, site, service_url, log
        self._quarters: dict[str, Quarters] = {}
        self._shut_out = False
        self._client = httpx.AsyncClient(
            base_url=api_url, headers={"Authorization": f"token {token}"}, timeout=30.0, trust_env=False
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def answers(self) -> bool:
        try:
            return (await self._ask("GET", "/")).status_code < 500
        except Unavailable:
            return False

    async def prepare(self, owner: str) -> None:
        """Ask anew each time: a home may have been moved, an account renamed."""
        answer = await self._ask("POST", f"/hubgov/quarters/{quote(owner, safe='')}")
        if answer.status_code in _REFUSED:
            self._log.warning("event=no_quarters owner=%s status=%s", owner, answer.status_code)
            raise CannotStart(_said(answer), code="no_home")
        if answer.status_code in _NOT_LET_IN and not self._shut_out:
            self._log.error(
                "event=service_not_let_in status=%s hint=%s", answer.status_code,
                "no job starts: the hub's role of this service needs the scope start:servers",
            )  # fmt: skip
        self._shut_out = answer.status_code in _NOT_LET_IN
        if answer.status_code != 200:
            raise Unavailable(f"the hub gives {owner} no home: {answer.status_code}", hint="see the hub's log")
        try:
            self._quarters[owner] = Quarters.from_json(answer.json())
        except (ValueError, KeyError, TypeError) as error:
            raise Unavailable(
                "the hub's answer can't be read", hint="hub and service must be of one version"
            ) from error

    def order(self, workload: Workload, allocation: Allocation, told: Path) -> Order:
        """The box of the owner's servers with this allocation's devices, and the entry in it."""
        lives = self._quarters[workload.owner]
        entry = (sys.executable, *PLAIN_PYTHON, ENTRY, str(REPORTS_FD), str(GO_FD))
        outer_env = {processes.ALLOCATION_VARIABLE: mark(self._site, allocation), "PATH": "/usr/bin:/bin"}
        argv: tuple[str, ...] = entry
        files: dict[int, bytes] = {}
        shown = str(told)
        if lives.box is not None:
            nodes = environment.device_nodes(self._state(), allocation)
            box = dataclasses.replace(lives.box, device_nodes=nodes, told=str(told))
            (argv, files), shown = _in_box(box, lives.isolation, entry), isolation.TOLD
        return Order(
            argv=argv,
            outer_env=outer_env,
            files=files,
            boxed=lives.box is not None,
            command=workload.request.command,
            env=self._environment(workload, allocation, lives, shown),
            home=lives.home_inside,
            cwd=workload.request.cwd,
        )

    def _environment(
        self, workload: Workload, allocation: Allocation, lives: Quarters, told: str
    ) -> Mapping[str, str]:
        """The whole of it: everyday defaults, what the owner set, and what only hubgov sets."""
        folders = (os.path.dirname(sys.executable), "/usr/local/bin", "/usr/bin", "/bin")
        # A pipe is not a terminal: unasked, Python would keep lines back for minutes that `logs -f` waits for.
        weak = {"PATH": ":".join(folders), "SHELL": "/bin/bash", "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
        granted = environment.variables(
            self._state().policy, workload, allocation, service_url=self._service_url, site=self._site
        )
        ours = {"HOME": lives.home_inside, "USER": lives.account, "LOGNAME": lives.account}
        ours["HUBGOV_DEADLINE_FILE"] = f"{told}/{DEADLINE}"
        return {**weak, **workload.request.env, **granted, **ours}

    async def _ask(self, method: str, path: str) -> httpx.Response:
        impostor = processes.impostor_at(str(self._client.base_url), from_outside=True)
        if impostor is not None:
            raise Unavailable(
                f"the hub's port is held by uid {impostor}, which gets no token", hint="it is asked again"
            )
        try:
            return await self._client.request(method, path)
        except httpx.HTTPError as error:
            raise Unavailable(
                f"the hub doesn't answer: {type(error).__name__}", hint="it is asked again"
            ) from error


def _said(answer: httpx.Response) -> str:
    """What the hub says of its refusal."""
    try:
        return str(answer.json()["message"])[:300]
    except (ValueError, KeyError, TypeError):
        return f"the hub answered {answer.status_code}"


def _in_box(
    box: isolation.Box, found: isolation.Isolation, entry: tuple[str, ...]
) -> tuple[tuple[str, ...], dict[int, bytes]]:
    """bwrap's command line for a box around the entry, and what it reads from open files."""
    contents = [text.encode() for text in isolation.texts(box).values()]
    seccomp = isolation.seccomp_filter()
    text_fds = dict(zip(isolation.texts(box), range(FIRST_FREE_FD, FIRST_FREE_FD + len(contents)), strict=True))
    files = dict(zip(text_fds.values(), contents, strict=True))
    seccomp_fd = FIRST_FREE_FD + len(files)
    if seccomp:
        files[seccomp_fd] = seccomp
    options = isolation.options(
        box, isolation=found, text_fds=text_fds, info_fd=INFO_FD, seccomp_fd=seccomp_fd if seccomp else None
    )
    args_fd = FIRST_FREE_FD + len(files)
    files[args_fd] = "".join(f"{option}\0" for option in options).encode()
    inner = [*isolation.drop_rights(box, isolation=found), *entry]
    return (found.bwrap, "--args", str(args_fd), "--", *inner), files
