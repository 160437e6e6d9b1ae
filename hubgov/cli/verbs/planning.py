"""`hubgov plan`: what would happen to a request now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hubgov.cli import decisions, options
from hubgov.cli.running import DENIED, DONE

KINDS = ("notebook", "training", "inference", "batch_inference", "evaluation", "data")


def plan(
    ctx: typer.Context,
    queue: Annotated[str, typer.Option("--queue", metavar="NAME", help="The queue that would take it.")],
    gpus: Annotated[str, typer.Option("--gpus", metavar="N[,N…]", help="How many, or the counts that would do.")],
    project: Annotated[
        str | None,
        typer.Option("--project", metavar="NAME", help="On the account of this project; else your first."),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", metavar="KIND", help=f"One of {', '.join(KINDS)}; else the queue's only one."),
    ] = None,
    flavor: Annotated[
        list[str] | None, typer.Option("--flavor", metavar="NAME", help="A card type; may be given more than once.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="SIZE", help="Memory of each device, such as 20GiB.")
    ] = None,
    cpus: Annotated[int | None, typer.Option("--cpus", metavar="N", min=0, max=10**6, help="CPUs in all.")] = None,
    ram: Annotated[
        str | None, typer.Option("--ram", metavar="SIZE", help="Main memory in all, such as 64GiB.")
    ] = None,
    need: Annotated[
        list[str] | None,
        typer.Option("--need", metavar="K=V", help="A label that the node must have, such as net=ib."),
    ] = None,
    lease: Annotated[str | None, typer.Option("--lease", metavar="TIME", help="For how long, such as 4h.")] = None,
    retry: Annotated[
        int | None, typer.Option("--retry", metavar="N", min=0, max=1000, help="Further tries after a failure.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="What to call it.")] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The model that it works on.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="K=V", help="A label for it; may be given more than once."),
    ] = None,
    after: Annotated[
        list[str] | None, typer.Option("--after", metavar="ID", help="Only once this one has ended.")
    ] = None,
    priority: Annotated[
        int | None, typer.Option("--priority", metavar="N", help="Higher is more urgent; within the queue's range.")
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option("--nodes", metavar="N|any", help="Equal shards on so many nodes, or whatever fits; else one."),
    ] = None,
    non_preemptible: Annotated[
        bool, typer.Option("--non-preemptible", help="Never to be reclaimed, where the queue allows it.")
    ] = False,
    override: Annotated[
        str | None,
        typer.Option("--override", metavar="REASON", help="Past a guard where the queue allows it, and why."),
    ] = None,
    start_deadline: Annotated[
        str | None,
        typer.Option(
            "--start-deadline",
            metavar="TIME",
            help="Given up when it does not run within this time of being granted.",
        ),
    ] = None,
) -> int:
    """The Decision that this request would get now, with its cost. 3 when it would be refused."""
    if kind is not None:
        options.one_of("--kind", kind, KINDS)
    body = options.sent(
        queue=queue,
        gpus=options.gpus(gpus),
        project=project,
        kind=kind,
        flavor=flavor,
        memory=options.memory("--memory", memory) if memory is not None else None,
        cpus=cpus,
        ram=options.memory("--ram", ram) if ram is not None else None,
        need=options.pairs("--need", need or ()),
        lease=options.seconds("--lease", lease) if lease is not None else None,
        retry=retry,
        name=name,
        model=model,
        labels=options.pairs("--label", label or ()),
        after=after,
        priority=priority,
        nodes=_nodes(nodes),
        preemptible=False if non_preemptible else None,
        override=override,
        start_deadline=options.seconds("--start-deadline", start_deadline) if start_deadline is not None else None,
    )
    return _show(ctx, body)


def _show(ctx: typer.Context, body: Mapping[str, Any]) -> int:
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
