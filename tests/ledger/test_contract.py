"""One contract over SQLite and PostgreSQL: what was committed is what a restart finds, nothing more or less."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import pytest
import sqlalchemy as sa
from builders import HOUR_MS, MINUTE_MS, START, Play, PolicyBuilder, a_policy, a_workload, snapshot
from core.test_histories import History
from core.test_histories import site as any_site
from hypothesis import settings
from hypothesis.stateful import invariant, run_state_machine_as_test
from ledger.story import site, story
from ledger.written import Written, extensions_of

from hubgov.clock import Instant
from hubgov.core.metering import Entry, entry
from hubgov.core.model import Change, Workload
from hubgov.core.policy import Kind
from hubgov.errors import Unavailable
from hubgov.ledger import leadership, reading, schema, usage
from hubgov.ledger.leadership import StaleLeader
from hubgov.ledger.ledger import Ledger, Remembered
from hubgov.ledger.usage import Whose

Begin = Callable[[PolicyBuilder], Written]


def lines(ledger: Ledger, table: sa.Table = schema.journal) -> list[sa.RowMapping]:
    with ledger.reading() as connection:
        return list(connection.execute(sa.select(table).order_by(*table.primary_key)).mappings())


# --- what is written is what is read -------------------------------------------------------------------


def test_a_restart_finds_the_live_picture_at_every_step(written: Begin) -> None:
    play = written(site())
    play.same()
    for _ in story(play):
        play.same()
    assert not play.state.workloads


def test_a_restart_at_every_step_changes_no_decision(url: str) -> None:
    """Invariant 16: with SQLite, with PostgreSQL and without any, the same decisions in the same order."""
    straight, restarted = Play(site()), Written(url, site(), restarts=True)
    try:
        for _ in zip(story(straight), story(restarted), strict=True):
            assert restarted.log == straight.log
    finally:
        restarted.close()


def test_random_histories_are_found_again(url: str) -> None:
    """One database; each history begins where the one before left it empty of live work."""

    class WrittenHistory(History):
        def __init__(self) -> None:
            super().__init__()
            engine = sa.create_engine(url)
            schema.metadata.drop_all(engine)
            with engine.begin() as connection:
                connection.exec_driver_sql("DROP TABLE IF EXISTS alembic_version")
            engine.dispose()
            self.play = Written(url, any_site(0))

        @invariant()
        def a_restart_finds_it(self) -> None:
            assert isinstance(self.play, Written)
            self.play.same()

        def teardown(self) -> None:
            assert isinstance(self.play, Written)
            self._everything_ends()
            self.play.same().close()

    run = settings(max_examples=3, stateful_step_count=15, deadline=None)
    run_state_machine_as_test(WrittenHistory, settings=run)


def test_the_journal_has_every_change_once_and_is_only_added_to(written: Begin) -> None:
    play = written(site())
    seen: list[sa.RowMapping] = []
    for _ in story(play):
        now = lines(play.ledger)
        assert now[: len(seen)] == seen
        seen = now
    told = [(e.change.event, e.change.actor, e.change.reason) for e in play.entries]
    assert [(r["event"], r["actor"], r["reason"]) for r in seen[1:]] == told
    assert [r["seq"] for r in seen] == list(range(1, len(seen) + 1))
    with play.ledger.reading() as connection:
        assert leadership.last_seq(connection) == len(seen)


def test_the_journal_rebuilds_every_record(written: Begin) -> None:
    """Was and became, field by field: the last word on each field is the record."""
    play = written(site())
    for _ in story(play):
        pass
    fields: dict[tuple[str, str], dict[str, object]] = {}
    for line in lines(play.ledger):
        for name, (was, became) in json.loads(line["detail"]).items():
            known = fields.setdefault((line["kind"], line["record"]), {})
            assert known.get(name) == was, (line["record"], line["event"], name)
            known[name] = became
    for kind, table in (("Workload", schema.workload), ("Allocation", schema.allocation)):
        for row in lines(play.ledger, table):
            body = {k: v for k, v in json.loads(row["body"]).items() if v is not None}
            assert {k: v for k, v in fields[kind, row["id"]].items() if v is not None} == body


def test_the_charge_rows_of_an_allocation_never_sum_below_nothing(written: Begin) -> None:
    play = written(site())
    for _ in story(play):
        sums: dict[str, int] = {}
        for row in lines(play.ledger, schema.charge):
            sums[row["allocation"]] = sums.get(row["allocation"], 0) + row["milli_gpus"]
            assert sums[row["allocation"]] >= 0
    assert set(sums.values()) == {0}


def test_the_usage_rows_are_the_segments(written: Begin) -> None:
    play = written(site())
    for _ in story(play):
        pass
    assert len(play.ended) >= 4
    with play.ledger.reading() as connection:
        for name in play.ended:
            found = reading.segments_of(connection, name)
            assert found, name
            assert found == [s for a, spans in play.segments.items() if a.split(".")[0] == name for s in spans]


@pytest.mark.parametrize("parts", [1, 7])
def test_the_usage_of_a_period_is_that_of_its_segments_cut_at_its_edges(written: Begin, parts: int) -> None:
    play = written(site())
    for _ in story(play):
        pass
    segments = [s for spans in play.segments.values() for s in spans if s.milli_gpus]
    edges = [Instant(START + HOUR_MS // 3 + i * 5 * HOUR_MS // parts) for i in range(parts + 1)]
    spans = list(pairwise(edges))
    wanted: dict[tuple[object, ...], int] = {}
    for index, (start, end) in enumerate(spans):
        for s in segments:
            cut = min(s.ended, end) - max(s.began, start)
            if cut > 0:
                key = (index, s.team, s.owner, s.account, s.borrowed, s.price_micro_per_hour)
                wanted[key] = wanted.get(key, 0) + cut * s.milli_gpus
    assert len(wanted) > parts, "the story must use something in every part"
    with play.ledger.reading() as connection:
        head = usage.head(connection)
        found = usage.usage(connection, spans, ["team", "owner"], None, simulated=True, up_to=head)
        of_bo = usage.usage(
            connection, spans, ["team"], Whose(owner="bo", since=Instant(0), teams=()), simulated=True, up_to=head
        )
        nothing = usage.usage(
            connection, spans, ["team"], Whose(owner="x", since=Instant(0), teams=()), simulated=True, up_to=head
        )
        earlier = usage.usage(connection, spans, ["team"], None, simulated=True, up_to=0)
        real = usage.usage(connection, spans, ["team"], None, simulated=False, up_to=head)
    sums: dict[tuple[object, ...], int] = {}
    for index, u in found:
        key = (index, *u.place, u.account, u.borrowed, u.price_micro_per_hour)
        sums[key] = sums.get(key, 0) + u.milli_gpu_ms
    assert sums == wanted
    assert sum(u.milli_gpu_ms for _, u in of_bo) == sum(total for key, total in wanted.items() if key[2] == "bo")
    assert nothing == earlier == []
    assert sum(u.milli_gpu_ms for _, u in real) == sum(wanted.values()), "the story's devices are real ones"


def test_usage_is_the_owners_by_when_its_work_was_asked_for(written: Begin) -> None:
    """What ran on after its owner was deleted began no earlier than the next of that name came, and isn't his."""
    play = written(site())
    play.run("former", owner="bo", team="B", gpus=1)
    play.tick(HOUR_MS)
    since = play.now
    play.cancel("former")
    play.tick(MINUTE_MS)
    play.gone("former")
    play.run("latter", owner="bo", team="B", gpus=1)
    play.tick(HOUR_MS)
    play.finish("latter")
    spans = [(Instant(START), play.now)]
    with play.ledger.reading() as connection:
        head = usage.head(connection)

        def used(since: Instant, teams: tuple[str, ...] = ()) -> int:
            whose = Whose(owner="bo", since=since, teams=teams)
            found = usage.usage(connection, spans, ["team"], whose, simulated=True, up_to=head)
            return sum(u.milli_gpu_ms for _, u in found)

        whole = used(Instant(0))
        latter = sum((s.ended - s.began) * s.milli_gpus for s in reading.segments_of(connection, "latter"))
        begun_later = [s for s in reading.segments_of(connection, "former") if s.began >= since and s.milli_gpus]
        assert begun_later, "the stop of the former one's work is a span of its own, within the latter's time"
        assert used(since) == latter == HOUR_MS * 1000
        assert whole > used(since)
        assert used(Instant(play.now)) == 0
        assert used(Instant(play.now), ("B",)) == whole, "who leads the team answers for both"


