"""The policy file: reading, checking, comparing, and the sample to begin with."""

from __future__ import annotations

from .difference import Edit, InUse, Usage, diff, in_use
from .loading import Loaded, load
from .problems import Problem
from .reading import Reading, read
from .sample import People, sample_policy
from .shapes import schema

__all__ = [
    "Edit",
    "InUse",
    "Loaded",
    "People",
    "Problem",
    "Reading",
    "Usage",
    "diff",
    "in_use",
    "load",
    "read",
    "sample_policy",
    "schema",
]
