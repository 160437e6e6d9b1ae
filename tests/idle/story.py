"""Scenario files of the idle rule played in virtual time over the core: `story = Story(text); story.check()`.

Time stands still between steps; a sample is taken every tick, as the service does every telemetry period. The
conventions of virtual time are those of the scenario format: a workload that never got a signal counts as busy,
once it got one the kinds never named count as idle.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml
from builders import Play, rebuilt

from hubgov.clock import Instant, from_rfc3339
from hubgov.core.idle import kept, rule_of
from hubgov.core.model import Allocation
from hubgov.core.policy import Kind, Policy
from hubgov.core.signals import Level, Signal, SignalKind, sample
from hubgov.core.states import AllocationState, public_state
from hubgov.core.watching import observed
from hubgov.policy import load
from hubgov.wire import parse_span

TICK_MS = 10_000


def _offset(text: str) -> int:
    return parse_span(text)


class _Ready:
    """A policy that is built already, for `Play`."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def build(self, version: int = 1) -> Policy:
        return self._policy


class Story:
    """One scenario: `play_until` moves on, `check` compares what the file expects with what was seen."""

    def __init__(self, text: str, tick_ms: int = TICK_MS) -> None:
        self.file: dict[str, Any] = yaml.safe_load(text)
        loaded = load(yaml.safe_dump(self.file["policy"], sort_keys=False))
        assert loaded.policy is not None, loaded.errors
        self.start = from_rfc3339(self.file["start"])
        self.play = Play(_Ready(loaded.policy), at=self.start)  # type: ignore[arg-type]
        self.tick_ms = tick_ms
        self.signals: dict[str, dict[str, str]] = {}
        self.ready_at: dict[str, Instant] = {}
        self.ends_at: dict[str, int] = {}
        self.runs_for: dict[str, int] = {}
        self.asleep_until = Instant(0)
        self.seen: list[tuple[int, dict[str, str], dict[str, float]]] = []

    # --- time ----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Every step, to the end of the file."""
        steps = sorted(self.file["steps"], key=lambda step: _offset(step["at"]))
        end = self.start + _offset(self.file["until"])
        while True:
            while steps and self.play.now >= self.start + _offset(steps[0]["at"]):
                self._step(steps.pop(0))
            self._live()
            self._note()
            if self.play.now >= end:
                return
            self.play.now = Instant(self.play.now + self.tick_ms)

    def _step(self, step: Mapping[str, Any]) -> None:
        for what, body in step.items():
            if what != "at":
                getattr(self, f"_do_{what}")(body)

    def _live(self) -> None:
        """Starts, ends by themselves and samples of this tick; then what is due."""
        if self.play.now < self.asleep_until:
            return
        for workload in list(self.play.state.workloads.values()):
            allocation = self.play.allocation(workload.id)
            if allocation is not None:
                self._live_one(workload.name, allocation)
        self.play.tick(0)
        for allocation in list(self.play.state.allocations.values()):
            if allocation.state in (AllocationState.STOPPING, AllocationState.RELEASING):
                self.play.gone(str(allocation.workload))

    def _live_one(self, name: str, allocation: Allocation) -> None:
        now = self.play.now
        if allocation.state is AllocationState.RESERVED:
            self.play.launch(name)
        if self.play.state_of(name) == "starting" and now >= allocation.reserved_at + self.ready_at.get(name, 0):
            self.play.ready(name)
            self.ends_at[name] = now + self.runs_for[name] if name in self.runs_for else 2**62
        if self.play.state_of(name) == "running" and now >= self.ends_at[name]:
            self.play.exit(name)
        bound = self.play.allocation(name)
        if bound is not None and bound.state in (AllocationState.RUNNING, AllocationState.EXPIRING):
            self._sample(name, bound)

    def _sample(self, name: str, allocation: Allocation) -> None:
        given = self.signals.get(name)
        state = self.play.state
        levels = {
            kind: Level(given.get(kind.value, "idle")) if given is not None else Level.BUSY for kind in SignalKind
        }
        taken = sample(self.play.now, (Signal(kind=kind, level=level) for kind, level in levels.items()))
        state.watch(allocation.id, observed(state.watched.get(allocation.id), taken, self.tick_ms))

    def _note(self) -> None:
        offset = self.play.now - self.start
        words = {name: self.word(name) for name in self._names()}
        usage = {team: self.play.usage(team) / 1000 for team in self.play.state.policy.teams}
        self.seen.append((offset, words, usage))

    def _names(self) -> list[str]:
        return [*map(str, self.play.state.workloads), *self.play.ended]

    def word(self, name: str) -> str:
        """The public word of its state."""
        allocation = self.play.allocation(name)
        return public_state(self.play.workload(name).state, allocation.state if allocation else None, False)

    # --- steps ---------------------------------------------------------------------------------------

    def _do_submit(self, body: Mapping[str, Any]) -> None:
        name = body["name"]
        self.ready_at[name] = Instant(_offset(body["ready_after"]) if "ready_after" in body else 0)
        if body.get("runs_for"):
            self.runs_for[name] = _offset(body["runs_for"])
        more: dict[str, Any] = {}
        for field in ("lease", "start_deadline"):
            if field in body:
                more[f"{field}_ms"] = _offset(body[field])
        refused = self.play.submit(
            name, team=body["team"], gpus=body["gpus"], queue=body["queue"], owner=body["user"],
            kind=Kind(body.get("kind", "training")), **more,
        )  # fmt: skip
        assert refused is None, refused

    def _do_signal(self, body: Mapping[str, Any]) -> None:
        named = {kind: level for kind, level in body.items() if kind != "name"}
        self.signals.setdefault(body["name"], {}).update(named)

    def _do_keep(self, body: Mapping[str, Any]) -> None:
        allocation = self.play.bound(body["name"])
        rule = rule_of(self.play.state, allocation)
        assert rule is not None
        self.play.unit(lambda: kept(self.play.state, allocation, rule, self.play.now, actor=body["as"]))

    def _do_extend(self, body: Mapping[str, Any]) -> None:
        self.play.extend(body["name"], _offset(body["by"]))

    def _do_restart(self, body: Mapping[str, Any]) -> None:
        """Memory is dropped, the picture rebuilt from the records."""
        self.play.state = rebuilt(self.play.state)
        self.play.state.began = self.play.now

    def _do_pause(self, body: Mapping[str, Any]) -> None:
        self.asleep_until = Instant(self.play.now + _offset(body["for"]))

    # --- expectations --------------------------------------------------------------------------------

    def misses(self) -> list[str]:
        """Every line of `expect` that was not so, with what was seen."""
        return [miss for line in self.file["expect"] if (miss := self._miss(line))]

    def _miss(self, line: Mapping[str, Any]) -> str:
        if "never" in line:
            name, state = line["never"]["name"], line["never"]["state"]
            found = [offset for offset, words, _ in self.seen if words.get(name) == state]
            return f"{line}: at {found[0] // 1000} s" if found else ""
        at = _offset(line["at"])
        _, words, usage = next(entry for entry in self.seen if entry[0] >= at)
        if "team" in line:
            return "" if usage[line["team"]] == line["usage"] else f"{line}: usage {usage[line['team']]}"
        seen = words.get(line["name"])
        return "" if seen == line["state"] else f"{line}: {seen}"

    def phases(self, name: str) -> list[str]:
        """What the idle rule did with one workload, by the journal's events."""
        found = []
        for made in self.play.entries:
            after = made.change.after
            if isinstance(after, Allocation) and after.workload == name and _of_idle(made.change.event):
                found.append(made.change.event)
        return found


def _of_idle(event: str) -> bool:
    return re.search(r"idle|revived|by_claim", event) is not None
