"""What a run takes in: slow tests with --all, GPU tests with --gpu, others where the part they need is there.

A test whose part is missing is left out, never skipped, and the end of the run says how many and what to do. In
CI nothing may be missing.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings

settings.register_profile("quick", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("all", max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])

INSTALL = "./tests/run --install"
_numbers = count()
_left_out = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", default=False, help="also the slow tests")
    parser.addoption("--gpu", action="store_true", default=False, help="also the tests that need a real GPU")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("all" if config.getoption("--all") else "quick")


def postgresql_program(name: str) -> str | None:
    """Where one of PostgreSQL's programs is; Debian keeps them off the PATH."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = (shutil.which(name, path=folder) for folder in (None, *map(str, folders)))
    return next((path for path in found if path), None)


def missing_parts() -> dict[str, str]:
    """What this machine lacks, by the marker of the tests that need it."""
    parts = {
        "postgresql": ("PostgreSQL", bool(postgresql_program("initdb") and postgresql_program("pg_ctl"))),
        "browser": ("Chromium", any(shutil.which(name) for name in ("chromium", "chromium-browser"))),
        "boxed": ("bubblewrap and root", os.getuid() == 0 and shutil.which("bwrap") is not None),
    }
    return {marker: name for marker, (name, there) in parts.items() if not there}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing, left_out = missing_parts(), Counter[str]()
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        lacks = [name for marker, name in missing.items() if item.get_closest_marker(marker)]
        slow = item.get_closest_marker("slow") is not None and not config.getoption("--all")
        left_out.update(() if slow else lacks)
        (dropped if lacks or slow else kept).append(item)
    if left_out and os.environ.get("CI") == "true":
        raise pytest.UsageError("in CI every part must be there; missing: " + ", ".join(sorted(left_out)))
    config.stash[_left_out] = left_out
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    left_out = config.stash.get(_left_out, Counter[str]())
    if left_out:
        what = ", ".join(f"{count} for {name}" for name, count in sorted(left_out.items()))
        terminalreporter.write_line(f"left out, since a part is missing here: {what}. To have them: {INSTALL}")


def _run_as() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: another account for it, where we are root."""
    if os.getuid() != 0:
        return {}
    account = next(a for name in ("postgres", "nobody") for a in pwd.getpwall() if a.pw_name == name)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """A throw-away PostgreSQL cluster on a Unix socket only; gone with the run."""
    initdb, pg_ctl = postgresql_program("initdb"), postgresql_program("pg_ctl")
    assert initdb is not None
    assert pg_ctl is not None
    who = _run_as()
    base = Path(tempfile.mkdtemp(prefix="hgpg-", dir="/tmp"))  # short: a socket's path holds 107 bytes
    if who:
        os.chown(base, who["user"], who["group"])
    about: dict[str, Any] = {
        "check": True, "cwd": base, "stdout": subprocess.DEVNULL,
        "env": {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": str(base)}, **who,
    }  # fmt: skip
    data = str(base / "d")
    make = [initdb, "-D", data, "-U", "hubgov", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"]
    quiet = f"-k {base} -c listen_addresses='' -c fsync=off -c synchronous_commit=off -c full_page_writes=off"
    try:
        subprocess.run(make, **about)
        begin = [pg_ctl, "-D", data, "-o", f"{quiet} -c max_connections=60", "-l", str(base / "log")]
        subprocess.run([*begin, "-w", "-t", "60", "start"], **about)
        yield f"postgresql+psycopg://hubgov@/postgres?host={base}"
    finally:
        if (base / "d" / "postmaster.pid").exists():
            subprocess.run([pg_ctl, "-D", data, "-m", "immediate", "-w", "stop"], **about)
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of its own."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.sqlite"
    cluster: str = request.getfixturevalue("postgresql_url")
    name = f"ledger_{next(_numbers)}"
    engine = sa.create_engine(cluster, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return cluster.replace("/postgres?", f"/{name}?")
