"""What a user asks for: read from the form or from REST, checked, and made into a request to the service.

`user_options` come from REST as the client sent them and stay in the hub's database, so that nothing in them
is trusted: known keys only, each with its type and length. Whether a request is allowed, the service decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hubgov import errors
from hubgov.wire import MAX_MILLI_GPUS, MAX_NAME, MAX_SPAN_MS, parse_memory, parse_span

Options = dict[str, Any]

HOURS = (1, 2, 4, 8)
"""The times that the form offers; any other is typed in minutes."""
LANGUAGE_FIELD = "hubgov_lang"
"""The field in which a form says in which language it was shown."""
_IGNORED_FIELDS = ("_xsrf", LANGUAGE_FIELD)
_FIELDS = (*_IGNORED_FIELDS, "hours", "minutes")
"""Fields of the form that are no options."""
_DIGITS = re.compile(r"[0-9]{1,12}", re.ASCII)
_SHARE = re.compile(r"[0-9]{1,7}(\.[0-9]{1,3})?", re.ASCII)
MAX_GPUS = MAX_MILLI_GPUS // 1000
MAX_CPUS = 10**6
MAX_SECONDS = MAX_SPAN_MS // 1000


def checked(options: object) -> Options:
    """The same options with every value of its type and `lease` in seconds; Invalid when one isn't right."""
    if not isinstance(options, Mapping):
        raise errors.Invalid("options must be an object", hint=_KNOWN)
    unknown = [key for key in options if key not in _CHECKS]
    if unknown:
        raise errors.Invalid(f"unknown option {str(unknown[0])[:40]!r}", hint=_KNOWN)
    # null is the same as not there: clients often send all keys.
    return {key: _CHECKS[key](key, value) for key, value in options.items() if value is not None}


def parted(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(what is hubgov's of a form's fields or of options, what is the site's own)."""
    ours = {key: value for key, value in given.items() if key in _CHECKS or key in _FIELDS}
    return ours, {key: value for key, value in given.items() if key not in ours}


def check_user(name: str) -> None:
    """Invalid for a user whose name the service doesn't take: no server of such a user could be governed."""
    if len(name) > MAX_NAME:
        wrong = f"has {len(name)} characters"
    elif not name.isprintable():
        wrong = f"has an invisible character ({name!a})"
    elif name != name.strip():
        wrong = f"has a blank at an end ({name!a})"
    else:
        return
    raise errors.Invalid(
        f"the user name {wrong}; hubgov takes at most {MAX_NAME} visible characters with no blank at either end",
        hint="an administrator can rename the user in the hub; the home stays",
    )


def from_form(form: Mapping[str, Sequence[Any]]) -> Options:
    """The options of a submitted form; Invalid when a field is unknown, there twice or not right."""
    fields: dict[str, str] = {}
    for name, values in form.items():
        if name in _IGNORED_FIELDS:
            continue
        if len(values) != 1 or not isinstance(values[0], str):
            raise errors.Invalid(
                f"field {name[:40]!r} must be there once, as text", hint="send the form as this page shows it"
            )
        fields[name] = values[0].strip()
    hours, minutes = fields.pop("hours", ""), fields.pop("minutes", "")
    options: Options = {name: value for name, value in fields.items() if value}
    if "gpus" in options:
        options["gpus"] = _share("gpus", options["gpus"])
    if "cpus" in options:
        options["cpus"] = _whole("cpus", options["cpus"], 0, MAX_CPUS, 4)
    if "lease" in options:
        options["lease"] = _whole("lease", options["lease"], 1, MAX_SECONDS, 3600)
    if hours == "custom":
        options["lease"] = _whole("minutes", minutes, 1, MAX_SECONDS // 60, 60) * 60
    elif hours:
        options["lease"] = _whole("hours", hours, 1, MAX_SECONDS // 3600, 4) * 3600
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


def _shown(value: object) -> str:
    return repr(value)[:40] if not isinstance(value, str) else repr(value[:40])


def _name(key: str, value: object) -> str:
    ok = isinstance(value, str) and 1 <= len(value) <= MAX_NAME and value.isprintable()
    if not ok or not isinstance(value, str) or value != value.strip():
        raise errors.Invalid(
            f"{key}: {_shown(value)} is no name of 1 to {MAX_NAME} visible characters",
            hint="write it without blanks around it",
        )
    return value


def _lease(key: str, value: object) -> int:
    seconds = value
    if isinstance(value, str):
        try:
            seconds = parse_span(value[:100]) // 1000
        except ValueError:
            seconds = None
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 0 < seconds <= MAX_SECONDS:
        raise errors.Invalid(
            f"{key}: {_shown(value)} is not a time from 1 s to ten years",
            hint="write seconds, or a text such as 4h or 1h30m",
        )
    return seconds


def _gpus(key: str, value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_GPUS:
        raise errors.Invalid(
            f"{key}: {_shown(value)} is not a number of GPUs from 0 to {MAX_GPUS}",
            hint="write 1, or 0.25 for a quarter of a card",
        )
    return value


def _cpus(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_CPUS:
        raise _no_whole_number(key, value, 0, MAX_CPUS, 4)
    return value


def _memory(key: str, value: object) -> str:
    try:
        parse_memory(value[:100] if isinstance(value, str) else str(value)[:40])
    except ValueError as error:
        raise errors.Invalid(f"{key}: {error}", hint="such as 20GiB") from error
    return str(value)


def _whole(field: str, text: str, least: int, most: int, example: int) -> int:
    """A whole number of a form, within its bounds; in digits, and nothing else that Python would take for one."""
    if not _DIGITS.fullmatch(text) or not least <= int(text) <= most:
        raise _no_whole_number(field, text, least, most, example)
    return int(text)


def _share(field: str, text: str) -> int | float:
    """A number of GPUs of a form, with at most three decimals."""
    if not _SHARE.fullmatch(text) or float(text) > MAX_GPUS:
        return _gpus(field, text)
    return float(text) if "." in text else int(text)


def _no_whole_number(field: str, value: object, least: int, most: int, example: int) -> errors.Invalid:
    return errors.Invalid(
        f"{field}: {_shown(value)} is not a whole number from {least} to {most}",
        hint=f"write it in digits, such as {example}",
    )


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
