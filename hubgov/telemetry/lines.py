"""What does the prober say to its supervisor? A JSON object a line: a reading, or why there is none."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hubgov.core.devices import Health
from hubgov.telemetry.probe import DeviceProcess, DeviceReading

MAX_LINE = 1 << 20
"""Bytes of the longest line that is accepted: 16 cards with 500 processes each take about 400 KiB."""

_MAX_TEXT = 1000


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The prober's last words before it ends. `no_driver`: there is nothing to read here, not even badly."""

    why: str
    no_driver: bool


def encode(said: Sequence[DeviceReading] | Unavailable) -> bytes:
    """The line that says it, newline included."""
    if isinstance(said, Unavailable):
        return json.dumps({"unavailable": said.why, "no_driver": said.no_driver}).encode() + b"\n"
    return json.dumps({"devices": [dataclasses.asdict(device) for device in said]}).encode() + b"\n"


def decode(line: bytes) -> tuple[DeviceReading, ...] | Unavailable:
    """What a line says; ValueError for anything that a prober wouldn't write."""
    try:
        document = json.loads(line)
    except RecursionError as error:
        raise ValueError("the line is nested too deeply") from error
    if not isinstance(document, dict):
        raise ValueError("the line is not an object")
    if "unavailable" in document:
        return Unavailable(_text(document, "unavailable"), document.get("no_driver") is True)
    devices = document.get("devices")
    if not isinstance(devices, list):
        raise ValueError("the line has no list of devices")
    return tuple(_device(device) for device in devices)


def _device(fields: object) -> DeviceReading:
    if not isinstance(fields, dict):
        raise ValueError("a device is not an object")
    processes = fields.get("processes")
    if processes is not None and not isinstance(processes, list):
        raise ValueError("the processes of a device are not a list")
    because = fields.get("unknown_because")
    return DeviceReading(
        index=_whole(fields, "index"),
        uuid=_text(fields, "uuid"),
        model=_text(fields, "model"),
        memory_mib=_whole(fields, "memory_mib"),
        minor=_number(fields, "minor"),
        used_mib=_number(fields, "used_mib"),
        utilisation_percent=_number(fields, "utilisation_percent"),
        power_mw=_number(fields, "power_mw"),
        health=Health(_text(fields, "health")),
        unknown_because=None if because is None else _text(fields, "unknown_because"),
        processes=None if processes is None else tuple(_process(process) for process in processes),
        simulated=False,
    )


def _process(fields: object) -> DeviceProcess:
    if not isinstance(fields, dict):
        raise ValueError("a process is not an object")
    return DeviceProcess(_whole(fields, "pid"), _number(fields, "used_mib"))


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        raise ValueError(f"{name} is not a text of at most {_MAX_TEXT} characters")
    return value


def _whole(fields: Mapping[str, Any], name: str) -> int:
    value = _number(fields, name)
    if value is None:
        raise ValueError(f"{name} is missing")
    return value


def _number(fields: Mapping[str, Any], name: str) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError(f"{name} is not a whole number")
    return value
