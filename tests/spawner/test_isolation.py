"""hubgov_spawner.isolation and .accounts: option lists as values, detection by table, homes and accounts."""

from __future__ import annotations

import importlib.util
import os
import pwd
import re
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hubgov_spawner import accounts, isolation
from hubgov_spawner.isolation import Box, Isolation, Mode

from hubgov import errors

ROOT = Isolation(mode=Mode.ROOT, reason="", bwrap="/usr/bin/bwrap", setpriv="/usr/bin/setpriv")
USERNS = Isolation(mode=Mode.USERNS, reason="", bwrap="/usr/bin/bwrap", can_disable_userns=True)


def a_box(mode: Mode = Mode.ROOT, **change: object) -> Box:
    values: dict[str, object] = {
        "mode": mode,
        "uid": 61002,
        "gid": 61002,
        "account": "hgu2",
        "home": "/state/homes/hgu2",
        "home_inside": "/home/hgu2",
        "read_only": ("/opt/venv/lib", "/opt/venv"),
        "device_nodes": ("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap1"),
    }
    return Box(**(values | change))  # type: ignore[arg-type]


def options(box: Box, found: Isolation = ROOT, seccomp_fd: int | None = 7) -> str:
    fds = {"/etc/passwd": 5, "/etc/group": 6}
    return " ".join(isolation.options(box, isolation=found, text_fds=fds, info_fd=4, seccomp_fd=seccomp_fd))


PRESENT = {
    "its own processes, names, memory": "--unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try",
    "the system is read-only": "--ro-bind /usr /usr",
    "everybody may write to /tmp": "--perms 1777 --tmpfs /tmp",
    "and to shared memory": "--perms 1777 --tmpfs /dev/shm",
    "an empty /run": "--perms 0755 --tmpfs /run",
    "names resolve: readable files": "--perms 0644 --ro-bind-data 5 /etc/passwd",
    "/etc can be entered": "--perms 0755 --dir /etc",
    "the folders above a bind can be entered": "--perms 0755 --dir /opt --ro-bind /opt/venv /opt/venv",
    "the granted device": "--dev-bind /dev/nvidia0 /dev/nvidia0",
    "a device in a folder": "--perms 0755 --dir /dev/nvidia-caps --dev-bind /dev/nvidia-caps/nvidia-cap1",
    "one home": "--perms 0755 --dir /home --bind /state/homes/hgu2 /home/hgu2 --chdir /home/hgu2",
    "nothing can be added to /": "--remount-ro / --info-fd 4",
    "the filter": "--seccomp 7",
}


@pytest.mark.parametrize("text", PRESENT.values(), ids=PRESENT.keys())
def test_a_box_holds(text: str) -> None:
    assert text in options(a_box())


ABSENT = {
    "a server outlives its hub": "--die-with-parent",
    "the environment isn't in a list that can be read": "--setenv",
    "what lies inside another bind is bound once": "/opt/venv/lib",
    "root needs no user namespace": "--unshare-user",
}


@pytest.mark.parametrize("text", ABSENT.values(), ids=ABSENT.keys())
def test_a_box_is_without(text: str) -> None:
    assert text not in options(a_box())


def test_devices_are_bound_after_the_empty_dev() -> None:
    text = options(a_box())
    assert text.index("--dev /dev") < text.index("--dev-bind")


def test_a_box_without_root_maps_the_uid_and_closes_the_door() -> None:
    text = options(a_box(Mode.USERNS), USERNS)
    assert "--unshare-user --uid 61002 --gid 61002 --disable-userns" in text
    older = Isolation(mode=Mode.USERNS, reason="", bwrap="/usr/bin/bwrap")
    assert "--disable-userns" not in options(a_box(Mode.USERNS), older)


def test_no_filter_for_a_machine_it_isnt_written_for() -> None:
    assert isolation.seccomp_filter("sparc64") is None
    assert "--seccomp" not in options(a_box(), seccomp_fd=None)


