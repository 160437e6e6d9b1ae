"""The real service with a stand-in hub that gives people real homes: jobs run as real processes in real boxes."""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path
from typing import Any

from hubgov_spawner import accounts, isolation
from hubgov_spawner.isolation import Box, Mode
from hubgov_spawner.quarters import Quarters
from service_under_test import PEOPLE, ServiceUnderTest
from waiting import until

LOG = logging.getLogger("hubgov.test")
NUMBERS = {"amy": 4101, "bo": 4102}
"""Accounts are the machine's: these numbers are no other test's."""
UID_BASE = 61000

POLICY = (
    PEOPLE
    + """\
version: 1
timezone: UTC
currency: CNY
defaults: {environment: experiment, owner: admin, team: platform}
flavors:
  a100: {vendor: nvidia, model: SIMULATED A100-80GB, memory: 80GiB, price_per_hour: 18.5}
pools:
  train: {engine: local, team: platform, project: lab, owner: admin}
nodes:
  box: {match: {hostname: HOSTNAME}, flavor: a100, pools: {train: [0, 1]}}
queues:
  train:
    kinds: [training]
    pools: [train]
    lease: {default: 4h, max: 12h}
    grace: 5s
    extension: {self_serve: {count: 2, step: 2h}, approvers: [team-lead, admin], max_total: 9h}
  retried:
    kinds: [training]
    pools: [train]
    lease: {default: 4h, max: 12h}
    retry: {max: 1, backoff: 1s}
  any:
    kinds: [training, batch_inference, evaluation, data]
    pools: [train]
    lease: {default: 4h, max: 12h}
"""
)


class Jobs(ServiceUnderTest):
    """Submits as its people, whose homes lie in the state folder as the spawner would make them."""

    def __init__(self, state: Path, mode: str = "root", policy: str = POLICY, **more: Any) -> None:
        super().__init__(state, policy, **more)
        self.mode = Mode(mode)
        self.found = isolation.detect(mode)
        self.hub.quarters = self.quarters

    def home(self, name: str) -> Path:
        """The person's home on the host, made if missing."""
        account = accounts.account_of(NUMBERS[name], UID_BASE)
        uid, gid = (account.uid, account.gid) if self.mode is Mode.ROOT else (os.getuid(), os.getgid())
        if self.mode is Mode.ROOT:
            accounts.ensure_system_account(account)
        return Path(accounts.prepare_home(str(self.state), account.name, uid=uid, gid=gid))

    def quarters(self, name: str) -> tuple[int, Any]:
        """What a hub with boxed spawners would answer."""
        home, account = str(self.home(name)), accounts.account_of(NUMBERS[name], UID_BASE)
        inside = home if self.mode is Mode.SINGLE_USER else f"/home/{account.name}"
        box = Box(
            mode=self.mode,
            uid=account.uid,
            gid=account.gid,
            account=account.name,
            home=home,
            home_inside=inside,
            read_only=isolation.installed_paths(),
            hostname=socket.gethostname(),
        )
        found = Quarters(
            account=account.name,
            home=home,
            home_inside=inside,
            isolation=self.found,
            box=None if self.mode is Mode.SINGLE_USER else box,
        )
        return 200, found.to_json()

    def submit(self, who: str, *command: str, **more: Any) -> dict[str, Any]:
        body = {"queue": "train", "gpus": 1, "command": list(command), **more}
        answer = self.call(who, "POST", "/workloads", body)
        assert answer.status_code == 201, answer.text
        document: dict[str, Any] = answer.json()
        return document

    def until(self, workload: str, *states: str, timeout: float = 30) -> dict[str, Any]:
        """Its document once it is in one of these states."""

        def there() -> dict[str, Any] | None:
            found = self.show(workload)
            return found if found["state"] in states else None

        try:
            return until(there, timeout, f"{workload} to be {states}") or {}
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {self.show(workload)}\n{self.log()[-2000:]}") from None

    def ended(self, workload: str, timeout: float = 30) -> dict[str, Any]:
        return self.until(workload, "succeeded", "failed", "cancelled", "expired", timeout=timeout)

    def run_(self, who: str, *command: str, **more: Any) -> dict[str, Any]:
        """Submitted and over."""
        return self.ended(self.submit(who, *command, **more)["id"])

    def output(self, workload: str, who: str = "admin", **query: Any) -> str:
        answer = self.call(who, "GET", f"/workloads/{workload}/logs", params=query)
        assert answer.status_code == 200, answer.text
        text: str = answer.json()["text"]
        return text

    def folder(self, workload: str, attempt: int = 1) -> Path:
        """Where the files of an attempt are."""
        [ledger] = (self.state / "jobs").iterdir()
        return ledger / f"{workload}.{attempt}"
