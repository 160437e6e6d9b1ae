"""The spawn form: plain HTML that works without scripts, with every name in it escaped.

Profiles are radio cards with what is free, how long one waits and what it costs; the time is a row of radio
buttons. What a choice comes to is written out beside them, for each pair of profile and time, and shown by
the style sheet alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from hubgov import errors, texts
from hubgov.wire import format_span
from hubgov_spawner import choices, options, page_texts, refusals
from hubgov_spawner.choices import Choice
from hubgov_spawner.client import ServiceError
from hubgov_spawner.page_texts import clock, money, number, say

SHOWN_REFUSED = 3
"""How many profiles that aren't possible are shown, each with its rule."""
FORM_SECONDS = 3.0

_STYLE = """
.hubgov-card { display: block; border: 1px solid var(--bs-border-color); border-radius: .5rem;
  padding: .5rem .75rem; margin-bottom: .5rem; }
.hubgov-card:has(input:checked) { border-color: var(--bs-primary); box-shadow: inset 3px 0 0 var(--bs-primary); }
.hubgov-card small { display: block; color: var(--bs-secondary-color); margin-left: 1.4rem; }
.hubgov-card.off { opacity: .75; }
.hubgov-times label { margin-right: 1rem; }
.hubgov-times input[type=text] { width: 5rem; display: inline-block; }
"""


async def options_form(spawner: Any) -> str:
    """The form for this spawner's user, filled in as he chose last; after a refusal, as he chose then."""
    posted = choices.submitted()
    choice = posted or choices.kept(spawner.user.name, spawner.name)
    lang = (posted.lang if posted else "") or page_texts.language(spawner.handler)
    groups = [group.name for group in spawner.user.groups]
    client = spawner.hubgov_client(lang)
    try:
        found = await client.spawn_options(spawner.user.name, groups, spawner.name, within=FORM_SECONDS)
    except ServiceError as error:
        spawner.log.warning("Form of %s: the governing service: %s", spawner.user.name, error)
        return notice(say("form_offline", lang))
    # Where the form is shown in answer to a form, the hub's page tells the reason itself.
    reason = "" if posted else choices.reason_once(spawner.user.name, spawner.name)
    return form(found, lang, choice, reason=reason)


def options_from_form(form_data: Mapping[str, Sequence[Any]], spawner: Any = None) -> dict[str, Any]:
    """The options of a submitted form; SpawnException, in the form's language, when they can't be read."""
    choices.submit(form_data)
    shown_in = form_data.get(options.LANGUAGE_FIELD) or ("",)
    lang = shown_in[0] if shown_in[0] in texts.LANGUAGES else page_texts.language(getattr(spawner, "handler", None))
    try:
        return options.from_form(form_data)
    except errors.Invalid as error:
        raise refusals.invalid(error.message, error.hint, lang) from error


def notice(text: str) -> str:
    """The form's place when there is nothing to choose."""
    return str(Markup('<p class="alert alert-warning" role="status">{}</p>').format(text))


def form(found: Mapping[str, Any], lang: str, choice: Choice | None = None, *, reason: str = "") -> str:
    """The form of an answer of GET /spawn-options, filled in as `choice` says. `reason` is HTML, shown on top."""
    profiles, projects = found.get("profiles", ()), found.get("projects", ())
    if not projects:
        return notice(say("empty", lang))
    if not profiles:
        return notice(say("no_profiles", lang))
    possible = [p for p in profiles if p["decision"]["outcome"] != "refused"]
    refused = [p for p in profiles if p["decision"]["outcome"] == "refused"]
    last, wanted = found.get("last") or {}, choice.fields if choice else {}
    # One that was chosen stays so though it isn't possible: another project or time may be what it takes.
    asked = next((p for p in refused if p["name"] == wanted.get("profile")), None)
    if asked is not None:
        possible.append(asked)
        refused.remove(asked)
    names = [p["name"] for p in possible]
    preferred = [name for name in (wanted.get("profile"), last.get("profile"), *names) if name in names]
    chosen = preferred[0] if preferred else None
    cards = [_card(found, profile, profile["name"] == chosen, lang) for profile in possible]
    cards += [_card(found, profile, None, lang) for profile in refused[:SHOWN_REFUSED]]
    hidden = len(refused) - SHOWN_REFUSED
    parts = [
        Markup("<style>{}{}</style>").format(Markup(_STYLE), _rules(possible)),
        _alert(reason) if reason else Markup(),
        _simulated(lang) if found.get("simulated") else Markup(),
        _replaces(found["waiting"], lang) if found.get("waiting") else Markup(),
        _group(say("profile", lang), Markup().join(cards)),
        Markup("<p>{}</p>").format(say("more_refused", lang, n=hidden)) if hidden > 0 else Markup(),
        _group(say("time", lang), _times(possible, chosen, last, wanted, lang)),
        _projects(projects, wanted.get("project") or last.get("project"), lang),
        _panel(found, possible, lang),
        Markup('<input type="hidden" name="{}" value="{}">').format(options.LANGUAGE_FIELD, lang),
    ]
    return str(Markup('<div class="hubgov-form" lang="{}">{}</div>').format(lang, Markup().join(parts)))


