"""What the prober prints is read back as it was, and nothing else is taken for a reading."""

from __future__ import annotations

import json

import pytest

from hubgov.core.devices import Health
from hubgov.telemetry.lines import Unavailable, decode, encode
from hubgov.telemetry.probe import DeviceProcess, DeviceReading

CARD = DeviceReading(
    index=1,
    uuid="GPU-a",
    model="NVIDIA L40S",
    memory_mib=46068,
    minor=None,
    used_mib=3,
    utilisation_percent=None,
    power_mw=35_000,
    health=Health.SICK,
    unknown_because="utilisation: not measurable on MIG",
    processes=(DeviceProcess(42, None), DeviceProcess(43, 7)),
    simulated=False,
)


@pytest.mark.parametrize(
    "said", [(), (CARD,), (CARD, CARD), Unavailable("no library", True), Unavailable("odd", False)]
)
def test_a_line_says_what_was_said(said: tuple[DeviceReading, ...] | Unavailable) -> None:
    line = encode(said)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode(line) == said


def changed(**fields: object) -> bytes:
    document = json.loads(encode((CARD,)))
    document["devices"][0].update(fields)
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"Segmentation fault",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{}",
        b'{"devices": {}}',
        b'{"devices": [1]}',
        b'{"unavailable": 3}',
        b"[" * 100_000,
        changed(index=-1),
        changed(index=True),
        changed(index=None),
        changed(used_mib=1.5),
        changed(used_mib=10**30),
        changed(uuid=None),
        changed(model="x" * 2000),
        changed(health="splendid"),
        changed(processes="none"),
        changed(processes=[42]),
        changed(processes=[{"pid": None}]),
    ],
)
def test_garbage_is_no_reading(line: bytes) -> None:
    with pytest.raises(ValueError):
        decode(line)