def test_no_share_of_a_device_outlives_its_allocation(written: Begin) -> None:
    play = written(site())
    for _ in story(play):
        rows = {(r["node"], r["device"], r["allocation"]) for r in lines(play.ledger, schema.device_share)}
        bound = {(s.node, s.uuid, str(a.id)) for a in play.state.allocations.values() for s in a.devices}
        assert rows == bound
    assert not rows


def test_bound_and_freed_within_one_unit_leaves_no_share(written: Begin) -> None:
    play = written(site())
    units: list[Entry] = []
    play._wrote = lambda entries, now: units.extend(entries)
    play.submit("a", gpus=1)
    play.cancel("a")
    play.ledger.commit(units, play.now)
    assert not lines(play.ledger, schema.device_share)
    play.same()


# --- the database is the second guard ------------------------------------------------------------------


def forged(play: Written, workload: Workload, allocation_like: str) -> list[Entry]:
    """A unit that the core would never decide: a second workload on the devices of the first."""
    real = play.bound(allocation_like)
    twin = replace(real, id=type(real.id)(f"{workload.id}.1"), workload=workload.id)
    return [
        Entry(change=Change(event="workload_submitted", before=None, after=workload, actor="x")),
        Entry(change=Change(event="allocation_reserved", before=None, after=twin, actor="x"), workload=workload),
    ]


