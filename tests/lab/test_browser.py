"""The Lab extension in a real JupyterLab: what a person sees and clicks, against the stand-in service."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from lab.standin import TOKEN, WORKLOAD, Standin, decision, stamp, workload
from tornado.httpclient import AsyncHTTPClient, HTTPClientError
from tornado.testing import bind_unused_port

CHROMIUM = shutil.which("chromium")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--disable-extensions"),
]
NOTEBOOK = {
    "cells": [
        {"cell_type": "code", "id": "a", "metadata": {}, "source": "1+1", "outputs": [], "execution_count": None}
    ],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
]


@asynccontextmanager
async def lab(home: Path, environment: dict[str, str], **settings: Any) -> AsyncIterator[str]:
    """A JupyterLab of its own process with this home; its address."""
    for plugin, value in {
        "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
        **settings,
    }.items():
        file = home / ".jupyter" / "lab" / "user-settings" / "@jupyterlab" / f"{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value))
    probe, port = bind_unused_port()
    probe.close()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "HUBGOV_"))}
    with (home / "lab.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", f"--port={port}"),
            *("--IdentityProvider.token=t", f"--ServerApp.root_dir={home / 'work'}"),
            env={**clean, "HOME": str(home), **environment},
            cwd=home,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        await _answering(f"{address}/api/status?token=t", process)
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), 10)
        except TimeoutError:
            # An idle worker thread of anyio, left by a save, can keep a Jupyter server's interpreter alive.
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _answering(url: str, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(60):
        while process.returncode is None:
            try:
                await AsyncHTTPClient().fetch(url)
            except (OSError, HTTPClientError):
                await asyncio.sleep(0.2)
            else:
                return
    raise AssertionError("JupyterLab ended")


@asynccontextmanager
async def page(address: str) -> AsyncIterator[Any]:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        context = await browser.new_context(viewport={"width": 1280, "height": 800})
        opened = await context.new_page()
        opened.set_default_timeout(60_000)
        await opened.goto(f"{address}/lab?token=t")
        yield opened
        await browser.close()


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    home = tmp_path / "person"
    (home / "work").mkdir(parents=True)
    (home / "work" / "first.ipynb").write_text(json.dumps(NOTEBOOK))
    return home


def environment(standin: Standin, home: Path) -> dict[str, str]:
    return {
        "HUBGOV_WORKLOAD_ID": WORKLOAD,
        "HUBGOV_ALLOCATION_ID": "a-1",
        "HUBGOV_URL": standin.url,
        "HUBGOV_DEADLINE_FILE": str(home / ".hubgov" / "deadline"),
        "JUPYTERHUB_API_TOKEN": TOKEN,
    }


def warning(name: str, seconds: int) -> dict[str, Any]:
    return {
        "id": name,
        "kind": "expiring",
        "threshold_seconds": seconds,
        "deadline": stamp(seconds),
        "issued_at": stamp(0),
    }


async def test_a_session_is_seen_extended_warned_and_saved(standin: Standin, workplace: Path) -> None:
    standin.workload = workload(resume_documents=["first.ipynb"])
    async with lab(workplace, environment(standin, workplace)) as address, page(address) as tab:
        item = tab.locator("button.hubgov-StatusItem")
        await item.get_by_text(re.compile(r"^SIMULATED A100 · .*\d\d:\d\d · 1 h 4\d m left$")).wait_for()
        await tab.locator(".jp-Notebook .jp-Cell").first.wait_for()

        await item.click()
        await tab.locator(".hubgov-Popover").get_by_text(re.compile("^Extend to")).click()
        await tab.get_by_text(re.compile(r"Extended to .* \(\+2 h\)\. Extensions left: 1\.")).wait_for()
        assert [body["by_seconds"] for _, body in standin.extended] == [7200]

        await standin.change(expires_at=stamp(1800), notices=[warning("n-1", 1800)])
        toast = tab.locator(".Toastify__toast", has_text="This session stops at")
        refused = {"code": "above_maximum", "message": "no", "details": decision(), "hint": ""}
        standin.extend_answer = (422, {"error": refused})
        await toast.get_by_text("Extend", exact=True).click()
        dialog = tab.locator(".jp-Dialog .hubgov-Decision")
        await dialog.get_by_text("needs 12 h, room for 0 s, limit 10 h").wait_for()
        await dialog.get_by_text("Submit the rest as a batch job").wait_for()
        await tab.locator(".jp-Dialog button.jp-mod-accept").click()

        await tab.locator(".jp-Notebook .jp-Cell .cm-content").first.click()
        await tab.keyboard.press("Control+End")
        await tab.keyboard.type("\n# typed, not saved")
        await standin.change(expires_at=stamp(120), save_requested="s-1", notices=[warning("n-2", 120)])
        async with asyncio.timeout(20):
            await standin.saved.wait()
        report = standin.saves[0][1]
        assert report["asked_lab"] is True
        assert [document["outcome"] for document in report["documents"]] == ["saved"]
        copy = workplace / report["documents"][0]["copy"]
        assert "# typed, not saved" in copy.read_text()

        await tab.reload()
        await item.get_by_text(re.compile(r"\d s left$")).wait_for()
        await tab.keyboard.press("Control+Shift+G")
        await tab.locator(".hubgov-Popover").wait_for()
        assert await tab.locator(".Toastify__toast", has_text="left (").count() == 0


async def test_what_was_typed_is_kept_beside_a_file_that_changed_on_disk(standin: Standin, workplace: Path) -> None:
    file = workplace / "work" / "first.ipynb"
    standin.workload = workload(resume_documents=["first.ipynb"])
    async with lab(workplace, environment(standin, workplace)) as address, page(address) as tab:
        cell = tab.locator(".jp-Notebook .jp-Cell .cm-content").first
        await cell.click()
        await tab.keyboard.press("Control+End")
        await tab.keyboard.type("\n# typed, not saved")
        file.write_text(json.dumps({**NOTEBOOK, "metadata": {**NOTEBOOK["metadata"], "changed": "elsewhere"}}))
        os.utime(file, (file.stat().st_atime + 60, file.stat().st_mtime + 60))
        await standin.change(expires_at=stamp(120), save_requested="s-1", notices=[warning("n-1", 120)])
        async with asyncio.timeout(30):
            await standin.saved.wait()
        documents = {document["path"]: document for document in standin.saves[0][1]["documents"]}
        (aside,) = [path for path in documents if path.startswith("first-unsaved-")]
        assert documents["first.ipynb"]["outcome"] == "not_saved"
        assert f"what was typed is kept in {aside}" in documents["first.ipynb"]["error"]
        assert documents[aside]["outcome"] == "saved"
        assert "# typed, not saved" in (workplace / documents[aside]["copy"]).read_text()
        assert "elsewhere" in file.read_text(), "the other's change stands"


async def test_an_idle_session_is_asked_and_kept_once(standin: Standin, workplace: Path) -> None:
    async with lab(workplace, environment(standin, workplace)) as address, page(address) as tab:
        item = tab.locator("button.hubgov-StatusItem")
        await item.get_by_text(re.compile("left$")).wait_for()
        asked = {**warning("nb-7.1-idle-1", 0), "kind": "idle", "deadline": stamp(1800), "quiet_seconds": 2700}
        idle = {"idle_phase": "asked", "idle_deadline": stamp(1800), "keeps_left": 2, "idle_after_seconds": 2700}
        await standin.change(notices=[asked], **idle)
        await item.get_by_text(re.compile(r"· idle · returned \d\d:\d\d · 29 m left$")).wait_for()
        toast = tab.locator(".Toastify__toast", has_text="No GPU or kernel activity for 45 m.")
        await toast.get_by_text(
            re.compile(r"returned at \d\d:\d\d unless you run something or choose Keep")
        ).wait_for()
        await toast.get_by_text("Return now", exact=True).wait_for()

        await toast.get_by_text("Keep", exact=True).click()
        await toast.wait_for(state="detached")
        assert standin.keeps == ["keep-nb-7.1-idle-1"]
        await item.click()
        await tab.locator(".hubgov-Popover").get_by_text(re.compile("^kept until")).wait_for()
        assert await tab.locator(".hubgov-Popover button", has_text="Keep").is_hidden()
        # Clicks and keys are told as what they are, and not before.
        assert standin.reports[0]["edited_seconds_ago"] is None
        async with asyncio.timeout(20):
            while standin.reports[-1]["edited_seconds_ago"] is None:
                standin.reported.clear()
                await standin.reported.wait()


async def test_it_speaks_chinese_without_a_language_pack(standin: Standin, workplace: Path) -> None:
    language = {"translation-extension/plugin": {"locale": "zh_CN"}}
    async with (
        lab(workplace, environment(standin, workplace), **language) as address,
        page(address) as tab,
    ):
        item = tab.locator("button.hubgov-StatusItem")
        await item.get_by_text(re.compile(r"^模拟 A100 · .*\d\d:\d\d · 剩余 1 小时 4\d 分$")).wait_for()
        standin.away = True
        await standin.change(state="expiring")
        await item.get_by_text(re.compile(r"^模拟 A100 · ~1 小时 4\d 分 · 离线")).wait_for()
        await item.click()
        assert await tab.locator(".hubgov-Popover").get_by_text(re.compile("^延长至")).is_disabled()


async def test_a_plain_lab_shows_nothing(workplace: Path) -> None:
    async with lab(workplace, {}) as address, page(address) as tab:
        problems: list[str] = []
        tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        async with tab.expect_response(re.compile("/hubgov/session")) as answered:
            await tab.reload()
        assert await (await answered.value).json() == {"governed": False}
        await tab.locator(".jp-Launcher").wait_for()
        assert await tab.locator("button.hubgov-StatusItem").is_hidden()
        assert problems == []
