"""How a demo begins: its inner ports, passwords that are always shown, one start at a time."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import threading
from pathlib import Path

import pytest

from hubgov.cli.local import demo
from hubgov.demo import proxy, settings
from hubgov.demo.runner import Runner
from hubgov.errors import Unavailable


def listen(port: int) -> socket.socket:
    return socket.create_server(("127.0.0.1", port))


def test_as_root_the_inner_ports_are_out_of_the_users_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(settings, "_free", lambda port: port % 2 == 0)
    monkeypatch.setattr(settings, "_first_open_port", lambda: 1024)
    found = settings._inner_ports(3)
    assert len(set(found)) == 3
    assert all(700 <= port < 1024 and port % 2 == 0 for port in found)


@pytest.mark.parametrize(("uid", "first_open"), [(1000, 1024), (0, 0)], ids=["not root", "no port needs a right"])
def test_where_no_port_is_reserved_free_ones_are_taken(
    uid: int, first_open: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(settings, "_first_open_port", lambda: first_open)
    found = settings._inner_ports(3)
    assert len(set(found)) == 3
    for port in found:
        listen(port).close()


class Never(Runner):
    """A demo whose hub doesn't come up."""

    def up(self) -> None:
        raise Unavailable("the hub ended while starting", hint="see hub.log")


class Always(Runner):
    """A demo that is up at once, and stays so."""

    is_up = False

    def up(self) -> None:
        pass

    def running(self) -> bool:
        return self.is_up

    def health(self) -> dict[str, object]:
        return {}


def shown(text: str) -> dict[str, str]:
    return dict(re.findall(r"^  (amy|bo|lena|admin) +(\S+-\d{4}) ", text, re.MULTILINE))


def test_passwords_are_shown_even_when_the_first_start_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--state", str(tmp_path), "--port", str(settings._free_ports(1)[0]), "--no-browser"]
    monkeypatch.setattr(demo, "Runner", Never)
    assert demo.run(arguments) == 1
    assert shown(capsys.readouterr().out) == {}
    monkeypatch.setattr(demo, "Runner", Always)
    assert demo.run(arguments) == 0
    passwords = shown(capsys.readouterr().out)
    kept = settings.load(tmp_path)
    assert kept is not None
    assert set(passwords) == set(settings.PEOPLE)
    assert all(settings.matches(passwords[name], kept.passwords[name]) for name in settings.PEOPLE)
    assert demo.run(arguments) == 0
    assert shown(capsys.readouterr().out) == {}, "and then never again"
    assert settings.load(tmp_path) == kept


@pytest.mark.parametrize(
    ("lang", "unchanged", "changed"),
    [
        ("en", "nothing was changed", "only the passwords are new"),
        ("zh", "未做更改", "仅密码已更换"),
    ],
)
def test_a_call_that_finds_it_running_says_what_it_did(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    lang: str,
    unchanged: str,
    changed: str,
) -> None:
    port = str(settings._free_ports(1)[0])
    arguments = ["--state", str(tmp_path), "--port", port, "--no-browser", "--lang", lang]
    monkeypatch.setattr(demo, "Runner", Always)
    assert demo.run(arguments) == 0
    first = shown(capsys.readouterr().out)
    monkeypatch.setattr(Always, "is_up", True)
    assert demo.run(arguments) == 0
    again = capsys.readouterr().out
    assert unchanged in again
    assert changed not in again
    assert demo.run([*arguments, "--new-passwords"]) == 0
    anew = capsys.readouterr().out
    assert changed in anew
    assert unchanged not in anew
    kept = settings.load(tmp_path)
    assert kept is not None
    for name in settings.PEOPLE:
        assert settings.matches(shown(anew)[name], kept.passwords[name])
        assert not settings.matches(first[name], kept.passwords[name])


def test_a_second_call_waits_for_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    called = threading.Event()

    def folder(name: str) -> Path:
        called.set()
        return Path(name)

    def down(state: Path, lang: str) -> int:
        order.append("second")
        return 0

    monkeypatch.setattr(demo.checks, "folder", folder)
    monkeypatch.setattr(demo, "_down", down)
    with (tmp_path / ".demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = threading.Thread(target=demo.run, args=(["--state", str(tmp_path), "--down"],))
        second.start()
        assert called.wait(10)
        order.append("first")
    second.join(10)
    assert order == ["first", "second"]


def test_a_port_that_somebody_took_meanwhile_is_named_at_once(tmp_path: Path) -> None:
    kept, _ = settings.fresh(
        port=settings._free_ports(1)[0], devices="simulated", clock_rate=1, timezone="UTC", policy_file=""
    )
    runner = Runner(tmp_path, kept)
    with listen(kept.port), pytest.raises(Unavailable, match=f"port {kept.port} .* in use") as raised:
        runner.up()
    assert "ss -ltnp" in raised.value.hint
    assert list((tmp_path / "run").iterdir()) == [], "and nothing was started"


def test_a_proxy_that_ends_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, _ = settings.fresh(
        port=settings._free_ports(1)[0], devices="simulated", clock_rate=1, timezone="UTC", policy_file=""
    )
    runner = Runner(tmp_path, kept)
    started: list[str] = []
    monkeypatch.setattr(proxy, "command", lambda state, settings: proxy.Command(["proxy"], {}))
    monkeypatch.setattr(runner, "_start", lambda name, command, environment: started.append(name))
    (tmp_path / "log" / "proxy.log").write_text("address already in use\n")
    with pytest.raises(Unavailable, match="the proxy ended") as raised:
        runner.up()
    assert started == ["proxy", "hub"]
    assert "address already in use" in raised.value.hint
