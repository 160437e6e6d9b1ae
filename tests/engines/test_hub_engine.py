"""The hub engine sees and kills its own processes only: several hubs may share a machine."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from hubgov import processes
from hubgov.clock import Instant
from hubgov.core.model import Allocation, AllocationId, Lease, WorkloadId
from hubgov.engines.base import Seen, mark
from hubgov.engines.hub import HubEngine
from hubgov.errors import Unavailable


def engine(site: str) -> HubEngine:
    return HubEngine("http://127.0.0.1:1/hub/api", "token", site, logging.getLogger("test"))


@pytest.fixture
def allocation() -> Allocation:
    return Allocation(
        id=AllocationId("nb-1.1"),
        workload=WorkloadId("nb-1"),
        attempt=1,
        pool="dev",
        flavor=None,
        milli_gpus=0,
        devices=(),
        node="box",
        cpus=0,
        ram_mib=0,
        lease=Lease(length_ms=1000, grace_ms=0, warn_ms=()),
        reserved_at=Instant(1),
        policy_version=1,
    )


@pytest.fixture
def straggler(allocation: Allocation) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "HUBGOV_ALLOCATION_ID": mark("this-site", allocation)}
    child = subprocess.Popen([sys.executable, "-c", "input()"], env=environment, stdin=subprocess.PIPE)
    yield child
    child.kill()
    child.communicate()


def test_it_sees_a_process_that_nobody_reported(allocation: Allocation, straggler: subprocess.Popen[bytes]) -> None:
    assert engine("this-site").look(allocation) is Seen.ALIVE


def test_another_sites_allocation_of_the_same_name_is_left_alone(
    allocation: Allocation, straggler: subprocess.Popen[bytes]
) -> None:
    other = engine("another-site")
    assert other.look(allocation) is Seen.UNSEEN
    other.kill(allocation)
    ref = processes.identify(straggler.pid)
    assert ref is not None
    assert processes.is_alive(ref)


def test_its_own_is_killed(allocation: Allocation, straggler: subprocess.Popen[bytes]) -> None:
    engine("this-site").kill(allocation)
    assert straggler.wait(10) == -9


@pytest.mark.boxed
def test_a_neighbour_who_sets_the_mark_neither_holds_a_device_nor_is_killed(allocation: Allocation) -> None:
    environment = {**os.environ, "HUBGOV_ALLOCATION_ID": mark("this-site", allocation)}
    with subprocess.Popen(["sleep", "60"], env=environment, user=61998, group=61998, extra_groups=[]) as other:
        try:
            assert engine("this-site").look(allocation) is Seen.UNSEEN
            over = dataclasses.replace(allocation, halted_at=Instant(2))
            assert engine("this-site").look(over) is Seen.GONE
            engine("this-site").kill(allocation)
            assert other.poll() is None
        finally:
            other.kill()


@pytest.mark.boxed
def test_who_took_the_hubs_port_gets_no_token() -> None:
    listens = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); "
    reads = "s.settimeout(600); print(s.accept()[0].recv(1000), flush=True)"
    command = ["/usr/bin/python3", "-c", listens + reads]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, user=61998, group=61998, extra_groups=[], cwd="/"
    ) as other:
        try:
            assert other.stdout
            url = f"http://127.0.0.1:{int(other.stdout.readline())}/hub/api"
            asks = HubEngine(url, "secret", "site", logging.getLogger("test"))

            async def ask() -> None:
                try:
                    assert not await asks.answers()
                    with pytest.raises(Unavailable, match="61998"):
                        await asks._ask("GET", "/users/amy")
                finally:
                    await asks.close()

            asyncio.run(ask())
            assert other.poll() is None, "he still waits for a call"
        finally:
            other.kill()
