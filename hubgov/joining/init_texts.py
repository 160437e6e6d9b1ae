"""What `hubgov init` says."""

from __future__ import annotations

from hubgov.catalogue import Texts
from hubgov.phrases import Phrases

INIT = Texts(
    "joining.INIT",
    {
        "about": (
            "Join a JupyterHub: find its configuration, its groups and the devices, write a policy and a few "
            "lines. Shows what it would write; --apply writes it."
        ),
        "config": "Configuration: {path}",
        "config_new": "Configuration: {path} (new)",
        "hub_running": "A hub runs with it (pid {pid}); it takes the change up at its next start.",
        "hub_other_python": (
            "ATTENTION: that hub runs with {program}; install hubgov there and call this with its Python."
        ),
        "spawner": "Spawner: {name}",
        "advisory": "It makes no boxes: devices are ADVISORY, told to each server and not enforced.",
        "authenticator": "Authenticator: {name}",
        "devices_real": "Devices: {count} real ({why})",
        "devices_simulated": "Devices: 0 real, {count} SIMULATED ({why})",
        "groups": "Groups that become teams: {names}",
        "groups_none": "The hub has no group: put users into the group gpu-users, else nobody can start anything.",
        "groups_left_out": "Left out, since no team can have it: {names}",
        "cullers": "ATTENTION: {names} ends idle servers or kernels too, without a word; turn it off.",
        "policy_new": "Policy: {path} (new)",
        "policy_kept": "Policy: {path} (there already, kept)",
        "state": "Ledger and tokens: {path}",
        "nothing": "All is there already; nothing to write.",
        "not_joined": "{path} has no lines of hubgov; nothing to take away.",
        "dry": "Nothing was written. To write it: {command}",
        "ask": "Write it? [y/N] ",
        "left": "Nothing was written.",
        "written": "Written: {path}",
        "kept": "As it was: {path}",
        "next": "Restart the hub, then: {command}",
        "removed_next": "Restart the hub: it is as it was. The policy and the ledger stay where they are.",
        "unit": "# A unit for systemd; install it yourself: {path}",
    },
)

HELP = Texts(
    "joining.HELP",
    {
        "config": "the hub's configuration; found by itself where it can be",
        "policy": "the policy file; beside the configuration by default",
        "state": "folder of ledger and tokens",
        "apply": "write it",
        "yes": "without asking",
        "remove": "take hubgov's lines out of the configuration",
        "simulated": "simulated devices even where there are real ones",
        "timezone": "time zone of the policy; the machine's own by default",
        "unit": "also print a unit for systemd",
        "json": "print one JSON document",
        "lang": "language of what is printed here",
        "help": "show this help message and exit",
    },
)

MESSAGES: tuple[str, ...] = (
    "no {name} in this folder, in /etc/jupyterhub or of a hub that runs",
    "{path} is a link; it is not written through",
    "{path} is no file",
    "{path} is no folder",
    "{path} belongs to uid {uid}, not to you",
    "{path} is larger than 4 MiB",
    "the marks # >>> hubgov >>> and # <<< hubgov <<< don't pair",
    "{path} was changed meanwhile",
    "{path} calls hubgov.setup(c) already, outside of a block of `hubgov init`",
    "JupyterHub.internal_ssl can't be used with hubgov",
    "the hub could not read the new {name}: {why}",
    "{path} is there already",
)
_MESSAGES = Phrases("joining.MESSAGES", MESSAGES)

HINTS: tuple[str, ...] = (
    "name it: --config FILE; a new one is made with --config ./{name}",
    "name its target: --config {path}",
    "name a file with --config",
    "make it, or name another file with --config",
    "run this as its owner, or name another file",
    "name the hub's configuration with --config",
    "leave one of each, or none",
    "call this again",
    "take that line out, or leave it as it is: the hub is joined",
    "set it to False first",
    "mend the configuration first: the hub can't read it either",
    "nothing was written; add the lines by hand where they fit",
    "name another, or remove it",
)
_HINTS = Phrases("joining.HINTS", HINTS)


def told(message: str, hint: str, lang: str) -> tuple[str, str]:
    """(message, hint) in a language; as they were raised where there are no words for them."""
    return _MESSAGES.say(message, lang) or message, _HINTS.say(hint, lang) or hint
