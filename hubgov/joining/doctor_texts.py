"""What `hubgov doctor` says: a sentence for each key of a line."""

from __future__ import annotations

from collections.abc import Mapping

from hubgov.catalogue import Texts

COLOURS = Texts(
    "joining.COLOURS",
    {
        "green": "fine",
        "amber": "attention",
        "red": "broken",
    },
)

ICONS: Mapping[str, str] = {"green": "✓", "amber": "!", "red": "✗"}

LINES = Texts(
    "joining.LINES",
    {
        "about": "Check an installation of hubgov: each line with the command that mends it. It changes nothing.",
        "mend": "    mend: {command}",
        "sum": "{green} fine, {amber} need attention, {red} broken",
        "python": "Python {version}",
        "python_old": "Python {version} is too old; 3.11 or newer is needed",
        "jupyterhub": "JupyterHub {version}, hubgov {hubgov}",
        "jupyterhub_other": "JupyterHub {version}; hubgov needs 6",
        "jupyterhub_none": "JupyterHub isn't installed beside hubgov",
        "config": "{path} joins hubgov",
        "config_bad": "the configuration can't be read ({path}): {why}",
        "config_not_joined": "{path} doesn't call hubgov.setup(c)",
        "hub": "the hub answers on port {port}",
        "hub_silent": "the hub runs (pid {pid}) and doesn't answer",
        "hub_off": "the hub doesn't run",
        "service": "the service answers (pid {pid}, version {version})",
        "service_off": "the service doesn't run; the hub starts it",
        "service_silent": "the hub runs, but no service answers on port {port}",
        "service_version": "the service runs version {running}, installed is {installed}",
        "service_trouble": "the service can't write: {why}",
        "leader": "process {pid} leads, epoch {epoch}",
        "leader_none": "nobody leads: nothing is admitted or ended",
        "port": "port {port} is the service's",
        "port_shared": "port {port} is the hub's own; the service needs another",
        "port_taken": "port {port} is held by another program",
        "ledger": "ledger {url}, at {revision}",
        "ledger_trouble": "the ledger {url} can't be read: {why}",
        "ledger_damaged": "the ledger {url} is damaged: {why}",
        "ledger_none": "there is no ledger yet ({url}); the first start makes it",
        "ledger_behind": "the ledger is at {have}, not at {want}; the next start brings it there",
        "policy": "the policy is valid and enforced, time zone {zone}",
        "policy_bad": "the policy has an error: {why}",
        "policy_none": "there is no policy yet; the first start makes a sample",
        "policy_observe": "the policy only observes: nothing is stopped",
        "devices": "GPUs: {real} real, {simulated} simulated ({why})",
        "devices_simulated": "GPUs: {real} real, {simulated} simulated ({why})",
        "devices_none": "GPUs: none ({why})",
        "devices_hidden": (
            "GPUs: {nodes} device nodes are there, but the driver lists none ({why}); {simulated} simulated stand "
            "in"
        ),
        "isolation_root": "devices are enforced: each user has a uid and a box of his own",
        "isolation_userns": "devices are enforced by user namespaces; all users share one uid",
        "isolation_none": "devices are ADVISORY: no box can be made ({why})",
        "isolation_broken": "no server can start: {why}",
        "isolation_spawner": (
            "devices are ADVISORY: {spawner} makes no boxes; a server is told its devices and could use others"
        ),
        "proxy": "proxy: {name}",
        "proxy_other": "proxy: {name}",
        "proxy_old": "{path} is older than 4 or the package of PyPI: pages that wait would die",
        "proxy_none": "no configurable-http-proxy is on PATH",
        "private_files": "{path} and the token in it are private",
        "folder_none": "{path} isn't there yet; the first start makes it",
        "folder_anothers": "{path} belongs to uid {uid}: not all could be looked at",
        "file_open": "{path} is open to others (mode {mode})",
        "cullers": "{names} ends idle servers or kernels besides hubgov, without warning or receipt",
        "cullers_none": "no other culler is configured",
        "lab": "JupyterLab's extension is there",
        "lab_missing": "JupyterLab's extension is not whole: {what} is missing",
        "clock": "clock and time zone agree ({zone})",
        "clock_behind": "this machine's clock is {seconds} s behind the ledger's newest entry",
        "clock_fast": "policy time runs {rate} times as fast: for demonstrations only",
        "probe_stale": "no fresh reading of the devices of {names}",
        "disk": "{free} MiB free",
        "disk_low": "only {free} MiB free at {path}",
        "disk_full": "the disk of {path} is full ({free} MiB free)",
        "disk_network": "{path} is on a network file system ({kind}); SQLite would lose data there",
        "spawns": "the hub starts {limit} servers at once, {attached} may wait attached",
        "spawns_few": "waiting spawns ({attached}) may take all {limit} starts that the hub allows at once",
        "named": "named servers at the hub: {limit}",
        "named_few": "the hub allows {limit} named servers, the policy up to {most} sessions",
        "groups": "the policy's {count} groups are known, every user is in a team",
        "groups_unknown": "the hub knows no group {names}, which the policy names",
        "groups_without": "{count} users are in no team and can start nothing: {names}",
        "groups_unseen": "the hub's groups can't be read from here",
    },
)
