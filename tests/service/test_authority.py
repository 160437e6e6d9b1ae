"""Who may do what to whose: one table, over the REST interface and the forms of the panel.

Each cell is what the interface answers; a form of the panel must refuse exactly where the interface does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from service.answers import end
from service_under_test import POLICY, PREFIX, ServiceUnderTest

ROLES = (
    "owner", "mate", "other", "lead", "other_lead", "admin", "spawner", "owner_server", "admin_server", "metrics",
    "stranger", "nobody",
)  # fmt: skip
TOKENS: Mapping[str, str] = {
    "owner": "amy", "mate": "ava", "other": "bo", "lead": "vera", "other_lead": "nora", "admin": "admin",
    "spawner": "spawner", "owner_server": "amy-server", "admin_server": "admin-server", "metrics": "metrics",
    "stranger": "stranger", "nobody": "no-such",
}  # fmt: skip
LEADS = POLICY.replace(
    "vision: {parent: research, groups: [vision]}", "vision: {parent: research, groups: [vision], leads: [vera]}"
).replace("nlp: {parent: research, groups: [nlp]}", "nlp: {parent: research, groups: [nlp], leads: [nora]}")

# What amy's own work answers to each. 401 is for whom the hub doesn't know.
_SIGNED_IN = dict.fromkeys(ROLES, 200) | {"nobody": 401}
_SEES = {
    "owner": 200, "mate": 200, "other": 404, "lead": 200, "other_lead": 404, "admin": 200, "spawner": 200,
    "owner_server": 200, "admin_server": 404, "metrics": 404, "stranger": 404, "nobody": 401,
}  # fmt: skip
_READS = {**_SEES, "mate": 403}
_CHANGES = {**_READS, "spawner": 403}
_STOPS = {**_CHANGES, "spawner": 200}
"""The hub's word for its user comes through the spawner."""
_DECIDES = {**_SEES, "owner": 403, "mate": 403, "spawner": 403, "owner_server": 403}
_WITHDRAWS = {**_DECIDES, "owner": 200, "owner_server": 200, "lead": 403, "admin": 403}
_ADMINS = {**dict.fromkeys(ROLES, 403), "admin": 200, "nobody": 401}
_AUDITS = {**_ADMINS, "lead": 200, "other_lead": 200}


@dataclass(frozen=True, slots=True)
class Verb:
    """One address of the interface, and the form of the panel that does the same."""

    method: str
    path: str
    expected: Mapping[str, int]
    body: Mapping[str, Any] | None = None
    form: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    fresh: bool = False
    """Whether it uses up what it is done to."""


VERBS: Mapping[str, Verb] = {
    "see": Verb("GET", "/workloads/{id}", _SEES),
    "why": Verb("GET", "/workloads/{id}/why", _SEES),
    "journal": Verb("GET", "/workloads/{id}/events", _READS),
    "audit of it": Verb("GET", "/audit?workload={id}", _READS),
    "list": Verb("GET", "/workloads", _SIGNED_IN),
    "devices": Verb("GET", "/devices", _SIGNED_IN),
    "queues": Verb("GET", "/queues", _SIGNED_IN),
    "cost": Verb("GET", "/costs?by=user", _SIGNED_IN),
    "audit": Verb("GET", "/audit", _AUDITS),
    "policy": Verb("GET", "/policy", _ADMINS),
    "policy check": Verb("POST", "/policy/check", _ADMINS, {"text": "version: 1"}),
    "stop": Verb(
        "DELETE", "/workloads/{id}", _STOPS, {"reason": "enough"}, "panel/stop/{id}",
        {"when": "grace", "reason": "enough"}, fresh=True,
    ),
    "extend": Verb(
        "POST", "/workloads/{id}/extensions", {r: 201 if s == 200 else s for r, s in _CHANGES.items()},
        {"by_seconds": 60, "reason": "more"}, fresh=True,
    ),
    "approve": Verb(
        "POST", "/extensions/{request}/approve", _DECIDES, {"reason": "yes"}, "panel/inbox/{request}",
        {"act": "approve", "reason": "yes"}, fresh=True,
    ),
    "deny": Verb(
        "POST", "/extensions/{request}/deny", _DECIDES, {"reason": "no"}, "panel/inbox/{request}",
        {"act": "deny", "reason": "no"}, fresh=True,
    ),
    "withdraw": Verb("POST", "/extensions/{request}/withdraw", _WITHDRAWS, {}, fresh=True),
    "hold": Verb(
        "POST", "/queues/experiment/hold", _ADMINS, {"reason": "x"}, "panel/queues/experiment/hold", {"reason": "x"}
    ),
    "release": Verb("POST", "/queues/experiment/release", _ADMINS, {}, "panel/queues/experiment/release"),
    "drain": Verb("POST", "/nodes/{node}/drain", _ADMINS, {}, "panel/nodes/{node}/drain"),
    "undrain": Verb("POST", "/nodes/{node}/undrain", _ADMINS, {}, "panel/nodes/{node}/undrain"),
}  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceUnderTest]:
    under_test = ServiceUnderTest(tmp_path_factory.mktemp("authority") / "state", LEADS)
    try:
        under_test.start()
        yield under_test
    finally:
        under_test.close()


