"""Every line of the journal names a principal of the hub: a service called like a user is somebody else."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from control.house import POLICY, SPAWNER, House, a_house, person

from hubgov.control import approvals, observe, policies, session, steer, submit
from hubgov.control.actor import ADMIN, APPROVE, Actor
from hubgov.core.idleness import KernelEnding
from hubgov.core.model import Change, ProcessId, Request
from hubgov.core.policy import Kind
from hubgov.core.transitions import SERVICE
from hubgov.ledger import reading
from hubgov.telemetry.probe import Reading

HOUR_MS = 3_600_000
TWIN = Actor(name="amy", kind="service", groups=frozenset({"vision"}), scopes=frozenset({ADMIN, APPROVE}))
"""A service with an admin's rights and a user's name."""
NOTEBOOKS, JOBS = frozenset({Kind.NOTEBOOK}), frozenset({Kind.TRAINING})
TRAINS = POLICY.replace("kinds: [notebook]", "kinds: [notebook, training]")


async def drain(house: House) -> Actor:
    await house.do(lambda unit: observe.drain(unit, "box", TWIN, drained=True, reason="upkeep"))
    await house.do(lambda unit: observe.drain(unit, "box", TWIN, drained=False, reason=""))
    return TWIN


async def apply(house: House) -> Actor:
    text = await house.do(lambda unit: policies.apply(unit, TRAINS.replace("grace: 5m", "grace: 6m"), 1, TWIN))
    assert text.applied_by == "service:amy"
    return TWIN


async def hold(house: House) -> Actor:
    for held in (True, False):
        await house.do(
            lambda unit, held=held: steer.hold(unit, "experiment", TWIN, held=held, closed=False, reason="upkeep")
        )
    return TWIN


async def submit_job(house: House) -> Actor:
    draft = submit.Draft(
        queue="experiment", request=Request(milli_gpus=(1000,), command=("true",)), kind="training", project="seg"
    )
    await house.do(lambda unit: submit.submit(unit, draft, TWIN, TWIN, JOBS))
    return TWIN


async def cancel(house: House) -> Actor:
    workload = await house.ask("amy")
    await house.do(lambda unit: steer.cancel(unit, workload, TWIN, reason="upkeep", now=False))
    return TWIN


async def extend(house: House) -> Actor:
    workload = await house.ask("amy")
    await house.run(workload)
    await house.do(
        lambda unit: steer.extend(unit, workload, TWIN, by_ms=HOUR_MS, reason="eval", lease_version=None)
    )
    return TWIN


async def ensure_server(house: House) -> Actor:
    draft = submit.Draft(queue="experiment", request=Request(milli_gpus=(1000,)))
    await house.do(lambda unit: submit.ensure_server(unit, draft, person("amy"), SPAWNER, NOTEBOOKS))
    return SPAWNER


async def launch(house: House) -> Actor:
    workload = await house.ask("amy")
    await house.do(lambda unit: session.launch(unit, workload, 1, SPAWNER))
    return SPAWNER


async def processes(house: House) -> Actor:
    workload = await house.ask("amy")
    main = ProcessId(pid=1, start_ticks=1, boot_id="b")
    await house.do(lambda unit: session.processes(unit, workload, 1, SPAWNER, main=main, init=None))
    return SPAWNER


async def ready(house: House) -> Actor:
    workload = await house.ask("amy")
    await house.do(lambda unit: session.launch(unit, workload, 1, SPAWNER))
    await house.do(lambda unit: session.ready(unit, workload, 1, SPAWNER, "http://x/"))
    return SPAWNER


async def ended(house: House) -> Actor:
    """The owner stopped it by the hub's own button: his act, that the spawner tells of."""
    workload = await house.ask("amy")
    await house.run(workload)
    await house.do(
        lambda unit: session.ended(unit, workload, 1, SPAWNER, code=0, signal=None, by_owner=True),
    )
    return person("amy")


async def stopping(house: House) -> Actor:
    """The hub was told to stop it: its owner's word."""
    workload = await house.ask("amy")
    await house.run(workload)
    await house.do(lambda unit: session.stopping(unit, workload, 1, SPAWNER, now=False))
    return person("amy")


async def claim(house: House) -> Actor:
    workload = await house.ask("amy")
    grant = house.allocation(workload).id
    assert await house.do(lambda unit: session.unattended(unit, grant))
    await house.do(lambda unit: session.claim(unit, workload, person("amy")))
    return person("amy")


