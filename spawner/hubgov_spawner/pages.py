"""The hub's own pages in two languages: which templates replace the stock ones, and how they find their words.

In `jupyterhub_config.py`: `from hubgov_spawner import pages; pages.install(c)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment
from jinja2.ext import Extension
from traitlets.config.loader import LazyConfigValue

from hubgov import texts
from hubgov_spawner import page_texts

FOLDER = str(Path(__file__).with_name("templates"))
"""For JupyterHub.template_paths."""
_EXTENSION = "hubgov_spawner.pages.HubPages"


def install(config: Any) -> None:
    """Have the hub show these pages: `config` is the `c` of jupyterhub_config.py. A site's own come before them."""
    hub = config.JupyterHub
    paths = configured(hub, "template_paths", [])
    hub.template_paths = [*(path for path in paths if path != FOLDER), FOLDER]
    options = configured(hub, "jinja_environment_options", {})
    extensions = [name for name in options.get("extensions", ()) if name != _EXTENSION] + [_EXTENSION]
    hub.jinja_environment_options = {**options, "extensions": extensions}


def configured(section: Any, name: str, default: Any) -> Any:
    """What a section of the config sets so far, as a plain value; `default` when it sets nothing."""
    if name not in section:
        return default
    value = section[name]
    return value.get_value(default) if isinstance(value, LazyConfigValue) else value


class Reader:
    """The words of one page in its reader's language: `t("home")`."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler
        self.lang = page_texts.language(handler)
        asked = handler.get_query_argument("lang", "") if handler is not None else ""
        if asked in texts.LANGUAGES:
            self.lang = asked
            handler.set_cookie(page_texts.COOKIE, asked, path="/", samesite="Lax", expires_days=365)

    @property
    def tag(self) -> str:
        """The language as the page declares it: browsers pick fonts and line breaks by it."""
        return "zh-CN" if self.lang == "zh" else self.lang

    def __call__(self, key: str, **facts: object) -> str:
        return page_texts.say(key, self.lang, **facts)

    def told(self, message: object) -> str:
        """What the hub says in English, in the reader's language where it is one of its everyday sentences."""
        known = page_texts.HUB_SAYS.get(str(message))
        return self(known) if known else str(message)

    def switch(self, base_url: str) -> str:
        """This page in the other language; the hub's home where a query would start a server."""
        query = {"lang": texts.LANGUAGES[1 - texts.LANGUAGES.index(self.lang)]}
        if self._handler is None:
            return f"{base_url}home?{urlencode(query)}"
        path = self._handler.request.path
        if path.startswith(f"{base_url}spawn") and not path.startswith(f"{base_url}spawn-pending"):
            return f"{base_url}home?{urlencode(query)}"
        rest = {
            key: values[-1].decode("utf-8", "replace")
            for key, values in self._handler.request.query_arguments.items()
            if key not in ("lang", "_xsrf")
        }
        return f"{path}?{urlencode(rest | query)}"


_SAY = '{{ hubgov.reader(static_url)("%s") }}'
STOCK_PHRASES: Mapping[str, Mapping[str, str]] = {
    "page.html": {'<html lang="en">': '<html lang="{{ hubgov.reader(static_url).tag }}">'},
    "login.html": {
        "<h1>Sign in</h1>": f"<h1>{_SAY % 'sign_in'}</h1>",
        "Sign in with {{ login_service }}": _SAY % "sign_in" + " ({{ login_service }})",
        "value='Sign in'": f"value='{_SAY % 'sign_in'}'",
        ">Username:<": f">{_SAY % 'username'}<",
        ">Password:<": f">{_SAY % 'password'}<",
        'title="Show password"': f'title="{_SAY % "show_password"}"',
        '"Hide password" : "Show password"': f'"{_SAY % "hide_password"}" : "{_SAY % "show_password"}"',
        "Warning: JupyterHub seems to be served over an unsecured HTTP connection.": _SAY % "insecure",
        "We strongly recommend enabling HTTPS for JupyterHub.": "",
        "{{ login_error }}": "{{ hubgov.reader(static_url).told(login_error) }}",
    },
    "error.html": {
        "{{ status_code }} : {{ status_message }}": (
            "{{ status_code }}"
            "{% if status_message %} : {{ hubgov.reader(static_url).told(status_message) }}{% endif %}"
        ),
        "<p>{{ message }}</p>": "<p>{{ hubgov.reader(static_url).told(message) }}</p>",
    },
    "404.html": {
        "Jupyter has lots of moons, but this is not one...": _SAY % "not_found",
    },
}
"""What the stock templates say in English and have no block for, by template, and what stands there instead."""


class HubPages(Extension):
    """Gives the hub's templates `hubgov.reader(static_url)`, and the stock ones the reader's language."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        environment.globals["hubgov"] = {"reader": reader}

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """A stock template with the phrases that have no block of their own in the reader's language."""
        for phrase, instead in STOCK_PHRASES.get((name or "").rpartition("/")[2], {}).items():
            source = source.replace(phrase, instead)
        return source


def reader(static_url: Any) -> Reader:
    """The words for whoever looks at a page.

    The hub hands no request to its templates, but `static_url` is a method of the handler that answers it.
    """
    return Reader(getattr(static_url, "__self__", None))
