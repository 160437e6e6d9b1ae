"""Which verbs there are: one row each, from which help is made without loading any of them.

A row's target is `module:function`. Most are functions with typer's annotations that take the `Screen` from their
context and return the exit code. A `raw` one gets the arguments after the verb as they stand and returns the exit
code: for verbs with a parser of their own. A verb of two words belongs to the group of the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hubgov.catalogue import Texts, translated

_W, _I, _P = "hubgov.cli.verbs.workloads:", "hubgov.cli.verbs.inventory:", "hubgov.cli.verbs.policy:"
_A, _J = "hubgov.cli.verbs.approvals:", "hubgov.cli.verbs.jobs:"
_O, _L = "hubgov.cli.verbs.operations:", "hubgov.cli.local."


class Verb(NamedTuple):
    """A verb: where its function is, what it does, and how it is used."""

    target: str
    help: str
    example: str
    raw: bool = False
    more: str = ""
    """What only its own help says."""
    bare: tuple[str, ...] = ()
    """Options that may also stand without their value."""


VERBS: Mapping[str, Verb] = {
    "list": Verb(
        _W + "list_workloads",
        "List workloads, newest first.",
        "hubgov list --state running --columns id,owner,left",
        more="On a terminal the quota of your team stands below.",
    ),
    "show": Verb(
        _W + "show",
        "Show one workload; --wait until it runs or is over.",
        "hubgov show nb-7 --wait 10m",
        more="With --wait the exit code is 4 when it still waits after that time and 1 when it failed.",
    ),
    "submit": Verb(
        _J + "submit",
        "Take a command in line, to run once its devices are granted.",
        "hubgov submit --queue training --gpus 1 --lease 8h -- python train.py",
        more=(
            "It runs in your home, as you, with its devices and nothing of others'. With --wait the exit code is 1 "
            "when it failed and 4 when it isn't over after that time."
        ),
        bare=("--wait",),
    ),
    "logs": Verb(
        _J + "logs",
        "What a job wrote; -f goes on until it is over.",
        "hubgov logs tr-7 -f",
        more="Kept are the first 16 MiB and the last 48 MiB. On a terminal only colours pass.",
    ),
    "why": Verb(
        _W + "why",
        "Why it waits, for whom and until when; of what runs, whether it is idle.",
        "hubgov why nb-7",
    ),
    "plan": Verb(
        "hubgov.cli.verbs.planning:plan",
        "What would happen to a request now; nothing is submitted.",
        "hubgov plan --queue experiment --gpus 1 --lease 4h",
        more="The exit code is 3 when it would be refused.",
    ),
    "extend": Verb(
        _W + "extend",
        "Ask for more time.",
        'hubgov extend nb-7 --by 2h --reason "evaluation still runs"',
        more="The exit code is 3 when the policy denies it and 6 when somebody has to agree first.",
    ),
    "keep": Verb(
        _W + "keep",
        "Keep an idle session that was asked about.",
        "hubgov keep nb-7",
        more="The exit code is 3 when it was kept as often as its queue allows.",
    ),
    "cancel": Verb(_W + "cancel", "Stop a workload.", "hubgov cancel nb-7 --reason done"),
    "receipt": Verb(
        _W + "receipt",
        "What was saved, lost, used and charged by one that is over.",
        "hubgov receipt nb-7",
    ),
    "extensions": Verb(
        _A + "extensions",
        "Requests for more time of live workloads.",
        "hubgov extensions",
    ),
    "approvals": Verb(
        _A + "approvals",
        "Requests that wait for a decision, and whom they would delay.",
        "hubgov approvals",
    ),
    "approve": Verb(
        _A + "approve",
        "Grant a request for more time, or part of it.",
        "hubgov approve nb-7-x1 --by 1h",
        more="Nobody decides on his own request.",
    ),
    "deny": Verb(
        _A + "deny",
        "Refuse a request for more time.",
        'hubgov deny nb-7-x1 --reason "needed for the release"',
    ),
    "withdraw": Verb(
        _A + "withdraw",
        "Take back your own request for more time.",
        "hubgov withdraw nb-7-x1",
    ),
    "quota": Verb(
        _I + "quota",
        "Quota and use, by team, pool and card type.",
        "hubgov quota --team vision",
    ),
    "devices": Verb(
        _I + "devices",
        "Every device: whose it is, who holds it, until when.",
        "hubgov devices",
    ),
    "pools": Verb(_I + "pools", "Pools, to whom they belong, what is free.", "hubgov pools"),
    "queues": Verb(
        _I + "queues",
        "Queues, their limits, how many wait and run.",
        "hubgov queues",
    ),
    "cost": Verb(
        "hubgov.cli.verbs.costs:cost",
        "GPU-hours and what they cost, of what you may see.",
        "hubgov cost --by team,project --from 2026-11-01",
        more="One's own, of the teams one leads, all for admins. Sessions that run count up to now.",
    ),
    "audit": Verb(
        _O + "audit",
        "Who did what and why.",
        "hubgov audit --workload nb-7",
        more="Newest first. Without --workload for admins only.",
    ),
    "policy init": Verb(
        _P + "init",
        "Write a policy to begin with, from the devices of this machine.",
        "hubgov policy init policy.yaml",
        more="It needs no service. Without FILE it is printed.",
    ),
    "policy check": Verb(
        _P + "check",
        "Check a policy file; needs no service.",
        "hubgov policy check policy.yaml",
        more=(
            "Every problem stands on a line of its own: FILE:LINE: CODE: message. The exit code is 1 when one of "
            "them is an error."
        ),
    ),
    "policy diff": Verb(
        _P + "diff",
        "What a file would change of the policy in force.",
        "hubgov policy diff policy.yaml",
        more="+ is new, - is gone, ~ is changed.",
    ),
    "policy apply": Verb(
        _P + "apply",
        "Put a policy file in force, all of it or nothing.",
        "hubgov policy apply policy.yaml --yes",
        more="On a terminal it shows the difference and asks first, unless --yes is given.",
    ),
    "policy show": Verb(
        _P + "show",
        "The policy in force, as it was written.",
        "hubgov policy show > policy.yaml",
    ),
    "schema": Verb(
        _P + "schema",
        "The JSON Schema of the policy file, for editors.",
        "hubgov schema > policy.schema.json",
        more="It needs no service.",
    ),
    "hold": Verb(
        _O + "hold",
        "Let nothing of a queue start any more.",
        'hubgov hold train --reason "storage is being repaired"',
        more="What runs goes on.",
    ),
    "release": Verb(_O + "release", "Let a held queue go on.", "hubgov release train"),
    "drain": Verb(
        _O + "drain",
        "Let nothing new start on a node; what runs goes on.",
        "hubgov drain gpu-a --reason maintenance",
    ),
    "undrain": Verb(_O + "undrain", "Let a node take work again.", "hubgov undrain gpu-a"),
    "login": Verb(
        "hubgov.cli.verbs.signin:login",
        "Get a token from the hub and keep it for later calls.",
        "hubgov login --url https://hub.example/services/hubgov --user ann",
        more="It is kept in a file that only you can read, and never printed.",
    ),
    "demo": Verb(
        _L + "demo:run",
        "JupyterHub with hubgov on this machine, in one command.",
        "hubgov demo --lang zh",
        raw=True,
    ),
    "init": Verb(
        _L + "init:run",
        "Join a JupyterHub that is there: shows what it would write.",
        "hubgov init --config /etc/jupyterhub/jupyterhub_config.py --apply",
        raw=True,
    ),
    "doctor": Verb(
        _L + "doctor:run",
        "Check an installation: what is wrong, and the command that mends it.",
        "hubgov doctor",
        raw=True,
    ),
    "service": Verb(
        _L + "service:run",
        "Run the service; JupyterHub starts it.",
        "hubgov service --help-all",
        raw=True,
    ),
}

GROUPS = Texts(
    "cli.GROUPS",
    {
        "policy": "Check, compare, apply and show the policy.",
    },
)


def verb_help(name: str, lang: str) -> str:
    """What a verb does, in a language."""
    return translated(f"cli.VERBS.{name}", VERBS[name].help, lang)


def verb_more(name: str, lang: str) -> str:
    """What only a verb's own help says, in a language; empty where that is nothing."""
    return translated(f"cli.VERBS.{name}.more", VERBS[name].more, lang)