@contextmanager
def refused_by_the_database() -> Iterator[None]:
    """The database's own guard refuses; what it says is the cause, and no part of what callers are told."""
    with pytest.raises(Unavailable, match=r"^the ledger can't be written now$") as told:
        yield
    assert isinstance(told.value.__cause__, sa.exc.IntegrityError)


def test_a_whole_device_has_one_user(written: Begin) -> None:
    play = written(site())
    play.run("a", gpus=1)
    before = lines(play.ledger)
    with refused_by_the_database():
        play.ledger.commit(forged(play, a_workload("thief", seq=99), "a"), play.now)
    assert lines(play.ledger) == before
    play.same()


def test_one_live_ticket_a_server(written: Begin) -> None:
    play = written(site())
    play.submit("one", kind=Kind.NOTEBOOK, server="lab")
    twin = a_workload("two", kind=Kind.NOTEBOOK, server="lab", seq=9)
    unit = [Entry(change=Change(event="workload_submitted", before=None, after=twin, actor="x"))]
    with refused_by_the_database():
        play.ledger.commit(unit, play.now)
    play.same()
    play.submit("other", kind=Kind.NOTEBOOK, server="lab2")
    play.start("one")
    play.finish("one")
    play.submit("again", kind=Kind.NOTEBOOK, server="lab")
    assert {w.id: w.request.server for w in play.state.workloads.values()} == {"other": "lab2", "again": "lab"}
    play.same()


def test_books_that_differ_from_the_picture_are_named(written: Begin) -> None:
    play = written(site())
    play.run("a", gpus=2)
    assert play.ledger.drift(play.state) == {}
    allocation = play.bound("a")
    row = {"at": play.now, "allocation": allocation.id, "pool": allocation.pool, "flavor": allocation.flavor}
    row |= {"team": "A", "project": "A"}
    for milli, cause, seen in ((-500, "somebody's hand", {allocation.id: (1500, 2000)}), (500, "put right", {})):
        with play.ledger.engine.connect().execution_options(writes=True) as connection, connection.begin():
            connection.execute(schema.charge.insert(), [row | {"milli_gpus": milli, "cause": cause}])
        assert play.ledger.drift(play.state) == seen
        assert play.ledger.drift(play.state, ended_since=play.now) == seen


