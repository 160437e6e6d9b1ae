"""A JupyterHub spawner that runs each user's server in a box of its own, on the hub's machine.

Three modes (`isolation.Mode`): root, user namespaces, no box. What must be right in each: the address given
to the hub is that of our own server; a server outlives a killed hub and is found again; and after stop()
nothing of it is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import re
import stat
import sys
import uuid
from typing import Any

from jupyterhub.spawner import Spawner, SpawnException
from jupyterhub.utils import fmt_ip_url
from traitlets import Float, List, Unicode, default

from hubgov import errors, processes
from hubgov.wire import ProcessRef
from hubgov_spawner import accounts, fork, isolation, portguard
from hubgov_spawner.guarding import Guarding
from hubgov_spawner.housing import Housing
from hubgov_spawner.isolation import Box, Isolation, Mode
from hubgov_spawner.portguard import Held
from hubgov_spawner.quarters import Quarters

_PASSED_ON = re.compile(
    r"JUPYTERHUB_\w+|JPY_API_TOKEN|JUPYTER_\w+|HUBGOV_\w+|\w+_VISIBLE_DEVICES|(MEM|CPU)_(LIMIT|GUARANTEE)"
)
_IPC_FOLDER_LIMIT = 50  # a kernel's socket adds up to 52 characters; the kernel takes 107 in all
_UNWIND_SECONDS = 0.5  # the hub gives a cancelled start() one second before it acts on its own

_detect = functools.cache(isolation.detect)


class BoxedSpawner(Housing, Guarding, Spawner):  # type: ignore[misc]
    """Starts the single-user server in a box; see `isolation` for what that holds."""

    read_only_paths = List(
        Unicode(),
        help="""Further folders of the host that every box may read, for example /opt/cuda or /data/shared.

        /usr, the Python that runs the hub and its environment are there anyway. Never a folder that holds
        the state folder or a database of the hub or of hubgov: that is refused.
        """,
    ).tag(config=True)

    private_paths = List(
        Unicode(),
        help="""Files and folders of the host that no box may show, besides the state folder and the hub's SQLite
        file. A start whose box would show one of them is refused.
        """,
    ).tag(config=True)

    term_timeout = Float(
        10.0,
        min=0.0,
        help="""Seconds a server has after SIGTERM to end its kernels and itself; then the box is killed.""",
    ).tag(config=True)

    kill_timeout = Float(
        5.0,
        min=0.0,
        help="""Seconds after SIGKILL until stop() gives up and fails, because processes are still there.""",
    ).tag(config=True)

    box_init: ProcessRef | None = None
    """Pid 1 of the box; None without a box."""
    box_mark: str = ""
    """HUBGOV_ALLOCATION_ID in the environment of all that the server starts."""
    _starting = False

    # --- for others to extend ---

    def box_device_nodes(self) -> tuple[str, ...]:
        """The device nodes, besides null, random, tty and their like, that the box shows: none."""
        return ()

    async def processes_started(self, main: ProcessRef, init: ProcessRef | None) -> None:
        """Called when the server runs and the hub's database knows it, before it listens. Does nothing."""

    # --- what the service asks for ---

    async def quarters(self) -> Quarters:
        """Account, home and box that jobs of this user get: the server's own, without its devices."""
        found = await asyncio.to_thread(_detect, self.isolation)
        account, home = await self._account_and_home(found)
        inside = self._home_inside(found, account, home)
        box = self._box(found, account, home, inside, ()) if found.mode is not Mode.SINGLE_USER else None
        return Quarters(account=account.name, home=home, home_inside=inside, isolation=found, box=box)

    # --- what the hub asks for ---

    @default("cmd")
    def _default_cmd(self) -> list[str]:
        return [os.path.join(os.path.dirname(sys.executable), "jupyterhub-singleuser")]

    @default("env_keep")
    def _default_env_keep(self) -> list[str]:
        return []  # nothing of the hub's own environment, unless the site names it

    async def start(self) -> str:
        """Start the server and wait until it listens; its URL. SpawnException when it can't or ends."""
        self._starting, up = True, False
        try:
            url = await self._start()
            up = True
            return url
        except (errors.HubgovError, OSError) as error:
            self.log.error("Server of %s: %s", self._log_name, error)
            raise _for_the_hub(error) from error
        finally:
            self._starting = False
            if not up:  # also when cancelled: the hub doesn't call stop() after a failed start()
                await self._end(_UNWIND_SECONDS)
                await self._drop_port()

    async def poll(self) -> int | None:
        """None while the server runs, else its status (0 if unknown); what it left is killed then."""
        if self._starting:
            return None
        if self.box_main is None:
            return 0
        if processes.is_alive(self.box_main):
            self._cap_log()
            return None
        self._signal(kill=True)
        return self._exit_status()

    async def stop(self, now: bool = False) -> None:
        """End the server, its kernels and all they left; Unavailable if something stays even so."""
        if not now and self._signal(kill=False) and self.box_main:
            await processes.ends_within(self.box_main, self.term_timeout)
        if not await self._end(self.kill_timeout):
            raise errors.Unavailable(
                f"processes of {self._log_name} are still there {self.kill_timeout:g} s after SIGKILL",
                code="box_alive",
                hint="the kernel holds them, often in a driver: look at their state D in ps",
            )

    async def get_url(self) -> str:
        """Where the server is; after a restart of the hub also that of one which was still starting."""
        url: str = await super().get_url()
        if not self.port or self.box_main is None:
            return url
        try:
            with self._port_again() as held:
                await asyncio.wait_for(self._until_listening(self.box_main, held), self.http_timeout)
        except TimeoutError:
            return url  # nobody listens: the hub sees that itself
        except errors.HubgovError as error:
            self.log.error("Server of %s isn't where it should be, ending it: %s", self._log_name, error)
            await self._end(self.kill_timeout)
            return url
        return f"{self._address()}{self.server.base_url}"

    def get_state(self) -> dict[str, Any]:
        """What a restarted hub needs to find the box again."""
        state: dict[str, Any] = super().get_state()
        if self.box_main:
            state["main"] = [self.box_main.pid, self.box_main.start_ticks]
            state["init"] = [self.box_init.pid, self.box_init.start_ticks] if self.box_init else None
            state |= {"boot": self.box_main.boot_id, "mark": self.box_mark, "port": self.port}
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up what get_state gave."""
        super().load_state(state)
        if not state.get("main"):
            return

        def ref(pair: list[int]) -> ProcessRef:
            return ProcessRef(pid=pair[0], start_ticks=pair[1], boot_id=state["boot"])

        self.box_main = ref(state["main"])
        self.box_init = ref(state["init"]) if state["init"] else None
        self.box_mark, self.port = state["mark"], state["port"]

    def clear_state(self) -> None:
        """Forget the server that ended."""
        super().clear_state()
        self.box_init = self.box_main = self._child = None
        self.box_mark = ""

    async def move_certs(self, paths: dict[str, str]) -> dict[str, str]:
        """Refuse: the hub's certificates lie where no box can read them."""
        raise SpawnException(
            "JupyterHub.internal_ssl can't be used with boxed servers", reason="internal_ssl", status_code=500
        )

    # --- starting ---

    async def _start(self) -> str:
        if not processes.is_address(self.ip or "0.0.0.0"):
            raise errors.Invalid(f"Spawner.ip is {self.ip!r}, which is no IP address", hint="use 127.0.0.1")
        found = await asyncio.to_thread(_detect, self.isolation)
        if found.mode is Mode.SINGLE_USER:
            self.log.warning("Server of %s runs without a box: %s", self._log_name, found.reason)
        account, home = await self._account_and_home(found)
        with await self._hold_port() as held:
            log = self._open_log(home)
            try:
                command = self._command(found, account, home, log)
                await self._fork(command)
            finally:
                os.close(log)
            assert self.box_main is not None  # set by _fork
            self.box_keeper = portguard.keep(held, self.box_main, self.state_dir)
            # The hub itself writes the state only after start(): killed before, it would lose the box.
            self.orm_spawner.state = self.get_state()
            self.user.db.commit()
            await self.processes_started(self.box_main, self.box_init)
            await self._until_listening(self.box_main, held)
        return self._address()

    async def _fork(self, command: fork.Command) -> None:
        """Start the processes and note them, also when cancelled meanwhile: else nobody could end them."""
        forked = asyncio.ensure_future(asyncio.to_thread(fork.start, command))
        try:
            await asyncio.shield(forked)
        finally:
            await asyncio.wait([forked])
            if not forked.exception():
                started = forked.result()
                self._child, self.box_init, self.box_main = started.child, started.init, started.main

    def _command(self, found: Isolation, account: accounts.Account, home: str, log: int) -> fork.Command:
        boxed = found.mode is not Mode.SINGLE_USER
        inside = self._home_inside(found, account, home)
        runtime = "/tmp/jupyter-runtime" if boxed else f"{home}/.hubgov/run"
        arguments = list(self.cmd)
        if len(runtime) <= _IPC_FOLDER_LIMIT:
            # Over TCP any local user can subscribe to a kernel's output: the key signs, it doesn't hide.
            arguments.append("--KernelManager.transport=ipc")
        if not boxed and os.getuid() == 0:
            arguments.append("--allow-root")
        environment = self._environment(account, inside, runtime)
        self.box_mark = environment[processes.ALLOCATION_VARIABLE]
        return fork.Command(
            argv=(*arguments, *self.get_args()),
            environment=environment,
            box=self._box(found, account, home, inside, self.box_device_nodes()) if boxed else None,
            isolation=found,
            home=home,
            log=log,
        )

    def _environment(self, account: accounts.Account, home: str, runtime: str) -> dict[str, str]:
        """The whole environment of the server: what is on the list, what the site names, and who one is."""
        named = {*self.environment, *self.env_keep}
        given = {name: str(value) for name, value in self.get_env().items()}
        found = {k: v for k, v in given.items() if k in named or _PASSED_ON.fullmatch(k)}
        folders = (os.path.dirname(self.cmd[0]), "/usr/local/bin", "/usr/bin", "/bin")
        ours = {"HOME": home, "USER": account.name, "LOGNAME": account.name, "JUPYTER_RUNTIME_DIR": runtime}
        weak = {"PATH": ":".join(filter(None, folders)), "SHELL": "/bin/bash", "LANG": "C.UTF-8"}
        weak["CUDA_VISIBLE_DEVICES"] = ""
        # Without an allocation the server still needs a mark, by which its stragglers are found.
        weak[processes.ALLOCATION_VARIABLE] = f"none-{uuid.uuid4().hex}"
        if "HUBGOV_WORKLOAD_ID" in found:
            # Where the server's extension writes the end of the lease, and anew when it moves.
            ours["HUBGOV_DEADLINE_FILE"] = f"{home}/.hubgov/deadline"
        return weak | found | ours

    def _home_inside(self, found: Isolation, account: accounts.Account, home: str) -> str:
        """Where the home is for who lives in it."""
        return home if found.mode is Mode.SINGLE_USER else f"/home/{account.name}"

    def _box(
        self, found: Isolation, account: accounts.Account, home: str, inside: str, nodes: tuple[str, ...]
    ) -> Box:
        for node in nodes:
            if not (os.path.lexists(node) and stat.S_ISCHR(os.lstat(node).st_mode)):
                raise errors.Unavailable(f"the device node {node} isn't there", code="device")
        read_only = isolation.outermost([*isolation.installed_paths(), *self.read_only_paths])
        isolation.refuse_exposure(read_only, [self.state_dir, *self.private_paths, *self.hub_files()])
        return Box(
            mode=found.mode,
            uid=account.uid,
            gid=account.gid,
            account=account.name,
            home=home,
            home_inside=inside,
            read_only=read_only,
            device_nodes=nodes,
            # The host's own name, as /etc/hosts knows it: torch.distributed and MPI look their name up.
            hostname=os.uname().nodename,
        )

    async def _until_listening(self, main: ProcessRef, held: Held) -> None:
        """Return when the server listens and nobody else can; raise when it ended, or another has its port.

        The port is chosen here and listened on seconds later: until then any local user may do so, and the hub
        itself would send this user's browser there.
        """
        with processes.ending(main) as ended:
            while not ended.is_set():
                if listener := processes.listener_of(self.ip or "0.0.0.0", self.port):
                    if processes.owns_listener(main, listener[1]):
                        if self._shut:
                            return
                        self._shut_port(held)
                        continue  # and look again: only from now on it stays so
                    if processes.is_alive(main):
                        raise errors.Unavailable("the server's port is held by another process", code="port")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), 0.1)  # the kernel tells of no new listener
        raise errors.Unavailable(
            "the server ended while it was starting",
            code="exited",
            hint=f"its log is ~/.hubgov/{accounts.log_name(self.name)} in the home",
        )

    def _address(self) -> str:
        ip = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.ip, self.ip)
        return f"http://{fmt_ip_url(ip)}:{self.port}"

    # --- ending ---

    def _signal(self, *, kill: bool) -> bool:
        return processes.signal_box(self.box_main, self.box_init, kill=kill, allocation_id=self.box_mark)

    async def _end(self, timeout_seconds: float) -> bool:
        """Kill what is left and wait for its end, at most so long; is it gone?"""
        now = asyncio.get_running_loop().time
        deadline = now() + timeout_seconds
        while left := processes.box_processes(self.box_main, self.box_init, self.box_mark):
            self._signal(kill=True)
            for ref in left:
                if not await processes.ends_within(ref, deadline - now()):
                    self.log.error("Server of %s: process %d doesn't end", self._log_name, ref.pid)
                    return False
        await self._outer_ends()
        return True

    def _exit_status(self) -> int:
        status = self._child.poll() if self._child else None
        return status or 0


def _for_the_hub(error: errors.HubgovError | OSError) -> SpawnException:
    """The same in the hub's words. Other exceptions count towards its failure limit, which ends it."""
    if isinstance(error, OSError):
        return SpawnException(f"The server can't be started: {error}", reason="system", status_code=500)
    text = ". ".join(part[0].upper() + part[1:] for part in (error.message, error.hint) if part)
    status = 409 if isinstance(error, errors.Conflict) else 500
    return SpawnException(text, reason=error.code, status_code=status)
