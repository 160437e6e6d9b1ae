"""What JupyterLab needs to know of a governed session: the server half of hubgov's Lab extension.

The browser talks to this extension only, so that no credential of the server reaches it.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "hubgov-lab"}]


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    from hubgov_lab.app import HubgovLab

    return [{"module": "hubgov_lab", "app": HubgovLab}]
