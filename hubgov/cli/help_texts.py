"""The help of options and arguments, and what is wrong with a call: what the catalogue translates."""

from __future__ import annotations

from hubgov.phrases import Phrases

HELP: tuple[str, ...] = (
    # of every verb
    "Print the document of the REST interface.",
    "Language of all texts.",
    "No colours; also by NO_COLOR.",
    "Only what was asked for, no remarks.",
    "Print the version.",
    "Show this message and exit.",
    # workloads
    "A workload's id, such as nb-7.",
    "Only these: {states}.",
    "Only of this person.",
    "Only of this team.",
    "Only in this queue.",
    "Only in this pool.",
    "Only of this workload.",
    "Which of {columns}, in what order.",
    "At most so many rows.",
    "Draw again whenever something changes.",
    "The file to write; must not be there.",
    "A group of the hub that gets a team.",
    "Time zone; the machine's own by default.",
    "Simulated devices even where there are real ones.",
    "Wait so long until it runs or is over.",
    "A request's id, such as nb-7-x1.",
    "A word to who asked.",
    "Less than was asked for.",
    "Why; who asked reads it.",
    "How much longer, such as 2h.",
    "Why; it is shown to others.",
    "Why; it goes into the audit.",
    "Why; everybody who waits reads it.",
    "At once, without the time to save.",
    "How long a running notebook still has.",
    "Only what this one did.",
    "Only this event.",
    "Only from this day or instant on.",
    "Only up to this day or instant, without it.",
    # cost
    "Of team, project, user, queue, kind, flavor, day.",
    "From this day or instant on; else this month's first.",
    "Up to this day or instant, without it; else now.",
    "How it is written.",
    "With usage of simulated devices.",
    # plan
    "The queue that would take it.",
    "How many, or the counts that would do.",
    "On the account of this project; else your first.",
    "One of {kinds}; else the queue's only one.",
    "A card type; may be given more than once.",
    "Memory of each device, such as 20GiB.",
    "CPUs in all.",
    "Main memory in all, such as 64GiB.",
    "A label that the node must have, such as net=ib.",
    "For how long, such as 4h.",
    "Further tries after a failure.",
    "What to call it.",
    "The model that it works on.",
    "A label for it; may be given more than once.",
    "Only once this one has ended.",
    "Higher is more urgent; within the queue's range.",
    "Equal shards on so many nodes, or whatever fits; else one.",
    "Never to be reclaimed, where the queue allows it.",
    "Past a guard where the queue allows it, and why.",
    "Given up when it does not run within this time of being granted.",
    # submit and logs
    "The command and its arguments, after --.",
    "The folder of your home to run in; else the home.",
    "A variable for the command; may be given more than once.",
    "Wait until it is over, at most so long.",
    "Go on until it is over, over all of its attempts.",
    "Of this attempt; else the last.",
    # the place
    "A queue's name.",
    "A node's name.",
    "Refuse new work too.",
    "Also the daily run, not only people's acts.",
    "A policy file; - for stdin.",
    "Without asking.",
    "The version that the edit began with; else the present one.",
    "Only the number of the version in force.",
    # login
    "Of the hub or its service; else HUBGOV_URL, else this machine's hub.",
    "Your name at the hub; else the one on this machine.",
    "Read the password from stdin.",
    "For how many days the token is good.",
    # demo
    "JupyterHub with hubgov on this machine, in one command; again to bring back what was killed.",
    "show this help message and exit",
    "port of the hub's page (8000)",
    "folder of everything that it keeps",
    "let policy time pass {rate} times as fast; for a tour",
    "language of what is printed here",
    "simulated devices even where there are real ones",
    "policy to begin with, instead of the sample cut out of this box",
    "time zone of the sample policy; the machine's own by default",
    "open no browser",
    "new passwords for the four sign-ins",
    "stop everything",
)

USAGE: tuple[str, ...] = (
    "Missing option '{name}'.",
    "Missing argument '{name}'.",
    "No such option: {name}",
    "No such option '{name}'.",
    "No such option: {name} Did you mean {near}?",
    "No such option '{name}'. Did you mean {near}?",
    "Option '{name}' requires an argument.",
    "Option '{name}' does not take a value.",
    "Got unexpected extra argument(s) ({what})",
    "Invalid value for '{name}': {what_}",
    "Input should be greater than or equal to {least}",
    "Input should be less than or equal to {most}",
    "Input should be a valid integer, unable to parse string as an integer",
    "{value} is not one of {words}.",
)
"""What is wrong with how a verb was called, as the parser says it."""

_HELP, _USAGE = Phrases("cli.HELP", HELP), Phrases("cli.USAGE", USAGE)


def help_in(english: str | None, lang: str) -> str | None:
    """The help of an option in a language; as it is where there are no words for it."""
    return _HELP.say(english, lang) or english if english else english


def usage_in(english: str, lang: str) -> str:
    """What is wrong with a call in a language; as the parser says it where there are no words for it."""
    english = english.replace("Value error, ", "")
    return _USAGE.say(english, lang) or english
