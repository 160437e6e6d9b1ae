"""Records as JSON and back, exactly: the core's frozen dataclasses through pydantic's adapters."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import TypeAdapter

from hubgov.core.devices import SeenNode
from hubgov.core.model import (
    Allocation,
    Departure,
    ExtensionRequest,
    Notice,
    QueueHold,
    Record,
    SaveRecord,
    Workload,
)

R = TypeVar("R")

_KINDS: dict[type[Any], TypeAdapter[Any]] = {
    kind: TypeAdapter(kind)
    for kind in (Workload, Allocation, ExtensionRequest, Notice, SaveRecord, QueueHold, SeenNode, Departure)
}


def encode(record: Record) -> str:
    """The whole record as JSON text."""
    return _KINDS[type(record)].dump_json(record).decode()


def decode(kind: type[R], body: str) -> R:
    """The record of that kind; pydantic's ValidationError when the text is not one."""
    record: R = _KINDS[kind].validate_json(body)
    return record


def difference(before: Record | None, after: Record | None) -> str:
    """The fields that changed, as JSON {field: [was, is]}; a new record has null before."""
    was = _plain(before)
    became = _plain(after)
    return json.dumps(
        {
            name: [was.get(name), became.get(name)]
            for name in sorted(was.keys() | became.keys())
            if was.get(name) != became.get(name)
        },
        separators=(",", ":"),
        ensure_ascii=False,
    )


def _plain(record: Record | None) -> dict[str, Any]:
    if record is None or type(record) not in _KINDS:
        return {}
    if isinstance(record, SaveRecord):
        # Its record is the whole story and never changes; a second copy in the journal would only weigh.
        return {"documents": len(record.documents), "asked_lab": record.asked_lab}
    plain: dict[str, Any] = _KINDS[type(record)].dump_python(record, mode="json")
    if isinstance(record, Workload) and record.request.env:
        # The journal is read by more people than may read these, and nothing is ever taken out of it.
        plain["request"] |= {"env": dict.fromkeys(record.request.env, "…")}
    return plain