def test_of_the_books_a_look_at_lately_names_what_lives_or_ended_since(written: Begin) -> None:
    play = written(site())
    play.run("old", gpus=1)
    old = play.bound("old")
    play.finish("old")
    ended = play.now
    play.tick(3_600_000)
    play.run("new", gpus=1)
    new = play.bound("new")
    for allocation in (old, new):
        row = {"at": play.now, "allocation": allocation.id, "pool": allocation.pool, "flavor": allocation.flavor}
        row |= {"team": "A", "project": "A", "milli_gpus": 500, "cause": "somebody's hand"}
        with play.ledger.engine.connect().execution_options(writes=True) as connection, connection.begin():
            connection.execute(schema.charge.insert(), [row])
    wrong = {old.id: (500, 0), new.id: (1500, 1000)}
    assert play.ledger.drift(play.state) == wrong
    assert play.ledger.drift(play.state, ended_since=ended) == wrong
    assert play.ledger.drift(play.state, ended_since=Instant(ended + 1)) == {new.id: (1500, 1000)}


def test_jobs_are_no_tickets(written: Begin) -> None:
    play = written(site())
    for name in ("a", "b"):
        play.submit(name, kind=Kind.TRAINING)
    assert {row["id"] for row in lines(play.ledger, schema.workload)} == {"a", "b"}
    play.same()


def test_nothing_is_ever_deleted(written: Begin) -> None:
    play = written(site())
    play.submit("a")
    gone = Change(event="workload_cancelled", before=play.workload("a"), after=None, actor="x")
    with pytest.raises(ValueError, match="nothing is ever deleted"):
        play.ledger.commit([Entry(change=gone)], play.now)
    play.same()


# --- idempotency ---------------------------------------------------------------------------------------


def answer(key: str, result: str = "first") -> Remembered:
    return Remembered(principal="ann", route="POST /workloads", key=key, digest="d", result=result)


def test_an_answer_is_kept_with_its_changes_and_only_once(written: Begin) -> None:
    play = written(site())
    submitted = Change(event="workload_submitted", before=None, after=a_workload("a"), actor="ann")
    play.ledger.commit([entry(play.state, submitted)], play.now, [answer("k")])
    second = Change(event="workload_submitted", before=None, after=a_workload("b", seq=2), actor="ann")
    with refused_by_the_database():
        play.ledger.commit([entry(play.state, second)], play.now, [answer("k", "second")])
    with play.ledger.reading() as connection:
        assert reading.remembered(connection, "ann", "POST /workloads", "k") == ("d", "first")
        assert reading.remembered(connection, "bo", "POST /workloads", "k") is None
        assert reading.find_workload(connection, "a") is not None
        assert reading.find_workload(connection, "b") is None


def test_an_answer_without_a_change_is_kept_too(written: Begin) -> None:
    play = written(site())
    play.ledger.commit([], play.now, [answer("k")])
    with play.ledger.reading() as connection:
        assert reading.remembered(connection, "ann", "POST /workloads", "k") is not None


# --- one leader ----------------------------------------------------------------------------------------


def one_more(play: Written) -> list[Entry]:
    late = a_workload("late", seq=play.state.last_seq + 1)
    return [Entry(change=Change(event="workload_submitted", before=None, after=late, actor="ann"))]


def passed_over(play: Written) -> None:
    """Another process took the lead; this one hasn't heard of it."""
    with play.ledger.engine.connect().execution_options(writes=True) as connection, connection.begin():
        connection.execute(schema.leader.update().values(epoch=schema.leader.c.epoch + 1))


