"""The flags of a request, the same for `plan` and `submit`: what each is called, and the body they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hubgov.cli import options

Queue = Annotated[str, typer.Option("--queue", metavar="NAME", help="The queue that would take it.")]
Gpus = Annotated[str, typer.Option("--gpus", metavar="N[,N…]", help="How many, or the counts that would do.")]
Project = Annotated[
    str | None,
    typer.Option("--project", metavar="NAME", help="On the account of this project; else your first."),
]
Flavor = Annotated[
    list[str] | None, typer.Option("--flavor", metavar="NAME", help="A card type; may be given more than once.")
]
Memory = Annotated[
    str | None, typer.Option("--memory", metavar="SIZE", help="Memory of each device, such as 20GiB.")
]
Cpus = Annotated[int | None, typer.Option("--cpus", metavar="N", min=0, max=10**6, help="CPUs in all.")]
Ram = Annotated[str | None, typer.Option("--ram", metavar="SIZE", help="Main memory in all, such as 64GiB.")]
Need = Annotated[
    list[str] | None,
    typer.Option("--need", metavar="K=V", help="A label that the node must have, such as net=ib."),
]
Lease = Annotated[str | None, typer.Option("--lease", metavar="TIME", help="For how long, such as 4h.")]
Retry = Annotated[
    int | None, typer.Option("--retry", metavar="N", min=0, max=1000, help="Further tries after a failure.")
]
Name = Annotated[str | None, typer.Option("--name", metavar="NAME", help="What to call it.")]
Model = Annotated[str | None, typer.Option("--model", metavar="NAME", help="The model that it works on.")]
Label = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="K=V", help="A label for it; may be given more than once."),
]
After = Annotated[list[str] | None, typer.Option("--after", metavar="ID", help="Only once this one has ended.")]
Priority = Annotated[
    int | None, typer.Option("--priority", metavar="N", help="Higher is more urgent; within the queue's range.")
]
NonPreemptible = Annotated[
    bool, typer.Option("--non-preemptible", help="Never to be reclaimed, where the queue allows it.")
]
Override = Annotated[
    str | None,
    typer.Option("--override", metavar="REASON", help="Past a guard where the queue allows it, and why."),
]
StartDeadline = Annotated[
    str | None,
    typer.Option(
        "--start-deadline",
        metavar="TIME",
        help="Given up when it does not run within this time of being granted.",
    ),
]


def body(
    *,
    queue: str,
    gpus: str,
    project: str | None,
    kind: str | None,
    flavor: list[str] | None,
    memory: str | None,
    cpus: int | None,
    ram: str | None,
    need: list[str] | None,
    lease: str | None,
    retry: int | None,
    name: str | None,
    model: str | None,
    label: list[str] | None,
    after: list[str] | None,
    priority: int | None,
    non_preemptible: bool,
    override: str | None,
    start_deadline: str | None,
    **more: Any,
) -> Mapping[str, Any]:
    """The request as it is sent; Usage for a value that isn't one."""
    return options.sent(
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
        preemptible=False if non_preemptible else None,
        override=override,
        start_deadline=options.seconds("--start-deadline", start_deadline) if start_deadline is not None else None,
        **more,
    )