def test_root_is_given_up_for_good() -> None:
    tail = isolation.drop_rights(a_box(), isolation=ROOT)
    assert tail[:4] == ["/usr/bin/setpriv", "--reuid=61002", "--regid=61002", "--clear-groups"]
    assert {"--bounding-set=-all", "--ambient-caps=-all", "--inh-caps=-all", "--no-new-privs"} < set(tail)
    assert tail[-1] == "--"
    assert isolation.drop_rights(a_box(Mode.USERNS), isolation=USERNS) == []


def test_only_the_user_has_a_name() -> None:
    assert "hgu2:x:61002:61002::/home/hgu2:/bin/bash\n" in isolation.passwd_text(a_box())
    assert isolation.group_text(a_box()) == "root:x:0:\nhgu2:x:61002:\nnogroup:x:65534:\n"


# --- the filter, computed -------------------------------------------------------------------------------


def verdict(call: int, flags: int = 0, architecture: int = 0xC000003E) -> str:
    """What the filter answers: a BPF machine of the five operations it uses."""
    filter_ = isolation.seccomp_filter("x86_64")
    assert filter_ is not None
    data = struct.pack("=IIQQ", call, architecture, 0, flags)
    lines = list(struct.iter_unpack("=HBBI", filter_))
    value, at = 0, 0
    while True:
        operation, when_true, when_false, k = lines[at]
        at += 1
        if operation == 0x06:
            return {0x7FFF0000: "allowed", 0x00050001: "EPERM", 0x00050026: "ENOSYS"}[k]
        if operation == 0x20:
            value = struct.unpack_from("=I", data, k)[0]
        else:
            holds = {0x15: value == k, 0x35: value >= k, 0x45: bool(value & k)}[operation]
            at += when_true if holds else when_false


VERDICTS = {
    "read": ((0,), "allowed"),
    "fork": ((57,), "allowed"),
    "a thread": ((56, 0x3D0F00), "allowed"),
    "clone with a user namespace": ((56, 0x10000011), "EPERM"),
    "unshare of files": ((272, 0x400), "allowed"),
    "unshare of the user namespace": ((272, 0x10020000), "EPERM"),
    "clone3 hides its flags": ((435, 0), "ENOSYS"),
    "x32": ((0x40000000 + 272, 0x10000000), "ENOSYS"),
    "32 bit": ((310, 0x10000000, 0x40000003), "ENOSYS"),
}


@pytest.mark.parametrize(("call", "answer"), VERDICTS.values(), ids=VERDICTS.keys())
def test_the_filter_answers(call: tuple[int, ...], answer: str) -> None:
    assert verdict(*call) == answer


# --- what works here ------------------------------------------------------------------------------------

ALL = {"bwrap": "/usr/bin/bwrap", "setpriv": "/usr/bin/setpriv", "true": "/bin/true"}
DETECTED = {  # wanted, root?, programs, what fails -> mode and a word of the reason
    "root has all": ("auto", True, ALL, "never", Mode.ROOT, "system uid"),
    "no root": ("auto", False, ALL, "never", Mode.USERNS, "namespaces only"),
    "root in a container that may not unshare": (
        "auto",
        True,
        ALL,
        "setpriv",
        Mode.USERNS,
        "namespaces only",
    ),
    "an old bwrap": ("auto", False, ALL, "--disable-userns", Mode.USERNS, "namespaces only"),
    "no bwrap": ("auto", True, {"true": "/bin/true"}, "never", Mode.SINGLE_USER, "isn't installed"),
    "nothing works": ("auto", False, ALL, "bwrap", Mode.SINGLE_USER, "no permission"),
    "none asked for": ("none", True, ALL, "never", Mode.SINGLE_USER, "asked for"),
    "userns asked for by root": ("userns", True, ALL, "never", Mode.USERNS, "namespaces only"),
}


@pytest.mark.parametrize(
    ("wanted", "is_root", "programs", "fails", "mode", "word"), DETECTED.values(), ids=DETECTED.keys()
)
def test_detection(wanted: str, is_root: bool, programs: dict[str, str], fails: str, mode: Mode, word: str) -> None:
    def run(command: Sequence[str]) -> str:
        return "no permission" if fails in " ".join(command) else ""

    found = isolation.detect(wanted, run=run, which=programs.get, is_root=is_root)
    assert found.mode is mode
    assert word in found.reason
    assert found.can_disable_userns is (mode is Mode.USERNS and fails != "--disable-userns")


