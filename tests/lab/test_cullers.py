"""Nobody but hubgov ends what is idle in a governed server, whatever its configuration says."""

from __future__ import annotations

from typing import Any

import pytest
from hubgov_lab.app import HubgovLab


@pytest.fixture
def jp_server_config(jp_server_config: dict[str, Any]) -> dict[str, Any]:
    return {
        **jp_server_config,
        "MappingKernelManager": {"cull_idle_timeout": 5, "cull_busy": True},
        "TerminalManager": {"cull_inactive_timeout": 5},
    }


async def test_the_servers_own_cullers_are_off(app: HubgovLab, jp_serverapp: Any, jp_fetch: Any) -> None:
    await jp_fetch("api", "terminals", method="POST", allow_nonstandard_methods=True)
    kernels, terminals = jp_serverapp.kernel_manager, jp_serverapp.web_app.settings["terminal_manager"]
    assert (kernels.cull_idle_timeout, terminals.cull_inactive_timeout) == (0, 0)
    assert kernels._culler_callback is None
    assert terminals._culler_callback is None
    await terminals.terminate_all()
