"""A core Decision as people read it: facts formatted, names shown as far as the reader may see them."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from hubgov import texts, wire
from hubgov.clock import Instant
from hubgov.control.actor import Actor
from hubgov.core.decision import Blocker, Decision, HeldBy
from hubgov.core.explain import ENGINE_AWAY
from hubgov.core.model import Workload
from hubgov.core.policy import Policy

_NONE = {"flavor": "cpu_only", "approvers": "nobody", "allowed": "none", "groups": "none"}
"""The word for a fact that is `-`."""
_INSTANTS = ("expires_at", "since", "full_at", "deadline")


class Reader:
    """Formats for one reader: language, the policy's time zone, what he may see by name."""

    def __init__(
        self, actor: Actor, policy: Policy, lang: str, now: Instant, teams: frozenset[str] = frozenset()
    ) -> None:
        self.actor, self.policy, self.lang, self.now = actor, policy, lang, now
        self._zone = ZoneInfo(policy.timezone)
        led = (team for team in policy.teams if actor.leads(policy, team))
        self.teams = frozenset((*actor.teams(policy), *led, *teams))

    def clock(self, at: Instant) -> str:
        """Local wall clock: `18:30`, with the day where it isn't today's."""
        moment = datetime.fromtimestamp(at / 1000, self._zone)
        today = datetime.fromtimestamp(self.now / 1000, self._zone).date()
        return moment.strftime("%H:%M" if moment.date() == today else "%Y-%m-%d %H:%M")

    def amount(self, value: int, unit: str) -> str:
        """A number of the core in the unit people use."""
        match unit:
            case "milli_gpus":
                return f"{wire.gpus(value)}"
            case "ms":
                return wire.format_span(value)
            case "mib":
                return f"{value // 1024}GiB" if value % 1024 == 0 else f"{value}MiB"
            case _:
                return str(value)

    def unit(self, unit: str) -> str:
        """The word after a number: GPUs, sessions, CPUs; nothing where the number says it itself."""
        name = "GPUs" if unit == "milli_gpus" else unit
        return texts.word(texts.WORDS, name, self.lang) if name in texts.WORDS else ""

    def headline(self, decision: Decision, workload: Workload | None = None) -> str:
        """The Decision's sentence."""
        facts: dict[str, object] = {"rule": decision.rule, "queue": workload.queue if workload else "—"}
        unit = str(decision.facts.get("unit", "milli_gpus"))
        for name, value in decision.facts.items():
            facts[name] = self._fact(name, value, unit)
        facts["unit"] = self.unit(unit)
        if "kinds" in facts:
            kinds = str(decision.facts["kinds"]).split(",")
            facts["signs"] = ", ".join(texts.word(texts.SIGNALS, kind, self.lang) for kind in kinds)
        if "place" in facts:
            facts["what"] = self.scope(str(facts["place"]))
        if "low" in facts:
            facts["allowed"] = texts.word(texts.WORDS, "from_to", self.lang, low=facts["low"], high=facts["high"])
        first = next((b for b in decision.blockers if b.code == decision.code), None)
        if first is not None:
            facts |= self._blocker_facts(first)
            facts["have_ago"] = self.amount(first.need, first.unit)
            # Of what waits and can't start any more the blocker alone knows the numbers.
            facts = {"asked": facts["need"], "most": facts["have"], **facts}
        return texts.say(_sentence(decision, first), self.lang, **facts)

    def _fact(self, name: str, value: int | str, unit: str) -> str:
        if isinstance(value, str):
            none = _NONE.get(name) if value == "-" else None
            return texts.word(texts.WORDS, none, self.lang) if none else value
        if name in _INSTANTS:
            return self.clock(Instant(value))
        if name == "by":
            return wire.format_span(value)
        return self.amount(value, unit) if name in ("asked", "limit", "most", "have", "least") else str(value)

    def _blocker_facts(self, blocker: Blocker) -> dict[str, object]:
        facts: dict[str, object] = {
            "need": self.amount(blocker.need, blocker.unit),
            "have": self.amount(max(0, blocker.have), blocker.unit),
            "limit": self.amount(blocker.limit, blocker.unit) if blocker.limit is not None else "—",
            "unit": self.unit(blocker.unit),
            "scope": self.scope(blocker.scope),
            "pool": blocker.pool or "—",
            "flavor": blocker.flavor or texts.word(texts.WORDS, "cpu_only", self.lang),
            "frees": "",
            "at": self.clock(blocker.frees_at) if blocker.frees_at is not None else "—",
        }
        who = next((h for h in blocker.held_by if h.until is not None and h.until == blocker.frees_at), None)
        if who is not None:
            sentence, known = "frees", {"at": facts["at"], "who": self.who(who)}
            if who.ends_at is not None:
                sentence, known["end"] = "frees_after_end", self.clock(who.ends_at)
            facts["frees"] = texts.word(texts.WORDS, sentence, self.lang, **known)
        return facts

    def scope(self, scope: str) -> str:
        """A place of the quota tree in words; a rule's path as it stands in the policy."""
        return texts.place(scope, self.lang)

    def who(self, holder: HeldBy) -> str:
        """A holder: yours, a team-mate's by name, another team's as such."""
        if self.actor.is_user(holder.owner):
            return texts.word(texts.WORDS, "yours", self.lang, id=holder.workload)
        if self.sees(holder.owner, holder.team):
            return texts.word(texts.WORDS, "team_mate", self.lang, owner=holder.owner, id=holder.workload)
        return texts.word(texts.WORDS, "other_team", self.lang)

    def sees(self, owner: str, team: str) -> bool:
        """Whether this reader may know somebody's work in a team by name."""
        return self.actor.admin or self.actor.is_user(owner) or team in self.teams

    def steps(self, decision: Decision) -> tuple[str, ...]:
        """The next steps of a Decision in words."""
        facts = {name: self._fact(name, value, "") for name, value in decision.facts.items()}
        return tuple(texts.word(texts.STEPS, code, self.lang, **facts) for code in decision.next_steps)


def _sentence(decision: Decision, first: Blocker | None) -> str:
    """The key of the sentence that a Decision is said in: its code, or a case of it that has words of its own."""
    match decision.code:
        case "running" if "idle" in decision.facts:
            return f"running_{decision.facts['idle']}"
        case "held" if decision.rule == ENGINE_AWAY:
            return "engine_away"
        case "impossible" if first is not None and first.scope == "memory":
            return "impossible_memory"
        case "unknown_project" if decision.facts["allowed"] == "-":
            return "no_project"
        case "unknown_project" if decision.facts["what"] == "-":
            return "name_project"
    return decision.code
