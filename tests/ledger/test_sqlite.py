"""What only SQLite needs: one process that writes, a disk that may be full, a file that must be local."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from builders import START
from ledger.story import site
from ledger.written import Written

from hubgov.errors import Invalid, Unavailable
from hubgov.ledger import database
from hubgov.ledger.database import connect, mounted_there
from hubgov.ledger.leadership import StaleLeader
from hubgov.ledger.ledger import Ledger

TESTS = Path(__file__).parents[1]


def child(code: str, *args: str) -> subprocess.Popen[str]:
    """Another process with the tests' modules at hand."""
    env = os.environ | {"PYTHONPATH": str(TESTS)}
    return subprocess.Popen(
        [sys.executable, "-c", code, *args], env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


LEADER = """
import sys
from ledger.story import site
from ledger.written import Written
play = Written(sys.argv[1], site())
play.run("a")
print("leads", flush=True)
sys.stdin.read()
"""


def test_two_processes_cannot_both_lead_and_the_lock_goes_with_a_killed_one(sqlite_url: str) -> None:
    other = child(LEADER, sqlite_url)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "leads\n"
        ledger = Ledger(sqlite_url, lambda text, version: site().build(version))
        with pytest.raises(Unavailable, match=f"process {other.pid}"):
            ledger.lead()
        text = ledger.policy()
        assert text is not None, "reading needs no lead"
        assert set(ledger.load(text, START).workloads) == {"a"}
        other.kill()
        other.wait()
        ledger.lead()
        assert ledger.epoch == 2
        ledger.close()
    finally:
        other.kill()
        other.communicate()


CRASH = """
import os, sys
import sqlalchemy as sa
from ledger.story import site
from ledger.written import Written
play = Written(sys.argv[1], site())
play.run("old", gpus=4)
play.submit("new", gpus=4, team="B", owner="bo")
play.exit("old")
left = int(sys.argv[2])
def cut(*_):
    global left
    left -= 1
    if left < 0:
        os._exit(9)
sa.event.listen(play.ledger.engine, "before_cursor_execute", cut)
sa.event.listen(play.ledger.engine, "commit", cut)
play.gone("old")
"""


def test_a_process_that_dies_within_a_commit_leaves_before_or_after(tmp_path: Path) -> None:
    found = []
    for n in range(0, 16, 5):
        url = f"sqlite:///{tmp_path}/{n}.sqlite"
        died = child(CRASH, url, str(n))
        died.communicate()
        ledger = Ledger(url, lambda text, version: site().build(version))
        ledger.lead()
        text = ledger.policy()
        assert text is not None
        state = ledger.load(text, START)
        ledger.close()
        held = {str(a.workload): a.state.value for a in state.allocations.values()}
        assert held in ({"old": "releasing"}, {"new": "reserved"})
        assert (died.returncode == 9) == (held == {"old": "releasing"})
        found.append(died.returncode)
    assert found[0] == 9
    assert found[-1] == 0, "the last one came through: every statement was among the cuts"


def test_every_commit_that_returned_is_on_disk(sqlite_url: str) -> None:
    ledger = Ledger(sqlite_url, lambda text, version: site().build(version))
    ledger.upgrade()
    with ledger.reading() as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    ledger.close()
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


FULL = """
import json, os, resource, sys
from builders import snapshot
from hubgov.errors import Unavailable
from ledger.story import site
from ledger.written import Written
play = Written(sys.argv[1], site())
play.run("a")
before = snapshot(play.state)
unit = []
play._wrote = lambda entries, now: unit.extend(entries)
for n in range(30):
    play.submit(f"w{n}", gpus=4, labels={"k": "x" * 2000})
size = os.path.getsize(play.ledger.engine.url.database + "-wal")
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
heard = []
for room in (0, 20_000, 60_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, hard))
    try:
        play.ledger.commit(unit, play.now)
    except Unavailable as error:
        heard.append(error.code)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert snapshot(play.loaded()) == before
play.ledger.commit(unit, play.now)
play.same()
print(json.dumps(heard))
"""


def test_a_full_disk_is_unavailable_and_nothing_is_half_applied(sqlite_url: str) -> None:
    done = child(FULL, sqlite_url)
    out, _ = done.communicate()
    assert done.returncode == 0
    assert json.loads(out) == ["unavailable"] * 3


def test_a_ledger_without_its_tables_or_its_folder_is_unavailable(tmp_path: Path) -> None:
    empty = Ledger(f"sqlite:///{tmp_path}/empty.sqlite", lambda text, version: site().build(version))
    with pytest.raises(Unavailable, match="can't be read"):
        empty.policy()
    empty.lead()
    assert empty.policy() is None, "who leads has the tables"
    empty.close()
    nowhere = Ledger(f"sqlite:///{tmp_path}/none/ledger.sqlite", lambda text, version: site().build(version))
    with pytest.raises(Unavailable, match="can't be opened"):
        nowhere.upgrade()
    nowhere.close()


def test_a_leader_that_fails_to_lead_gives_the_lock_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_args: object) -> int:
        raise Unavailable("the disk is away")

    first, second = (
        Ledger(f"sqlite:///{tmp_path}/ledger.sqlite", lambda text, version: site().build(version)) for _ in range(2)
    )
    with monkeypatch.context() as patched:
        patched.setattr("hubgov.ledger.leadership.take_lead", away)
        with pytest.raises(Unavailable):
            first.lead()
    second.lead()
    for ledger in (first, second):
        ledger.close()