@pytest.mark.parametrize(("wanted", "word"), [("root", "isn't root"), ("userns", "odd"), ("docker", "no such")])
def test_a_mode_that_was_asked_for_and_doesnt_work_is_an_error(wanted: str, word: str) -> None:
    with pytest.raises(errors.Unavailable, match=word):
        isolation.detect(wanted, run=lambda _: "odd", which=ALL.get, is_root=False)


def test_a_probe_tells_the_last_line() -> None:
    assert isolation.run_probe(["true"]) == ""
    assert isolation.run_probe(["sh", "-c", "echo a >&2; echo b >&2; exit 3"]) == "b"
    assert isolation.run_probe(["false"]) == "exit status 1"
    assert "No such file" in isolation.run_probe(["/nowhere/at/all"])


def test_a_probe_that_hangs_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "PROBE_SECONDS", 0.05)
    with pytest.raises(errors.Unavailable, match="didn't end"):
        isolation.run_probe(["sleep", "60"])


# --- read-only paths ------------------------------------------------------------------------------------


def test_of_a_checkout_only_the_packages_are_shown() -> None:
    found = isolation.installed_paths()
    for package in ("hubgov", "hubgov_lab", "hubgov_spawner", "jupyterhub"):
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        assert any(Path(spec.origin).is_relative_to(path) for path in found)
    assert not any(Path(__file__).is_relative_to(path) for path in found)
    assert not any(Path(path).is_relative_to("/usr") for path in found)


def test_a_path_that_would_show_something_private_is_refused(tmp_path: Path) -> None:
    state, database = tmp_path / "state", tmp_path / "db" / "hub.sqlite"
    for folder in (state, database.parent):
        folder.mkdir()
    database.touch()
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    private = [str(state), str(database)]
    isolation.refuse_exposure([str(tmp_path / "stat"), str(state / "venv"), str(tmp_path / "db2")], private)
    for path in (str(state), str(database), str(database.parent), str(tmp_path), str(link), "/", "relative"):
        with pytest.raises(errors.Invalid):
            isolation.refuse_exposure([path], private)


ALWAYS_SHOWN = [
    *("/usr/local/hubgov", "/usr", "/bin/state", "/lib/hubgov.sqlite", "/etc/jupyter/jupyterhub.sqlite"),
    *("/etc/ssl/state", "/sys/class/x"),
]


@pytest.mark.parametrize("path", ALWAYS_SHOWN)
def test_nothing_private_lies_where_every_box_looks(path: str, tmp_path: Path) -> None:
    with pytest.raises(errors.Invalid, match="every box sees"):
        isolation.refuse_exposure([], [path])
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(errors.Invalid, match="every box sees"):
        isolation.refuse_exposure([], [str(link)])


def test_other_system_folders_are_no_concern() -> None:
    for folder in ("/var/lib/hubgov", "/etc/jupyterhub/x", "/srv", "/etc/hubgov", "/usrx", "/opt"):
        isolation.refuse_exposure([], [folder])
        with pytest.raises(errors.Invalid):
            isolation.refuse_exposure([folder], [folder])


# --- accounts and homes ---------------------------------------------------------------------------------


def test_the_uid_comes_from_the_number_of_the_user() -> None:
    assert accounts.account_of(7, 61000) == accounts.Account(name="hgu7", uid=61007, gid=61007)
    for user_id, base in ((0, 61000), (7, 0), (4534, 61000), (1, 2**31)):
        with pytest.raises(errors.Invalid):
            accounts.account_of(user_id, base)


CLASHES = {
    "the number is another's": accounts.Account(name="hgu999999", uid=1, gid=1),
    "the name has another number": accounts.Account(name="daemon", uid=61999, gid=61999),
    "the group is another's": accounts.Account(name="hgu999999", uid=1999999, gid=1),
}


@pytest.mark.parametrize("account", CLASHES.values(), ids=CLASHES.keys())
def test_an_account_that_isnt_ours_is_never_used(account: accounts.Account) -> None:
    with pytest.raises(errors.Conflict, match="can't be used"):
        accounts.ensure_system_account(account)


