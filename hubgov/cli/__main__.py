"""`python -m hubgov.cli`: the same as `hubgov`."""

from __future__ import annotations

from hubgov.cli import main

main()
