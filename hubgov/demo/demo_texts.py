"""What `hubgov demo` prints."""

from __future__ import annotations

from hubgov.catalogue import Texts

DEMO = Texts(
    "demo.DEMO",
    {
        "up": "JupyterHub with hubgov is up:  {url}",
        "devices_simulated": "Devices: SIMULATED ({why}). Every page says so.",
        "devices_real": "Devices: real, read through NVML.",
        "isolation": "Isolation: {text}",
        "isolation_root": "each user has a system uid and a bubblewrap box of his own",
        "isolation_userns": "namespaces only: all users share this uid (run as root for a wall of uids)",
        "isolation_none": "NONE, single-user mode: bubblewrap can't be used here ({why}); one user only",
        "fast": "FAST CLOCK: {rate} seconds of policy time pass in one second.",
        "sign_ins": "Sign in as (passwords are shown this once):",
        "sign_ins_known": (
            "Sign in as amy, bo, lena or admin. Their passwords were shown before; --new-passwords makes new ones."
        ),
        "amy": "data scientist in team vision",
        "bo": "data scientist in team nlp",
        "lena": "lead of both teams",
        "admin": "platform admin",
        "try": "Try:",
        "try1": "as amy: choose One GPU, 1 h, Start. The status bar of Lab counts down; click it to extend.",
        "try2": "as amy and bo: take the GPUs of pool dev, then ask for one more: place, reason, when it starts.",
        "try3": "in a terminal:  {hubgov} login --url {url} --user amy;  {hubgov} list;  {hubgov} devices",
        "stop": "Stop all of it:  ./deploy/up --down --state {state}",
        "running": "It was running already; nothing was changed.",
        "running_new_passwords": (
            "It was running already and goes on; only the passwords are new, the old ones no longer work."
        ),
        "down": "Stopped. The data stays in {state}.",
        "own_hub": "From the demo to your own hub or GPU box: hubgov init",
        "not_running": "Nothing of it was running.",
        "starting": "Starting JupyterHub and hubgov …",
    },
)
