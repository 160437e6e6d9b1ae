"""How a policy's values are written for people: the keys and units of the policy file, nested as there."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Any

from hubgov.core.policy import Policy, QuotaRow, Window
from hubgov.wire import format_span, gpus

from .values import DAYS

Notation = str | dict[str, "Notation"]

_KEYS = {
    "class_": "class",
    "price_micro_per_hour": "price_per_hour",
    "guard_min_memory_mib": "fit_guard.min_memory",
    "max_shares_per_device": "share.max_per_device",
    "match_hostname": "match.hostname",
    "milli_gpus": "gpus",
    "gpus_milli": "gpus",
    "self_serve_count": "self_serve.count",
    "step_ms": "self_serve.step",
    "reason_required": "reason",
    "keep_count": "keep.count",
    "keep_for_ms": "keep.for",
    "class_factor_micro": "class",
    "borrowed_factor_micro": "borrowed",
    "telemetry_period_ms": "telemetry.period",
    "notify_channels": "notify.channels",
}
"""Where a field's key is not simply its name without the unit."""


def notation(policy: Policy) -> dict[str, Notation]:
    """The whole policy by the keys of the file; quota rows and spawn profiles by what tells them apart."""
    written: dict[str, Notation] = {}
    for field in dataclasses.fields(policy):
        value = getattr(policy, field.name)
        if field.name == "quotas":
            written["quotas"] = {_row_name(row): _row(row) for row in value}
        elif field.name == "spawn_profiles":
            written["spawn_profiles"] = {profile.name: _block(profile) for profile in value}
        elif field.name != "version":
            _put(written, field.name, value)
    return written


def flow(value: Notation) -> str:
    """A nested value on one line, as YAML's flow style."""
    if isinstance(value, str):
        return value
    return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in value.items()) + "}"


def size(mib: int) -> str:
    """A memory size in the largest unit that is exact: `80GiB`."""
    for unit, scale in (("TiB", 1024**2), ("GiB", 1024)):
        if mib and mib % scale == 0:
            return f"{mib // scale}{unit}"
    return f"{mib}MiB"


def decimal(micro: int) -> str:
    """Millionths as the shortest exact decimal: 18500000 -> `18.5`."""
    whole, rest = divmod(micro, 1_000_000)
    return f"{whole}.{rest:06d}".rstrip("0") if rest else str(whole)


def _row_name(row: QuotaRow) -> str:
    who = f"team {row.team}" if row.team is not None else f"project {row.project}"
    window = f", window {row.window}" if row.window is not None else ""
    return f"{who}, pool {row.pool}, flavor {row.flavor}{window}"


def _row(row: QuotaRow) -> Notation:
    written: dict[str, Notation] = {}
    for key in ("guaranteed", "borrow", "lend"):
        value = getattr(row, key)
        written[key] = "as outside the window" if key in row.unset else _amount("milli", value)
    return written


def _block(value: Any) -> Notation:
    """One dataclass of the core as a block of the file."""
    if isinstance(value, Window):
        return {
            "days": "[" + ", ".join(DAYS[day] for day in value.days) + "]",
            "from": f"{value.opens // 60:02d}:{value.opens % 60:02d}",
            "to": f"{value.closes // 60:02d}:{value.closes % 60:02d}",
        }
    written: dict[str, Notation] = {}
    for field in dataclasses.fields(value):
        if field.name == "ownership":
            owned = _block(value.ownership)
            written.update(owned if isinstance(owned, dict) else {})
        elif field.name != "name":
            _put(written, field.name, getattr(value, field.name))
    return written


def _put(written: dict[str, Notation], name: str, value: Any) -> None:
    """Write one field under its key, nested where the file nests."""
    unit = next((unit for unit in ("milli", "micro", "mib", "ms") if unit in name.split("_")), "")
    key = _KEYS.get(name) or name.removesuffix(f"_{unit}")
    if name == "reason_required":
        value = "required" if value else "optional"
    block = written
    *outer, last = key.split(".")
    for part in outer:
        inner = block.setdefault(part, {})
        if isinstance(inner, dict):
            block = inner
    block[last] = _value(unit, value)


def _value(unit: str, value: Any) -> Notation:
    if dataclasses.is_dataclass(value):
        return _block(value)
    if isinstance(value, Mapping):
        written: dict[str, Notation] = {}
        for key, item in value.items():
            if isinstance(key, Enum):
                written[str(key.value)] = _value(unit, item)
            elif unit or dataclasses.is_dataclass(item):
                written[str(key)] = _value(unit, item)
            else:
                _put(written, str(key), item)
        return written
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(_value(unit, item)) for item in value) + "]"
    return _amount(unit, value)


def _amount(unit: str, value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enum):
        return str(value.value)
    if not isinstance(value, int):
        return str(value)
    if unit == "ms":
        return format_span(value)
    if unit == "mib":
        return size(value)
    if unit == "micro":
        return decimal(value)
    return str(gpus(value)) if unit == "milli" else str(value)
