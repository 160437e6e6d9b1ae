"""`hubgov submit` and `hubgov logs`: jobs, and what they write."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hubgov import wire
from hubgov.cli import options
from hubgov.cli import request_flags as flags
from hubgov.cli.log_text import TerminalText
from hubgov.cli.running import DONE, FAILED, WAITING
from hubgov.cli.screen import Screen
from hubgov.client.job import Job
from hubgov.texts import STATES, word

KINDS = ("training", "batch_inference", "evaluation", "data")
EVER_SECONDS = 10 * 365 * 24 * 3600


def submit(
    ctx: typer.Context,
    queue: flags.Queue,
    gpus: flags.Gpus,
    command: Annotated[list[str], typer.Argument(metavar="CMD…", help="The command and its arguments, after --.")],
    project: flags.Project = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", metavar="KIND", help=f"One of {', '.join(KINDS)}; else the queue's only one."),
    ] = None,
    cwd: Annotated[
        str | None, typer.Option("--cwd", metavar="DIR", help="The folder of your home to run in; else the home.")
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="K=V", help="A variable for the command; may be given more than once."),
    ] = None,
    flavor: flags.Flavor = None,
    memory: flags.Memory = None,
    cpus: flags.Cpus = None,
    ram: flags.Ram = None,
    need: flags.Need = None,
    lease: flags.Lease = None,
    retry: flags.Retry = None,
    name: flags.Name = None,
    model: flags.Model = None,
    label: flags.Label = None,
    after: flags.After = None,
    priority: flags.Priority = None,
    non_preemptible: flags.NonPreemptible = False,
    override: flags.Override = None,
    start_deadline: flags.StartDeadline = None,
    wait: Annotated[
        str | None, typer.Option("--wait", metavar="[TIME]", help="Wait until it is over, at most so long.")
    ] = None,
) -> int:
    """Take a command in line. With --wait: 1 when it failed, 4 when it isn't over after that time."""
    screen = options.screen_of(ctx)
    if kind is not None:
        options.one_of("--kind", kind, KINDS)
    seconds = EVER_SECONDS if not wait else options.seconds("--wait", wait)
    body = flags.body(
        queue=queue, gpus=gpus, project=project, kind=kind, flavor=flavor, memory=memory, cpus=cpus, ram=ram,
        need=need, lease=lease, retry=retry, name=name, model=model, label=label, after=after, priority=priority,
        non_preemptible=non_preemptible, override=override, start_deadline=start_deadline,
        command=command, cwd=cwd, env=options.pairs("--env", env or (), empty=True),
    )  # fmt: skip
    client = options.client_of(ctx)
    job = client.submit(body)
    if wait is None:
        _show(screen, job, client.document)
        return DONE
    if not screen.json:
        _show(screen, job, client.document)
    found = job.wait(seconds)
    if screen.json:
        screen.document(client.document)
    if found.state not in wire.FINAL_STATES:
        span = wire.format_span(seconds * 1000)
        message = screen.text("not_over", id=found.id, span=span, why=found.headline or found.state)
        screen.complain(message, screen.text("hint_logs", id=found.id))
        return WAITING
    screen.done(_outcome(screen, found))
    return DONE if found.state == "succeeded" else FAILED


def _show(screen: Screen, job: Job, document: object) -> None:
    if screen.json:
        screen.document(document)
    elif screen.quiet:
        screen.line(job.id)
    else:
        headline = job.workload.headline or word(STATES, job.workload.state, screen.lang)
        screen.done(screen.text("submitted", id=job.id, headline=headline))


def _outcome(screen: Screen, found: wire.Workload) -> str:
    told = found.note or found.headline
    return f"{screen.text('cancelled', id=found.id, state=word(STATES, found.state, screen.lang))}. {told}"


def logs(
    ctx: typer.Context,
    workload_id: Annotated[str, typer.Argument(metavar="ID", help="A workload's id, such as nb-7.")],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until it is over, over all of its attempts.")
    ] = False,
    attempt: Annotated[
        int | None, typer.Option("--attempt", metavar="N", min=1, max=10**9, help="Of this attempt; else the last.")
    ] = None,
) -> int:
    """What a job wrote, on both of its outputs."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    job = client.job(workload_id)
    shown, text = attempt, TerminalText()
    try:
        for piece in job.log_pieces(follow=follow, attempt=attempt):
            if screen.json:
                screen.document(client.document, compact=True)
                continue
            if shown is not None and piece.attempt != shown:
                _write(text.end() if screen.tty else "")
                screen.complain(screen.text("next_attempt", id=job.id, attempt=piece.attempt))
            shown = piece.attempt
            if piece.left_out:
                _write(text.end() if screen.tty else "")
                why = f": {piece.trouble}" if piece.trouble else ""
                screen.complain(screen.text("log_gap", bytes=piece.left_out, why=why))
            _write(text.shown(piece.text) if screen.tty else piece.text)
    except KeyboardInterrupt:
        return DONE
    finally:
        _write(text.end() if screen.tty else "")
    return DONE


def _write(text: str) -> None:
    if text:
        sys.stdout.write(text)
        sys.stdout.flush()
