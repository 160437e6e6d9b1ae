"""What may be sent: one model a body, with its limits. The OpenAPI document is made from these."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from hubgov import wire
from hubgov.control.submit import Draft
from hubgov.core.model import Request, WorkloadId

MOST = 10**15
"""What is a number at all: above, it is malformed; below, the policy's bounds refuse it with their Decision."""
MOST_ARGUMENT_BYTES = 64_000
"""Of a command, and of the variables of a job: each has room in the record, and both in what the kernel takes."""
OURS = re.compile(r"HUBGOV_.*|CUDA_VISIBLE_DEVICES|ASCEND_RT_VISIBLE_DEVICES|HOME|USER|LOGNAME")
"""Variables that every job gets from hubgov. All others are its owner's to set: they reach only his processes."""
_SPARE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]")


def _visible(text: str) -> str:
    """A name that one can see and type: no control or invisible characters, no blanks at the ends."""
    if _SPARE.search(text) or text != text.strip():
        raise PydanticCustomError("invalid", "must have visible characters only, and no blanks at the ends")
    return text


def _milli(value: Any) -> Any:
    """A number of GPUs in thousandths, exactly; a list of allowed counts alike."""
    if isinstance(value, list):
        if not 1 <= len(value) <= 64:
            raise PydanticCustomError("invalid", "between 1 and 64 allowed counts")
        return tuple(_one_milli(item) for item in value)
    return (_one_milli(value),)


def _one_milli(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise PydanticCustomError("invalid", "must be a number of GPUs such as 1, 0.25, or a list of them")
    if not 0 <= value <= MOST:
        raise PydanticCustomError("invalid", "must be a number of GPUs, 0 to 1000000")
    exact = Decimal(value)
    if _digits_beyond_thousandths(exact):
        raise PydanticCustomError("invalid", "at most three decimals")
    return int(exact * 1000) if exact else 0


def _digits_beyond_thousandths(value: Decimal) -> bool:
    """Told from the digits as sent: arithmetic would round 0.2500…01, and 1e-999999 away."""
    _, digits, exponent = value.as_tuple()
    beyond = -int(exponent) - 3
    return beyond > 0 and any(digits[max(0, len(digits) - beyond) :])


def _span(value: Any) -> Any:
    """Milliseconds of `90s`, `4h`, `PT1H`, or of a whole number of seconds."""
    if isinstance(value, str):
        return _sum(value, wire.parse_span, r"(\d+)([DHMS])", 1000 * MOST)
    if isinstance(value, bool) or not isinstance(value, int):
        raise PydanticCustomError("invalid", "must be a duration such as 90s, 30m, 4h")
    if not 0 <= value <= MOST:
        raise PydanticCustomError("invalid", "between 0 and ten years")
    return value * 1000


def _memory(value: Any) -> Any:
    if not isinstance(value, str):
        raise PydanticCustomError("invalid", "must be a size such as 20GiB")
    return _sum(value, wire.parse_memory, r"(\d+)([MGTP]iB)", MOST)


def _sum(text: str, parse: Callable[[str], int], part: str, most: int) -> int:
    """What `parse` reads, also beyond the bound that it has: there the policy's Decision says so."""
    try:
        return parse(text)
    except ValueError as error:
        found = _beyond(text, parse, part)
        if found is None or found > most:
            raise PydanticCustomError("invalid", "{why}", {"why": str(error)}) from None
        return found


def _beyond(text: str, parse: Callable[[str], int], part: str) -> int | None:
    """The sum of a text of the right form, part by part; None for another form: small numbers don't help there."""
    try:
        parse(re.sub(r"\d+", "1", text, flags=re.ASCII))
        parts = re.findall(part, text, re.ASCII | re.IGNORECASE)
        return sum(int(number) * parse(f"1{unit.lower() if len(unit) == 1 else unit}") for number, unit in parts)
    except ValueError:
        return None


def _flavors(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _nodes(value: Any) -> Any:
    return 0 if value == "any" else value


def _command(command: list[str]) -> list[str]:
    if command and not command[0]:
        raise PydanticCustomError("invalid", "the program's name is empty")
    return _not_too_much(command)


def _folder(cwd: str) -> str:
    if ".." in cwd.split("/"):
        raise PydanticCustomError("invalid", "must lie in your home: no .. in it")
    return cwd


def _variables(env: dict[str, str]) -> dict[str, str]:
    for name in env:
        if OURS.fullmatch(name):
            raise PydanticCustomError("invalid", "{name} is set by hubgov for every job", {"name": name})
    _not_too_much([*env, *env.values()])
    return env


def _not_too_much(texts: list[str]) -> list[str]:
    size = sum(len(text.encode()) + 1 for text in texts)
    if size > MOST_ARGUMENT_BYTES:
        raise PydanticCustomError(
            "above_maximum", "{size} bytes in all, of at most {most}", {"size": size, "most": MOST_ARGUMENT_BYTES}
        )
    return texts


Argument = Annotated[str, StringConstraints(max_length=8_000)]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=63), AfterValidator(_visible)]
Text = Annotated[str, StringConstraints(max_length=2000)]
_SPAN_SCHEMA: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0}]}
Span = Annotated[int, BeforeValidator(_span), Field(json_schema_extra=_SPAN_SCHEMA)]
Memory = Annotated[int, BeforeValidator(_memory), Field(json_schema_extra={"type": "string"})]
Seconds = Annotated[int, Field(strict=True, ge=1, le=MOST)]
Count = Annotated[int, Field(strict=True, ge=0, le=10**6)]
Age = Annotated[int, Field(strict=True, ge=0, le=MOST)]
Attempt = Annotated[int, Field(strict=True, ge=1, le=10**9)]


