"""What a user's server sees of the machine: bubblewrap's option list for a box, and which boxes work here.

Construction only: nothing here starts a server. A box has its own processes, hostname, /dev, /tmp, /run and
/dev/shm, the system's /usr read-only, one home, and of the devices those that were granted. It shares the
network with the host; what that leaves open is closed elsewhere (kernels over ipc, the check of the
listener).
"""

from __future__ import annotations

import enum
import importlib.util
import os
import platform
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hubgov import errors


class Mode(enum.Enum):
    """How one hub user's code is kept from another's."""

    ROOT = "root"
    """The hub is root: a box, and a system uid of its own for every hub user."""
    USERNS = "userns"
    """The hub isn't root: a box by user namespaces. One real uid for all: namespaces are the only wall."""
    SINGLE_USER = "none"
    """No box: code runs with all the rights of the hub. Only for a hub with one user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """What was found to work: the mode, the programs it needs (empty without a box) and why it was chosen."""

    mode: Mode
    reason: str
    bwrap: str = ""
    setpriv: str = ""
    can_disable_userns: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One user's box. Paths are the same inside and outside, but for the home."""

    mode: Mode
    uid: int
    gid: int
    account: str
    home: str
    """Folder on the host."""
    home_inside: str
    read_only: tuple[str, ...] = ()
    device_nodes: tuple[str, ...] = ()
    told: str = ""
    """Folder on the host with what the box is told, shown read-only as `TOLD`; empty for none."""
    hostname: str = "box"


TOLD = "/run/hubgov"

# --- options -------------------------------------------------------------------------------------------

_ETC = (
    *(
        "resolv.conf",
        "hosts",
        "nsswitch.conf",
        "services",
        "protocols",
        "localtime",
        "timezone",
        "mime.types",
    ),
    *("ssl", "ca-certificates", "pki", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "fonts"),
    *("OpenCL", "jupyter", "ipython"),
)
_SYS = ("bus", "class", "dev", "devices")  # CUDA and NCCL read the topology there
_SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
_ROOTS = ("/", "/usr", "/dev", "/proc", "/tmp", "/run", "/etc", "/sys")


