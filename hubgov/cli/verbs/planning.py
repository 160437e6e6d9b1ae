"""`hubgov plan`: what would happen to a request now."""

from __future__ import annotations

from typing import Annotated

import typer

from hubgov.cli import decisions, options
from hubgov.cli import request_flags as flags
from hubgov.cli.running import DENIED, DONE

KINDS = ("notebook", "training", "inference", "batch_inference", "evaluation", "data")


def plan(
    ctx: typer.Context,
    queue: flags.Queue,
    gpus: flags.Gpus,
    project: flags.Project = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", metavar="KIND", help=f"One of {', '.join(KINDS)}; else the queue's only one."),
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
    nodes: Annotated[
        str | None,
        typer.Option("--nodes", metavar="N|any", help="Equal shards on so many nodes, or whatever fits; else one."),
    ] = None,
    non_preemptible: flags.NonPreemptible = False,
    override: flags.Override = None,
    start_deadline: flags.StartDeadline = None,
) -> int:
    """The Decision that this request would get now, with its cost. 3 when it would be refused."""
    if kind is not None:
        options.one_of("--kind", kind, KINDS)
    body = flags.body(
        queue=queue, gpus=gpus, project=project, kind=kind, flavor=flavor, memory=memory, cpus=cpus, ram=ram,
        need=need, lease=lease, retry=retry, name=name, model=model, label=label, after=after, priority=priority,
        non_preemptible=non_preemptible, override=override, start_deadline=start_deadline, nodes=_nodes(nodes),
    )  # fmt: skip
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    decision = client.plan(body)
    decisions.show(screen, decision, client.document)
    return DENIED if decision.outcome == "refused" else DONE


def _nodes(given: str | None) -> int | str | None:
    if given is None or given == "any":
        return given
    if not (given.isascii() and given.isdigit() and 1 <= int(given[:7]) <= 10**5 and len(given) <= 6):
        raise options.Usage("bad_number", option="--nodes", value=given[:40], least=1, most=10**5)
    return int(given)
