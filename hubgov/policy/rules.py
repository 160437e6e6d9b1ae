"""Do the values of a policy agree with each other: leases, graces, devices, bounds?"""

from __future__ import annotations

import zoneinfo
from itertools import pairwise

from hubgov.core.policy import Kind, PriorityClass
from hubgov.wire import MAX_NAME, format_span

from .problems import Findings, Path, path_text, shown
from .shapes import Document, NodeShape, QueueShape

MAX_DEVICES = 10**6
MAX_NODES = 10**5


def check(document: Document, found: Findings) -> None:
    """Report every value that its neighbours contradict."""
    _timezone(document, found)
    _currency(document, found)
    for name, flavor in document.flavors.items():
        if flavor.fit_guard and flavor.fit_guard.min_memory > flavor.memory:
            message = f"the fit guard of {name} asks for more memory than the card has: nothing would fit it"
            hint = "use less than memory"
            found.error("range", ("flavors", name, "fit_guard", "min_memory"), message, hint)
    _nodes(document, found)
    for name, queue in document.queues.items():
        _lease(("queues", name), queue, found)
        _extension(("queues", name), queue, found)
        _times(("queues", name), queue, found)
        _kinds(("queues", name), queue, found)
    _profiles(document, found)


def _timezone(document: Document, found: Findings) -> None:
    name = document.timezone
    try:
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        hint = found.near(name, zoneinfo.available_timezones()) or "write it as Asia/Shanghai"
        found.error("bad_timezone", ("timezone",), f"there is no time zone {shown(name)}", hint)


def _currency(document: Document, found: Findings) -> None:
    name = document.currency
    if not (len(name) == 3 and name.isascii() and name.isalpha() and name.isupper()):
        hint = "write three capital letters, such as CNY"
        found.error("bad_value", ("currency",), f"{shown(name)} is not a currency code", hint)


def _nodes(document: Document, found: Findings) -> None:
    names: dict[str, str] = {}
    hosts: dict[str, str] = {}
    made = sum(node.count for node in document.nodes.values())
    total = sum(node.devices * node.count for node in document.nodes.values())
    for most, count, what in ((MAX_NODES, made, "nodes"), (MAX_DEVICES, total, "devices")):
        if count > most:
            found.error("range", ("nodes",), f"{count} {what} are declared, the most is {most}", "declare fewer")
    if made > MAX_NODES:
        return
    for name, node in document.nodes.items():
        path: Path = ("nodes", name)
        if node.match is not None:
            _matched(path, node, found)
            host = node.match.hostname
            if host in hosts:
                message = f"node {shown(name)} matches the same host as {hosts[host]}"
                found.error("duplicate_name", (*path, "match", "hostname"), message, "keep one rule a host")
            hosts.setdefault(host, name)
        else:
            _declared(path, node, found)
        for one in [name] if node.count == 1 else [f"{name}-{i}" for i in range(node.count)]:
            if one in names:
                message = f"node {shown(one)} comes from {names[one]} and from {name}"
                found.error("duplicate_name", path, message, "rename one")
                break
            names[one] = name
        if len(f"{name}-{node.count - 1}") > MAX_NAME and node.count > 1:
            message = f"the names made of {shown(name)} are longer than {MAX_NAME} characters"
            found.error("bad_name", path, message, "use a shorter name")


def _declared(path: Path, node: NodeShape, found: Findings) -> None:
    if node.pool is None and not found.is_broken((*path, "pool"), (*path, "match"), (*path, "pools")):
        message = f"{path_text(path)} needs a pool, or match and pools"
        found.error("missing_key", (*path, "pool"), message, "add pool: …")
    if node.pools:
        message = f"{path_text(path)} has pools, but no match that says which host they are on"
        found.error("missing_key", (*path, "match"), message, "add match: {hostname: …}")
    if node.devices and node.flavor is None and not found.is_broken((*path, "flavor")):
        found.error(
            "missing_key", (*path, "flavor"), f"{path_text(path)} has devices of no flavor", "add flavor: …"
        )
    if node.islands and not found.is_broken((*path, "devices"), (*path, "islands")):
        inside = sum(node.islands)
        if inside != node.devices:
            message = f"the islands have {inside} devices, the node {node.devices}"
            found.error("bad_value", (*path, "islands"), message, f"let them add up to {node.devices}")