def passwd_text(box: Box) -> str:
    """The box's /etc/passwd: root, the user and nobody; so names resolve without the host's list of users."""
    return (
        "root:x:0:0:root:/root:/usr/sbin/nologin\n"
        f"{box.account}:x:{box.uid}:{box.gid}::{box.home_inside}:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    )


def group_text(box: Box) -> str:
    """The box's /etc/group, for the gids of `passwd_text`."""
    return f"root:x:0:\n{box.account}:x:{box.gid}:\nnogroup:x:65534:\n"


def texts(box: Box) -> dict[str, str]:
    """The files that are made for the box: path inside -> content."""
    return {"/etc/passwd": passwd_text(box), "/etc/group": group_text(box)}


def options(
    box: Box, *, isolation: Isolation, text_fds: Mapping[str, int], info_fd: int, seccomp_fd: int | None
) -> list[str]:
    """bwrap's options for this box, to be handed over by `--args FD`: argv is readable inside the box.

    `text_fds` holds an open file for each of `texts`. Without --die-with-parent: a server outlives its hub.
    """
    made: set[str] = set(_ROOTS)
    found = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    found += ["--hostname", box.hostname]
    if box.mode is Mode.USERNS:
        found += ["--unshare-user", "--uid", str(box.uid), "--gid", str(box.gid)]
        found += ["--disable-userns"] if isolation.can_disable_userns else []
    found += _system_folders()
    # What bwrap makes belongs to root with mode 0700 unless --perms says else, and then the user can't enter:
    # a Python whose folder it can't read takes the libraries of /usr's Python and fails in odd ways.
    found += ["--perms", "0755", "--dir", "/etc", "--perms", "0755", "--dir", "/sys"]
    for name in _ETC:
        found += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for name in _SYS:
        found += ["--ro-bind-try", f"/sys/{name}", f"/sys/{name}"]
    for path, fd in sorted(text_fds.items()):
        found += ["--perms", "0644", "--ro-bind-data", str(fd), path]
    found += ["--proc", "/proc", "--dev", "/dev"]
    for folder, permissions in (("/dev/shm", "1777"), ("/tmp", "1777"), ("/run", "0755")):
        found += ["--perms", permissions, "--tmpfs", folder]
    for path in outermost(box.read_only):
        found += [*_parents(path, made), "--ro-bind", path, path]
    for node in box.device_nodes:
        found += [*_parents(node, made), "--dev-bind", node, node]
    if box.told:
        found += [*_parents(TOLD, made), "--perms", "0755", "--dir", TOLD, "--ro-bind", box.told, TOLD]
    found += [*_parents(box.home_inside, made), "--bind", box.home, box.home_inside]
    found += ["--chdir", box.home_inside, "--remount-ro", "/", "--info-fd", str(info_fd)]
    if seccomp_fd is not None:
        found += ["--seccomp", str(seccomp_fd)]
    return found


def drop_rights(box: Box, *, isolation: Isolation) -> list[str]:
    """What stands between bwrap and the server: as root setpriv, which gives up root for good; else nothing.

    bwrap started by root leaves its child every capability.
    """
    if box.mode is not Mode.ROOT:
        return []
    numbers = [f"--reuid={box.uid}", f"--regid={box.gid}", "--clear-groups"]
    capabilities = ["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--no-new-privs"]
    return [isolation.setpriv, *numbers, *capabilities, "--"]


def _system_folders() -> list[str]:
    found = ["--ro-bind", "/usr", "/usr"]
    for folder in _SYSTEM_FOLDERS:
        if os.path.islink(folder):
            found += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            found += ["--ro-bind", folder, folder]
    return found


def _parents(path: str, made: set[str]) -> list[str]:
    """Options that make the folders above `path` enterable; `made` notes them, so that each is made once."""
    found = []
    for parent in reversed(PurePosixPath(path).parents):
        if str(parent) not in made:
            made.add(str(parent))
            found += ["--perms", "0755", "--dir", str(parent)]
    return found


# --- what is read-only -----------------------------------------------------------------------------------

_PACKAGES = ("hubgov", "hubgov_lab", "hubgov_spawner")


def installed_paths() -> tuple[str, ...]:
    """Where Python and these packages live: virtual environment, interpreter, packages installed editable.

    Of a checkout only the packages' own folders: not its tests, not its history. Nothing is imported.
    """
    found = [sys.prefix, sys.base_prefix, os.path.realpath(sys.base_prefix)]
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        found += list(spec.submodule_search_locations or ()) if spec else []
    return outermost(path for path in found if not _within(path, "/usr"))


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths without those inside another of them, sorted; a bind of the outer one shows the inner."""
    found: list[str] = []
    for path in sorted(set(paths)):
        if not any(_within(path, other) for other in found):
            found.append(path)
    return tuple(found)


def refuse_exposure(read_only: Iterable[str], private: Iterable[str]) -> None:
    """Refuse what would show something private (tokens, databases, other homes) to every box.

    Invalid for a read-only path that isn't absolute or that holds one of the private paths, and for a private path
    in one of the system's folders, which every box has.
    """
    kept = [(path, os.path.realpath(path)) for path in private]
    for path in read_only:
        if not os.path.isabs(path):
            raise errors.Invalid(f"read-only path {path!r} is not absolute", hint="write the whole path")
        for name, real in kept:
            if _within(real, os.path.realpath(path)):
                raise errors.Invalid(
                    f"read-only path {path!r} holds {name!r}, so every box would see it",
                    hint=f"move {name!r} elsewhere, or name a deeper path",
                )
    for folder in _always_shown():
        for name, real in kept:
            if _within(real, os.path.realpath(folder)):
                raise errors.Invalid(
                    f"{name!r} lies in {folder}, which every box sees",
                    hint="move it elsewhere, for example below /var/lib",
                )


def _always_shown() -> list[str]:
    """The system's folders and files of `options`."""
    return ["/usr", *_SYSTEM_FOLDERS, *(f"/etc/{name}" for name in _ETC), *(f"/sys/{name}" for name in _SYS)]


def _within(path: str, folder: str) -> bool:
    return PurePosixPath(path).is_relative_to(folder)


# --- no user namespaces inside ---------------------------------------------------------------------------

_CLONE_NEWUSER = 0x10000000
_ALLOW, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
_ABI = {  # machine: (audit architecture, clone, unshare, clone3)
    "x86_64": (0xC000003E, 56, 272, 435),
    "aarch64": (0xC00000B7, 220, 97, 435),
}


def seccomp_filter(machine: str = platform.machine()) -> bytes | None:
    """A filter that refuses new user namespaces, as bwrap takes it; None for a machine it isn't written for.

    They are the usual way to reach kernel code that only root could reach otherwise. bwrap's own switch for
    it needs a user namespace, which a box made by root hasn't. clone3 keeps its flags in memory, where a
    filter can't look: it is answered with ENOSYS, and the C library then takes clone. Foreign calling
    conventions (32 bit, x32) have other numbers and get ENOSYS altogether.
    """
    if machine not in _ABI:
        return None
    architecture, clone, unshare, clone3 = _ABI[machine]
    load, equal, at_least, bits, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    lines = [  # operation, skip when true, skip when false, value
        (load, 0, 0, 4),  # 0: architecture
        (equal, 0, 8, architecture),  # 1: else 10
        (load, 0, 0, 0),  # 2: number of the call
        (at_least, 6, 0, 0x40000000),  # 3: x32: 10
        (equal, 5, 0, clone3),  # 4: 10
        (equal, 1, 0, unshare),  # 5: 7
        (equal, 0, 2, clone),  # 6: else 9
        (load, 0, 0, 16),  # 7: lower half of the first argument: the flags
        (bits, 2, 0, _CLONE_NEWUSER),  # 8: 11
        (answer, 0, 0, _ALLOW),  # 9
        (answer, 0, 0, _ENOSYS),  # 10
        (answer, 0, 0, _EPERM),  # 11
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


# --- what works here -------------------------------------------------------------------------------------

PROBE_SECONDS = 10.0

Run = Callable[[Sequence[str]], str]
"""Runs a command; empty when it went well, else what it said."""


def run_probe(command: Sequence[str]) -> str:
    """Run one probe of `detect`: empty when it went well, else the last line it wrote.

    Unavailable when it doesn't end: that tells of a busy machine, and must not pass for "no box possible".
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False)
    except OSError as error:
        return str(error)
    except subprocess.TimeoutExpired as error:
        raise errors.Unavailable("the probe of bubblewrap didn't end", hint="try again") from error
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]


def detect(
    wanted: str = "auto",
    *,
    run: Run = run_probe,
    which: Callable[[str], str | None] = shutil.which,
    is_root: bool | None = None,
) -> Isolation:
    """Which mode works here: the best one for `auto`, else the one named; Unavailable when that doesn't.

    Tried by making a box, not by reading settings: containers, AppArmor and sysctls forbid it in many ways.
    """
    if wanted == "none":
        return Isolation(mode=Mode.SINGLE_USER, reason="asked for by the configuration")
    is_root = os.getuid() == 0 if is_root is None else is_root
    reasons = []
    for mode in (Mode.ROOT, Mode.USERNS):
        if wanted in ("auto", mode.value):
            found = _try(mode, run=run, which=which, is_root=is_root)
            if isinstance(found, Isolation):
                return found
            reasons.append(f"{mode.value}: {found}")
    reason = "; ".join(reasons)
    if wanted == "auto":
        return Isolation(mode=Mode.SINGLE_USER, reason=f"no box can be made ({reason})")
    raise errors.Unavailable(
        f"the isolation {wanted!r} doesn't work on this machine: {reason or 'there is no such mode'}",
        hint="install bubblewrap and util-linux, or choose another isolation: auto, root, userns, none",
    )


def _try(mode: Mode, *, run: Run, which: Callable[[str], str | None], is_root: bool) -> Isolation | str:
    """The mode if it works, else why not."""
    bwrap, setpriv = which("bwrap"), which("setpriv")
    if not bwrap:
        return "bubblewrap (bwrap) isn't installed"
    view = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--ro-bind", "/", "/", "--proc", "/proc"]
    true = str(Path(which("true") or "/bin/true"))
    if mode is Mode.ROOT:
        if not is_root:
            return "the hub isn't root"
        if not setpriv:
            return "setpriv (util-linux) isn't installed"
        found = Isolation(mode=mode, reason="a box and a system uid for each user", bwrap=bwrap, setpriv=setpriv)
        nobody = Box(mode=mode, uid=65534, gid=65534, account="nobody", home="/", home_inside="/")
        return run([bwrap, *view, "--", *drop_rights(nobody, isolation=found), true]) or found
    mapped = [bwrap, "--unshare-user", "--uid", "61000", "--gid", "61000"]
    reason = "a box by user namespaces, one real uid for all users: separated by namespaces only"
    if not run([*mapped, "--disable-userns", *view, "--", true]):
        return Isolation(mode=mode, reason=reason, bwrap=bwrap, can_disable_userns=True)
    return run([*mapped, *view, "--", true]) or Isolation(mode=mode, reason=reason, bwrap=bwrap)
