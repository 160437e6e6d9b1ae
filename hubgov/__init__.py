"""hubgov: GPU governance for people who work in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from hubgov.client import Client, NeedsApproval, PolicyDenied

    # Named without importing its module: `hubgov` would else depend on all of the service.
    setup: Callable[..., None]

__version__ = "0.1.0"
__all__ = ["Client", "NeedsApproval", "PolicyDenied", "__version__", "setup"]

_HOMES = {
    "Client": "hubgov.client",
    "NeedsApproval": "hubgov.client",
    "PolicyDenied": "hubgov.client",
    "setup": "hubgov.hub",
}


def __getattr__(name: str) -> Any:
    """The public names, loaded when first asked for: nobody pays for the parts he doesn't use."""
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