class Strict(BaseModel):
    """Unknown keys are errors, so that a typo never means something else."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class WorkloadBody(Strict):
    """A request; the same for POST /workloads and /plan. Only the spawner adds `user` and `server`."""

    queue: Name
    gpus: Annotated[
        tuple[int, ...],
        BeforeValidator(_milli),
        Field(json_schema_extra={"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]}),
    ]
    name: Name | None = None
    kind: Literal["notebook", "training", "inference", "batch_inference", "evaluation", "data"] | None = None
    project: Name | None = None
    team: Name | None = None
    flavor: Annotated[
        Annotated[list[Name], Field(max_length=32)] | None,
        BeforeValidator(_flavors),
        Field(json_schema_extra={"anyOf": [{"type": "string"}, {"type": "array"}, {"type": "null"}]}),
    ] = None
    memory: Memory | None = None
    cpus: Annotated[int, Field(strict=True, ge=0, le=MOST)] | None = None
    ram: Memory | None = None
    need: Annotated[dict[Name, Name], Field(max_length=32)] = Field(default_factory=dict)
    nodes: Annotated[
        int,
        BeforeValidator(_nodes),
        Field(ge=0, le=10**5, json_schema_extra={"anyOf": [{"type": "integer"}, {"const": "any"}]}),
    ] = 1
    priority: Annotated[int, Field(ge=-(10**6), le=10**6)] | None = None
    lease: Span | None = None
    retry: Count | None = None
    preemptible: bool = True
    override: Text | None = None
    start_deadline: Span | None = None
    after: Annotated[list[Name], Field(max_length=64)] = Field(default_factory=list)
    model: Name | None = None
    labels: Annotated[dict[Name, Name], Field(max_length=32)] = Field(default_factory=dict)
    command: Annotated[list[Argument], Field(max_length=256), AfterValidator(_command)] = Field(
        default_factory=list
    )
    cwd: Annotated[str, StringConstraints(max_length=1000), AfterValidator(_folder)] = ""
    env: Annotated[dict[Variable, Argument], Field(max_length=100), AfterValidator(_variables)] = Field(
        default_factory=dict
    )
    user: Name | None = None
    groups: Annotated[list[Name], Field(max_length=1000)] = Field(default_factory=list)
    server: Annotated[str, StringConstraints(max_length=63)] | None = None
    profile: Name | None = None
    resumes: Name | None = None

    def draft(self) -> Draft:
        """The request as the use cases take it."""
        return Draft(
            queue=self.queue,
            kind=self.kind,
            name=self.name,
            project=self.project,
            team=self.team,
            priority=self.priority,
            request=Request(
                milli_gpus=self.gpus,
                flavors=tuple(self.flavor or ()),
                memory_mib=self.memory,
                cpus=self.cpus,
                ram_mib=self.ram,
                need=self.need,
                nodes=self.nodes,
                lease_ms=self.lease,
                preemptible=self.preemptible,
                override=self.override,
                retry_max=self.retry,
                start_deadline_ms=self.start_deadline,
                after=tuple(WorkloadId(other) for other in self.after),
                model=self.model,
                labels=self.labels,
                server=self.server or "",
                profile=self.profile,
                resumes=WorkloadId(self.resumes) if self.resumes else None,
                command=tuple(self.command),
                cwd=self.cwd,
                env=self.env,
            ),
        )


class CancelBody(Strict):
    """Why, and whether without grace or with how much; another's work needs a reason."""

    reason: Text = ""
    now: bool = False
    grace_seconds: Annotated[int, Field(strict=True, ge=0, le=86_400)] | None = None


