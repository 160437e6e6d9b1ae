"""Jobs on the panel: their kind and where their log is, beside notebooks, as far as the reader may know."""

from __future__ import annotations

import pytest
from builders import Play, a_policy

from hubgov.control.actor import ADMIN, Actor
from hubgov.core.policy import Kind
from hubgov.service.application import _templates
from hubgov.service.documents import Desk
from hubgov.service.panel.holders import Wanted, choices, holder_rows
from hubgov.service.panel.line import queue_rows
from hubgov.service.panel_texts import PANEL

JOBS = [kind for kind in Kind if kind is not Kind.NOTEBOOK]


@pytest.fixture
def play() -> Play:
    """A job of ann's runs on the one card, a job of bo's waits for it."""
    made = Play(a_policy().team("A").team("B").node("box", devices=1))
    made.run("job-1", team="A", owner="ann", kind=Kind.TRAINING)
    made.submit("job-2", team="B", owner="bo", kind=Kind.TRAINING)
    return made


def desk_of(play: Play, name: str, lang: str = "en", *, admin: bool = False) -> Desk:
    return Desk(play.state, play.now, Actor(name=name, scopes=frozenset({ADMIN} if admin else ())), lang)


def page(template: str, desk: Desk, **facts: object) -> str:
    return _templates("/").get_template(template).render(
        lang=desk.lang, status=200, switch="?lang=zh", hub="/", prefix="/", actor=desk.actor, nav=(), xsrf="x",
        section="holders", desk=desk, said=None, what="", at="12:00", stopping=None, **facts,
    )  # fmt: skip


def holders(desk: Desk) -> str:
    rows = holder_rows(desk, {}, "enforced")
    found = choices(rows, desk.lang)
    return page("panel_holders.html", desk, rows=rows, any_rows=True, wanted=Wanted(), choices=found)


def test_a_job_shows_its_kind_and_to_its_owner_where_its_log_is(play: Play) -> None:
    shown = holders(desk_of(play, "ann"))
    assert "training job" in shown
    assert "<code>hubgov logs job-1</code>" in shown
    assert "训练任务" in holders(desk_of(play, "ann", "zh"))
    assert "<code>hubgov logs job-1</code>" in holders(desk_of(play, "root", admin=True))
    assert "training job" not in holders(desk_of(play, "bo")), "of another team's work its team alone"
    assert "/user/" not in shown, "there is no notebook to open"


def test_a_job_in_line_shows_its_kind(play: Play) -> None:
    for name, lang, word in (("bo", "en", "training job"), ("bo", "zh", "训练任务")):
        desk = desk_of(play, name, lang)
        assert word in page("panel_queues.html", desk, queues=queue_rows(desk))
    desk = desk_of(play, "ann")
    assert "training job" not in page("panel_queues.html", desk, queues=queue_rows(desk))


def test_the_search_finds_jobs_by_their_kind_and_a_notebook_is_none() -> None:
    play = Play(a_policy().team("A").node("box", devices=2))
    play.run("job-1", team="A", owner="ann", kind=Kind.TRAINING)
    play.run("nb-1", team="A", owner="ann", kind=Kind.NOTEBOOK)
    rows = holder_rows(desk_of(play, "ann"), {}, "enforced")
    assert {r.held.workload: r.held.job for r in rows if r.held} == {"job-1": "training", "nb-1": None}
    found = [r.held.workload for r in rows if r.held and Wanted(text="TRAINING").fits(r)]
    assert found == ["job-1"]


@pytest.mark.parametrize("kind", JOBS)
def test_every_kind_of_a_job_has_words(kind: Kind) -> None:
    english, chinese = (PANEL.pick(f"kind_{kind.value}", lang) for lang in ("en", "zh"))
    assert english != chinese