class Scene:
    """A running session of amy's that needs no card, with an open request for more time; made anew when used up."""

    def __init__(self, service: ServiceUnderTest) -> None:
        self.service = service
        self.names: dict[str, str] = {}
        self.count = 0
        self.node = service.call("admin", "GET", "/devices").json()["items"][0]["node"]

    def facts(self) -> Mapping[str, str]:
        if not self.names:
            self.count += 1
            workload = self.service.run("amy", "cpu", server=f"s{self.count}")["id"]
            more = {"by_seconds": 4 * 3600, "reason": "more"}
            asked = self.service.call("amy", "POST", f"/workloads/{workload}/extensions", more).json()
            assert asked["state"] == "needs_approval", asked
            self.names = {"id": workload, "request": asked["id"], "node": self.node}
        return self.names

    def used_up(self) -> None:
        end(self.service, self.names["id"])
        self.names = {}


@pytest.fixture(scope="module")
def scene(service: ServiceUnderTest) -> Scene:
    return Scene(service)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("verb", VERBS)
def test_who_may_do_what(service: ServiceUnderTest, scene: Scene, verb: str, role: str) -> None:
    it = VERBS[verb]
    facts, expected = scene.facts(), it.expected[role]
    answer = service.call(TOKENS[role], it.method, it.path.format(**facts), it.body)
    assert answer.status_code == expected, answer.text
    if expected >= 400:
        assert set(answer.json()) == {"error"}
    elif it.fresh:
        scene.used_up()


@pytest.mark.parametrize("role", [role for role in ROLES if role != "spawner"])
@pytest.mark.parametrize("verb", [verb for verb in VERBS if VERBS[verb].form])
def test_the_panel_refuses_where_the_interface_does(
    service: ServiceUnderTest, scene: Scene, verb: str, role: str
) -> None:
    it = VERBS[verb]
    facts, expected = scene.facts(), it.expected[role]
    service.http.cookies.clear()
    answer = service.http.post(
        PREFIX + it.form.format(**facts), data=dict(it.fields),
        headers={"Authorization": f"token {TOKENS[role]}-token"},
    )  # fmt: skip
    assert answer.status_code == (303 if expected == 200 else expected), answer.text
    if expected == 200 and it.fresh:
        scene.used_up()


def test_another_is_stopped_with_a_reason_only(service: ServiceUnderTest, scene: Scene) -> None:
    workload = scene.facts()["id"]
    for role in ("lead", "admin"):
        answer = service.call(TOKENS[role], "DELETE", f"/workloads/{workload}", {})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "reason_required")
    assert service.show(workload)["state"] == "running"