@pytest.mark.parametrize(
    "stale",
    [
        pytest.param(passed_over, id="a newer epoch leads"),
        pytest.param(lambda play: setattr(play.ledger, "seq", play.ledger.seq - 1), id="its picture is behind"),
        pytest.param(lambda play: setattr(play.ledger, "seq", play.ledger.seq + 1), id="its picture is ahead"),
    ],
)
def test_a_stale_leader_writes_nothing(written: Begin, stale: Callable[[Written], None]) -> None:
    play = written(site())
    play.run("a")
    before = [lines(play.ledger, table) for table in (schema.journal, schema.workload, schema.charge)]
    stale(play)
    with pytest.raises(StaleLeader):
        play.ledger.commit(one_more(play), play.now, [answer("k")])
    assert [lines(play.ledger, table) for table in (schema.journal, schema.workload, schema.charge)] == before
    with play.ledger.reading() as connection:
        assert reading.remembered(connection, "ann", "POST /workloads", "k") is None


def test_who_was_passed_over_can_neither_renew_nor_take_the_lead_away_by_leaving(written: Begin) -> None:
    play = written(site())
    passed_over(play)
    with pytest.raises(StaleLeader):
        play.ledger.renew()
    before = lines(play.ledger, schema.leader)
    play.ledger.close()
    assert lines(play.ledger, schema.leader) == before


def test_each_leader_has_a_higher_epoch(url: str) -> None:
    epochs = []
    for _ in range(3):
        ledger = Ledger(url, lambda text, version: site().build(version))
        ledger.upgrade()
        ledger.lead()
        ledger.renew()
        epochs.append(ledger.epoch)
        ledger.close()
    assert epochs == [1, 2, 3]


def test_a_later_leader_goes_on_where_the_last_one_stopped(url: str) -> None:
    first = Written(url, site())
    first.run("a")
    first.close()
    again = Ledger(url, first.read_policy)
    again.lead()
    try:
        assert again.seq == len(first.entries) + 1
        again.commit(one_more(first), first.now)
    finally:
        again.close()


