"""A Jupyter server with the extension, and the stand-in that it talks to."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hubgov_lab.app import HubgovLab
from lab.standin import TOKEN, WORKLOAD, Ask, Standin

# Imported by name rather than as a plugin, which only the root conftest could load, for all tests.
from pytest_jupyter.jupyter_core import (  # noqa: F401
    echo_kernel_spec,
    jp_asyncio_loop,
    jp_config_dir,
    jp_data_dir,
    jp_env_config_path,
    jp_env_jupyter_path,
    jp_environ,
    jp_home_dir,
    jp_kernel_dir,
    jp_runtime_dir,
    jp_system_config_path,
    jp_system_jupyter_path,
    pytest_pycollect_makeitem,
    pytest_pyfunc_call,
)
from pytest_jupyter.jupyter_server import (  # noqa: F401
    jp_argv,
    jp_auth_header,
    jp_base_url,
    jp_configurable_serverapp,
    jp_fetch,
    jp_http_port,
    jp_logging_stream,
    jp_nbconvert_templates,
    jp_root_dir,
    jp_server_cleanup,
    jp_serverapp,
    jp_web_app,
)
from pytest_jupyter.pytest_tornasync import http_server, http_server_client, http_server_port  # noqa: F401
from tornado.httpclient import HTTPClientError


@pytest.fixture
def jp_server_config() -> dict[str, Any]:
    return {
        "ServerApp": {"jpserver_extensions": {"hubgov_lab": True, "jupyter_server_terminals": True}},
        "HubgovLab": {"lab_wait": 5.0, "max_document_mib": 1},
    }


@pytest.fixture
def standin(jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Standin]:  # noqa: F811
    async def make() -> Standin:
        return Standin()

    made = jp_asyncio_loop.run_until_complete(make())
    yield made
    jp_asyncio_loop.run_until_complete(made.close())


@pytest.fixture
def home(jp_environ: None, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: F811
    for name in tuple(os.environ):
        if name.startswith(("HUBGOV_", "JUPYTERHUB_")):
            monkeypatch.delenv(name)
    return Path.home()


@pytest.fixture
def governed(home: Path, standin: Standin, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment of a governed server; the home is the value."""
    monkeypatch.setenv("HUBGOV_WORKLOAD_ID", WORKLOAD)
    monkeypatch.setenv("HUBGOV_ALLOCATION_ID", "a-1")
    monkeypatch.setenv("HUBGOV_URL", standin.url)
    monkeypatch.setenv("HUBGOV_DEADLINE_FILE", str(home / ".hubgov" / "deadline"))
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", TOKEN)
    return home


@pytest.fixture
def app(
    governed: Path,
    jp_serverapp: Any,  # noqa: F811
    jp_asyncio_loop: asyncio.AbstractEventLoop,  # noqa: F811
) -> Iterator[HubgovLab]:
    """The extension of a governed server, watching and with its first answer."""
    made: HubgovLab = jp_serverapp.extension_manager.extension_points["hubgov_lab"].app

    async def begin() -> None:
        await made._start_jupyter_server_extension(jp_serverapp)
        assert made.session is not None
        await made.session.wait_beyond(0, 5)

    jp_asyncio_loop.run_until_complete(begin())
    yield made
    jp_asyncio_loop.run_until_complete(made.stop_extension())


@pytest.fixture
def ask(jp_fetch: Any) -> Ask:  # noqa: F811
    """Ask the extension; the answer's JSON, or `(status, JSON)` when it is an error."""

    async def asking(path: str, body: Any = None, **params: Any) -> Any:
        options: dict[str, Any] = {} if body is None else {"method": "POST", "body": json.dumps(body)}
        try:
            answer = await jp_fetch("hubgov", path, params=params, **options)
        except HTTPClientError as error:
            return error.code, json.loads(error.response.body if error.response else b"null")
        return json.loads(answer.body) if answer.body else None

    return asking
