"""The command line `hubgov`. It speaks the public interface only, but for `cli.local`."""

from __future__ import annotations


def main() -> None:
    """The program `hubgov`: runs one verb and ends the process with its exit code."""
    import sys

    from hubgov.cli.running import run

    sys.exit(run(sys.argv[1:]))
