"""What a user asks for: read from the form or from REST, checked, and made into a request to the service.

`user_options` come from REST as the client sent them and stay in the hub's database, so that nothing in them
is trusted: known keys only, each with its type and length. Whether a request is allowed, the service decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hubgov import errors
from hubgov.wire import MAX_MILLI_GPUS, MAX_NAME, MAX_SPAN_MS, parse_memory, parse_span

Options = dict[str, Any]

HOURS = (1, 2, 4, 8)
"""The times that the form offers; any other is typed in minutes."""
_IGNORED_FIELDS = ("_xsrf",)


def checked(options: object) -> Options:
    """The same options with every value of its type and `lease` in seconds; Invalid when one isn't right."""
    if not isinstance(options, Mapping):
        raise errors.Invalid("options must be an object", hint=_KNOWN)
    unknown = [key for key in options if key not in _CHECKS]
    if unknown:
        raise errors.Invalid(f"unknown option {str(unknown[0])[:40]!r}", hint=_KNOWN)
    # null is the same as not there: clients often send all keys.
    return {key: _CHECKS[key](key, value) for key, value in options.items() if value is not None}


def check_user(name: str) -> None:
    """Invalid for a user whose name the service doesn't take: no server of such a user could be governed."""
    if len(name) > MAX_NAME or not name.isprintable() or name != name.strip():
        raise errors.Invalid(
            f"the user name has {len(name)} characters; hubgov takes at most {MAX_NAME} visible characters "
            "with no blank at either end",
            hint="an administrator can rename the user in the hub; the home stays",
        )


def from_form(form: Mapping[str, Sequence[Any]]) -> Options:
    """The options of a submitted form; Invalid when a field is unknown, there twice or not right."""
    fields: dict[str, str] = {}
    for name, values in form.items():
        if name in _IGNORED_FIELDS:
            continue
        if len(values) != 1 or not isinstance(values[0], str):
            raise errors.Invalid(f"field {name[:40]!r} must be there once, as text")
        fields[name] = values[0].strip()
    hours, minutes = fields.pop("hours", ""), fields.pop("minutes", "")
    options: Options = {name: value for name, value in fields.items() if value}
    for name in ("gpus", "cpus", "lease"):
        if name in options:
            options[name] = _number(name, options[name])
    if hours == "custom":
        options["lease"] = _number("minutes", minutes) * 60
    elif hours:
        options["lease"] = _number("hours", hours) * 3600
    return checked(options)


def request(
    options: Options, found: Mapping[str, Any], *, user: str, groups: list[str], server: str
) -> dict[str, Any]:
    """The body of POST /workloads. `found` is the answer of GET /spawn-options, where profiles are spelled out.

    Without a profile the last one counts, else the first that isn't refused.
    """
    body: dict[str, Any] = {"kind": "notebook", "user": user, "groups": groups, "server": server}
    last = found.get("last") or {}
    profile = None if "queue" in options else _profile(options.get("profile"), found, last)
    if profile is not None:
        body |= {
            "profile": profile["name"],
            "queue": profile["queue"],
            "gpus": profile["gpus"],
            "flavor": profile.get("flavor"),
            "memory": _size(profile.get("memory_mib")),
            "cpus": profile.get("cpus"),
            "ram": _size(profile.get("ram_mib")),
        }
        if "profile" not in options and profile["name"] == last.get("profile"):
            body["lease"] = last.get("lease_seconds")
    body["project"] = _project(found, last)
    body |= options
    body.setdefault("gpus", 0)
    return {key: value for key, value in body.items() if value is not None}


def _profile(name: str | None, found: Mapping[str, Any], last: Mapping[str, Any]) -> Mapping[str, Any]:
    profiles = {profile["name"]: profile for profile in found.get("profiles", ())}
    if name is not None:
        if name not in profiles:
            known = ", ".join(profiles) or "none"
            raise errors.Invalid(f"no profile {name!r}", hint=f"profiles: {known}")
        return dict(profiles[name])
    if last.get("profile") in profiles:
        return dict(profiles[last["profile"]])
    allowed = [p for p in profiles.values() if p["decision"]["outcome"] != "refused"]
    for profile in (*allowed, *profiles.values()):
        return dict(profile)
    raise errors.Invalid("no profile is set up", hint="add one to the policy's spawn profiles")


def _project(found: Mapping[str, Any], last: Mapping[str, Any]) -> str | None:
    names = [project["name"] for project in found.get("projects", ())]
    return last["project"] if last.get("project") in names else (names[0] if names else None)


def _size(mib: int | None) -> str | None:
    return f"{mib}MiB" if mib is not None else None


# --- checks --------------------------------------------------------------------------------------------


def _name(key: str, value: object) -> str:
    ok = isinstance(value, str) and 1 <= len(value) <= MAX_NAME and value.isprintable()
    if not ok or not isinstance(value, str) or value != value.strip():
        raise errors.Invalid(f"{key}: must be a name of 1 to {MAX_NAME} visible characters")
    return value


def _lease(key: str, value: object) -> int:
    if isinstance(value, str):
        try:
            return parse_span(value[:100]) // 1000
        except ValueError as error:
            raise errors.Invalid(f"{key}: {error}") from error
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_SPAN_MS // 1000:
        raise errors.Invalid(f"{key}: must be seconds, or a text such as 4h")
    return value


def _gpus(key: str, value: object) -> int | float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not isinstance(value, int | float) or not 0 <= value <= MAX_MILLI_GPUS // 1000:
        raise errors.Invalid(f"{key}: must be a number of GPUs such as 1 or 0.25")
    return value


def _cpus(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 10**6:
        raise errors.Invalid(f"{key}: must be a whole number")
    return value


def _memory(key: str, value: object) -> str:
    try:
        parse_memory(value[:100] if isinstance(value, str) else "")
    except ValueError as error:
        raise errors.Invalid(f"{key}: {error}") from error
    return str(value)


def _number(field: str, text: str) -> Any:
    """A whole number of a form, or with `gpus` a share; Invalid else."""
    try:
        if len(text) > 12 or not text.isascii():
            raise ValueError
        return float(text) if field == "gpus" and "." in text else int(text)
    except ValueError:
        raise errors.Invalid(f"{field}: {text[:12]!r} is not a number", hint="60") from None


_CHECKS: Mapping[str, Callable[[str, object], Any]] = {
    "profile": _name,
    "project": _name,
    "lease": _lease,
    "resumes": _name,
    "queue": _name,
    "gpus": _gpus,
    "flavor": _name,
    "memory": _memory,
    "cpus": _cpus,
    "ram": _memory,
}
_KNOWN = "known options: " + ", ".join(_CHECKS)
