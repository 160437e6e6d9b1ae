"""One history that touches every kind of record and every way out, step by step."""

from __future__ import annotations

from collections.abc import Iterator

from builders import HOUR_MS, MINUTE_MS, Play, PolicyBuilder, a_policy

from hubgov.core.model import Change, Departure, KernelSeen, ProcessId, SavedDocument, SaveRecord
from hubgov.core.policy import Kind, PriorityClass, RetryRule
from hubgov.core.states import Event


def site(guaranteed: float = 2) -> PolicyBuilder:
    policy = a_policy().team("A", guaranteed=guaranteed).team("B").node("n1", devices=4).node("n2", devices=3)
    policy.queue("train", warn_ms=(30 * MINUTE_MS, 10 * MINUTE_MS), retry=RetryRule(max=1, backoff_ms=MINUTE_MS))
    policy.extension("train", self_serve_count=2, step_ms=HOUR_MS, max_total_ms=9 * HOUR_MS)
    return policy.queue("online", class_=PriorityClass.PROTECTED, priority=90, warn_ms=())


def story(play: Play) -> Iterator[None]:
    """The steps; each yield is a moment at which the ledger must agree."""
    play.submit("nb", kind=Kind.NOTEBOOK, gpus=0.5, server="", need={}, labels={"a": "ä"})
    yield
    play.event("nb", Event.LAUNCHED, launched_at=play.now, main=ProcessId(pid=7, start_ticks=9, boot_id="b"))
    play.ready("nb")
    yield
    play.run("gang", team="B", owner="bo", gpus=4, nodes=2, lease_ms=2 * HOUR_MS)
    yield
    play.submit("waits", gpus=4)
    play.submit("elastic", gpus=(1, 2), queue="train")
    yield
    play.tick(100 * MINUTE_MS)  # warnings of the gang
    yield
    play.extend("gang", HOUR_MS)
    play.extend("gang", 5 * HOUR_MS)
    yield
    play.tick(30 * MINUTE_MS)
    _save(play, "nb")
    yield
    play.hold("online", closed=True)
    left = Departure(name="bo", at=play.now)
    play.unit(lambda: [Change(event="user_departed", before=None, after=left, actor="spawner")])
    play.node_is("n2", sick=(1,))
    yield
    play.tick(50 * MINUTE_MS)
    play.tick(5 * MINUTE_MS)  # the gang's grace is over
    yield
    play.gone("gang")
    yield
    play.start("waits", "elastic")
    play.exit("elastic", code=1)
    play.gone("elastic")
    yield
    play.edit(site(guaranteed=1))
    play.tick(MINUTE_MS)
    yield
    play.event("waits", Event.NODE_SILENT)
    play.event("waits", Event.NODE_LOST)
    yield
    play.gone("waits")
    play.release("online")
    yield
    play.cancel("nb", now=True)
    play.tick(MINUTE_MS)  # fenced
    yield
    play.tick(HOUR_MS)
    play.gone("nb")
    yield
    play.node_is("n2")
    for name in ("waits", "elastic"):
        play.cancel(name)
        play.gone(name)
    yield


def _save(play: Play, name: str) -> None:
    allocation = play.bound(name)
    document = SavedDocument(
        path="a.ipynb", outcome="saved", bytes=3, sha256="00", saved_at=play.now, copy="c/a.ipynb", error=""
    )
    record = SaveRecord(
        id=f"{allocation.id}-s1", allocation=allocation.id, workload=allocation.workload, at=play.now,
        asked_lab=True, documents=(document,), terminals=1, error="",
        kernels=(KernelSeen(id="k", name="python3", path="a.ipynb", busy=True),),
    )  # fmt: skip
    play.unit(lambda: [Change(event="documents_saved", before=None, after=record, actor="ann")])
