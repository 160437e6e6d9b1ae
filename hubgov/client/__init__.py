"""The Python client of the service: `from hubgov import Client, PolicyDenied`. Speaks the public interface only."""

from __future__ import annotations

from hubgov.client.connection import Connection
from hubgov.client.failures import NeedsApproval, NotSignedIn, PolicyDenied
from hubgov.client.http import Client
from hubgov.client.job import Job

__all__ = ["Client", "Connection", "Job", "NeedsApproval", "NotSignedIn", "PolicyDenied"]
