"""Which verbs there are: one row each, from which help is made without loading any of them.

A row's target is `module:function`. Most are functions with typer's annotations that take the `Screen` from their
context and return the exit code. A `raw` one gets the arguments after the verb as they stand and returns the exit
code: for verbs with a parser of their own. A verb of two words belongs to the group of the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

_W, _I, _P = "hubgov.cli.verbs.workloads:", "hubgov.cli.verbs.inventory:", "hubgov.cli.verbs.policy:"
_A, _J = "hubgov.cli.verbs.approvals:", "hubgov.cli.verbs.jobs:"
_O, _L = "hubgov.cli.verbs.operations:", "hubgov.cli.local."


class Verb(NamedTuple):
    """A verb: where its function is, what it does in English and Chinese, and how it is used."""

    target: str
    help: tuple[str, str]
    example: str
    raw: bool = False
    more: tuple[str, str] = ("", "")
    """What only its own help says."""
    bare: tuple[str, ...] = ()
    """Options that may also stand without their value."""


VERBS: Mapping[str, Verb] = {
    "list": Verb(
        _W + "list_workloads",
        ("List workloads, newest first.", "列出任务，最新的在前。"),
        "hubgov list --state running --columns id,owner,left",
        more=(
            "On a terminal the quota of your team stands below.",
            "在终端中下方显示所属团队的配额。",
        ),
    ),
    "show": Verb(
        _W + "show",
        ("Show one workload; --wait until it runs or is over.", "显示一个任务；--wait 等到它运行或结束。"),
        "hubgov show nb-7 --wait 10m",
        more=(
            "With --wait the exit code is 4 when it still waits after that time and 1 when it failed.",
            "使用 --wait 时，到时仍在等待则退出码为 4，失败则为 1。",
        ),
    ),
    "submit": Verb(
        _J + "submit",
        ("Take a command in line, to run once its devices are granted.", "提交一条命令，获得设备后运行。"),
        "hubgov submit --queue training --gpus 1 --lease 8h -- python train.py",
        more=(
            "It runs in your home, as you, with its devices and nothing of others'. With --wait the exit code is 1 "
            "when it failed and 4 when it isn't over after that time.",
            "在你的主目录中以你的身份运行，只看得到分到的设备。"
            "使用 --wait 时，失败则退出码为 1，到时仍未结束则为 4。",
        ),
        bare=("--wait",),
    ),
    "logs": Verb(
        _J + "logs",
        ("What a job wrote; -f goes on until it is over.", "任务的输出；-f 持续显示到结束。"),
        "hubgov logs tr-7 -f",
        more=(
            "Kept are the first 16 MiB and the last 48 MiB. On a terminal only colours pass.",
            "保留前 16 MiB 和后 48 MiB。在终端中仅保留颜色控制。",
        ),
    ),
    "why": Verb(
        _W + "why",
        (
            "Why it waits, for whom and until when; of what runs, whether it is idle.",
            "为什么在等：比较的数字、占用者、到何时；运行中的任务是否算空闲。",
        ),
        "hubgov why nb-7",
    ),
    "plan": Verb(
        "hubgov.cli.verbs.planning:plan",
        ("What would happen to a request now; nothing is submitted.", "试算一个请求的结果，不会提交。"),
        "hubgov plan --queue experiment --gpus 1 --lease 4h",
        more=("The exit code is 3 when it would be refused.", "会被拒绝时退出码为 3。"),
    ),
    "extend": Verb(
        _W + "extend",
        ("Ask for more time.", "申请延长时间。"),
        'hubgov extend nb-7 --by 2h --reason "evaluation still runs"',
        more=(
            "The exit code is 3 when the policy denies it and 6 when somebody has to agree first.",
            "被策略拒绝时退出码为 3，需要他人批准时为 6。",
        ),
    ),
    "keep": Verb(
        _W + "keep",
        ("Keep an idle session that was asked about.", "保留被询问的空闲会话。"),
        "hubgov keep nb-7",
        more=(
            "The exit code is 3 when it was kept as often as its queue allows.",
            "达到队列允许的保留次数时退出码为 3。",
        ),
    ),
    "cancel": Verb(_W + "cancel", ("Stop a workload.", "停止一个任务。"), "hubgov cancel nb-7 --reason done"),
    "receipt": Verb(
        _W + "receipt",
        ("What was saved, lost, used and charged by one that is over.", "已结束任务的保存、丢失、用量与费用。"),
        "hubgov receipt nb-7",
    ),
    "extensions": Verb(
        _A + "extensions",
        ("Requests for more time of live workloads.", "进行中任务的延长申请。"),
        "hubgov extensions",
    ),
    "approvals": Verb(
        _A + "approvals",
        ("Requests that wait for a decision, and whom they would delay.", "待审批的申请，以及会推迟谁。"),
        "hubgov approvals",
    ),
    "approve": Verb(
        _A + "approve",
        ("Grant a request for more time, or part of it.", "批准延长申请，可少于所申请的时间。"),
        "hubgov approve nb-7-x1 --by 1h",
        more=("Nobody decides on his own request.", "不能审批自己的申请。"),
    ),
    "deny": Verb(
        _A + "deny",
        ("Refuse a request for more time.", "拒绝延长申请。"),
        'hubgov deny nb-7-x1 --reason "needed for the release"',
    ),
    "withdraw": Verb(
        _A + "withdraw",
        ("Take back your own request for more time.", "撤回自己的延长申请。"),
        "hubgov withdraw nb-7-x1",
    ),
    "quota": Verb(
        _I + "quota",
        ("Quota and use, by team, pool and card type.", "按团队、资源池和卡型列出配额与用量。"),
        "hubgov quota --team vision",
    ),
    "devices": Verb(
        _I + "devices",
        ("Every device: whose it is, who holds it, until when.", "所有设备：归属、占用者、到何时。"),
        "hubgov devices",
    ),
    "pools": Verb(
        _I + "pools", ("Pools, to whom they belong, what is free.", "资源池、归属与空闲。"), "hubgov pools"
    ),
    "queues": Verb(
        _I + "queues",
        ("Queues, their limits, how many wait and run.", "队列、限额、排队与运行数。"),
        "hubgov queues",
    ),
    "cost": Verb(
        "hubgov.cli.verbs.costs:cost",
        ("GPU-hours and what they cost, of what you may see.", "可见范围内的 GPU 小时与费用。"),
        "hubgov cost --by team,project --from 2026-11-01",
        more=(
            "One's own, of the teams one leads, all for admins. Sessions that run count up to now.",
            "包括本人的、所负责团队的；管理员可见全部。运行中的会话计至当前。",
        ),
    ),
    "audit": Verb(
        _O + "audit",
        ("Who did what and why.", "谁做了什么、为什么。"),
        "hubgov audit --workload nb-7",
        more=("Newest first. Without --workload for admins only.", "最新的在前。不带 --workload 时仅限管理员。"),
    ),
    "policy init": Verb(
        _P + "init",
        ("Write a policy to begin with, from the devices of this machine.", "按本机设备生成初始策略。"),
        "hubgov policy init policy.yaml",
        more=("It needs no service. Without FILE it is printed.", "不需要服务。省略 FILE 时直接输出。"),
    ),
    "policy check": Verb(
        _P + "check",
        ("Check a policy file; needs no service.", "检查策略文件，不需要服务。"),
        "hubgov policy check policy.yaml",
        more=(
            "Every problem stands on a line of its own: FILE:LINE: CODE: message. "
            "The exit code is 1 when one of them is an error.",
            "每个问题一行：FILE:LINE: CODE: 说明。有错误时退出码为 1。",
        ),
    ),
    "policy diff": Verb(
        _P + "diff",
        ("What a file would change of the policy in force.", "文件与现行策略的差异。"),
        "hubgov policy diff policy.yaml",
        more=("+ is new, - is gone, ~ is changed.", "+ 为新增，- 为删除，~ 为修改。"),
    ),
    "policy apply": Verb(
        _P + "apply",
        ("Put a policy file in force, all of it or nothing.", "应用策略文件，全部生效或全不生效。"),
        "hubgov policy apply policy.yaml --yes",
        more=(
            "On a terminal it shows the difference and asks first, unless --yes is given.",
            "在终端中会先显示差异并询问，除非给出 --yes。",
        ),
    ),
    "policy show": Verb(
        _P + "show",
        ("The policy in force, as it was written.", "现行策略原文。"),
        "hubgov policy show > policy.yaml",
    ),
    "schema": Verb(
        _P + "schema",
        ("The JSON Schema of the policy file, for editors.", "策略文件的 JSON Schema，供编辑器使用。"),
        "hubgov schema > policy.schema.json",
        more=("It needs no service.", "不需要服务。"),
    ),
    "hold": Verb(
        _O + "hold",
        ("Let nothing of a queue start any more.", "暂停队列，不再启动其中的任务。"),
        'hubgov hold train --reason "storage is being repaired"',
        more=("What runs goes on.", "运行中的继续。"),
    ),
    "release": Verb(_O + "release", ("Let a held queue go on.", "恢复已暂停的队列。"), "hubgov release train"),
    "drain": Verb(
        _O + "drain",
        ("Let nothing new start on a node; what runs goes on.", "节点不再接受新任务，运行中的继续。"),
        "hubgov drain gpu-a --reason maintenance",
    ),
    "undrain": Verb(_O + "undrain", ("Let a node take work again.", "节点重新接受任务。"), "hubgov undrain gpu-a"),
    "login": Verb(
        "hubgov.cli.verbs.signin:login",
        ("Get a token from the hub and keep it for later calls.", "向 hub 取得令牌并保存，供以后使用。"),
        "hubgov login --url https://hub.example/services/hubgov --user ann",
        more=(
            "It is kept in a file that only you can read, and never printed.",
            "令牌保存在仅本人可读的文件中，不会显示。",
        ),
    ),
    "demo": Verb(
        _L + "demo:run",
        ("JupyterHub with hubgov on this machine, in one command.", "在本机一条命令启动带 hubgov 的 JupyterHub。"),
        "hubgov demo --lang zh",
        raw=True,
    ),
    "init": Verb(
        _L + "init:run",
        (
            "Join a JupyterHub that is there: shows what it would write.",
            "接入已有的 JupyterHub：先显示将写入的内容。",
        ),
        "hubgov init --config /etc/jupyterhub/jupyterhub_config.py --apply",
        raw=True,
    ),
    "doctor": Verb(
        _L + "doctor:run",
        ("Check an installation: what is wrong, and the command that mends it.", "检查安装：问题所在与修复命令。"),
        "hubgov doctor",
        raw=True,
    ),
    "service": Verb(
        _L + "service:run",
        ("Run the service; JupyterHub starts it.", "运行服务；由 JupyterHub 启动。"),
        "hubgov service --help-all",
        raw=True,
    ),
}

GROUPS: Mapping[str, tuple[str, str]] = {
    "policy": ("Check, compare, apply and show the policy.", "检查、比较、应用和显示策略。"),
}