@pytest.mark.boxed
def test_a_missing_account_is_made_once() -> None:
    account = accounts.account_of(987654, 1000000)
    try:
        accounts.ensure_system_account(account)
        accounts.ensure_system_account(account)
        made = pwd.getpwnam(account.name)
        assert (made.pw_uid, made.pw_gid, made.pw_shell) == (account.uid, account.gid, "/usr/sbin/nologin")
    finally:
        subprocess.run(["userdel", account.name], check=True, capture_output=True)


def a_home(state: Path) -> Path:
    return Path(accounts.prepare_home(str(state), "hgu7", uid=os.getuid(), gid=os.getgid()))


def test_a_home_is_made_private_and_found_again(tmp_path: Path) -> None:
    home = a_home(tmp_path)
    assert home == tmp_path / "homes" / "hgu7"
    assert home.stat().st_mode & 0o7777 == 0o700
    (home / "notebook").write_text("kept")
    assert a_home(tmp_path) == home
    assert accounts.has_other_homes(str(tmp_path), "hgu8")
    assert not accounts.has_other_homes(str(tmp_path), "hgu7")
    assert not accounts.has_other_homes(str(tmp_path / "none"), "hgu7")


def test_a_home_that_isnt_as_made_is_refused_and_left_alone(tmp_path: Path) -> None:
    home = a_home(tmp_path)
    home.chmod(0o755)
    with pytest.raises(errors.Conflict, match="mode 0755"):
        a_home(tmp_path)
    assert home.stat().st_mode & 0o777 == 0o755
    with pytest.raises(errors.Conflict, match="owner"):
        accounts.prepare_home(str(tmp_path), "hgu7", uid=os.getuid() + 1, gid=0)
    home.rename(tmp_path / "elsewhere")
    home.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(errors.Conflict, match="not a folder"):
        a_home(tmp_path)


# --- the log --------------------------------------------------------------------------------------------


def a_log(home: Path) -> int:
    return accounts.open_log(str(home), "server.log", uid=os.getuid(), gid=os.getgid())


def test_a_log_starts_anew_and_the_last_one_is_kept(tmp_path: Path) -> None:
    for text in (b"one", b"two", b"three"):
        log = a_log(tmp_path)
        os.write(log, text)
        os.close(log)
    folder = tmp_path / ".hubgov"
    assert {p.name: p.read_text() for p in folder.iterdir()} == {"server.log": "three", "server.log.1": "two"}


def test_a_log_that_grew_is_emptied_under_its_writer(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    os.write(log, b"x" * 100)
    assert not accounts.cap_log(str(tmp_path), "server.log", uid=os.getuid(), limit=100)
    assert accounts.cap_log(str(tmp_path), "server.log", uid=os.getuid(), limit=99)
    os.write(log, b"on")
    os.close(log)
    assert (tmp_path / ".hubgov" / "server.log").read_bytes() == b"on"


def test_no_link_leads_the_log_out_of_the_home(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("keep me")
    home = tmp_path / "home"
    (home / ".hubgov").mkdir(parents=True)
    log = home / ".hubgov" / "server.log"
    log.symlink_to(secret)
    assert not accounts.cap_log(str(home), "server.log", uid=os.getuid(), limit=1)
    os.close(a_log(home))  # the link was moved aside, not followed
    log.unlink()
    log.hardlink_to(secret)
    assert not accounts.cap_log(str(home), "server.log", uid=os.getuid(), limit=1)
    (home / ".hubgov").rename(home / "real")
    (home / ".hubgov").symlink_to(home / "real")
    with pytest.raises(OSError, match="hubgov"):
        a_log(home)
    assert secret.read_text() == "keep me"


def test_each_named_server_has_its_log() -> None:
    assert accounts.log_name("") == "server.log"
    assert accounts.log_name("gpu-2") == "server-gpu-2.log"
    odd = [accounts.log_name(name) for name in ("../../x", "名字", "a b", ".", "x" * 65)]
    assert len(set(odd)) == len(odd), "no two servers write into one log"
    for name in odd:
        assert re.fullmatch(r"server-\.[0-9a-f]{16}\.log", name), name