@pytest.mark.parametrize("url", [pytest.param("postgresql", marks=pytest.mark.postgresql)], indirect=True)
def test_on_postgresql_another_holder_waits_for_the_end_of_the_term(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite it is the lock beside the file: see test_sqlite.py."""
    first = Written(url, site())
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    second = Ledger(url, first.read_policy)
    with pytest.raises(Unavailable, match="leads until its term is over"):
        second.lead()
    first.close()
    second.lead()
    first.ledger.epoch = 1
    with pytest.raises(StaleLeader):
        first.ledger.commit(one_more(first), first.now)
    first.close()
    second.close()


# --- crashes -------------------------------------------------------------------------------------------


class Crash(Exception):
    """As if the process ended here."""


@pytest.mark.parametrize("after", [False, True], ids=["before it", "after it"])
def test_a_crash_between_any_two_statements_leaves_before_or_after(written: Begin, after: bool) -> None:
    """A unit that frees devices, hands them on, ends a workload, meters and charges; cut at every statement."""
    play = written(site())
    play.run("old", gpus=4)
    play.submit("new", gpus=4, team="B", owner="bo")
    play.exit("old")
    before = play.loaded()
    unit: list[Entry] = []
    play._wrote = lambda entries, now: unit.extend(entries)
    play.gone("old")
    assert {"workload_succeeded", "allocation_reserved"} <= {e.change.event for e in unit}
    cuts, engine, event = 0, play.ledger.engine, "after_cursor_execute" if after else "before_cursor_execute"
    while True:
        left = cuts

        def cut(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
            nonlocal left
            left -= not statement.startswith("BEGIN")  # no transaction, nothing to leave half done
            if left < 0:
                raise Crash

        sa.event.listen(engine, event, cut)
        try:
            play.ledger.commit(unit, play.now, [answer("k")])
            break
        except Crash:
            assert snapshot(play.loaded()) == snapshot(before)
            cuts += 1
        finally:
            sa.event.remove(engine, event, cut)
    assert cuts >= 8, "fence, workload, allocation, shares freed and bound, journal, charge, segment, answer"
    play.same()


def test_a_commit_that_fails_is_not_counted(written: Begin) -> None:
    play = written(site())
    seq = play.ledger.seq

    def refuse(_connection: object) -> None:
        raise sa.exc.OperationalError("COMMIT", {}, Exception("disk"))

    sa.event.listen(play.ledger.engine, "commit", refuse)
    with pytest.raises(Unavailable, match="can't be written"):
        play.ledger.commit(one_more(play), play.now)
    sa.event.remove(play.ledger.engine, "commit", refuse)
    assert play.ledger.seq == seq
    play.same()
    play.submit("a")
    play.same()


# --- reading -------------------------------------------------------------------------------------------


def test_policies_are_kept_by_version(written: Begin) -> None:
    play = written(site())
    play.edit(site(guaranteed=1))
    first, second, third = play.ledger.policy(1), play.ledger.policy(), play.ledger.policy(3)
    assert first is not None
    assert second is not None
    assert (first.version, second.version, third) == (1, 2, None)
    assert second == play.state.policy_text


def test_a_workload_is_found_live_and_ended_with_its_attempts(written: Begin) -> None:
    play = written(site())
    for _ in story(play):
        pass
    with play.ledger.reading() as connection:
        assert reading.find_workload(connection, "gang") == play.ended["gang"]
        assert reading.find_workload(connection, "nobody") is None
        assert [a.attempt for a in reading.allocations_of(connection, "waits")] == [1, 2]
        assert [e.code for e in extensions_of(connection, "gang")] == ["extended", "beyond_self_serve"]
        assert [s.id for s in reading.saves_of(connection, "nb")] == ["nb.1-s1"]
        found = reading.last_of_server(connection, "ann", "", Instant(0))
        assert found is not None
        assert found.id == "nb"
        assert reading.last_of_server(connection, "ann", "", Instant(found.submitted_at + 1)) is None
        newest = reading.journal(connection, workload="gang", limit=2)
        assert [line.event for line in newest] == ["workload_expired", "allocation_gone"]
        assert reading.journal(connection, events=["queue_held"])[0].record == "online"


def test_lists_are_newest_first_paged_and_filtered(written: Begin) -> None:
    play = written(site())
    for n in range(5):
        play.submit(f"w{n}", team="AB"[n % 2], owner=("ann", "bo")[n % 2], gpus=2)
    F = reading.WorkloadFilter
    with play.ledger.reading() as connection:
        page, total = reading.list_workloads(connection, F(), limit=2, before_seq=None)
        assert ([w.id for w in page], total) == (["w4", "w3"], 5)
        page, total = reading.list_workloads(connection, F(), limit=9, before_seq=page[-1].seq)
        assert ([w.id for w in page], total) == (["w2", "w1", "w0"], 5)
        for wanted, names in (
            (F(owner="bo"), ["w3", "w1"]),
            (F(team="A"), ["w4", "w2", "w0"]),
            (F(states=("pending",)), ["w4", "w3"]),
            (F(teams=("B",), viewer="ann"), ["w4", "w3", "w2", "w1", "w0"]),
            (F(teams=(), viewer="bo"), ["w3", "w1"]),
        ):
            found, total = reading.list_workloads(connection, wanted, limit=9, before_seq=None)
            assert ([w.id for w in found], total) == (names, len(names))


def test_use_so_long_past_that_it_weighs_nothing_is_left_out(written: Begin) -> None:
    play = written(a_policy().team("A").node("box", devices=1))
    play.run("a")
    play.finish("a")
    half_life = play.state.policy.fairness.half_life_ms
    play.now = Instant(START + 41 * half_life)
    assert play.loaded().past.segments == {}
    play.state.tidy(play.now)
    play.same()
