"""Whether this server is governed, and by whom: read once from the environment that the spawner set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hubgov.errors import Invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Governed:
    """A server that hubgov started: what it belongs to and where to ask about it."""

    workload: str
    url: str
    token: str
    deadline_file: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long and how much a save may take; the traits of `HubgovLab` set them."""

    lab_wait_seconds: float = 9.0
    document_bytes: int = 200 * 1024**2
    total_bytes: int = 1024**3
    documents: int = 200
    kept_saves: int = 5


def governed(environment: Mapping[str, str]) -> Governed | None:
    """What the environment says about this server; None on one that nobody governs.

    Invalid when a workload is named but the service's address or the token is missing: then nothing can be
    asked, and saying so beats a countdown that never comes.
    """
    workload = environment.get("HUBGOV_WORKLOAD_ID", "").strip()
    if not workload:
        return None
    url = environment.get("HUBGOV_URL", "").strip().rstrip("/")
    token = environment.get("JUPYTERHUB_API_TOKEN", "").strip()
    if not url.startswith(("http://", "https://")) or not token:
        raise Invalid(
            "HUBGOV_WORKLOAD_ID is set, but HUBGOV_URL or JUPYTERHUB_API_TOKEN is not",
            hint="start the server through hubgov's spawner, which sets all three",
        )
    deadline = environment.get("HUBGOV_DEADLINE_FILE", "").strip()
    return Governed(
        workload=workload,
        url=url,
        token=token,
        deadline_file=Path(deadline) if deadline else None,
    )
