"""`hubgov init`: join a hub that is there already; `hubgov policy init`: a policy to begin with."""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from hubgov import texts
from hubgov.cli.cli_texts import text
from hubgov.cli.lazy import VERBS
from hubgov.cli.local.printing import parser, said
from hubgov.cli.screen import Screen, asked_language, language
from hubgov.demo.checks import timezone
from hubgov.errors import HubgovError, Invalid
from hubgov.joining import finding, plan
from hubgov.joining.init_texts import HELP, INIT
from hubgov.joining.plan import Plan, Wish
from hubgov.policy import sample_policy


def run(arguments: Sequence[str]) -> int:
    """The verb's exit status: 0 shown or written, 1 with the reason and what to do."""
    lang = asked_language(arguments) or language(os.environ)
    options = _parser(lang).parse_args(arguments)
    logging.getLogger("hubgov").addHandler(logging.NullHandler())  # what is found is told below
    screen = Screen()
    screen.lang, screen.json = lang, options.json
    try:
        return _remove(options, screen) if options.remove else _init(options, screen)
    except (HubgovError, OSError) as error:
        return said("init", error, screen)


def write_policy(
    file: str | None, groups: Sequence[str] | None, zone: str | None, *, simulated: bool, screen: Screen
) -> int:
    """A policy from the devices found, printed or written to a file that isn't there yet. 0, or 1 with why not."""
    logging.getLogger("hubgov").addHandler(logging.NullHandler())
    try:
        found = finding.devices("simulated" if simulated else "auto")
        made = sample_policy(
            found.found,
            hostname=socket.gethostname(),
            timezone=timezone(zone),
            groups=groups,
            simulated=found.simulated,
        )
        if file is None:
            screen.raw(made)
            return 0
        if os.path.lexists(file):
            raise Invalid(f"{file} is there already", hint="name another, or remove it")
        plan.new_file(Path(file), made)
        screen.done(_say("written", screen.lang, path=file))
        return 0
    except (HubgovError, OSError) as error:
        return said("policy init", error, screen)


def _parser(lang: str) -> argparse.ArgumentParser:
    made = parser("init", texts.word(INIT, "about", lang), f"{text('example', lang)} {VERBS['init'].example}", lang)
    for name in ("config", "policy", "state"):
        made.add_argument(f"--{name}", metavar="DIR" if name == "state" else "FILE", help=_help(name, lang))
    made.add_argument("--timezone", metavar="NAME", help=_help("timezone", lang))
    for name in ("apply", "yes", "remove", "simulated", "unit", "json"):
        made.add_argument(f"--{name}", action="store_true", help=_help(name, lang))
    return made


def _help(name: str, lang: str) -> str:
    return HELP.pick(name, lang)


def _say(key: str, lang: str, **facts: object) -> str:
    return texts.word(INIT, key, lang, **facts)


def _path(given: str | None) -> Path | None:
    return Path(given).expanduser() if given else None


def _init(options: argparse.Namespace, screen: Screen) -> int:
    wish = Wish(
        config=_path(options.config),
        policy=_path(options.policy),
        state=_path(options.state),
        devices="simulated" if options.simulated else "auto",
        timezone=options.timezone,
    )
    made = plan.plan(wish)
    write = options.apply and not made.nothing
    if not screen.json:
        _show(made, screen, options.unit)
    if write and not options.yes and screen.tty and sys.stdin.isatty() and not screen.json:
        write = input(_say("ask", screen.lang)).strip().lower() in ("y", "yes", "是")
        if not write:
            screen.line(_say("left", screen.lang))
            return 1
    kept = plan.carry_out(made) if write else None
    if screen.json:
        screen.document(_document(made, write, kept))
    else:
        _tell_end(made, options, screen, write, kept)
    return 0


def _show(made: Plan, screen: Screen, with_unit: bool) -> None:
    def say(key: str, **facts: object) -> None:
        screen.line(_say(key, screen.lang, **facts))

    seen = made.seen
    say("config" if made.before is not None else "config_new", path=made.config)
    if made.hub is not None:
        say("hub_running", pid=made.hub.pid)
        if plan.interpreter_differs(made):
            say("hub_other_python", program=made.hub.program)
    if made.before is not None:
        say("spawner", name=seen.spawner if seen.spawner_set else "jupyterhub.spawner.LocalProcessSpawner")
        if not (seen.boxed and seen.spawner_set):
            say("advisory")
        say("authenticator", name=seen.authenticator)
    if made.devices is not None:
        kind = "devices_simulated" if made.devices.simulated else "devices_real"
        say(kind, count=len(made.devices.found), why=made.devices.why)
    if made.groups:
        say("groups", names=", ".join(made.groups))
    else:
        say("groups_none")
    if made.left_out:
        say("groups_left_out", names=", ".join(made.left_out))
    if seen.cullers:
        say("cullers", names=", ".join(seen.cullers))
    say("policy_new" if made.policy_text is not None else "policy_kept", path=made.policy)
    say("state", path=made.state)
    screen.line("")
    for line in made.difference():
        screen.line(line)
    if with_unit:
        folder = made.hub.folder if made.hub else made.config.parent
        say("unit", path="/etc/systemd/system/jupyterhub.service")
        screen.raw(finding.unit(made.config, folder, made.hub.program if made.hub else sys.executable))


def _tell_end(made: Plan, options: argparse.Namespace, screen: Screen, written: bool, kept: Path | None) -> None:
    def say(key: str, **facts: object) -> None:
        screen.line(_say(key, screen.lang, **facts))

    config = shlex.quote(str(made.config))
    if made.nothing:
        say("nothing")
    elif not written:
        say("dry", command=f"hubgov init --config {config} --apply")
    else:
        if made.policy_text is not None:
            say("written", path=made.policy)
        say("written", path=made.config)
        if kept is not None:
            say("kept", path=kept)
        say("next", command=f"hubgov doctor --config {config}")


def _document(made: Plan, written: bool, kept: Path | None) -> dict[str, object]:
    return {
        "config": str(made.config),
        "policy": str(made.policy),
        "state_dir": str(made.state),
        "policy_text": made.policy_text,
        "difference": made.difference(),
        "groups": list(made.groups),
        "cullers": list(made.seen.cullers),
        "devices": None if made.devices is None else len(made.devices.found),
        "simulated": None if made.devices is None else made.devices.simulated,
        "nothing_to_do": made.nothing,
        "written": written,
        "backup": str(kept) if kept is not None else None,
    }


def _remove(options: argparse.Namespace, screen: Screen) -> int:
    config = finding.config_file(_path(options.config))
    shown, kept = plan.remove(config, write=options.apply)
    if screen.json:
        screen.document({"config": str(config), "difference": shown, "written": kept is not None})
        return 0
    for line in shown:
        screen.line(line)
    quoted = shlex.quote(str(config))
    if not shown:
        screen.line(_say("not_joined", screen.lang, path=config))
    elif kept is None:
        screen.line(_say("dry", screen.lang, command=f"hubgov init --config {quoted} --remove --apply"))
    else:
        screen.line(_say("written", screen.lang, path=config))
        screen.line(_say("kept", screen.lang, path=kept))
        screen.line(_say("removed_next", screen.lang))
    return 0