def _alert(html: str) -> Markup:
    return Markup('<div class="alert alert-danger" role="alert">{}</div>').format(Markup(html))


def _replaces(waiting: str, lang: str) -> Markup:
    return Markup('<p class="alert alert-info" role="status">{}</p>').format(say("replaces", lang, id=waiting))


def _group(title: str, content: Markup) -> Markup:
    whole = Markup('<fieldset class="mb-3"><legend class="fs-5">{}</legend>{}</fieldset>')
    return whole.format(title, content)


def _simulated(lang: str) -> Markup:
    text = Markup('<p><strong class="hubgov-simulated">{}</strong> {}</p>')
    return text.format(say("simulated", lang), say("simulated_why", lang))


# --- profiles ------------------------------------------------------------------------------------------


def _card(found: Mapping[str, Any], profile: Mapping[str, Any], chosen: bool | None, lang: str) -> Markup:
    """A profile to choose, `chosen` or not; None for one that can't be, with the rule that says so."""
    facts = [_devices(profile, lang)]
    if profile.get("total"):
        facts.append(say("free", lang, free=profile["free"], total=profile["total"]))
    facts.append(_wait(found, profile["decision"], lang))
    if profile.get("price_per_hour"):
        price = money(profile["price_per_hour"], float(profile["gpus"]))
        facts.append(say("per_hour", lang, price=price))
    if profile.get("lease_max_seconds"):
        facts.append(say("at_most", lang, span=format_span(profile["lease_max_seconds"] * 1000)))
    why = profile["decision"]["headline"] if profile["decision"]["outcome"] != "granted" else ""
    card = Markup(
        '<label class="hubgov-card{}"><input type="radio" name="profile" value="{}"{} required> '
        "<strong>{}</strong><small>{}</small>{}</label>"
    )
    return card.format(
        " off" if profile["decision"]["outcome"] == "refused" else "",
        profile["name"],
        Markup(" disabled") if chosen is None else Markup(" checked") if chosen else Markup(),
        profile["title"],
        " · ".join(facts),
        Markup("<small>{}</small>").format(why) if why else Markup(),
    )


def _devices(profile: Mapping[str, Any], lang: str) -> str:
    if not profile["gpus"]:
        return say("no_gpu", lang)
    flavor = profile.get("flavor") or ", ".join(profile.get("flavors") or ()) or say("any_card", lang)
    text = say("cards", lang, gpus=number(profile["gpus"]), flavor=flavor)
    mib = profile.get("memory_mib")
    if mib:
        size = f"{mib // 1024} GiB" if mib % 1024 == 0 else f"{mib} MiB"
        text += " · " + say("memory", lang, size=size)
    return text


def _wait(found: Mapping[str, Any], decision: Mapping[str, Any], lang: str) -> str:
    if decision["outcome"] == "granted":
        return say("starts_now", lang)
    if decision["outcome"] == "refused":
        return say("not_possible", lang)
    if decision.get("latest_start"):
        at = clock(decision["latest_start"], found.get("timezone") or "UTC", now=found.get("now"))
        return say("waits_until", lang, at=at)
    return say("waits", lang)


# --- time and project ----------------------------------------------------------------------------------


def _hours(profiles: Sequence[Mapping[str, Any]]) -> list[int]:
    """The times on offer: no longer than the longest that a profile may have."""
    limits = [p.get("lease_max_seconds") for p in profiles]
    longest = max((limit for limit in limits if limit), default=0)
    return [h for h in options.HOURS if None in limits or h * 3600 <= longest]


def _times(
    profiles: Sequence[Mapping[str, Any]],
    chosen: str | None,
    last: Mapping[str, Any],
    wanted: Mapping[str, str],
    lang: str,
) -> Markup:
    hours = _hours(profiles)
    profile = next((p for p in profiles if p["name"] == chosen), None)
    picked, typed = _picked(wanted, hours) or _usual(profile, last, hours)
    button = Markup('<label><input type="radio" name="hours" value="{}"{}> {}</label>')
    checked = Markup(" checked")
    parts = [button.format(h, checked if picked == str(h) else Markup(), say("hours", lang, n=h)) for h in hours]
    parts.append(button.format("custom", checked if picked == "custom" else Markup(), say("custom", lang)))
    minutes = Markup(
        '<label><input type="text" name="minutes" inputmode="numeric" pattern="[0-9]*" maxlength="6" '
        'class="form-control form-control-sm" value="{}"> {}</label>'
    )
    parts.append(minutes.format(typed, say("minutes", lang)))
    return Markup('<div class="hubgov-times">{}</div>').format(Markup().join(parts))


