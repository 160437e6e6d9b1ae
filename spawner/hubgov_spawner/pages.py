"""The hub's own pages in two languages: which templates replace the stock ones, and how they find their words.

In `jupyterhub_config.py`: `from hubgov_spawner import pages; pages.install(c)`.
"""

from __future__ import annotations

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


class HubPages(Extension):
    """Gives the hub's templates `hubgov.reader(static_url)`, and the stock page its `<html lang>`."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        environment.globals["hubgov"] = {"reader": reader}

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """The stock page.html with the reader's language; it has no block to say it in."""
        if name is None or not name.endswith("page.html"):
            return source
        return source.replace('<html lang="en">', '<html lang="{{ hubgov.reader(static_url).tag }}">', 1)


def reader(static_url: Any) -> Reader:
    """The words for whoever looks at a page.

    The hub hands no request to its templates, but `static_url` is a method of the handler that answers it.
    """
    return Reader(getattr(static_url, "__self__", None))