def _matched(path: Path, node: NodeShape, found: Findings) -> None:
    for key in ("pool", "devices", "count"):
        if node.gives(key):
            message = f"{path_text(path)} matches a host: its devices are found there, not declared"
            found.error("bad_value", (*path, key), message, "use pools: {pool: [0, 1]} instead")
    if not node.gives("pools") and not found.is_broken((*path, "pools")):
        message = f"{path_text(path)} needs pools: which of the host's devices are in which pool"
        found.error("missing_key", (*path, "pools"), message, "add pools: {…: [0, 1]}")
    taken: dict[int | str, str] = {}
    for pool, devices in node.pools.items():
        for device in devices:
            if device in taken:
                where = "twice" if taken[device] == pool else f"and in {taken[device]}"
                message = f"device {device} of {path[-1]} is in {pool} {where}"
                found.error("device_twice", (*path, "pools", pool), message, "a device is in one pool, once")
            taken.setdefault(device, pool)


def _lease(path: Path, queue: QueueShape, found: Findings) -> None:
    if found.is_broken((*path, "lease"), (*path, "lease", "default"), (*path, "lease", "max")):
        return
    default = queue.lease.default if queue.lease else None
    most = queue.lease.max if queue.lease else None
    endless = "lease" if queue.lease is None else "max" if most is None else "default"
    if (most is None or default is None) and queue.class_ is not PriorityClass.PROTECTED:
        if found.is_broken((*path, "class")):
            return
        where = (*path, "lease") if queue.lease is None else (*path, "lease", endless)
        message = f"{path_text(where)}: a lease without end is for protected queues only"
        found.error("endless_lease", where, message, "give it a time, or make the queue protected")
    elif most is not None and (default is None or default > most):
        given = "without end" if default is None else format_span(default)
        said = "" if queue.lease and queue.lease.gives("default") else ", which holds when it is left out,"
        message = f"{path_text(path)}: the default lease {given}{said} is above the maximum {format_span(most)}"
        found.error("range", (*path, "lease", "default"), message, "lower default or raise max")


def _extension(path: Path, queue: QueueShape, found: Findings) -> None:
    rule, path = queue.extension, (*path, "extension")
    if rule is None or found.is_broken(path):
        return
    approvers = rule.approvers or ()
    for index, approver in enumerate(approvers):
        if approver in approvers[:index]:
            message = f"{path_text(path)}.approvers names {approver} twice"
            found.error("bad_value", (*path, "approvers", index), message, "name it once")
    lease = queue.lease.default if queue.lease else None
    if rule.max_total is not None and lease is not None and rule.max_total < lease:
        if found.is_broken((*path, "max_total"), (*path[:-1], "lease"), (*path[:-1], "lease", "default")):
            return
        message = f"{path_text(path)}: max_total {format_span(rule.max_total)} is below the default lease"
        found.error("range", (*path, "max_total"), message, f"use {format_span(lease)} or more")


def _times(path: Path, queue: QueueShape, found: Findings) -> None:
    warn = queue.warn
    if any(later >= earlier for earlier, later in pairwise(warn)):
        in_order = ", ".join(format_span(one) for one in sorted(set(warn), reverse=True))
        message = f"{path_text(path)}: warnings must come closer and closer to the end"
        found.error("warn_order", (*path, "warn"), message, f"write [{in_order}]")
    # Left out, the budget is as much of its two minutes as the grace has room for.
    too_long = queue.gives("checkpoint_budget") and queue.checkpoint_budget > queue.grace
    if too_long and queue.checkpoint != "none" and not found.is_broken((*path, "grace")):
        budget, grace = format_span(queue.checkpoint_budget), format_span(queue.grace)
        message = f"{path_text(path)}: the checkpoint budget {budget} doesn't fit into the grace {grace}"
        found.error("grace", (*path, "checkpoint_budget"), message, "raise grace or lower checkpoint_budget")


def _kinds(path: Path, queue: QueueShape, found: Findings) -> None:
    for key in ("kinds", "allow"):
        items = getattr(queue, key)
        for index, item in enumerate(items):
            if item in items[:index]:
                place = found.original((*path, key, index))
                found.error("bad_value", place, f"{path_text(path)}.{key} has {item} twice", "name it once")


def _profiles(document: Document, found: Findings) -> None:
    for index, profile in enumerate(document.spawn_profiles):
        path = found.original(("spawn_profiles", index))
        queue = document.queues.get(profile.queue or "")
        if queue is not None and queue.kinds and Kind.NOTEBOOK not in queue.kinds:
            if found.is_broken(("queues", profile.queue or "", "kinds")):
                continue
            message = f"queue {profile.queue} takes no notebooks, so profile {profile.name} can't start there"
            found.error("bad_reference", (*path, "queue"), message, "name a queue with kinds: [notebook]")
        if profile.gpus > 1000 and profile.gpus % 1000:
            message = f"profile {profile.name} asks for whole cards and a part of one"
            found.error("bad_value", (*path, "gpus"), message, "use a whole number, or less than 1")
