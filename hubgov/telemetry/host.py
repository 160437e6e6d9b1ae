"""What do the processes of a session use? CPU, reads and writes of whole process trees, out of /proc.

Nothing is asked of the session itself: its kernels neither see nor move by it. A number that can't be read is
None with the reason, never 0. Reads all of /proc: not for an event loop. Linux only.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hubgov.core.sensing import KernelUse, TreeUse
from hubgov.processes import ALLOCATION_VARIABLE

_TICKS = os.sysconf("SC_CLK_TCK")
_KERNEL = re.compile(rb"kernel-([0-9a-zA-Z-]{1,64})\.json")
"""How a kernel is told from other processes: by the connection file that its server names it by."""
_UNREADABLE = (FileNotFoundError, ProcessLookupError, PermissionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """Where the processes of a session begin: its main process, pid 1 of its box if it has one, and the mark that
    all carry. `server`: the main process only shows the session, and its own use is none of it."""

    main: int
    init: int | None
    mark: str
    server: bool


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    session: int
    terminal: int
    zombie: bool
    """Ended, and its parent hasn't heard yet: its CPU is nowhere else so far."""
    ticks: int
    """CPU of its own."""
    reaped_ticks: int
    """CPU of its children that ended: so the sum of a tree stays true when one of it ends."""


@dataclass(slots=True)
class _Totals:
    """Sums of a tree at one look; None for what could not be read."""

    at: float
    cpu_ticks: int
    io_bytes: int | None
    kernels: dict[str, tuple[int, int | None]]


@dataclass(slots=True)
class HostMeter:
    """Measures what process trees use between two looks; the first look of a tree tells no use yet."""

    _before: dict[str, _Totals] = field(default_factory=dict)

    def measure(self, roots: Mapping[str, Root], at: float) -> dict[str, TreeUse]:
        """The use of each tree since the last look, by the roots' keys; trees that are gone are left out.

        `at` is in seconds of a steady clock.
        """
        table = _table()
        children: dict[int, list[int]] = defaultdict(list)
        for process in table.values():
            children[process.parent].append(process.pid)
        marked = _marked(table, {root.mark for root in roots.values() if root.init is None})
        found, totals = {}, {}
        for key, root in roots.items():
            if root.main not in table or table[root.main].zombie:
                continue
            tree = _Tree(root, table, children, marked.get(root.mark, ()))
            totals[key] = tree.totals(at)
            found[key] = tree.use(self._before.get(key), totals[key])
        self._before = totals
        return found


class _Tree:
    """One session's processes, sorted by what they are."""

    def __init__(
        self, root: Root, table: Mapping[int, _Process], children: Mapping[int, list[int]], marked: Iterable[int]
    ) -> None:
        self._root, self._table = root, table
        first = root.init if root.init is not None and root.init in table else root.main
        self._pids = _below([first, *marked], children)
        infrastructure = {first, root.main} if root.server else set()
        infrastructure |= _between(first, root.main, table)
        self._shown = [table[pid] for pid in self._pids if pid in infrastructure]
        self._working = [table[pid] for pid in self._pids if pid in table and pid not in infrastructure]
        names = {process.pid: _kernel_of(process.pid) for process in self._working}
        self._kernels = {pid: name for pid, name in names.items() if name is not None}
        self._kernels = {pid: name for pid, name in self._kernels.items() if not self._is_below_kernel(pid)}
        self._shells = {p.pid for p in self._working if p.terminal and p.session == p.pid}

    def totals(self, at: float) -> _Totals:
        """The sums until now."""
        cpu = sum(p.ticks + p.reaped_ticks for p in self._working) + sum(p.reaped_ticks for p in self._shown)
        kernels = {}
        for pid, name in self._kernels.items():
            own = [p for p in self._working if self._kernel_above(p.pid) == pid]
            kernels[name] = (sum(p.ticks + p.reaped_ticks for p in own), _io(own))
        return _Totals(at, cpu, _io(self._working), kernels)

    def use(self, before: _Totals | None, now: _Totals) -> TreeUse:
        """What was used since `before`."""
        lives = [p for p in self._working if not p.zombie and p.pid not in self._shells]
        jobs = {p.pid for p in lives if self._above(p.pid) & self._shells}
        kernels = set(self._kernels)
        started = [p for p in lives if p.pid not in kernels | jobs and self._is_child(p, kernels)]
        return TreeUse(
            cpu_milli=_cpu(before.cpu_ticks, now.cpu_ticks, before.at, now.at) if before else None,
            io_bytes_per_minute=_rate(before.io_bytes, now.io_bytes, before.at, now.at) if before else None,
            children=len(started),
            jobs=len(jobs),
            shells=len(self._shells),
            kernels={name: self._kernel_use(pid, name, before, now) for pid, name in self._kernels.items()},
            pids=frozenset(self._pids),
            tops=self._tops(),
            because="" if before is None or now.io_bytes is not None else "not readable",
        )

    def _tops(self) -> tuple[int, ...]:
        working = {p.pid for p in self._working}
        return tuple(sorted(p.pid for p in self._working if p.parent not in working and not p.zombie))

    def _kernel_use(self, pid: int, name: str, before: _Totals | None, now: _Totals) -> KernelUse:
        pids = frozenset(p.pid for p in self._working if not p.zombie and self._kernel_above(p.pid) == pid)
        was = before.kernels.get(name) if before else None
        cpu, io = now.kernels[name]
        return KernelUse(
            cpu_milli=_cpu(was[0], cpu, before.at, now.at) if before and was else None,
            io_bytes_per_minute=_rate(was[1], io, before.at, now.at) if before and was else None,
            children=len(pids - {pid} - self._shells),
            pids=pids,
        )

    def _is_child(self, process: _Process, kernels: set[int]) -> bool:
        """Started by a kernel, or left over by what started it. What the server itself runs beside them (language
        servers, a proxied editor) works when it uses the machine, and not by being there."""
        above = self._above(process.pid)
        if not self._root.server:
            return process.pid != self._root.main
        return bool(above & kernels) or self._root.main not in above

    def _above(self, pid: int) -> set[int]:
        found: set[int] = set()
        while (process := self._table.get(pid)) is not None and process.parent in self._table:
            pid = process.parent
            if pid in found:
                break
            found.add(pid)
        return found

    def _is_below_kernel(self, pid: int) -> bool:
        """A kernel's children may name its connection file too: they are children."""
        return bool(self._above(pid) & set(self._kernels))

    def _kernel_above(self, pid: int) -> int | None:
        if pid in self._kernels:
            return pid
        return next((above for above in self._above(pid) if above in self._kernels), None)