class ApprovalBody(Strict):
    """How much of it, if not all, and a word to who asked."""

    seconds: Seconds | None = None
    reason: Text = ""


class ExtensionBody(Strict):
    """By how long (or until when), and why where the queue asks for a reason."""

    by_seconds: Seconds | None = None
    until: Annotated[str, StringConstraints(max_length=40)] | None = None
    reason: Text = ""
    lease_version: Annotated[int, Field(ge=1, le=10**9)] | None = None


class AttemptBody(Strict):
    attempt: Attempt


class StoppingBody(AttemptBody):
    now: bool = False
    """Without the time to save."""


class ProcessBody(Strict):
    pid: Annotated[int, Field(ge=1, le=2**31)]
    start_ticks: Annotated[int, Field(ge=0, le=2**62)]
    boot_id: Annotated[str, StringConstraints(max_length=64)]


class ProcessesBody(Strict):
    attempt: Attempt
    main: ProcessBody
    init: ProcessBody | None = None


class ReadyBody(Strict):
    attempt: Attempt
    url: Annotated[str, StringConstraints(max_length=500)]


class EndedBody(Strict):
    attempt: Attempt
    code: Annotated[int, Field(ge=-(2**31), le=2**31)] | None = None
    signal: Annotated[int, Field(ge=0, le=128)] | None = None
    by_owner: bool = False


class DocumentBody(Strict):
    path: Annotated[str, StringConstraints(max_length=4096)]
    outcome: Annotated[str, StringConstraints(max_length=63)]
    bytes: Annotated[int, Field(ge=0, le=2**62)] = 0
    sha256: Annotated[str, StringConstraints(max_length=64)] = ""
    saved_at: Annotated[str, StringConstraints(max_length=40)] | None = None
    copy_: Annotated[Annotated[str, StringConstraints(max_length=4096)] | None, Field(alias="copy")] = None
    error: Text = ""


class KernelBody(Strict):
    id: Annotated[str, StringConstraints(max_length=100)]
    name: Annotated[str, StringConstraints(max_length=200)]
    path: Annotated[str, StringConstraints(max_length=4096)]
    busy: bool


class SaveBody(Strict):
    """What the server extension says of one save."""

    save: Annotated[str, StringConstraints(max_length=200)]
    asked_lab: bool
    documents: Annotated[list[DocumentBody], Field(max_length=1000)] = Field(default_factory=list)
    kernels: Annotated[list[KernelBody], Field(max_length=1000)] = Field(default_factory=list)
    terminals: Count = 0
    error: Text = ""


class KernelActivityBody(Strict):
    id: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    name: Annotated[str, StringConstraints(max_length=200)]
    path: Annotated[str, StringConstraints(max_length=4096)] = ""
    state: Literal["starting", "alive", "restarting", "dead"] = "alive"
    heard: bool = True
    requests: Count = 0
    waits: bool = False
    busy_seconds_ago: Age | None = None
    edited_seconds_ago: Age | None = None


class KernelEndBody(Strict):
    id: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    failed: Annotated[str, StringConstraints(max_length=200)] = ""


class ActivityBody(Strict):
    """What the server extension says of its session."""

    kernels: Annotated[list[KernelActivityBody], Field(max_length=200)] = Field(default_factory=list)
    terminals: Count = 0
    jobs: Count = 0
    edited_seconds_ago: Age | None = None
    ended: Annotated[list[KernelEndBody], Field(max_length=200)] = Field(default_factory=list)


class HoldBody(Strict):
    closed: bool = False
    reason: Annotated[str, StringConstraints(min_length=1, max_length=2000)]


class ReasonBody(Strict):
    reason: Text = ""


class DepartedBody(ReasonBody):
    """`ago_seconds`: how long ago the hub deleted the user, where it could not be told at once."""

    ago_seconds: Annotated[int, Field(ge=0, le=10 * 366 * 86400)] = 0


class PolicyBody(Strict):
    """A policy as YAML text. `name` is the file's name in messages."""

    text: Annotated[str, StringConstraints(max_length=1_100_000)]
    name: Annotated[str, StringConstraints(max_length=200)] = "policy.yaml"
