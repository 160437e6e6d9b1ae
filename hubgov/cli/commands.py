"""Commands made from the table of verbs: a verb's module is loaded when the verb is called, not before."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from hubgov import __version__
from hubgov.cli.cli_texts import text
from hubgov.cli.help_texts import help_in
from hubgov.cli.lazy import GROUPS, VERBS, verb_help, verb_more

_WIDTH = {"max_content_width": 100}


class VerbGroup(TyperGroup):
    """The verbs whose names begin with `prefix`; the root's prefix is empty."""

    def __init__(self, prefix: str, lang: str, **attributes: Any) -> None:
        super().__init__(rich_markup_mode=None, context_settings=_WIDTH, invoke_without_command=True, **attributes)
        self.prefix, self.lang = prefix, lang
        self.rows: dict[str, str] = {}
        for name in (name for name in VERBS if name.startswith(prefix)):
            shown = name.removeprefix(prefix)
            first = shown.split(" ")[0]
            self.rows[first] = verb_help(name, lang) if first == shown else GROUPS.pick(first, lang)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; without one, show what there is."""
        result = super().invoke(ctx)
        if ctx.invoked_subcommand is None:
            typer.echo(ctx.get_help())
        return result

    def get_help_option(self, ctx: Any) -> Any:
        """The group's `--help`. Not given is False here: of None typer asks pydantic whether it is a bool."""
        option = super().get_help_option(ctx)
        if option is not None and option.default is None:
            option.default = False
            option.help = help_in(option.help, self.lang)
        return option

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.rows)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        name = self.prefix + cmd_name
        if name in VERBS:
            return command(name, self.lang)
        if name in GROUPS:
            params = _common_options()
            for param in params:
                param.help = help_in(param.help, self.lang)
            title = GROUPS.pick(name, self.lang)
            return VerbGroup(name + " ", self.lang, name=cmd_name, help=title, params=params)
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
            formatter.write_dl(list(self.rows.items()))


class VerbCommand(TyperCommand):
    """One verb."""

    lang = "en"

    def get_help_option(self, ctx: Any) -> Any:
        """The verb's `--help`."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = help_in(option.help, self.lang)
        return option

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """`[OPTIONS] ID`: an argument that must be there stands bare."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


def root(lang: str) -> VerbGroup:
    """The program: its own options, and every verb."""
    params = [*_common_options(), *_options_of(_version)]
    for param in params:
        param.help = help_in(param.help, lang)
    epilog = text("environment", lang)
    return VerbGroup("", lang, name="hubgov", help=text("about", lang), params=params, epilog=epilog)


def command(name: str, lang: str) -> Any:
    """The command of a verb, with help in a language; its module is loaded."""
    verb = VERBS[name]
    module, _, function = verb.target.partition(":")
    made = _typer_command(getattr(importlib.import_module(module), function))
    made.lang = lang
    made.name = name.split(" ")[-1]
    made.help = (" " if lang == "en" else "").join(filter(None, (verb_help(name, lang), verb_more(name, lang))))
    made.epilog = f"{text('example', lang)} {verb.example}"
    made.context_settings = _WIDTH
    for param in made.params:
        _in_digits(param)
    made.params += _common_options()
    for param in made.params:
        param.help = help_in(param.help, lang)
    return made


def _in_digits(param: Any) -> None:
    """Read the whole numbers of this parameter as people write them, not as Python does: `1_0` is none."""
    annotation, process = param.type_descriptor.annotation, param.process_value
    if int not in (annotation, *get_args(annotation)):
        return

    def checked(ctx: Any, value: Any) -> Any:
        if isinstance(value, str) and not re.fullmatch(r"[+-]?[0-9]{1,18}", value):
            message = "Input should be a valid integer, unable to parse string as an integer"
            raise typer.BadParameter(message, ctx=ctx, param=param)
        return process(ctx, value)

    param.process_value = checked


def _typer_command(function: Callable[..., Any]) -> Any:
    app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    app.command(cls=VerbCommand)(function)
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
    return [
        _Noted(
            param_decls=[option.name, *option.opts],
            type_descriptor=option.type_descriptor,
            default=option.default,
            is_flag=option.is_flag,
            help=option.help,
            expose_value=False,
        )
        for option in _typer_command(function).params
    ]


def _common_options() -> list[Any]:
    return _options_of(_common)


class _Noted(TyperOption):
    """An option that is noted on the screen, where the verb finds it. It may stand before the verb or after.

    One that isn't given is left alone: typer would load pydantic to find that nothing is no text.
    """

    def process_value(self, ctx: Any, value: Any) -> Any:
        if not value:
            return value
        value = super().process_value(ctx, value)
        if self.name == "version":
            typer.echo(f"hubgov {__version__}")
            raise typer.Exit
        setattr(ctx.find_root().obj, self.name, value)
        return value