async def saved(house: House) -> Actor:
    workload = await house.ask("amy")
    await house.run(workload)
    await house.tick(HOUR_MS)
    await house.saves(workload)
    return person("amy")


async def departed(house: House) -> Actor:
    await house.do(lambda unit: session.departed(unit, "zoe", SPAWNER))
    return SPAWNER


async def kernel_ended(house: House) -> Actor:
    """The session shut a kernel down that it was told to."""
    workload = await house.ask("amy")
    before = await house.run(workload)
    ending = KernelEnding(id="k", path="a.ipynb", since=house.clock.now(), asked_at=house.clock.now())
    asked = Change(
        event="kernel_end_asked", before=before, after=replace(before, kernels_ending=(ending,)), actor=SERVICE
    )
    await house.do(lambda unit: unit.write([asked]))
    await house.do(lambda unit: session.kernel_ended(unit, workload, person("amy"), "k", ""))
    return person("amy")


async def _asked(house: House) -> str:
    """An open request of ava's for more time."""
    workload = await house.ask("ava")
    await house.run(workload)
    request, _ = await house.extend(workload, 3 * HOUR_MS)
    return str(request.id)


async def approve(house: House) -> Actor:
    asked = await _asked(house)
    await house.do(lambda unit: approvals.approve(unit, asked, TWIN, by_ms=None, reason="go on"))
    return TWIN


async def deny(house: House) -> Actor:
    asked = await _asked(house)
    await house.do(lambda unit: approvals.deny(unit, asked, TWIN, reason="no"))
    return TWIN


async def withdraw(house: House) -> Actor:
    asked = await _asked(house)
    await house.do(lambda unit: approvals.withdraw(unit, asked, person("ava")))
    return person("ava")


CASES: dict[Callable[..., object], Callable[[House], Awaitable[Actor]]] = {
    approvals.approve: approve,
    approvals.deny: deny,
    approvals.withdraw: withdraw,
    observe.drain: drain,
    policies.apply: apply,
    session.claim: claim,
    session.departed: departed,
    session.ended: ended,
    session.kernel_ended: kernel_ended,
    session.launch: launch,
    session.processes: processes,
    session.ready: ready,
    session.saved: saved,
    session.stopping: stopping,
    steer.cancel: cancel,
    steer.extend: extend,
    steer.hold: hold,
    submit.ensure_server: ensure_server,
    submit.submit: submit_job,
}


def _journal(house: House) -> list[reading.JournalLine]:
    with house.ledger.reading() as connection:
        return list(reversed(reading.journal(connection, limit=1000)))


def test_every_use_case_of_somebody_is_among_the_cases() -> None:
    found = set()
    for module in (approvals, observe, policies, session, steer, submit):
        for function in vars(module).values():
            if inspect.isfunction(function) and function.__module__ == module.__name__:
                names = set(inspect.signature(function).parameters)
                if "unit" in names and names & {"actor", "by"} and not function.__name__.startswith("_"):
                    found.add(function)
    assert found == set(CASES)


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.__name__)
def test_a_use_case_is_journalled_under_its_principal(
    case: Callable[[House], Awaitable[Actor]], tmp_path: Path
) -> None:
    async def story() -> None:
        async with a_house(tmp_path, policy=TRAINS) as house:
            by = await case(house)
            lines = [line for line in _journal(house) if line.event not in ("policy_applied", "node_seen")]
            if case is apply:
                lines = [line for line in _journal(house) if line.event == "policy_applied"][1:]
            known = {by.principal, SPAWNER.principal, SERVICE, "ava"}  # who asked for what others decide on
            assert by.principal in {line.actor for line in lines}
            assert {line.actor for line in lines} <= known, [(line.event, line.actor) for line in lines]

    asyncio.run(story())


def test_what_nobody_asked_for_is_the_services_or_the_probes(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            allocation = await house.run(workload)
            await house.do(lambda unit: session.vanished(unit, allocation.id, unit.now))
            await house.do(lambda unit: session.gone(unit, allocation.id))
            seen = Reading(node="box", at=house.clock.now(), devices=(), unavailable=None)
            await house.do(lambda unit: observe.node_seen(unit, seen, "box", 64, 1024))
            actors = {line.event: line.actor for line in _journal(house)}
            assert actors["allocation_exited"] == actors["allocation_gone"] == SERVICE
            assert actors["policy_applied"] == SERVICE
            assert actors["node_seen"] == "probe"
            assert "" not in actors.values()

    asyncio.run(story())
