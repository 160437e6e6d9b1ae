"""The hub engine sees and kills its own processes only: several hubs may share a machine."""

from __future__ import annotations

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