def _picked(wanted: Mapping[str, str], hours: Sequence[int]) -> tuple[str, str] | None:
    """(button, minutes) as they were submitted, however wrong; None if no time was. A hidden form sends seconds."""
    if wanted.get("hours") == "custom":
        return "custom", wanted.get("minutes", "")
    if wanted.get("hours", "").isdecimal():
        return _shown(int(wanted["hours"]) * 3600, hours)
    return _shown(int(wanted["lease"]), hours) if wanted.get("lease", "").isdecimal() else None


def _usual(profile: Mapping[str, Any] | None, last: Mapping[str, Any], hours: Sequence[int]) -> tuple[str, str]:
    """(button, minutes) of the last time, else of the profile's usual one, no longer than it allows."""
    seconds = last.get("lease_seconds") or (profile.get("lease_default_seconds") if profile else None) or 3600
    if profile and profile.get("lease_max_seconds"):
        seconds = min(seconds, profile["lease_max_seconds"])
    return _shown(seconds, hours)


def _shown(seconds: int, hours: Sequence[int]) -> tuple[str, str]:
    """(button, minutes) for a time: a button of its own if there is one, else the minutes typed in."""
    if seconds in [h * 3600 for h in hours]:
        return str(seconds // 3600), ""
    return "custom", str(seconds // 60)


def _projects(projects: Sequence[Mapping[str, Any]], last: str | None, lang: str) -> Markup:
    if len(projects) == 1:
        return Markup('<input type="hidden" name="project" value="{}">').format(projects[0]["name"])
    choice = Markup('<option value="{0}"{1}>{0} ({2})</option>')
    choices = [
        choice.format(p["name"], Markup(" selected") if p["name"] == last else Markup(), p["team"])
        for p in projects
    ]
    field = Markup('<select name="project" aria-label="{}" class="form-select w-auto">{}</select>')
    return _group(say("project", lang), field.format(say("project", lang), Markup().join(choices)))


# --- what it comes to ----------------------------------------------------------------------------------


def _panel(found: Mapping[str, Any], profiles: Sequence[Mapping[str, Any]], lang: str) -> Markup:
    """What each choice comes to, and what of the quota is used."""
    lines = []
    for index, profile in enumerate(profiles):
        for hours in _hours(profiles):
            line = Markup('<p data-sum="{}-{}">{}</p>')
            lines.append(line.format(index, hours, _sum(profile, hours, lang)))
        text = f"{profile['title']}: {_rate(profile, lang)}"
        lines.append(Markup('<p data-sum="{}-custom">{}</p>').format(index, text))
        if profile.get("own"):
            own = say("you", lang, own=profile["own"])
            lines.append(Markup('<p data-sum="{}">{}</p>').format(index, own))
    quota = [_quota(row, lang) for row in found.get("quota", ())]
    panel = Markup('<aside class="alert alert-secondary hubgov-sums"><h2 class="fs-6">{}</h2>{}{}</aside>')
    return panel.format(say("this_request", lang), Markup().join(lines), Markup().join(quota))


def _sum(profile: Mapping[str, Any], hours: int, lang: str) -> str:
    longest = profile.get("lease_max_seconds")
    if longest and hours * 3600 > longest:
        span = format_span(longest * 1000)
        return f"{profile['title']}: {say('too_long', lang, span=span, queue=profile['queue'])}"
    gpus = float(profile["gpus"])
    if not gpus:
        return f"{profile['title']}: {say('hours', lang, n=hours)}, {say('no_charge', lang)}"
    facts = {"gpus": number(gpus), "span": say("hours", lang, n=hours), "total": number(gpus * hours)}
    return f"{profile['title']}: {say('sum', lang, **facts)}, {money(profile.get('price_per_hour'), gpus * hours)}"


def _rate(profile: Mapping[str, Any], lang: str) -> str:
    if not profile["gpus"]:
        return say("no_charge", lang)
    return say("per_hour", lang, price=money(profile.get("price_per_hour"), float(profile["gpus"])))


def _quota(row: Mapping[str, Any], lang: str) -> Markup:
    names = ("team", "guaranteed", "used", "borrowed", "flavor", "pool")
    return Markup("<p>{}</p>").format(say("team_quota", lang, **{name: row.get(name) for name in names}))


def _rules(profiles: Sequence[Mapping[str, Any]]) -> Markup:
    """Style rules that show the line of the chosen profile and time only; without :has() all are shown."""
    rules = [".hubgov-sums [data-sum] { display: none; }"]
    for index in range(len(profiles)):
        # The place among the enabled radio buttons, not the name: a name may hold anything.
        picked = f".hubgov-form:has(.hubgov-card:nth-of-type({index + 1}) input:checked)"
        rules.append(f'{picked} [data-sum="{index}"] {{ display: block; }}')
        for time in (*_hours(profiles), "custom"):
            timed = f'{picked}:has(input[name=hours][value="{time}"]:checked)'
            rules.append(f'{timed} [data-sum="{index}-{time}"] {{ display: block; }}')
    return Markup("@supports selector(:has(*)) {{ {} }}").format(Markup("\n".join(rules)))