def _cpu(before: int, now: int, then: float, at: float) -> int | None:
    """Thousandths of a core; not known when the sum went down: something left the tree with its own."""
    if now < before or at <= then:
        return None
    return round(1000 * (now - before) / _TICKS / (at - then))


def _rate(before: int | None, now: int | None, then: float, at: float) -> int | None:
    """Bytes a minute. What a process that ended had read and written is gone with it: then it counts as none."""
    if before is None or now is None or at <= then:
        return None
    return round(60 * max(0, now - before) / (at - then))


def _io(processes: Iterable[_Process]) -> int | None:
    """Bytes that these processes read and wrote in all; None when one of them can't be looked at."""
    total = 0
    for process in processes:
        if process.zombie:
            continue
        try:
            text = Path(f"/proc/{process.pid}/io").read_text(encoding="ascii")
        except PermissionError:
            return None
        except (FileNotFoundError, ProcessLookupError):
            continue
        fields = dict(line.split(": ") for line in text.splitlines())
        total += int(fields["rchar"]) + int(fields["wchar"])
    return total


def _table() -> dict[int, _Process]:
    """Every process, by its pid."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        with contextlib.suppress(*_UNREADABLE):
            text = Path(f"/proc/{name}/stat").read_text(encoding="utf-8", errors="replace")
            # The command's name may hold blanks and brackets: the fields are counted from its last bracket.
            fields = text.rpartition(")")[2].split()
            found[int(name)] = _process(int(name), fields)
    return found


def _process(pid: int, fields: list[str]) -> _Process:
    return _Process(
        pid=pid,
        parent=int(fields[1]),
        session=int(fields[3]),
        terminal=int(fields[4]),
        zombie=fields[0] in "ZX",
        ticks=int(fields[11]) + int(fields[12]),
        reaped_ticks=int(fields[13]) + int(fields[14]),
    )


def _below(roots: Iterable[int], children: Mapping[int, list[int]]) -> list[int]:
    """The pids of the roots and of all that descend from them, each once."""
    todo, seen = list(roots), dict.fromkeys(roots)
    while todo:
        for child in children.get(todo.pop(), ()):
            if child not in seen:
                seen[child] = None
                todo.append(child)
    return list(seen)


def _between(first: int, main: int, table: Mapping[int, _Process]) -> set[int]:
    """The processes from the top of a tree down to its main one: what makes the box."""
    found, pid = set(), main
    while pid != first and (process := table.get(pid)) is not None:
        pid = process.parent
        found.add(pid)
    return found if pid == first else set()


def _kernel_of(pid: int) -> str | None:
    """The id of the kernel that this process is; None for another one."""
    with contextlib.suppress(*_UNREADABLE):
        if match := _KERNEL.search(Path(f"/proc/{pid}/cmdline").read_bytes()):
            return match[1].decode()
    return None


def _marked(table: Mapping[int, _Process], marks: set[str]) -> dict[str, list[int]]:
    """The processes that carry each mark: what left its parent and has no box to be found by."""
    found: dict[str, list[int]] = defaultdict(list)
    if not marks:
        return found
    wanted = {f"{ALLOCATION_VARIABLE}={mark}".encode(): mark for mark in marks}
    for pid in table:
        with contextlib.suppress(*_UNREADABLE):
            for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                if entry in wanted:
                    found[wanted[entry]].append(pid)
    return found
