"""Getting a token from the hub that can do with hubgov what its owner may, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hubgov.client.connection import Login, bad_url, service_url
from hubgov.client.failures import AWAY, NotSignedIn, away
from hubgov.errors import HubgovError, NotAllowed, Unavailable

if TYPE_CHECKING:
    import httpx

DAYS = 30
_FIRST_TOKEN_SECONDS = 120
_OURS = "custom:hubgov:"


def sign_in(url: str, user: str, password: str, days: int = DAYS) -> Login:
    """A token for the service at `url`, good for `days` or as long as the hub allows.

    The password is sent once, for a token of two minutes that can do all that the user can. With it the token
    that stays is made: it reaches this service and carries the user's own hubgov scopes, so that who finds it
    can't start or stop servers at the hub.
    """
    import httpx

    address = service_url(url)
    hub, _, rest = address.partition("/services/")
    service = rest.split("/")[0]
    tokens = f"{hub}/hub/api/users/{quote(user, safe='')}/tokens"
    with httpx.Client(trust_env=False, follow_redirects=False, timeout=30) as http:
        try:
            wanted = {
                "auth": {"username": user, "password": password},
                "expires_in": _FIRST_TOKEN_SECONDS,
                "note": "hubgov login, first step",
            }
            first = _made(http.post(tokens, json=wanted), address)
            http.headers["Authorization"] = f"token {first['token']}"
            scopes = _scopes(http.get(f"{hub}/hub/api/user"), address, service)
            last = _last_token(http, tokens, scopes, days, address)
            # It ends by itself in two minutes; what the hub says to this changes nothing.
            http.delete(f"{tokens}/{quote(str(first.get('id', '')), safe='')}")
        except (httpx.InvalidURL, UnicodeError):  # of a name that no host can have
            raise bad_url(address) from None
        except httpx.TransportError as error:
            raise Unavailable(
                f"{hub} does not answer: {error or type(error).__name__}",
                code="unreachable",
                hint="check --url",
                details={"url": hub, "why": str(error) or type(error).__name__},
            ) from error
    expires_at = last.get("expires_at")
    return Login(
        url=address, user=user, token=str(last["token"]), expires_at=str(expires_at) if expires_at else None
    )


def _last_token(http: httpx.Client, tokens: str, scopes: list[str], days: int, address: str) -> Mapping[str, Any]:
    """The token that stays. A hub may allow less time than asked for; without a time it gives what it allows."""
    wanted = {"note": "hubgov login", "scopes": scopes}
    answer = http.post(tokens, json={**wanted, "expires_in": days * 86_400})
    if answer.status_code == 400 and "expires_in" in answer.text:
        answer = http.post(tokens, json=wanted)
    return _made(answer, address)


def _scopes(answer: httpx.Response, address: str, service: str) -> list[str]:
    """What of the user's scopes the token needs: reaching the service, and authority within hubgov."""
    held = _document(answer, address).get("scopes") or []
    return [f"access:services!service={service}", *sorted(s for s in held if str(s).startswith(_OURS))]


def _made(answer: httpx.Response, address: str) -> Mapping[str, Any]:
    document = _document(answer, address)
    if not isinstance(document.get("token"), str):
        raise Unavailable(f"the hub at {address} gave no token", code="not_hubgov", details={"url": address})
    return document


def _document(answer: httpx.Response, address: str) -> Mapping[str, Any]:
    try:
        document = answer.json()
    except ValueError:
        document = None
    if answer.status_code in AWAY:
        raise away(answer.status_code, address)
    if not isinstance(document, Mapping):
        raise Unavailable(
            f"what answers at {address} is not a hub (status {answer.status_code})",
            code="not_hubgov",
            hint="check --url",
            details={"url": address, "status": answer.status_code},
        )
    if answer.status_code == 403:
        raise NotSignedIn("the hub did not accept user and password", code="wrong_password", hint="try again")
    if answer.status_code == 400:
        message = str(document.get("message", ""))
        raise NotAllowed(f"the hub gave no token for hubgov: {message}", code="no_access", hint="ask its admin")
    if not 200 <= answer.status_code < 300:
        raise HubgovError(f"the hub answers {answer.status_code}: {document.get('message', '')}")
    return document
