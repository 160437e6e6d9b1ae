"""The OpenAPI document, made from the routes and from the models of bodies and documents."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import models_json_schema

from hubgov import __version__, wire
from hubgov.service.handlers.workloads import MAX_WAIT_SECONDS
from hubgov.service.routes import ROUTES, Route

_ID = {"type": "string"}
_WORKLOAD_ID = {"type": "string", "pattern": "^[a-z]{2}-[0-9]{1,18}$"}
_BOUNDS: dict[str, dict[str, Any]] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
    "cursor": {"type": "integer", "minimum": 0, "maximum": 2**62},
    "after": {"type": "integer", "minimum": 0, "maximum": 2**62},
    "wait": {"type": "integer", "minimum": 0, "maximum": MAX_WAIT_SECONDS},
    "offset": {"type": "integer", "minimum": 0, "maximum": 2**62},
    "attempt": {"type": "integer", "minimum": 0, "maximum": 10**9},
}
"""Schemas of parameters whose bounds the handlers check."""
_QUERY: dict[str, dict[str, Any]] = {
    "integer": {"type": "integer"},
    "string": {"type": "string"},
    "string!": {"type": "string", "minLength": 1},
    "strings": {"type": "array", "items": {"type": "string"}},
}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "details", "hint"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "details": {"type": "object"},
                "hint": {"type": "string"},
            },
        }
    },
}
_WIRE = tuple(
    kind
    for _, kind in inspect.getmembers(wire, dataclasses.is_dataclass)
    if isinstance(kind, type) and kind.__module__ == wire.__name__
)


def document(prefix: str) -> dict[str, Any]:
    """OpenAPI 3.1 of everything under `prefix`api/v1."""
    models = [r.body for r in ROUTES if r.body is not None]
    unique = list(dict.fromkeys(models))
    _, definitions = models_json_schema(
        [(model, "validation") for model in unique], ref_template="#/components/schemas/{model}"
    )
    schemas = dict(definitions.get("$defs", {}))
    for kind in dict.fromkeys((*_WIRE, *(r.document for r in ROUTES if r.document is not None))):
        schema = TypeAdapter(kind).json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
        schemas |= {name: _plain_names(s) for name, s in schema.pop("$defs", {}).items()}
        schemas[kind.__name__] = _plain_names(schema)
    schemas["Error"] = _ERROR
    paths: dict[str, Any] = {}
    for route in ROUTES:
        path = _path(route.pattern)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, path)
    return {
        "openapi": "3.1.0",
        "info": {"title": "hubgov", "version": __version__, "license": {"name": "BSD-3-Clause"}},
        "servers": [{"url": prefix.rstrip("/") + wire.API}],
        "security": [{"hub": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "hub": {"type": "apiKey", "in": "header", "name": "Authorization", "description": "token …"}
            },
        },
    }


def _plain_names(schema: dict[str, Any]) -> dict[str, Any]:
    """Field names as they are on the wire: `class`, not `class_`."""
    if "properties" in schema:
        schema["properties"] = {k.rstrip("_"): v for k, v in schema["properties"].items()}
    if "required" in schema:
        schema["required"] = [k.rstrip("_") for k in schema["required"]]
    return schema


def _path(pattern: str) -> str:
    """`/workloads/(?P<workload_id>…)/why` as `/workloads/{workload_id}/why`."""
    return re.sub(r"\(\?P<(\w+)>(?:[^()]|\([^()]*\))*\)", r"{\1}", pattern)


def _operation(route: Route, path: str) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", path)
    parameters: list[dict[str, Any]] = [
        {"name": n, "in": "path", "required": True, "schema": _WORKLOAD_ID if n == "workload_id" else _ID}
        for n in names
    ]
    parameters += [
        {"name": n, "in": "query", "required": kind.endswith("!"), "schema": _BOUNDS.get(n) or _QUERY[kind]}
        for n, kind in route.query
    ]
    if route.if_match:
        parameters.append(
            {
                "name": "If-Match",
                "in": "header",
                "required": True,
                "schema": {"type": "string", "pattern": '^"?[0-9]{1,18}"?$'},
                "description": "the version that the edit began with, as its ETag says",
            }
        )
    if route.method in ("POST", "PUT", "DELETE", "PATCH"):
        parameters.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "schema": {"type": "string"},
                "description": "done once per key and caller; a key is kept for a day, then it counts as a new one",
            }
        )
    operation: dict[str, Any] = {
        "operationId": f"{route.method.lower()}{re.sub(r'[^a-zA-Z]+', '_', path)}",
        "summary": route.summary,
        "parameters": parameters,
        "responses": {str(status): _answer(route, status, text) for status, text in route.answers.items()}
        | {str(status): {"description": text, "content": _json("Error")} for status, text in _ERRORS.items()},
    }
    if not route.signed_in:
        operation["security"] = []
    if route.body is not None:
        schema = {"$ref": f"#/components/schemas/{route.body.__name__}"}
        required = any(field.is_required() for field in route.body.model_fields.values())
        operation["requestBody"] = {"required": required, "content": {"application/json": {"schema": schema}}}
    return operation


def _answer(route: Route, status: int, text: str) -> dict[str, Any]:
    if status == 204:
        return {"description": text}
    if route.content != "application/json":
        return {"description": text, "content": {route.content: {"schema": {"type": "string"}}}}
    if route.document is None:
        return {"description": text, "content": {"application/json": {"schema": {"type": "object"}}}}
    if not route.listed:
        return {"description": text, "content": _json(route.document.__name__)}
    schema = {
        "type": "object",
        "required": ["items", "next", "total"],
        "properties": {
            "items": {"type": "array", "items": _reference(route.document.__name__)},
            "next": {"type": ["string", "null"]},
            "total": {"type": "integer"},
        },
    }
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": _reference(name)}}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


_ERRORS = {
    400: "the request breaks the contract",
    401: "no valid token",
    403: "not allowed",
    404: "no such thing, or none that you may see",
    405: "not with this method",
    409: "it ended or moved meanwhile",
    412: "the policy moved",
    413: "the body is too large",
    422: "refused by the policy, or an idempotency key reused",
    429: "too many at once",
    503: "something this needs doesn't answer",
}
