"""Commands made from the table of verbs: a verb's module is loaded when the verb is called, not before."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from hubgov import __version__
from hubgov.cli.cli_texts import text
from hubgov.cli.lazy import GROUPS, VERBS
from hubgov.texts import pick

_WIDTH = {"max_content_width": 100}


class VerbGroup(TyperGroup):
    """The verbs whose names begin with `prefix`; the root's prefix is empty."""

    def __init__(self, prefix: str, lang: str, **attributes: Any) -> None:
        super().__init__(rich_markup_mode=None, context_settings=_WIDTH, **attributes)
        self.prefix, self.lang = prefix, lang
        rows = {name.removeprefix(prefix): verb.help for name, verb in VERBS.items() if name.startswith(prefix)}
        self.rows: dict[str, tuple[str, str]] = {}
        for name, help_ in rows.items():
            first = name.split(" ")[0]
            self.rows[first] = help_ if first == name else GROUPS[first]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Nothing after the group means its help."""
        return super().parse_args(ctx, args or ["--help"])

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.rows)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        name = self.prefix + cmd_name
        if name in VERBS:
            return _command(name, self.lang)
        if name in GROUPS:
            return VerbGroup(name + " ", self.lang, name=cmd_name, help=pick(GROUPS[name], self.lang))
        return None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of these arguments; for a word that is none, the nearest verb is named."""
        if args and args[0] not in self.rows and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], self.rows, n=1)
            ctx.fail(
                text("no_verb", self.lang, verb=args[0]) + (text("near", self.lang, word=near[0]) if near else "")
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section(text("commands", self.lang)):
            formatter.write_dl([(name, pick(help_, self.lang)) for name, help_ in self.rows.items()])


def root(lang: str) -> VerbGroup:
    """The program: its own options, and every verb."""
    params = [*_common_options(), *_options_of(_version)]
    epilog = text("environment", lang)
    return VerbGroup("", lang, name="hubgov", help=text("about", lang), params=params, epilog=epilog)


def _command(name: str, lang: str) -> Any:
    verb = VERBS[name]
    module, _, function = verb.target.partition(":")
    command = _typer_command(getattr(importlib.import_module(module), function))
    command.name = name.split(" ")[-1]
    command.help = pick(verb.help, lang)
    command.epilog = f"{text('example', lang)} {verb.example}"
    command.context_settings = _WIDTH
    command.params += _common_options()
    return command


def _typer_command(function: Callable[..., Any]) -> Any:
    app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    app.command()(function)
    return typer.main.get_command(app)


def _common(
    json: Annotated[bool, typer.Option("--json", help="Print the document of the REST interface.")] = False,
    lang: Annotated[Literal["en", "zh"] | None, typer.Option("--lang", help="Language of all texts.")] = None,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours; also by NO_COLOR.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only what was asked for, no remarks.")] = False,
) -> None:
    """The options that every verb takes, before the verb or after it."""


def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """The root's own option."""


def _options_of(function: Callable[..., Any]) -> list[Any]:
    options = [option for option in _typer_command(function).params if option.name != "help"]
    for option in options:
        option.expose_value = False
        option.callback = _keep
    return options


def _common_options() -> list[Any]:
    return _options_of(_common)


def _keep(ctx: Any, option: Any, value: Any) -> Any:
    """Note a common option on the screen, where the verb finds it. It may stand before the verb or after."""
    if option.name == "version":
        if value:
            typer.echo(f"hubgov {__version__}")
            raise typer.Exit
    elif value:
        setattr(ctx.find_root().obj, option.name, value)
    return value
