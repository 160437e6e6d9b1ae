"""`hubgov demo`: JupyterHub with hubgov on this machine, in one command; again to bring back what was killed."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fcntl
import os
import shlex
import sys
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hubgov_spawner import isolation

from hubgov import texts
from hubgov.cli.cli_texts import text
from hubgov.cli.help_texts import help_in
from hubgov.cli.lazy import VERBS
from hubgov.cli.screen import asked_language, language
from hubgov.demo import checks, settings
from hubgov.demo.demo_texts import DEMO
from hubgov.demo.runner import Runner
from hubgov.demo.settings import PEOPLE, Settings
from hubgov.errors import HubgovError, Unavailable

FAST_RATE = 60


def run(arguments: Sequence[str]) -> int:
    """The verb's exit status: 0 up (or down), 1 with the reason and what to do."""
    lang = asked_language(arguments) or language(os.environ)
    options = _parser(lang).parse_args(arguments)
    try:
        state = checks.folder(options.state)
        with _alone(state):
            return _down(state, lang) if options.down else _up(state, options, lang)
    except HubgovError as error:
        return _failed(error)
    except OSError as error:
        if checks.is_full(error):
            return _failed(checks.full(options.state))
        return _failed(Unavailable(str(error), hint="choose another folder with --state"))


def _failed(error: HubgovError) -> int:
    print(f"hubgov demo: {error.message}\nhint: {error.hint}", file=sys.stderr)
    return 1


@contextlib.contextmanager
def _alone(state: Path) -> Iterator[None]:
    """Wait for another call with this folder: two first starts at once would make two sets of ports and secrets."""
    with (state / ".demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _parser(lang: str) -> argparse.ArgumentParser:
    about = "JupyterHub with hubgov on this machine, in one command; again to bring back what was killed."
    parser = argparse.ArgumentParser(
        prog="hubgov demo",
        description=help_in(about, lang),
        epilog=f"{text('example', lang)} {VERBS['demo'].example}",
        add_help=False,
    )

    def add(flag: str, help_: str, **how: Any) -> None:
        names = ("-h", flag) if flag == "--help" else (flag,)
        parser.add_argument(*names, help=help_in(help_, lang), **how)

    add("--help", "show this help message and exit", action="help")
    add("--port", "port of the hub's page (8000)", type=_port, metavar="N")
    add("--state", "folder of everything that it keeps", default="~/.local/share/hubgov/demo", metavar="DIR")
    add("--fast", f"let policy time pass {FAST_RATE} times as fast; for a tour", action="store_true")
    add("--lang", "language of what is printed here", choices=texts.LANGUAGES)
    add("--simulated", "simulated devices even where there are real ones", action="store_true")
    about_policy = "policy to begin with, instead of the sample cut out of this box"
    add("--policy", about_policy, default="", metavar="FILE")
    add("--timezone", "time zone of the sample policy; the machine's own by default", metavar="NAME")
    add("--no-browser", "open no browser", action="store_true")
    add("--new-passwords", "new passwords for the four sign-ins", action="store_true")
    add("--down", "stop everything", action="store_true")
    return parser


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text} is not a port, 1 to 65535")
    return int(text)


def _up(state: Path, options: argparse.Namespace, lang: str) -> int:
    known = settings.load(state)
    shown: dict[str, str] = {}
    if known is None:
        timezone, policy = checks.timezone(options.timezone), checks.policy(options.policy)
        checks.room(state)
        known, shown = settings.fresh(
            port=options.port or 8000,
            devices="simulated" if options.simulated else "auto",
            clock_rate=FAST_RATE if options.fast else 1,
            timezone=timezone,
            policy_file=policy,
        )
        # The passwords are kept once they can be shown: a first start that fails must not leave ones nobody knows.
        settings.save(state, dataclasses.replace(known, passwords={}))
    runner = Runner(state, known)
    running = runner.running()
    _refuse_other_settings(known, options)
    if not running:
        print(texts.word(DEMO, "starting", lang), flush=True)
        checks.room(state)
        try:
            runner.up()
        except HubgovError:
            checks.room(state)  # whatever it looked like
            raise
    if not shown and (options.new_passwords or not known.passwords):
        shown = {name: settings.password() for name in PEOPLE}
        hashes = {name: settings.hashed(text) for name, text in shown.items()}
        known = dataclasses.replace(known, passwords=hashes)
    if shown:
        settings.save(state, known)
    _tell(known, runner.health(), shown, running, state, lang)
    url = f"http://127.0.0.1:{known.port}"
    if not options.no_browser and os.environ.get("DISPLAY") and sys.stdout.isatty():
        webbrowser.open(url)
    return 0


def _refuse_other_settings(known: Settings, options: argparse.Namespace) -> None:
    """Unavailable for an option that the kept ledger can't follow any more; ignoring it would be a lie."""
    for option, asked, kept in (
        ("--port", options.port, known.port),
        ("--simulated", "simulated" if options.simulated else None, known.devices),
        ("--fast", FAST_RATE if options.fast else None, known.clock_rate),
        ("--timezone", options.timezone, known.timezone),
        ("--policy", _policy_path(options), known.policy_file),
    ):
        if asked is not None and asked != kept:
            raise Unavailable(
                f"this demo was set up otherwise: {option} came to {kept or 'nothing'} then",
                hint=f"use another folder with --state, or leave {option} out",
            )


def _policy_path(options: argparse.Namespace) -> str | None:
    return str(Path(options.policy).resolve()) if options.policy else None


def _tell(
    known: Settings, health: dict[str, object], shown: dict[str, str], running: bool, state: Path, lang: str
) -> None:
    """What it is, how to get in, what to try."""

    def say(key: str, **facts: object) -> None:
        print(texts.word(DEMO, key, lang, **facts))

    url = f"http://127.0.0.1:{known.port}"
    print()
    say("up", url=url)
    probes = health.get("probes")
    simulated = isinstance(probes, dict) and any(p.get("simulated") for p in probes.values())
    why = next((str(p.get("why")) for p in probes.values()), "") if isinstance(probes, dict) else ""
    say("devices_simulated" if simulated else "devices_real", why=why)
    found = isolation.detect()
    text = texts.word(DEMO, f"isolation_{found.mode.value}", lang, why=found.reason)
    say("isolation", text=text)
    if known.clock_rate > 1:
        say("fast", rate=known.clock_rate)
    print()
    if shown:
        say("sign_ins")
        for name in PEOPLE:
            print(f"  {name:6} {shown[name]:30} {texts.word(DEMO, name, lang)}")
    else:
        say("sign_ins_known")
    print()
    say("try")
    for step in ("try1", "try2", "try3"):
        line = texts.word(DEMO, step, lang, url=url, hubgov=_command())
        print(f"  - {line}")
    print()
    if not running:
        say("stop", state=shlex.quote(str(state)))
    else:
        say("running_new_passwords" if shown else "running")


def _command() -> str:
    """How to call hubgov from where the user is."""
    path = Path(sys.executable).parent / "hubgov"
    try:
        return f"./{path.relative_to(Path.cwd())}"
    except ValueError:
        return str(path)


def _down(state: Path, lang: str) -> int:
    known = settings.load(state)
    if known is None:
        print(texts.word(DEMO, "not_running", lang))
        return 0
    Runner(state, known).down()
    print(texts.word(DEMO, "down", lang, state=state))
    print(texts.word(DEMO, "own_hub", lang))
    return 0
