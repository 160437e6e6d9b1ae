"""Where the service is and who asks: from the caller, the environment, or what `hubgov login` wrote."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from hubgov.client.failures import NotSignedIn
from hubgov.errors import HubgovError, Invalid, Unavailable

DEFAULT_URL = "http://127.0.0.1:8000/services/hubgov"
"""Where `hubgov demo` serves: what `hubgov login` without an address means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The address of the service with its prefix, and a token of the hub. The token is never shown."""

    url: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """What `hubgov login` keeps. A token belongs to its address and is sent to no other."""

    url: str
    user: str
    token: str = field(repr=False)
    expires_at: str | None = None


def find(
    url: str | None = None,
    token: str | None = None,
    environment: Mapping[str, str] = os.environ,
    file: Path | None = None,
) -> Connection:
    """The connection: what is given, else HUBGOV_URL and HUBGOV_TOKEN, else (inside a notebook) the token of
    the server, else the login file. Unavailable when no address is known, NotSignedIn without a token."""
    token = token or environment.get("HUBGOV_TOKEN") or None
    if url is None and environment.get("HUBGOV_URL"):
        url = environment["HUBGOV_URL"]
        # The server's own token is for the address that came with it, and for no other.
        token = token or environment.get("JUPYTERHUB_API_TOKEN") or None
    address = service_url(url) if url is not None else None
    if address is not None and token is not None:
        return Connection(url=address, token=_clean(token))
    login = read_login(file or login_file(environment))
    if address is None:
        if login is None:
            raise Unavailable(
                "no hubgov service is known here",
                code="no_service",
                hint="hubgov login --url URL, or set HUBGOV_URL and HUBGOV_TOKEN",
            )
        return Connection(url=login.url, token=_clean(token or login.token))
    if login is None or login.url != address:
        raise NotSignedIn(
            f"not signed in at {address}",
            code="no_token",
            hint=f"hubgov login --url {address}, or set HUBGOV_TOKEN",
            details={"url": address},
        )
    return Connection(url=address, token=_clean(login.token))


def service_url(url: str) -> str:
    """The service's address, without a slash at the end. A hub's address means the service `hubgov` there."""
    url = url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        well_formed = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a bracket left open, a port that is none
        raise bad_url(url) from None
    visible = all(" " < ch <= "~" for ch in url)
    if not well_formed or not visible or parts.query or parts.fragment:
        raise bad_url(url)
    if "/services/" in parts.path:
        return url
    path = parts.path.removesuffix("/hub")
    return f"{parts.scheme}://{parts.netloc}{path}/services/hubgov"


def bad_url(url: str) -> Invalid:
    """What is no address that a service could have."""
    return Invalid(f"{url[:200]!r} is not the address of a service", code="bad_url", hint=f"such as {DEFAULT_URL}")


def login_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Where `hubgov login` keeps its token: `~/.config/hubgov/login.json`, or under XDG_CONFIG_HOME."""
    base = environment.get("XDG_CONFIG_HOME") or ""
    return (Path(base) if os.path.isabs(base) else Path.home() / ".config") / "hubgov" / "login.json"


def read_login(file: Path) -> Login | None:
    """What the file says, None when there is none. A file that others may read is refused: its token is theirs."""
    try:
        with open(file, encoding="utf-8") as stream:
            status = os.fstat(stream.fileno())
            if stat.S_IMODE(status.st_mode) & 0o077 or status.st_uid != os.geteuid():
                raise NotSignedIn(
                    f"{file} can be read by others; the token in it is not used",
                    code="login_readable",
                    hint=f"chmod 600 {file}, or hubgov login again",
                    details={"file": str(file)},
                )
            text = stream.read(100_000)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, str(error)) from error
    try:
        found = json.loads(text)
        expires_at = found.get("expires_at")
        return Login(
            url=service_url(str(found["url"])),
            user=str(found["user"]),
            token=str(found["token"]),
            expires_at=str(expires_at) if expires_at else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _unreadable(file, str(error)) from error


def write_login(file: Path, login: Login) -> None:
    """Keep the login, readable by its owner only from the first byte on; an older one is replaced as a whole."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    document = {"url": login.url, "user": login.user, "token": login.token, "expires_at": login.expires_at}
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as stream:
            json.dump(document, stream)
        os.replace(fresh, file)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _clean(token: str) -> str:
    token = token.strip()
    if not token or not all("!" <= ch <= "~" for ch in token):
        raise NotSignedIn("the token has characters that no token has", code="bad_token", hint="hubgov login")
    return token


def _unreadable(file: Path, why: str) -> HubgovError:
    return HubgovError(
        f"{file} can't be read: {why}",
        code="login_unreadable",
        hint="hubgov login writes it anew",
        details={"file": str(file)},
    )