def test_tables_are_left_alone_while_another_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    leader, newer = (Ledger(url, lambda text, version: site().build(version)) for _ in range(2))
    leader.lead()
    touched: list[object] = []
    monkeypatch.setattr("hubgov.ledger.database.upgrade", touched.append)
    with pytest.raises(Unavailable, match="another hubgov service"):
        newer.lead()
    assert not touched
    for ledger in (leader, newer):
        ledger.close()


def test_a_ledger_can_be_closed_when_its_database_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play = Written(f"sqlite:///{tmp_path}/ledger.sqlite", site())

    def gone(*_args: object) -> None:
        raise Unavailable("the disk is away")

    monkeypatch.setattr("hubgov.ledger.leadership.resign", gone)
    play.run("a")
    play.close()
    assert play.ledger.epoch == 0, "it leads no more, told or not"
    with pytest.raises(StaleLeader):
        play.submit("late")
    monkeypatch.undo()
    again = Ledger(play.url, play.read_policy)
    again.lead()
    assert again.epoch == 2
    text = again.policy()
    assert text is not None
    assert set(again.load(text, play.now).workloads) == {"a"}, "what was written before is all there"
    again.close()


# --- which files ---------------------------------------------------------------------------------------

MOUNTS = r"""
overlay / overlay rw 0 0
proc /proc proc rw 0 0
/dev/vda /home ext4 rw 0 0
server:/export /home/team nfs4 rw 0 0
/dev/vdb /home/team/local xfs rw 0 0
//nas/x /mnt/my\040share cifs rw 0 0
odd /mnt/back\134slash fuse.sshfs rw 0 0
tmpfs /srv tmpfs rw 0 0
lustre@tcp /srv lustre rw 0 0
""".strip().splitlines()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib", "overlay"),
        ("/home", "ext4"),
        ("/home/ann", "ext4"),
        ("/home/team", "nfs4"),
        ("/home/team/hub", "nfs4"),
        ("/home/teamwork", "ext4"),
        ("/home/team/local/hub", "xfs"),
        ("/mnt/my share/hub", "cifs"),
        ("/mnt/back\\slash", "fuse.sshfs"),
        ("/srv/hub", "lustre"),
        ("/", "overlay"),
    ],
)
def test_which_file_system_a_folder_lies_on(path: str, kind: str) -> None:
    assert mounted_there(MOUNTS, path) == kind


NETWORK = (
    "nfs", "nfs4", "cifs", "smb3", "lustre", "9p", "ceph", "gpfs", "beegfs", "glusterfs", "juicefs", "virtiofs",
    "vboxsf", "davfs", "ocfs2", "gfs2", "fuse", "fuse.sshfs", "fuse.glusterfs", "fuse.juicefs", "fuse.ceph-fuse",
    "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse", "fuse.mfs", "fuse.never-heard-of",
)  # fmt: skip


@pytest.mark.parametrize("kind", NETWORK)
def test_a_network_file_system_is_refused(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "file_system_of", lambda folder: kind)
    with pytest.raises(Invalid, match="network file system") as refused:
        connect(f"sqlite:///{tmp_path}/ledger.sqlite")
    assert "local disk" in refused.value.hint


@pytest.mark.parametrize(
    "kind",
    ["ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs", "fuseblk", "fuse.fuse-overlayfs", "fuse.gocryptfs", ""],
)
def test_a_local_one_is_not(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(database, "file_system_of", lambda folder: asked.append(folder) or kind)
    engine = connect(f"sqlite:///{tmp_path}/ledger.sqlite")
    with engine.connect() as connection, connection.begin():
        assert connection.execute(sa.text("SELECT 1")).scalar_one() == 1
    engine.dispose()
    assert [Path(folder) for folder in asked] == [tmp_path]
    assert (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://host/db"])
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(Invalid):
        connect(url)


def test_a_ledger_keeps_its_id_and_another_in_its_place_has_another(tmp_path: Path) -> None:
    ids = []
    for name in ("one", "one", "two"):
        ledger = Ledger(f"sqlite:///{tmp_path}/{name}.sqlite", lambda text, version: site().build(version))
        ledger.lead()
        ids.append(ledger.id)
        ledger.close()
    assert ids[0] == ids[1] != ids[2]
    assert all(len(found) == 8 for found in ids)


@pytest.mark.parametrize("replaced", [False, True])
def test_a_ledger_whose_file_is_gone_is_renewed_no_more(replaced: bool, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(f"sqlite:///{path}", lambda text, version: site().build(version))
    ledger.lead()
    ledger.renew()
    if replaced:
        other = tmp_path / "backup.sqlite"
        other.write_bytes(path.read_bytes())
        other.replace(path)
    else:
        path.unlink()
    with pytest.raises(StaleLeader, match="removed or replaced"):
        ledger.renew()
    ledger.close()
