"""GET /costs: one's own, of the teams one leads, all for an admin; to the second what the receipts say."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from service.answers import end, refused
from service_under_test import ServiceUnderTest
from waiting import until

ALL = {"include_simulated": "1"}


def costs(service: ServiceUnderTest, who: str, **query: str) -> dict[str, Any]:
    answer = service.call(who, "GET", "/costs", params={**ALL, **query})
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


@pytest.fixture(scope="module")
def books(service: ServiceUnderTest) -> dict[str, str]:
    """A session of amy's (vision) and one of bo's (nlp) that are over."""
    ids = {}
    for who in ("amy", "bo"):
        ids[who] = service.run(who)["id"]
        until(lambda: costs(service, "admin", by="user")["total"]["gpu_seconds"] > 0, 20, "a second to be used")
        end(service, ids[who])
    return ids


def test_everybody_sees_what_he_answers_for(service: ServiceUnderTest, books: dict[str, str]) -> None:
    def users(who: str) -> set[str]:
        return {row["user"] for row in costs(service, who, by="user")["items"]}

    assert users("admin") == users("lena") == {"amy", "bo"}
    assert users("amy") == users("amy-server") == {"amy"}
    assert users("bo") == {"bo"}
    assert users("ava") == users("stranger") == set(), "what a team-mate used is not told"


def test_the_costs_are_those_of_the_receipts(service: ServiceUnderTest, books: dict[str, str]) -> None:
    for who, workload in books.items():
        receipt = service.call("admin", "GET", f"/workloads/{workload}/receipt").json()
        (row,) = (row for row in costs(service, "admin", by="user,project,kind")["items"] if row["user"] == who)
        paid, charged = (Decimal(document["cost"]["amount"]) for document in (row, receipt))
        assert abs(paid - charged) <= Decimal("0.000001"), "rows share the total out, a receipt is rounded alone"
        assert abs(row["gpu_seconds"] - receipt["gpu_seconds"]) <= 1, "each is rounded once"
        assert (row["project"], row["kind"], row["flavor"]) == ({"amy": "seg", "bo": "chat"}[who], "notebook", None)


@pytest.mark.parametrize("by", ["team", "user,flavor", "day", "queue,day,kind", "project"])
def test_each_grouping_sums_to_the_same_total(service: ServiceUnderTest, books: dict[str, str], by: str) -> None:
    period = {"to": "2100-01-01"} if "day" not in by else {}
    found, plain = costs(service, "admin", by=by, **period), costs(service, "admin", **period)
    assert found["by"] == by.split(",")
    assert found["total"] == plain["total"]
    assert sum(row["gpu_seconds"] for row in found["items"]) == found["total"]["gpu_seconds"] > 0
    for row in (*found["items"], found["total"]):
        listed, off, paid = (Decimal(row[name]["amount"]) for name in ("list_cost", "discount", "cost"))
        assert listed - off == paid
        assert Decimal(row["credited"]["amount"]) == 0, "nothing failed to start"
    for row in found["items"]:
        assert all(row[name] for name in found["by"])


def test_what_goes_on_counts_up_to_now(service: ServiceUnderTest, session: dict[str, Any]) -> None:
    before = costs(service, "amy")["total"]["gpu_seconds"]
    until(lambda: costs(service, "amy")["total"]["gpu_seconds"] > before, 20, "the running session to count")


def test_simulated_usage_is_counted_when_asked_for_only(service: ServiceUnderTest, books: dict[str, str]) -> None:
    left_out = service.call("admin", "GET", "/costs").json()
    assert (left_out["items"], left_out["total"]["gpu_seconds"]) == ([], 0)
    assert (left_out["simulated"], left_out["simulated_left_out"]) == (False, True)
    counted = costs(service, "admin")
    assert (counted["simulated"], counted["simulated_left_out"]) == (True, False)


def test_a_period_without_usage_is_empty(service: ServiceUnderTest, books: dict[str, str]) -> None:
    found = costs(service, "admin", **{"from": "2020-01-01", "to": "2020-02-01", "by": "day"})
    assert found["items"] == []
    assert (found["from"], found["to"]) == ("2020-01-01T00:00:00.000Z", "2020-02-01T00:00:00.000Z")


@pytest.mark.parametrize(
    ("query", "told"),
    {
        "by=teams": "team, project, user",
        "by=team,": "one or more of",
        "from=yesterday": "2026-03-02",
        "from=2026-02-30": "2026-03-02",
        "from=0001-01-01": "2026-03-02",
        "from=2026-03-02T09:00:00": "2026-03-02T09:00:00+08:00",
        "from=2026-03-02&to=2026-03-02": "before",
        "from=2020-01-01&to=2020-12-01&by=day": "shorter",
        "include_simulated=yes": "include_simulated=1",
    }.items(),
)
def test_what_can_not_be_read_is_told_with_what_can(service: ServiceUnderTest, query: str, told: str) -> None:
    error = refused(service.call("amy", "GET", f"/costs?{query}"), 400, "invalid")
    assert told in error["hint"]
