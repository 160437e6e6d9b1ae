"""A save from the request to the report: with browsers, without, and while the service is away."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hubgov_lab.app import HubgovLab
from lab.standin import WORKLOAD, Ask, Standin, until


async def taken(standin: Standin) -> dict[str, Any]:
    async with asyncio.timeout(10):
        await standin.saved.wait()
    standin.saved.clear()
    return standin.saves[-1][1]


async def test_without_a_browser_the_files_are_copied_at_once(
    app: HubgovLab, standin: Standin, ask: Ask, jp_root_dir: Path, governed: Path
) -> None:
    (jp_root_dir / "a.ipynb").write_text("{}")
    await ask("documents", {"tab": "t-1", "paths": ["a.ipynb", "gone.ipynb"]})
    assert app.session is not None
    app.session.saving.browsers.tabs["t-1"].heard = time.monotonic() - 60
    begun = time.monotonic()
    # The tab was heard a minute ago, so it counts, but it never answers: the save goes on without it.
    app.session.saving.lab_wait_seconds = 0.1
    await standin.change(save_requested="s-1")
    report = await taken(standin)
    assert time.monotonic() - begun < 4
    assert report["save"] == "s-1"
    assert report["asked_lab"] is False
    outcomes = {document["path"]: (document["outcome"], document["error"]) for document in report["documents"]}
    assert outcomes["gone.ipynb"] == ("not_saved", "no such file")
    manifest = json.loads((governed / ".hubgov" / "saves" / "s-1" / "manifest.json").read_text())
    assert manifest == report
    assert manifest["documents"][0]["outcome"] == "saved"


async def test_with_browsers_all_are_waited_for(
    app: HubgovLab, standin: Standin, ask: Ask, jp_root_dir: Path, governed: Path
) -> None:
    (jp_root_dir / "a.ipynb").write_text("old")
    for tab in ("t-1", "t-2"):
        await ask("session", tab=tab)
    asked = asyncio.ensure_future(ask("session", after=1, wait=20, tab="t-1"))
    await standin.change(save_requested="s-1")
    assert (await asked)["workload"]["save_requested"] == "s-1"
    (jp_root_dir / "a.ipynb").write_text("new")
    saved = {"path": "a.ipynb", "saved": True, "error": ""}
    failed = {"path": "b.ipynb", "saved": False, "error": "Conflict"}
    assert (await ask("saved", {"save": "s-1", "tab": "t-1", "documents": [saved]}))["taken"] is True
    assert standin.saves == []
    await ask("saved", {"save": "s-1", "tab": "t-2", "documents": [failed]})
    report = await taken(standin)
    assert report["asked_lab"] is True
    assert [document["outcome"] for document in report["documents"]] == ["saved", "not_saved"]
    assert (governed / ".hubgov" / "saves" / "s-1" / "files" / "a.ipynb").read_text() == "new"
    late = await ask("saved", {"save": "s-1", "tab": "t-1", "documents": []})
    assert late["taken"] is False


async def test_a_closed_tab_is_not_waited_for(app: HubgovLab, standin: Standin, ask: Ask) -> None:
    await ask("documents", {"tab": "t-1", "paths": ["a"]})
    await ask("documents", {"tab": "t-1", "paths": [], "closed": True})
    begun = time.monotonic()
    await standin.change(save_requested="s-1")
    report = await taken(standin)
    assert time.monotonic() - begun < 3
    assert (report["asked_lab"], report["documents"]) == (False, [])


async def test_a_tab_that_closes_while_it_is_waited_for_has_saved_nothing(
    app: HubgovLab, standin: Standin, ask: Ask
) -> None:
    await ask("session", tab="t-1")
    asked = asyncio.ensure_future(ask("session", after=1, wait=20, tab="t-1"))
    await standin.change(save_requested="s-1")
    await asked
    await ask("documents", {"tab": "t-1", "paths": [], "closed": True})
    assert (await taken(standin))["asked_lab"] is False


async def test_the_report_is_handed_in_until_it_is_taken(app: HubgovLab, standin: Standin) -> None:
    assert app.session is not None
    app.session.saving.first_retry_seconds = 0.01
    standin.refuse_saves = 3
    await standin.change(save_requested="s-1")
    await taken(standin)
    assert standin.refuse_saves == 0
    await until(lambda: app.session is not None and app.session.memory.saved == {"s-1"})


async def test_each_save_is_made_once(app: HubgovLab, standin: Standin, governed: Path) -> None:
    assert app.session is not None
    for save in ("s-1", "s-1", "s-2"):
        await standin.change(save_requested=save)
        await app.session.wait_beyond(app.session.revision, 0.5)
    await until(lambda: len(standin.saves) == 2)
    assert [save for save, _ in standin.saves] == ["s-1", "s-2"]
    memory = app.session.memory
    await until(lambda: type(memory).of(governed, WORKLOAD).saved == {"s-1", "s-2"})


async def test_a_save_with_a_bad_id_is_left_out(
    app: HubgovLab, standin: Standin, caplog: pytest.LogCaptureFixture
) -> None:
    await standin.change(save_requested="../evil")
    await until(lambda: "no id of a save" in caplog.text)
    assert standin.saves == []


async def test_kernels_and_terminals_are_reported(
    app: HubgovLab, standin: Standin, jp_serverapp: Any, jp_root_dir: Path
) -> None:
    (jp_root_dir / "train.ipynb").write_text("{}")
    session = await jp_serverapp.session_manager.create_session(
        path="train.ipynb", name="train.ipynb", type="notebook", kernel_name="echo"
    )
    kernel = session["kernel"]["id"]
    manager = jp_serverapp.kernel_manager
    try:
        manager.get_kernel(kernel).execution_state = "busy"
        await standin.change(save_requested="s-1")
        report = await taken(standin)
    finally:
        await manager.shutdown_kernel(kernel, now=True)
    assert report["kernels"] == [{"id": kernel, "name": "echo", "path": "train.ipynb", "busy": True}]
    assert [document["path"] for document in report["documents"]] == ["train.ipynb"]
    assert report["terminals"] == 0
